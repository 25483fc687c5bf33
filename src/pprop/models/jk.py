"""The jumping knowledge network of Xu et al., ICML 2018, with concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from pprop.graph import Graph, transition_matrix
from pprop.kernels import Kernels
from pprop.models.architecture import Architecture, BoundModel, DropoutMasks
from pprop.models.network import Weight
from pprop.models.operations import drop, feature_product, linear, power_steps, relu_drop
from pprop.settings import JK_DROPOUT, JK_PENALTY, JK_WIDTH, LAYERS


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

    hidden: int = JK_WIDTH.field()
    layers: int = LAYERS.field()
    dropout: float = JK_DROPOUT.field()
    penalty: float = JK_PENALTY.field()

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
        seen = [self._convolved(feature_product(self._X, W_0, draw))]  # H_1, H_2, ...
        for layer, W in enumerate(inner, start=1):
            before = drop(self.kernels, seen[-1], layer, draw)
            seen.append(self._convolved(linear(self.kernels, before, W)))
        together = drop(self.kernels, torch.cat(seen, dim=-1), len(seen), draw)
        return linear(self.kernels, together, W_L)

    def _convolved(self, values: Tensor) -> Tensor:
        """Return relu(A_hat V); nothing is dropped yet, because the concatenation has a mask of its own."""
        return relu_drop(self.kernels, power_steps(self._A_hat, values), 0, None)
