"""Dense operators: hidden activation, the second layer and its adjoints, PPNP's block of PPR rows."""

from __future__ import annotations

import numpy as np
from numba import prange

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel
from pprop.kernels.numba_cpu.bits import keep_word

__all__ = ["activate", "activate_adjoint", "linear", "linear_weight_adjoint", "rows_adjoint", "rows_forward"]


@kernel
def activate(values, seeds, stream, epoch, threshold, digits, scale):
    """values = scale * keep * max(values, 0) in place; no dropout when there are no seeds."""
    runs, n, width = values.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    drop = len(seeds) > 0
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            row = values[run, i]
            keep = np.uint64(0xFFFFFFFF)
            for q in range(width):
                if drop:
                    if q % 32 == 0:
                        keep = keep_word(seeds[run], stream, i, epoch, q // 32, threshold, digits)
                    kept = (keep >> np.uint64(q % 32)) & np.uint64(1)
                    row[q] = row[q] * scale if kept and row[q] > 0 else 0
                elif not row[q] > 0:
                    row[q] = 0


@kernel
def activate_adjoint(gradient, activated, scale):
    """gradient = scale * gradient where the activated value is positive, else 0, in place."""
    runs, n, width = gradient.shape
    for task in prange(runs * n):
        run, i = task // n, task % n
        for q in range(width):
            gradient[run, i, q] = gradient[run, i, q] * scale if activated[run, i, q] > 0 else 0


@kernel
def linear(inputs, weights, out):
    """out_r = inputs_r weights_r; hidden values that are zero (most are, after ReLU and dropout) cost nothing."""
    runs, n, width = out.shape
    inner = inputs.shape[2]
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            row = out[run, i]
            row[:] = 0
            for p in range(inner):
                value = inputs[run, i, p]
                if value != 0:
                    for q in range(width):
                        row[q] += value * weights[run, p, q]


@kernel
def linear_weight_adjoint(inputs, gradient, partial, out):
    """out_r = inputs_r^T gradient_r: blocks of nodes are summed apart, then added in their order."""
    runs, n, inner = inputs.shape
    width = gradient.shape[2]
    blocks = partial.shape[1]
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        part = partial[run, block]
        part[:] = 0
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for p in range(inner):
                value = inputs[run, i, p]
                if value != 0:
                    for q in range(width):
                        part[p, q] += value * gradient[run, i, q]
    for run in prange(runs):
        out[run] = 0
        for block in range(blocks):
            for p in range(inner):
                for q in range(width):
                    out[run, p, q] += partial[run, block, p, q]


@kernel
def rows_forward(block, nodes, rows, predictions, seeds, stream, epoch, threshold, digits, scale, out):
    """out[r, k] = sum_j drop(block)[rows[r, k], j] predictions[r, j]; no dropout when there are no seeds."""
    runs, m, width = out.shape
    n = block.shape[1]
    drop = len(seeds) > 0
    for task in prange(runs * m):
        run, k = task // m, task % m
        at = rows[run, k]
        row = out[run, k]
        row[:] = 0
        keep = np.uint64(0xFFFFFFFF)
        for j in range(n):
            if drop:
                if j % 32 == 0:
                    keep = keep_word(seeds[run], stream, nodes[at], epoch, j // 32, threshold, digits)
                if not (keep >> np.uint64(j % 32)) & np.uint64(1):
                    continue
            value = block[at, j] * scale
            for q in range(width):
                row[q] += value * predictions[run, j, q]


@kernel
def rows_adjoint(block, nodes, rows, gradient, seeds, stream, epoch, threshold, digits, scale, out):
    """out[r, j] = sum_k drop(block)[rows[r, k], j] gradient[r, k]; a task owns one block of columns j."""
    runs, n, width = out.shape
    m = gradient.shape[1]
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK  # ROW_BLOCK is a multiple of 32, the columns of one keep word
    drop = len(seeds) > 0
    for task in prange(runs * blocks):
        run, part = task // blocks, task % blocks
        begin, end = part * ROW_BLOCK, min(n, (part + 1) * ROW_BLOCK)
        out[run, begin:end] = 0
        for k in range(m):
            at = rows[run, k]
            keep = np.uint64(0xFFFFFFFF)
            for j in range(begin, end):
                if drop:
                    if j % 32 == 0:
                        keep = keep_word(seeds[run], stream, nodes[at], epoch, j // 32, threshold, digits)
                    if not (keep >> np.uint64(j % 32)) & np.uint64(1):
                        continue
                value = block[at, j] * scale
                for q in range(width):
                    out[run, j, q] += value * gradient[run, k, q]
