"""What every training needs, whatever the model: labelled nodes, seeds, rates, a graph and a backend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.graph import Graph
from pprop.kernels import Kernels
from pprop.training.stopping import Stopping

__all__ = ["NodeSet", "Task", "node_sets"]


@final
@dataclass(frozen=True)
class NodeSet:
    """Labelled nodes of every run, both of shape (R, m); shorter sets are padded with node 0 and label -1."""

    nodes: Tensor
    labels: Tensor

    def keep(self, slots: Tensor | slice) -> NodeSet:
        """Return the sets of some of the runs."""
        return NodeSet(self.nodes[slots], self.labels[slots])

    def to(self, device: torch.device) -> NodeSet:
        """Return the sets on a device."""
        return NodeSet(self.nodes.to(device), self.labels.to(device))

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
    graph, kernels
        The graph and the backend.
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
    device
        Where it is computed; the labelled nodes are there.
    """

    graph: Graph
    kernels: Kernels
    seeds: tuple[int, ...]
    n_classes: int
    train: NodeSet
    stopping: NodeSet
    rule: Stopping
    rate: float
    device: torch.device

    @property
    def seed_tensor(self) -> Tensor:
        """The seeds on the device, shape (R,), int64."""
        return torch.tensor(self.seeds, dtype=torch.int64).to(self.device)

    def part(self, runs: slice) -> Task:
        """Return the same training for some of the runs."""
        return replace(self, seeds=self.seeds[runs], train=self.train.keep(runs), stopping=self.stopping.keep(runs))
