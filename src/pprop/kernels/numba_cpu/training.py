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
        part = partial[run, block]
        part[:] = 0
        for i in range(block * ROW_BLOCK, min(rows, (block + 1) * ROW_BLOCK)):
            w, g, a, b = weights[run, i], gradient[run, i], mean[run, i], square[run, i]
            for q in range(width):
                full = g[q] + penalty * w[q]
                a[q] = keep_mean * a[q] + new_mean * full
                b[q] = keep_square * b[q] + new_square * (full * full)
                w[q] -= rate * (a[q] / mean_correction) / (np.sqrt(b[q] / square_correction) + epsilon)
                part[q] += w[q] * w[q]
    for run in prange(runs):
        total = 0.0
        for block in range(blocks):
            for q in range(width):
                total += partial[run, block, q]
        squares[run] = total
