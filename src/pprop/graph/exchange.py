"""Graphs from the objects of other libraries, and back: the methods of Graph; the work is in the modules beside this.

A module that makes the parts of a Graph is imported when it is needed: it loads pyarrow, or the library of the object.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, cast

from pprop._errors import PpropError
from pprop.graph.attributes import Csr
from pprop.graph.features.recipe import Recipe
from pprop.graph.labels import MISSING_LABELS, LabelKind
from pprop.graph.parts import GraphParts

# What does not come back from a round trip, such as ``Graph.from_networkx(graph.to_networkx())``, by format.
LOSSES: dict[str, tuple[str, ...]] = {
    "networkx": ("The paper's settings, the recipe and the scaling of the features are left out.",),
    "PyG": ("The paper's settings, the recipe and the scaling of the features are left out.",),
    "scipy": (),
    "pandas": (
        "The paper's settings, the recipe and the scaling of the features are left out.",
        "Features come back as a dense matrix of float32, and not at all if they have no columns; without names their "
        "columns are x0, x1 and so on.",
        "Classes are numbered anew, in the order of their names, and those without a node left out; one named 1.0 is "
        "named 1, and one with an empty name is unknown.",
        "Nodes without ids have their positions for ids, and ids of text that all spell integers become integers.",
    ),
}


class Exchange(GraphParts):
    """What a Graph can be made of, and made into."""

    @classmethod
    @abstractmethod
    def _of_parts(cls, csr: Csr, directed: bool, **fields: Any) -> Self:
        """Make a Graph of parts that are known to be sound."""

    @classmethod
    def _of_fields(cls, fields: dict[str, Any], function: str) -> Self:
        try:
            return cast("Any", cls).from_scipy(**fields)
        except PpropError as error:
            error.function = function  # that was called
            raise

    @abstractmethod
    def _fields(self) -> dict[str, Any]:
        """Return the arguments of `from_scipy` that make this graph."""

    @classmethod
    def from_networkx(
        cls,
        g: object,
        *,
        weight: str | None = "weight",
        label: str | None = None,
        label_kind: LabelKind = "auto",
        features: object = None,
        directed: bool | None = None,
    ) -> Self:
        """Make a Graph from a networkx Graph, DiGraph, MultiGraph or MultiDiGraph.

        The nodes keep their order and are the ids. An edge from s to t becomes entry (t, s): t receives from s.
        The weights of parallel edges are added, and a warning says how many there were.

        Parameters
        ----------
        g
            Its nodes must be all integers or all strings.
        weight
            Edge attribute with finite, non-negative weights; an edge without it counts as 1, as in networkx. None for
            an unweighted graph.
        label
            Node attribute with the class: text or class indices, missing, None or NaN where unknown.
        label_kind
            As in `read_edges`: ``"category"`` takes each distinct value for a class.
        features
            Node attributes that become features: names, a mapping of names to kinds, or "auto" for all of them; see
            `from_pandas`. An attribute of vectors, all of one length, is a block of features; alone, and with a vector
            for every node, it is taken as it is. Or an array or a scipy matrix with one row per node, in their order, or
            a frame with the nodes as index.
        directed
            None as `g` is; False ignores directions (of an edge and its opposite the larger weight counts).

        Notes
        -----
        Of a graph that `to_networkx` made, label and features need not be named.

        Examples
        --------
        >>> import networkx as nx
        >>> from pprop import Graph
        >>> g = nx.Graph([("ann", "bob"), ("bob", "cem")])
        >>> g.add_nodes_from([("ann", {"team": "red"}), ("cem", {"team": "blue"})])
        >>> graph = Graph.from_networkx(g, label="team")
        >>> graph.ids, graph.labels, graph.class_names
        (array(['ann', 'bob', 'cem'], dtype='<U3'), array([ 1, -1,  0]), ('blue', 'red'))
        """
        from pprop.graph.convert.networks import from_networkx

        function = "Graph.from_networkx"
        return cls._of_fields(
            from_networkx(
                g,
                weight=weight,
                label=label,
                label_kind=label_kind,
                features=features,
                directed=directed,
                function=function,
            ),
            function,
        )

    @classmethod
    def from_igraph(
        cls,
        g: object,
        *,
        weight: str | None = "weight",
        label: str | None = None,
        label_kind: LabelKind = "auto",
        features: object = None,
        directed: bool | None = None,
    ) -> Self:
        """Make a Graph from an igraph Graph; the vertex attribute "name", where there is one, has the ids.

        The arguments are those of `from_networkx`.

        Examples
        --------
        >>> import igraph
        >>> from pprop import Graph
        >>> Graph.from_igraph(igraph.Graph.Ring(5))
        Graph(5 nodes, 5 edges, undirected)
        """
        from pprop.graph.convert.networks import from_igraph

        return cls._of_fields(
            from_igraph(g, weight=weight, label=label, label_kind=label_kind, features=features, directed=directed),
            "Graph.from_igraph",
        )

    @classmethod
    def from_pyg(
        cls,
        data: object,
        num_nodes: int | None = None,
        *,
        edge_weight: object = None,
        features: object = None,
        directed: bool | None = None,
    ) -> Self:
        """Make a Graph from a PyTorch Geometric Data, or from its edge_index and what belongs to it.

        Column (s, t) of ``edge_index`` becomes entry (t, s): t receives from s. Weights of edges that are listed twice
        are added, and a warning says how many there were. Masks stay where they are: ``fit(data.train_mask, data.y)``
        takes them.

        Parameters
        ----------
        data
            A Data with ``edge_index`` and if present ``x`` (n, ...), ``y`` (n,), ``edge_weight`` or else ``edge_attr``
            of one column (edges,), ``ids``, ``class_names`` and ``feature_names``; or a tensor or array of shape
            (2, edges).
        num_nodes
            Number of nodes, n, where neither the data nor `features` tell; else one more than the largest position.
        edge_weight
            One weight per column of ``edge_index``, shape (edges,), in place of those of the data.
        features
            One row per node, shape (n, ...), in place of ``x``: a tensor, an array, a scipy matrix or a frame.
        directed
            None takes what `to_pyg` wrote as ``data.directed``; without it the graph is undirected exactly when every
            edge is listed both ways. False ignores directions (of an edge and its opposite the larger weight counts).

        Examples
        --------
        >>> import numpy as np
        >>> from pprop import Graph
        >>> Graph.from_pyg(np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=5)
        Graph(5 nodes, 2 edges, undirected)
        """
        from pprop.graph.convert.pyg import from_pyg

        fields = from_pyg(data, num_nodes=num_nodes, edge_weight=edge_weight, features=features, directed=directed)
        return cls._of_fields(fields, "Graph.from_pyg")

    def to_networkx(self) -> Any:
        """Return a networkx Graph, or DiGraph if directed.

        The nodes are the ids, or 0 to n - 1; they have the attributes "label" (class name or index, none where
        unknown) and "x" (array of shape (f,); of sparse features a dict of column to value). Weighted edges have
        the attribute "weight". ``Graph.from_networkx`` gives the same graph back, up to
        ``pprop.graph.LOSSES["networkx"]``.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from pprop import Graph
        >>> graph = Graph.from_scipy(sp.csr_array([[0, 2.0], [2, 0]]), ids=["a", "b"], labels=[1, -1])
        >>> network = graph.to_networkx()
        >>> network.edges(data=True), network.nodes["a"]
        (EdgeDataView([('a', 'b', {'weight': 2.0})]), {'label': 1})
        >>> Graph.from_networkx(network) == graph
        True
        """
        from pprop.graph.convert.networks import to_networkx

        return to_networkx(self)

    def to_pyg(self, masks: Mapping[str, object] | None = None) -> Any:
        """Return a PyTorch Geometric Data.

        It has ``edge_index`` (2, entries), an undirected edge both ways, ``num_nodes`` and ``directed``; where the
        graph has them ``edge_weight`` (float64), ``x`` (a sparse COO tensor if the features are sparse), ``y`` (-1
        where unknown), ``ids``, ``class_names``, ``feature_names`` and ``name``. ``Graph.from_pyg`` gives the same
        graph back, up to ``pprop.graph.LOSSES["PyG"]``.

        Parameters
        ----------
        masks
            Boolean arrays of shape (n,) by name, such as "train_mask", to be set as well.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from pprop import Graph
        >>> graph = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), labels=[1, 0])
        >>> graph.to_pyg(masks={"train_mask": [True, False]})
        Data(edge_index=[2, 2], num_nodes=2, directed=False, y=[2], train_mask=[2])
        """
        from pprop.graph.convert.pyg import to_pyg

        return to_pyg(self, masks)

    def to_scipy(self) -> dict[str, Any]:
        """Return the arguments of `from_scipy` that give this graph back, nothing lost.

        ``adjacency`` is a CSR array of shape (n, n), ``features`` a CSR array or an array of shape (n, ...).

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from pprop import Graph
        >>> graph = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), labels=[1, 0])
        >>> graph.to_scipy()["labels"], Graph.from_scipy(**graph.to_scipy()) == graph
        (array([1, 0]), True)
        """
        return self._fields()

    def to_pandas(self, *, id_column: str = "id", label_column: str = "label") -> Any:
        """Return two pandas frames, the edges and the nodes, and how to read them.

        The edges have the columns "source", "target" and, where the graph is weighted, "weight"; an undirected edge is
        listed once. The nodes have the columns `id_column` (the ids, or 0 to n - 1), `label_column` (class name or
        index, empty where unknown) if there are labels, and one for each feature. ``tables.options`` holds the other
        arguments with which `from_pandas` gives the same graph back, up to ``pprop.graph.LOSSES["pandas"]``.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from pprop import Graph
        >>> graph = Graph.from_scipy(sp.csr_array([[0, 2.0], [2, 0]]), ids=["a", "b"], features=[[1, 2], [3, 4]])
        >>> edges, nodes = graph.to_pandas()
        >>> edges
          source target  weight
        0      a      b     2.0
        >>> nodes
          id   x0   x1
        0  a  1.0  2.0
        1  b  3.0  4.0
        """
        from pprop.graph.convert.pandas_tables import to_pandas

        return to_pandas(self, id_column, label_column)

    @classmethod
    def from_pandas(
        cls,
        edges: object,
        nodes: object = None,
        *,
        source: str = "source",
        target: str = "target",
        weight: str | None = None,
        directed: bool = False,
        id_column: str = "id",
        label_column: str | None = None,
        label_kind: LabelKind = "auto",
        feature_columns: str | Sequence[str] | Mapping[str, str] | Recipe = "auto",
        missing_labels: Sequence[str] = MISSING_LABELS,
        features: object = None,
        degree: bool = False,
        unknown_nodes: Literal["error", "drop", "add"] = "error",
        name: str | None = None,
    ) -> Self:
        """Make a Graph from a data frame of edges and, if given, one of nodes: pandas, polars, DuckDB or pyarrow.

        Edges that are listed more than once, in one direction or both, are merged as by `read_edges`.

        Parameters
        ----------
        edges
            One edge per row. A pandas DataFrame, any object with the Arrow interface, or a dict of columns.
        nodes
            One node per row; it fixes the order of the nodes and may name nodes without edges. Without it the nodes are
            those of the edges, in the order of their first appearance. A pandas index that has a name, or is text, is a
            column (``"index"`` where it has no name).
        source, target, weight, directed, id_column, label_column, label_kind, feature_columns, degree, missing_labels, unknown_nodes
            As in `read_edges`; the columns are those of the two tables.
        features
            Features beside those of columns, such as embeddings: an array with one row per node, in the order of `nodes`,
            a frame with one row per node, found by the ids in its index, or ``.npy`` files, as in `read_edges`. Where no
            column becomes a feature, also a scipy matrix; arrays are then kept as they are.
        name
            Of the graph.

        Examples
        --------
        >>> import pandas as pd
        >>> from pprop import Graph
        >>> edges = pd.DataFrame({"source": ["ann", "bob", "cem"], "target": ["bob", "cem", "dee"]})
        >>> nodes = pd.DataFrame({"id": ["ann", "bob", "cem", "dee"], "team": ["red", "blue", None, "red"]})
        >>> graph = Graph.from_pandas(edges, nodes, label_column="team")
        >>> graph, graph.class_names, graph.labels
        (Graph(4 nodes, 3 edges, undirected, 2 classes), ('blue', 'red'), array([ 1,  0, -1,  1]))
        """
        from pprop.graph.tables.build import TableColumns
        from pprop.graph.tables.frames import table_of

        function = "Graph.from_pandas"
        columns = TableColumns(
            function,
            source=source,
            target=target,
            weight=weight,
            directed=directed,
            id_column=id_column,
            label_column=label_column,
            label_kind=label_kind,
            feature_columns=feature_columns,
            features=features,
            degree=degree,
            missing_labels=missing_labels,
            unknown_nodes=unknown_nodes,
        )
        if nodes is None:
            columns.check_alone()
        table = table_of(edges, "edges", function, columns.of_edges)
        of_nodes = None if nodes is None else table_of(nodes, "nodes", function)
        return cls._of_parts(**columns.parts(table, of_nodes), name=name)

    @classmethod
    def from_edges(
        cls,
        source: object,
        target: object,
        weight: object = None,
        *,
        directed: bool = False,
        nodes: object = None,
        features: object = None,
        labels: object = None,
        name: str | None = None,
    ) -> Self:
        """Make a Graph from the ids of the two ends of each edge.

        Edges that are listed more than once, in one direction or both, are merged as by `read_edges`.

        Parameters
        ----------
        source, target
            Integers or text, shape (edges,); an edge from s to t lets t receive from s.
        weight
            Finite and non-negative, shape (edges,); None for an unweighted graph.
        directed
            Whether the direction of an edge matters.
        nodes
            The ids of all nodes, shape (n,), in the order wanted; it may name nodes without edges. Without it the nodes
            are those of the edges, in the order of their first appearance.
        features, labels
            One row per node, in the order of `nodes`, or a frame or series with the ids as index, which needs no `nodes`;
            as `from_scipy` takes them.
        name
            Of the graph.

        Examples
        --------
        >>> from pprop import Graph
        >>> graph = Graph.from_edges(["ann", "bob"], ["bob", "cem"], nodes=["ann", "bob", "cem", "dee"])
        >>> graph, graph.positions(["cem"])
        (Graph(4 nodes, 2 edges, undirected), array([2]))
        """
        from pprop.graph.tables.build import edge_parts

        parts = edge_parts(source, target, weight, directed=directed, nodes=nodes, features=features, labels=labels)
        return cls._of_parts(**parts, name=name)
