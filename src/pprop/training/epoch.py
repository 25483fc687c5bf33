"""What happens in one epoch of training, from single operations: the version to read.

    loss = mean cross entropy of the training nodes, weighted, + sum of penalty / 2 * |W|^2 over the weights,

minimised by Adam in full batches, for R independent runs at once:

1. draw the dropout masks of this epoch, a function of each run's seed and the epoch (``docs/randomness.md``);
2. predict every node, propagate the predictions, compute the loss at the training nodes and its gradient;
3. make one Adam step (`pprop.training.adam`);
4. predict again with dropout off, for loss and accuracy at the stopping nodes. `pprop.training.loop` decides on them.

`RunsTrainer` makes these steps from a backend's single operations, for any depth and any propagation. For the paper's
two-layer network the numba and triton backends have a fused trainer (`pprop.kernels.contract`), which is used by default,
computes the same numbers and is tested against this one. A torch module has a trainer of its own
(`pprop.training.modules`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import final

import torch
from torch import Tensor

from pprop.kernels.contract import LabelledNodes, Trainer
from pprop.kernels.losses import ELEMENTWISE
from pprop.models.architecture import Architecture, DropoutMasks
from pprop.models.inference import PropagatedModel, gather_nodes
from pprop.models.model import FeatureNetwork, RunsNetwork, network_inputs
from pprop.training.adam import Adam, Weights
from pprop.training.task import Task


class Objective(ABC):
    """The loss of R runs of a model, without the penalty, as a function of their weights."""

    @abstractmethod
    def loss_and_gradients(self, weights: Weights, nodes: LabelledNodes, masks: DropoutMasks) -> tuple[Tensor, Weights]:
        """Return the loss at some nodes with dropout, (R,), and its gradient for every weight."""

    @abstractmethod
    def loss_and_right(self, weights: Weights, nodes: LabelledNodes) -> tuple[Tensor, Tensor]:
        """Return the loss at some nodes without dropout, (R,), and the number, or weight, of right answers, (R,)."""

    @abstractmethod
    def logits(self, weights: Weights, nodes: Tensor) -> Tensor:
        """Return the logits of nodes (R, m) without dropout, (R, m, c)."""

    def keep(self, slots: Tensor) -> None:  # noqa: B027  most have no state per run
        """Keep only the runs at positions `slots`."""


@final
class NetworkObjective(Objective):
    """The paper's network and a propagation, forward and back by the kernels of a backend."""

    def __init__(self, task: Task, bound: PropagatedModel) -> None:
        assert isinstance(bound.model.predictor, FeatureNetwork)
        self._kernels, self._readout, self._compare = task.kernels, bound.readout, task.compare
        self._features = task.kernels.features(network_inputs(task.graph, bound.model.predictor.first_layer))
        self._bias = bound.model.predictor.bias
        self._dropout, self._matrix_dropout = bound.model.predictor.dropout, bound.dropout

    def loss_and_gradients(self, weights: Weights, nodes: LabelledNodes, masks: DropoutMasks) -> tuple[Tensor, Weights]:
        on_network, on_matrix = masks.draw(self._dropout), masks.draw(self._matrix_dropout)
        network = self._network(weights)
        H = network.forward(on_network)
        Z = self._readout.forward(H, nodes.nodes, on_matrix)
        loss, _, gradient = self._compare(Z, nodes)
        return loss, network.backward(self._readout.adjoint(gradient, nodes.nodes, on_matrix))

    def loss_and_right(self, weights: Weights, nodes: LabelledNodes) -> tuple[Tensor, Tensor]:
        loss, right, _ = self._compare(self.logits(weights, nodes.nodes), nodes)
        return loss, right

    def logits(self, weights: Weights, nodes: Tensor) -> Tensor:
        return self._readout.forward(self._network(weights).forward(None), nodes, None)

    def _network(self, weights: Weights) -> RunsNetwork:
        return RunsNetwork(self._kernels, self._features, weights, bias=self._bias)

    def keep(self, slots: Tensor) -> None:
        self._readout = self._readout.of_runs(slots)


@final
class ArchitectureObjective(Objective):
    """A baseline's description (`pprop.models.architecture`), back through torch's autograd."""

    def __init__(self, task: Task, model: Architecture) -> None:
        self._bound = model.bind(task.graph, task.kernels)
        # a model with probabilities, say, has a cross entropy of its own
        self._compare = task.compare if task.loss in ELEMENTWISE else self._cross_entropy
        if model.sees_labels:
            self._bound.show(task.shown_labels(), task.n_classes)

    def loss_and_gradients(self, weights: Weights, nodes: LabelledNodes, masks: DropoutMasks) -> tuple[Tensor, Weights]:
        leaves = [w.detach().requires_grad_() for w in weights]
        with torch.enable_grad():
            at_nodes = gather_nodes(self._bound.outputs(leaves, masks), nodes.nodes)
        counted = replace(nodes, weights=self._bound.counted(nodes, masks))
        loss, _, gradient = self._compare(at_nodes.detach(), counted)
        return loss, [g.contiguous() for g in torch.autograd.grad(at_nodes, leaves, gradient)]

    def loss_and_right(self, weights: Weights, nodes: LabelledNodes) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            at_nodes = gather_nodes(self._bound.outputs(weights, DropoutMasks(None)), nodes.nodes)
            loss, right, _ = self._compare(at_nodes, nodes)
        return loss, right

    def _cross_entropy(self, outputs: Tensor, nodes: LabelledNodes) -> tuple[Tensor, Tensor, Tensor]:
        return self._bound.loss(outputs, nodes.labels, nodes.weights)

    def logits(self, weights: Weights, nodes: Tensor) -> Tensor:
        with torch.no_grad():
            return self._bound.logits(gather_nodes(self._bound.outputs(weights, DropoutMasks(None)), nodes))


@final
class RunsTrainer(Trainer):
    """R runs of one objective, from single operations. The number of Python calls in an epoch does not depend on R.

    Parameters
    ----------
    task
        Nodes, seeds, backend and learning rate of the runs.
    objective
        The loss of their model.
    weights
        Initial weights, one tensor (R, a, b) each; they are changed in place.
    penalties
        lambda of lambda / 2 * |W|^2 for each of them.
    """

    def __init__(self, task: Task, objective: Objective, weights: Weights, penalties: list[float]) -> None:
        self._objective, self._train, self._stopping = objective, task.train, task.stopping
        self._adam = Adam(task.kernels, weights, penalties, task.rate)
        self.capturable = task.device.type == "cuda" and task.kernels.capturable
        epoch = torch.zeros(1, dtype=torch.int64, device=task.device) if self.capturable else 0
        self._masks = DropoutMasks(task.seed_tensor, epoch)

    def epoch(self) -> Tensor:
        loss, gradients = self._objective.loss_and_gradients(self._adam.weights, self._train, self._masks)
        loss = loss + self._adam.penalty()
        self._adam.step(gradients, self._masks.epoch + 1)
        self._masks.advance()
        after, right = self._objective.loss_and_right(self._adam.weights, self._stopping)
        accuracy = (right / self._stopping.sizes).to(loss.dtype)
        return torch.stack([loss, after + self._adam.penalty(), accuracy])

    def weights(self) -> Weights:
        return self._adam.weights

    def remember(self, wanted: Tensor) -> None:
        self._adam.remember(wanted)

    def remembered(self) -> Weights:
        return self._adam.best

    def keep(self, slots: Tensor) -> None:
        self._objective.keep(slots)
        self._masks = self._masks.keep(slots)
        self._train, self._stopping = self._train.keep(slots), self._stopping.keep(slots)
        self._adam.keep(slots)
