"""Dropout alone, ELU, softmax and the likelihood of probabilities. No sum leaves its row but the loss, made run by run."""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel
from pprop.kernels.numba_cpu.bits import keep_word

__all__ = ["drop", "elu", "elu_adjoint", "likelihood", "softmax", "softmax_adjoint"]


@kernel
def drop(values, seeds, stream, epoch, threshold, digits, scale):
    """values = scale * keep * values in place."""
    runs, n, width = values.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        target = values[run]
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for first in range(0, width, 32):
                keep = keep_word(seeds[run], stream, i, epoch, first // 32, threshold, digits)
                for q in range(first, min(width, first + 32)):
                    kept = (keep >> np.uint64(q - first)) & np.uint64(1)
                    target[i, q] = target[i, q] * scale if kept else 0


@kernel
def elu(values):
    """values = exp(values) - 1 where negative, in place."""
    runs, n, width = values.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        target = values[run]
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                if target[i, q] < 0:
                    target[i, q] = math.expm1(target[i, q])


@kernel
def elu_adjoint(gradient, result):
    """gradient = gradient * (result + 1) where the result is negative, in place: the slope exp(x) is y + 1."""
    runs, n, width = gradient.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        target, after = gradient[run], result[run]
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                if not after[i, q] >= 0:  # so that a NaN stays one
                    target[i, q] *= after[i, q] + 1


@kernel
def softmax(values, out):
    """Softmax of every row of values (rows, width)."""
    rows, width = values.shape
    for block in prange((rows + ROW_BLOCK - 1) // ROW_BLOCK):
        for i in range(block * ROW_BLOCK, min(rows, (block + 1) * ROW_BLOCK)):
            largest = values[i, 0]
            for q in range(1, width):
                largest = max(largest, values[i, q])
            norm = 0.0
            for q in range(width):
                out[i, q] = math.exp(values[i, q] - largest)
                norm += out[i, q]
            for q in range(width):
                out[i, q] /= norm


@kernel
def softmax_adjoint(gradient, result, out):
    """out = result * (gradient - <gradient, result>) in every row of (rows, width)."""
    rows, width = gradient.shape
    for block in prange((rows + ROW_BLOCK - 1) // ROW_BLOCK):
        for i in range(block * ROW_BLOCK, min(rows, (block + 1) * ROW_BLOCK)):
            centre = 0.0
            for q in range(width):
                centre += gradient[i, q] * result[i, q]
            for q in range(width):
                out[i, q] = result[i, q] * (gradient[i, q] - centre)


@kernel
def likelihood(probabilities, labels, least, loss, right, gradient):
    """Mean negative log likelihood, right answers and gradient per run; a label of -1 counts for nothing."""
    runs, m, width = probabilities.shape
    for run in prange(runs):
        count = 0
        for k in range(m):
            count += labels[run, k] >= 0
        total, hits = 0.0, 0
        for k in range(m):
            label, row = labels[run, k], probabilities[run, k]
            gradient[run, k, :] = 0
            if label < 0:
                continue
            best = 0
            for q in range(1, width):
                if row[q] > row[best]:
                    best = q
            hits += best == label
            own = least if row[label] < least else row[label]
            total -= math.log(own)
            gradient[run, k, label] = -1.0 / (own * count)
        loss[run] = total / count
        right[run] = hits
