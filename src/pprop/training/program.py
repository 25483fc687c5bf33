"""What the training loop needs of a model in training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.graph import Graph
from pprop.kernels import Kernels
from pprop.models.model import Model
from pprop.models.readout import Readout
from pprop.training.stopping import Stopping

__all__ = ["NodeSet", "Program", "Task", "node_sets"]


class Program(ABC):
    """R runs in training. A slot is a run's place in the batch; slots disappear as runs end."""

    @abstractmethod
    def train_epoch(self, epoch: int) -> Tensor:
        """Make one training step; return the training loss of every slot, penalty included, shape (R,)."""

    @abstractmethod
    def evaluate(self) -> tuple[Tensor, Tensor]:
        """Return the stopping loss, penalty included, and the stopping accuracy of every slot, dropout off."""

    @abstractmethod
    def weights(self) -> list[Tensor]:
        """Return the live weights, runs axis first. Whoever keeps them must copy them."""

    @abstractmethod
    def keep(self, slots: NDArray[np.int64]) -> None:
        """Drop all slots but these."""


@final
@dataclass(frozen=True)
class NodeSet:
    """Labelled nodes of every run, both of shape (R, m); shorter sets are padded with node 0 and label -1."""

    nodes: Tensor
    labels: Tensor

    def keep(self, slots: NDArray[np.int64]) -> NodeSet:
        """Return the sets of some of the runs."""
        return NodeSet(self.nodes[slots], self.labels[slots])

    @property
    def sizes(self) -> Tensor:
        """Number of real nodes per run, shape (R,)."""
        return (self.labels >= 0).sum(dim=1)


def node_sets(sets: list[NDArray[np.int64]], labels: NDArray[np.int64]) -> NodeSet:
    """Stack one set of nodes per run, of any sizes, with their labels.

    Examples
    --------
    >>> node_sets([np.array([2, 0]), np.array([1])], np.array([5, 6, 7])).labels
    tensor([[ 7,  5],
            [ 6, -1]])
    """
    width = max(len(nodes) for nodes in sets)
    stacked = np.zeros((len(sets), width), dtype=np.int64)
    known = np.full((len(sets), width), -1, dtype=np.int64)
    for run, nodes in enumerate(sets):
        stacked[run, : len(nodes)] = nodes
        known[run, : len(nodes)] = labels[nodes]
    return NodeSet(torch.from_numpy(stacked), torch.from_numpy(known))


@final
@dataclass(frozen=True)
class Task:
    """Everything a training needs, checked and bound to a backend.

    Attributes
    ----------
    model, graph, kernels, readout
        The model, the graph, the backend, and the model's propagation bound to both.
    seeds
        One signed 64-bit seed per run.
    n_classes
        Number of classes, c.
    train, stopping
        Labelled nodes of every run.
    rule
        When a run ends.
    rate
        Adam's learning rate.
    """

    model: Model
    graph: Graph
    kernels: Kernels
    readout: Readout
    seeds: tuple[int, ...]
    n_classes: int
    train: NodeSet
    stopping: NodeSet
    rule: Stopping
    rate: float

    @property
    def matrix_dropout(self) -> float:
        """Probability of dropping an entry of the propagation matrix."""
        return 0.0 if self.model.propagation is None else self.model.propagation.dropout
