"""A predict-then-propagate model bound to a graph and a backend, for the nodes that its training reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch

from pprop.models.model import Model
from pprop.models.readout import MapReadout, PlainReadout, Readout, RowReadout
from pprop.propagation import PPROperator, RowSolver
from pprop.training.program import Task

__all__ = ["Propagated", "bind_propagation"]


@final
@dataclass(frozen=True)
class Propagated:
    """A model, its operator (None without propagation), and its propagation to the labelled nodes."""

    model: Model
    operator: PPROperator | None
    readout: Readout

    @property
    def dropout(self) -> float:
        """Probability of dropping an entry of the propagation matrix."""
        return 0.0 if self.model.propagation is None else self.model.propagation.dropout


def bind_propagation(model: Model, task: Task) -> Propagated:
    """Return the model on the graph of a task."""
    settings = model.propagation
    if settings is None:
        return Propagated(model, None, PlainReadout(task.graph.n_nodes))
    operator = settings.operator(task.graph)
    if isinstance(settings.solver, RowSolver):
        needed = torch.cat([task.train.nodes.flatten(), task.stopping.nodes.flatten()])
        nodes = needed.cpu().numpy()
        readout = RowReadout(operator, nodes, task.kernels, solver=settings.solver, device=task.device)
        return Propagated(model, operator, readout)
    return Propagated(model, operator, MapReadout(settings.solver.bind(operator, task.kernels), task.graph.n_nodes))
