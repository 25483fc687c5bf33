"""The neighbourhoods that training reads: the largest entries of the PPR rows of the labelled nodes, and parts of them.

The logits of a labelled node i are sum_j pi_ij f(x_j). Of its row, local push finds the k largest entries, and the network
is computed for these nodes alone. What is left out is made up for: on an undirected graph a row has the mass

    sum_j pi_ij sqrt(d_j / d_i) = 1   ("sym"; the powers of d_j / d_i are 0 for "row" and 1 for "col"),

and the entries that are kept are divided by the mass that they have of it. On a directed graph that holds for "row" alone;
the rows of its "sym" and "col" stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pprop._validate import check_int, describe, reject
from pprop.graph import Graph
from pprop.models import PropagationSettings
from pprop.propagation.push import LocalPush

# Neighbours of a labelled node, at most; on the paper's graphs more of them change the accuracy little.
NEIGHBOURS = 64
# What the search for them stops at, even where they are not proven to be the largest: see `ppr`.
EPS = 1e-5
_HELD = "neighbourhoods"  # their name among what a graph keeps


@final
@dataclass(frozen=True)
class Neighbourhoods:
    """Rows of the PPR matrix with at most k entries each.

    Attributes
    ----------
    nodes
        The nodes to which the rows belong, shape (m,), ascending.
    matrix
        The rows, shape (m, n), float32, columns ascending.
    kept
        The share of each row's mass that its entries had before they were divided by it, shape (m,); NaN where the mass
        of a row is not known ("sym" and "col" of a directed graph), and the entries are as they were.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> found = find_neighbourhoods(path, [4, 0], PropagationSettings(0.5, normalization="row"), neighbours=2)
    >>> found.matrix.toarray().round(2)
    array([[0.76, 0.24, 0.  , 0.  , 0.  ],
           [0.  , 0.  , 0.  , 0.24, 0.76]], dtype=float32)
    >>> found.kept.round(2)
    array([0.94, 0.94])
    """

    nodes: NDArray[np.int64]
    matrix: sparse.csr_array
    kept: NDArray[np.float64]

    def places(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the rows of some nodes are."""
        return np.searchsorted(self.nodes, nodes)

    def of(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], sparse.csr_array]:
        """Return some nodes (b,) with all that occur in their rows, shape (u,), ascending, and these rows, (b, u).

        >>> import pprop, scipy.sparse as sp
        >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
        >>> members, rows = find_neighbourhoods(path, [0, 4], PropagationSettings(), neighbours=2).of(np.array([4]))
        >>> members, rows.shape
        (array([3, 4]), (1, 2))
        """
        rows = self.matrix[self.places(nodes)]
        members = np.unique(np.concatenate([rows.indices, nodes]))  # a row may lack its own node
        places = np.searchsorted(members, rows.indices)
        local = sparse.csr_array((rows.data, places.astype(np.int32), rows.indptr), shape=(len(nodes), len(members)))
        return members.astype(np.int64), local


def keep_neighbourhoods(graph: Graph, found: Neighbourhoods) -> None:
    """Let a graph of some nodes use neighbourhoods that were found elsewhere, on a graph of which it is a part.

    >>> import pprop
    >>> graph = pprop.Graph.from_scipy(sparse.csr_array((2, 2)))
    >>> keep_neighbourhoods(graph, Neighbourhoods(np.array([1]), sparse.csr_array([[0.25, 0.75]]), np.ones(1)))
    >>> find_neighbourhoods(graph, [1], PropagationSettings()).matrix.toarray()
    array([[0.25, 0.75]])
    """
    graph.of_structure[_HELD] = found


def find_neighbourhoods(
    graph: Graph,
    nodes: ArrayLike,
    propagation: PropagationSettings,
    *,
    neighbours: int = NEIGHBOURS,
    eps: float = EPS,
    function: str = "find_neighbourhoods",
) -> Neighbourhoods:
    """Return the neighbourhoods of some nodes, by local push.

    Parameters
    ----------
    graph
        The graph, n nodes. Its arrays are read where they lie.
    nodes
        Positions of nodes, in any order; one that is listed twice has one row.
    propagation
        Of a model; its solver and its dropout are not used. alpha must be above 0.
    neighbours
        k, the entries of a row that are kept, at most. A node without neighbours has one, itself.
    eps
        As in `ppr`: a row costs at most 1 / (alpha eps) entries of an unweighted graph.
    function
        The name under which wrong arguments are refused.
    """
    most = check_int(neighbours, "neighbours", function, low=1)
    held: Neighbourhoods | None = graph.of_structure.get(_HELD)
    if held is not None:
        some = np.unique(np.asarray(nodes))
        at = held.places(some)
        return Neighbourhoods(some, held.matrix[at], held.kept[at])
    if propagation.alpha == 0:
        remedy = "Without teleport a row has no largest entries."
        reject("alpha", function, "above 0", describe(propagation.alpha), remedy=remedy)
    push = LocalPush(graph, propagation.alpha, propagation.normalization, propagation.self_loops, function=function)
    found = push.rows(np.unique(np.asarray(nodes)), eps, most, to_eps=True, function=function)
    rows = found.matrix
    counts = np.diff(rows.indptr)
    own = np.repeat(found.nodes, counts)
    kept = np.full(len(found.nodes), np.nan)
    if push.rescaled or push.normalization == "row":
        before, row = rows.data / push.factors(rows.indices, own), np.repeat(np.arange(len(counts)), counts)
        kept = np.bincount(row, before, len(counts)).astype(np.float64)
        rows = sparse.csr_array((rows.data / np.repeat(kept, counts), rows.indices, rows.indptr), shape=rows.shape)
    rows = rows.astype(np.float32)
    rows.sort_indices()
    return Neighbourhoods(found.nodes, rows, kept)
