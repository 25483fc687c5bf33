"""Mask planes: the keep decisions of a sparse matrix, drawn 32 positions at a time and packed as the kernels read them.

One plane holds the decisions of one position of the sequences, that is of one epoch of the features or one step of the
propagation. It has one bit per entry: a word covers 32 iterations of a slot of a `Plan`, so that a kernel reads one
word for 32 gathered rows. A block of 32 planes is one keep word per entry with its bits transposed. Drawing a block
costs Philox once per entry and serves 32 epochs of the first layer, or 32 / K epochs of K steps.

The way back needs nothing of what is dropped. Its kernels go from one bit that is set to the next, each slot at its own
place; how often the tile's fullest slot has to is counted when the plane is drawn.

A ring of blocks is held in memory. The drawing kernel finds out on the device, from the epoch counter, whether the next
epoch begins a new block, and returns at once if it does not: a captured CUDA graph can be replayed for ever.
"""

from __future__ import annotations

from typing import final

import torch
import triton.language as tl
from torch import Tensor

from pprop.kernels.random_bits import HIDDEN, Bernoulli, stream
from pprop.kernels.triton_gpu._jit import device, kernel, multiprocessors
from pprop.kernels.triton_gpu.bits import keep_word
from pprop.kernels.triton_gpu.plan import Plan

__all__ = ["HiddenWords", "Planes", "plane_of"]


@device
def plane_of(planes, run, position, words, RING: tl.constexpr):
    """Return where the plane of a position of a run begins."""
    block = (position >> 5) % RING
    return planes + ((run * RING + block) * 32 + (position & 31)).to(tl.int64) * words


@device
def _ones(word):
    """Count the ones of uint32 words."""
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    word = word + (word >> 8)
    return (word + (word >> 16)) & 63


