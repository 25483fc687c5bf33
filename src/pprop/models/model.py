"""A model is a predictor and a propagation. PPNP, APPNP and the plain network differ in the propagation alone.

The paper's predictor f_theta is computed on the runs axis: layers on sparse or dense features, R weight matrices at once,
biases if wanted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final
from weakref import WeakValueDictionary

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from pprop._errors import InputError, Remedy
from pprop._validate import describe, reject
from pprop.graph import Graph
from pprop.graph.features.scaling import DenseRows, is_full
from pprop.kernels import Draw, FeatureProduct, Kernels
from pprop.kernels.contract import FeatureMatrix
from pprop.kernels.draws import uniform
from pprop.kernels.random_bits import WEIGHTS, stream
from pprop.propagation import Exact, PowerIteration, PPROperator, RowSolver, Solver
from pprop.settings import (
    ALPHA,
    BLOCK_NODES,
    DROPOUT,
    FIRST_LAYER,
    HIDDEN,
    MIXED_PRECISION,
    NETWORK_BIAS,
    NORMALIZATION,
    PENALTY,
    SELF_LOOPS,
    STEPS,
    WIDTH,
    check_fields,
)


@final
@dataclass(frozen=True)
class Weight:
    """One weight matrix of a model.

    Attributes
    ----------
    name
        For people and files.
    shape
        (a, b); a vector has a = 1, and the matrices of several heads stand one above the other.
    penalty
        lambda of its lambda / 2 * |W|^2 in the loss.
    fans
        Inputs and outputs for Glorot's start in +- sqrt(6 / (in + out)); None starts at zero.

    Examples
    --------
    >>> Weight("first", (100, 64), penalty=0.02, fans=(100, 64)).shape
    (100, 64)
    """

    name: str
    shape: tuple[int, int]
    penalty: float = 0.0
    fans: tuple[int, int] | None = None


@final
@dataclass(frozen=True)
class FeatureNetwork:
    """The paper's predictor: ReLU layers, dropout on the input and before the last layer; the paper's has no biases.

    The features are scaled first, see `Graph.scaled`. Weights start uniform after Glorot, biases at
    zero.

    Parameters
    ----------
    hidden
        Widths of the hidden layers: ``(64,)`` is the paper's two-layer network, ``()`` a linear one.
    dropout
        Probability of dropping a nonzero of the input, or a hidden unit, in [0, 1).
    bias
        Whether every layer adds a bias, X W + b, which is never dropped and has no penalty.
    first_layer
        Whether it reads the features by their nonzeros, ``"sparse"``, or by whole rows, ``"dense"``; ``"auto"``: see
        `network_inputs`.

    Examples
    --------
    >>> FeatureNetwork()
    FeatureNetwork(hidden=(64,), dropout=0.5, bias=False, first_layer='auto')
    """

    hidden: tuple[int, ...] = (WIDTH.default,)
    dropout: float = DROPOUT.field()
    bias: bool = NETWORK_BIAS.field()
    first_layer: str = FIRST_LAYER.field()

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, tuple):
            reject("hidden", "FeatureNetwork", "a tuple of layer widths", describe(self.hidden))
        for width in self.hidden:
            WIDTH.check(width, "FeatureNetwork")
        check_fields(self, "FeatureNetwork")

    def widths(self, n_features: int, n_classes: int) -> list[int]:
        """Return the widths of all layers, from the features to the classes.

        >>> FeatureNetwork().widths(100, 7)
        [100, 64, 7]
        """
        return [n_features, *self.hidden, n_classes]

    def weights(self, n_features: int, n_classes: int, penalty: float = 0.0) -> tuple[Weight, ...]:
        """Return the weights of all layers, then their biases; the penalty is on the first layer.

        >>> [weight.name for weight in FeatureNetwork(bias=True).weights(100, 7)]
        ['layer0', 'layer1', 'bias0', 'bias1']
        """
        shapes = list(itertools.pairwise(self.widths(n_features, n_classes)))
        layers = [Weight(f"layer{at}", shape, 0.0 if at else penalty, fans=shape) for at, shape in enumerate(shapes)]
        biases = [Weight(f"bias{at}", (1, shape[1])) for at, shape in enumerate(shapes)] if self.bias else []
        return (*layers, *biases)


def network_inputs(graph: Graph, first_layer: str = FIRST_LAYER.default) -> FeatureMatrix:
    """Return the features as the first layer reads them, shape (n, f), float32, scaled if they are not yet.

    With ``"auto"`` a matrix of which at most a quarter is not zero is read by its nonzeros, a CSR matrix; one that is fuller
    as a whole, by its rows. This depends on the matrix alone, not on how it is stored. What had to be copied for it is
    found again as long as it is in use.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> graph = Graph.from_scipy(sp.csr_array((2, 2)), features=sp.csr_array([[1.0, 3.0], [0.0, 0.0]]))
    >>> network_inputs(graph).toarray()
    array([[0.25, 0.75],
           [0.  , 0.  ]], dtype=float32)
    """
    shape = graph.feature_shape
    if shape is None:
        raise InputError(
            "The built-in network needs node features, and this graph has none.",
            remedies=[
                Remedy(
                    "graph.with_structure('degree') makes some of the graph itself, and LabelPropagationClassifier needs none.",
                    shell="--structure degree makes some of the graph itself, and --model label-propagation needs none.",
                )
            ],
        )
    if len(shape) != 2:
        raise InputError(
            f"The built-in network needs features of shape (n, f), and this graph has {shape}. "
            "Pass a predictor of your own, or reshape them."
        )
    if shape[1] == 0:
        raise InputError(
            f"The built-in network needs at least one feature, and the features of this graph have the shape {shape}. "
            "graph.with_structure('degree', replace=True) makes some of the graph itself."
        )
    scaled = graph.scaled()
    used: WeakValueDictionary[str, FeatureMatrix] = vars(scaled).setdefault("_network_inputs", WeakValueDictionary())
    found = used.get(first_layer)
    if found is None:
        found = used[first_layer] = _read(scaled.network_rows(), first_layer)
    return found


def _read(features: FeatureMatrix, first_layer: str) -> FeatureMatrix:
    full = features.full if isinstance(features, DenseRows) else is_full(features)
    dense = full if first_layer == "auto" else first_layer == "dense"
    if isinstance(features, DenseRows):
        return features if dense else _nonzeros(features)
    features = features.astype(np.float32, copy=False)
    return DenseRows(features.toarray()) if dense else features


def _nonzeros(rows: DenseRows) -> sparse.csr_array:
    parts = [sparse.csr_array(part) for _, part in rows.blocks()]
    return sparse.csr_array(sparse.vstack(parts, format="csr"))


def initial_weights(weights: Sequence[Weight], seeds: Tensor, kernels: Kernels | None = None) -> list[Tensor]:
    """Return one tensor (R, a, b) per weight: uniform in +- sqrt(6 / (in + out)) after Glorot, or zeros.

    They are a function of the run's seed, drawn where the seeds are, by a backend or, slowly, by plain torch: the numbers
    are the same.

    Examples
    --------
    >>> start = initial_weights([Weight("W", (5, 4), fans=(5, 4)), Weight("b", (1, 4))], torch.tensor([3]))
    >>> [tuple(tensor.shape) for tensor in start], float(start[1].abs().max())
    ([(1, 5, 4), (1, 1, 4)], 0.0)
    """
    draw = uniform if kernels is None else kernels.uniform
    return [
        torch.zeros(len(seeds), *weight.shape, device=seeds.device)
        if weight.fans is None
        else draw(seeds, stream(WEIGHTS, layer), *weight.shape, math.sqrt(6.0 / sum(weight.fans)))
        for layer, weight in enumerate(weights)
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
        One tensor (R, a, b) per layer, then with `bias` one tensor (R, 1, b) per layer.
    bias
        Whether there are biases.
    """

    def __init__(self, kernels: Kernels, first: FeatureProduct, weights: list[Tensor], *, bias: bool) -> None:
        layers = len(weights) // 2 if bias else len(weights)
        self.weights, self._biases = weights[:layers], weights[layers:]
        self._kernels, self._first = kernels, first
        self._saved: tuple[list[Tensor], Draw | None] = ([], None)

    def forward(self, draw: Draw | None) -> Tensor:
        """Return the predictions H, shape (R, n, c), and remember what `backward` needs."""
        inputs: list[Tensor] = []
        values = self._shifted(self._first.forward(self.weights[0], draw), 0)
        for layer, weights in enumerate(self.weights[1:], start=1):
            values = self._kernels.activate(values, layer, self._hidden_draw(layer, draw))
            inputs.append(values)
            values = self._shifted(self._kernels.linear(values, weights), layer)
        self._saved = (inputs, draw)
        return values

    def backward(self, gradient: Tensor) -> list[Tensor]:
        """Return the gradient of every layer's weights, then of the biases, for that of H in the last `forward`."""
        inputs, draw = self._saved
        gradients: list[Tensor] = []
        shifts: list[Tensor] = []
        for layer in reversed(range(1, len(self.weights))):
            shifts += self._summed(gradient)
            gradients.append(self._kernels.linear_weight_adjoint(inputs[layer - 1], gradient))
            gradient = self._kernels.linear_input_adjoint(gradient, self.weights[layer])
            gradient = self._kernels.activate_adjoint(gradient, inputs[layer - 1], self._hidden_draw(layer, draw))
        shifts += self._summed(gradient)
        gradients.append(self._first.adjoint(gradient, draw))
        return gradients[::-1] + shifts[::-1]

    def _shifted(self, values: Tensor, layer: int) -> Tensor:
        return values.add_(self._biases[layer]) if self._biases else values

    def _summed(self, gradient: Tensor) -> list[Tensor]:
        """Return the gradient of a bias, the sum over nodes, (R, n, b) to (R, 1, b); nothing without biases.

        The kernels make it: the order of torch's own sums depends on the batch.
        """
        if not self._biases:
            return []
        ones = gradient.new_ones(len(gradient), gradient.shape[1], 1)
        return [self._kernels.linear_weight_adjoint(ones, gradient)]

    def _hidden_draw(self, layer: int, draw: Draw | None) -> Draw | None:
        return draw if layer == len(self.weights) - 1 else None  # dropout before the last layer only


