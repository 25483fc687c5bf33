"""Edges in lists: one matrix out of the two ends of every edge, and the edges of a graph back in lists."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import GraphError
from pprop._validate import counted, describe, is_a, reject
from pprop.graph.attributes import Features, canonical_csr, symmetrized


class GraphParts(Protocol):
    """What the converters read of a `Graph`, which imports them and says what these are."""

    @property
    def n_nodes(self) -> int: ...

    @property
    def directed(self) -> bool: ...

    @property
    def adjacency(self) -> sparse.csr_array: ...

    @property
    def weights(self) -> NDArray[np.float64] | None: ...

    @property
    def features(self) -> Features | None: ...

    @property
    def labels(self) -> NDArray[np.int64] | None: ...

    @property
    def ids(self) -> NDArray[Any] | None: ...

    @property
    def class_names(self) -> tuple[str, ...] | None: ...

    @property
    def feature_names(self) -> tuple[str, ...] | None: ...

    @property
    def name(self) -> str | None: ...


class EdgeList(NamedTuple):
    """Edges from `source` to `target`, positions of shape (edges,); `weights` (edges,) or None for all ones."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    weights: NDArray[np.float64] | None


def edge_list(graph: GraphParts, *, both_ways: bool = False) -> EdgeList:
    """Return the edges of a graph, sorted by source; an undirected edge once, its lower end first, or `both_ways`."""
    entries = graph.adjacency.T.tocsr().tocoo()  # entry (t, s) is what t receives from s
    source, target = entries.row.astype(np.int64), entries.col.astype(np.int64)
    keep = slice(None) if graph.directed or both_ways else source <= target
    return EdgeList(source[keep], target[keep], None if graph.weights is None else entries.data[keep])


def matrix_of(edges: EdgeList, n: int, *, listed: str, directed: bool | None, function: str) -> dict[str, Any]:
    """Return the arguments ``adjacency`` and ``directed`` of ``Graph.from_scipy`` for a list of edges.

    Weights of edges with the same ends are added, and a warning says how many there were.

    Parameters
    ----------
    edges
        Positions, each from 0 to n - 1.
    n
        Number of nodes.
    listed
        "once": an edge is listed once and has no direction; "directed": it has one; "both": an edge that has none is
        listed both ways, as PyG does.
    directed
        What the user wants; None leaves it to the list. Of an edge with a direction that shall have none, and of
        its opposite, the larger weight counts.
    function
        For errors.
    """
    source, target = edges.source, edges.target
    weights = np.ones(len(source)) if edges.weights is None else edges.weights
    if listed == "once":
        source, target = np.minimum(source, target), np.maximum(source, target)
    matrix = sparse.coo_array((weights, (target, source)), shape=(n, n))
    summed = matrix.tocsr()
    summed.sum_duplicates()
    if merged := len(source) - summed.nnz:
        text = f"{counted(merged, 'parallel edge')} of {len(source):,} edges {'was' if merged == 1 else 'were'} merged"
        warnings.warn(f"{function}: {text} into others with the same ends; their weights are added.", stacklevel=5)
    if listed == "once":
        both = (summed + sparse.tril(summed, k=-1).T).tocsr()  # the lower end was made the source of each
        return {"adjacency": both, "directed": bool(directed)}
    if directed is None:
        directed = listed == "directed" or symmetrized(canonical_csr(summed, function)) is None
    return {"adjacency": summed if directed else summed.maximum(summed.T).tocsr(), "directed": directed}


def check_weights(weights: NDArray[Any], parameter: str, function: str) -> NDArray[np.float64]:
    """Return finite, non-negative weights in float64, shape (edges,); a warning counts the zeros, which are no edges."""
    expected = "finite, non-negative edge weights"
    if weights.dtype.kind not in "buif":
        reject(parameter, function, expected, describe(weights), error=GraphError)
    values = weights.astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        reject(parameter, function, expected, f"{values[bad[0]]:g} at edge {bad[0]}", error=GraphError)
    if zeros := int(np.count_nonzero(values == 0)):
        warnings.warn(f"{function}: left out {counted(zeros, 'edge')} of weight zero.", stacklevel=5)
    return values


def check_instance(value: object, kind: str, parameter: str, function: str) -> Any:
    """Return `value` if it is of the class `kind`, written with its module, which is not imported for this.

    >>> check_instance(3, "networkx.Graph", "g", "Graph.from_networkx")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'g' parameter of Graph.from_networkx must be a networkx.Graph. Got 3 instead.
    """
    if not is_a(value, kind):
        reject(parameter, function, f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}", describe(value))
    return value
