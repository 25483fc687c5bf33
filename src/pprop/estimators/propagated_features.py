"""Columns of nodes that know the graph, for any estimator: a scikit-learn transformer whose samples are nodes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from os import PathLike
from typing import Any, Self, cast, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pprop._errors import InputError
from pprop._process import usable_memory
from pprop._validate import check_bool, check_choice, check_int, describe, reject
from pprop.estimators.reading import labelled_nodes, node_positions
from pprop.estimators.several_targets import Quantities, SeveralLabels, rows_at_nodes
from pprop.estimators.targets import Classes, LabelsLike, Target, has_columns, known_labels
from pprop.graph import Graph
from pprop.graph.attributes import MISSING_LABELS
from pprop.graph.files import atomic_writer
from pprop.graph.folder_arrays import HEADER, blocks, npy_header
from pprop.propagation.columns import averages, known_nearby, structure_columns, walk_statistics
from pprop.settings import ALPHA, COLUMN_FOLDS, COMPONENTS, HOPS

_NAME = "PropagatedFeatures"
# What labels may be.
_TASKS: dict[str, type[Target]] = {"classes": Classes, "numbers": Quantities, "labels": SeveralLabels}
_OFTEN = 0.1  # share of the nodes that have a number in a column that is kept beside components
_PPR_STEPS = 40
_SHARE, _ARRAYS = 0.5, 12  # of the memory for columns that are computed together, and float32 arrays of their size
MOST = 1e15  # whose square is far from the largest number of float32

Columns = dict[str, NDArray[np.floating]]


@final
class PropagatedFeatures(TransformerMixin, BaseEstimator):
    """Columns of each node's surroundings, for any scikit-learn estimator: neighbours, structure, known labels nearby.

    Samples are nodes, as in `APPNPClassifier`: X holds positions, ids that are text, or a mask. What a node is given
    depends on nothing but the node and what `fit` was given, so that ``transform`` of training nodes is what ``fit_transform``
    returned.

    Parameters
    ----------
    graph
        The graph, n nodes. Its features are the nodes' own columns.
    hops
        Steps up to which means of the columns are taken over the ends of walks: 1 are the neighbours.
    spread
        Steps up to which standard deviation, largest and smallest value are taken beside the mean.
    alphas
        Teleport probabilities at which columns are averaged by personalized PageRank.
    own
        Whether the nodes' own columns are among them.
    structure
        Whether degree, PageRank, the neighbours' degrees and probabilities that a walk returns are among them.
    labels
        Whether shares of known labels are among them: one and two steps away and by personalized PageRank. Of a node that
        `fit` was given the label of they are out of fold: neither its own label nor those of its fold take part.
    task
        What labels are: ``"classes"``; ``"numbers"``, one or several per node, whose means over known nodes nearby are columns;
        or ``"labels"``, an indicator matrix of any number of labels per node, of each of which the share is a column.
        ``"auto"``: an indicator matrix is labels, anything else classes. Of numbers and labels, nodes with an unknown one are
        left out.
    folds
        Into how many parts the labelled nodes are divided for that.
    relations
        Other graphs of the same nodes by name, such as those of one kind of edge, or with amounts as weights. Each gives
        means over neighbours, hops as above, under its name.
    components
        Sparse columns that few nodes have, such as words, are reduced to so many components, if there are more of them.
    missing_labels
        Words for "unknown" among labels.
    file
        An ``.npy`` file for the columns, which is replaced. It is for a graph that memory does not hold, such as
        ``GraphFolder.open(folder).graph()``: entries are read from where they lie, as many columns are computed together as
        fit into half of the memory, and averages by personalized PageRank are computed in float32. An undirected graph
        without weights and self-loops is never copied into memory; of another one a copy of its edges is made. None: all
        is done in memory.
    random_state
        Divides the labelled nodes, and starts the search for components.

    Attributes
    ----------
    columns_
        The columns of all nodes, shape (n, p), float32; mapped from `file` where one was given.
    n_features_in_
        1: a sample is one number, its position.
    left_out_
        Columns that would take too long on this graph.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5)[:, :2])
    >>> columns = PropagatedFeatures(graph, hops=1, alphas=(), structure=False, labels=False)
    >>> columns.fit([0, 4]).get_feature_names_out()[:4]
    array(['0', '1', '0: mean 1 away', '1: mean 1 away'], dtype=object)
    >>> columns.transform([1])[:, :4]
    array([[0. , 1. , 0.5, 0. ]], dtype=float32)
    >>> model = make_pipeline(PropagatedFeatures(graph, folds=2), LogisticRegression())
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"]).predict([0, 2, 4]).shape
    (3,)
    """

    def __init__(
        self,
        graph: Graph,
        *,
        hops: int = HOPS.default,
        spread: int = 1,
        alphas: Sequence[float] = (0.1, 0.3),
        own: bool = True,
        structure: bool = True,
        labels: bool = True,
        task: str = "auto",
        folds: int = COLUMN_FOLDS.default,
        relations: Mapping[str, Graph] | None = None,
        components: int = COMPONENTS.default,
        missing_labels: Sequence[str] = MISSING_LABELS,
        file: str | PathLike[str] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.graph = graph
        self.hops = hops
        self.spread = spread
        self.alphas = alphas
        self.own = own
        self.structure = structure
        self.labels = labels
        self.task = task
        self.folds = folds
        self.relations = relations
        self.components = components
        self.missing_labels = missing_labels
        self.file = file
        self.random_state = random_state

    def fit(self, X: ArrayLike | None = None, y: LabelsLike | None = None, *, ids: ArrayLike | None = None) -> Self:
        """Compute the columns of all nodes, from the labels of some.

        Parameters
        ----------
        X, ids
            Nodes whose labels are known, as in `APPNPClassifier.fit`.
        y
            Their classes, numbers or labels, as `task` says; unknown ones are left out. Not needed where `labels` is False.

        Returns
        -------
        self
        """
        self._check()
        random = check_random_state(self.random_state)
        self.left_out_: tuple[str, ...] = ()
        names: list[str] = []
        with nullcontext() if self.file is None else atomic_writer(self.file, "file", _NAME) as stream:
            parts: list[NDArray[np.floating]] = []
            if stream is not None:
                stream.write(bytes(HEADER))
            for columns in self._parts(X, y, ids, random):
                names += columns
                if stream is None:
                    parts += columns.values()
                else:
                    for column in columns.values():
                        stream.write(np.ascontiguousarray(column, dtype=np.float32).view(np.uint8).data)
            if not names:
                raise InputError(
                    f"{_NAME} has no columns: this graph has no features, and structure and labels are switched off."
                )
            if stream is not None:
                stream.seek(0)
                stream.write(npy_header(np.dtype(np.float32), (self.graph.n_nodes, len(names)), by_columns=True))
        self._names = np.array(names, dtype=object)
        self.columns_: NDArray[np.float32] = (
            np.column_stack(parts).astype(np.float32) if self.file is None else np.load(self.file, mmap_mode="r")
        )
        self.n_features_in_ = 1
        self._fitted_graph = self.graph
        return self

    def _parts(self, X: object, y: object, ids: object, random: np.random.RandomState) -> Iterator[Columns]:
        """Yield the columns of all nodes, (n,) by name, some at a time."""
        own = own_columns(self.graph, self.components, int(random.randint(2**31 - 1)))
        if self.own:
            yield own
        yield from self._of_surroundings(own)
        stored = self.file is not None
        if self.structure:
            found, self.left_out_ = structure_columns(self.graph, stored=stored)
            if self.left_out_:
                warnings.warn(
                    f"{_NAME} leaves out {', '.join(map(repr, self.left_out_))}: walks of two steps are too many on this graph.",
                    stacklevel=3,
                )
            yield cast("Columns", found)
        if self.labels:
            yield self._of_labels(X, y, ids, random)

    def transform(self, X: ArrayLike | None = None, *, ids: ArrayLike | None = None) -> NDArray[np.float32]:
        """Return the columns of nodes, shape (m, p), float32; of all nodes where X is None.

        Parameters
        ----------
        X, ids
            Nodes: positions, a mask or ids that are text; with `ids`, ids.
        """
        check_is_fitted(self)
        if self.graph is not self._fitted_graph:
            raise InputError(f"The graph of {_NAME} is another one than it was fitted with. Call fit again.")
        return self.columns_[node_positions(X, "X", "transform", self.graph, ids=ids)]

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the columns, shape (p,); `input_features` is not read, since a sample is a node."""
        del input_features
        check_is_fitted(self)
        return self._names

    def __sklearn_tags__(self) -> Any:
        tags = cast("Any", super().__sklearn_tags__())
        tags.input_tags.one_d_array = True
        tags.input_tags.positive_only = True
        return tags

    def _check(self) -> None:
        graph = self.graph
        if not isinstance(graph, Graph):
            reject("graph", _NAME, "a Graph", describe(graph))
        check_int(self.hops, "hops", _NAME, low=0, high=100)
        check_int(self.spread, "spread", _NAME, low=0, high=int(self.hops))
        for alpha in self.alphas:
            ALPHA.check(alpha, _NAME)
        for name in ("own", "structure", "labels"):
            check_bool(getattr(self, name), name, _NAME)
        check_choice(self.task, "task", _NAME, ("auto", *_TASKS))
        check_int(self.folds, "folds", _NAME, low=2)
        check_int(self.components, "components", _NAME, low=1)
        for name, relation in (self.relations or {}).items():
            if not isinstance(relation, Graph) or relation.n_nodes != graph.n_nodes:
                reject(
                    "relations",
                    _NAME,
                    f"graphs of the same {graph.n_nodes} nodes",
                    f"{describe(relation)} for {name!r}",
                )
            if relation.ids is not None and graph.ids is not None and not np.array_equal(relation.ids, graph.ids):
                reject("relations", _NAME, "graphs whose ids are in the same order", f"another order in {name!r}")

    def _of_surroundings(self, own: Columns) -> Iterator[Columns]:
        graphs = {"": self.graph} | {f"{name} ": one for name, one in (self.relations or {}).items()}
        names = list(own)
        together = self._together(len(names))
        for first in range(0, len(names), together):
            some = names[first : first + together]
            table = np.column_stack([np.asarray(own[name], dtype=np.float32) for name in some])
            for before, graph in graphs.items():
                for side, against in {"": False, " against edges": True}.items() if graph.directed else [("", False)]:
                    for hop in walk_statistics(graph, table, self.hops, self.spread, against=against):
                        found = {
                            "mean": hop.mean,
                            "deviation": hop.deviation,
                            "largest": hop.largest,
                            "smallest": hop.smallest,
                        }
                        for word, values in found.items():
                            if values is not None:
                                yield _named(some, values, f"{word} {before}{hop.steps} away{side}")
            for alpha in self.alphas:
                values = averages(self.graph, table, alpha, _PPR_STEPS, stored=self.file is not None)
                yield _named(some, values, f"by PPR {alpha:g}")

    def _together(self, columns: int) -> int:
        """Return of how many columns the surroundings are computed together."""
        memory = None if self.file is None else usable_memory()
        if memory is None:
            return max(columns, 1)
        return max(1, min(columns, int(_SHARE * memory / (_ARRAYS * 4 * self.graph.n_nodes))))

    def _of_labels(self, X: object, y: object, ids: object, random: np.random.RandomState) -> Columns:
        task = ("labels" if has_columns(y) else "classes") if self.task == "auto" else self.task
        kind = _TASKS[task]
        given = labelled_nodes(X, y, self.graph, _NAME, ids=ids, missing_labels=self.missing_labels, kind=kind)
        if kind is Classes:
            classes, codes = np.unique(given.labels, return_inverse=True)
            known = known_labels(given.nodes, codes, self.graph.n_nodes)  # refuses two classes for one node
            nodes = np.flatnonzero(known >= 0)
            shown = classes[1:] if len(classes) == 2 else classes  # of two the share of one says both
            values = (classes[known[nodes]][:, None] == shown[None, :]).astype(np.float64)
            named = [f"label {name}" for name in shown]
        else:
            rows = rows_at_nodes(given.nodes, given.labels.reshape(len(given.labels), -1), self.graph.n_nodes)
            nodes = np.flatnonzero(~np.isnan(rows).any(axis=1))
            values = rows[nodes]
            named = [f"{task[:-1]} {place}" for place in range(values.shape[1])]
        if len(nodes) < self.folds:
            reject("folds", _NAME, f"at most the number of labelled nodes, {len(nodes)}", str(self.folds))
        # drawn without a look at labels, so that a node's columns do not depend on its own in any way
        folds = random.permutation(len(nodes)) % self.folds
        return dict(known_nearby(self.graph, nodes, values, folds, named, stored=self.file is not None))


