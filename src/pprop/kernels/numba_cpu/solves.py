"""Whole solves of u = (1 - alpha) S A u + b in one compiled function each: products, recurrences and sums in one pass.

A graph of a few hundred thousand entries is multiplied in less than a millisecond, so that the passes of a recurrence
over the states, and a call from Python for each of them, would take as long as the products. Here a row of the product
goes straight into the recurrence, and into the sums that decide when to stop.

One thread owns each block of rows, which has a fixed size; sums are made block by block in float64 and added in order,
so that neither the bits nor the number of products depend on the number of threads.
"""

from __future__ import annotations

from contextlib import closing
from functools import cache
from typing import Any, final

import numpy as np
from numba import prange
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel, part, quiet, serial, usable_threads
from pprop.kernels.numba_cpu.fused_readout import shares
from pprop.kernels.numba_cpu.team import Team, aligned, meet
from pprop.kernels.numba_cpu.vectors import address, count, fma, gather, item, lanes, load, store, times, wide, zeros
from pprop.kernels.solves import LOOK_EVERY, Limits, Solved, Solves, System

Values = NDArray[Any]

NORMS = {"euclidean": 0, "max": 1, "sum": 2}
# Rows whose products are summed at once. Part of the definition of the sums, so it never depends on the machine.
BLOCK = 64
# Entries times columns that are worth one more thread: to start one takes some 50 microseconds.
_WORK = 1 << 15
_CURVATURE, _SQUARE, _SIZE = 0, 1, 2


@cache
def recurrence(width):
    """u_(k+1) = w_(k+1) ((1 - alpha) S A u_k + b - u_(k-1)) + u_(k-1), from u_1 in `state` and u_0 in `before`.

    w_(k+1) = 1 / (1 - momentum w_k), from w_1 = 2: Chebyshev's weights for momentum (1 - alpha)^2 / 4, and 1 for 0.
    `scale` is (1 - alpha) S. Product k gives r = (1 - alpha) S A u_k + b - u_k, and ends the solve where its norm is at
    most `stop` times that of u_k in every column, or of u_(k+1) without momentum. `norm` is 0 for the square root of the
    sum of measure u^2, 1 for the largest and 2 for the sum of measure |u|. Returns k; u_k is in `state` if k is odd, else
    in `before`, and u_(k+1) in the other. The norms are in `norms`. Compiled for one width, the number of columns.
    """

    @kernel
    def run_recurrence(
        indptr, indices, weights, scale, measure, own, momentum, norm, stop, near, most, state, before, norms
    ):
        n, weighted = len(own), len(weights) > 0
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
        partial = np.zeros((blocks, 2, width))
        w = 2.0
        for k in range(1, most + 1):
            w = 1.0 / (1.0 - momentum * w)
            factor, other = scale.dtype.type(w), scale.dtype.type(1.0 - w)
            watched = k >= near or k % LOOK_EVERY == 0 or k == most
            u, out = (state, before) if k % 2 == 1 else (before, state)
            for block in prange(blocks):
                acc, part = np.empty(width, own.dtype), partial[block]
                part[:] = 0.0
                for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
                    for q in range(width):
                        acc[q] = 0
                    if weighted:
                        for e in range(indptr[i], indptr[i + 1]):
                            for q in range(width):
                                acc[q] += weights[e] * u[indices[e], q]
                    else:
                        for e in range(indptr[i], indptr[i + 1]):
                            for q in range(width):
                                acc[q] += u[indices[e], q]
                    for q in range(width):
                        acc[q] = scale[i] * acc[q] + own[i, q]
                    if watched:
                        for q in range(width):
                            r = abs(np.float64(acc[q] - u[i, q]))
                            z = abs(np.float64(u[i, q] if momentum > 0.0 else acc[q]))
                            if norm == 0:
                                r, z = r * r, z * z
                            r, z = measure[i] * r, measure[i] * z
                            part[0, q] = max(part[0, q], r) if norm == 1 else part[0, q] + r
                            part[1, q] = max(part[1, q], z) if norm == 1 else part[1, q] + z
                    for q in range(width):
                        out[i, q] = factor * acc[q] + other * out[i, q]
            if watched:
                good = True
                for q in range(width):
                    for side in range(2):
                        total = 0.0
                        for block in range(blocks):
                            one = partial[block, side, q]
                            total = max(total, one) if norm == 1 else total + one
                        norms[side, q] = np.sqrt(total) if norm == 0 else total
                    good = good and norms[0, q] <= stop * norms[1, q]
                if good:
                    return k
        return most

    return run_recurrence


