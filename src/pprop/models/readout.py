"""Propagated predictions at chosen nodes, forward and backward: what the loss reads and sends back.

Training reads the predictions of its training and stopping nodes only, so that PPNP needs just those rows of its matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.graph import Graph
from pprop.kernels import Draw, Kernels, StepPropagation
from pprop.models.model import Model
from pprop.propagation.operator import PPROperator
from pprop.propagation.solvers import PowerIteration, RowSolver, apply_linear


class NodeReadout(ABC):
    """Predictions H (R, n, c) and nodes (R, m) to logits (R, m, c)."""

    @abstractmethod
    def forward(self, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        """Return the logits of `nodes`."""

    @abstractmethod
    def adjoint(self, gradient: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        """Return the gradient (R, n, c) of the predictions, for that of the logits (R, m, c)."""

    def of_runs(self, slots: Tensor | slice) -> Self:
        """Return the readout of some of the runs."""
        return self


@final
class StepsReadout(NodeReadout):
    """K power steps of all nodes, or no propagation, then look at some nodes."""

    def __init__(self, steps: StepPropagation | None, n_nodes: int) -> None:
        self._steps, self._n = steps, n_nodes

    def forward(self, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        return gather_nodes(predictions if self._steps is None else self._steps.forward(predictions, draw), nodes)

    def adjoint(self, gradient: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        spread = _scatter(gradient, nodes, self._n)
        return spread if self._steps is None else self._steps.adjoint(spread, draw)

    def of_runs(self, slots: Tensor | slice) -> StepsReadout:
        return self if self._steps is None else StepsReadout(self._steps.of_runs(slots), self._n)


@final
class RowReadout(NodeReadout):
    """The rows of a solver's matrix that belong to the needed nodes, and no others."""

    def __init__(
        self,
        operator: PPROperator,
        needed: NDArray[np.int64],
        kernels: Kernels,
        solver: RowSolver,
        device: torch.device,
    ) -> None:
        nodes = np.unique(needed)
        self.nodes = torch.from_numpy(nodes).to(device)
        self.row_of_node = torch.zeros(operator.graph.n_nodes, dtype=torch.int64, device=device)
        self.row_of_node[self.nodes] = torch.arange(len(nodes), device=device)
        self.block = solver.rows(operator, nodes, torch.float32).to(device)
        self._rows = kernels.rows(self.block, self.nodes)

    def forward(self, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        return self._rows.forward(predictions, self.row_of_node[nodes], draw)

    def adjoint(self, gradient: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        return self._rows.adjoint(gradient, self.row_of_node[nodes], draw)


@final
@dataclass(frozen=True)
class PropagatedModel:
    """A model bound to a graph: its operator (None without propagation), and its propagation to the labelled nodes."""

    model: Model
    operator: PPROperator | None
    readout: NodeReadout

    @property
    def dropout(self) -> float:
        """Probability of dropping an entry of the propagation matrix."""
        return 0.0 if self.model.propagation is None else self.model.propagation.dropout

    def of_runs(self, slots: Tensor | slice) -> PropagatedModel:
        """Return the model of some of the runs."""
        return replace(self, readout=self.readout.of_runs(slots))


def bind_propagation(
    model: Model,
    graph: Graph,
    kernels: Kernels,
    needed: NDArray[np.int64],
    device: torch.device,
    alphas: Sequence[float] | None = None,
) -> PropagatedModel:
    """Bind the propagation of a model to the nodes whose logits are needed.

    Power steps may have one alpha per run, (R,), in place of the model's.
    """
    settings = model.propagation
    if settings is None:
        return PropagatedModel(model, None, StepsReadout(None, graph.n_nodes))
    operator = settings.operator(graph)
    if isinstance(settings.solver, RowSolver):
        return PropagatedModel(model, operator, RowReadout(operator, needed, kernels, settings.solver, device))
    assert isinstance(settings.solver, PowerIteration)
    alpha = operator.alpha if alphas is None else torch.tensor(alphas, dtype=torch.float64).to(device)
    steps = kernels.steps(operator.transition, alpha, settings.solver.steps)
    return PropagatedModel(model, operator, StepsReadout(steps, graph.n_nodes))


def gather_nodes(values: Tensor, nodes: Tensor) -> Tensor:
    """Return the rows of (R, n, c) that belong to nodes (R, m), shape (R, m, c)."""
    return values[torch.arange(len(nodes), device=nodes.device)[:, None], nodes]


def _scatter(gradient: Tensor, nodes: Tensor, n_nodes: int) -> Tensor:
    # accumulate: a node that pads a shorter set may also be a real one; its padded gradient is zero
    out = gradient.new_zeros(len(gradient), n_nodes, gradient.shape[2])
    run = torch.arange(len(nodes), device=nodes.device)[:, None]
    return out.index_put_((run, nodes), gradient, accumulate=True)


def apply_readout(readout: NodeReadout, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
    """Return the logits (R, m, c) of `nodes` with a gradient for the predictions (R, n, c)."""
    return apply_linear(
        predictions, lambda h: readout.forward(h, nodes, draw), lambda g: readout.adjoint(g, nodes, draw)
    )
