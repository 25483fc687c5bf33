"""Columns that say where a node sits in the graph: its degree, PageRank, its neighbours' degrees, walks that return."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pprop.graph import Graph
from pprop.propagation.columns.averages import averages
from pprop.propagation.columns.walks import walk_statistics

MOST_WALKS = 2 * 10**9  # of two steps, which are counted one by one: some ten seconds of one core
RETURNS = ("returns in 2", "returns in 3", "returns in 4")
_TELEPORT, _STEPS = 0.15, 50  # of PageRank; 0.85^50 is 3e-4


def structure_columns(
    graph: Graph, most_walks: int = MOST_WALKS, *, stored: bool = False
) -> tuple[dict[str, NDArray[np.float64]], tuple[str, ...]]:
    """Return columns (n,) of the structure of a graph by name, and the names of those that would take too long.

    Logarithms of the degree (sums of weights of a weighted graph beside the number of neighbours; of a directed one in both
    directions) and of PageRank times n; mean, largest and smallest of the neighbours' log degree, and its mean two steps
    away; and the probabilities that a walk is at its start again after two, three and four steps. Walks go over edges
    in both directions, and self-loops are left out of them.

    Parameters
    ----------
    graph
        The graph, n nodes.
    most_walks
        Probabilities of return are left out of a graph with more walks of two steps: sum over nodes of the squared degree.
    stored
        As in `averages`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> triangle = Graph.from_scipy(sp.csr_array([[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]]))
    >>> columns, left_out = structure_columns(triangle)
    >>> np.exp(columns["log degree"]).round(), columns["returns in 2"].round(3), left_out
    (array([3., 2., 2., 1.]), array([0.667, 0.417, 0.417, 0.333]), ())
    """
    from pprop.kernels.numba_cpu.walks import has_self_loops, returns

    n = graph.n_nodes
    columns: dict[str, NDArray[np.float64]] = {}
    degrees = {"": np.diff(graph.indptr)}
    if graph.directed:
        degrees = {"in-": degrees[""], "out-": np.bincount(graph.indices, minlength=n)}
    for axis, (side, degree) in enumerate(degrees.items(), start=1):
        columns[f"log {side}degree"] = _log(degree)
        if graph.weights is not None:
            columns[f"log {side}weight"] = _log(np.asarray(graph.adjacency.sum(axis=axis % 2)).ravel())
    rank = averages(graph, np.full((n, 1), 1.0 / n), _TELEPORT, _STEPS, "col", self_loops=False, stored=stored).ravel()
    columns["log PageRank"] = np.log(np.maximum(rank.astype(np.float64) * n, np.finfo(np.float64).tiny))
    both = graph.undirected() if graph.directed else graph
    if has_self_loops(both.indptr, both.indices):
        both = both.without_self_loops()
    logs = _log(np.diff(both.indptr))[:, None]
    for hop in walk_statistics(both, logs, hops=2, spread=1):
        columns[f"degree {hop.steps} away"] = hop.mean[:, 0].astype(np.float64)
        for word, values in (("largest", hop.largest), ("smallest", hop.smallest)):
            if values is not None:
                columns[f"{word} degree {hop.steps} away"] = values[:, 0].astype(np.float64)
    steps = np.diff(both.indptr).astype(np.float64)
    if float(steps @ steps) > most_walks:
        return columns, RETURNS
    found = np.zeros((n, 3))
    weights = np.empty(0) if both.weights is None else both.weights / both.weights.max()
    sums = steps if both.weights is None else np.asarray(both.adjacency.sum(axis=1)).ravel() / both.weights.max()
    returns(both.indptr, both.indices, weights, sums, found)
    return columns | dict(zip(RETURNS, found.T, strict=True)), ()


def _log(values: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return the logarithm of degrees, of 0 as of 1/2.

    >>> _log(np.array([0, 1])).round(2)
    array([-0.69,  0.  ])
    """
    known = values.astype(np.float64)
    least = known[known > 0].min(initial=1.0)
    return np.log(np.where(known > 0, known, least / 2))
