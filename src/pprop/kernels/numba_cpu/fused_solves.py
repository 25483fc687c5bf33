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

__all__ = ["chebyshev", "conjugate_gradient", "contraction"]

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


@inline
def _gather_flat(width, i, indptr, indices, weights, source, acc):
    """The same for a state without its second axis."""
    for q in range(width):
        acc[q] = 0
    if len(weights) > 0:
        for e in range(indptr[i], indptr[i + 1]):
            at = np.int64(indices[e]) * width
            for q in range(width):
                acc[q] += weights[e] * source[at + q]
    else:
        for e in range(indptr[i], indptr[i + 1]):
            at = np.int64(indices[e]) * width
            for q in range(width):
                acc[q] += source[at + q]


@inline
def _squares(width, block, n, measure, values, out):
    """out = sum of measure times values^2 over the rows of a block, per column; values are flat."""
    out[:] = 0.0
    for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
        for q in range(width):
            value = np.float64(values[i * width + q])
            out[q] += measure[i] * (value * value)


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


@cache
def conjugate_gradient(width):
    """Solve u - (1 - alpha) S A u = r with r given in `residual`, u added to `state`, in Chronopoulos' and Gear's form.

    The matrix is self-adjoint in the product with weights `measure`. `direction` and `image` start at zero; all states
    are flat, n * width. A step makes w = r - (1 - alpha) S A r, p = r + beta p, s = w + beta s, u = u + a p, r = r - a s,
    where a and beta of each column follow from r.r and r.w. Returns the number of products when |r| is at most `stop`
    times |u| in every column, looked at from product `look` on; negative if it is `most` and not so. The squared norms are
    in `sums`.
    """

    @kernel
    def run_conjugate_gradient(
        indptr, indices, weights, scale, measure, stop, look, most, state, residual, direction, image, product, sums
    ):
        n = len(indptr) - 1
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
        partial = np.zeros((blocks, 2, width))
        gamma, before, step = np.zeros(width), np.zeros(width), np.zeros(width)
        # the coefficients of all columns, over and over: a loop over a block has no loop over columns inside
        ahead, back = np.zeros(ROW_BLOCK * width, state.dtype), np.zeros(ROW_BLOCK * width, state.dtype)
        for block in prange(blocks):
            _squares(width, block, n, measure, residual, partial[block, 0])
        for q in range(width):
            for block in range(blocks):
                gamma[q] += partial[block, 0, q]
        for k in range(1, most + 1):
            for block in prange(blocks):
                acc, part = np.empty(width, state.dtype), partial[block, 0]
                part[:] = 0.0
                for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
                    _gather_flat(width, i, indptr, indices, weights, residual, acc)
                    for q in range(width):
                        own = residual[i * width + q]
                        acc[q] = own - scale[i] * acc[q]
                        product[i * width + q] = acc[q]
                        part[q] += measure[i] * (np.float64(own) * np.float64(acc[q]))
            watched = k >= look or k % _REST == 0 or k == most
            for q in range(width):
                delta = 0.0
                for block in range(blocks):
                    delta += partial[block, 0, q]
                beta = gamma[q] / before[q] if before[q] > 0.0 else 0.0
                # r.w - beta r.r / a is p.s: positive, and zero once the column is solved to the last bit
                curvature = delta - (beta * gamma[q] / step[q] if step[q] > 0.0 else 0.0)
                step[q] = gamma[q] / curvature if curvature > 0.0 else 0.0
                before[q] = gamma[q]
                ahead[q::width] = step[q]
                back[q::width] = beta
            for block in prange(blocks):
                begin = block * ROW_BLOCK * width
                entries = min(n * width, begin + ROW_BLOCK * width) - begin
                p, u = direction[begin : begin + entries], state[begin : begin + entries]
                s, r = image[begin : begin + entries], residual[begin : begin + entries]
                w = product[begin : begin + entries]
                for m in range(entries):  # two loops of few arrays each: with more, the compiler makes no vectors
                    p[m] = r[m] + back[m] * p[m]
                    u[m] += ahead[m] * p[m]
                for m in range(entries):
                    s[m] = w[m] + back[m] * s[m]
                    r[m] -= ahead[m] * s[m]
                _squares(width, block, n, measure, residual, partial[block, 0])
                if watched:
                    _squares(width, block, n, measure, state, partial[block, 1])
            good = watched
            for q in range(width):
                sums[0, q] = sums[1, q] = 0.0
                for block in range(blocks):
                    sums[0, q] += partial[block, 0, q]
                    sums[1, q] += partial[block, 1, q]
                gamma[q] = sums[0, q]
                good = good and np.sqrt(sums[0, q]) <= stop * np.sqrt(sums[1, q])
            if good:
                return k
        return -most

    return run_conjugate_gradient
