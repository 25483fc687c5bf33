"""Training of a model description (`pprop.models.architecture`) in R runs at once, through torch's autograd."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from pprop.kernels.trainer import Trainer
from pprop.models.architecture import Architecture, Masks, first_masks, initial_weights
from pprop.models.network import normalized_features
from pprop.models.readout import gather_nodes
from pprop.training.program import NodeSet, Task

__all__ = ["ArchitectureProgram"]


@final
class ArchitectureProgram(Trainer):
    """Loss = the model's mean loss on the training nodes + sum of penalty / 2 * |W|^2 over its weights, by Adam.

    Parameters
    ----------
    task
        Its model is an `Architecture`.
    model
        That model.
    """

    def __init__(self, task: Task, model: Architecture) -> None:
        self._kernels, self._rate = task.kernels, task.rate
        self._train, self._stopping = task.train, task.stopping
        weights = model.weights(normalized_features(task.graph).shape[1], task.n_classes)
        self._penalties = [weight.penalty for weight in weights]
        self._bound = model.bind(task.graph, task.kernels)
        self._weights = initial_weights(weights, task.seed_tensor, task.kernels)
        self._best = [w.clone() for w in self._weights]
        self._moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in self._weights]
        # The kernel sums squares in a fixed order; a step of rate 0 leaves the weights as they are.
        self._squares = [
            task.kernels.adam(w, *(torch.zeros_like(w) for _ in range(3)), step=1, rate=0.0, penalty=0.0)
            for w in self._weights
        ]
        self.capturable = task.device.type == "cuda" and task.kernels.capturable
        self._masks = first_masks(task.seed_tensor, self.capturable)

    def epoch(self) -> Tensor:
        loss = self._step()
        with torch.no_grad():
            outputs = self._bound.outputs(self._weights, Masks(None))
            at_nodes = gather_nodes(outputs, self._stopping.nodes)
            after, right, _ = self._bound.loss(at_nodes, self._stopping.labels)
        return torch.stack([loss, after + self._penalty(), right / self._stopping.sizes])

    def _step(self) -> Tensor:
        leaves = [w.detach().requires_grad_() for w in self._weights]
        with torch.enable_grad():
            at_nodes = gather_nodes(self._bound.outputs(leaves, self._masks), self._train.nodes)
        loss, _, gradient = self._bound.loss(at_nodes.detach(), self._train.labels)
        loss = loss + self._penalty()
        gradients = torch.autograd.grad(at_nodes, leaves, gradient)
        step = self._masks.epoch + 1
        for index, gradient in enumerate(gradients):
            squares = self._kernels.adam(
                self._weights[index],
                gradient.contiguous(),
                *self._moments[index],
                step=step,
                rate=self._rate,
                penalty=self._penalties[index],
            )
            self._squares[index].copy_(squares)  # in place: the next epoch reads it, and may be a replay
        self._masks.advance()
        return loss

    def _penalty(self) -> Tensor:
        """Return sum of penalty / 2 * |W|^2, shape (R,)."""
        terms = [0.5 * p * squares for p, squares in zip(self._penalties, self._squares, strict=True) if p > 0]
        total = torch.zeros_like(self._squares[0])
        for term in terms:
            total = total + term
        return total

    def weights(self) -> list[Tensor]:
        return self._weights

    def remember(self, wanted: Tensor) -> None:
        for kept, live in zip(self._best, self._weights, strict=True):
            kept.copy_(torch.where(wanted[:, None, None], live, kept))

    def remembered(self) -> list[Tensor]:
        return self._best

    def keep(self, slots: Tensor) -> None:
        self._weights = [w[slots] for w in self._weights]
        self._best = [w[slots] for w in self._best]
        self._moments = [(mean[slots], square[slots]) for mean, square in self._moments]
        self._squares = [squares[slots] for squares in self._squares]
        self._masks = self._masks.keep(slots)
        self._train: NodeSet = self._train.keep(slots)
        self._stopping: NodeSet = self._stopping.keep(slots)
