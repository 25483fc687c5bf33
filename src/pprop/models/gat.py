"""The graph attention network of Velickovic et al., ICLR 2018, with the penalty of its authors' code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import torch
from torch import Tensor

from pprop.graph import Graph, transition_matrix
from pprop.kernels import Draw, EdgeAttention, Kernels
from pprop.models.architecture import Architecture, BoundModel, DropoutMasks
from pprop.models.model import Weight
from pprop.models.operations import applied, drop, elu, linear
from pprop.propagation.gradients import apply_linear
from pprop.settings import GAT_DROPOUT, GAT_PENALTY, HEADS, UNITS


@final
@dataclass(frozen=True)
class GAT(Architecture):
    """Two layers of attention over the neighbours of a node and itself.

    A head with weights W, v, u, b_1, b_2 and b turns H into

        head(H)_i = sum_j a_ij (H W)_j + b,
        a_ij = softmax_j LeakyReLU(v . (H W)_i + b_1 + u . (H W)_j + b_2),

    and the network is Z = head(elu(head_1(X)) || ... || elu(head_K(X))). Every head drops, by masks of its own, from
    its input, from its coefficients a_ij once they are normalised, and from the H W that it sums up, but not from the
    H W that it scores. Edge weights play no part.

    Parameters
    ----------
    heads, units
        Heads of the first layer, and columns of each. The second layer is one head with a column per class.
    dropout
        At the three places above.
    penalty
        lambda of lambda / 2 * |w|^2, for all weights, vectors and biases: the authors' code exempts none.

    Examples
    --------
    >>> [weight.shape for weight in GAT().weights(n_features=100, n_classes=7)]
    [(800, 8), (64, 2), (8, 2), (8, 8), (64, 7), (7, 2), (1, 2), (1, 7)]
    """

    heads: int = HEADS.field()
    units: int = UNITS.field()
    dropout: float = GAT_DROPOUT.field()
    penalty: float = GAT_PENALTY.field()

    def weights(self, n_features: int, n_classes: int) -> tuple[Weight, ...]:
        layers = ((self.heads, n_features, self.units), (1, self.heads * self.units, n_classes))
        return tuple(
            weight
            for layer, (heads, fan_in, fan_out) in enumerate(layers)
            for weight in (
                Weight(f"layer{layer}", (heads * fan_in, fan_out), self.penalty, fans=(fan_in, fan_out)),
                Weight(f"scores{layer}", (heads * fan_out, 2), self.penalty, fans=(fan_out, 1)),  # v and u
                Weight(f"score_biases{layer}", (heads, 2), self.penalty),
                Weight(f"bias{layer}", (heads, fan_out), self.penalty),
            )
        )

    def bind(self, graph: Graph, kernels: Kernels) -> BoundModel:
        return _BoundGAT(self, graph, kernels)

    def branches(self) -> int:
        return self.heads

    def floats_per_node(self, n_classes: int) -> int:
        # Saved: H W and its dropped copy in both layers, the scores, ELU's result, the dropped input of the second layer.
        # On the way back four tensors of the first layer, and per head what the attention knows of a row, in float64.
        hidden = self.heads * self.units
        return 4 * hidden + 2 * self.heads + 3 * n_classes + 2 + 4 * hidden + 14 * self.heads


@final
class _BoundGAT(BoundModel):
    def __init__(self, model: GAT, graph: Graph, kernels: Kernels) -> None:
        super().__init__(graph, kernels)
        self._model = model
        # One for each layer: a backend may keep the random words of the runs that it last saw.
        self._layers = [kernels.attention(transition_matrix(graph)) for _ in range(2)]

    def outputs(self, weights: Sequence[Tensor], masks: DropoutMasks) -> Tensor:
        runs, heads = len(weights[0]), self._model.heads
        # for the kernels a head is a run
        W_0, *first = [weight.reshape(runs * heads, -1, weight.shape[2]) for weight in weights[:4]]
        draw = masks.branches(heads).draw(self._model.dropout)
        hidden = elu(self.kernels, self._attended(0, applied(self._X, W_0, draw), first, draw))
        hidden = hidden.reshape(runs, heads, *hidden.shape[1:]).transpose(1, 2).flatten(2)  # side by side again
        W_1, *second = weights[4:]
        draw = masks.draw(self._model.dropout)
        values = linear(self.kernels, drop(self.kernels, hidden, 1, draw), W_1)
        return self._attended(1, values, second, draw)

    def _attended(self, layer: int, values: Tensor, weights: Sequence[Tensor], draw: Draw | None) -> Tensor:
        """Return attention and bias of H W, (heads, n, d), given vectors (heads, d, 2) and biases (heads, 1, 2 or d)."""
        vectors, score_biases, bias = weights
        scores = _add_row(self.kernels, linear(self.kernels, values, vectors), score_biases)
        dropped = drop(self.kernels, values, 2 + layer, draw)
        attended = cast("Tensor", _Attend.apply(dropped, *scores.unbind(-1), self._layers[layer], draw))
        return _add_row(self.kernels, attended, bias)


def _add_row(kernels: Kernels, values: Tensor, row: Tensor) -> Tensor:
    """Return values (R, n, h) with one row (R, 1, h) added to all; the sum over nodes on the way back is a kernel's."""

    def repeated(row: Tensor) -> Tensor:
        return row.expand_as(values)

    def summed(gradient: Tensor) -> Tensor:
        return kernels.linear_weight_adjoint(gradient.new_ones(*gradient.shape[:2], 1), gradient.contiguous())

    return values + apply_linear(row, repeated, summed)


@final
class _Attend(torch.autograd.Function):
    """sum_j drop(a_ij) values_j of values (R, n, d), given the left and right scores of a_ij, both (R, n)."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, left: Tensor, right: Tensor, attention: EdgeAttention, draw: Any) -> Tensor:
        values, left, right = values.contiguous(), left.contiguous(), right.contiguous()
        ctx.save_for_backward(values, left, right)
        ctx.attention, ctx.draw = attention, draw
        return attention.forward(values, left, right, draw)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return *ctx.attention.adjoint(gradients[0].contiguous(), *ctx.saved_tensors, ctx.draw), None, None
