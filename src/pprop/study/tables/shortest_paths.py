"""Distances between all pairs of nodes of a graph, by breadth-first search on bits."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pprop._validate import reject
from pprop.graph import Graph

__all__ = ["mean_shortest_path"]

BLOCK = 16  # words of 64 start nodes each that are searched from at once: few enough for a processor's cache

_Words: TypeAlias = NDArray[np.uint64]
_BITS_IN = np.array([value.bit_count() for value in range(1 << 16)], dtype=np.uint8)


def mean_shortest_path(graph: Graph) -> float:
    """Return the average number of edges on the shortest path between two different nodes that are connected.

    Exact. Every node is a start: bit s of a node's words says whether start s has reached it, so that one pass over the
    edges is a step of 1024 searches.

    Parameters
    ----------
    graph
        Undirected, at least one edge; weights do not count.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> mean_shortest_path(path)
    2.0
    """
    if graph.directed or not graph.n_entries:
        reject("graph", "mean_shortest_path", "undirected and have edges", graph)
    hops = pairs = 0
    for start in range(0, graph.n_nodes, 64 * BLOCK):
        nodes = np.arange(start, min(start + 64 * BLOCK, graph.n_nodes))
        reached = np.zeros((graph.n_nodes, -(-len(nodes) // 64)), dtype=np.uint64)
        word, bit = np.divmod(nodes - start, 64)
        reached[nodes, word] = np.left_shift(np.uint64(1), bit.astype(np.uint64))
        before, distance = len(nodes), 0
        while True:
            reached = _step(graph, reached)
            now, distance = int(_BITS_IN[reached.view(np.uint16)].sum(dtype=np.int64)), distance + 1
            if now == before:
                break
            hops, pairs, before = hops + distance * (now - before), pairs + now - before, now
    return hops / pairs


def _step(graph: Graph, reached: _Words) -> _Words:
    """Return the words of each node joined with those of its neighbours, shape (n, words)."""
    joined = reached.copy()
    rows = np.flatnonzero(np.diff(graph.indptr))  # reduceat gives an empty row its neighbour's value
    if len(rows):
        joined[rows] |= np.bitwise_or.reduceat(reached[graph.indices], graph.indptr[rows], axis=0)
    return joined
