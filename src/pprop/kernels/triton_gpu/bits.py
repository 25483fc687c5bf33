"""Dropout masks on the GPU: counter-based random bits, for the definition in ``docs/randomness.md``, and mask planes.

Philox costs about 90 integer instructions, against 64 fused multiply-adds for an entry of the first layer. The trainer
therefore draws 32 decisions of an entry at once and keeps them; the single operators draw as they go.

Mask planes are the keep decisions of a sparse matrix, packed as the kernels read them. One plane holds the decisions of
one position of the sequences, that is of one epoch of the features or one step of the propagation. It has one bit per
entry: a word covers 32 iterations of a slot of a `RowPlan`, so that a kernel reads one word for 32 gathered rows. A block
of 32 planes is one keep word per entry with its bits transposed. Drawing a block costs Philox once per entry and serves
32 epochs of the first layer, or 32 / K epochs of K steps.

Where all columns are masked, as on the way back, nothing is needed of what is dropped. Kernels then go from one bit that
is set to the next, each slot at its own place; how often the tile's fullest slot has to is counted when the plane is drawn.

A ring of blocks is held in memory. The drawing kernel finds out on the device, from the epoch counter, whether the next
epoch begins a new block, and returns at once if it does not: a captured CUDA graph can be replayed for ever.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
import triton.language as tl
from torch import Tensor

from pprop.kernels.random_bits import Bernoulli, sequence_word
from pprop.kernels.triton_gpu.launch import INTERPRETED, device, kernel, multiprocessors, power_of_two
from pprop.kernels.triton_gpu.plan import RowPlan


@device
def _philox(k0, k1, c0, c1, c2, c3):
    """Philox4x32-10 on uint32 tensors or scalars that broadcast together."""
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(c0, 0xD2511F53), tl.mul(c0, 0xD2511F53, sanitize_overflow=False)
        high1, low1 = tl.umulhi(c2, 0xCD9E8D57), tl.mul(c2, 0xCD9E8D57, sanitize_overflow=False)
        c0 = high1 ^ c1 ^ k0
        c2 = high0 ^ c3 ^ k1
        c1 = low1
        c3 = low0
        k0 = tl.add(k0, 0x9E3779B9, sanitize_overflow=False)
        k1 = tl.add(k1, 0xBB67AE85, sanitize_overflow=False)
    return c0, c1, c2, c3


@device
def drawn_word(seed, stream, first, second, block, threshold, digits):
    """Return decisions 32 * block to 32 * block + 31 of each site, as uint32: bit t is one where entry t is kept.

    `first` and `second` are uint32 tensors that broadcast together; everything else is a scalar. The digits are read
    from the least significant on, which is from the last word to the first; one call of Philox makes four words.
    """
    k0 = (seed & 0xFFFFFFFF).to(tl.uint32)
    k1 = ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
    c0 = first | (second & 0)  # of the common shape
    c1 = second | (first & 0)
    c2 = (c0 & 0) | stream.to(tl.uint32)
    begin = block.to(tl.int64) * digits
    call = (begin + digits - 1) >> 2
    keep = (c0 & 0) | 0xFFFFFFFF
    while call >= (begin >> 2):
        words = _philox(k0, k1, c0, c1, c2, (c0 & 0) | call.to(tl.uint32))
        for back in tl.static_range(4):
            word, digit = words[3 - back], (call * 4 - begin).to(tl.int32) + (3 - back)
            inside = (digit >= 0) & (digit < digits)  # whether this word is one of the decisions' digits
            one = (threshold >> tl.where(inside, digits - 1 - digit, 0)) & 1
            keep = tl.where(inside, tl.where(one == 1, word & keep, word | keep), keep)
        call -= 1
    return keep


def _equal_word(seed: Any, number: Any, first: Any, second: Any, block: Any, threshold: Any, digits: Any) -> Any:
    """Return what `drawn_word` does as a tensor of triton's interpreter, which takes 25 ms for a word of its own."""
    from triton.runtime.interpreter import TensorHandle

    def read(value: Any) -> Tensor:
        return torch.from_numpy(np.array(value.handle.data if isinstance(value, tl.tensor) else value, dtype=np.int64))

    sites = torch.broadcast_tensors(read(first), read(second))
    count, level = int(read(digits)), int(read(threshold))
    index = int(read(block)) * count + torch.arange(count).reshape(-1, *(1 for _ in sites[0].shape))
    words = sequence_word(read(seed).reshape(()), int(read(number)), sites[0], sites[1], index)
    keep = torch.full(sites[0].shape, 0xFFFFFFFF)
    for digit in reversed(range(count)):
        keep = words[digit] & keep if level >> (count - 1 - digit) & 1 else words[digit] | keep
    data = keep.numpy().astype(np.uint32)
    return tl.tensor(TensorHandle(data, tl.uint32), tl.block_type(tl.uint32, list(data.shape)))


