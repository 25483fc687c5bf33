"""The graph convolutional network of Kipf and Welling, ICLR 2017."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from torch import Tensor

from pprop.graph import Graph, transition_matrix
from pprop.kernels import Kernels
from pprop.models.architecture import Architecture, BoundModel, DropoutMasks
from pprop.models.network import Weight
from pprop.models.operations import feature_product, linear, power_steps, relu_drop
from pprop.settings import GCN_DROPOUT, GCN_PENALTY, MATRIX_DROPOUT, WIDTH


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

    hidden: int = WIDTH.field()
    dropout: float = GCN_DROPOUT.field()
    matrix_dropout: float = MATRIX_DROPOUT.field()
    penalty: float = GCN_PENALTY.field()

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
        hidden = feature_product(self._X, W_0, masks.draw(model.dropout))
        hidden = power_steps(self._A_hat, hidden, masks.step(model.matrix_dropout, 0, of=2))
        hidden = relu_drop(self.kernels, hidden, 1, masks.draw(model.dropout))
        outputs = linear(self.kernels, hidden, W_1)
        return power_steps(self._A_hat, outputs, masks.step(model.matrix_dropout, 1, of=2))
