"""How much more often edges join nodes of one class than chance would, and what a neighbour's class tells of a node's own.

Definitions of Platonov et al., "Characterizing graph datasets for node classification: homophily-heterophily dichotomy and
beyond" (2023). With p(a, b) the share of edges, each counted in both directions, from class a to class b, and p(a) the
share of their ends in class a:

    edge homophily     h     = sum_a p(a, a)
    adjusted           h_adj = (h - sum_a p(a)^2) / (1 - sum_a p(a)^2)
    informativeness    LI    = I / H,   I = sum_ab p(a, b) log(p(a, b) / (p(a) p(b))),   H = -sum_a p(a) log p(a)

h depends on how many classes there are and how large they are; the other two do not: both are 0 where neighbours' classes are
independent, and 1 where they are always equal. h_adj is below 0 where edges avoid their own class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._validate import counted, describe, reject
from pprop.graph.graph import Graph

FEW_EDGES = 30  # between labelled nodes, below which nothing is said of them
_NO_MORE = 0.05  # of h_adj: neighbours share the class no more often than by chance
_LITTLE = 0.05  # of LI: a neighbour's class tells next to nothing


@final
@dataclass(frozen=True)
class Homophily:
    """What the edges between labelled nodes show.

    Attributes
    ----------
    edges
        Edges whose two ends, different nodes, both have a known label.
    edge
        Share of them within a class.
    adjusted
        The same in excess of chance: 0 as by chance, 1 always, below 0 less often. None without edges of two classes.
    informativeness
        How much of the uncertainty about a node's class the class of one neighbour takes away, 0 to 1. None likewise.

    Examples
    --------
    >>> Homophily(edges=1000, edge=0.9, adjusted=0.85, informativeness=0.6).sentence
    'Neighbours share the class far more often than by chance: expect the graph to help.'
    """

    edges: int
    edge: float
    adjusted: float | None
    informativeness: float | None

    @property
    def sentence(self) -> str:
        """What it means, in words."""
        if self.edges < FEW_EDGES:
            return "These are too few edges to say whether the graph helps."
        if self.adjusted is None or self.informativeness is None:
            return "All edges between labelled nodes are within one class: they do not say whether the graph helps."
        if self.adjusted > 0.3:
            return "Neighbours share the class far more often than by chance: expect the graph to help."
        if self.adjusted > _NO_MORE:
            return "Neighbours share the class somewhat more often than by chance: expect the graph to help a little."
        if self.informativeness > _LITTLE:
            return (
                "Neighbours share the class no more often than by chance, but their class tells something of a node's own: "
                "expect models that treat neighbours apart from the node itself to do better than averages."
            )
        return (
            "Neighbours share the class no more often than by chance: expect the network alone, or hops, to do better "
            "than averages over neighbours."
        )

    def figures(self, nodes: str) -> str:
        """Return the numbers in words; `nodes` says whose labels are known, in the plural.

        >>> Homophily(edges=1000, edge=0.9, adjusted=0.85, informativeness=0.6).figures("training nodes")
        '90.0% of 1,000 edges between training nodes are within a class (adjusted homophily 0.85, label informativeness 0.60)'
        """
        if not self.edges:
            return f"0 edges between {nodes}"
        share = f"{self.edge:.1%} of {counted(self.edges, 'edge')} between {nodes} {'is' if self.edges == 1 else 'are'} within a class"
        if self.edges < FEW_EDGES or self.adjusted is None or self.informativeness is None:
            return share
        return f"{share} (adjusted homophily {self.adjusted:.2f}, label informativeness {self.informativeness:.2f})"


def homophily(graph: Graph, labels: ArrayLike | None = None) -> Homophily:
    """Return how the classes of neighbours go together, from known labels alone.

    Parameters
    ----------
    graph
        The graph, n nodes. Each edge counts once, whatever its weight or direction; self-loops are left out.
    labels
        Class index of each node, shape (n,), -1 where unknown, such as for test nodes. None: ``graph.labels``.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> ring = sp.diags_array([1.0] * 4, offsets=[-3, -1, 1, 3], shape=(4, 4))
    >>> found = homophily(Graph.from_scipy(ring), [0, 1, 0, 1])
    >>> found.edges, found.edge, found.adjusted, round(found.informativeness, 9)
    (4, 0.0, -1.0, 1.0)
    """
    given = graph.labels if labels is None else labels
    if given is None:
        reject("labels", "homophily", f"class indices of {graph.n_nodes} nodes", describe(None))
    codes: NDArray[Any] = np.asarray(given)
    if codes.shape != (graph.n_nodes,) or codes.dtype.kind not in "iu":
        reject("labels", "homophily", f"class indices of {graph.n_nodes} nodes", describe(given))
    labelled = np.flatnonzero(codes >= 0)  # the rows of other nodes need not be read
    first, entries = graph.indptr[labelled].astype(np.int64), np.diff(graph.indptr)[labelled].astype(np.int64)
    rows = np.repeat(labelled, entries)
    before = np.repeat(first - (np.cumsum(entries) - entries), entries)
    columns = graph.indices[before + np.arange(len(rows))].astype(np.int64)
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    inside = (codes[low] >= 0) & (codes[high] >= 0) & (low != high)
    pairs = np.unique(low[inside] * np.int64(graph.n_nodes) + high[inside])
    one, other = codes[pairs // graph.n_nodes], codes[pairs % graph.n_nodes]
    if not len(pairs):
        return Homophily(0, 0.0, None, None)
    return Homophily(len(pairs), float((one == other).mean()), *_beyond_chance(one, other))


def _beyond_chance(one: NDArray[np.integer], other: NDArray[np.integer]) -> tuple[float | None, float | None]:
    classes = int(max(one.max(), other.max())) + 1
    joint = np.zeros((classes, classes))
    np.add.at(joint, (one, other), 1.0)
    joint = (joint + joint.T) / (2 * len(one))
    ends = joint.sum(axis=1)
    by_chance = float(ends @ ends)
    if by_chance >= 1.0:
        return None, None
    adjusted = (float(np.trace(joint)) - by_chance) / (1 - by_chance)
    there = joint > 0
    mutual = float((joint[there] * np.log(joint[there] / np.outer(ends, ends)[there])).sum())
    entropy = -float((ends[ends > 0] * np.log(ends[ends > 0])).sum())
    return adjusted, mutual / entropy
