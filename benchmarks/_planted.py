"""Labelled graphs with planted classes, of any size: every edge, label and feature is a function of its number and a seed.

A degree-corrected block model. Node weights fall with a power of the rank within the class, so that degrees have the tail
asked for; an edge begins at a node drawn by weight and ends, with the homophily as probability, at one of the same class,
else at one of another, again by weight. Nothing is stored, so a graph may be made piece by piece, in any order.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import _planted_kernels as kernels
from _planted_features import NormalFeatures, WordFeatures, step_through
from pprop._errors import CapacityError
from pprop._process import usable_memory
from pprop._validate import check_float, check_int, counted, describe, reject
from pprop.graph import Graph
from pprop.kernels.random_bits import PLANTED, derive_seed, stream

CHUNK = 2**22  # edges
_GUIDE = 4096
MOST_NODES = 2**31 - 1


@final
@dataclass(frozen=True)
class Planted:
    """A labelled graph with planted classes that is made piece by piece.

    Parameters
    ----------
    nodes
        n.
    mean_degree
        Edges of a node on average; n * mean_degree / 2 edges are drawn. A pair may be drawn twice, and is one edge of a
        graph, so that the degrees of hubs are a little lower.
    tail
        Exponent of the degrees' power law, above 2: P(degree > d) falls as d^(1 - tail). `math.inf`: no tail.
    homophily
        Share of the edges inside classes.
    classes
        Number of classes of equal size, or the share of each.
    features
        `NormalFeatures`, `WordFeatures`, or None.
    seed
        Below 2^64.

    Examples
    --------
    >>> planted = Planted(nodes=1000, classes=4, seed=1)
    >>> planted.n_edges, np.bincount(planted.labels(0, 1000)).tolist()
    (7000, [250, 250, 250, 250])
    >>> first, second = planted.edges(0, 5000), planted.edges(4000, 4003)
    >>> (first[0][4000:4003] == second[0]).all()
    np.True_
    """

    nodes: int
    mean_degree: float = 14.0
    tail: float = 3.0
    homophily: float = 0.4
    classes: int | Sequence[float] = 10
    features: NormalFeatures | WordFeatures | None = NormalFeatures()
    seed: int = 0

    def __post_init__(self) -> None:
        name = "Planted"
        nodes = check_int(self.nodes, "nodes", name, low=2, high=MOST_NODES)
        check_float(self.mean_degree, "mean_degree", name, "(0, inf)")
        check_float(self.homophily, "homophily", name, "[0, 1]")
        check_int(self.seed, "seed", name, low=0, high=2**64 - 1)
        if self.tail != math.inf:
            check_float(self.tail, "tail", name, "(2, inf)")
        if not isinstance(self.features, NormalFeatures | WordFeatures | None):
            reject("features", name, "NormalFeatures, WordFeatures or None", describe(self.features))
        if isinstance(self.classes, Sequence):
            shares = [check_float(share, "classes", name, "(0, inf)") for share in self.classes]
            object.__setattr__(self, "classes", tuple(shares))
        else:
            check_int(self.classes, "classes", name, low=1, high=nodes)
        if (np.diff(self.bounds) < 2).any():
            reject("classes", name, "classes of at least two nodes each", describe(self.classes))
        if isinstance(self.features, WordFeatures) and self.features.columns < 2 * self.n_classes:
            reject("features", name, f"words, two for each of {self.n_classes} classes", describe(self.features))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes) if isinstance(self.classes, Sequence) else self.classes

    @property
    def n_edges(self) -> int:
        """Edges drawn, of which some may be the same."""
        return round(self.nodes * self.mean_degree / 2)

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """The first place of every class, and n: classes lie one after the other, by falling weight."""
        shares = np.ones(self.classes) if isinstance(self.classes, int) else np.asarray(self.classes, np.float64)
        ends: NDArray[np.int64] = np.rint(np.cumsum(shares) / shares.sum() * self.nodes).astype(np.int64)
        return np.concatenate([np.zeros(1, np.int64), ends])

    def edges(self, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the ends of edges `first` to `last`: undirected, no self-loops, some pairs perhaps more than once.

        Examples
        --------
        >>> source, target = Planted(nodes=100, seed=3).edges(0, 4)
        >>> source.shape, (source != target).all()
        ((4,), np.True_)
        """
        self._check_span(first, last, self.n_edges, "edges")
        source, target = np.empty(last - first, np.int32), np.empty(last - first, np.int32)
        share = 1.0 if self.tail == math.inf else (self.tail - 2) / (self.tail - 1)  # 1 - a
        power = 1.0 if self.tail == math.inf else (self.tail - 1) / (self.tail - 2)
        spans = (np.diff(self.bounds) + 1.0) ** share - 1.0
        kernels.edges(
            np.uint64(self.seed),
            stream(PLANTED, 0),
            first,
            self.bounds,
            self._guide,
            spans,
            power,
            self.homophily,
            step_through(self.nodes),
            self._shift,
            source,
            target,
        )
        return source, target

    def edge_chunks(self, size: int = CHUNK) -> Generator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Yield all edges in order, some millions at a time.

        >>> sum(len(source) for source, _ in Planted(nodes=100, seed=3).edge_chunks(300))
        700
        """
        for first in range(0, self.n_edges, size):
            yield self.edges(first, min(first + size, self.n_edges))

    def labels(self, first: int, last: int) -> NDArray[np.int64]:
        """Return the classes of nodes `first` to `last`."""
        self._check_span(first, last, self.nodes, "nodes")
        return np.searchsorted(self.bounds, self.places(first, last), side="right") - 1

    def places(self, first: int, last: int) -> NDArray[np.int64]:
        """Return the places of nodes `first` to `last`: those of a class lie together, by falling expected degree.

        >>> sorted(Planted(nodes=20, classes=2).places(0, 20).tolist()) == list(range(20))
        True
        """
        back = pow(step_through(self.nodes), -1, self.nodes)
        return (np.arange(first, last) - self._shift) % self.nodes * back % self.nodes

    def expected_degrees(self, first: int, last: int) -> NDArray[np.float64]:
        """Return the expected degrees of nodes `first` to `last`, every drawn edge counted; of classes of equal size.

        >>> planted = Planted(nodes=1000, mean_degree=8, classes=4)
        >>> float(planted.expected_degrees(0, 1000).mean().round(6))
        8.0
        """
        share = 1.0 if self.tail == math.inf else (self.tail - 2) / (self.tail - 1)
        places = self.places(first, last)
        at = np.searchsorted(self.bounds, places, side="right") - 1
        rank, size = (places - self.bounds[at]).astype(np.float64), np.diff(self.bounds)[at]
        parts = ((rank + 2) ** share - (rank + 1) ** share) / ((size + 1.0) ** share - 1)
        return self.mean_degree * parts * size

    def feature_rows(self, first: int, last: int) -> NDArray[np.float32] | sparse.csr_array | None:
        """Return the features of nodes `first` to `last`, float32, dense or sparse; None without features."""
        if self.features is None:
            return None
        return self.features.rows(self.seed, first, self.labels(first, last), self.n_classes)

    def graph(self) -> Graph:
        """Return the whole graph, with labels and features.

        >>> Planted(nodes=100, mean_degree=4, classes=2, features=None).graph().n_classes
        2
        """
        needed = 2 * self.n_edges * 24 + self.nodes * 64  # scipy's lists of entries while they are sorted
        usable = usable_memory()
        if usable is not None and needed > usable:
            raise CapacityError(
                f"A graph of {counted(self.n_edges, 'edge')} takes {needed / 2**30:.1f} GiB to make, and this process may use "
                f"{usable / 2**30:.1f} GiB. Write it with write_planted and build a folder from that."
            )
        source, target = self.edges(0, self.n_edges)
        ones = np.ones(len(source), np.float32)
        one_way = sparse.coo_array((ones, (source, target)), shape=(self.nodes, self.nodes)).tocsr()
        both = (one_way + one_way.T).tocsr()
        both.data[:] = 1.0
        features: Any = self.feature_rows(0, self.nodes)
        return Graph.from_scipy(
            both, features=features, labels=self.labels(0, self.nodes), name=f"planted, seed {self.seed}"
        )

    @cached_property
    def _guide(self) -> NDArray[np.int64]:
        at = np.arange(_GUIDE) * (self.nodes / _GUIDE)
        return np.searchsorted(self.bounds, at, side="right") - 1

    @cached_property
    def _shift(self) -> int:
        return (derive_seed(self.seed, stream(PLANTED, 4), 0) % 2**64) % self.nodes

    def _check_span(self, first: int, last: int, most: int, what: str) -> None:
        if not 0 <= first <= last <= most:
            reject("first", f"Planted.{what}", f"with 'last' a part of 0 to {most}", f"{first} to {last}")


def planted_graph(
    nodes: int,
    mean_degree: float = Planted.mean_degree,
    tail: float = Planted.tail,
    homophily: float = Planted.homophily,
    classes: int | Sequence[float] = 10,
    features: NormalFeatures | WordFeatures | None = NormalFeatures(),
    seed: int = 0,
) -> Graph:
    """Return a labelled graph with planted classes, for sizes that fit into memory; see `Planted` for the arguments.

    Examples
    --------
    >>> planted_graph(1000, mean_degree=6, classes=4, seed=2)
    Graph(1000 nodes, 2969 edges, undirected, 64 features, 4 classes)
    """
    return Planted(nodes, mean_degree, tail, homophily, classes, features, seed).graph()
