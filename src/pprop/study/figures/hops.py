"""How far nodes are from the training nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._validate import check_positions
from pprop.graph import Graph

__all__ = ["hops_from"]


def hops_from(graph: Graph, nodes: ArrayLike) -> NDArray[np.int64]:
    """Return the number of edges from the nearest of `nodes` to each node, by breadth-first search.

    Parameters
    ----------
    graph
        Edges are followed in the direction in which predictions travel; weights do not count.
    nodes
        Positions of the nodes to start from, shape (m,).

    Returns
    -------
    array of int64, shape (n,)
        0 for `nodes` themselves, -1 for nodes that cannot be reached.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> hops_from(path, [1])
    array([1, 0, 1, 2, 3])
    """
    reached = np.zeros(graph.n_nodes, dtype=bool)
    reached[check_positions(nodes, "nodes", "hops_from", n_nodes=graph.n_nodes)] = True
    hops = np.where(reached, 0, -1).astype(np.int64)
    adjacency, frontier, hop = graph.adjacency, reached, 0
    while frontier.any():
        hop += 1
        frontier = (adjacency @ frontier.astype(np.float64) > 0) & ~reached
        reached |= frontier
        hops[frontier] = hop
    return hops
