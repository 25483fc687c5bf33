"""Models other than a network with a fixed solver after it: the paper's baselines and more, on the runs axis.

Such a model propagates between its layers, learns the weights of its hops, or has a solve of its own in every epoch.

A description is frozen and knows its weights; bound to a graph and a backend it computes the logits of all nodes from R
weight tensors at once, through `pprop.models.operations`, so that torch's autograd finds the way back and the kernels
do the work. The training adds the loss, the penalty of each weight, Adam and early stopping.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

from torch import Tensor

from pprop.graph import Graph
from pprop.kernels import Draw, Kernels
from pprop.kernels.contract import LabelledNodes
from pprop.kernels.draws import branch_seeds
from pprop.models.model import Weight, network_inputs
from pprop.settings import check_fields


@final
class DropoutMasks:
    """The dropout masks of one epoch, for R runs; `epoch` is a number, or a tensor (1,) where it is counted on a device.

    Examples
    --------
    >>> import torch
    >>> masks = DropoutMasks(torch.tensor([1, 2]), epoch=5)
    >>> masks.draw(0.5).epoch, masks.step(0.5, 1, of=2).epoch, masks.draw(0.0)
    (5, 11, None)
    >>> masks.branches(8).draw(0.6).seeds.shape
    torch.Size([16])
    >>> DropoutMasks(None).draw(0.5) is None
    True
    """

    def __init__(self, seeds: Tensor | None, epoch: int | Tensor = 0) -> None:
        self._seeds, self.epoch = seeds, epoch  # without seeds nothing is dropped
        self._branches: dict[tuple[int, int], Tensor] = {}

    def draw(self, probability: float) -> Draw | None:
        """Return what the kernels take for dropout with this probability; None for 0."""
        return self.step(probability, 0, of=1)

    def step(self, probability: float, step: int, of: int) -> Draw | None:
        """Return the same for product number `step`, of so many in an epoch, with the same sparse matrix."""
        if self._seeds is None or probability <= 0:
            return None
        return Draw(self._seeds, self.epoch * of + step, probability)

    def branches(self, count: int, layer: int = 0) -> DropoutMasks:
        """Return the masks of R * count runs: each head or tower of a layer is a run with a seed of its own."""
        if self._seeds is None:
            return self
        known = self._branches.get((count, layer))
        if known is None:
            known = self._branches[count, layer] = branch_seeds(self._seeds, count, layer)
        return DropoutMasks(known, self.epoch)

    def advance(self) -> None:
        """Go on to the next epoch, in place where it is a tensor."""
        self.epoch += 1

    def keep(self, slots: Tensor) -> DropoutMasks:
        """Return the masks of some of the runs."""
        if self._seeds is None:
            return self
        fewer = DropoutMasks(self._seeds[slots], self.epoch)
        for (count, layer), seeds in self._branches.items():
            fewer._branches[count, layer] = seeds.reshape(-1, count)[slots].flatten()
        return fewer


class BoundModel(ABC):
    """A model on a graph and a backend, with the first layer X W."""

    def __init__(self, graph: Graph, kernels: Kernels) -> None:
        self.kernels, self._X = kernels, kernels.features(network_inputs(graph))

    @abstractmethod
    def outputs(self, weights: Sequence[Tensor], masks: DropoutMasks) -> Tensor:
        """Return the outputs of all nodes, (R, n, c), differentiable in the weights; ``DropoutMasks(None)`` drops nothing.

        Outputs are logits unless the model has a loss of its own.
        """

    def show(self, labels: Tensor, n_classes: int) -> None:  # noqa: B027  most models see no labels
        """Take the labels of the training nodes, (n,), -1 for all others: only of a model that sees them."""

    def counted(self, nodes: LabelledNodes, masks: DropoutMasks) -> Tensor | None:
        """Return how much each training node counts in the loss of an epoch, (R, m); None: all the same."""
        return nodes.weights

    def loss(self, outputs: Tensor, labels: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return loss (R,), right answers (R,) and gradient (R, m, c) for the outputs of some nodes, (R, m, c)."""
        return self.kernels.cross_entropy(outputs, labels, weights)

    def logits(self, outputs: Tensor) -> Tensor:
        """Return the logits of outputs."""
        return outputs


class Architecture(ABC):
    """Description of a model other than a network or module with a fixed solver after it.

    Subclasses are frozen dataclasses of settings.
    """

    def __post_init__(self) -> None:
        check_fields(self, type(self).__name__)

    @abstractmethod
    def weights(self, n_features: int, n_classes: int) -> tuple[Weight, ...]:
        """Return the weights that are trained."""

    @abstractmethod
    def bind(self, graph: Graph, kernels: Kernels) -> BoundModel:
        """Return the model on a graph, computed by a backend."""

    @abstractmethod
    def floats_per_node(self, n_classes: int) -> int:
        """Return how many floats per node one run holds while it is in training, all layers together."""

    @property
    def sees_labels(self) -> bool:
        """Whether training labels are inputs: `BoundModel.show` then comes before anything is computed."""
        return False

    @property
    def probabilities(self) -> bool:
        """Whether outputs are probabilities of classes, which no other loss than that of classes can compare."""
        return False

    def branches(self) -> int:
        """Return how many heads or towers draw masks of their own."""
        return 1
