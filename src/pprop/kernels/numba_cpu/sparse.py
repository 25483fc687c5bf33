"""Sparse products: the first layer, its adjoint, and one power step. One thread owns each output row."""

from __future__ import annotations

import numpy as np
from numba import prange

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, inline, kernel

__all__ = ["product", "step", "step_adjoint"]


@kernel
def product(indptr, indices, values, words, bit, scale, dense, out):
    """out_r = drop_r(M) dense_r for a CSR matrix M with values; words (R, entries), or (1, 0) for no dropout."""
    runs, n, width = out.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    drop, mask = words.shape[1] > 0, np.uint32(1) << np.uint32(bit)
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            row = out[run, i]
            row[:] = 0
            for e in range(indptr[i], indptr[i + 1]):
                if drop and not (words[run, e] & mask):
                    continue
                value, source = values[e] * scale, dense[run, indices[e]]
                for q in range(width):
                    row[q] += value * source[q]


@inline
def _gather(begin, end, indices, weights, words, mask, state, row):
    """row = sum over the kept entries of one row of A; `weights` is empty when all are one, `words` when none drop."""
    drop, weighted = len(words) > 0, len(weights) > 0
    width = len(row)
    row[:] = 0
    for e in range(begin, end):
        if drop and not (words[e] & mask):
            continue
        source = state[indices[e]]
        if weighted:
            for q in range(width):
                row[q] += weights[e] * source[q]
        else:
            for q in range(width):
                row[q] += source[q]


@kernel
def step(indptr, indices, weights, words, bit, state, state_scale, start, start_scale, out):
    """out = state_scale * (drop(A) state) + start_scale * start, every scale per node."""
    runs, n, width = out.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    mask = np.uint32(1) << np.uint32(bit)
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            row = out[run, i]
            _gather(indptr[i], indptr[i + 1], indices, weights, words[min(run, len(words) - 1)], mask, state[run], row)
            for q in range(width):
                row[q] = state_scale[i] * row[q] + start_scale[i] * start[run, i, q]


@kernel
def step_adjoint(indptr, indices, weights, words, bit, state, state_scale, total, total_scale, out):
    """s = drop(A) state; out = state_scale * s and total += total_scale * s, every scale per node."""
    runs, n, width = out.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    mask = np.uint32(1) << np.uint32(bit)
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            row = out[run, i]
            _gather(indptr[i], indptr[i + 1], indices, weights, words[min(run, len(words) - 1)], mask, state[run], row)
            for q in range(width):
                total[run, i, q] += total_scale[i] * row[q]
                row[q] = state_scale[i] * row[q]
