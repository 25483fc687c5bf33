"""The personalized PageRank operator, a transition matrix and a teleport probability: its matrix and its fixed points.

The dense matrix Pi, equation (2), is inverted. Without it, the fixed point of Z = (1 - alpha) T Z + alpha H is approached
by polynomials in T whose degree follows from alpha and the tolerance, so that nothing is summed over nodes, no column of H
depends on another, and the bits of a column depend neither on the other columns nor on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from pprop._errors import CapacityError
from pprop._process import usable_memory
from pprop._validate import check_bool, check_choice, describe, reject
from pprop.graph import Graph, Transition, transition_matrix
from pprop.graph.transition import with_self_loops
from pprop.kernels import Draw, Kernels, LinearMap, choose_backend
from pprop.kernels.arrays import Array, cast, copy_of, is_tensor, module_of, on_host, type_name
from pprop.kernels.random_bits import EDGES, Bernoulli, keep_bits
from pprop.settings import NORMALIZATION, NORMALIZATIONS, SELF_LOOPS

Nodes = NDArray[np.int64]
Values = NDArray[np.float64]

POWERS = {"row": 0.0, "sym": 0.5, "col": 1.0}  # p of D^p, by which a normalisation is a rescaling of "row"
ROUNDING = 1e-15  # a relative error that is lost in the rounding of float64
SINGLE = 1e-8  # one that is lost in the rounding of float32, whose unit is 6e-8
WIDTH = 64  # rows that are solved for together; always as many, since kernels are compiled for one width
DENSE_NODES = 4000  # up to which a dense inverse, n^3 operations, is quicker than solving for the rows of a training
MOST_PRODUCTS = 10000  # beyond which the dense inverse is used anyway: alpha is then below 1e-5, or 0.004 if directed


def check_operator(graph: object, normalization: object, self_loops: object, function: str) -> None:
    """Check the arguments of the operator in the name of the public function that was given them.

    >>> import scipy.sparse as sp
    >>> check_operator(Graph.from_scipy(sp.csr_array((2, 2))), "row", True, "propagate")
    """
    if not isinstance(graph, Graph):
        reject("graph", function, "a pprop.Graph", describe(graph), remedy="Make one with pprop.Graph.from_scipy.")
    check_choice(normalization, "normalization", function, NORMALIZATIONS)
    check_bool(self_loops, "self_loops", function)


@final
class PPROperator:
    """Maps H to the fixed point Z = (1 - alpha) T Z + alpha H, that is Z = Pi H.

    Parameters
    ----------
    graph
        The graph.
    alpha
        Teleport probability.
    normalization, self_loops
        As in `transition_matrix`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> PPROperator(path, alpha=0.1).matrix.shape
    (5, 5)
    """

    def __init__(
        self,
        graph: Graph,
        alpha: float,
        normalization: str = NORMALIZATION.default,
        self_loops: bool = SELF_LOOPS.default,
    ) -> None:
        self.graph, self.alpha, self.normalization, self.self_loops = graph, alpha, normalization, self_loops
        self.transition: Transition = transition_matrix(graph, normalization, self_loops)

    @cached_property
    def matrix(self) -> Values:
        """The dense matrix Pi, shape (n, n): computed at most once."""
        return dense_ppr(self.transition, self.alpha)

    @cached_property
    def iterated(self) -> bool:
        """Whether Pi is applied by products with T, since the dense matrix would take longer.

        The choice depends on the graph and on alpha, never on what Pi is applied to: a row has the same bits always.
        """
        if self.graph.n_nodes <= DENSE_NODES:
            return False
        return count_products(self.transition, self.alpha, ROUNDING) <= MOST_PRODUCTS

    def rows(self, nodes: Nodes, dtype: DTypeLike) -> NDArray[Any]:
        """Return the rows of Pi that belong to `nodes`, shape (m, n), in float64 or float32.

        Of the dense matrix, or as columns of Pi^T, solved for a few at a time.

        Raises
        ------
        CapacityError
            When the rows are larger than the memory that this process may use.
        """
        kind, n = np.dtype(dtype), self.graph.n_nodes
        if not self.iterated:
            return self.matrix[nodes].astype(kind, copy=False)
        check_row_memory("Exact", len(nodes), n, kind.itemsize)
        backend = choose_backend("auto", "cpu", "Exact")
        tolerance = ROUNDING if kind == np.float64 else SINGLE
        solver = FixedPoint(self.transition.transpose, self.alpha, backend.own_kernels, tolerance)
        out = np.empty((len(nodes), n), kind)
        for begin in range(0, len(nodes), WIDTH):
            some = nodes[begin : begin + WIDTH]
            unit = np.zeros((1, n, WIDTH))
            unit[0, some, np.arange(len(some))] = 1.0
            out[begin : begin + len(some)] = on_host(solver.forward(backend.own(unit)))[0, :, : len(some)].T
        return out

    def dropped(self, draw: Draw, run: int) -> Transition:
        """Return the transition matrix of the graph without the edges that a run drops in an epoch.

        An undirected edge is dropped as a whole; a self-loop never. Which ones are dropped is a function of the run's
        seed, the epoch and the two nodes: the entry (i, j), i < j, of an undirected edge has the mask that a single power
        step would give it.

        Parameters
        ----------
        draw
            Seeds, epoch and probability.
        run
            Which of the seeds.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
        >>> dropped = PPROperator(path, 0.1, "row").dropped(Draw(np.array([7]), 0, 0.5), 0)
        >>> dropped.to_scipy().sum(axis=1).tolist(), len(dropped.indices) < 13
        ([1.0, 1.0, 1.0, 1.0, 1.0], True)
        """
        whole, n = self.transition, self.graph.n_nodes
        rows, columns = np.repeat(np.arange(n), np.diff(whole.indptr)), whole.indices.astype(np.int64)
        ends = (rows, columns) if self.graph.directed else (np.minimum(rows, columns), np.maximum(rows, columns))
        rule, seed = Bernoulli.from_probability(draw.probability), int(on_host(draw.seeds)[run])
        kept = keep_bits(seed, EDGES, *ends, draw.number, rule) | (rows == columns)
        if whole.folded:  # into the weights, which are then those of T
            values = with_self_loops(self.graph, self.self_loops).data
        else:
            values = np.ones(len(columns)) if whole.weights is None else whole.weights
        left = sparse.csr_array((values[kept], (rows[kept], columns[kept])), shape=(n, n))
        # the self-loops are among the entries already; a node that has lost all of its edges gets one in any case
        graph = Graph.from_scipy(left, directed=self.graph.directed)
        return transition_matrix(graph, self.normalization, self_loops=False)

    def residual_norm(self, predictions: Array, value: Array, kernels: Kernels) -> tuple[str, float]:
        """Return the name and the value of the norm of r in which |error| <= |r| / alpha holds.

        r = alpha H - (Z - (1 - alpha) T Z), all of shape (R, n, c), by one power step from Z.
        """
        stepped = kernels.steps(self.transition, self.alpha, 1).forward(value, None)  # (1 - alpha) T Z + alpha Z
        r = self.alpha * (predictions - value) + (stepped - value)
        if self.normalization == "sym":
            return "frobenius", float((r * r).sum() ** 0.5)
        name, sizes = ("max", abs(r)) if self.normalization == "row" else ("column", abs(r).sum(axis=-2))
        return name, float(sizes.max()) if r.shape[-1] and r.shape[-2] else 0.0  # there may be no columns


def dense_ppr(transition: Transition, alpha: float) -> Values:
    """Return Pi = alpha (I - (1 - alpha) T)^-1, shape (n, n), inverted in place.

    BLAS is held to one thread, since its sums depend on the number of threads and the rows of Pi enter training.

    Raises
    ------
    CapacityError
        When the buffer is larger than the memory that this process may use.
    InputError
        When alpha is so small that the matrix is singular in double precision.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop.graph import Graph, transition_matrix
    >>> pair = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]))
    >>> dense_ppr(transition_matrix(pair), alpha=0.5)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    n = transition.n_nodes
    check_row_memory("Exact", n, n, itemsize=8)
    buffer = np.zeros((n, n), order="F")  # holds the transpose, so that the result has its rows contiguous
    rows = np.repeat(np.arange(n), np.diff(transition.indptr))
    buffer[transition.indices, rows] = -(1.0 - alpha) * transition.to_scipy().data
    buffer[np.arange(n), np.arange(n)] += 1.0
    definite = transition.symmetric and np.array_equal(transition.row_scale, transition.column_scale)
    with threadpool_limits(limits=1, user_api="blas"):
        inverse = _invert_definite(buffer) if definite else _invert_general(buffer)
    if inverse is None:  # regular for every alpha > 0 (the paper's Appendix A), but 1 - 1e-17 is 1 in float64
        reject("alpha", "Exact", "large enough for I - (1 - alpha) T to be regular in double precision", alpha)
    inverse *= alpha
    return inverse.T


