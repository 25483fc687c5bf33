"""Graphs made from a graph: its features scaled, or made of its edges; a part of its nodes or edges."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from pprop._errors import InputError
from pprop._validate import check_bool, check_positions, reject
from pprop.graph.attributes import seal
from pprop.graph.features.scaling import Scaling
from pprop.graph.features.structure import structural_features
from pprop.graph.parts import GraphParts
from pprop.settings import SCALING


class Derived(GraphParts):
    """The graphs that a Graph can be turned into; each is a new one."""

    def scaled(self, scaling: str | Scaling = SCALING.default) -> Self:
        """Return the graph with its features scaled as a network should read them; one that is scaled stays as it is.

        Parameters
        ----------
        scaling
            ``"l1"``: rows divided by the sum of their absolute values, as in the paper. ``"standard"``: columns centred
            and divided by their standard deviation; a sparse matrix is never centred. ``"none"``: as they are.
            ``"auto"``: see `Scaling.fit`. Or the scaling of another graph, to treat this one alike.

        Examples
        --------
        >>> import numpy as np, pprop, scipy.sparse as sp
        >>> graph = pprop.Graph.from_scipy(sp.csr_array((2, 2)), features=np.array([[20.0, 1.0], [40.0, 3.0]]))
        >>> graph.scaled().features
        array([[-1., -1.],
               [ 1.,  1.]], dtype=float32)
        """
        features = self.features
        if features is None or self.scaling is not None:
            return self
        numbers = None if self.recipe is None else self.recipe.numbers
        fitted = scaling if isinstance(scaling, Scaling) else Scaling.fit(features, scaling, numbers)
        made = fitted.apply(features)
        made = seal(made) if isinstance(made, np.ndarray) else made  # nobody else's, so that it is not copied
        return self.replace(features=made, recipe=self.recipe, scaling=fitted)

    def with_structure(self, kind: str, *, replace: bool = False) -> Self:
        """Return the graph with features made of its edges alone, for a network on a graph without any.

        Parameters
        ----------
        kind
            ``"identity"``: one column per node, and so weights of the network for each; a model of them is only for
            this very graph. ``"degree"``: the logarithm of 1 + the weighted degree, and in which of 17 buckets the
            number of neighbours is (of a directed graph for both directions); it is usable on other graphs.
        replace
            Whether features that the graph has may be replaced. Their recipe and scaling go with them.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> pprop.Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]])).with_structure("identity")
        Graph(2 nodes, 1 edges, undirected, 2 features)
        """
        if not check_bool(replace, "replace", "with_structure") and self.features is not None:
            raise InputError("This graph has features already. Pass replace=True to put others in their place.")
        features, names = structural_features(self.adjacency, self.directed, kind, "with_structure")
        return self.replace(features=features, feature_names=names)

    def subgraph(self, nodes: ArrayLike) -> Self:
        """Return the graph induced on `nodes`, in the order given; features, labels and ids come along.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> pprop.Graph.from_scipy(sp.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), ids=list("abc")).subgraph([2, 1]).ids
        array(['c', 'b'], dtype='<U1')
        """
        at = check_positions(nodes, "nodes", "subgraph", n_nodes=self.n_nodes)
        if not len(at):
            reject("nodes", "subgraph", "an array of at least one position", "an empty array")
        if len(np.unique(at)) != len(at):
            reject("nodes", "subgraph", "an array of distinct positions", "a position twice")
        return self.replace(
            adjacency=self.adjacency[at][:, at],
            features=None if self.features is None else self.features[at],
            recipe=self.recipe,
            scaling=self.scaling,
            labels=None if self.labels is None else self.labels[at],
            ids=None if self.ids is None else self.ids[at],
            # named by number where they have no names, so that the number of classes stays what it was
            class_names=self.class_names or tuple(str(index) for index in range(self.n_classes)) or None,
        )

    def undirected(self) -> Self:
        """Return the graph with every edge in both directions; where both exist, the larger weight counts.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> pprop.Graph.from_scipy(sp.csr_array([[0, 1], [0, 0]]), directed=True).undirected()
        Graph(2 nodes, 1 edges, undirected)
        """
        if not self.directed:
            return self
        adjacency = self.adjacency
        return self.replace(adjacency=adjacency.maximum(adjacency.T), directed=False)

    def without_self_loops(self) -> Self:
        """Return the graph without edges from a node to itself.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> pprop.Graph.from_scipy(sp.csr_array([[1, 1], [1, 0]])).without_self_loops()
        Graph(2 nodes, 1 edges, undirected)
        """
        matrix = self.adjacency.tocoo()
        keep = matrix.row != matrix.col
        kept = (matrix.data[keep], (matrix.row[keep], matrix.col[keep]))
        return self.replace(adjacency=sparse.csr_array(kept, shape=matrix.shape))

    def unweighted(self) -> Self:
        """Return the graph with every weight set to one.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> pprop.Graph.from_scipy(sp.csr_array([[0, 2.5], [2.5, 0]])).unweighted()
        Graph(2 nodes, 1 edges, undirected)
        """
        return self if self.weights is None else self.replace(adjacency=self.adjacency.sign())

    def largest_component(self) -> Self:
        """Return the largest (weakly) connected component, nodes in their order; the first of several equal ones.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> pprop.Graph.from_scipy(sp.csr_array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])).largest_component()
        Graph(2 nodes, 1 edges, undirected)
        """
        count, component = sparse.csgraph.connected_components(self.adjacency, directed=True, connection="weak")
        if count == 1:
            return self
        return self.subgraph(np.flatnonzero(component == np.bincount(component).argmax()))
