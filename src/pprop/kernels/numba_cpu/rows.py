"""PPNP's block of dense PPR rows, with dropout on its entries. One keep word covers 32 columns.

Compiled for one width, the number of classes, so that the inner loops are unrolled.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import prange

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel
from pprop.kernels.numba_cpu.bits import keep_word

__all__ = ["rows_adjoint", "rows_forward"]


@cache
def rows_forward(width):
    """out[r, k] = sum_j drop(block)[rows[r, k], j] predictions[r, j]; no dropout when there are no seeds."""

    @kernel
    def run_rows_forward(block, nodes, rows, predictions, seeds, stream, epoch, threshold, digits, scale, out):
        runs, m, _ = out.shape
        n = block.shape[1]
        drop = len(seeds) > 0
        for task in prange(runs * m):
            run, k = task // m, task % m
            at, source, acc = rows[run, k], predictions[run], np.empty(width, out.dtype)
            for q in range(width):
                acc[q] = 0
            for first in range(0, n, 32):
                keep = np.uint64(0xFFFFFFFF)
                if drop:
                    keep = keep_word(seeds[run], stream, nodes[at], epoch, first // 32, threshold, digits)
                for j in range(first, min(n, first + 32)):
                    if (keep >> np.uint64(j - first)) & np.uint64(1):
                        value = block[at, j] * scale
                        for q in range(width):
                            acc[q] += value * source[j, q]
            for q in range(width):
                out[run, k, q] = acc[q]

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
