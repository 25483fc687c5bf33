"""Graph convolutional networks: GCN, and the two that are made of it, N-GCN and JK.

References
----------
GCN: Kipf and Welling, "Semi-supervised classification with graph convolutional networks", ICLR 2017.
N-GCN: Abu-El-Haija, Kapoor, Perozzi and Lee, "N-GCN: multi-scale graph convolution for semi-supervised node
classification", 2018, with attention.
JK: Xu et al., "Representation learning on graphs with jumping knowledge networks", ICML 2018, with concatenation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from pprop import settings
from pprop.graph import Graph, transition_matrix
from pprop.kernels import Draw, Kernels
from pprop.models.architecture import Architecture, BoundModel, DropoutMasks
from pprop.models.model import Weight
from pprop.models.operations import applied, drop, linear, relu_drop, softmax


@final
@dataclass(frozen=True)
class GCN(Architecture):
    """Two layers, each followed by one step over the graph.

        Z = A_hat relu(A_hat X W_0) W_1

    The defaults are the paper's optimised GCN; ``GCN(hidden=16, matrix_dropout=0.0, penalty=5e-4)``, stopped by
    ``Stopping(10, 200, "loss")``, is its vanilla one.

    Parameters
    ----------
    hidden
        Width of the hidden layer.
    dropout
        On the nonzeros of the features and on the hidden layer.
    matrix_dropout
        On the entries of A_hat, afresh in each layer.
    penalty
        lambda of lambda / 2 * |W_0|^2.

    Examples
    --------
    >>> [weight.shape for weight in GCN().weights(n_features=100, n_classes=7)]
    [(100, 64), (64, 7)]
    """

    hidden: int = settings.WIDTH.field()
    dropout: float = settings.GCN_DROPOUT.field()
    matrix_dropout: float = settings.MATRIX_DROPOUT.field()
    penalty: float = settings.GCN_PENALTY.field()

    def weights(self, n_features: int, n_classes: int) -> tuple[Weight, ...]:
        first, second = (n_features, self.hidden), (self.hidden, n_classes)
        return Weight("first", first, self.penalty, fans=first), Weight("second", second, fans=second)

    def bind(self, graph: Graph, kernels: Kernels) -> BoundModel:
        return _BoundGCN(self, graph, kernels)

    def floats_per_node(self, n_classes: int) -> int:
        return 4 * self.hidden + 4 * n_classes


@final
class _BoundGCN(BoundModel):
    def __init__(self, model: GCN, graph: Graph, kernels: Kernels) -> None:
        super().__init__(graph, kernels)
        self._model = model
        self._A_hat = kernels.steps(transition_matrix(graph), 0.0, 1)

    def outputs(self, weights: Sequence[Tensor], masks: DropoutMasks) -> Tensor:
        model = self._model
        W_0, W_1 = weights
        hidden = applied(self._X, W_0, masks.draw(model.dropout))
        hidden = applied(self._A_hat, hidden, masks.step(model.matrix_dropout, 0, of=2))
        hidden = relu_drop(self.kernels, hidden, 1, masks.draw(model.dropout))
        outputs = linear(self.kernels, hidden, W_1)
        return applied(self._A_hat, outputs, masks.step(model.matrix_dropout, 1, of=2))


@final
@dataclass(frozen=True)
class JK(Architecture):
    """Layers of a graph convolutional network, all of which the last layer sees.

        H_1 = relu(A_hat X W_0),   H_l = relu(A_hat H_(l-1) W_(l-1)),   Z = [H_1 | ... | H_L] W_L

    Nothing is propagated after the last product.

    Parameters
    ----------
    hidden
        Width of each convolution.
    layers
        Convolutions L. The paper's three layers are two of them and the last product (docs/study.md).
    dropout
        On the nonzeros of the features, on what a convolution gets from the one before, and on the concatenation.
    penalty
        lambda of lambda / 2 * |W|^2 for every matrix.

    Examples
    --------
    >>> [weight.shape for weight in JK().weights(n_features=100, n_classes=7)]
    [(100, 64), (64, 64), (128, 7)]
    """

    hidden: int = settings.JK_WIDTH.field()
    layers: int = settings.LAYERS.field()
    dropout: float = settings.JK_DROPOUT.field()
    penalty: float = settings.JK_PENALTY.field()

    def weights(self, n_features: int, n_classes: int) -> tuple[Weight, ...]:
        inner = [(self.hidden, self.hidden)] * (self.layers - 1)
        shapes = [(n_features, self.hidden), *inner, (self.layers * self.hidden, n_classes)]
        return tuple(Weight(f"layer{at}", shape, self.penalty, fans=shape) for at, shape in enumerate(shapes))

    def bind(self, graph: Graph, kernels: Kernels) -> BoundModel:
        return _BoundJK(self, graph, kernels)

    def floats_per_node(self, n_classes: int) -> int:
        # Saved: H_1 to H_L and the dropped copies between them. Beside them the concatenation before and after its mask,
        # on the way back its gradient; and what a convolution needs for itself.
        return (4 * self.layers + 1) * self.hidden + 4 * n_classes


@final
class _BoundJK(BoundModel):
    def __init__(self, model: JK, graph: Graph, kernels: Kernels) -> None:
        super().__init__(graph, kernels)
        self._dropout = model.dropout
        self._A_hat = kernels.steps(transition_matrix(graph), 0.0, 1)

    def outputs(self, weights: Sequence[Tensor], masks: DropoutMasks) -> Tensor:
        W_0, *inner, W_L = weights
        draw = masks.draw(self._dropout)
        seen = [self._convolved(applied(self._X, W_0, draw))]  # H_1, H_2, ...
        for layer, W in enumerate(inner, start=1):
            before = drop(self.kernels, seen[-1], layer, draw)
            seen.append(self._convolved(linear(self.kernels, before, W)))
        together = drop(self.kernels, torch.cat(seen, dim=-1), len(seen), draw)
        return linear(self.kernels, together, W_L)

    def _convolved(self, values: Tensor) -> Tensor:
        """Return relu(A_hat V); nothing is dropped yet, because the concatenation has a mask of its own."""
        return relu_drop(self.kernels, applied(self._A_hat, values), 0, None)


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

    hidden: int = settings.NGCN_WIDTH.field()
    powers: int = settings.POWERS.field()
    replicas: int = settings.REPLICAS.field()
    dropout: float = settings.GCN_DROPOUT.field()
    penalty: float = settings.NGCN_PENALTY.field()

    def weights(self, n_features: int, n_classes: int) -> tuple[Weight, ...]:
        towers = self.powers * self.replicas  # one above the other, by power
        return (
            Weight("first", (towers * n_features, self.hidden), self.penalty, fans=(n_features, self.hidden)),
            Weight("second", (towers * self.hidden, n_classes), self.penalty, fans=(self.hidden, n_classes)),
            Weight("attention", (1, towers)),
        )

    @property
    def probabilities(self) -> bool:
        return True

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
        hidden = relu_drop(self.kernels, applied(A_hat_k, applied(self._X, W_0, draw)), 1, draw)
        P = softmax(self.kernels, applied(A_hat_k, linear(self.kernels, hidden, W_1)))
        return P.reshape(-1, self._model.replicas, *P.shape[1:])

    def _mixed(self, P: Tensor, a: Tensor) -> Tensor:
        """Return sum_t a_t P_t from P (R, T, n, c) and a (R, 1, T): a product, whose sums the kernels make in order."""
        runs, _, n, c = P.shape
        side_by_side = P.flatten(2).mT.contiguous()  # shape: (R, n c, T)
        return linear(self.kernels, side_by_side, a.mT).reshape(runs, n, c)

    def loss(self, outputs: Tensor, labels: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        return self.kernels.likelihood(outputs, labels, weights)

    def logits(self, outputs: Tensor) -> Tensor:
        # In double precision, because the last bit of torch's logarithm depends on where in the tensor a number stands.
        return outputs.double().clamp(min=torch.finfo(outputs.dtype).tiny).log().to(outputs.dtype)
