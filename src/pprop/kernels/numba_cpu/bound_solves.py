"""The fused solves of the numba backend: torch tensors in, one kernel for a whole solve, torch tensors out."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.kernels.numba_cpu import fused_solves
from pprop.kernels.numba_cpu.conjugate_gradient import conjugate_gradient
from pprop.kernels.numba_cpu.residual import accurate_residual
from pprop.kernels.solves import Ended, Limits, Solves, System

__all__ = ["NumbaSolves"]

_NORMS = {"euclidean": 0, "max": 1, "sum": 2}


@final
class NumbaSolves(Solves):
    """Solves on CPU tensors of float32 or float64; see `pprop.kernels.solves`.

    Examples
    --------
    >>> from pprop.graph import Transition
    >>> pair = Transition(np.arange(3), np.array([1, 0], np.int32), None, np.ones(2), np.ones(2), symmetric=True)
    >>> solves = NumbaSolves(System(pair, 0.5, np.ones(2), "euclidean"))
    >>> ended = solves.chebyshev(torch.tensor([[0.5], [0.0]]), Limits(1e-6, 0, 100))
    >>> (ended.value.flatten() * 3).round(decimals=4)
    tensor([2., 1.])
    """

    compensated = True

    def __init__(self, system: System) -> None:
        self._system = system
        self._casts: dict[np.dtype[Any], tuple[NDArray[Any], ...]] = {}

    def chebyshev(self, own: Tensor, limits: Limits) -> Ended:
        b = own.contiguous().numpy()
        state, before, sums = b.copy(), np.zeros_like(b), np.zeros((2, b.shape[1]))
        stay = 1.0 - self._system.alpha
        k = fused_solves.chebyshev(b.shape[1])(
            *self._matrix(b.dtype), b, stay, limits.stop, limits.near, limits.most, state, before, sums
        )
        return _ended(state if k % 2 == 1 else before, k, np.sqrt(sums))

    def conjugate_gradient(self, own: Tensor, start: Tensor | None, limits: Limits) -> Ended:
        b = own.contiguous().numpy()
        value, products, norms = conjugate_gradient(
            self._matrix(b.dtype), b, None if start is None else start.numpy(), limits
        )
        return _ended(value, products, norms)

    def contraction(self, own: Tensor, start: Tensor, limits: Limits) -> Ended:
        b = own.contiguous().numpy()
        state, sums = start.contiguous().numpy().copy(), np.zeros((2, b.shape[1]))
        spare, norm = np.empty_like(state), _NORMS[self._system.norm]
        k = fused_solves.contraction(b.shape[1])(
            *self._matrix(b.dtype), b, norm, limits.stop, limits.near, limits.most, state, spare, sums
        )
        return _ended(state if k % 2 == 0 else spare, k, np.sqrt(sums) if norm == 0 else sums)

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


def _ended(value: NDArray[Any], products: int, norms: NDArray[np.float64]) -> Ended:
    return Ended(torch.from_numpy(value), abs(products), norms[0], norms[1])
