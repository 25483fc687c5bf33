"""One epoch of a torch module in place of the network.

The module runs as its author wrote it, by torch's autograd; what follows is ours: the propagation to the labelled nodes, the
loss, and its gradient for the predictions, by a backend's kernels. On a GPU these are captured once in CUDA graphs and
replayed, so that an epoch launches little more than the module, and neither predictions nor losses leave the GPU.

With `block_nodes` the module sees some nodes at a time: first all blocks without a gradient, for the predictions and their
gradient, then each block once more, with the same randomness, for the gradient of the weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import final

import torch
from torch import Tensor, nn

from pprop._errors import InputError
from pprop.kernels.capture import Replayed, call_directly
from pprop.kernels.contract import LabelledNodes, Trainer
from pprop.models.architecture import DropoutMasks
from pprop.models.inference import PropagatedModel
from pprop.models.model import FeatureNetwork
from pprop.models.module import call_module, make_module, module_state, node_blocks
from pprop.training.adam import BestWeights
from pprop.training.module_randomness import ModuleRandomness
from pprop.training.task import Task


@final
class ModuleTrainer(Trainer):
    """One run of a torch module in place of the network.

    The penalty applies to the first trainable parameter of the module with at least two dimensions.

    Parameters
    ----------
    task, bound
        The run, and its model.
    inputs
        The features on the task's device, as the module gets them.
    """

    def __init__(self, task: Task, bound: PropagatedModel, inputs: Tensor) -> None:
        model, (seed,) = bound.model, task.seeds
        assert not isinstance(model.predictor, FeatureNetwork)
        self._randomness = ModuleRandomness(seed, task.device)
        self._randomness.begin(0)
        with self._randomness.lent():
            self._module = make_module(model.predictor).to(task.device)
        _check_blocks(self._module, model.block_nodes)
        parameters = _trainable(self._module)
        self._blocks, self._classes = node_blocks(inputs, model.block_nodes), task.n_classes
        self._readout = bound.readout
        self._mixed_precision, self._penalty, self._epoch = model.mixed_precision, model.penalty, 0
        self._penalised = next((p for p in parameters if p.ndim >= 2), None) if model.penalty else None
        # a CPU has torch's loss, to the bit
        self._loss = (_TorchLoss if task.device.type == "cpu" else _KernelLoss)(task, bound)
        fused = True if task.device.type == "cuda" else None
        if fused:  # torch warns where the first thing that its thread of gradients does is a product of matrices
            torch.zeros(1, device=task.device, requires_grad=True).mul(1.0).backward()
        self._optimizer = torch.optim.Adam(parameters, lr=task.rate, fused=fused)
        self._best = BestWeights(self.weights())
        self._squares = self._penalties()

    def epoch(self) -> Tensor:
        self._epoch += 1
        self._randomness.begin(self._epoch)
        self._optimizer.zero_grad()
        loss = self._backward() + self._squares
        self._optimizer.step()
        with torch.no_grad():
            after, accuracy = self._loss.evaluate(self._predict_all(training=False))
        self._squares = self._penalties()
        after = after + self._squares
        return torch.stack([loss, after, accuracy.to(after.dtype)])

    def logits(self, nodes: Tensor) -> Tensor:
        """Return the logits of nodes (1, m) with the present weights, dropout off, (1, m, c)."""
        with torch.no_grad():
            return self._readout.forward(self._predict_all(training=False), nodes, None)

    def _backward(self) -> Tensor:
        """Leave the gradient of the loss and of the penalty in the parameters; return the loss, (1,)."""
        if len(self._blocks) == 1:
            predictions = self._predict(self._blocks[0], training=True)
            loss, gradient = self._loss.gradient(predictions.detach())
            self._connected(predictions).backward(gradient)
        else:
            begin = self._randomness.noted()
            with torch.no_grad():
                predictions = self._predict_all(training=True)
            loss, gradient = self._loss.gradient(predictions)
            self._randomness.back_to(begin)
            each = torch.split(gradient, len(self._blocks[0]), dim=1)
            for block, part in zip(self._blocks, each, strict=True):
                self._connected(self._predict(block, training=True)).backward(part)
        weight = self._penalised
        if weight is not None:
            slope = self._penalty * weight.detach()
            weight.grad = slope if weight.grad is None else weight.grad.add_(slope)
        return loss

    def _predict_all(self, *, training: bool) -> Tensor:
        """Return the predictions of all nodes, (1, n, c), block by block."""
        found = [self._predict(block, training=training) for block in self._blocks]
        return found[0] if len(found) == 1 else torch.cat(found, dim=1)

    def _predict(self, block: Tensor, *, training: bool) -> Tensor:
        """Return the predictions (1, m, c) of a block of m nodes, at least in float32."""
        self._module.train(training)
        precision = torch.autocast(block.device.type, torch.bfloat16) if self._mixed_precision else nullcontext()
        with self._randomness.lent(), precision:
            predictions = call_module(self._module, block, self._classes)
        return predictions[None]

    @staticmethod
    def _connected(values: Tensor) -> Tensor:
        if not values.requires_grad:
            raise InputError(
                "The predictions do not depend on the parameters of the predictor. Leave out detach() and no_grad() in its "
                "forward pass."
            )
        return values

    def _penalties(self) -> Tensor | float:
        """Return penalty / 2 * |W|^2, shape (1,), of the weights as they are."""
        weight = self._penalised
        return 0.0 if weight is None else 0.5 * self._penalty * weight.detach().square().sum()[None]

    def weights(self) -> list[Tensor]:
        return [tensor.detach()[None] for tensor in module_state(self._module).values()]

    def remember(self, wanted: Tensor) -> None:
        self._best.remember(self.weights(), wanted)

    def remembered(self) -> list[Tensor]:
        return self._best.kept

    def keep(self, slots: Tensor) -> None:
        """Do nothing: there is one run, and it is in training or the loop has ended."""


def _trainable(module: nn.Module) -> list[Tensor]:
    """Return the parameters of a module that are trained; refuse one without."""
    found: list[Tensor] = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not found:
        raise InputError("The predictor has no trainable parameter. Use pprop.propagate for fixed predictions.")
    return found


def _check_blocks(module: nn.Module, block_nodes: int | None) -> None:
    """Refuse layers whose statistics would be those of a block of nodes."""
    parts: list[tuple[str, nn.Module]] = list(module.named_modules())  # pyright: ignore[reportUnknownArgumentType]  torch does not tell it
    for name, part in parts:
        if block_nodes is not None and isinstance(part, nn.modules.batchnorm._BatchNorm):  # pyright: ignore[reportPrivateUsage]
            raise InputError(
                f"block_nodes={block_nodes} does not go with {type(part).__name__} ({name!r} of the predictor): its "
                "statistics would be those of a block. Use LayerNorm, or leave block_nodes out."
            )


class _PredictionLoss(ABC):
    """The mean cross entropy at the labelled nodes as a function of the predictions (1, n, c)."""

    @abstractmethod
    def gradient(self, predictions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss at the training nodes, (1,), and its gradient (1, n, c); dropout goes on to the next epoch."""

    @abstractmethod
    def evaluate(self, predictions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss and the accuracy at the stopping nodes without dropout, both (1,)."""


@final
class _TorchLoss(_PredictionLoss):
    """By torch's own loss and autograd."""

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
    """By the operations of a backend; captured where they can be."""

    def __init__(self, task: Task, bound: PropagatedModel) -> None:
        self._kernels, self._readout, self._dropout = task.kernels, bound.readout, bound.dropout
        self._train, self._stopping, self._sizes = task.train, task.stopping, task.stopping.sizes
        captured = task.device.type == "cuda" and task.kernels.capturable
        epoch = torch.zeros(1, dtype=torch.int64, device=task.device) if captured else 0
        self._masks = DropoutMasks(task.seed_tensor, epoch)
        self._replays = (Replayed(), Replayed()) if captured else (call_directly, call_directly)

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
