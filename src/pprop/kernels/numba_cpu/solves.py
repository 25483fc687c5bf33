"""Whole solves of u = (1 - alpha) S A u + b in one compiled function each: products, recurrences and sums in one pass.

A graph of a few hundred thousand entries is multiplied in less than a millisecond, so that the passes of a recurrence
over the states, and a call from Python for each of them, would take as long as the products. Here a row of the product
goes straight into the recurrence, and into the sums that decide when to stop.

One thread owns each block of rows; sums are made block by block in float64 and added in order, so that the bits and the
number of products do not depend on the number of threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any, final

import numpy as np
import torch
from numba import prange
from numpy.typing import NDArray
from torch import Tensor

from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel
from pprop.kernels.numba_cpu.conjugate_gradient import conjugate_gradient
from pprop.kernels.solves import LOOK_EVERY, Limits, Solved, Solves, System

_NORMS = {"euclidean": 0, "max": 1, "sum": 2}


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
                                part[0, q] += measure[i] * (r * r)
                                part[1, q] += measure[i] * (z * z)
                            elif norm == 1:
                                part[0, q] = max(part[0, q], measure[i] * r)
                                part[1, q] = max(part[1, q], measure[i] * z)
                            else:
                                part[0, q] += measure[i] * r
                                part[1, q] += measure[i] * z
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


def accurate_residual(system: System, own: Tensor, state: Tensor) -> Tensor:
    """Return b + (1 - alpha) S A u - u for b and u of shape (n, c) in float64, with more digits than any solve has.

    A solve in float32 goes to the fixed point of the matrix as float32 rounds it, and a row of a hundred thousand entries
    that is summed one after another is off by a thousandth, which its own residual cannot show. Here the length of a row
    does not matter.

    Examples
    --------
    >>> from pprop.graph import Transition
    >>> pair = Transition(np.arange(3), np.array([1, 0], np.int32), None, np.ones(2), np.ones(2), symmetric=True)
    >>> state = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    >>> accurate_residual(System(pair, 0.5, np.ones(2), "euclidean"), 0.5 * state, state).flatten().tolist()
    [-0.5, 0.5]
    """
    b, u = own.contiguous().numpy(), state.contiguous().numpy()
    transition = system.transition
    weights = np.empty(0) if transition.weights is None else transition.weights
    out = np.empty_like(u)
    run_residual(transition.indptr, transition.indices, weights, 1.0 - system.alpha, transition.row_scale, b, u, out)
    return torch.from_numpy(out)


@final
class NumbaSolves(Solves):
    """Solves on CPU tensors of float32 or float64; see `pprop.kernels.solves`.

    Examples
    --------
    >>> from pprop.graph import Transition
    >>> pair = Transition(np.arange(3), np.array([1, 0], np.int32), None, np.ones(2), np.ones(2), symmetric=True)
    >>> solves = NumbaSolves(System(pair, 0.5, np.ones(2), "euclidean"))
    >>> solved = solves.chebyshev(torch.tensor([[0.5], [0.0]]), Limits(1e-6, 0, 100))
    >>> (solved.value.flatten() * 3).round(decimals=4)
    tensor([2., 1.])
    """

    compensated = True

    def __init__(self, system: System) -> None:
        self._system = system
        self._casts: dict[np.dtype[Any], tuple[NDArray[Any], ...]] = {}

    def chebyshev(self, own: Tensor, limits: Limits) -> Solved:
        return self._recurrence(own, own, (1.0 - self._system.alpha) ** 2 / 4.0, limits)

    def contraction(self, own: Tensor, start: Tensor, limits: Limits) -> Solved:
        return self._recurrence(own, start, 0.0, limits)

    def _recurrence(self, own: Tensor, start: Tensor, momentum: float, limits: Limits) -> Solved:
        b, state = own.contiguous().numpy(), np.array(start.numpy(), order="C")
        before, norms = np.zeros_like(state), np.zeros((2, b.shape[1]))
        ends = limits.stop, limits.near, limits.most
        k = recurrence(b.shape[1])(
            *self._matrix(b.dtype), b, momentum, _NORMS[self._system.norm], *ends, state, before, norms
        )
        value = state if (k % 2 == 1) == (momentum > 0) else before
        return Solved(torch.from_numpy(value), k, norms[0], norms[1])

    def conjugate_gradient(self, own: Tensor, start: Tensor | None, limits: Limits) -> Solved:
        b = own.contiguous().numpy()
        matrix, begun = self._matrix(b.dtype), None if start is None else start.numpy()
        value, products, norms = conjugate_gradient(matrix, b, begun, limits)
        return Solved(torch.from_numpy(value), products, norms[0], norms[1])

    def residual(self, own: Tensor, state: Tensor) -> Tensor:
        return accurate_residual(self._system, own, state)

    def _matrix(self, dtype: np.dtype[Any]) -> tuple[NDArray[Any], ...]:
        """Return structure, weights and (1 - alpha) S in a float type, and the measure."""
        if dtype not in self._casts:
            transition = self._system.transition
            weights = np.empty(0, dtype) if transition.weights is None else transition.weights.astype(dtype)
            scale = ((1.0 - self._system.alpha) * transition.row_scale).astype(dtype)
            self._casts[dtype] = (transition.indptr, transition.indices, weights, scale, self._system.measure)
        return self._casts[dtype]
