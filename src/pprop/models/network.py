"""The paper's network f_theta on the runs axis: bias-free layers on sparse features, R weight matrices at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import sparse
from torch import Tensor

from pprop._errors import InputError
from pprop._validate import check_float, check_int, describe, reject
from pprop.graph import Graph
from pprop.kernels import Draw, FeatureProduct, Kernels
from pprop.kernels.random_bits import WEIGHTS, stream, uniform


@final
@dataclass(frozen=True)
class FeatureNetwork:
    """The paper's predictor: ReLU layers without biases, dropout on the input and before the last layer.

    The features of each node are scaled to sum to one in absolute value. Weights start uniform after Glorot.

    Parameters
    ----------
    hidden
        Widths of the hidden layers: ``(64,)`` is the paper's two-layer network, ``()`` a linear one.
    dropout
        Probability of dropping a nonzero of the input, or a hidden unit, in [0, 1).

    Examples
    --------
    >>> FeatureNetwork()
    FeatureNetwork(hidden=(64,), dropout=0.5)
    """

    hidden: tuple[int, ...] = (64,)
    dropout: float = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, tuple):
            reject("hidden", "FeatureNetwork", "a tuple of layer widths", describe(self.hidden))
        for width in self.hidden:
            check_int(width, "hidden", "FeatureNetwork", low=1)
        check_float(self.dropout, "dropout", "FeatureNetwork", "[0, 1)")

    def widths(self, n_features: int, n_classes: int) -> list[int]:
        """Return the widths of all layers, from the features to the classes.

        >>> FeatureNetwork().widths(100, 7)
        [100, 64, 7]
        """
        return [n_features, *self.hidden, n_classes]


def normalized_features(graph: Graph) -> sparse.csr_array:
    """Return the features as a CSR matrix (n, f) in float32 whose rows have 1-norm one; empty rows stay empty.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> graph = Graph.from_scipy(sp.csr_array((2, 2)), features=np.array([[1.0, 3.0], [0.0, 0.0]]))
    >>> normalized_features(graph).toarray()
    array([[0.25, 0.75],
           [0.  , 0.  ]], dtype=float32)
    """
    if graph.features is None:
        raise InputError(
            "The built-in network needs node features, and this graph has none. "
            "Pass features=scipy.sparse.identity(n) to Graph.from_scipy to learn one vector per node."
        )
    if graph.features.ndim != 2:
        raise InputError(
            f"The built-in network needs features of shape (n, f), and this graph has {graph.features.shape}. "
            "Pass a predictor of your own, or reshape them."
        )
    matrix = sparse.csr_array(graph.features).astype(np.float64)
    matrix.eliminate_zeros()
    per_row = np.diff(matrix.indptr)
    # first by the largest entry, so that neither huge nor tiny features overflow on the way
    largest = abs(matrix).max(axis=1).toarray()
    matrix.data /= np.repeat(largest, per_row)
    matrix.data /= np.repeat(np.asarray(abs(matrix).sum(axis=1)), per_row)
    return matrix.astype(np.float32)


def glorot_uniform(widths: Sequence[int], seeds: Tensor, kernels: Kernels | None = None) -> list[Tensor]:
    """Return one weight tensor (R, a, b) per layer, uniform in +- sqrt(6 / (a + b)), a function of the run's seed.

    They are drawn where the seeds are, by a backend or, slowly, by plain torch: the numbers are the same.

    Examples
    --------
    >>> import torch
    >>> [tuple(w.shape) for w in glorot_uniform([10, 4, 2], torch.tensor([1, 2, 3]))]
    [(3, 10, 4), (3, 4, 2)]
    """
    draw = uniform if kernels is None else kernels.uniform
    return [
        draw(seeds, stream(WEIGHTS, layer), a, b, math.sqrt(6.0 / (a + b)))
        for layer, (a, b) in enumerate(itertools.pairwise(widths))
    ]


@final
class RunsNetwork:
    """Forward and backward pass of R networks at once, on a backend's kernels.

    Parameters
    ----------
    kernels
        The backend.
    first
        The first layer, bound to the features.
    weights
        One tensor (R, a, b) per layer.
    """

    def __init__(self, kernels: Kernels, first: FeatureProduct, weights: list[Tensor]) -> None:
        self.weights = weights
        self._kernels, self._first = kernels, first
        self._saved: tuple[list[Tensor], Draw | None] = ([], None)

    def forward(self, draw: Draw | None) -> Tensor:
        """Return the predictions H, shape (R, n, c), and remember what `backward` needs."""
        inputs: list[Tensor] = []
        values = self._first.forward(self.weights[0], draw)
        for layer, weights in enumerate(self.weights[1:], start=1):
            values = self._kernels.activate(values, layer, self._hidden_draw(layer, draw))
            inputs.append(values)
            values = self._kernels.linear(values, weights)
        self._saved = (inputs, draw)
        return values

    def backward(self, gradient: Tensor) -> list[Tensor]:
        """Return the gradient of every layer's weights, for that of H in the last `forward`."""
        inputs, draw = self._saved
        gradients: list[Tensor] = []
        for layer in reversed(range(1, len(self.weights))):
            gradients.append(self._kernels.linear_weight_adjoint(inputs[layer - 1], gradient))
            gradient = self._kernels.linear_input_adjoint(gradient, self.weights[layer])
            gradient = self._kernels.activate_adjoint(gradient, inputs[layer - 1], self._hidden_draw(layer, draw))
        gradients.append(self._first.adjoint(gradient, draw))
        return gradients[::-1]

    def _hidden_draw(self, layer: int, draw: Draw | None) -> Draw | None:
        return draw if layer == len(self.weights) - 1 else None  # dropout before the last layer only