def _invert_definite(matrix: Values) -> Values | None:
    """Invert a symmetric positive definite matrix in place: its eigenvalues lie in [alpha, 2 - alpha)."""
    factor, status = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
    inverse, inverted = lapack.dpotri(factor, lower=1, overwrite_c=1) if status == 0 else (factor, 1)
    if inverted != 0:
        return None
    for column in range(len(inverse)):  # LAPACK fills the lower triangle; a contiguous column of it becomes a row
        inverse[column, column + 1 :] = inverse[column + 1 :, column]
    return inverse


def _invert_general(matrix: Values) -> Values | None:
    factor, pivots, status = lapack.dgetrf(matrix, overwrite_a=1)
    if status != 0:
        return None
    work: Any = lapack.dgetri_lwork(len(matrix))
    inverse, status = lapack.dgetri(factor, pivots, lwork=int(work[0].real), overwrite_lu=1)
    return inverse if status == 0 else None


def count_products(transition: Transition, alpha: float, tolerance: float) -> float:
    """Return how many products with T reach a relative error of `tolerance`; infinity where rounding hides alpha.

    An undirected graph's T is similar to the symmetric A_hat, with its spectrum in [-1, 1]. The Chebyshev polynomial of
    degree k then leaves at most 1 / cosh(k arccosh(1 / (1 - alpha))) of the error in A_hat's variables, and for "row"
    and "col" sqrt(d_max / d_min) times that in T's own: about 1 / sqrt(2 alpha) products for a factor of e. A directed
    graph's T is not normal, and K power steps leave 2 / alpha (1 - alpha)^K: 1 / alpha products for a factor of e.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop.graph import Graph, transition_matrix
    >>> ring = sp.csr_array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    >>> count_products(transition_matrix(Graph.from_scipy(ring + ring.T)), 0.1, 1e-8)
    40
    >>> count_products(transition_matrix(Graph.from_scipy(ring, directed=True)), 0.1, 1e-8)
    204
    """
    if alpha == 1.0:
        return 0
    if transition.symmetric:
        ratio = transition.column_scale / transition.row_scale  # 1 for "sym", else the degrees or their inverses
        spread = math.sqrt(float(ratio.max(initial=1.0)) / float(ratio.min(initial=1.0)))
        gain, decay, saved = math.acosh(spread / tolerance), math.acosh(1 / (1 - alpha)), 1
    else:
        gain, decay, saved = math.log(2) - math.log(alpha) - math.log(tolerance), -math.log1p(-alpha), 0
    degree = gain / decay if decay > 0 else math.inf
    # the first degree of a recurrence from zero costs no product
    return max(math.ceil(degree) - saved, 0) if math.isfinite(degree) else math.inf


