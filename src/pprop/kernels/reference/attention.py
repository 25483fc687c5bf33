"""Attention over the entries of a sparsity pattern, in plain torch: one number per run and entry."""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.contract import SLOPE, Draw, EdgeAttention
from pprop.kernels.random_bits import keep_bits
from pprop.kernels.streams import EDGES, Bernoulli

__all__ = ["ReferenceAttention"]


@final
class ReferenceAttention(EdgeAttention):
    """drop(softmax(LeakyReLU(left + right))) values, and its adjoint."""

    def __init__(self, transition: Transition) -> None:
        self._n = transition.n_nodes
        self._rows = torch.from_numpy(np.repeat(np.arange(self._n), np.diff(transition.indptr)))
        self._columns = torch.from_numpy(transition.indices.astype(np.int64))

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
        return self._rows.to(like.device), self._columns.to(like.device)

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
        law = Bernoulli.from_probability(draw.probability)
        position = torch.as_tensor(draw.epoch, device=like.device)
        rows, columns = self._entries(like)
        return keep_bits(draw.seeds[:, None], EDGES, rows, columns, position, law).to(like.dtype) * law.scale
