"""One epoch of torch modules in place of the network.

The module runs as its author wrote it, by torch's autograd; what follows is ours: the propagation to the labelled nodes, the
loss, and its gradient for the predictions, by a backend's kernels. On a GPU these are captured once in CUDA graphs and
replayed, so that an epoch launches little more than the module, and neither predictions nor losses leave the GPU.

With `block_nodes` the module sees some nodes at a time: first all blocks without a gradient, for the predictions and their
gradient, then each block once more, with the same randomness, for the gradient of the weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast, final

import torch
from torch import Tensor, nn

from pprop._errors import InputError
from pprop.kernels.capture import Replayed, call_directly
from pprop.kernels.trainer import LabelledNodes, Trainer
from pprop.models.architecture import DropoutMasks
from pprop.models.inference import PropagatedModel
from pprop.models.module import node_blocks
from pprop.models.network import FeatureNetwork
from pprop.training.adam import BestWeights
from pprop.training.module_runs import OneModule, RunModules, RunsRandomness, StackedModules, run_modules
from pprop.training.task import Task


@final
class ModuleTrainer(Trainer):
    """R runs of a torch module in place of the network: one alone, or several stacked.

    The penalty applies to the first trainable parameter of the module with at least two dimensions.

    Parameters
    ----------
    task, bound
        The runs, and their model.
    inputs
        The features on the task's device, as the module gets them.
    """

    def __init__(self, task: Task, bound: PropagatedModel, inputs: Tensor) -> None:
        model, runs = bound.model, len(task.seeds)
        assert not isinstance(model.predictor, FeatureNetwork)
        self._randomness = RunsRandomness(task.seeds, task.device)
        modules = run_modules(model.predictor, self._randomness, runs, task.device, model.block_nodes)
        self._runs: RunModules
        if runs == 1:
            classes, mixed = task.n_classes, model.mixed_precision
            self._runs = OneModule(modules[0], self._randomness, classes, mixed_precision=mixed)
        else:
            self._runs = StackedModules(modules, self._randomness, task.n_classes)
        self._blocks = node_blocks(inputs, model.block_nodes)
        # a run alone on a CPU has torch's loss, to the bit
        self._loss = (_TorchLoss if runs == 1 and task.device.type == "cpu" else _KernelLoss)(task, bound)
        self._penalty, self._rate, self._epoch = model.penalty, task.rate, 0
        self._fused = True if task.device.type == "cuda" else None
        if self._fused:  # torch warns where the first thing that its thread of gradients does is a product of matrices
            torch.zeros(1, device=task.device, requires_grad=True).mul(1.0).backward()
        self._optimizer = torch.optim.Adam(self._runs.parameters, lr=task.rate, fused=self._fused)
        self._best = BestWeights(self._runs.state())
        self._squares = self._penalties()

    def epoch(self) -> Tensor:
        self._epoch += 1
        self._randomness.begin(self._epoch)
        self._optimizer.zero_grad()
        loss = self._backward() + self._squares
        self._optimizer.step()
        with torch.no_grad():
            after, accuracy = self._loss.evaluate(self._predict(training=False))
        self._squares = self._penalties()
        after = after + self._squares
        return torch.stack([loss, after, accuracy.to(after.dtype)])

    def _backward(self) -> Tensor:
        """Leave the gradient of the loss and of the penalty in the parameters; return the loss, (R,)."""
        if len(self._blocks) == 1:
            predictions = self._runs.predict(self._blocks[0], training=True)
            loss, gradient = self._loss.gradient(predictions.detach())
            self._connected(predictions).backward(gradient)
        else:
            begin = self._randomness.noted()
            with torch.no_grad():
                predictions = self._predict(training=True)
            loss, gradient = self._loss.gradient(predictions)
            self._randomness.back_to(begin)
            each = torch.split(gradient, len(self._blocks[0]), dim=1)
            for block, part in zip(self._blocks, each, strict=True):
                self._connected(self._runs.predict(block, training=True)).backward(part)
        weight = self._penalised()
        if weight is not None:
            slope = self._penalty * weight.detach()
            weight.grad = slope if weight.grad is None else weight.grad.add_(slope)
        return loss

    def _predict(self, *, training: bool) -> Tensor:
        """Return the predictions of all nodes, (R, n, c), block by block."""
        found = [self._runs.predict(block, training=training) for block in self._blocks]
        return found[0] if len(found) == 1 else torch.cat(found, dim=1)

    @staticmethod
    def _connected(values: Tensor) -> Tensor:
        if not values.requires_grad:
            raise InputError(
                "The predictions do not depend on the parameters of the predictor. Leave out detach() and no_grad() in its "
                "forward pass."
            )
        return values

    def _penalised(self) -> Tensor | None:
        return self._runs.first if self._penalty else None

    def _penalties(self) -> Tensor | float:
        """Return penalty / 2 * |W|^2, shape (R,), of the weights as they are."""
        weight = self._penalised()
        return 0.0 if weight is None else 0.5 * self._penalty * self._runs.squares(weight.detach())

    def weights(self) -> list[Tensor]:
        return self._runs.state()

    def remember(self, wanted: Tensor) -> None:
        self._best.remember(self._runs.state(), wanted)

    def remembered(self) -> list[Tensor]:
        return self._best.kept

    def keep(self, slots: Tensor) -> None:
        if not isinstance(self._runs, StackedModules):
            return  # one run: it is here, or the loop has ended
        before = self._optimizer.state
        parts = self._runs.keep(slots)
        self._randomness.keep(cast("list[int]", slots.tolist()))
        self._optimizer = torch.optim.Adam(self._runs.parameters, lr=self._rate, fused=self._fused)
        for new, old in parts.items():
            self._optimizer.state[new] = {
                name: value if name == "step" else value[slots] for name, value in before.get(old, {}).items()
            }
        self._best.keep(slots)
        self._squares = self._penalties()
        self._loss.keep(slots)


class _PredictionLoss(ABC):
    """The mean cross entropy at the labelled nodes of R runs as a function of the predictions (R, n, c)."""

    @abstractmethod
    def gradient(self, predictions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss at the training nodes, (R,), and its gradient (R, n, c); dropout goes on to the next epoch."""

    @abstractmethod
    def evaluate(self, predictions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss and the accuracy at the stopping nodes without dropout, both (R,)."""

    def keep(self, slots: Tensor) -> None:
        """Keep only the runs at positions `slots`."""
        raise NotImplementedError


@final
class _TorchLoss(_PredictionLoss):
    """Of one run, by torch's own loss and autograd."""

    def __init__(self, task: Task, bound: PropagatedModel) -> None:
        self._train, self._stopping, self._readout = task.train, task.stopping, bound.readout
        self._masks, self._dropout = DropoutMasks(task.seed_tensor), bound.dropout

    def gradient(self, predictions: Tensor) -> tuple[Tensor, Tensor]:
        leaf, draw = predictions.detach().requires_grad_(), self._masks.draw(self._dropout)
        loss, _ = self._values(self._readout.apply(leaf, self._train.nodes, draw)[0], self._train)
        (gradient,) = torch.autograd.grad(loss, leaf)
        self._masks.advance()
        return loss.detach()[None], gradient

    def evaluate(self, predictions: Tensor) -> tuple[Tensor, Tensor]:
        logits = self._readout.forward(predictions, self._stopping.nodes, None)[0]
        loss, right = self._values(logits, self._stopping)
        return loss[None], right[None] / self._stopping.sizes

    def _values(self, logits: Tensor, nodes: LabelledNodes) -> tuple[Tensor, Tensor]:
        labels = nodes.labels[0]
        if nodes.weights is None:
            loss = nn.functional.cross_entropy(logits, labels, ignore_index=-1)
            return loss, (logits.argmax(-1) == labels).sum()
        weights = nodes.weights[0].where(labels >= 0, 0.0)
        some = weights > 0
        each = nn.functional.cross_entropy(logits[some], labels[some], reduction="none")
        loss = (each * weights[some]).sum() / weights.sum()
        return loss, weights.double()[logits.argmax(-1) == labels].sum()


@final
class _KernelLoss(_PredictionLoss):
    """Of any runs, by the operations of a backend; captured where they can be."""

    def __init__(self, task: Task, bound: PropagatedModel) -> None:
        self._kernels, self._readout, self._dropout = task.kernels, bound.readout, bound.dropout
        self._train, self._stopping, self._sizes = task.train, task.stopping, task.stopping.sizes
        self._captured = task.device.type == "cuda" and task.kernels.capturable
        epoch = torch.zeros(1, dtype=torch.int64, device=task.device) if self._captured else 0
        self._masks = DropoutMasks(task.seed_tensor, epoch)
        self._bind()

    def _bind(self) -> None:
        self._replays = (Replayed(), Replayed()) if self._captured else (call_directly, call_directly)

    def gradient(self, predictions: Tensor) -> tuple[Tensor, Tensor]:
        loss, gradient = self._replays[0](self._of_training, predictions)
        return loss, gradient

    def evaluate(self, predictions: Tensor) -> tuple[Tensor, Tensor]:
        loss, accuracy = self._replays[1](self._of_stopping, predictions)
        return loss, accuracy

    def _of_training(self, predictions: Tensor) -> tuple[Tensor, Tensor]:
        nodes, draw = self._train, self._masks.draw(self._dropout)
        logits = self._readout.forward(predictions, nodes.nodes, draw)
        loss, _, gradient = self._kernels.cross_entropy(logits, nodes.labels, nodes.weights)
        gradient = self._readout.adjoint(gradient, nodes.nodes, draw)
        self._masks.advance()
        return loss, gradient

    def _of_stopping(self, predictions: Tensor) -> tuple[Tensor, Tensor]:
        nodes = self._stopping
        logits = self._readout.forward(predictions, nodes.nodes, None)
        loss, right, _ = self._kernels.cross_entropy(logits, nodes.labels, nodes.weights)
        return loss, right / self._sizes

    def keep(self, slots: Tensor) -> None:
        self._readout, self._masks = self._readout.of_runs(slots), self._masks.keep(slots)
        self._train, self._stopping = self._train.keep(slots), self._stopping.keep(slots)
        self._sizes = self._sizes[slots]
        self._bind()
