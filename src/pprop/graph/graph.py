"""The frozen Graph: everything that pprop knows about a user's data, validated once, at the border."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pprop._errors import GraphError, InputError, PpropError
from pprop._validate import check_bool, describe, reject
from pprop.graph import attributes
from pprop.graph.attributes import (
    MISSING_LABELS,
    Csr,
    Features,
    LabelKind,
    Recommended,
    canonical_csr,
    count_loops,
    frozen,
    seal,
    share,
    symmetrized,
)
from pprop.graph.convert.arguments import as_arrays, as_sparse, check_class_indices, with_ids
from pprop.graph.features.recipe import Recipe
from pprop.graph.features.scaling import DenseRows, Scaling
from pprop.graph.features.structure import degree_columns, structural_features
from pprop.graph.rows import check_nodes
from pprop.settings import SCALING

# The arguments of `Graph.from_scipy`.
FIELDS = (
    "adjacency",
    "directed",
    "features",
    "labels",
    "ids",
    "class_names",
    "feature_names",
    "name",
    "recommended",
    "recipe",
    "scaling",
)
SHOWN_IDS, SHOWN_CLASSES = 3, 10  # in a notebook
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
SCALINGS = 4  # of a graph that are kept
SMALL = 2**26  # bytes of scaled features that are kept beside those given
_OF_FEATURES = ("fingerprint", "_scaled_array", "_network_inputs")  # computed once, of features among others


@final
class Graph:
    """An immutable graph with optional node features, labels and ids.

    Make one with `Graph.from_scipy`, `from_pandas`, `from_networkx`, `from_pyg` and so on, or a reader (`read_graph`,
    `read_edges`, `read_npz`, `load_dataset`).
    The adjacency is kept in CSR form; row i lists the nodes from which node i receives.

    Attributes
    ----------
    indptr, indices : arrays of shape (n + 1,) and (entries,)
        CSR structure, int64 and int32, columns sorted within each row.
    weights : array of shape (entries,) or None
        Edge weights in float64; None when every weight is one.
    directed : bool
        False when the adjacency is symmetric by contract.
    features : CSR array or array of shape (n, f), or None
        Node features. Sparse ones are float32 or float64 without stored zeros, and come as a new object at every call.
        Dense ones are kept as they were given: float16, float32, float64, int8 or uint8, in memory or mapped from a
        file; those of other types are float32.
    labels : array of shape (n,) or None
        Class index per node in int64, -1 where unknown.
    ids : array of shape (n,) or None
        The user's own names of the nodes.
    class_names, feature_names : tuple of str, or None
    name : str or None
        Where the graph came from: a dataset's name or a file's path.
    recommended : Recommended or None
        The paper's settings for this graph, set by `load_dataset`.
    recipe : Recipe or None
        How the features were made from the columns of a table.
    scaling : Scaling or None
        How the features were scaled by `scaled`; None: they are as given, and a model scales them itself.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = Graph.from_scipy(path, labels=[0, 0, 1, 1, -1], ids=list("abcde"))
    >>> graph
    Graph(5 nodes, 4 edges, undirected, 2 classes)
    >>> graph.positions(["e", "a"])
    array([4, 0])
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float64] | None
    directed: bool
    labels: NDArray[np.int64] | None
    ids: NDArray[Any] | None
    class_names: tuple[str, ...] | None
    feature_names: tuple[str, ...] | None
    name: str | None
    recommended: Recommended | None
    recipe: Recipe | None
    scaling: Scaling | None
    of_structure: dict[object, Any]
    """What was made of the adjacency matrix alone, to be used again; graphs with the same one share it."""

    _features: Features | None  # as they lie: those of a graph with `_rows` are not scaled yet
    _rows: DenseRows | None  # how a dense matrix is scaled as it is read; None: it is read as it lies
    _of_features: dict[object, Any]  # scalings that were fitted to the features, to be used again

    def __init__(self) -> None:
        raise InputError("A Graph is not made by calling the class. Use Graph.from_scipy or one of the readers.")

    @classmethod
    def from_scipy(
        cls,
        adjacency: object,
        directed: bool = False,
        features: object = None,
        labels: object = None,
        ids: ArrayLike | None = None,
        *,
        class_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        name: str | None = None,
        recommended: Recommended | None = None,
        recipe: Recipe | None = None,
        scaling: Scaling | None = None,
    ) -> Graph:
        """Make a Graph from an adjacency matrix.

        Parameters
        ----------
        adjacency
            Square scipy sparse matrix, or dense array, of non-negative weights, shape (n, n). Entry (i, j) is what i
            receives from j. Duplicate entries are summed, stored zeros dropped. Of a data frame of pandas the index and
            the columns hold the ids.
        directed
            False demands a symmetric matrix; of two weights that differ by rounding the larger counts for both.
        features
            Sparse or dense, shape (n, ...), finite numbers. An array that can be written to is copied. One that cannot,
            such as ``numpy.load(file, mmap_mode="r")``, is used where it lies, so the file must not change while the
            graph is in use. The columns of a data frame become features by a recipe, see `from_pandas`.
        labels
            Class indices, shape (n,), or the names of classes, which are sorted unless `class_names` has their order.
            Unknown are -1, None and NaN, and of text what `MISSING_LABELS` lists.
        ids
            Names of the nodes, shape (n,), unique: all integers or all strings. Where the index of a pandas frame of
            features or series of labels holds them, its rows are found by them. Where it is 0 to n - 1, rows are in the
            order of the nodes. Any other index is refused.
        class_names, feature_names, name, recommended, recipe, scaling
            See the class.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> Graph.from_scipy(sp.csr_array([[0, 1], [0, 0]]), directed=True)
        Graph(2 nodes, 1 edges, directed)
        """
        return cls._of_matrix(
            adjacency,
            directed,
            features=features,
            labels=labels,
            ids=ids,
            class_names=class_names,
            feature_names=feature_names,
            name=name,
            recommended=recommended,
            recipe=recipe,
            scaling=scaling,
            new_labels=True,
        )

    @classmethod
    def _of_fields(cls, fields: dict[str, Any], function: str) -> Graph:
        try:
            return cls.from_scipy(**fields)
        except PpropError as error:
            error.function = function  # that was called
            raise

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
    ) -> Graph:
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
    ) -> Graph:
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
    ) -> Graph:
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
    ) -> Graph:
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
    ) -> Graph:
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

    @classmethod
    def _of_matrix(cls, adjacency: object, directed: bool, *, new_labels: bool, **fields: Any) -> Graph:
        """Make a Graph as `from_scipy` does; labels that are not new were those of a Graph before."""
        function = "Graph.from_scipy"
        directed = check_bool(directed, "directed", function)
        adjacency, fields["ids"] = with_ids(adjacency, fields["ids"], function)
        given = canonical_csr(as_sparse(adjacency, function), function)
        csr = given if directed else symmetrized(given)
        if csr is None:
            remedy = "Pass directed=True, and call .undirected() on the result to ignore directions."
            got = "a matrix that differs from its transpose"
            reject("adjacency", function, "symmetric when directed=False", got, remedy=remedy, error=GraphError)
        return cls._checked(csr, directed, new_labels=new_labels, **fields)

    @classmethod
    def _checked(
        cls, csr: Csr, directed: bool, known: Features | None = None, *, new_labels: bool, **fields: Any
    ) -> Graph:
        """Make a Graph of a sound matrix and fields that are checked here, but for features that are `known`."""
        for field, kind in {"recipe": Recipe, "scaling": Scaling}.items():
            if not isinstance(fields[field], kind | None):
                reject(field, "Graph.from_scipy", f"a pprop.graph.{kind.__name__} or None", describe(fields[field]))
        fields = as_arrays(fields, len(csr[0]) - 1, "Graph.from_scipy")
        if new_labels and fields["class_names"] is None:
            check_class_indices(fields["labels"], "Graph.from_scipy")
        checked = attributes.check_fields(fields, len(csr[0]) - 1, "Graph.from_scipy", known)
        return cls._of_parts(csr, directed, **checked)

    @classmethod
    def _of_parts(cls, csr: Csr, directed: bool, **fields: Any) -> Graph:
        """Make a Graph of parts that are known to be sound and belong to nobody else; a field not given is None."""
        indptr, indices, weights = csr
        graph = object.__new__(cls)
        rest = {field: fields.get(field) for field in FIELDS[3:]}
        vars(graph).update(
            indptr=seal(indptr),
            indices=seal(indices),
            weights=None if weights is None else seal(weights),
            directed=directed,
            _features=fields.get("features"),
            _rows=None,
            _of_features={},
            of_structure={},
            **rest,
        )
        return graph

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A Graph is immutable: '{name}' cannot be set. Make a new one with .replace({name}=...).")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"A Graph is immutable: '{name}' cannot be deleted.")

    def __copy__(self) -> Graph:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Graph:
        return self  # immutable, so that cloning an estimator shares the graph

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._fields(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        parts = [f"{self.n_nodes} nodes", f"{self.n_edges} edges", "directed" if self.directed else "undirected"]
        if self.weights is not None:
            parts.append("weighted")
        if self.feature_shape is not None:
            parts.append(f"{self.feature_shape[1]} features")
        if self.labels is not None:
            parts.append(f"{self.n_classes} classes")
        return f"Graph({', '.join(parts)})"

    def _repr_html_(self) -> str:  # pyright: ignore[reportUnusedFunction]  notebooks call it
        """Return a short table for notebooks."""
        rows: list[tuple[str, str]] = [
            ("nodes", f"{self.n_nodes:,}"),
            ("edges", f"{self.n_edges:,}, {'directed' if self.directed else 'undirected'}"),
        ]
        if self.weights is not None:
            rows[1] = (rows[1][0], f"{rows[1][1]}, weighted")
        if self.ids is not None:
            rest = ["..."] if self.n_nodes > SHOWN_IDS else []
            rows.append(("ids", ", ".join([*map(str, self.ids[:SHOWN_IDS].tolist()), *rest])))
        if self.feature_shape is not None:
            stored = "sparse" if isinstance(self._features, sparse.csr_array) else "dense"
            rows.append(("features", f"{' x '.join(f'{size:,}' for size in self.feature_shape[1:])}, {stored}"))
        if self.labels is not None:
            counts = np.bincount(self.labels[self.labels >= 0], minlength=self.n_classes).tolist()
            names = self.class_names or tuple(map(str, range(self.n_classes)))
            rows.append(("labels", f"{sum(counts):,} of {self.n_nodes:,} nodes"))
            shown = [f"{name}: {count:,}" for name, count in zip(names, counts, strict=True)][:SHOWN_CLASSES]
            more = f" and {len(names) - SHOWN_CLASSES} more" if len(names) > SHOWN_CLASSES else ""
            rows.append(("classes", f"{', '.join(shown)}{more}"))
        cells = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in rows
        )
        title = "Graph" if self.name is None else f"Graph {escape(self.name)}"
        return f"<table><caption>{title}</caption><tbody>{cells}</tbody></table>"

    @property
    def n_nodes(self) -> int:
        """Number of nodes, n."""
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        """Number of stored entries of the adjacency matrix (an undirected edge has two)."""
        return len(self.indices)

    @property
    def n_edges(self) -> int:
        """Number of edges: entries of a directed graph, pairs (and self-loops) of an undirected one."""
        if self.directed:
            return self.n_entries
        return (self.n_entries + count_loops(self.indptr, self.indices)) // 2

    @property
    def n_classes(self) -> int:
        """Number of classes: of the names where there are any, else one more than the largest label."""
        if self.class_names is not None:
            return len(self.class_names)
        return 0 if self.labels is None else int(self.labels.max(initial=-1)) + 1

    @property
    def features(self) -> Features | None:
        """The node features, shape (n, ...), or None."""
        kept = self._features if self._rows is None else self._scaled_array
        return share(kept) if isinstance(kept, sparse.csr_array) else kept

    @property
    def adjacency(self) -> sparse.csr_array:
        """The adjacency matrix in scipy's form, shape (n, n), float64. A new object at every call."""
        weights = np.ones(self.n_entries) if self.weights is None else self.weights
        return sparse.csr_array((weights, self.indices, self.indptr), shape=(self.n_nodes, self.n_nodes))

    @cached_property
    def fingerprint(self) -> str:
        """32 hex digits that depend on the content alone: structure, weights, direction, features, labels, ids.

        The name of the graph, of its classes and of its features, and the paper's recommendation, do not count.
        """
        parts = {name: getattr(self, name) for name in ("indptr", "indices", "weights", "labels")}
        ids = attributes.id_part(self.ids)
        features = attributes.feature_parts(self.features if self._rows is None else self._rows)
        return attributes.content_digest({"directed": np.asarray(self.directed), **parts, "ids": ids, **features})

    def positions(self, ids: ArrayLike) -> NDArray[np.int64]:
        """Return the positions of nodes given by id.

        Parameters
        ----------
        ids
            Ids as given when the graph was made, shape (m,).

        Returns
        -------
        array of int64, shape (m,)

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> Graph.from_scipy(sp.csr_array((3, 3)), ids=[30, 10, 20]).positions([20, 30])
        array([2, 0])
        """
        if self.ids is None:
            raise InputError("This graph has no ids: its nodes are named by their positions, 0 to n - 1.")
        return attributes.look_up(ids, self._id_index, "positions")

    def replace(self, **changes: Any) -> Graph:
        """Return a copy with some fields replaced, validated as by `from_scipy`.

        Fields: adjacency, directed, features, labels, ids, class_names, feature_names, name, recommended, recipe,
        scaling. New features come without recipe and scaling unless these are given, too.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> Graph.from_scipy(sp.csr_array((2, 2))).replace(labels=[0, 1])
        Graph(2 nodes, 0 edges, undirected, 2 classes)
        """
        for field in changes:
            if field not in FIELDS:
                raise InputError(f"A Graph has no field {field!r} to replace. Its fields are: {', '.join(FIELDS)}.")
        keeps_rows = not changes.keys() & {"features", "scaling"}
        known = self._features if keeps_rows or self._rows is None else self.features
        fields: dict[str, Any] = {field: getattr(self, field) for field in FIELDS[1:] if field != "features"}
        fields |= {"features": known, **({"recipe": None, "scaling": None} if "features" in changes else {}), **changes}
        unchanged = all(map(frozen, (self.indptr, self.indices, self.weights)))
        same_structure = not changes.keys() & {"adjacency", "directed"}
        try:
            if same_structure:
                csr, directed = (self.indptr, self.indices, self.weights), fields.pop("directed")
                graph = Graph._checked(csr, directed, known, new_labels="labels" in changes, **fields)
            else:
                matrix = fields.pop("adjacency", self.adjacency)
                graph = Graph._of_matrix(matrix, new_labels="labels" in changes, **fields)
        except PpropError as error:
            error.function = "Graph.replace"  # that was called
            raise
        held = vars(graph)
        if same_structure and unchanged:
            held["of_structure"] = self.of_structure
        if keeps_rows and self._rows is not None:
            copied = self._rows.matrix is self._features and graph._features is not self._features
            held["_rows"] = dataclasses.replace(self._rows, matrix=graph._features) if copied else self._rows
        if graph._features is self._features and not changes.keys() & {"scaling", "recipe"}:
            held["_of_features"] = self._of_features
        return graph

    def scaled(self, scaling: str | Scaling = SCALING.default) -> Graph:
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

    def with_structure(self, kind: str, *, replace: bool = False) -> Graph:
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

    def with_degree(self) -> Graph:
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

    def subgraph(self, nodes: ArrayLike) -> Graph:
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

    def undirected(self) -> Graph:
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

    def without_self_loops(self) -> Graph:
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

    def unweighted(self) -> Graph:
        """Return the graph with every weight set to one.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> pprop.Graph.from_scipy(sp.csr_array([[0, 2.5], [2.5, 0]])).unweighted()
        Graph(2 nodes, 1 edges, undirected)
        """
        return self if self.weights is None else self.replace(adjacency=self.adjacency.sign())

    def largest_component(self) -> Graph:
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

    def _scaled_by(self, scaling: Scaling, made: DenseRows | sparse.csr_array | None) -> Graph:
        graph = object.__new__(Graph)
        vars(graph).update({name: value for name, value in vars(self).items() if name not in _OF_FEATURES})
        if isinstance(made, sparse.csr_array):
            attributes.check_finite(made, "Graph.scaled")
            if not made.data.all():  # a number so small that it became zero
                made = made.copy()
                made.eliminate_zeros()
            for part in (made.data, made.indices, made.indptr):
                seal(part)
            vars(graph)["_features"], made = made, None
        vars(graph).update(scaling=scaling, _rows=made, _of_features={})
        return graph

    @cached_property
    def _scaled_array(self) -> NDArray[np.float32]:
        assert self._rows is not None
        return seal(self._rows.toarray())

    @cached_property
    def _id_index(self) -> dict[object, int]:
        return {} if self.ids is None else {key: position for position, key in enumerate(self.ids.tolist())}

    def _fields(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in FIELDS}


def _rebuild(fields: dict[str, Any]) -> Graph:
    return Graph._of_matrix(**fields, new_labels=False)  # pyright: ignore[reportPrivateUsage]


def _small(features: Features, made: Features | DenseRows | None) -> bool:
    """Whether scaled features take little memory beside those given."""
    if made is None:
        return True
    if isinstance(made, DenseRows):
        return made.matrix is features or made.matrix.nbytes <= SMALL
    return (made.nbytes if isinstance(made, np.ndarray) else 12 * made.nnz) <= SMALL
