"""The frozen Graph: everything that pprop knows about a user's data, validated once, at the border."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from html import escape
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pprop._errors import GraphError, InputError, PpropError
from pprop._validate import check_bool, describe, name_methods, reject
from pprop.graph import attributes
from pprop.graph.attributes import Csr, Features, Recommended, canonical_csr, frozen, seal, share, symmetrized
from pprop.graph.convert.arguments import as_arrays, as_sparse, check_class_indices, with_ids
from pprop.graph.derived import Derived
from pprop.graph.exchange import Exchange
from pprop.graph.features.dense_rows import DenseRows
from pprop.graph.features.recipe import Recipe
from pprop.graph.features.scaling import Scaling
from pprop.graph.parts import GraphParts, count_loops

# The arguments of `Graph.from_scipy`.
FIELDS = (
    *("adjacency", "directed", "features", "labels", "ids", "class_names", "feature_names", "name", "recommended"),
    *("recipe", "scaling"),
)
SHOWN_IDS, SHOWN_CLASSES = 3, 10  # in a notebook
_OF_FEATURES = ("fingerprint", "_scaled_array", "_network_inputs")  # computed once, of features among others


@final
class Graph(Derived, Exchange):
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
    recommended: Recommended | None

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


name_methods("Graph", GraphParts, Derived, Exchange)


def _rebuild(fields: dict[str, Any]) -> Graph:
    return Graph._of_matrix(**fields, new_labels=False)  # pyright: ignore[reportPrivateUsage]