def chebyshev_weights(alpha: float, products: int) -> Iterator[float]:
    """Yield the weights w_2, w_3, ... of Chebyshev's recurrence, one a product.

    They are w_1 = 1, w_2 = 1 / (1 - q / 2), w_(k+1) = 1 / (1 - q w_k / 4) with q = (1 - alpha)^2.
    """
    stay, weight = 1.0 - alpha, 2.0
    for _ in range(products):
        weight = 1.0 / (1.0 - stay * stay * weight / 4.0)
        yield weight


@final
class FixedPoint(LinearMap):
    """The map from H to Z = alpha (I - (1 - alpha) T)^-1 H, both of shape (R, n, c), computed in float64 run by run.

    The relative error of a column is at most `tolerance`, beside rounding, in the 2-norm for an undirected graph; for a
    directed one in the norm in which T has norm 1: the 2-norm for "sym", the largest entry for "row", the sum for "col".

    References
    ----------
    Golub and Varga, "Chebyshev semi-iterative methods", Numerische Mathematik 3, 1961.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop.graph import Graph, transition_matrix
    >>> T = transition_matrix(Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]])))
    >>> solver = FixedPoint(T, 0.5, choose_backend("numba", "cpu", "example").own_kernels)
    >>> solver.forward(np.eye(2, dtype=np.float32)[None, :, :1]).ravel()
    array([0.75, 0.25], dtype=float32)
    """

    def __init__(self, transition: Transition, alpha: float, kernels: Kernels, tolerance: float = ROUNDING) -> None:
        self._alpha = alpha
        self.matrix_products = int(count_products(transition, alpha, tolerance))
        # T y, to be combined by Chebyshev's recurrence, or all power steps at once
        self._recurrence = transition.symmetric
        steps = (0.0, 1) if self._recurrence else (alpha, self.matrix_products)
        self._steps = kernels.steps(transition, *steps)
        self._arguments = transition, alpha, kernels, tolerance

    @cached_property
    def _transposed(self) -> FixedPoint:
        transition, alpha, kernels, tolerance = self._arguments
        return FixedPoint(transition.transpose, alpha, kernels, tolerance)

    def forward(self, predictions: Array, draw: Draw | None = None) -> Array:
        """Return Z, as an array like H, of its type and on its device."""
        if len(predictions) == 0:
            return copy_of(predictions)
        wide = (cast(run[None], "float64") for run in predictions)
        each = [self._chebyshev(run) if self._recurrence else self._steps.forward(run, None) for run in wide]
        return cast(module_of(predictions).concatenate(each), type_name(predictions))

    def adjoint(self, gradient: Array, draw: Draw | None = None) -> Array:
        """Return Pi^T G by products with T^T."""
        return self._transposed.forward(gradient)

    def _chebyshev(self, start: Array) -> Array:
        """Return y_(k+1) = w_(k+1) ((1 - alpha) T y_k + alpha H - y_(k-1)) + y_(k-1) after all products, from y_0 = 0."""
        own = start * self._alpha
        before, state = module_of(own).zeros_like(own), copy_of(own)
        for weight in chebyshev_weights(self._alpha, self.matrix_products):
            _turn(before, self._steps.forward(state, None), own, weight, 1.0 - self._alpha)
            before, state = state, before
        return state


