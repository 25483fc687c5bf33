"""Loss and optimiser. Sums over nodes and weights are made run by run, in one order."""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel

__all__ = ["adam", "cross_entropy"]


@kernel
def cross_entropy(logits, labels, loss, right, gradient):
    """Mean cross entropy, right answers and gradient per run; a label of -1 counts for nothing."""
    runs, m, width = logits.shape
    for run in prange(runs):
        count = 0
        for k in range(m):
            count += labels[run, k] >= 0
        total, hits = 0.0, 0
        for k in range(m):
            label = labels[run, k]
            row, grad = logits[run, k], gradient[run, k]
            if label < 0:
                grad[:] = 0
                continue
            best = 0
            for q in range(1, width):
                if row[q] > row[best]:
                    best = q
            hits += best == label
            norm = 0.0
            for q in range(width):
                norm += math.exp(row[q] - row[best])
            log_norm = math.log(norm)
            total += log_norm - (row[label] - row[best])
            for q in range(width):
                probability = math.exp(row[q] - row[best]) / norm
                grad[q] = (probability - (1.0 if q == label else 0.0)) / count
        loss[run] = total / count
        right[run] = hits


@kernel
def adam(weights, gradient, mean, square, rate, mean_correction, square_correction, penalty, partial, squares):
    """One Adam step in place; squares[r] = |W_new|^2, summed by column within a block, then over blocks in order."""
    runs, rows, width = weights.shape
    blocks = partial.shape[1]
    keep_mean, keep_square = weights.dtype.type(0.9), weights.dtype.type(0.999)
    new_mean, new_square = weights.dtype.type(0.1), weights.dtype.type(0.001)
    epsilon = weights.dtype.type(1e-8)
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        w, g, a, b, part = weights[run], gradient[run], mean[run], square[run], partial[run, block]
        part[:] = 0
        for i in range(block * ROW_BLOCK, min(rows, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                full = g[i, q] + penalty * w[i, q]
                a[i, q] = keep_mean * a[i, q] + new_mean * full
                b[i, q] = keep_square * b[i, q] + new_square * (full * full)
                w[i, q] -= rate * (a[i, q] / mean_correction) / (np.sqrt(b[i, q] / square_correction) + epsilon)
                part[q] += w[i, q] * w[i, q]
    for run in prange(runs):
        total = 0.0
        for block in range(blocks):
            for q in range(width):
                total += partial[run, block, q]
        squares[run] = total
