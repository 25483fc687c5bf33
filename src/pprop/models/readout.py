"""Propagated predictions at chosen nodes, forward and backward, for the three kinds of model.

Training reads the predictions of its training and stopping nodes only, so that PPNP needs just those rows of its matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.kernels import Draw, Kernels
from pprop.propagation.operator import PPROperator
from pprop.propagation.solvers import Exact, LinearMap, RowSolver

__all__ = ["MapReadout", "PlainReadout", "Readout", "RowReadout", "apply_readout", "gather_nodes"]


class Readout(ABC):
    """Predictions H (R, n, c) and nodes (R, m) to logits (R, m, c)."""

    @abstractmethod
    def forward(self, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        """Return the logits of `nodes`."""

    @abstractmethod
    def adjoint(self, gradient: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        """Return the gradient (R, n, c) of the predictions, for that of the logits (R, m, c)."""


@final
class PlainReadout(Readout):
    """No propagation: the logits are the predictions."""

    def __init__(self, n_nodes: int) -> None:
        self._n = n_nodes

    def forward(self, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        return gather_nodes(predictions, nodes)

    def adjoint(self, gradient: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        return _scatter(gradient, nodes, self._n)


@final
class MapReadout(Readout):
    """Propagate all nodes, then look at some."""

    def __init__(self, linear_map: LinearMap, n_nodes: int) -> None:
        self._map, self._n = linear_map, n_nodes

    def forward(self, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        return gather_nodes(self._map.forward(predictions, draw), nodes)

    def adjoint(self, gradient: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        return self._map.adjoint(_scatter(gradient, nodes, self._n), draw)


@final
class RowReadout(Readout):
    """The rows of a solver's matrix that belong to the needed nodes, and no others."""

    def __init__(
        self,
        operator: PPROperator,
        needed: NDArray[np.int64],
        kernels: Kernels,
        solver: RowSolver = Exact(),
        dtype: torch.dtype = torch.float32,
        device: torch.device | None = None,
    ) -> None:
        nodes = np.unique(needed)
        self.nodes = torch.from_numpy(nodes).to(device)
        self.row_of_node = torch.zeros(operator.graph.n_nodes, dtype=torch.int64, device=device)
        self.row_of_node[self.nodes] = torch.arange(len(nodes), device=device)
        self.block = solver.rows(operator, nodes, dtype).to(device)
        self._rows = kernels.rows(self.block, self.nodes)

    def forward(self, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        return self._rows.forward(predictions, self.row_of_node[nodes], draw)

    def adjoint(self, gradient: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        return self._rows.adjoint(gradient, self.row_of_node[nodes], draw)


def gather_nodes(values: Tensor, nodes: Tensor) -> Tensor:
    """Return the rows of (R, n, c) that belong to nodes (R, m), shape (R, m, c)."""
    return values[torch.arange(len(nodes), device=nodes.device)[:, None], nodes]


def _scatter(gradient: Tensor, nodes: Tensor, n_nodes: int) -> Tensor:
    # accumulate: a node that pads a shorter set may also be a real one; its padded gradient is zero
    out = gradient.new_zeros(len(gradient), n_nodes, gradient.shape[2])
    run = torch.arange(len(nodes), device=nodes.device)[:, None]
    return out.index_put_((run, nodes), gradient, accumulate=True)


def apply_readout(readout: Readout, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
    """Return the logits (R, m, c) of `nodes` with a gradient for the predictions (R, n, c)."""
    return cast("Tensor", _Apply.apply(predictions, readout, nodes, draw))


@final
class _Apply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, predictions: Tensor, readout: Readout, nodes: Tensor, draw: Draw | None) -> Tensor:
        ctx.arguments = readout, nodes, draw
        return readout.forward(predictions.detach(), nodes, draw)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        readout, nodes, draw = ctx.arguments
        return readout.adjoint(gradients[0], nodes, draw), None, None, None