def _turn(before: Array, arrived: Array, own: Array, weight: float, stay: float) -> None:
    """Make y_(k+1) of T y_k in the place of y_(k-1).

    Products and sums are separate operations: torch may round a fused one differently at the end of an array.
    """
    if is_tensor(before):
        before.mul_(1.0 - weight).add_(arrived.mul_(weight * stay)).add_(own * weight)
        return
    from pprop.kernels.numba_cpu.dense import turn

    turn(before.reshape(-1), 1.0 - weight, arrived.reshape(-1), weight * stay, own.reshape(-1), weight)


def check_row_memory(solver: str, rows: int, n: int, itemsize: int) -> None:
    """Refuse rows of an n x n matrix that this process cannot hold.

    >>> check_row_memory("Exact", 20, 1000, itemsize=4)
    """
    needed, usable = rows * n * itemsize, usable_memory()
    if usable is not None and needed > 0.9 * usable:
        what = "the dense matrix" if rows == n else f"{rows} rows of the matrix"
        fewer = "" if rows == n else ", or fewer nodes in one call"
        raise CapacityError(
            f"{solver} needs {what} of {n} nodes, {needed / 2**30:.1f} GiB, and this process may use "
            f"{usable / 2**30:.1f} GiB. Use PowerIteration(steps=10){fewer}."
        )
