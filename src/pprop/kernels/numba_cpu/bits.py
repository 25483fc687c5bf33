"""Counter-based random bits, for the definition in ``docs/randomness.md``, and the masks that are made of them.

All arithmetic is in uint64, so that the 32-bit products and their high halves are plain shifts and masks.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numba import prange
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import inline, kernel, part, serial
from pprop.kernels.random_bits import Draw, law_of

# Keep decisions where nothing is dropped.
NO_WORDS = np.empty((1, 0), dtype=np.uint32)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


@inline
def philox(seed, c0, c1, c2, c3):
    """Philox4x32-10; arguments and results are uint64 below 2**32, the seed is the 64-bit key."""
    k0, k1 = seed & _LOW, seed >> _32
    for _ in range(10):
        p0, p1 = c0 * _M0, c2 * _M1
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ k0, p1 & _LOW, (p0 >> _32) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@inline
def keep_word(seed, stream, first, second, block, threshold, digits):
    """Return 32 keep decisions, positions 32 * block to 32 * block + 31 of the sequence of a site, as uint64.

    Without digits all are kept.
    """
    keep = _LOW
    w0, w1, w2, w3 = _LOW, _LOW, _LOW, _LOW
    for back in range(digits):
        index = np.uint64(block * digits + (digits - 1 - back))
        lane = index & np.uint64(3)
        if back == 0 or lane == np.uint64(3):  # one call of Philox gives four words, read from the last to the first
            call = index >> np.uint64(2)
            w0, w1, w2, w3 = philox(seed, np.uint64(first), np.uint64(second), np.uint64(stream), call)
        low = w0 if lane == np.uint64(0) else w1
        high = w2 if lane == np.uint64(2) else w3
        word = low if lane < np.uint64(2) else high
        keep = word & keep if (threshold >> back) & 1 else word | keep
    return keep


# Room that `keep_words` needs: the raw words of four blocks of at most 16 digits, and what a call gives beyond.
RAW_WORDS = 4 * 16 + 8


@part
def keep_words(seed, stream, first, second, block, count, threshold, digits, raw, out):
    """Fill out[0], ..., out[count - 1], at most four, with the keep decisions of blocks `block` and following of a site.

    One call of Philox gives four words, and all of them are used.
    """
    start = block * digits
    call = start // 4
    at = 0
    while 4 * call < start + count * digits:
        raw[at], raw[at + 1], raw[at + 2], raw[at + 3] = philox(
            seed, np.uint64(first), np.uint64(second), np.uint64(stream), np.uint64(call)
        )
        call, at = call + 1, at + 4
    skip = start % 4
    for word in range(count):
        keep = _LOW
        for back in range(digits):
            drawn = raw[skip + word * digits + digits - 1 - back]
            keep = drawn & keep if (threshold >> back) & 1 else drawn | keep
        out[word] = np.uint32(keep)


@serial
def plane_words(seed, stream, indptr, columns, begin, end, block, threshold, digits, raw, four, planes):
    """Fill four planes with the decisions of entries `begin` to `end`: planes[(block + p) % len(planes), e] for p < 4.

    Entry e is the site (its row, columns[e]); a plane holds 32 decisions of every entry. `block` is a multiple of 4.
    """
    ring, row = len(planes), np.searchsorted(indptr, begin, side="right") - 1
    for e in range(begin, end):
        while e >= indptr[row + 1]:
            row += 1
        keep_words(seed, stream, row, columns[e], block, 4, threshold, digits, raw, four)
        for plane in range(4):
            planes[(block + plane) % ring, e] = four[plane]


@serial
def reorder_planes(order, begin, end, block, planes, out):
    """Copy the four planes from `block` on in another order of the entries, places `begin` to `end` of it."""
    for plane in range(4):
        at = (block + plane) % len(planes)
        for e in range(begin, end):
            out[at, e] = planes[at, order[e]]


@kernel
def uniform(seeds, stream, limit, out):
    """out[r, i, j] = uniform in [-limit, limit) from 24 bits of the first word of site (i, j), in double precision."""
    runs, rows, columns = out.shape
    for task in prange(runs * rows):
        run, i = task // rows, task % rows
        for j in range(columns):
            word, _, _, _ = philox(seeds[run], np.uint64(i), np.uint64(j), np.uint64(stream), np.uint64(0))
            out[run, i, j] = (2.0 * ((word >> np.uint64(8)) * 2.0**-24) - 1.0) * limit


@kernel
def site_words(seeds, stream, indptr, indices, transposed, word, threshold, digits, out):
    """Fill out (R, entries) with the keep decisions of every entry (i, j) at positions 32 word to 32 word + 31.

    `transposed` says that the structure is that of the transpose: the site of entry (i, j) is then (j, i).
    """
    n = len(indptr) - 1
    for task in prange(len(seeds) * n):
        run, i = task // n, task % n
        for e in range(indptr[i], indptr[i + 1]):
            first, second = (indices[e], i) if transposed else (i, indices[e])
            out[run, e] = np.uint32(keep_word(seeds[run], stream, first, second, word, threshold, digits))


@part
def row_words(seed, stream, node, epoch, threshold, digits, raw, four, words, at, count):
    """Write the keep decisions of the columns of a dense row, 32 in a word, to words[at], ..., words[at + count - 1]."""
    for word in range(0, count, 4):
        some = min(4, count - word)
        keep_words(seed, stream, node, epoch, word, some, threshold, digits, raw, four)
        for k in range(some):
            words[at + word + k] = four[k]


@kernel
def dense_words(seeds, stream, epoch, threshold, digits, out):
    """Fill out (R, n, words) with the keep decisions of every row of a dense matrix."""
    runs, n, count = out.shape
    for task in prange(runs * n):
        run, i = task // n, task % n
        raw, four = np.empty(RAW_WORDS, np.uint64), np.empty(4, np.uint32)
        row_words(seeds[run], stream, i, epoch, threshold, digits, raw, four, out[run, i], 0, count)


def mask_of(draw: Draw | None, stream: int, like: NDArray[Any]) -> tuple[Any, ...]:
    """Return seeds, stream, epoch, threshold, digits (none for no dropout) and scale, as kernels take them.

    `like` has the runs in its first axis, and the type of the scale.
    """
    law, dtype = law_of(draw), like.dtype
    seeds, epoch = (np.zeros(len(like), np.uint64), 0) if draw is None else (_keys(draw), draw.number)
    return seeds, stream, epoch, *law, dtype.type(law.scale)


def _keys(draw: Draw) -> NDArray[np.uint64]:
    return np.ascontiguousarray(draw.seeds).view(np.uint64)


@final
class KeepWords:
    """Decisions of a matrix, and of its transpose, each given by row pointers and column indices.

    One word holds an entry's decisions at 32 positions, so that random bits cost next to nothing per epoch. A model may
    draw for several branches in turn: all words of the present 32 positions are kept, by side and seeds.
    """

    def __init__(self, kind: int, *sides: tuple[NDArray[Any], NDArray[Any]]) -> None:
        self._kind, self._sides = kind, sides
        self._word = -1
        self._known: dict[object, NDArray[np.uint32]] = {}

    def at(
        self, draw: Draw | None, side: int = 0, step: int = 0, steps: int = 1
    ) -> tuple[NDArray[np.uint32], int, float]:
        """Return words (R, entries), the bit of a step of the epoch, and what kept entries are multiplied by."""
        if draw is None:
            return NO_WORDS, 0, 1.0
        law, (word, bit) = law_of(draw), divmod(draw.number * steps + step, 32)
        if self._word != word:
            self._word, self._known = word, {}
        key = (side, draw.probability, draw.seeds.tobytes())
        if key not in self._known:
            out = self._known[key] = np.empty((len(draw.seeds), len(self._sides[side][1])), dtype=np.uint32)
            site_words(_keys(draw), self._kind, *self._sides[side], side == 1, word, *law, out)
        return self._known[key], bit, law.scale
