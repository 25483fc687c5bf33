"""The weights of R runs in training: Adam's steps, the penalty, and a copy of the best weights so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from pprop.kernels import Kernels

# One tensor with the runs axis first per weight; also the type of their gradients.
Weights = list[Tensor]


@final
class BestWeights:
    """A copy of the weights of R runs, at first the initial ones; whatever is copied is written in place."""

    def __init__(self, live: Weights) -> None:
        self.kept = [weight.clone() for weight in live]

    def remember(self, live: Weights, wanted: Tensor) -> None:
        """Copy the weights of the runs that are wanted, (R,) bool, without waiting for the device.

        >>> best = BestWeights([torch.zeros(2, 1)])
        >>> best.remember([torch.ones(2, 1)], torch.tensor([False, True]))
        >>> best.kept
        [tensor([[0.],
                [1.]])]
        """
        for kept, now in zip(self.kept, live, strict=True):
            torch.where(wanted.reshape(-1, *(1,) * (now.ndim - 1)), now, kept, out=kept)

    def keep(self, slots: Tensor) -> None:
        """Keep only the runs at positions `slots`."""
        self.kept = [kept[slots] for kept in self.kept]


@final
class Adam:
    """The weights (R, a, b) of R runs and their moments, stepped by the kernel of a backend.

    All tensors are changed in place: an epoch that reads them may be the replay of a CUDA graph.

    Parameters
    ----------
    kernels
        The backend.
    weights
        Initial weights; they are changed in place.
    penalties
        lambda of lambda / 2 * |W|^2 for each of them.
    rate
        The learning rate.

    Examples
    --------
    >>> from pprop.kernels import choose_backend
    >>> adam = Adam(choose_backend("reference", "cpu", "Adam").kernels, [torch.full((1, 2, 1), 3.0)], [0.5], rate=1.0)
    >>> adam.penalty()
    tensor([4.5000])
    >>> adam.step([torch.ones(1, 2, 1)], 1)  # the first step has the length of the rate
    >>> adam.weights[0].flatten(), adam.penalty()
    (tensor([2., 2.]), tensor([2.]))
    """

    def __init__(self, kernels: Kernels, weights: Weights, penalties: Sequence[float], rate: float) -> None:
        self._kernels, self._rate, self._penalties = kernels, rate, tuple(penalties)
        self.weights = weights
        self._moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in weights]
        # |W|^2 at the start, by a step of rate 0: summed in the same order as after every later step.
        self._squares = [
            kernels.adam(w, *(torch.zeros_like(w) for _ in range(3)), step=1, rate=0.0, penalty=0.0) for w in weights
        ]
        self._best = BestWeights(weights)

    def step(self, gradients: Weights, number: int | Tensor) -> None:
        """Make step `number`, counted from 1, with the gradients of the loss without the penalty."""
        for layer, gradient in enumerate(gradients):
            weights, penalty = self.weights[layer], self._penalties[layer]
            squares = self._kernels.adam(
                weights, gradient, *self._moments[layer], step=number, rate=self._rate, penalty=penalty
            )
            self._squares[layer].copy_(squares)  # in place: the next epoch reads it, and may be a replay

    def penalty(self) -> Tensor:
        """Return the sum of penalty / 2 * |W|^2, shape (R,). A weight without a penalty adds nothing, however large."""
        total = torch.zeros_like(self._squares[0])
        for penalty, squares in zip(self._penalties, self._squares, strict=True):
            if penalty > 0:
                total = total + 0.5 * penalty * squares
        return total

    def remember(self, wanted: Tensor) -> None:
        """Keep a copy of the present weights of the runs that are wanted, (R,) bool."""
        self._best.remember(self.weights, wanted)

    @property
    def best(self) -> Weights:
        """Every run's weights as last remembered, at first the initial ones."""
        return self._best.kept

    def keep(self, slots: Tensor) -> None:
        """Keep only the runs at positions `slots`."""
        self.weights = [w[slots] for w in self.weights]
        self._moments = [(mean[slots], square[slots]) for mean, square in self._moments]
        self._squares = [squares[slots] for squares in self._squares]
        self._best.keep(slots)
