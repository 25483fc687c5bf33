"""Graphs made from a graph: its features scaled, or made of its edges; a part of its nodes or edges."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from pprop._errors import InputError
from pprop._validate import check_bool, reject
from pprop.graph.attributes import Features, share
from pprop.graph.features.dense_rows import DenseRows
from pprop.graph.features.scaling import Scaling
from pprop.graph.features.structure import degree_columns, structural_features
from pprop.graph.parts import GraphParts
from pprop.graph.rows import check_nodes
from pprop.settings import SCALING

SCALINGS = 4  # of a graph that are kept
SMALL = 2**26  # bytes of scaled features that are kept beside those given


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
        features = self._features
        if features is None or self.scaling is not None:
            return self
        known = self._of_features.get(scaling)
        fitted, made = self._fit_scaling(features, scaling) if known is None else known
        if known is None and _small(features, made):
            for former in list(self._of_features)[: 1 - SCALINGS]:
                del self._of_features[former]
            self._of_features[scaling] = fitted, made
        if not isinstance(made, np.ndarray):
            return self._scaled_by(fitted, made)
        return self.replace(features=made, recipe=self.recipe, scaling=fitted)

    def _fit_scaling(self, features: Features, scaling: str | Scaling) -> tuple[Scaling, Features | DenseRows | None]:
        """Return a scaling and what it makes of the features; None: they are used as they are."""
        numbers = None if self.recipe is None else self.recipe.numbers
        fitted = scaling if isinstance(scaling, Scaling) else Scaling.fit(features, scaling, numbers)
        if fitted.kind == "none":
            return fitted, None
        rows = fitted.rows(features) if isinstance(features, np.ndarray) else None
        return fitted, fitted.apply(features) if rows is None else rows.readable()

    @property
    def feature_shape(self) -> tuple[int, ...] | None:
        """The shape of the features, (n, ...), or None; unlike ``features.shape`` it makes no scaled copy of them."""
        return None if self._features is None else self._features.shape

    def network_rows(self) -> sparse.csr_array | DenseRows:
        """Return the features, which must be a matrix, as a network reads them: scaled, a dense one on the way.

        Examples
        --------
        >>> import numpy as np, pprop, scipy.sparse as sp
        >>> graph = pprop.Graph.from_scipy(sp.csr_array((2, 2)), features=np.array([[20.0, 1.0], [40.0, 3.0]]))
        >>> graph.scaled().network_rows().block(slice(0, 1))
        array([[-1., -1.]], dtype=float32)
        """
        features = self._features if self._rows is None else self._rows
        if features is None or len(features.shape) != 2:
            raise InputError("This graph has no matrix of features.")
        if isinstance(features, sparse.csr_array):
            return share(features)
        return DenseRows(features).readable() if isinstance(features, np.ndarray) else features

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
            raise InputError(
                "This graph has features already. Pass replace=True to put others in their place; with_degree() adds the "
                "degree to them."
            )
        features, names = structural_features(self.adjacency, self.directed, kind, "with_structure")
        return self.replace(features=features, feature_names=names)

    def with_degree(self) -> Self:
        """Return the graph with the degree of each node as one more feature: log(1 + weighted degree).

        A directed graph gets one for each direction. Where features have a recipe, the recipe has the degree, too, and
        computes it for other graphs. The result is that of ``degree=True`` when a table is read.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> graph = pprop.Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), features=[[3.0], [4.0]])
        >>> graph.with_degree().features.round(2)
        array([[3.  , 0.69],
               [4.  , 0.69]])
        """
        from pprop.graph.features.column_recipe import ColumnRecipe
        from pprop.graph.features.columns import read_column
        from pprop.graph.features.encoders import NumberEncoder
        from pprop.graph.features.recipe import Recipe
        from pprop.graph.tables.arrow import pa

        columns = degree_columns(self.adjacency, self.directed)
        features, names, recipe = self.features, self.feature_names, self.recipe
        if self.scaling is not None or (features is not None and features.ndim != 2):
            got = "scaled features" if self.scaling is not None else "features that are no matrix"
            reject("self", "with_degree", "a graph whose features are a matrix as given", got)
        if names is not None and not columns.keys().isdisjoint(names):
            reject("self", "with_degree", "a graph without the degree among its features", repr(next(iter(columns))))
        block = np.column_stack([*columns.values()]).astype(np.float32)
        if recipe is not None:
            made = {name: read_column(name, pa.array(values), typed=True) for name, values in columns.items()}
            degrees = [ColumnRecipe(name, NumberEncoder.fit(column)) for name, column in made.items()]
            recipe = Recipe((*recipe.columns, *degrees), recipe.others)
        if features is None:
            return self.replace(features=block, feature_names=[*columns], recipe=recipe)
        given: Any = features
        joined: Any
        if sparse.issparse(given):
            parts: Any = [given, sparse.csr_array(block)]
            joined = sparse.csr_array(sparse.hstack(parts, format="csr"))
        else:
            joined = np.concatenate([given, block], axis=1)
        more = None if names is None else [*names, *columns]
        return self.replace(features=joined, feature_names=more, recipe=recipe)

    def subgraph(self, nodes: ArrayLike) -> Self:
        """Return the graph induced on `nodes`, positions or ids that are text, in the order given, with features and labels.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> pprop.Graph.from_scipy(sp.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), ids=list("abc")).subgraph([2, 1]).ids
        array(['c', 'b'], dtype='<U1')
        """
        at = check_nodes(nodes, "nodes", "subgraph", self)
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


def _small(features: Features, made: Features | DenseRows | None) -> bool:
    """Whether scaled features take little memory beside those given."""
    if made is None:
        return True
    if isinstance(made, DenseRows):
        return made.matrix is features or made.matrix.nbytes <= SMALL
    return (made.nbytes if isinstance(made, np.ndarray) else 12 * made.nnz) <= SMALL
