"""Sparse operators of the reference backend: the first layer, the power steps, and attention, one number per entry.

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
from pprop.kernels.contract import SLOPE, Draw, EdgeAttention, FeatureProduct, StepPropagation
from pprop.kernels.random_bits import EDGES, FEATURES, Bernoulli, keep_bits


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
        places = self.rows.to(device) + block * self.shape[0], self.columns.to(device) + block * self.shape[1]
        at = torch.stack([place.flatten() for place in places])
        size = (runs * self.shape[0], runs * self.shape[1])
        matrix = torch.sparse_coo_tensor(at, values.flatten(), size, is_coalesced=True, check_invariants=False)
        result: Tensor = matrix @ dense.flatten(0, 1)
        return result.reshape(runs, self.shape[0], -1)

    def keep(self, draw: Draw, kind: int, position: int | Tensor, *, transposed: bool) -> Tensor:
        """Return which entries are kept, (R, entries); coordinates are those of the untransposed matrix."""
        device = draw.seeds.device
        first, second = (self.columns, self.rows) if transposed else (self.rows, self.columns)
        law, at = Bernoulli.from_probability(draw.probability), torch.as_tensor(position, device=device)
        return keep_bits(draw.seeds[:, None], kind, first.to(device), second.to(device), at, law)


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


@final
class ReferenceAttention(EdgeAttention):
    """drop(softmax(LeakyReLU(left + right))) values, and its adjoint."""

    def __init__(self, transition: Transition) -> None:
        self._n, no_values = transition.n_nodes, torch.empty(0)
        self._pattern = _Entries(transition.indptr, transition.indices, no_values, transition.n_nodes)

    def forward(self, values: Tensor, left: Tensor, right: Tensor, draw: Draw | None) -> Tensor:
        rows, columns = self._entries(values)
        coefficients, _ = self._coefficients(left, right)
        dropped = coefficients * self._kept(values, draw)
        return self._sums(dropped[..., None] * values[:, columns], rows)

    def adjoint(
        self, gradient: Tensor, values: Tensor, left: Tensor, right: Tensor, draw: Draw | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        rows, columns = self._entries(values)
        coefficients, slopes = self._coefficients(left, right)
        kept = self._kept(values, draw)
        to_values = self._sums((coefficients * kept)[..., None] * gradient[:, rows], columns)
        # softmax: de_ij = a_ij (da_ij - sum_k a_ik da_ik)
        above = kept * (gradient[:, rows] * values[:, columns]).sum(dim=-1)
        centre = self._sums(coefficients * above, rows)
        scores = slopes * coefficients * (above - centre[:, rows])
        return to_values, self._sums(scores, rows), self._sums(scores, columns)

    def _entries(self, like: Tensor) -> tuple[Tensor, Tensor]:
        return self._pattern.rows.to(like.device), self._pattern.columns.to(like.device)

    def _coefficients(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """Return softmax_j(e_ij) of every entry and the slope of LeakyReLU there, both (R, entries)."""
        rows, columns = self._entries(left)
        scores = left[:, rows] + right[:, columns]
        slopes = torch.ones_like(scores).where(scores > 0, SLOPE)
        scores = scores * slopes
        largest = torch.full_like(left, -torch.inf).scatter_reduce_(1, rows.expand_as(scores), scores, "amax")
        weights = (scores - largest[:, rows]).exp()
        return weights / self._sums(weights, rows)[:, rows], slopes

    def _sums(self, terms: Tensor, at: Tensor) -> Tensor:
        """Add up what the entries (R, entries, ...) give to the nodes `at`."""
        return terms.new_zeros(len(terms), self._n, *terms.shape[2:]).index_add_(1, at, terms)

    def _kept(self, like: Tensor, draw: Draw | None) -> Tensor:
        """Return what coefficients are multiplied by, (R, entries) or a one: 0, or 1 / (1 - p)."""
        if draw is None:
            return like.new_ones(1, 1)
        return self._pattern.keep(draw, EDGES, draw.epoch, transposed=False).to(like.dtype) * _scale(draw)