def _number(count: Any) -> int:
    """Return a scalar of the interpreter as a number: it makes no range of its own scalars."""
    return int(count.handle.data.item())


@device
def _same(count):
    return count


# What kernels call for keep words.
keep_word: Any = _equal_word if INTERPRETED else drawn_word
# What kernels pass the ends of a range through.
loop_end: Any = _number if INTERPRETED else _same


@device
def kept(seed, first, second, position, threshold, digits, STREAM: tl.constexpr):
    """Return whether the entries (first, second) are kept at a position of their sequences."""
    number = tl.full((), STREAM, tl.int32)
    word = keep_word(seed, number, first.to(tl.uint32), second.to(tl.uint32), position >> 5, threshold, digits)
    return ((word >> (position & 31).to(tl.uint32)) & 1) == 1


@device
def lowest_one(word):
    """Return the lowest one of int32 words, alone in its word, and its place: the exponent of that power of two."""
    alone = word & -word
    return alone, ((alone.to(tl.float32).to(tl.int32, bitcast=True) >> 23) & 255) - 127


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


@kernel("runs", "units", "chunks", "groups", "ahead", "threshold", "digits")
def _draw_planes(
    clock, held, seeds, runs, table, rows, index, planes, rounds, units, chunks, groups, columns, words, steps, ahead,
    threshold, digits,
    STREAM: tl.constexpr, FLIPPED: tl.constexpr, WALKED: tl.constexpr, RING: tl.constexpr, T: tl.constexpr,
    B: tl.constexpr, SEEDS: tl.constexpr,
):  # fmt: skip
    """Draw the blocks that epoch clock + ahead needs: where the planes are those of epoch `held`, only what is missing.

    With SEEDS, at least R, the seeds of the planes follow on their epoch; other planes are of no use.

    A unit is B words of all 32 planes of a block: B x 32 keep words, one per entry, whose bits are then transposed.
    """
    epoch = tl.load(clock) + ahead
    behind = epoch - tl.load(held)
    first, last = (epoch * steps) >> 5, (epoch * steps + steps - 1) >> 5
    known = tl.where(behind == 1, (epoch * steps - 1) >> 5, first - 1)  # the last block drawn before
    known = tl.where(behind == 0, last, known)
    if SEEDS > 0:
        k = tl.arange(0, SEEDS)
        mine = tl.load(seeds + k, mask=k < runs, other=0)
        theirs = tl.load(held + 1 + k, mask=k < runs, other=0)
        known = tl.where(tl.sum((mine != theirs).to(tl.int32)) > 0, first - 1, known)
    if last > known:
        iteration = tl.arange(0, 32)[:, None]  # first, so that a thread has all of a word and packs it alone
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
                at = (begin + slot)[None, :] + iteration * T
                column = tl.load(index + at, mask=iteration < count[None, :], other=columns)
                i, j = row.to(tl.uint32)[None, :], column.to(tl.uint32)
                seed = tl.load(seeds + run)
                if FLIPPED:
                    keep = keep_word(seed, tl.full((), STREAM, tl.int32), j, i, block, threshold, digits)
                else:
                    keep = keep_word(seed, tl.full((), STREAM, tl.int32), i, j, block, threshold, digits)
                keep = tl.where(column < columns, keep, 0)
                plane = (run * RING + ring).to(tl.int64) * 32
                most_of = (unit % chunks) * (B // T) + tl.arange(0, B // T)
                turn = iteration.to(tl.uint32)
                keep = (keep << turn) | (keep >> ((32 - turn) & 31))
                for bit in range(32):  # turned such that this bit of iteration t is bit t
                    packed = tl.sum(keep & (1 << turn), axis=0)  # no two have a bit in common
                    keep = (keep >> 1) | (keep << 31)
                    tl.store(planes + (plane + bit) * words + word, packed.to(tl.int32), mask=there)
                    if WALKED:
                        most = tl.max(tl.reshape(_ones(packed).to(tl.int32), (B // T, T)), axis=1)
                        tl.store(rounds + (plane + bit) * groups + most_of, most.to(tl.int8), mask=most_of < groups)
            unit += tl.num_programs(0)


@kernel("ahead", "threshold", "digits")
def _draw_rows(
    clock, seeds, out, n, ahead, threshold, digits,
    COUNT: tl.constexpr, STREAM: tl.constexpr, FAIR: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Draw out[run, node, w]: the decisions of columns 32 w to 32 w + 31 in epoch clock + ahead, four words a program.

    FAIR decisions are single bits: one call makes all four words.
    """
    part, run = tl.program_id(2), tl.program_id(1)
    node = tl.program_id(0) * B + tl.arange(0, B)
    epoch = (tl.load(clock) + ahead).to(tl.uint32)
    seed, site = tl.load(seeds + run), node.to(tl.uint32)
    number = tl.full((), STREAM, tl.int32)
    at = out + (run.to(tl.int64) * n + node) * COUNT + part * 4
    if FAIR:
        k0, k1 = (seed & 0xFFFFFFFF).to(tl.uint32), ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
        w0, w1, w2, w3 = _philox(k0, k1, site, site * 0 + epoch, site * 0 + STREAM, site * 0 + part.to(tl.uint32))
        words = tl.reshape(tl.join(tl.join(w0, w2), tl.join(w1, w3)), (B, 4)).to(tl.int32, bitcast=True)
        k = tl.arange(0, 4)[None, :]
        tl.store(at[:, None] + k, words, mask=(node < n)[:, None] & (part * 4 + k < COUNT))
    else:
        for k in tl.static_range(4):
            w = part * 4 + k
            if w < COUNT:
                keep = keep_word(seed, number, site, site * 0 + epoch, w.to(tl.int64), threshold, digits)
                tl.store(at + k, keep.to(tl.int32, bitcast=True), mask=node < n)


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
    walked
        Whether kernels go from one kept entry to the next; those with columns that drop nothing cannot.

    Attributes
    ----------
    law
        What is dropped.
    bits
        The planes, shape (R, ring, 32, words), int32.
    rounds
        If walked, the most entries that any of the T slots keeps in 32 iterations, for every plane and every T words of
        it; int8.
    """

    def __init__(
        self, plan: RowPlan, kind: int, steps: int, runs: int, probability: float, *, flipped: bool, walked: bool
    ) -> None:
        self.plan, self._kind, self._steps, self._flipped, self._walked = plan, kind, steps, flipped, walked
        self._none = torch.full((1,), -2, device=plan.index.device)  # comes before no epoch
        self.law = Bernoulli.from_probability(probability)
        self.ring = ring_size(steps)
        self.bits = self.rounds = plan.rows  # not read where nothing is dropped
        if self.law.digits > 0:
            self.bits = torch.zeros(runs, self.ring, 32, plan.words, dtype=torch.int32, device=plan.index.device)
            groups = plan.words // plan.slots if walked else 1
            self.rounds = torch.zeros(runs, self.ring, 32, groups, dtype=torch.int8, device=plan.index.device)

    def structure(self, entries: Tensor) -> tuple[Any, ...]:
        """Return what kernels read of the matrix: its tiles, entries, planes and rounds."""
        plan = self.plan
        return plan.tiles, plan.count, plan.rows, entries, self.bits, plan.words, self.rounds, self.rounds.shape[-1]

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, held: Tensor | None) -> None:
        """Draw what epoch clock + ahead needs beside what is there; None: everything.

        `held` is the epoch that the planes were drawn for, (1,), int64, or also its seeds, (1 + R,).
        """
        if self.law.digits == 0:
            return
        plan, size = self.plan, max(self.plan.slots, 128)
        chunks = -(-plan.words // size)
        units = len(seeds) * self.ring * chunks
        _draw_planes[(min(8 * multiprocessors(plan.index), units),)](
            clock, self._none if held is None else held, seeds, len(seeds), plan.groups, plan.rows, plan.index, self.bits,
            self.rounds, units, chunks, self.rounds.shape[3], plan.columns, plan.words, self._steps, ahead, *self.law,
            STREAM=self._kind, FLIPPED=self._flipped, WALKED=self._walked, RING=self.ring, T=plan.slots, B=size,
            SEEDS=0 if held is None or len(held) == 1 else power_of_two(len(seeds)),
            num_warps=size // 32,  # a thread a word
        )  # fmt: skip


def ring_size(steps: int) -> int:
    """Return how many blocks of 32 positions the positions of one epoch can touch.

    >>> ring_size(1), ring_size(10), ring_size(32), ring_size(34)
    (1, 2, 2, 3)
    """
    return (steps + 30) // 32 + 1


def mask_words(rows: int, entries: int, slots: int, limit: int) -> int:
    """About how many words a plane has: one a row, more for those over the limit, and four unfilled tiles.

    On the paper's graphs 1.1 to 1.6 times as many as there are.
    """
    return rows + 2 * entries // limit + 4 * slots


@final
class RowWords:
    """Keep words of a dense matrix, drawn for every epoch: (R, n, ceil(columns / 32)), int32; none without dropout."""

    def __init__(self, runs: int, n: int, columns: int, probability: float, number: int, device: torch.device) -> None:
        self.law, self.per_node, self._number = Bernoulli.from_probability(probability), -(-columns // 32), number
        shape = (runs, n, self.per_node) if self.law.digits > 0 else (1,)
        self.words = torch.zeros(shape, dtype=torch.int32, device=device)

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int) -> None:
        """Draw the words of epoch clock + ahead."""
        if self.law.digits == 0:
            return
        n = self.words.shape[1]
        _draw_rows[(-(-n // 128), len(seeds), -(-self.per_node // 4))](
            clock, seeds, self.words, n, ahead, *self.law, COUNT=self.per_node, STREAM=self._number,
            FAIR=self.law.digits == 1, B=128, num_warps=4,
        )  # fmt: skip
