"""Checks of what an edit of a live graph is given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._validate import check_array, check_positions, describe, reject
from pprop.propagation.live_record import LiveRecord
from pprop.propagation.operator import check_operator

__all__ = [
    "check_live",
    "check_live_positions",
    "check_pairs",
    "check_predictions",
    "check_weights",
    "one_or_many",
]

Nodes = NDArray[np.int64]


def check_live(graph: Any, normalization: object, self_loops: object) -> None:
    """Refuse what is no undirected graph: the error bound needs the degrees of rows and columns to be the same."""
    check_operator(graph, normalization, self_loops, "live")
    if graph.directed:
        reject("graph", "live", "undirected", "a directed graph", remedy="Call .undirected() to ignore directions.")


def check_live_positions(nodes: object, parameter: str, record: LiveRecord, function: str) -> Nodes:
    """Return positions of nodes that are there, shape (m,).

    >>> import scipy.sparse as sp
    >>> from pprop.graph import Graph
    >>> check_live_positions([1], "nodes", LiveRecord(Graph.from_scipy(sp.csr_array((2, 2)))), "logits")
    array([1])
    """
    at = check_positions(nodes, parameter, function, n_nodes=record.n)
    gone = at[~record.alive[at]]
    if len(gone):
        reject(parameter, function, "positions of nodes of the graph", f"{gone[0]}, which was removed")
    return at


def check_pairs(pairs: object, record: LiveRecord, function: str) -> Nodes:
    """Return pairs of nodes that are there, shape (m, 2), each pair once in either order."""
    expected = "an integer array of shape (m, 2), two positions an edge"
    array = check_array(pairs, "pairs", function, expected)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        reject("pairs", function, expected, describe(array))
    found = check_live_positions(array.reshape(-1), "pairs", record, function).reshape(-1, 2)
    keys, counts = np.unique(found.min(axis=1) * record.n + found.max(axis=1), return_counts=True)
    if len(keys) != len(found):
        twice = int(keys[counts > 1][0])
        reject("pairs", function, "edges each given once", f"({twice // record.n}, {twice % record.n}) more than once")
    return found


def check_weights(weights: object, count: int, function: str) -> NDArray[np.float64]:
    """Return positive, finite weights, shape (m,); None: ones.

    >>> check_weights(None, 2, "add_edges")
    array([1., 1.])
    """
    if weights is None:
        return np.ones(count)
    expected = f"an array of {count} positive, finite numbers"
    array = check_array(weights, "weights", function, expected)
    if array.shape != (count,) or array.dtype.kind not in "iuf":
        reject("weights", function, expected, describe(array))
    found = array.astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(found) & (found > 0)))
    if len(wrong):
        reject("weights", function, expected, f"{found[wrong[0]]} at index {wrong[0]}")
    return found


def check_predictions(
    predictions: Any, parameter: str, count: int, columns: int | None, function: str
) -> NDArray[np.float64]:
    """Return predictions of so many nodes, shape (m, c), finite; a torch tensor may be one.

    >>> check_predictions([[1, 2]], "predictions", 1, 2, "add_node")
    array([[1., 2.]])
    """
    expected = f"an array of finite numbers of shape ({count}, {'c' if columns is None else columns})"
    array = check_array(predictions, parameter, function, expected)
    if columns is None and array.ndim == 1:
        array = array[:, None]
    if (
        array.ndim != 2
        or len(array) != count
        or array.dtype.kind not in "buif"
        or columns not in (None, array.shape[1])
    ):
        reject(parameter, function, expected, describe(array))
    found = array.astype(np.float64)
    if not np.isfinite(found).all():
        reject(parameter, function, expected, f"{int((~np.isfinite(found)).sum())} that are not")
    return found


def one_or_many(features: Any) -> Any:
    """Return one node's features as those of several, shape (1, ...); sparse ones have that shape already."""
    return features if features is None or sparse.issparse(features) else np.asarray(features)[None]