@kernel("units", "chunks", "groups", "ahead", "force", "threshold", "digits")
def _draw_planes(
    clock, seeds, table, rows, index, planes, rounds, units, chunks, groups, columns, words, steps, ahead, force,
    threshold, digits,
    STREAM: tl.constexpr, FLIPPED: tl.constexpr, RING: tl.constexpr, T: tl.constexpr, B: tl.constexpr,
    ROUNDS: tl.constexpr,
):  # fmt: skip
    """Draw the blocks that epoch clock + ahead needs and the epoch before it did not; all it needs if `force`.

    A unit is B words of all 32 planes of a block: B x 32 keep words, one per entry, whose bits are then transposed.
    """
    epoch = tl.load(clock) + ahead
    first, last = (epoch * steps) >> 5, (epoch * steps + steps - 1) >> 5
    known = tl.where(force == 1, first - 1, (epoch * steps - 1) >> 5)  # the last block drawn before
    if last > known:
        iteration = tl.arange(0, 32)
        unit = tl.program_id(0)
        while unit < units:
            rest = unit // chunks
            ring, run = rest % RING, rest // RING
            block = first + (ring - first % RING + RING) % RING
            if (block <= last) & (block > known):
                word = (unit % chunks) * B + tl.arange(0, B)
                there = word < words
                group, slot = word // T, word % T
                begin = tl.load(table + group * 3, mask=there, other=0)
                count = tl.load(table + group * 3 + 1, mask=there, other=0)
                tile = tl.load(table + group * 3 + 2, mask=there, other=0)
                row = tl.load(rows + tile * T + slot, mask=there, other=0)
                at = (begin + slot)[:, None] + iteration[None, :] * T
                column = tl.load(index + at, mask=iteration[None, :] < count[:, None], other=columns)
                i, j = row.to(tl.uint32)[:, None], column.to(tl.uint32)
                seed = tl.load(seeds + run)
                if FLIPPED:
                    keep = keep_word(seed, tl.full((), STREAM, tl.int32), j, i, block, threshold, digits)
                else:
                    keep = keep_word(seed, tl.full((), STREAM, tl.int32), i, j, block, threshold, digits)
                keep = tl.where(column < columns, keep, 0)
                plane = (run * RING + ring).to(tl.int64) * 32
                most_of = (unit % chunks) * (B // T) + tl.arange(0, B // T)
                for bit in range(32):
                    lone = ((keep >> bit) & 1) << iteration[None, :].to(tl.uint32)
                    packed = tl.sum(lone, axis=1)  # no two have a bit in common
                    tl.store(planes + (plane + bit) * words + word, packed.to(tl.int32), mask=there)
                    if ROUNDS:
                        most = tl.max(tl.reshape(_ones(packed).to(tl.int32), (B // T, T)), axis=1)
                        tl.store(rounds + (plane + bit) * groups + most_of, most.to(tl.int8), mask=most_of < groups)
            unit += tl.num_programs(0)


@kernel("ahead", "threshold", "digits")
def _draw_hidden(
    clock, seeds, out, n, ahead, threshold, digits, STREAM: tl.constexpr, WORDS: tl.constexpr, B: tl.constexpr
):
    """Draw out[run, node, w]: the decisions of hidden units 32 w to 32 w + 31 in epoch clock + ahead."""
    run = tl.program_id(1)
    node = tl.program_id(0) * B + tl.arange(0, B)
    epoch = (tl.load(clock) + ahead).to(tl.uint32)
    seed = tl.load(seeds + run)
    for w in tl.static_range(WORDS):
        site = node.to(tl.uint32)
        block = tl.full((), w, tl.int64)
        keep = keep_word(seed, tl.full((), STREAM, tl.int32), site, site * 0 + epoch, block, threshold, digits)
        at = out + (run.to(tl.int64) * n + node) * WORDS + w
        tl.store(at, keep.to(tl.int32, bitcast=True), mask=node < n)


@final
class Planes:
    """The mask planes of one matrix for R runs.

    Parameters
    ----------
    plan
        The tiles whose entries are drawn.
    kind
        The stream of the matrix.
    steps
        Positions in an epoch: K, or 1 for the features.
    flipped
        Whether the plan is that of the transpose, which the way back reads.

    Attributes
    ----------
    bits
        The planes, shape (R, ring, 32, words), int32.
    rounds
        For the way back, the most entries that any of the T slots keeps in 32 iterations, for every plane and every T
        words of it; int8.
    """

    def __init__(self, plan: Plan, kind: int, steps: int, runs: int, probability: float, *, flipped: bool) -> None:
        self._plan, self._kind, self._steps, self._flipped = plan, kind, steps, flipped
        self._law = Bernoulli.from_probability(probability)
        self.ring = ring_size(steps)
        device = plan.index.device
        self.bits = torch.zeros(runs, self.ring, 32, plan.words, dtype=torch.int32, device=device)
        groups = plan.words // plan.slots if flipped else 0  # only the way back leaves out what is dropped
        self.rounds = torch.zeros(runs, self.ring, 32, max(groups, 1), dtype=torch.int8, device=device)
        self._programs = 8 * multiprocessors(plan.index)

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        """Draw what epoch clock + ahead needs: what is new in it, or everything."""
        plan = self._plan
        size = max(plan.slots, 32)
        chunks = -(-plan.words // size)
        units = len(seeds) * self.ring * chunks
        _draw_planes[(min(self._programs, units),)](
            clock, seeds, plan.groups, plan.rows, plan.index, self.bits, self.rounds, units, chunks,
            self.rounds.shape[3], plan.columns, plan.words, self._steps, ahead, int(force), self._law.threshold,
            self._law.digits, STREAM=self._kind, FLIPPED=self._flipped, RING=self.ring, T=plan.slots, B=size,
            ROUNDS=self._flipped, num_warps=min(16, max(4, size // 16)),
        )  # fmt: skip


def ring_size(steps: int) -> int:
    """Return how many blocks of 32 positions the positions of one epoch can touch.

    >>> ring_size(1), ring_size(10), ring_size(32), ring_size(34)
    (1, 2, 2, 3)
    """
    return (steps + 30) // 32 + 1


@final
class HiddenWords:
    """Keep words of the hidden layer, drawn afresh for every epoch: (R, n, ceil(h / 32)), int32."""

    def __init__(self, runs: int, n: int, hidden: int, probability: float, device: torch.device) -> None:
        self._law = Bernoulli.from_probability(probability)
        self.per_node = -(-hidden // 32)
        self.words = torch.zeros(runs, n, self.per_node, dtype=torch.int32, device=device)

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int) -> None:
        """Draw the words of epoch clock + ahead."""
        n = self.words.shape[1]
        _draw_hidden[(-(-n // 128), len(seeds))](
            clock, seeds, self.words, n, ahead, self._law.threshold, self._law.digits,
            STREAM=stream(HIDDEN, 1), WORDS=self.per_node, B=128, num_warps=4,
        )  # fmt: skip