# The paper's network; or a module, copied for every run with the weights it has; or a function that makes one.
Predictor = FeatureNetwork | nn.Module | Callable[[], nn.Module]


@final
@dataclass(frozen=True)
class PropagationSettings:
    """How a model propagates: the arguments of `propagate` and the dropout on the propagation matrix.

    Examples
    --------
    >>> PropagationSettings().solver
    PowerIteration(steps=10)
    """

    alpha: float = ALPHA.default  # checked by the solver, which says whether it may be 0
    solver: Solver = PowerIteration()
    dropout: float = DROPOUT.field()
    normalization: str = NORMALIZATION.field()
    self_loops: bool = SELF_LOOPS.field()

    def __post_init__(self) -> None:
        name, expected = "PropagationSettings", "PowerIteration(steps), Exact() or Limit()"
        if not isinstance(self.solver, PowerIteration | RowSolver):  # training drops entries of steps or of rows
            remedy = "Use SolvedPPNP(solver=...) or a module with a Propagation(solver=...) of its own."
            given = isinstance(self.solver, Solver)
            reject("solver", name, expected, describe(self.solver), remedy=remedy if given else "")
        self.solver.check_alpha(self.alpha, name)
        check_fields(self, name)

    def operator(self, graph: Graph) -> PPROperator:
        """Return the PPR operator of a graph with these settings."""
        return PPROperator(graph, self.alpha, self.normalization, self.self_loops)


