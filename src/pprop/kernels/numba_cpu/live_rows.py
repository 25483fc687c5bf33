"""Sorted adjacency rows that can grow and shrink, in one pool of memory.

A row that is full moves to the end of the pool with half as much room again, and the pool is packed anew when its end
is reached, so that an edit costs a binary search and a shift of the row's tail, and an addition O(1) moves on average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import part, serial

__all__ = ["LiveRows", "edge_weights", "erase_entry", "insert_entry", "move_rows", "pack_rows"]


class LiveRows(NamedTuple):
    """The neighbours of every node but itself: row i is ``indices[start[i] : start[i] + length[i]]``, sorted."""

    start: NDArray[np.int64]
    length: NDArray[np.int64]
    room: NDArray[np.int64]  # entries that the row may grow to where it lies
    indices: NDArray[np.int32]
    weights: NDArray[np.float64]  # empty when all are one


@part
def _lower(indices, low, count, j):
    """Return where j is, or belongs, in a sorted row."""
    high = low + count
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low


@part
def insert_entry(rows, i, j, weight):
    """Write entry (i, j), which is not there, into a row that has room."""
    begin, count = rows.start[i], rows.length[i]
    at = _lower(rows.indices, begin, count, j)
    for e in range(begin + count, at, -1):
        rows.indices[e] = rows.indices[e - 1]
    rows.indices[at] = j
    if len(rows.weights) > 0:
        for e in range(begin + count, at, -1):
            rows.weights[e] = rows.weights[e - 1]
        rows.weights[at] = weight
    rows.length[i] = count + 1


@part
def erase_entry(rows, i, j):
    """Take entry (i, j), which is there, out of its row."""
    begin, count = rows.start[i], rows.length[i]
    at = _lower(rows.indices, begin, count, j)
    for e in range(at, begin + count - 1):
        rows.indices[e] = rows.indices[e + 1]
    if len(rows.weights) > 0:
        for e in range(at, begin + count - 1):
            rows.weights[e] = rows.weights[e + 1]
    rows.length[i] = count - 1


@serial
def edge_weights(rows, u, v, found):
    """found[k] = the weight of the edge (u[k], v[k]), 0 where there is none and for a self-loop."""
    for k in range(len(u)):
        i, j = u[k], v[k]
        found[k] = 0.0
        if rows.length[j] < rows.length[i]:
            i, j = j, i
        at = _lower(rows.indices, rows.start[i], rows.length[i], j)
        if at < rows.start[i] + rows.length[i] and rows.indices[at] == j:
            found[k] = rows.weights[at] if len(rows.weights) > 0 else 1.0


@serial
def move_rows(rows, nodes, extra, tail):
    """Give each row of `nodes` room for so many entries more, at the end of the pool where it must; return the new end."""
    for k in range(len(nodes)):
        i = nodes[k]
        wanted = rows.length[i] + extra[k]
        if wanted <= rows.room[i]:
            continue
        begin, count = rows.start[i], rows.length[i]
        for e in range(count):
            rows.indices[tail + e] = rows.indices[begin + e]
        if len(rows.weights) > 0:
            for e in range(count):
                rows.weights[tail + e] = rows.weights[begin + e]
        rows.start[i], rows.room[i] = tail, wanted + (wanted >> 1) + 4
        tail += rows.room[i]
    return tail


@serial
def pack_rows(rows, n, indices, weights):
    """Copy the rows of n nodes one after another into another pool, and let them begin there; return its end."""
    tail = 0
    for i in range(n):
        begin, count = rows.start[i], rows.length[i]
        for e in range(count):
            indices[tail + e] = rows.indices[begin + e]
        if len(weights) > 0:
            for e in range(count):
                weights[tail + e] = rows.weights[begin + e] if len(rows.weights) > 0 else 1.0
        rows.start[i], rows.room[i] = tail, count
        tail += count
    return tail
