"""A residual graph network that may see labels: for graphs whose neighbours differ, and with many labels.

References
----------
Residual blocks with normalisation: Platonov, Kuznedelev, Diskin, Babenko and Prokhorenkova, "A critical look at the
evaluation of GNNs under heterophily", ICLR 2023; Luo, Shi and Wu, "Classic GNNs are strong baselines", NeurIPS 2024.
Labels as inputs, hidden from half of the training nodes at random: Shi et al., "Masked label prediction", IJCAI 2021.
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
from pprop.kernels.contract import LabelledNodes
from pprop.models.architecture import Architecture, BoundModel, DropoutMasks
from pprop.models.model import Weight
from pprop.models.operations import applied, drop, linear, mean_of_nodes, relu_drop

# Added to a variance, so that a column that is the same for all nodes stays finite.
EPSILON = 1e-5
# The share of the training labels that an epoch hides, and learns from.
HIDDEN = 0.5


@final
@dataclass(frozen=True)
class ResidualGNN(Architecture):
    """Layers that add to what is there: a node's own values and the mean of its neighbours', each with weights of its own.

        H_0 = drop(X W + Y V),   N_l = norm(H_l),   M the mean over neighbours
        H_(l+1) = H_l + drop(relu(N_l W_l + M N_l U_l + b_l)),   Z = norm(H_L) W_L + b_L

    norm centres and scales each column over all nodes. Y holds the training labels: in every epoch a random half of the
    training nodes shows its label, and the loss is on the other half; all are shown for predictions. A validation or test
    label never is.

    Parameters
    ----------
    hidden
        Width of every layer.
    layers
        How many there are, L.
    dropout
        On the nonzeros of the features, on H_0 and on what each layer adds.
    penalty
        lambda of lambda / 2 * |W|^2 for the matrices.
    label_inputs
        Whether training labels are inputs.

    Examples
    --------
    >>> [weight.name for weight in ResidualGNN(layers=1, label_inputs=True).weights(n_features=100, n_classes=7)]
    ['first', 'shown', 'gain0', 'offset0', 'own0', 'neighbours0', 'shift0', 'gain', 'offset', 'last', 'last_shift']
    """

    hidden: int = settings.RESIDUAL_WIDTH.field()
    layers: int = settings.RESIDUAL_LAYERS.field()
    dropout: float = settings.RESIDUAL_DROPOUT.field()
    penalty: float = settings.RESIDUAL_PENALTY.field()
    label_inputs: bool = settings.LABELS_AS_INPUTS.field()

    @property
    def sees_labels(self) -> bool:
        return self.label_inputs

    def weights(self, n_features: int, n_classes: int) -> tuple[Weight, ...]:
        h, penalty = self.hidden, self.penalty
        square, first, last = (h, h), (n_features, h), (h, n_classes)
        shown = [Weight("shown", (n_classes, h), penalty, fans=(n_classes, h))] if self.label_inputs else []
        layers = [
            weight
            for at in range(self.layers)
            for weight in (
                Weight(f"gain{at}", (1, h)),
                Weight(f"offset{at}", (1, h)),
                Weight(f"own{at}", square, penalty, fans=(2 * h, h)),
                Weight(f"neighbours{at}", square, penalty, fans=(2 * h, h)),
                Weight(f"shift{at}", (1, h)),
            )
        ]
        return (
            Weight("first", first, penalty, fans=first),
            *shown,
            *layers,
            Weight("gain", (1, h)),
            Weight("offset", (1, h)),
            Weight("last", last, penalty, fans=last),
            Weight("last_shift", (1, n_classes)),
        )

    def bind(self, graph: Graph, kernels: Kernels) -> BoundModel:
        return _BoundResidual(self, graph, kernels)

    def floats_per_node(self, n_classes: int) -> int:
        # Saved of every layer: the centred values, what follows of them, the result of ReLU and the sum. Beside them what
        # goes in and comes out, and on the way back the gradients of one layer.
        return (4 * self.layers + 5) * self.hidden + 4 * n_classes


@final
class _BoundResidual(BoundModel):
    def __init__(self, model: ResidualGNN, graph: Graph, kernels: Kernels) -> None:
        super().__init__(graph, kernels)
        self._model = model
        self._mean = kernels.steps(transition_matrix(graph, "row", self_loops=False), 0.0, 1)
        self._shown: Tensor | None = None  # the labels (1, n, c), a row of zeros where there is none to show
        self._to_hide: Tensor | None = None  # (1, n, 1)

    def show(self, labels: Tensor, n_classes: int) -> None:
        codes = torch.arange(n_classes, device=labels.device)
        self._shown = (labels[:, None] == codes).to(torch.float32)[None]
        self._to_hide = (labels >= 0).to(torch.float32)[None, :, None]

    def outputs(self, weights: Sequence[Tensor], masks: DropoutMasks) -> Tensor:
        model, kernels = self._model, self.kernels
        rest = iter(weights)
        draw = masks.draw(model.dropout)
        values = applied(self._X, next(rest), draw)
        if model.label_inputs:
            shown = self._labels(masks, len(weights[0]))
            values = values + linear(kernels, shown.to(values.dtype), next(rest))
        values = drop(kernels, values, 1, draw)
        for layer in range(model.layers):
            level = self._normed(values, next(rest), next(rest))
            added = linear(kernels, level, next(rest))
            added += applied(self._mean, linear(kernels, level, next(rest)))
            added += next(rest)
            values = values + relu_drop(kernels, added, 2 + layer, draw)
        return linear(kernels, self._normed(values, next(rest), next(rest)), next(rest)) + next(rest)

    def counted(self, nodes: LabelledNodes, masks: DropoutMasks) -> Tensor | None:
        """Return the weights of training nodes whose labels are hidden in this epoch; those that are shown weigh nothing."""
        if not self._model.label_inputs:
            return nodes.weights
        run = torch.arange(len(nodes.nodes), device=nodes.nodes.device)[:, None]
        hidden = 1.0 - self._visible(masks, len(nodes.nodes))[run, nodes.nodes, 0]
        known = (nodes.labels >= 0).to(torch.float32)
        weights = known if nodes.weights is None else nodes.weights * known
        some = weights * hidden
        # where the epoch hides nothing, all count
        return torch.where(some.sum(dim=1, keepdim=True) > 0, some, weights)

    def _labels(self, masks: DropoutMasks, runs: int) -> Tensor:
        """Return the labels that are shown, (R, n, c)."""
        assert self._shown is not None, "a model that sees labels is shown them before it computes"
        if masks.draw(HIDDEN) is None:
            return self._shown.expand(runs, -1, -1)
        return self._shown * self._visible(masks, runs)

    def _visible(self, masks: DropoutMasks, runs: int) -> Tensor:
        """Return 1 for nodes whose label this epoch may show, and 0 for the others, (R, n, 1)."""
        assert self._to_hide is not None
        ones = torch.ones(runs, *self._to_hide.shape[1:], device=self._to_hide.device)
        kept = self.kernels.drop(ones, 2 + self._model.layers, masks.draw(HIDDEN))
        return (kept > 0).to(torch.float32)

    def _normed(self, values: Tensor, gain: Tensor, offset: Tensor) -> Tensor:
        """Return the columns of (R, n, h) centred and scaled over the nodes, then with 1 + gain and an offset of their own."""
        centred = values - mean_of_nodes(self.kernels, values)
        spread = mean_of_nodes(self.kernels, centred * centred)
        scaled = centred * ((spread + EPSILON).rsqrt() * (1.0 + gain))
        scaled += offset
        return scaled