@kernel
def run_residual(indptr, indices, weights, stay, scale, own, state, out):
    """out = b + (1 - alpha) S A u - u; what an addition loses is added up beside the sum (Knuth's two-sum)."""
    n, width = own.shape
    for block in prange((n + ROW_BLOCK - 1) // ROW_BLOCK):
        total, lost = np.empty(width), np.empty(width)
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                total[q] = lost[q] = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                weight = weights[e] if len(weights) > 0 else 1.0
                for q in range(width):
                    before, term = total[q], weight * state[j, q]
                    after = before + term
                    share = after - before
                    lost[q] += (before - (after - share)) + (term - share)
                    total[q] = after
            for q in range(width):
                out[i, q] = (stay * scale[i] * (total[q] + lost[q]) + own[i, q]) - state[i, q]


def accurate_residual(system: System, own: Values, state: Values) -> Values:
    """Return b + (1 - alpha) S A u - u for b and u of shape (n, c) in float64, with more digits than any solve has.

    A solve in float32 goes to the fixed point of the matrix as float32 rounds it, and a row of a hundred thousand entries
    that is summed one after another is off by a thousandth, which its own residual cannot show. Here the length of a row
    does not matter.

    Examples
    --------
    >>> from pprop.graph import Transition
    >>> pair = Transition(np.arange(3), np.array([1, 0], np.int32), None, np.ones(2), np.ones(2), symmetric=True)
    >>> state = np.array([[1.0], [0.0]])
    >>> accurate_residual(System(pair, 0.5, np.ones(2), "euclidean"), 0.5 * state, state).ravel()
    array([-0.5,  0.5])
    """
    b, u = np.ascontiguousarray(own), np.ascontiguousarray(state)
    transition = system.transition
    weights = np.empty(0) if transition.weights is None else transition.weights
    out = aligned(u.shape, u.dtype)
    run_residual(transition.indptr, transition.indices, weights, 1.0 - system.alpha, transition.row_scale, b, u, out)
    return out


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
            ahead[q] = square[q] / curvature if curvature > 0.0 else 0.0  # a column that is solved exactly stays
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
        for block in range(first, past):  # u is updated in this pass unless its norm was needed before: p is read once
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


@final
class NumbaSolves(Solves):
    """Solves in float32 or float64; see `pprop.kernels.solves`.

    Examples
    --------
    >>> from pprop.graph import Transition
    >>> pair = Transition(np.arange(3), np.array([1, 0], np.int32), None, np.ones(2), np.ones(2), symmetric=True)
    >>> solves = NumbaSolves(System(pair, 0.5, np.ones(2), "euclidean"))
    >>> (solves.chebyshev(np.array([[0.5], [0.0]]), Limits(1e-6, 0, 100)).value.ravel() * 3).round(4)
    array([2., 1.])
    """

    compensated = True

    def __init__(self, system: System) -> None:
        super().__init__(system)
        self._casts: dict[np.dtype[Any], tuple[NDArray[Any], ...]] = {}

    def recurrence(self, own: Values, start: Values, momentum: float, limits: Limits) -> Solved:
        b, state = np.ascontiguousarray(own), aligned(start.shape, start.dtype)
        state[...] = start
        before, norms = aligned(state.shape, state.dtype), np.zeros((2, b.shape[1]))
        before[...] = 0.0
        ends = limits.stop, limits.near, limits.most
        k = recurrence(b.shape[1])(
            *self._matrix(b.dtype), b, momentum, NORMS[self.system.norm], *ends, state, before, norms
        )
        value = state if (k % 2 == 1) == (momentum > 0) else before
        return Solved(value, k, norms[0], norms[1])

    def conjugate_gradient(self, own: Values, start: Values | None, limits: Limits) -> Solved:
        """Solve by conjugate gradients; see `Solves`.

        A team of threads makes three passes an iteration, and meets between them: the product, which also sums p.Ap; the
        steps of solution and residual, which sum |r|^2; the next direction. On a graph of some ten thousand entries a
        pass takes ten microseconds, as long as a parallel loop of numba's needs to begin and to end, and much longer than
        a meeting. The columns of a row are in registers.
        """
        b = np.ascontiguousarray(own)
        indptr, indices, weights, scale, measure = self._matrix(b.dtype)
        n, width = b.shape
        token = lanes(8 if width > 16 else max(2, 1 << (width - 1).bit_length()))
        stride = -(-width >> len(token)) << len(token)
        states = np.zeros((4, n * stride), b.dtype)
        value = states[0].reshape(n, stride)[:, :width]
        if start is not None:
            value[:] = start
        threads = min(usable_threads(), 1 + len(indices) * width // _WORK)
        partial, sums = np.zeros((-(-n // BLOCK), 3, stride)), np.zeros((2, width))
        share, products = shares(indptr, threads, BLOCK), np.zeros(threads, np.int64)

        def solve(thread: int) -> None:
            products[thread] = solve_part(
                threads, thread, team.desk, token, share, indptr, indices, weights, -scale, measure, b,
                limits.stop, limits.near, limits.most, states, partial, sums,
            )  # fmt: skip

        with closing(Team(threads)) as team:
            team.run(solve)
        norms = np.sqrt(sums)
        return Solved(np.ascontiguousarray(value), int(products[0]), norms[0], norms[1])

    def residual(self, own: Values, state: Values) -> Values:
        return accurate_residual(self.system, own, state)

    def norms(self, values: Values) -> NDArray[np.float64]:
        wide, measure = values.astype(np.float64, copy=False), self.system.measure[:, None]
        with quiet():
            if self.system.norm == "euclidean":
                return np.sqrt((wide * wide * measure).sum(axis=0))
            sizes = np.abs(wide) * measure
            return sizes.max(axis=0) if self.system.norm == "max" else sizes.sum(axis=0)

    def _matrix(self, dtype: np.dtype[Any]) -> tuple[NDArray[Any], ...]:
        """Return structure, weights and (1 - alpha) S in a float type, and the measure."""
        if dtype not in self._casts:
            transition = self.system.transition
            weights = np.empty(0, dtype) if transition.weights is None else transition.weights.astype(dtype)
            scale = ((1.0 - self.system.alpha) * transition.row_scale).astype(dtype)
            self._casts[dtype] = (transition.indptr, transition.indices, weights, scale, self.system.measure)
        return self._casts[dtype]
