"""A model is a predictor and a propagation. PPNP, APPNP and the plain network differ in the propagation alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from torch import nn

from pprop._validate import describe, reject
from pprop.graph import Graph
from pprop.models.network import FeatureNetwork
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
    check_fields,
)

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