def _named(names: Sequence[str], values: NDArray[np.floating], what: str) -> Columns:
    return {f"{name}: {what}": column for name, column in zip(names, values.T, strict=True)}


def own_columns(graph: Graph, components: int, seed: int) -> Columns:
    """Return the features of a graph as dense columns (n,) by name, those that few nodes have as components.

    >>> import scipy.sparse as sp
    >>> words = sp.csr_array(np.eye(30))
    >>> graph = Graph.from_scipy(sp.csr_array((30, 30)), features=sp.hstack([np.ones((30, 1)), words]).tocsr())
    >>> list(own_columns(graph, components=2, seed=0))
    ['0', 'component 1', 'component 2']
    """
    if graph.features is None:
        return {}
    given = cast("Any", graph.features)
    words = sparse.csr_array(given) if sparse.issparse(graph.features) else None
    table: Any = given.reshape(graph.n_nodes, -1) if words is None else words
    values: NDArray[Any] = table if words is None else words.data
    parts = [float(np.abs(values[some]).max(initial=0.0)) for some in blocks(len(values), values[:1].nbytes)]
    largest = float(np.max(parts, initial=0.0))
    if not largest < MOST:
        reject("graph", _NAME, f"one with features below {MOST:g}", f"one that are too large, up to {largest:g},")
    names = graph.feature_names
    if names is None or len(names) != table.shape[1]:
        names = [str(place) for place in range(table.shape[1])]
    if words is None:
        return dict(zip(names, table.T, strict=True))
    often = np.bincount(words.indices, minlength=len(names)) > _OFTEN * graph.n_nodes
    if np.count_nonzero(~often) <= components:
        often[:] = True
    common, rare = np.flatnonzero(often), np.flatnonzero(~often)
    columns: Columns = {names[place]: words[:, [place]].toarray()[:, 0] for place in common.tolist()}
    if len(rare):
        unit = cast("Any", normalize(words[:, rare].astype(np.float64)))
        reduced: NDArray[np.float64] = cast("Any", TruncatedSVD(components, random_state=seed)).fit_transform(unit)
        columns |= {f"component {place + 1}": column for place, column in enumerate(reduced.T)}
    return columns