@final
@dataclass(frozen=True)
class Model:
    """A predictor f_theta, a propagation, and the penalty of the loss.

    Attributes
    ----------
    predictor
        The paper's network, a torch module, or a function without arguments that makes a module.
    propagation
        None for a network without propagation.
    penalty
        lambda of lambda / 2 * |W|^2, W the weights of the first layer.
    mixed_precision, block_nodes
        How a module is computed: with ``torch.autocast`` in bfloat16, and for how many nodes at a time (None: all).

    Examples
    --------
    >>> APPNP(alpha=0.2).propagation.alpha
    0.2
    """

    predictor: Predictor
    propagation: PropagationSettings | None
    penalty: float = PENALTY.field()
    mixed_precision: bool = MIXED_PRECISION.field()
    block_nodes: int | None = BLOCK_NODES.field()

    def __post_init__(self) -> None:
        if not isinstance(self.predictor, FeatureNetwork) and not callable(self.predictor):
            expected = "a FeatureNetwork, an nn.Module or a function that makes one"
            reject("predictor", "Model", expected, describe(self.predictor))
        if self.propagation is not None and not isinstance(self.propagation, PropagationSettings):
            reject("propagation", "Model", "PropagationSettings or None", describe(self.propagation))
        check_fields(self, "Model")
        if isinstance(self.predictor, FeatureNetwork):
            for setting in (MIXED_PRECISION, BLOCK_NODES):
                value = getattr(self, setting.name)
                if value != setting.default:
                    expected, remedy = f"{setting.default} for the built-in network", "It is for a predictor=... only."
                    reject(setting.name, "Model", expected, describe(value), remedy=remedy)


