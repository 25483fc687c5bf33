"""Dense operators: hidden activation, the second layer and its adjoints.

Products are compiled for one width, the number of columns of the result, so that their inner loops are unrolled.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import prange

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel
from pprop.kernels.numba_cpu.bits import keep_word

__all__ = ["activate", "activate_adjoint", "linear", "linear_weight_adjoint"]


@kernel
def activate(values, seeds, stream, epoch, threshold, digits, scale):
    """values = scale * keep * max(values, 0) in place; no dropout when there are no seeds."""
    runs, n, width = values.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    drop = len(seeds) > 0
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        target = values[run]
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            if not drop:
                for q in range(width):
                    if target[i, q] <= 0:  # so that a NaN stays one and a diverging run shows
                        target[i, q] = 0
                continue
            for first in range(0, width, 32):
                keep = keep_word(seeds[run], stream, i, epoch, first // 32, threshold, digits)
                for q in range(first, min(width, first + 32)):
                    kept = (keep >> np.uint64(q - first)) & np.uint64(1)
                    target[i, q] = 0 if not kept or target[i, q] <= 0 else target[i, q] * scale


@kernel
def activate_adjoint(gradient, activated, scale):
    """gradient = scale * gradient where the activated value is positive, else 0, in place."""
    runs, n, width = gradient.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        target, after = gradient[run], activated[run]
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                target[i, q] = target[i, q] * scale if after[i, q] > 0 else 0


@cache
def linear(width):
    """out_r = inputs_r weights_r; hidden values that are zero (most are, after ReLU and dropout) cost nothing."""

    @kernel
    def run_linear(inputs, weights, out):
        runs, n, inner = inputs.shape
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
        for task in prange(runs * blocks):
            run, block = task // blocks, task % blocks
            source, matrix, target, acc = inputs[run], weights[run], out[run], np.empty(width, out.dtype)
            for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
                for q in range(width):
                    acc[q] = 0
                for p in range(inner):
                    value = source[i, p]
                    if value != 0:
                        for q in range(width):
                            acc[q] += value * matrix[p, q]
                for q in range(width):
                    target[i, q] = acc[q]

    return run_linear


@cache
def linear_weight_adjoint(width):
    """out_r = inputs_r^T gradient_r: blocks of nodes are summed apart, then added in their order."""

    @kernel
    def run_linear_weight_adjoint(inputs, gradient, partial, out):
        runs, n, inner = inputs.shape
        blocks = partial.shape[1]
        for task in prange(runs * blocks):
            run, block = task // blocks, task % blocks
            part, source, above = partial[run, block], inputs[run], gradient[run]
            part[:] = 0
            for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
                for p in range(inner):
                    value = source[i, p]
                    if value != 0:
                        for q in range(width):
                            part[p, q] += value * above[i, q]
        for run in prange(runs):
            total = out[run]
            total[:] = 0
            for block in range(blocks):
                part = partial[run, block]
                for p in range(inner):
                    for q in range(width):
                        total[p, q] += part[p, q]

    return run_linear_weight_adjoint
