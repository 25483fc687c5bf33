"""The transition matrix T of a graph, as structure and degree scales.

The paper's matrix is the symmetrically normalised adjacency with self-loops,

    A_hat = D^-1/2 (A + I) D^-1/2,

and this module writes every normalisation in the one form

    T = diag(row_scale) A_tilde diag(column_scale),

where A_tilde is the adjacency with the missing self-loops added. Entry (i, j) is what node i receives from node j.
No value per edge is stored for an unweighted graph. Weights are stored in a unit that brings the largest near 1: of the
whole graph, or of every component where they differ by more than the scales can hold. Where degrees differ so much
within one component, the entries of T themselves are stored instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._validate import check_bool, check_choice, describe, reject
from pprop.graph.graph import Graph
from pprop.settings import NORMALIZATION, NORMALIZATIONS, SELF_LOOPS

# The smallest degree, next to weights near 1, whose inverse times a prediction is far from the limits of float32.
LEAST_DEGREE = 2.0**-64
KEPT = 2**27  # bytes of the indices of a transition matrix that a graph keeps, to be used again


@final
@dataclass(frozen=True, eq=False)
class Transition:
    """A normalised propagation matrix T = diag(row_scale) A_tilde diag(column_scale).

    Attributes
    ----------
    indptr, indices
        CSR structure of A_tilde, shapes (n + 1,) and (entries,), int64 and int32.
    weights
        Entries of A_tilde up to a power of four for every component, shape (entries,), float64; None when all are one.
    row_scale, column_scale
        Shape (n,), float64.
    symmetric
        Whether A_tilde is its own transpose, so that T^T shares its structure.
    folded
        Whether `weights` are the entries of T and all scales are one, as the degrees differ by more than 2^64 within a
        component. `symmetric` then tells whether T is its own transpose.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float64] | None
    row_scale: NDArray[np.float64]
    column_scale: NDArray[np.float64]
    symmetric: bool
    folded: bool = False

    @property
    def n_nodes(self) -> int:
        """Number of nodes, n."""
        return len(self.row_scale)

    @cached_property
    def transpose(self) -> Transition:
        """T^T in the same form: the scales change places; the structure too, unless it is symmetric."""
        if self.symmetric:
            structure = self.indptr, self.indices, self.weights
        else:
            flipped = self._structure().T.tocsr()
            flipped.sort_indices()
            weights = None if self.weights is None else flipped.data
            structure = flipped.indptr.astype(np.int64), flipped.indices.astype(np.int32), weights
        return Transition(*structure, self.column_scale, self.row_scale, self.symmetric, self.folded)

    def to_scipy(self) -> sparse.csr_array:
        """Return T as a scipy CSR array of its own with its values, shape (n, n), float64.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> pair = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]))
        >>> transition_matrix(pair).to_scipy().toarray()
        array([[0.5, 0.5],
               [0.5, 0.5]])
        """
        matrix = self._structure()
        rows = np.repeat(np.arange(self.n_nodes), np.diff(self.indptr))
        values = self.row_scale[rows] * matrix.data * self.column_scale[self.indices]
        # not the arrays of T, which others use: some methods of scipy change a matrix in place
        return sparse.csr_array((values, self.indices, self.indptr), shape=matrix.shape, copy=True)

    def _structure(self) -> sparse.csr_array:
        values = np.ones(len(self.indices)) if self.weights is None else self.weights
        return sparse.csr_array((values, self.indices, self.indptr), shape=(self.n_nodes, self.n_nodes))


def transition_matrix(
    graph: Graph, normalization: str = NORMALIZATION.default, self_loops: bool = SELF_LOOPS.default
) -> Transition:
    """Return the transition matrix of `graph`, which keeps it unless it is large.

    Parameters
    ----------
    graph
        Directed or undirected, weighted or not.
    normalization
        ``"sym"``: D_row^-1/2 A_tilde D_col^-1/2, the paper's A_hat on an undirected graph; with row and column sums
        apart, its 2-norm is at most 1 on a directed graph too. ``"row"``: D_row^-1 A_tilde, rows sum to one.
        ``"col"``: A_tilde D_col^-1 (the paper's A_rw when `self_loops` is False). Columns sum to one, but for the empty
        column of a node that no node receives from, which only a directed graph without added self-loops has.
    self_loops
        Whether a node without a self-loop gets one of weight 1; an existing one keeps its weight. A node that
        receives from no node gets one in any case, so that an isolated node keeps its own prediction.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> star = Graph.from_scipy(sp.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]]))
    >>> transition_matrix(star, "row").to_scipy().toarray().sum(axis=1)
    array([1., 1., 1.])
    """
    function = "transition_matrix"
    if not isinstance(graph, Graph):
        reject("graph", function, "a pprop.Graph", describe(graph), remedy="Make one with pprop.Graph.from_scipy.")
    check_choice(normalization, "normalization", function, NORMALIZATIONS)
    self_loops = check_bool(self_loops, "self_loops", function)
    key = "transition", normalization, self_loops
    known: Transition | None = graph.of_structure.get(key)
    if known is None:
        known = _transition(graph, normalization, self_loops)
        if 4 * len(known.indices) <= KEPT:
            graph.of_structure[key] = known
    return known


