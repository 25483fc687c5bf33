"""The network of graph convolutional networks (N-GCN) of Abu-El-Haija et al., 2018, with attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from pprop.graph import Graph, transition_matrix
from pprop.kernels import Draw, Kernels
from pprop.models.architecture import Architecture, BoundModel, DropoutMasks
from pprop.models.network import Weight
from pprop.models.operations import feature_product, linear, power_steps, relu_drop, softmax
from pprop.settings import GCN_DROPOUT, NGCN_PENALTY, NGCN_WIDTH, POWERS, REPLICAS


@final
@dataclass(frozen=True)
class NGCN(Architecture):
    """Towers that see the graph at several distances, mixed by attention.

        P_t = softmax(A_hat^k relu(A_hat^k X W_0t) W_1t),   P = sum_t softmax(a)_t P_t

    Each power k = 0, 1, ... has several towers t with weights of their own; k = 0 is a network without a graph. The loss
    is the negative log likelihood of P.

    Parameters
    ----------
    hidden
        Width of each tower's hidden layer.
    powers
        How many powers of A_hat, from k = 0.
    replicas
        Towers per power.
    dropout
        On the nonzeros of the features and on the hidden layer, a mask for each tower.
    penalty
        lambda of lambda / 2 * |W|^2 for the matrices W_0t and W_1t; the scalars a are free.

    Examples
    --------
    >>> [(weight.name, weight.shape) for weight in NGCN().weights(n_features=100, n_classes=7)]
    [('first', (2000, 16)), ('second', (320, 7)), ('attention', (1, 20))]
    """

    hidden: int = NGCN_WIDTH.field()
    powers: int = POWERS.field()
    replicas: int = REPLICAS.field()
    dropout: float = GCN_DROPOUT.field()
    penalty: float = NGCN_PENALTY.field()

    def weights(self, n_features: int, n_classes: int) -> tuple[Weight, ...]:
        towers = self.powers * self.replicas  # one above the other, by power
        return (
            Weight("first", (towers * n_features, self.hidden), self.penalty, fans=(n_features, self.hidden)),
            Weight("second", (towers * self.hidden, n_classes), self.penalty, fans=(self.hidden, n_classes)),
            Weight("attention", (1, towers)),
        )

    def bind(self, graph: Graph, kernels: Kernels) -> BoundModel:
        return _BoundNGCN(self, graph, kernels)

    def branches(self) -> int:
        return self.powers * self.replicas

    def floats_per_node(self, n_classes: int) -> int:
        # Saved: every tower's hidden layer and probabilities. Beside them the probabilities of all in one tensor, in two
        # layouts, on the way back their gradients; and what the towers of one power need for themselves.
        towers = self.powers * self.replicas
        return towers * (self.hidden + 3 * n_classes) + 3 * self.replicas * (self.hidden + n_classes)


@final
class _BoundNGCN(BoundModel):
    def __init__(self, model: NGCN, graph: Graph, kernels: Kernels) -> None:
        super().__init__(graph, kernels)
        self._model = model
        A_hat = transition_matrix(graph)
        self._A_hat_to = [kernels.steps(A_hat, 0.0, power) for power in range(model.powers)]

    def outputs(self, weights: Sequence[Tensor], masks: DropoutMasks) -> Tensor:
        """Return the mixed probabilities P."""
        model = self._model
        first, second = (self._by_power(matrix) for matrix in weights[:2])
        found = [
            self._towers(power, W_0, W_1, masks.branches(model.replicas, layer=power).draw(model.dropout))
            for power, (W_0, W_1) in enumerate(zip(first, second, strict=True))
        ]
        return self._mixed(torch.cat(found, dim=1), softmax(self.kernels, weights[2]))

    def _by_power(self, matrix: Tensor) -> list[Tensor]:
        """Divide weights (R, towers a, b) into one tensor (R replicas, a, b) per power: to the kernels a tower is a run."""
        model = self._model
        runs, rows, width = matrix.shape
        a = rows // (model.powers * model.replicas)
        parts = matrix.reshape(runs, model.powers, model.replicas, a, width).unbind(1)
        return [part.reshape(runs * model.replicas, a, width) for part in parts]

    def _towers(self, power: int, W_0: Tensor, W_1: Tensor, draw: Draw | None) -> Tensor:
        """Return the probabilities of one power's towers, (R, replicas, n, c)."""
        A_hat_k = self._A_hat_to[power]
        hidden = relu_drop(self.kernels, power_steps(A_hat_k, feature_product(self._X, W_0, draw)), 1, draw)
        P = softmax(self.kernels, power_steps(A_hat_k, linear(self.kernels, hidden, W_1)))
        return P.reshape(-1, self._model.replicas, *P.shape[1:])

    def _mixed(self, P: Tensor, a: Tensor) -> Tensor:
        """Return sum_t a_t P_t from P (R, T, n, c) and a (R, 1, T): a product, whose sums the kernels make in order."""
        runs, _, n, c = P.shape
        side_by_side = P.flatten(2).mT.contiguous()  # shape: (R, n c, T)
        return linear(self.kernels, side_by_side, a.mT).reshape(runs, n, c)

    def loss(self, outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.kernels.likelihood(outputs, labels)

    def logits(self, outputs: Tensor) -> Tensor:
        # In double precision, because the last bit of torch's logarithm depends on where in the tensor a number stands.
        return outputs.double().clamp(min=torch.finfo(outputs.dtype).tiny).log().to(outputs.dtype)
