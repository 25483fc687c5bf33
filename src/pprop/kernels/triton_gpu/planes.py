"""Mask planes: the keep decisions of a sparse matrix, drawn 32 positions at a time and packed as the kernels read them.

One plane holds the decisions of one position of the sequences, that is of one epoch of the features or one step of the
propagation. It has one bit per entry: a word covers 32 iterations of a slot of a `Plan`, so that a kernel reads one
word for 32 gathered rows. A block of 32 planes is one keep word per entry with its bits transposed. Drawing a block
costs Philox once per entry and serves 32 epochs of the first layer, or 32 / K epochs of K steps.

A ring of blocks is held in memory. The drawing kernel finds out on the device, from the epoch counter, whether the next
epoch begins a new block, and returns at once if it does not: a captured CUDA graph can be replayed for ever.
"""

from __future__ import annotations

from typing import final

import torch
import triton.language as tl
from torch import Tensor

from pprop.kernels.streams import HIDDEN, Bernoulli, stream
from pprop.kernels.triton_gpu._jit import device, kernel, multiprocessors
from pprop.kernels.triton_gpu.bits import keep_word
from pprop.kernels.triton_gpu.plan import Plan

__all__ = ["HiddenWords", "Planes", "plane_of"]


@device
def plane_of(planes, run, position, words, RING: tl.constexpr):
    """Return where the plane of a position of a run begins."""
    block = (position >> 5) % RING
    return planes + ((run * RING + block) * 32 + (position & 31)).to(tl.int64) * words


@kernel("units", "ahead", "force", "threshold", "digits")
def _draw_planes(
    clock, seeds, tiles, rows, index, planes, units, count, columns, words, steps, ahead, force, threshold, digits,
    STREAM: tl.constexpr, FLIPPED: tl.constexpr, RING: tl.constexpr, T: tl.constexpr,
):  # fmt: skip
    """Draw the blocks that epoch clock + ahead needs and the epoch before it did not; all it needs if `force`."""
    epoch = tl.load(clock) + ahead
    first, last = (epoch * steps) >> 5, (epoch * steps + steps - 1) >> 5
    known = tl.where(force == 1, first - 1, (epoch * steps - 1) >> 5)  # the last block drawn before
    slot, bit = tl.arange(0, T), tl.arange(0, 32)
    if last > known:
        unit = tl.program_id(0)
        while unit < units:
            tile, rest = unit % count, unit // count
            ring, run = rest % RING, rest // RING
            block = first + (ring - first % RING + RING) % RING
            if (block <= last) & (block > known):
                base, length = tl.load(tiles + tile * 4 + 1), tl.load(tiles + tile * 4 + 2)
                word = tl.load(tiles + tile * 4 + 3)
                row = tl.load(rows + tile * T + slot)
                seed = tl.load(seeds + run)
                out = planes + (run * RING + ring).to(tl.int64) * 32 * words + word
                t = 0
                while t < length:
                    packed = tl.zeros((T, 32), tl.uint32)
                    k = 0
                    while (k < 32) & (t + k < length):
                        column = tl.load(index + base + (t + k) * T + slot)
                        i, j = row.to(tl.uint32), column.to(tl.uint32)
                        if FLIPPED:
                            keep = keep_word(seed, tl.full((), STREAM, tl.int32), j, i, block, threshold, digits)
                        else:
                            keep = keep_word(seed, tl.full((), STREAM, tl.int32), i, j, block, threshold, digits)
                        keep = tl.where(column < columns, keep, 0)
                        packed |= ((keep[:, None] >> bit[None, :].to(tl.uint32)) & 1) << k.to(tl.uint32)
                        k += 1
                    at = out + bit[None, :].to(tl.int64) * words + (t // 32) * T + slot[:, None]
                    tl.store(at, packed.to(tl.int32, bitcast=True))
                    t += 32
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
        Whether the plan is that of the transpose.
    """

    def __init__(self, plan: Plan, kind: int, steps: int, runs: int, probability: float, *, flipped: bool) -> None:
        self._plan, self._kind, self._steps, self._flipped = plan, kind, steps, flipped
        self._law = Bernoulli.from_probability(probability)
        self.ring = ring_size(steps)
        self.words = plan.words
        self.bits = torch.zeros(runs, self.ring, 32, plan.words, dtype=torch.int32, device=plan.index.device)
        self._programs = 4 * multiprocessors(plan.index)

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        """Draw what epoch clock + ahead needs: what is new in it, or everything."""
        plan = self._plan
        units = len(seeds) * self.ring * plan.count
        _draw_planes[(min(self._programs, units),)](
            clock, seeds, plan.tiles, plan.rows, plan.index, self.bits, units, plan.count, plan.columns, plan.words,
            self._steps, ahead, int(force), self._law.threshold, self._law.digits,
            STREAM=self._kind, FLIPPED=self._flipped, RING=self.ring, T=plan.slots, num_warps=8,
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
