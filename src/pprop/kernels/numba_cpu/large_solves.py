"""Solves on a graph whose states do not fit into the cache: products by the kernels of large graphs, the rest in passes.

Here a product takes so long that a call from Python for each of them costs nothing. What a recurrence does with a product
is one pass over the states, which makes the sums that decide when to stop on its way. One thread owns each block of rows,
which has a fixed size; sums are made block by block in float64 and added in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from llvmlite import ir
from numba import prange, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel
from pprop.kernels.numba_cpu.solves import NORMS, accurate_residual
from pprop.kernels.numba_cpu.team import aligned
from pprop.kernels.solves import Limits, Solved, Solves, System

Values = NDArray[Any]


@intrinsic
def fused(typing, factor, number, total):
    """Return factor * number + total, with one rounding where the processor can."""

    def codegen(context, builder, sig, args):
        kind = context.get_value_type(total)
        name = f"llvm.fmuladd.{'f32' if total == types.float32 else 'f64'}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
        return builder.call(function, args)

    return total(total, total, total), codegen


@kernel
def run_norms(norm, measure, values, partial):
    """partial[block] = the sum of m v^2, or the largest or the sum of m |v|, of every column over the block's rows."""
    n, width = values.shape
    for block in prange(len(partial)):
        for q in range(width):
            partial[block, q] = 0.0
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                one = abs(np.float64(values[i, q]))
                one = measure[i] * (one * one if norm == 0 else one)
                partial[block, q] = max(partial[block, q], one) if norm == 1 else partial[block, q] + one


@kernel
def turn(stay, own, weight, momentum, watched, norm, measure, product, state, before, partial):
    """One step of `recurrence` from u in `state`, given S A u in `product`: u_(k+1) takes the place of `before`.

    `partial` (blocks, 2, width) has what the norms of r and of u are made of, or of u_(k+1) without momentum.
    """
    n, width = own.shape
    scale, one, other = own.dtype.type(stay), own.dtype.type(weight), own.dtype.type(1.0 - weight)
    for block in prange(len(partial)):
        sums = partial[block]
        sums[:] = 0.0
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                arrived = product[i, q] * scale + own[i, q]
                if watched:
                    r = abs(np.float64(arrived - state[i, q]))
                    z = abs(np.float64(state[i, q] if momentum else arrived))
                    if norm == 0:
                        r, z = r * r, z * z
                    r, z = measure[i] * r, measure[i] * z
                    sums[0, q] = max(sums[0, q], r) if norm == 1 else sums[0, q] + r
                    sums[1, q] = max(sums[1, q], z) if norm == 1 else sums[1, q] + z
                before[i, q] = fused(one, arrived, before[i, q] * other) if momentum else arrived


@kernel
def image_of(stay, measure, direction, product, partial):
    """Make p - (1 - alpha) S A p of S A p in `product`; `partial` (blocks, width) is the inner product of p with it."""
    n, width = direction.shape
    scale = direction.dtype.type(stay)
    for block in prange(len(partial)):
        sums = partial[block]
        sums[:] = 0.0
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                product[i, q] = direction[i, q] - product[i, q] * scale
                sums[q] += measure[i] * (np.float64(direction[i, q]) * np.float64(product[i, q]))


@kernel
def descend(step, measure, direction, image, state, residual, partial):
    """u += step p and r -= step (p - (1 - alpha) S A p); `partial` (blocks, 2, width) is r.r and u.u."""
    n, width = direction.shape
    for block in prange(len(partial)):
        sums = partial[block]
        sums[:] = 0.0
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                state[i, q] = fused(step[q], direction[i, q], state[i, q])
                residual[i, q] = fused(-step[q], image[i, q], residual[i, q])
                sums[0, q] += measure[i] * (np.float64(residual[i, q]) * np.float64(residual[i, q]))
                sums[1, q] += measure[i] * (np.float64(state[i, q]) * np.float64(state[i, q]))


