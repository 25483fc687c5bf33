"""Whole solves of u = (1 - alpha) S A u + b in one compiled function each: products, recurrences and sums in one pass.

A graph of a few hundred thousand entries is multiplied in less than a millisecond, so that the passes of a recurrence
over the states, and a call from Python for each of them, would take as long as the products. Here a row of the product
goes straight into the recurrence, and into the sums that decide when to stop.

One thread owns each block of rows; sums are made block by block in float64 and added in order, so that the bits and the
number of products do not depend on the number of threads. Every kernel is compiled for one width, the number of columns.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import prange

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, inline, kernel

__all__ = ["chebyshev", "contraction"]

_REST = 8
"""Products between two looks at the norms, before the end is near."""


@inline
def _gather(width, i, indptr, indices, weights, source, acc):
    """acc = row i of A times the state; `weights` is empty when all are one."""
    for q in range(width):
        acc[q] = 0
    if len(weights) > 0:
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            for q in range(width):
                acc[q] += weights[e] * source[j, q]
    else:
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            for q in range(width):
                acc[q] += source[j, q]


@cache
def chebyshev(width):
    """u_(k+1) = w_(k+1) ((1 - alpha) S A u_k + b - u_(k-1)) + u_(k-1), from u_0 = 0 and u_1 = b in `state`.

    `scale` is (1 - alpha) S, `measure` the squared norm's weight per node. Product k gives the residual of u_k, and ends
    the solve where its norm is at most `stop` times that of u_k in every column. Returns k, negative if it is `most` and
    u_k is not good enough; u_k is then in `state` if k is odd, else in `before`. The squared norms are in `sums`.
    """

    @kernel
    def run_chebyshev(indptr, indices, weights, scale, measure, own, stay, stop, look, most, state, before, sums):
        n = len(own)
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
        partial = np.zeros((blocks, 2, width))
        w = 2.0
        for k in range(1, most + 1):
            w = 1.0 / (1.0 - stay * stay * w / 4.0)
            factor, other = scale.dtype.type(w), scale.dtype.type(1.0 - w)
            watched = k >= look or k % _REST == 0 or k == most
            u, out = (state, before) if k % 2 == 1 else (before, state)
            for block in prange(blocks):
                acc, part = np.empty(width, own.dtype), partial[block]
                part[:] = 0.0
                for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
                    _gather(width, i, indptr, indices, weights, u, acc)
                    for q in range(width):
                        acc[q] = scale[i] * acc[q] + own[i, q]
                    if watched:
                        for q in range(width):
                            r, z = np.float64(acc[q] - u[i, q]), np.float64(u[i, q])
                            part[0, q] += measure[i] * (r * r)
                            part[1, q] += measure[i] * (z * z)
                    for q in range(width):
                        out[i, q] = factor * acc[q] + other * out[i, q]
            if watched:
                good = True
                for q in range(width):
                    sums[0, q] = sums[1, q] = 0.0
                    for block in range(blocks):
                        sums[0, q] += partial[block, 0, q]
                        sums[1, q] += partial[block, 1, q]
                    good = good and np.sqrt(sums[0, q]) <= stop * np.sqrt(sums[1, q])
                if good:
                    return k
        return -most

    return run_chebyshev


@cache
def contraction(width):
    """u <- (1 - alpha) S A u + b, from `state`, until |u' - u| is at most `stop` times |u'| in every column.

    `norm` is 0 for the square root of the sum of measure u^2, 1 for the largest and 2 for the sum of measure |u|.
    Returns the number of products, negative if it is `most` and not good enough; u' is then in `state` if that number is
    even, else in `spare`. The norms, squared for `norm` 0, are in `sums`.
    """

    @kernel
    def run_contraction(indptr, indices, weights, scale, measure, own, norm, stop, look, most, state, spare, sums):
        n = len(own)
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
        partial = np.zeros((blocks, 2, width))
        for k in range(1, most + 1):
            watched = k >= look or k % _REST == 0 or k == most
            u, out = (state, spare) if k % 2 == 1 else (spare, state)
            for block in prange(blocks):
                acc, part = np.empty(width, own.dtype), partial[block]
                part[:] = 0.0
                for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
                    _gather(width, i, indptr, indices, weights, u, acc)
                    for q in range(width):
                        acc[q] = scale[i] * acc[q] + own[i, q]
                        out[i, q] = acc[q]
                    if watched:
                        for q in range(width):
                            r, z = abs(np.float64(acc[q] - u[i, q])), abs(np.float64(acc[q]))
                            if norm == 0:
                                part[0, q] += measure[i] * (r * r)
                                part[1, q] += measure[i] * (z * z)
                            elif norm == 1:
                                part[0, q] = max(part[0, q], measure[i] * r)
                                part[1, q] = max(part[1, q], measure[i] * z)
                            else:
                                part[0, q] += measure[i] * r
                                part[1, q] += measure[i] * z
            if watched:
                good = True
                for q in range(width):
                    for side in range(2):
                        total = 0.0
                        for block in range(blocks):
                            one = partial[block, side, q]
                            total = max(total, one) if norm == 1 else total + one
                        sums[side, q] = total
                    bound = stop * stop if norm == 0 else stop
                    good = good and sums[0, q] <= bound * sums[1, q]
                if good:
                    return k
        return -most

    return run_contraction
