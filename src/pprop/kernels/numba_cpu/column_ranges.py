"""Gathers from a state of many GB: the entries of a group of rows, sorted by ranges of columns, and summed range by range.

Beyond some GB of a state every gather also waits for the address of its page, whose tables no longer fit into the cache.
Within a range they do. Columns ascend in a row, so that a row is summed in the same order, to the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import part
from pprop.kernels.numba_cpu.vectors import address, count, fma, item, load, prefetch, store

AHEAD = 24  # entries before they are summed that rows of the state are asked for
_COLUMN = 2**32 - 1  # the half of a sorted entry that is its column; the other half is its row
# Bytes of a state from which on entries are sorted by ranges of columns, bytes of a range, and rows and entries that are
# sorted at once, at most.
_FAR, _REACH, _GROUP, _GROUP_ENTRIES = 2**31, 2**28, 2**17, 2**21


@part
def sort_group(low, high, most, T, bits, fill, held):
    """Copy the entries of the rows low to high by ranges of 2^bits columns, in their order; return how many there are.

    Rows of more than `most` entries are left out.
    """
    entries, weights = held
    fill[:] = 0
    for i in range(low, high):
        if T.indptr[i + 1] - T.indptr[i] <= most:
            for e in range(T.indptr[i], T.indptr[i + 1]):
                fill[(T.indices[e] >> bits) + 1] += 1
    for k in range(1, len(fill)):
        fill[k] += fill[k - 1]
    for i in range(low, high):
        if T.indptr[i + 1] - T.indptr[i] <= most:
            for e in range(T.indptr[i], T.indptr[i + 1]):
                k = T.indices[e] >> bits
                at = fill[k]
                fill[k] = at + 1
                entries[at] = (i - low) << 32 | T.indices[e]
                if len(weights):
                    weights[at] = T.weights[e]
    return fill[-1]


@part
def add_sorted(taken, held, source, stride, column, shift, sums, width, twice, line):
    """Add weight times row of the state, for entries of several rows, to the sums of these rows, `sums` and on."""
    entries, weights, weighted = address(held[0]), address(held[1]), len(held[1]) > 0
    for e in range(taken):
        soon = (item(entries, min(e + AHEAD, taken - 1)) & _COLUMN) * stride + column
        entry = item(entries, e)
        at, to = (entry & _COLUMN) * stride + column, sums[1] + (entry >> 32) * stride
        for q in range(0, count(width), count(line)):
            prefetch(source, soon + q)
            if count(twice) == 2:
                prefetch(source, soon + shift + count(width) - 1 - q)
        weight = item(weights, e) if weighted else 1.0
        first = fma(weight, load(source, at, width), load(sums[0], to, width))
        if count(twice) == 2:  # before the first is stored, which it overlaps
            second = fma(weight, load(source, at + shift, width), load(sums[0], to + shift, width))
            store(sums[0], to + shift, second)
        store(sums[0], to, first)


def column_ranges(
    indptr: NDArray[np.int64], weights: NDArray[Any], most: int, states: int, row_bytes: int, threads: int
) -> tuple[Any, ...] | None:
    """Return where groups of rows begin, the bits of a range, and memory for the threads; None for a state that is near.

    Parameters
    ----------
    indptr, weights
        Of the rows.
    most
        Entries of a row that is sorted, at most.
    states, row_bytes
        Rows of the state, and bytes of one.

    Examples
    --------
    >>> none = np.empty(0, np.float32)
    >>> column_ranges(np.arange(0, 3000, 30), none, 8192, states=10**6, row_bytes=64, threads=2)
    >>> groups, bits, fill, held = column_ranges(np.arange(0, 3000, 30), none, 8192, states=10**8, row_bytes=64, threads=2)
    >>> groups, 64 * 2**bits == 2**28, fill.shape
    (array([ 0, 99]), True, (2, 25))
    """
    if states * row_bytes <= _FAR:
        return None
    bits = max(1, _REACH // row_bytes).bit_length() - 1
    n, starts = len(indptr) - 1, [0]
    while starts[-1] < n:
        first = starts[-1]
        window = indptr[first : min(first + _GROUP, n) + 1]
        rows = int(window.searchsorted(int(window[0]) + _GROUP_ENTRIES, side="right")) - 1
        starts.append(first + max(rows, 1))
    room = threads, min(_GROUP_ENTRIES + most, int(indptr[-1]))
    copies = np.empty(room if len(weights) else (threads, 0), weights.dtype)
    fill = np.empty((threads, (states - 1 >> bits) + 2), np.int64)
    return np.array(starts), bits, fill, (np.empty(room, np.int64), copies)