@kernel
def aim(ratio, residual, direction):
    """p = r + ratio p."""
    n, width = residual.shape
    for block in prange((n + ROW_BLOCK - 1) // ROW_BLOCK):
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                direction[i, q] = residual[i, q] + ratio[q] * direction[i, q]


@final
class LargeSolves(Solves):
    """Solves by products with S A, in float32 or float64.

    Parameters
    ----------
    system
        The equation.
    product
        S A times (R, n, c).

    Examples
    --------
    >>> from pprop.graph import Transition
    >>> from pprop.kernels.numba_cpu.large_steps import LargeSteps
    >>> pair = Transition(np.arange(3), np.array([1, 0], np.int32), None, np.ones(2), np.ones(2), symmetric=True)
    >>> solves = LargeSolves(System(pair, 0.5, np.ones(2), "euclidean"), LargeSteps(pair, 0.0, 1).forward)
    >>> (solves.chebyshev(np.array([[0.5], [0.0]]), Limits(1e-6, 0, 100)).value.ravel() * 3).round(4)
    array([2., 1.])
    """

    compensated = True

    def __init__(self, system: System, product: Callable[[Values, None], Values]) -> None:
        super().__init__(system)
        self._product, self._stay = product, 1.0 - system.alpha

    def recurrence(self, own: Values, start: Values, momentum: float, limits: Limits) -> Solved:
        own, state, before = np.ascontiguousarray(own), _copy(start), aligned(start.shape, start.dtype)
        before[...] = 0.0
        weight, (partial, norm) = 2.0, self._sums(own, 2)
        for k in range(1, limits.most + 1):
            weight, watched = 1.0 / (1.0 - momentum * weight), limits.looks(k)
            turn(
                self._stay, own, weight, momentum > 0, watched, norm, self.system.measure, self._moved(state), state,
                before, partial,
            )  # fmt: skip
            if watched:
                residual, size = self._total(partial[:, 0]), self._total(partial[:, 1])
                if limits.ends(k, residual, size):
                    return Solved(state if momentum else before, k, residual, size)
            before, state = state, before
        raise AssertionError("the last product always ends the solve")

    def conjugate_gradient(self, own: Values, start: Values | None, limits: Limits) -> Solved:
        state = _copy(np.zeros_like(own) if start is None else start)
        residual, direction = _copy(own), _copy(own)
        (both, _), measure = self._sums(own, 2), self.system.measure
        square = _added(self._partial(0, residual))
        for k in range(1, limits.most + 1):
            image, sums = self._moved(direction), np.empty_like(both[:, 0])
            image_of(self._stay, measure, direction, image, sums)
            step = _ratio(square, _added(sums))  # a column that is solved exactly stays
            descend(step.astype(own.dtype), measure, direction, image, state, residual, both)
            last, square = square, _added(both[:, 0])
            if limits.looks(k):
                norm, size = np.sqrt(square), np.sqrt(_added(both[:, 1]))
                if limits.ends(k, norm, size):
                    return Solved(state, k, norm, size)
            aim(_ratio(square, last).astype(own.dtype), residual, direction)
        raise AssertionError("the last product always ends the solve")

    def residual(self, own: Values, state: Values) -> Values:
        return accurate_residual(self.system, own, state)

    def norms(self, values: Values) -> NDArray[np.float64]:
        return self._total(self._partial(NORMS[self.system.norm], np.ascontiguousarray(values)))

    def _moved(self, state: Values) -> Values:
        return self._product(state[None], None)[0]

    def _partial(self, norm: int, values: Values) -> NDArray[np.float64]:
        partial = np.empty((-(-len(values) // ROW_BLOCK), values.shape[1]))
        run_norms(norm, self.system.measure, values, partial)
        return partial

    def _sums(self, like: Values, count: int) -> tuple[NDArray[np.float64], int]:
        """Return room for sums of every block, (blocks, count, c), and the number of the norm."""
        return np.empty((-(-len(like) // ROW_BLOCK), count, like.shape[1])), NORMS[self.system.norm]

    def _total(self, partial: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the norms that parts of all blocks, (blocks, c), make up."""
        if self.system.norm == "max":
            return partial.max(axis=0)
        return np.sqrt(_added(partial)) if self.system.norm == "euclidean" else _added(partial)


def _copy(values: Values) -> Values:
    out = aligned(values.shape, values.dtype)
    out[...] = values
    return out


def _added(partial: NDArray[np.float64]) -> NDArray[np.float64]:
    return partial.sum(axis=0)


def _ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quotients, 0 where the divisor is not positive."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
