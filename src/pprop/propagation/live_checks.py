"""Checks of the arguments of a live graph and of its edits; and the probabilities of its predictions."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._validate import check_array, check_int, check_positions, describe, reject
from pprop.propagation.live_record import LiveRecord

Nodes = NDArray[np.int64]
RESPONSES = ("logits", "probabilities")  # any numbers, whose softmax are probabilities, or probabilities themselves
SUM_ERROR = 1e-3  # of given probabilities, as for `PropagatedClassifier`: they may come from float16


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


def check_distinct(nodes: object, parameter: str, record: LiveRecord, function: str) -> Nodes:
    """Return positions of nodes that are there, shape (m,), none of them twice."""
    at = check_live_positions(nodes, parameter, record, function)
    if len(np.unique(at)) != len(at):
        reject(parameter, function, "distinct positions", "a position twice")
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


def check_node(node: object, parameter: str, record: LiveRecord, function: str) -> int:
    """Return the position of a node that is there.

    >>> import scipy.sparse as sp
    >>> from pprop.graph import Graph
    >>> check_node(1, "u", LiveRecord(Graph.from_scipy(sp.csr_array((2, 2)))), "remove_node")
    1
    """
    at = check_int(node, parameter, function, low=0, high=record.n - 1)
    if not record.alive[at]:
        reject(parameter, function, "the position of a node of the graph", f"{at}, which was removed")
    return at


def check_pair(u: object, v: object, record: LiveRecord, function: str) -> Nodes:
    """Return one pair of nodes that are there, shape (1, 2).

    >>> import scipy.sparse as sp
    >>> from pprop.graph import Graph
    >>> check_pair(1, 0, LiveRecord(Graph.from_scipy(sp.csr_array((2, 2)))), "add_edge")
    array([[1, 0]])
    """
    return np.array([[check_node(u, "u", record, function), check_node(v, "v", record, function)]], np.int64)


def reject_edge(u: int, v: int, function: str, *, there: bool) -> NoReturn:
    """Refuse an edge that is there already, or one that is not there."""
    got = f"({u}, {v}), which is {'there already' if there else 'not there'}"
    if function in ("add_edge", "remove_edge"):
        reject("v", function, f"a node to which {u} has {'no' if there else 'an'} edge", got)
    reject("pairs", function, "edges that are not in the graph" if there else "edges of the graph", got)


def one_or_many(features: Any) -> Any:
    """Return one node's features as those of several, shape (1, ...); sparse ones have that shape already."""
    return features if features is None or sparse.issparse(features) else np.asarray(features)[None]


def check_predictions(
    predictions: Any, parameter: str, count: int, columns: int | None, function: str, response: str = "logits"
) -> NDArray[np.float64]:
    """Return predictions of so many nodes, shape (m, c), finite; a torch tensor may be one.

    >>> check_predictions([[1, 2]], "predictions", 1, 2, "add_node")
    array([[1., 2.]])
    >>> check_predictions([[1, 2]], "predictions", 1, 2, "add_node", "probabilities")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'predictions' parameter of add_node must be probabilities, none negative, that sum to one...
    """
    expected = f"an array of finite numbers of shape ({count}, {'c' if columns is None else columns})"
    array = check_array(predictions, parameter, function, expected)
    if columns is None and array.ndim == 1:
        array = array[:, None]
    wrong_shape = array.ndim != 2 or len(array) != count or columns not in (None, array.shape[1])
    if wrong_shape or array.dtype.kind not in "buif":
        reject(parameter, function, expected, describe(array))
    found = array.astype(np.float64)
    if not np.isfinite(found).all():
        reject(parameter, function, expected, f"{int((~np.isfinite(found)).sum())} that are not")
    if response == "probabilities":
        wrong = np.flatnonzero((found < 0).any(axis=1) | (np.abs(found.sum(axis=1) - 1) > SUM_ERROR))
        if len(wrong):
            got = f"{found[wrong[0]].tolist()} at index {wrong[0]}"
            reject(parameter, function, "probabilities, none negative, that sum to one in each row", got)
    return found


def probabilities_of(Z: NDArray[np.float64], response: str) -> NDArray[np.float64]:
    """Return the class probabilities of spread predictions, shape (m, c): the softmax of logits, shares of probabilities.

    Spread probabilities sum to one already where the rows of the transition matrix do, and within the tolerance.

    >>> probabilities_of(np.array([[0.0, 0.0], [0.0, np.log(3.0)]]), "logits").round(3)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    >>> probabilities_of(np.array([[0.3, 0.9]]), "probabilities")
    array([[0.25, 0.75]])
    """
    if response == "probabilities":  # zeros may be a little below, within the tolerance
        powers = np.maximum(Z, np.finfo(np.float64).tiny)
    else:
        powers = np.exp(Z - Z.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
