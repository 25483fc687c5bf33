"""Solvers: ways to apply the PPR operator, and what a solve returns.

Each binds to an operator and a backend and becomes a linear map.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from pprop._validate import check_float, describe, reject
from pprop.graph import Transition
from pprop.kernels import Draw, Kernels, LinearMap, RowPropagation
from pprop.kernels.arrays import Array, beside, cast, type_name
from pprop.propagation.operator import FixedPoint, PPROperator, Values, check_row_memory
from pprop.settings import STEPS


@final
class Outcome(Enum):
    """How a solve ended.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> pprop.solve(path, np.eye(5), solver=pprop.Exact()).outcome
    <Outcome.EXACT: 'exact'>
    """

    FIXED_STEPS = "fixed steps"  # the requested number of steps, with no request about the error
    EXACT = "exact"  # solved directly, to rounding


@final
class ToleranceOutcome(Enum):
    """How a solve to a tolerance ended; one that misses it raises `ToleranceError` instead.

    >>> ToleranceOutcome.REACHED.value
    'tolerance reached'
    """

    REACHED = "tolerance reached"  # every column is certified


@final
@dataclass(frozen=True)
class Statistics:
    """What a solve cost, and how far it may be from the fixed point Z = (1 - alpha) T Z + alpha H.

    Attributes
    ----------
    backend
        Name of the backend that computed it.
    matrix_products
        Products with the transition matrix. The product that measures the residual is not counted.
    residual
        Norm of r = alpha H - (Z - (1 - alpha) T Z), in the norm named by `norm`.
    norm
        The norm in which the transition matrix has norm at most 1: ``"frobenius"`` for "sym", ``"max"`` (largest
        absolute entry) for "row", ``"column"`` (largest 1-norm of a column) for "col".
    error_bound
        residual / alpha, a bound of the error in the same norm, beside the rounding of the residual; None when alpha is 0.
        A `Certificate` counts that rounding.
    seconds
        Wall-clock time, binding the operator included.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> statistics = pprop.solve(path, np.eye(5)).statistics
    >>> statistics.matrix_products, statistics.norm, round(statistics.error_bound, 2)
    (10, 'frobenius', 0.08)
    """

    backend: str
    matrix_products: int
    residual: float
    norm: str
    error_bound: float | None
    seconds: float


@dataclass(frozen=True)
class Solution:
    """The propagated predictions with an account of how they were computed.

    Attributes
    ----------
    value
        Propagated predictions, an array of the kind, shape and dtype of the input.
    outcome
        How the solve ended.
    statistics
        Backend, cost and residual.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> pprop.solve(path, np.eye(5)).value.shape
    (5, 5)
    """

    value: Any
    outcome: Outcome | ToleranceOutcome
    statistics: Statistics


class Solver(ABC):
    """How Z = Pi H is computed."""

    outcome: Outcome | ToleranceOutcome
    alpha_interval: str = "(0, 1]"

    @abstractmethod
    def bind(self, operator: PPROperator, kernels: Kernels) -> LinearMap:
        """Return the linear map that this solver computes."""

    def check_alpha(self, alpha: object, function: str) -> float:
        """Return alpha as a float, or say which values this solver accepts."""
        return check_float(alpha, "alpha", function, self.alpha_interval)

    def solution(self, value: Any, statistics: Statistics, linear_map: LinearMap) -> Solution:
        """Return what `solve` returns for a value that the linear map of this solver has computed."""
        return Solution(value, self.outcome, statistics)


@final
@dataclass(frozen=True)
class PowerIteration(Solver):
    """APPNP: a fixed number K of power steps, equation (4) of the paper.

        Z^(0) = H,    Z^(k+1) = (1 - alpha) T Z^(k) + alpha H.

    It also accepts alpha = 0, the power iteration without teleport that the paper compares with; see `Limit`.

    Parameters
    ----------
    steps
        The number of steps, 0 <= K <= 10,000. The fixed point itself: `Exact` or `Chebyshev`.

    Examples
    --------
    >>> PowerIteration(steps=10)
    PowerIteration(steps=10)
    """

    steps: int = STEPS.default
    outcome = Outcome.FIXED_STEPS
    alpha_interval = "[0, 1]"

    def __post_init__(self) -> None:
        STEPS.check(self.steps, "PowerIteration")

    def bind(self, operator: PPROperator, kernels: Kernels) -> LinearMap:
        steps = kernels.steps(operator.transition, operator.alpha, self.steps)
        steps.matrix_products = self.steps
        return steps


class RowSolver(Solver):
    """A solver that can compute single rows of its matrix. Dropout removes entries of that matrix."""

    @abstractmethod
    def rows(self, operator: PPROperator, nodes: NDArray[np.int64], dtype: DTypeLike) -> NDArray[Any]:
        """Return the rows of the matrix that belong to `nodes`, shape (m, n), in float64 or float32."""


@final
@dataclass(frozen=True)
class Exact(RowSolver):
    """PPNP: equation (3) of the paper, Z = alpha (I - (1 - alpha) T)^-1 H.

    On a graph of up to 4000 nodes the matrix is inverted once per operator. A larger graph is propagated by as many
    products with T as reach rounding, without a matrix of 8 n^2 bytes, which only dropout on all of its rows needs.

    Examples
    --------
    >>> Exact()
    Exact()
    """

    outcome = Outcome.EXACT

    def bind(self, operator: PPROperator, kernels: Kernels) -> LinearMap:
        whole = FixedPoint(operator.transition, operator.alpha, kernels) if operator.iterated else None
        return MatrixMap(operator.graph.n_nodes, kernels, lambda: operator.matrix, whole)

    def rows(self, operator: PPROperator, nodes: NDArray[np.int64], dtype: DTypeLike) -> NDArray[Any]:
        return operator.rows(nodes, dtype)


@final
@dataclass(frozen=True)
class Limit(RowSolver):
    """Infinitely many power steps without teleport, alpha = 0: within a component, all rows of Z are proportional.

        Z = v v^T H,    v = sqrt(d) / |sqrt(d)|,

    with the degrees d of the graph with self-loops ("sym"); for "row" and "col" the two factors are the ones and
    d / sum(d). A graph of several components has such a pair for each. The graph must be undirected, and where there
    are no self-loops, no component may be bipartite: T^k then has no limit.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> star = pprop.Graph.from_scipy(sp.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]]))
    >>> pprop.propagate(star, [7.0, 0.0, 0.0], alpha=0, solver=Limit(), normalization="row")
    array([3., 3., 3.])
    """

    outcome = Outcome.EXACT

    def check_alpha(self, alpha: object, function: str) -> float:
        if check_float(alpha, "alpha", function, "[0, 1]") != 0.0:
            remedy = "Use Exact() for the limit with teleport."
            reject("alpha", function, "0 with Limit()", describe(alpha), remedy=remedy)
        return 0.0

    def bind(self, operator: PPROperator, kernels: Kernels) -> LinearMap:
        n, whole = operator.graph.n_nodes, _PerComponent(*_factors(operator.transition), kernels)
        return MatrixMap(n, kernels, lambda: self.rows(operator, np.arange(n), np.float64), whole)

    def rows(self, operator: PPROperator, nodes: NDArray[np.int64], dtype: DTypeLike) -> NDArray[Any]:
        received, sent, component = _factors(operator.transition)
        check_row_memory("Limit", len(nodes), operator.graph.n_nodes, np.dtype(dtype).itemsize)
        out = np.empty((len(nodes), operator.graph.n_nodes), dtype)
        for k, node in enumerate(nodes):
            out[k] = np.where(component == component[node], received[node] * sent, 0.0)
        return out


@final
class MatrixMap(LinearMap):
    """A dense matrix as the block of all its rows, made when it is needed: for masks, or where nothing else is given.

    Parameters
    ----------
    n
        Nodes.
    kernels
        Of the backend.
    dense
        Makes the matrix, shape (n, n).
    whole
        Applies it without masks and without the matrix.
    """

    def __init__(self, n: int, kernels: Kernels, dense: Callable[[], Values], whole: LinearMap | None) -> None:
        self._n, self._kernels, self._dense, self._whole = n, kernels, dense, whole
        self._bound: RowPropagation | None = None
        self.matrix_products = 0 if whole is None else whole.matrix_products

    def forward(self, predictions: Array, draw: Draw | None) -> Array:
        if draw is None and self._whole is not None:
            return self._whole.forward(predictions, None)
        return self._rows(predictions).forward(predictions, self._every_row(predictions), draw)

    def adjoint(self, gradient: Array, draw: Draw | None) -> Array:
        if draw is None and self._whole is not None:
            return self._whole.adjoint(gradient, None)
        return self._rows(gradient).adjoint(gradient, self._every_row(gradient), draw)

    def _rows(self, like: Array) -> RowPropagation:
        if self._bound is None:
            self._bound = self._kernels.rows(beside(self._dense(), like), beside(np.arange(self._n), like))
        return self._bound

    def _every_row(self, like: Array) -> Array:
        return beside(np.tile(np.arange(self._n), (len(like), 1)), like)


@final
class _PerComponent(LinearMap):
    """Z = U (W^T H) with one column of U and W per component, in float64."""

    def __init__(self, received: Values, sent: Values, component: NDArray[np.int32], kernels: Kernels) -> None:
        shape, indptr = (len(component), int(component.max(initial=0)) + 1), np.arange(len(component) + 1)
        columns = (sparse.csr_array((values, component, indptr), shape=shape) for values in (received, sent))
        self._received, self._sent = (kernels.features(matrix) for matrix in columns)

    def forward(self, predictions: Array, draw: Draw | None) -> Array:
        gathered = self._sent.adjoint(cast(predictions, "float64"), None)
        return cast(self._received.forward(gathered, None), type_name(predictions))

    def adjoint(self, gradient: Array, draw: Draw | None) -> Array:
        gathered = self._received.adjoint(cast(gradient, "float64"), None)
        return cast(self._sent.forward(gathered, None), type_name(gradient))


def _factors(transition: Transition) -> tuple[Values, Values, NDArray[np.int32]]:
    """Return u, w and the component of every node; the limit's entry (i, j) is u_i w_j within a component, else 0.

    T = S_r A S_c with S_r S_c = D^-1 leaves u = S_c^-1 1 unchanged, and T^T leaves w = S_r^-1 1.
    """
    remedy = "Use PowerIteration(steps) with alpha=0."
    if transition.folded:
        expected, got = "of degrees within a factor of 2^64 in every component", "degrees that differ by more"
        reject("graph", "Limit", expected, got, remedy=remedy)
    if not transition.symmetric:
        reject("graph", "Limit", "undirected", "a directed graph", remedy=remedy)
    n, structure = transition.n_nodes, transition.to_scipy()
    count, component = sparse.csgraph.connected_components(structure, directed=False)
    # every node twice, an edge leading from one copy to the other: two halves where the component is bipartite
    _, half = sparse.csgraph.connected_components(sparse.block_array([[None, structure], [structure, None]]))
    if n and (bipartite := np.flatnonzero(half[:n] != half[n:])).size:
        got = f"a graph in which the component of node {bipartite[0]} is bipartite"
        reject("graph", "Limit", "without bipartite components where it has no self-loops", got)
    received, sent = 1.0 / transition.column_scale, 1.0 / transition.row_scale
    # 1-norm over the component of their product: the degrees, summed in the order of the nodes
    total = np.bincount(component, weights=received * sent, minlength=count)[component]
    if np.array_equal(received, sent):  # v v^T, its factors and so its rows symmetric to the last bit
        return received / np.sqrt(total), sent / np.sqrt(total), component
    constant_sent = bool((transition.row_scale == 1.0).all())  # "col": w = 1 exactly, u holds the shares
    return (received / total, sent, component) if constant_sent else (received, sent / total, component)


def working_type(name: str) -> str:
    """Return the float type in which results of a float type are computed: half precision in float32.

    >>> working_type("bfloat16"), working_type("float64")
    ('float32', 'float64')
    """
    return "float64" if name == "float64" else "float32"


def mapped(linear_map: LinearMap, predictions: Array, draw: Draw | None) -> Array:
    """Apply a linear map to predictions (R, n, c) of any float type, which stays; for gradients see `apply_map`."""
    kind = type_name(predictions)
    wide = predictions if linear_map.takes_half else cast(predictions, working_type(kind))
    return cast(linear_map.forward(wide, draw), kind)