def _transition(graph: Graph, normalization: str, self_loops: bool) -> Transition:
    adjacency = with_self_loops(graph, self_loops)
    weights = adjacency.data
    if graph.weights is not None:
        # no normalisation depends on the unit of the weights; near 1 they fit into float32
        adjacency.data = _near_one(weights, weights.max())
    out_sums, in_sums = _sums(adjacency, graph.directed)
    if graph.weights is not None and not _in_range(adjacency, out_sums, in_sums):
        adjacency.data = _near_one(weights, _component_peaks(adjacency, weights))
        out_sums, in_sums = _sums(adjacency, graph.directed)
        if not _in_range(adjacency, out_sums, in_sums):
            adjacency.data = weights
            return _folded(adjacency, normalization, graph.directed)
    ones = np.ones(graph.n_nodes)
    row_scale, column_scale = {
        "sym": (_inverse(np.sqrt(out_sums)), _inverse(np.sqrt(in_sums))),
        "row": (_inverse(out_sums), ones),
        "col": (ones, _inverse(in_sums)),
    }[normalization]
    return Transition(
        adjacency.indptr.astype(np.int64),
        adjacency.indices.astype(np.int32),
        None if (adjacency.data == 1.0).all() else adjacency.data,
        row_scale,
        column_scale,
        symmetric=not graph.directed,
    )


def with_self_loops(graph: Graph, self_loops: bool) -> sparse.csr_array:
    """Return A_tilde, the adjacency with the self-loops that `transition_matrix` adds, in the unit of the weights.

    >>> with_self_loops(Graph.from_scipy(sparse.csr_array([[0, 2], [2, 0]])), True).toarray()
    array([[1., 2.],
           [2., 1.]])
    """
    adjacency = graph.adjacency
    missing = (adjacency.diagonal() == 0) if self_loops else (np.diff(graph.indptr) == 0)
    if missing.any():
        adjacency = adjacency + sparse.diags_array(missing.astype(np.float64), format="csr")
        adjacency.eliminate_zeros()
        adjacency.sort_indices()
    return adjacency


def _near_one(weights: NDArray[np.float64], peaks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide weights by the power of four that brings the largest near 1: exact for any power."""
    power = -2 * np.floor(0.5 * np.log2(peaks)).astype(np.int64)
    # a product is quicker, where the power is a number itself
    return weights * np.ldexp(1.0, power) if np.abs(power).max() <= 1000 else np.ldexp(weights, power)


def _component_peaks(adjacency: sparse.csr_array, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for every entry the largest weight in its component, which differs from 0; no row is empty."""
    structure = sparse.csr_array((weights, adjacency.indices, adjacency.indptr), shape=adjacency.shape)
    count, component = sparse.csgraph.connected_components(structure, directed=True, connection="weak")
    peaks = np.zeros(count)
    np.maximum.at(peaks, component, np.maximum.reduceat(weights, adjacency.indptr[:-1]))
    return np.repeat(peaks[component], np.diff(adjacency.indptr))


def _sums(adjacency: sparse.csr_array, directed: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    out_sums = np.asarray(adjacency.sum(axis=1), dtype=np.float64)
    # the same bits on an undirected graph, although rows and columns are summed in different orders: A_hat is symmetric
    return out_sums, np.asarray(adjacency.sum(axis=0), dtype=np.float64) if directed else out_sums


def _in_range(adjacency: sparse.csr_array, out_sums: NDArray[np.float64], in_sums: NDArray[np.float64]) -> bool:
    """Whether no sum of the entries of a row or column is too small for its inverse to be a scale."""
    if out_sums.min() < LEAST_DEGREE:
        return False
    small = in_sums < LEAST_DEGREE
    return not small.any() or not small[adjacency.indices].any()  # an empty column has a sum of 0


def _folded(adjacency: sparse.csr_array, normalization: str, directed: bool) -> Transition:
    """Return T by its entries, each from exponents and numbers near 1 apart, so that none overflows on the way."""
    n, weights, columns = adjacency.shape[0], adjacency.data, adjacency.indices
    rows = np.repeat(np.arange(n), np.diff(adjacency.indptr))
    out_exponent, out_sum = _sums_apart(weights, rows, n)
    in_exponent, in_sum = _sums_apart(weights, columns, n) if directed else (out_exponent, out_sum)
    by_row, by_column = {"sym": (0.5, 0.5), "row": (1.0, 0.0), "col": (0.0, 1.0)}[normalization]
    shift = by_row * out_exponent[rows] + by_column * in_exponent[columns]
    size = (out_sum**by_row)[rows] * (in_sum**by_column)[columns]
    values, ones = np.ldexp(weights, -shift.astype(np.int64)) / size, np.ones(n)
    symmetric = not directed and normalization == "sym"
    return Transition(
        adjacency.indptr.astype(np.int64), columns.astype(np.int32), values, ones, ones, symmetric, folded=True
    )


def _sums_apart(
    weights: NDArray[np.float64], at: NDArray[np.integer], n: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return even exponents e and numbers m from 1/4 on with m 2^e = the sum of the weights at each of n places."""
    peaks = np.zeros(n)
    np.maximum.at(peaks, at, weights)
    exponents = 2 * (np.frexp(peaks)[1].astype(np.int64) // 2)
    return exponents, np.bincount(at, np.ldexp(weights, -exponents[at]), n).astype(np.float64)


def _inverse(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / values, and 0 where a column is empty, so the scale meets no entry."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
