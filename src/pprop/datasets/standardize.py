"""The paper's first step on every graph."""

from __future__ import annotations

import numpy as np

from pprop.graph import Graph

__all__ = ["standardize"]


def standardize(graph: Graph) -> Graph:
    """Return the graph as the paper uses it: undirected, no self-loops, unweighted, largest connected component.

    An edge in either direction counts, the nodes keep their order, and the features keep their values, in float32.

    Parameters
    ----------
    graph
        Any graph, n nodes.

    Returns
    -------
    Graph
        At most n nodes; features (m, f), labels (m,) and ids (m,) come along.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> arcs = sp.csr_array(([2.0, 1.0, 1.0, 5.0], ([0, 1, 2, 3], [1, 0, 1, 3])), shape=(5, 5))
    >>> standardize(Graph.from_scipy(arcs, directed=True, ids=list("abcde"))).ids
    array(['a', 'b', 'c'], dtype='<U1')
    """
    simple = graph.undirected().without_self_loops().unweighted().largest_component()
    if simple.features is None or simple.features.dtype == np.float32:
        return simple
    return simple.replace(features=simple.features.astype(np.float32))
