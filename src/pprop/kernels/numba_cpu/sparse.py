"""Sparse products: the first layer, its adjoint, and one power step. One thread owns each output row.

Every kernel here is compiled for one width, the length of a row of the dense operand, so that its inner loops are
unrolled; `acc` holds one row of the result.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import prange

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, inline, kernel

__all__ = ["product", "step", "step_adjoint"]


@cache
def product(width):
    """out_r = drop_r(M) dense_r for a CSR matrix M with values; words (R, entries), or (1, 0) for no dropout."""

    @kernel
    def run_product(indptr, indices, values, words, bit, scale, dense, out):
        runs, n, _ = out.shape
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
        drop, mask = words.shape[1] > 0, np.uint32(1) << np.uint32(bit)
        for task in prange(runs * blocks):
            run, block = task // blocks, task % blocks
            source, target, acc = dense[run], out[run], np.empty(width, out.dtype)
            for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
                for q in range(width):
                    acc[q] = 0
                for e in range(indptr[i], indptr[i + 1]):
                    if drop and not (words[run, e] & mask):
                        continue
                    value, j = values[e] * scale, indices[e]
                    for q in range(width):
                        acc[q] += value * source[j, q]
                for q in range(width):
                    target[i, q] = acc[q]

    return run_product


@inline
def _gather(width, i, indptr, indices, weights, drop, words, mask, source, acc):
    """acc = sum over the kept entries of row i of A times the state; `weights` is empty when all are one.

    Takes the width as an argument: a kernel that closes over another compiled function is never found in the cache.
    """
    for q in range(width):
        acc[q] = 0
    if len(weights) > 0:
        for e in range(indptr[i], indptr[i + 1]):
            if not drop or words[e] & mask:
                j = indices[e]
                for q in range(width):
                    acc[q] += weights[e] * source[j, q]
    else:
        for e in range(indptr[i], indptr[i + 1]):
            if not drop or words[e] & mask:
                j = indices[e]
                for q in range(width):
                    acc[q] += source[j, q]


@cache
def step(width):
    """out = state_scale * (drop(A) state) + start_scale * start, every scale per node, (1, n) or of each run, (R, n)."""

    @kernel
    def run_step(indptr, indices, weights, words, bit, state, state_scale, start, start_scale, out):
        runs, n, _ = out.shape
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
        drop, mask = words.shape[1] > 0, np.uint32(1) << np.uint32(bit)
        for task in prange(runs * blocks):
            run, block = task // blocks, task % blocks
            source, target, own, keep = state[run], out[run], start[run], words[run if drop else 0]
            scale, share = state_scale[run % len(state_scale)], start_scale[run % len(start_scale)]
            acc = np.empty(width, out.dtype)
            for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
                _gather(width, i, indptr, indices, weights, drop, keep, mask, source, acc)
                for q in range(width):
                    target[i, q] = scale[i] * acc[q] + share[i] * own[i, q]

    return run_step


@cache
def step_adjoint(width):
    """s = drop(A) state; out = state_scale * s and total += total_scale * s, scales as in `step`."""

    @kernel
    def run_step_adjoint(indptr, indices, weights, words, bit, state, state_scale, total, total_scale, out):
        runs, n, _ = out.shape
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
        drop, mask = words.shape[1] > 0, np.uint32(1) << np.uint32(bit)
        for task in prange(runs * blocks):
            run, block = task // blocks, task % blocks
            source, target, sums, keep = state[run], out[run], total[run], words[run if drop else 0]
            scale, share = state_scale[run % len(state_scale)], total_scale[run % len(total_scale)]
            acc = np.empty(width, out.dtype)
            for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
                _gather(width, i, indptr, indices, weights, drop, keep, mask, source, acc)
                for q in range(width):
                    sums[i, q] += share[i] * acc[q]
                    target[i, q] = scale[i] * acc[q]

    return run_step_adjoint
