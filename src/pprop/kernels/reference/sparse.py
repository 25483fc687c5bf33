"""Sparse operators of the reference backend: the first layer and the power steps.

R runs with different masks are one product with a block-diagonal matrix, so that no Python loop runs over runs.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.contract import Draw, FeatureProduct, StepPropagation
from pprop.kernels.random_bits import keep_bits
from pprop.kernels.streams import EDGES, FEATURES, Bernoulli

__all__ = ["ReferenceFeatures", "ReferenceSteps"]


@final
class _Entries:
    """Coordinates and values of one sparse matrix, to be applied to (R, columns, h) with a mask of its own per run."""

    def __init__(self, indptr: NDArray[Any], indices: NDArray[Any], values: Tensor, n_columns: int) -> None:
        self.shape = (len(indptr) - 1, n_columns)
        self.rows = torch.from_numpy(np.repeat(np.arange(self.shape[0]), np.diff(indptr)))
        self.columns = torch.from_numpy(indices.astype(np.int64))
        self.values = values

    def apply(self, dense: Tensor, keep: Tensor | None, scale: float) -> Tensor:
        """Return M_r dense_r for every run r; `keep` (R, entries) selects the entries of M_r."""
        runs, device = len(dense), dense.device
        values = self.values.to(device, dense.dtype).expand(runs, -1)
        if keep is not None:
            values = values * keep * scale
        block = torch.arange(runs, device=device)[:, None]
        at = torch.stack(
            [
                (self.rows.to(device) + block * self.shape[0]).flatten(),
                (self.columns.to(device) + block * self.shape[1]).flatten(),
            ]
        )
        size = (runs * self.shape[0], runs * self.shape[1])
        matrix = torch.sparse_coo_tensor(at, values.flatten(), size, is_coalesced=True, check_invariants=False)
        result: Tensor = matrix @ dense.flatten(0, 1)
        return result.reshape(runs, self.shape[0], -1)

    def keep(self, draw: Draw, kind: int, position: int | Tensor, *, transposed: bool) -> Tensor:
        """Return which entries are kept, (R, entries); coordinates are those of the untransposed matrix."""
        device = draw.seeds.device
        first, second = (self.columns, self.rows) if transposed else (self.rows, self.columns)
        return keep_bits(
            draw.seeds[:, None],
            kind,
            first.to(device),
            second.to(device),
            torch.as_tensor(position, device=device),
            Bernoulli.from_probability(draw.probability),
        )


def _scale(draw: Draw | None) -> float:
    return 1.0 if draw is None else Bernoulli.from_probability(draw.probability).scale


@final
class ReferenceFeatures(FeatureProduct):
    """drop(X) W and its adjoint."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        flipped = matrix.T.tocsr()
        flipped.sort_indices()
        self._matrix = _Entries(matrix.indptr, matrix.indices, torch.from_numpy(matrix.data.copy()), matrix.shape[1])
        self._flipped = _Entries(flipped.indptr, flipped.indices, torch.from_numpy(flipped.data), matrix.shape[0])

    def forward(self, weights: Tensor, draw: Draw | None) -> Tensor:
        keep = None if draw is None else self._matrix.keep(draw, FEATURES, draw.epoch, transposed=False)
        return self._matrix.apply(weights, keep, _scale(draw))

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        keep = None if draw is None else self._flipped.keep(draw, FEATURES, draw.epoch, transposed=True)
        return self._flipped.apply(gradient, keep, _scale(draw))


@final
class ReferenceSteps(StepPropagation):
    """Z <- (1 - alpha) drop_k(T) Z + alpha H, and its adjoint."""

    def __init__(self, transition: Transition, alpha: float | Tensor, steps: int) -> None:
        self.alpha, self._steps = alpha, steps
        self._matrix, self._flipped = (_values(t) for t in (transition, transition.transpose))

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        alpha, rest = self._weights(predictions)
        z = predictions if self._steps > 0 else predictions.clone()  # a result never shares memory with its input
        for step in range(self._steps):
            z = rest * self._product(self._matrix, z, draw, step, transposed=False) + alpha * predictions
        return z

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        # H enters every step with weight alpha, and once more as the start: dH = alpha (g_1 + ... + g_K) + g_0
        alpha, rest = self._weights(gradient)
        total = torch.zeros_like(gradient)
        for step in reversed(range(self._steps)):
            total = total + alpha * gradient
            gradient = rest * self._product(self._flipped, gradient, draw, step, transposed=True)
        return total + gradient

    def _weights(self, like: Tensor) -> tuple[float | Tensor, float | Tensor]:
        """Return alpha and 1 - alpha, ready to multiply (R, n, c)."""
        if not isinstance(self.alpha, Tensor):
            return self.alpha, 1 - self.alpha
        alpha = self.alpha[:, None, None].to(like.device)
        return alpha.to(like.dtype), (1 - alpha).to(like.dtype)

    def _product(self, matrix: _Entries, dense: Tensor, draw: Draw | None, step: int, *, transposed: bool) -> Tensor:
        if draw is None:
            return matrix.apply(dense, None, 1.0)
        keep = matrix.keep(draw, EDGES, draw.epoch * self._steps + step, transposed=transposed)
        return matrix.apply(dense, keep, _scale(draw))


def _values(transition: Transition) -> _Entries:
    matrix = transition.to_scipy()
    return _Entries(matrix.indptr, matrix.indices, torch.from_numpy(matrix.data), transition.n_nodes)
