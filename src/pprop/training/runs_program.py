"""Training of the paper's network: R runs as one program on a backend's kernels.

The number of Python calls in an epoch does not depend on R.
"""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.kernels import Draw
from pprop.models.network import FeatureNetwork, RunsNetwork, glorot_uniform, normalized_features
from pprop.training.loop import LoopResult, run_loop
from pprop.training.program import Program, Task
from pprop.training.progress import Progress

__all__ = ["RunsProgram", "train_runs"]


@final
class RunsProgram(Program):
    """Loss = mean cross entropy of the training nodes + penalty / 2 * |W_first|^2, minimised by Adam.

    Parameters
    ----------
    task
        Its model's predictor is a `FeatureNetwork`.
    network
        R networks with their initial weights, which are changed in place.
    """

    def __init__(self, task: Task, network: RunsNetwork, dropout: float) -> None:
        self._kernels, self._readout, self._network = task.kernels, task.readout, network
        self._seeds, self._train, self._stopping = torch.tensor(task.seeds), task.train, task.stopping
        self._rate, self._penalty = task.rate, task.model.penalty
        self._dropout, self._matrix_dropout = dropout, task.matrix_dropout
        self._moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in network.weights]
        # The kernel sums squares in a fixed order; a step of rate 0 leaves the weights as they are.
        first = network.weights[0]
        zeros = [torch.zeros_like(first) for _ in range(3)]
        self._squares = task.kernels.adam(first, *zeros, step=1, rate=0.0, penalty=0.0)

    def train_epoch(self, epoch: int) -> Tensor:
        on_network, on_matrix = self._draw(self._dropout, epoch), self._draw(self._matrix_dropout, epoch)
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
                step=epoch + 1,
                rate=self._rate,
                penalty=self._penalty if layer == 0 else 0.0,
            )
            if layer == 0:
                self._squares = squares
        return loss

    def evaluate(self) -> tuple[Tensor, Tensor]:
        predictions = self._network.forward(None)
        logits = self._readout.forward(predictions, self._stopping.nodes, None)
        loss, right, _ = self._kernels.cross_entropy(logits, self._stopping.labels)
        return loss + 0.5 * self._penalty * self._squares, right / self._stopping.sizes

    def weights(self) -> list[Tensor]:
        return self._network.weights

    def keep(self, slots: NDArray[np.int64]) -> None:
        self._network.weights = [w[slots] for w in self._network.weights]
        self._moments = [(mean[slots], square[slots]) for mean, square in self._moments]
        self._seeds, self._squares = self._seeds[slots], self._squares[slots]
        self._train, self._stopping = self._train.keep(slots), self._stopping.keep(slots)

    def _draw(self, probability: float, epoch: int) -> Draw | None:
        return Draw(self._seeds, epoch, probability) if probability > 0 else None


def train_runs(task: Task, predictor: FeatureNetwork, progress: Progress) -> LoopResult:
    """Train the paper's network in every run."""
    features = normalized_features(task.graph)
    weights = glorot_uniform(predictor.widths(features.shape[1], task.n_classes), torch.tensor(task.seeds))
    program = RunsProgram(task, RunsNetwork(task.kernels, features, weights), predictor.dropout)
    return run_loop(program, len(task.seeds), task.rule, progress)
