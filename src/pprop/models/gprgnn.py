"""Predict, then propagate with weights of hops that are learned: GPR-GNN.

References
----------
Chien, Peng, Li and Milenkovic, "Adaptive universal generalized PageRank graph neural network", ICLR 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from pprop import settings
from pprop.graph import Graph, transition_matrix
from pprop.kernels import Kernels
from pprop.models.architecture import Architecture, BoundModel, DropoutMasks
from pprop.models.model import Weight
from pprop.models.operations import applied, linear, relu_drop


@final
@dataclass(frozen=True)
class GPRGNN(Architecture):
    """A network of each node, then a sum over hops whose weights are learned.

        Z = sum_k (g_k + w_k) A_hat^k f(X),   f(X) = relu(X W_0 + b_0) W_1 + b_1

    g_k are the weights of personalized PageRank, alpha (1 - alpha)^k, and (1 - alpha)^K for the last: at w = 0, where
    training begins, this is APPNP. A negative weight subtracts what neighbours at that distance predict.

    Parameters
    ----------
    hidden
        Width of the hidden layer.
    alpha, steps
        Teleport probability of the weights that training begins with, and hops K.
    dropout
        On the nonzeros of the features and on the hidden layer.
    penalty
        lambda of lambda / 2 * |W_0|^2.
    normalization
        Of A_hat: the paper's is "sym".

    Examples
    --------
    >>> [weight.shape for weight in GPRGNN(steps=10).weights(n_features=100, n_classes=7)]
    [(100, 64), (1, 64), (64, 7), (1, 7), (1, 11)]
    """

    hidden: int = settings.WIDTH.field()
    alpha: float = settings.ALPHA.field()
    steps: int = settings.STEPS.field()
    dropout: float = settings.GCN_DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    normalization: str = settings.NORMALIZATION.field()

    def weights(self, n_features: int, n_classes: int) -> tuple[Weight, ...]:
        first, second = (n_features, self.hidden), (self.hidden, n_classes)
        return (
            Weight("first", first, self.penalty, fans=first),
            Weight("first_bias", (1, self.hidden)),
            Weight("second", second, fans=second),
            Weight("second_bias", (1, n_classes)),
            Weight("hops", (1, self.steps + 1)),
        )

    def begin(self) -> list[float]:
        """Return the weights of hops with which training begins: they sum to 1.

        >>> GPRGNN(alpha=0.5, steps=2).begin()
        [0.5, 0.25, 0.25]
        """
        return [self.alpha * (1 - self.alpha) ** k for k in range(self.steps)] + [(1 - self.alpha) ** self.steps]

    def bind(self, graph: Graph, kernels: Kernels) -> BoundModel:
        return _BoundGPRGNN(self, graph, kernels)

    def floats_per_node(self, n_classes: int) -> int:
        # The hidden layer and its gradient; all hops, one by one and side by side, or one layout and its gradient.
        return 3 * self.hidden + 2 * (self.steps + 3) * n_classes


@final
class _BoundGPRGNN(BoundModel):
    def __init__(self, model: GPRGNN, graph: Graph, kernels: Kernels) -> None:
        super().__init__(graph, kernels)
        self._model = model
        self._A_hat = kernels.steps(transition_matrix(graph, model.normalization), 0.0, 1)
        self._begin: Tensor | None = None  # (K + 1,), made once, since a capture on a GPU cannot copy it there

    def outputs(self, weights: Sequence[Tensor], masks: DropoutMasks) -> Tensor:
        W_0, b_0, W_1, b_1, w = weights
        draw = masks.draw(self._model.dropout)
        hidden = relu_drop(self.kernels, applied(self._X, W_0, draw) + b_0, 1, draw)
        hops = [linear(self.kernels, hidden, W_1) + b_1]
        for _ in range(self._model.steps):
            hops.append(applied(self._A_hat, hops[-1]))
        side_by_side = torch.stack(hops, dim=-1).flatten(1, 2)  # shape: (R, n c, K + 1)
        if self._begin is None or (self._begin.dtype, self._begin.device) != (w.dtype, w.device):
            self._begin = torch.tensor(self._model.begin(), dtype=w.dtype, device=w.device)
        of_hops = w + self._begin
        return linear(self.kernels, side_by_side, of_hops.mT).reshape(hops[0].shape)
