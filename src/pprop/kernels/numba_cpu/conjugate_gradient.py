"""Conjugate gradients on u = (1 - alpha) S A u + b with the columns of a row in registers, by a team of threads.

Three passes make an iteration, and between them the threads meet: the product, which also sums p.Ap; the steps of
solution and residual, which sum |r|^2; the next direction. On a graph of some ten thousand entries a pass takes ten
microseconds, as long as a parallel loop of numba's needs to begin and to end, and much longer than a meeting.

Rows belong to blocks of fixed size, and blocks to threads; sums are made block by block in float64 and added in order,
so that neither the bits nor the number of products depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import part, serial
from pprop.kernels.numba_cpu.team import Team, meet
from pprop.kernels.numba_cpu.vectors import address, count, fma, gather, item, lanes, load, store, times, wide, zeros
from pprop.kernels.solves import LOOK_EVERY, Limits

BLOCK = 64
"""Rows whose products are summed at once. Part of the definition of the sums, so it never depends on the machine."""
_WORK = 1 << 15
"""Entries times columns that are worth one more thread: to start one takes some 50 microseconds."""
_CURVATURE, _SQUARE, _SIZE = 0, 1, 2


def conjugate_gradient(
    matrix: tuple[NDArray[Any], ...], b: NDArray[Any], start: NDArray[Any] | None, limits: Limits
) -> tuple[NDArray[Any], int, NDArray[np.float64]]:
    """Return the start (or zero) plus the solution for the residual b, (n, width), the products, and |r| and |u| by column.

    `matrix` is indptr, indices, weights (none: ones), (1 - alpha) S and the weights of the inner product.

    Examples
    --------
    >>> pair = np.arange(3), np.array([1, 0], np.int32), np.empty(0), np.full(2, 0.5), np.ones(2)
    >>> value, products, _ = conjugate_gradient(pair, np.array([[0.5], [0.0]]), None, Limits(1e-6, 0, 100))
    >>> products, (3 * value.ravel()).round(4)
    (2, array([2., 1.]))
    """
    indptr, indices, weights, scale, measure = matrix
    n, width = b.shape
    token = lanes(8 if width > 16 else max(2, 1 << (width - 1).bit_length()))
    stride = -(-width >> len(token)) << len(token)
    states = np.zeros((4, n * stride), b.dtype)
    if start is not None:
        states[0].reshape(n, stride)[:, :width] = start
    team = Team(min(numba.get_num_threads(), 1 + len(indices) * width // _WORK))
    partial, sums = np.zeros((-(-n // BLOCK), 3, stride)), np.zeros((2, width))
    share, products = _share(indptr, len(partial), team.threads), np.zeros(team.threads, np.int64)

    def solve(thread: int) -> None:
        products[thread] = solve_part(
            team.threads, thread, team.desk, token, share, indptr, indices, weights, -scale, measure, b,
            limits.stop, limits.near, limits.most, states, partial, sums,
        )  # fmt: skip

    try:
        team.run(solve)
    finally:
        team.close()
    value = np.ascontiguousarray(states[0].reshape(n, stride)[:, :width])
    return value, int(products[0]), np.sqrt(sums)


def _share(indptr: NDArray[Any], blocks: int, threads: int) -> NDArray[np.int64]:
    """Return the first block of each thread, and the end: about as many entries and rows for each."""
    rows = np.minimum(np.arange(blocks + 1) * BLOCK, len(indptr) - 1)
    cost = indptr[rows] + 4 * rows  # a row of the other passes takes as long as some entries of the product
    share = np.searchsorted(cost, np.linspace(0, cost[-1], threads + 1)).astype(np.int64)
    share[-1] = blocks
    return share


@part
def _added(partial, kind, q):
    """The sum of one column over all blocks, in their order."""
    total = 0.0
    for block in range(len(partial)):
        total += partial[block, kind, q]
    return total


@serial
def solve_part(
    threads, thread, desk, token, share, indptr, indices, weights, minus, measure, own, stop, look, most,
    states, partial, sums,
):  # fmt: skip
    """Do the share of one thread in a solve for `own`, (n, width), a residual whose solution is added to ``states[0]``.

    ``states`` are u, r, p and p - (1 - alpha) S A p, with rows of `width` columns filled up with zeros to a multiple of
    the lanes; `minus` is -(1 - alpha) S. Returns the number of products when |r| is at most `stop` times |u| in every
    column, looked at from product `look` on, and `most` at the latest; their squares are then in `sums`.
    """
    n, width = own.shape
    step = count(token)
    stride = (width + step - 1) // step * step
    first, past, weighted = share[thread], share[thread + 1], len(weights) > 0
    u, r, p, image = address(states[0]), address(states[1]), address(states[2]), address(states[3])
    columns, values, scale, mass = address(indices), address(weights), address(minus), address(measure)
    out, square, last = address(partial), np.zeros(stride), 0.0
    ahead, behind, back = np.zeros(stride, own.dtype), np.zeros(stride, own.dtype), np.zeros(stride, own.dtype)
    for i in range(first * BLOCK, min(n, past * BLOCK)):
        for q in range(width):
            states[1, i * stride + q] = states[2, i * stride + q] = own[i, q]
    for block in range(first, past):
        for shift in range(0, stride, step):
            total = zeros(out, token)
            for i in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
                one = wide(load(r, i * stride + shift, token))
                total = fma(times(item(mass, i), one), one, total)
            store(out, (3 * block + _SQUARE) * stride + shift, total)
    meet(desk, threads)
    for q in range(stride):
        square[q] = _added(partial, _SQUARE, q)
    for k in range(1, most + 1):
        for block in range(first, past):
            for shift in range(0, stride, step):
                total = zeros(out, token)
                for i in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
                    at = i * stride + shift
                    arrived = gather(indptr[i], indptr[i + 1], columns, values, weighted, p, stride, shift, token)
                    one = load(p, at, token)
                    other = fma(item(scale, i), arrived, one)
                    store(image, at, other)
                    total = fma(times(item(mass, i), wide(one)), wide(other), total)
                store(out, (3 * block + _CURVATURE) * stride + shift, total)
        meet(desk, threads)
        for q in range(stride):
            curvature = _added(partial, _CURVATURE, q)
            ahead[q] = square[q] / curvature if curvature > 0.0 else 0.0  # a column solved to the last bit rests
            behind[q] = -ahead[q]
        watched = k >= look or k % LOOK_EVERY == 0 or k == most
        for block in range(first, past):
            for shift in range(0, stride, step):
                factor, total, size = load(address(behind), shift, token), zeros(out, token), zeros(out, token)
                for i in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
                    at = i * stride + shift
                    one = fma(factor, load(image, at, token), load(r, at, token))
                    store(r, at, one)
                    total = fma(times(item(mass, i), wide(one)), wide(one), total)
                store(out, (3 * block + _SQUARE) * stride + shift, total)
                if watched:
                    factor = load(address(ahead), shift, token)
                    for i in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
                        at = i * stride + shift
                        one = fma(factor, load(p, at, token), load(u, at, token))
                        store(u, at, one)
                        size = fma(times(item(mass, i), wide(one)), wide(one), size)
                    store(out, (3 * block + _SIZE) * stride + shift, size)
        meet(desk, threads)
        good = watched
        for q in range(stride):
            last, square[q] = square[q], _added(partial, _SQUARE, q)
            back[q] = square[q] / last if last > 0.0 else 0.0
            if watched and q < width:
                size_q = _added(partial, _SIZE, q)
                good = good and np.sqrt(square[q]) <= stop * np.sqrt(size_q)
                if thread == 0:
                    sums[0, q], sums[1, q] = square[q], size_q
        if good:
            return k
        for block in range(first, past):  # u waits for this pass where nobody looks at it: p is read once
            for shift in range(0, stride, step):
                factor, other = load(address(back), shift, token), load(address(ahead), shift, token)
                for i in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
                    at = i * stride + shift
                    one = load(p, at, token)
                    if not watched:
                        store(u, at, fma(other, one, load(u, at, token)))
                    store(p, at, fma(factor, one, load(r, at, token)))
        meet(desk, threads)
    return most