def APPNP(  # noqa: N802  the method's name
    alpha: float = ALPHA.default,
    steps: int = STEPS.default,
    *,
    hidden: int | Sequence[int] = HIDDEN.default,
    dropout: float = DROPOUT.default,
    propagation_dropout: float | None = None,
    penalty: float = PENALTY.default,
    bias: bool = NETWORK_BIAS.default,
    first_layer: str = FIRST_LAYER.default,
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
    predictor: Predictor | None = None,
    mixed_precision: bool = MIXED_PRECISION.default,
    block_nodes: int | None = BLOCK_NODES.default,
) -> Model:
    """Return the paper's APPNP: a network, then K power steps of personalized PageRank.

    Parameters
    ----------
    alpha
        Teleport probability.
    steps
        Power steps K.
    hidden
        Width of the hidden layer, or of several.
    dropout
        On the input and on the hidden layer.
    propagation_dropout
        On the entries of the propagation matrix, drawn again at every step. None: the same as `dropout`.
    penalty
        lambda of the L2 penalty on the first layer.
    bias
        Whether every layer of the network adds a bias; the paper's has none.
    first_layer
        Whether it reads the features by their nonzeros, ``"sparse"``, or by whole rows, ``"dense"``; ``"auto"``: dense
        where more than a quarter of them is not zero.
    normalization, self_loops
        See `transition_matrix`.
    predictor
        In place of the paper's network: any torch module, or a function that makes one. `hidden`, `dropout` and
        `bias` then have no meaning for it.
    mixed_precision, block_nodes
        For a `predictor` alone: whether it is trained with ``torch.autocast`` in bfloat16, and for how many nodes at a
        time it is computed (None: all), which bounds the memory of its activations.

    Examples
    --------
    >>> APPNP(alpha=0.1, steps=10).propagation.solver
    PowerIteration(steps=10)
    """
    on_matrix = dropout if propagation_dropout is None else propagation_dropout
    settings = PropagationSettings(alpha, PowerIteration(steps), on_matrix, normalization, self_loops)
    network = _network(hidden, dropout, bias, first_layer) if predictor is None else predictor
    return Model(network, settings, penalty, mixed_precision, block_nodes)


def PPNP(  # noqa: N802  the method's name
    alpha: float = ALPHA.default,
    *,
    hidden: int | Sequence[int] = HIDDEN.default,
    dropout: float = DROPOUT.default,
    propagation_dropout: float | None = None,
    penalty: float = PENALTY.default,
    bias: bool = NETWORK_BIAS.default,
    first_layer: str = FIRST_LAYER.default,
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
    predictor: Predictor | None = None,
    mixed_precision: bool = MIXED_PRECISION.default,
    block_nodes: int | None = BLOCK_NODES.default,
) -> Model:
    """Return the paper's PPNP: a network, then exact personalized PageRank. Parameters are those of `APPNP`.

    Examples
    --------
    >>> PPNP(alpha=0.1).propagation.solver
    Exact()
    """
    on_matrix = dropout if propagation_dropout is None else propagation_dropout
    settings = PropagationSettings(alpha, Exact(), on_matrix, normalization, self_loops)
    network = _network(hidden, dropout, bias, first_layer) if predictor is None else predictor
    return Model(network, settings, penalty, mixed_precision, block_nodes)


def MLP(  # noqa: N802  the method's name
    *,
    hidden: int | Sequence[int] = HIDDEN.default,
    dropout: float = DROPOUT.default,
    penalty: float = PENALTY.default,
    bias: bool = NETWORK_BIAS.default,
    first_layer: str = FIRST_LAYER.default,
    predictor: Predictor | None = None,
    mixed_precision: bool = MIXED_PRECISION.default,
    block_nodes: int | None = BLOCK_NODES.default,
) -> Model:
    """Return the network alone, without propagation. Parameters are those of `APPNP`.

    Examples
    --------
    >>> MLP().propagation is None
    True
    """
    network = _network(hidden, dropout, bias, first_layer) if predictor is None else predictor
    return Model(network, None, penalty, mixed_precision, block_nodes)


def _network(hidden: int | Sequence[int], dropout: float, bias: bool, first_layer: str) -> FeatureNetwork:
    widths = tuple(hidden) if isinstance(hidden, Sequence) else (hidden,)
    return FeatureNetwork(widths, dropout, bias, first_layer)
