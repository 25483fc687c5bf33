"""PPNP's block of dense PPR rows, with dropout on its entries. One keep word covers 32 columns.

Compiled for one width, a number of classes, so that the inner loops are unrolled. The sums of the forward product are
held in a tuple, which LLVM keeps in registers; an array would be stored and loaded again for every term.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import prange
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.np.unsafe.ndarray import to_fixed_tuple

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel
from pprop.kernels.numba_cpu.bits import keep_word

__all__ = ["FORWARD_WIDTH", "rows_adjoint", "rows_forward"]

FORWARD_WIDTH = 16
"""Most columns that one forward call computes: more sums than that do not fit into the registers."""


@cache
def rows_forward(width):
    """out[r, k] = sum_j drop(block)[rows[r, k], j] predictions[r, j], for `width` columns from `column` on.

    No dropout when there are no seeds.
    """

    @kernel
    def run_rows_forward(block, nodes, rows, predictions, seeds, stream, epoch, threshold, digits, scale, column, out):
        runs, m, _ = out.shape
        n = block.shape[1]
        drop = len(seeds) > 0
        for task in prange(runs * m):
            run, k = task // m, task % m
            at, source = rows[run, k], predictions[run]
            acc = to_fixed_tuple(np.zeros(width, out.dtype), width)  # pyright: ignore[reportCallIssue]  an intrinsic
            for first in range(0, n, 32):
                keep = np.uint64(0xFFFFFFFF)
                if drop:
                    keep = keep_word(seeds[run], stream, nodes[at], epoch, first // 32, threshold, digits)
                for j in range(first, min(n, first + 32)):
                    if (keep >> np.uint64(j - first)) & np.uint64(1):
                        value = block[at, j] * scale
                        for q in range(width):
                            acc = tuple_setitem(acc, q, acc[q] + value * source[j, column + q])
            for q in range(width):
                out[run, k, column + q] = acc[q]

    return run_rows_forward


@cache
def rows_adjoint(width):
    """out[r, j] = sum_k drop(block)[rows[r, k], j] gradient[r, k]; a task owns one block of columns j."""

    @kernel
    def run_rows_adjoint(block, nodes, rows, gradient, seeds, stream, epoch, threshold, digits, scale, out):
        runs, n, _ = out.shape
        m = gradient.shape[1]
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK  # ROW_BLOCK is a multiple of 32, the columns of one keep word
        drop = len(seeds) > 0
        for task in prange(runs * blocks):
            run, part = task // blocks, task % blocks
            above, target = gradient[run], out[run]
            begin, end = part * ROW_BLOCK, min(n, (part + 1) * ROW_BLOCK)
            for j in range(begin, end):
                for q in range(width):
                    target[j, q] = 0
            for k in range(m):
                at = rows[run, k]
                for first in range(begin, end, 32):
                    keep = np.uint64(0xFFFFFFFF)
                    if drop:
                        keep = keep_word(seeds[run], stream, nodes[at], epoch, first // 32, threshold, digits)
                    for j in range(first, min(end, first + 32)):
                        if (keep >> np.uint64(j - first)) & np.uint64(1):
                            value = block[at, j] * scale
                            for q in range(width):
                                target[j, q] += value * above[k, q]

    return run_rows_adjoint
