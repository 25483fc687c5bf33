"""Training of the paper's network from a backend's single operations: any depth, any propagation, written to be read.

The number of Python calls in an epoch does not depend on R. A backend's fused trainer computes the same numbers for the
two-layer network, and is compared with this program.
"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from pprop.kernels.trainer import Trainer
from pprop.models.architecture import first_masks
from pprop.models.network import RunsNetwork
from pprop.training.program import Task
from pprop.training.propagated import Propagated

__all__ = ["RunsProgram"]


@final
class RunsProgram(Trainer):
    """Loss = mean cross entropy of the training nodes + penalty / 2 * |W_first|^2, minimised by Adam.

    Parameters
    ----------
    task, propagated
        What is trained; the model's predictor is a `FeatureNetwork`.
    network
        R networks with their initial weights, which are changed in place.
    """

    def __init__(self, task: Task, propagated: Propagated, network: RunsNetwork, dropout: float) -> None:
        self._kernels, self._readout, self._network = task.kernels, propagated.readout, network
        self._train, self._stopping = task.train, task.stopping
        self._rate, self._penalty = task.rate, propagated.model.penalty
        self._dropout, self._matrix_dropout = dropout, propagated.dropout
        self._moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in network.weights]
        # The kernel sums squares in a fixed order; a step of rate 0 leaves the weights as they are.
        first = network.weights[0]
        zeros = [torch.zeros_like(first) for _ in range(3)]
        self._squares = task.kernels.adam(first, *zeros, step=1, rate=0.0, penalty=0.0)

        self._best = [w.clone() for w in network.weights]
        self.capturable = task.device.type == "cuda" and task.kernels.capturable
        self._masks = first_masks(task.seed_tensor, self.capturable)

    def epoch(self) -> Tensor:
        loss = self._step()
        self._masks.advance()
        return torch.stack([loss, *self._evaluate()])

    def _step(self) -> Tensor:
        on_network, on_matrix = self._masks.draw(self._dropout), self._masks.draw(self._matrix_dropout)
        predictions = self._network.forward(on_network)
        logits = self._readout.forward(predictions, self._train.nodes, on_matrix)
        loss, _, gradient = self._kernels.cross_entropy(logits, self._train.labels)
        loss = loss + 0.5 * self._penalty * self._squares
        gradient = self._readout.adjoint(gradient, self._train.nodes, on_matrix)
        for layer, weight_gradient in enumerate(self._network.backward(gradient)):
            mean, square = self._moments[layer]
            squares = self._kernels.adam(
                self._network.weights[layer],
                weight_gradient,
                mean,
                square,
                step=self._masks.epoch + 1,
                rate=self._rate,
                penalty=self._penalty if layer == 0 else 0.0,
            )
            if layer == 0:
                self._squares.copy_(squares)  # in place: the next epoch reads it, and may be a replay
        return loss

    def _evaluate(self) -> tuple[Tensor, Tensor]:
        predictions = self._network.forward(None)
        logits = self._readout.forward(predictions, self._stopping.nodes, None)
        loss, right, _ = self._kernels.cross_entropy(logits, self._stopping.labels)
        return loss + 0.5 * self._penalty * self._squares, right / self._stopping.sizes

    def weights(self) -> list[Tensor]:
        return self._network.weights

    def remember(self, wanted: Tensor) -> None:
        for kept, live in zip(self._best, self._network.weights, strict=True):
            kept.copy_(torch.where(wanted[:, None, None], live, kept))

    def remembered(self) -> list[Tensor]:
        return self._best

    def keep(self, slots: Tensor) -> None:
        self._best = [w[slots] for w in self._best]
        self._network.weights = [w[slots] for w in self._network.weights]
        self._moments = [(mean[slots], square[slots]) for mean, square in self._moments]
        self._masks, self._squares = self._masks.keep(slots), self._squares[slots]
        self._train, self._stopping = self._train.keep(slots), self._stopping.keep(slots)
