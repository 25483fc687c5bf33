"""Sums of the rows and columns of a graph whose entries come in blocks of rows, and which rows lack a self-loop."""

from __future__ import annotations

import numpy as np
from numba import prange

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel, serial
from pprop.kernels.numba_cpu.vectors import address, prefetch

_AHEAD = 24  # entries, as in power steps


@kernel
def scan_rows(first, indptr, indices, weights, n, sums, loops, wrong):
    """Fill `sums` and `loops` for the rows of a block; return how many of their tasks found entries that are no graph's.

    Row i of the block is row first + i of the graph, its entries are indptr[i] to indptr[i + 1] of the block. sums[i]
    becomes the sum of its weights, in order, loops[i] whether it has a self-loop of a weight above 0. `wrong` has an element
    for every ROW_BLOCK rows, and gets 1 where a column is not from 0 to n - 1 or a weight not positive and finite.
    """
    rows = len(indptr) - 1
    for task in prange(len(wrong)):
        bad = 0
        for i in range(task * ROW_BLOCK, min((task + 1) * ROW_BLOCK, rows)):
            total, loop = 0.0, 0
            for e in range(indptr[i], indptr[i + 1]):
                j, weight = indices[e], 1.0
                if len(weights):
                    weight = np.float64(weights[e])
                    bad |= not (weight >= 0.0 and weight < np.inf)
                bad |= (j < 0) | (j >= n)
                loop |= (j == first + i) & (weight > 0.0)
                total += weight
            sums[i], loops[i] = total, loop
        wrong[task] = bad


@serial
def add_columns(indices, weights, sums):
    """Add every entry of a block to the sum of its column, in order; sums are fetched ahead, as they are all over memory."""
    place, count = address(sums), len(indices)
    for e in range(count):
        prefetch(place, np.int64(indices[min(e + _AHEAD, count - 1)]))
        sums[indices[e]] += np.float64(weights[e]) if len(weights) else 1.0
