"""What an estimator is given: nodes, labels and their weights, checked, and divided into what a model learns from."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, cast, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from pprop._errors import InputError
from pprop._validate import check_array, check_float, check_int, counted, describe, reject, warn
from pprop.datasets import Split
from pprop.estimators.targets import Classes, LabelsLike, Target, as_classes, of_one_type
from pprop.graph import Graph
from pprop.graph.attributes import MISSING_LABELS, check_class_texts, check_codes, check_missing
from pprop.graph.rows import (
    NodeNames,
    check_beside_positions,
    index_of,
    nodes_of_rows,
    numbers_rows,
    positions_of_ids,
    rows_beside,
    rows_of_nodes,
)

# Nodes and their labels; or a fraction of the nodes to fit.
StoppingNodes = tuple[ArrayLike, LabelsLike] | float | None
# How much nodes or classes count.
Weights = NDArray[np.float64]
# A setting in its canonical form: None, "balanced", or a number for some of the classes.
ClassWeight = str | Mapping[Any, float] | None


def node_positions(X: object, parameter: str, function: str, graph: Graph, *, ids: object = None) -> NDArray[np.int64]:
    """Return node positions of shape (m,).

    Parameters
    ----------
    X
        Integers, always positions; a mask, n truth values, in the order of the nodes or indexed by their ids; or text,
        always ids: shape (m,) or a column (m, 1). None, without `ids`: all nodes.
    parameter, function
        Names for an error.
    graph
        The graph.
    ids
        In place of X: ids of nodes, integers or text.

    Examples
    --------
    >>> path = Graph.from_scipy(sparse.csr_array((3, 3)), ids=["a", "b", "c"])
    >>> node_positions([[2], [0]], "X", "predict", path)
    array([2, 0])
    >>> node_positions([False, True, True], "X", "predict", path)
    array([1, 2])
    >>> node_positions(["c"], "X", "predict", path)
    array([2])
    """
    n_nodes = graph.n_nodes
    if ids is not None:
        if X is not None:
            reject("ids", function, f"None where {parameter} is given", describe(ids))
        return positions_of_ids(ids, "ids", function, graph)
    if X is None:
        return np.arange(n_nodes)
    expected = f"an array of node positions, integers from 0 to {n_nodes - 1}, of shape (m,) or (m, 1)"
    features = "Samples are nodes: features belong into the graph, graph.replace(features=...), and X names nodes."
    if sparse.issparse(X):
        reject(parameter, function, expected, "a sparse matrix", remedy=features)
    array = check_array(X, parameter, function, expected)
    if array.dtype.kind == "c":
        reject(parameter, function, expected, array, remedy="Complex data not supported.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        reject(parameter, function, expected, "an array with NaN or inf")
    if array.ndim == 2 and array.shape[1] == 0:  # in scikit-learn's words, which its own checks look for
        got = f"an array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required"
        reject(parameter, function, expected, got)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        remedy = "" if array.ndim else "Put a single node into a list."
        if array.dtype.kind == "b" and array.ndim:
            remedy = "Of the masks of several splits choose one, such as mask[:, 0]."
        elif array.ndim == 2:
            remedy = features
        reject(parameter, function, expected, describe(array if array.ndim else array.item()), remedy=remedy)
    if array.dtype.kind == "O":
        array = of_one_type(array, parameter, function)
        if array.dtype.kind == "O" and any(isinstance(one, bool | np.bool_) for one in array.tolist()):
            wanted = f"a mask of {n_nodes} truth values, none missing, where it is one"
            remedy = "Fill the missing ones, such as with mask.fillna(False)."
            reject(parameter, function, wanted, "some that are none", remedy=remedy)
    if array.dtype.kind == "b":
        if len(array) != n_nodes:
            wanted = f"a mask of {n_nodes} truth values, one per node, where it is one"
            reject(parameter, function, wanted, counted(len(array), "truth value"))
        order = rows_of_nodes(X, NodeNames.of(graph), parameter, function)
        return np.flatnonzero(array if order is None else array[order])
    if array.size and array.dtype.kind == "U":
        listed = isinstance(X, list | tuple)  # in which numpy would make text of an integer
        return positions_of_ids(np.array(X, dtype=object).ravel() if listed else array, parameter, function, graph)
    if array.size and array.dtype.kind not in "iu":
        reject(parameter, function, expected, array)
    if array.size and (array.min() < 0 or array.max() >= n_nodes):
        at = array.argmin() if array.min() < 0 else array.argmax()
        remedy = "Negative values in data." if array[at] < 0 else ""
        if not remedy and graph.ids is not None and graph.ids.dtype.kind in "iu":
            remedy = "Integers are positions; pass ids as ids=..."
        reject(parameter, function, expected, f"{array[at]} at index {at}", remedy=remedy)
    check_beside_positions(X, array, NodeNames.of(graph), parameter, function)
    return array.astype(np.int64)


def is_mask(X: object) -> bool:
    """Whether nodes are given as truth values, one per node of the graph; None, for all nodes, counts as one.

    >>> is_mask([True, False]), is_mask([0, 1]), is_mask(None)
    (True, False, True)
    """
    if X is None:
        return True
    array = np.asarray(X)
    kind = array.dtype.kind
    return kind == "b" or (kind == "O" and array.size > 0 and all(isinstance(x, bool | np.bool_) for x in array.flat))


def seed_of(random_state: object, function: str) -> int:
    """Return the seed of a run: an integer is its own seed, a RandomState or None (numpy's global one) draws one.

    >>> seed_of(7, "fit"), seed_of(np.random.RandomState(0), "fit")
    (7, 2357136044)
    """
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        return check_int(random_state, "random_state", function, low=0, high=2**64 - 1)
    if random_state is not None and not isinstance(random_state, np.random.RandomState):
        expected = "an integer from 0 to 2**64 - 1, a RandomState or None"
        reject("random_state", function, expected, describe(random_state))
    return int(check_random_state(random_state).randint(0, 2**32, dtype=np.uint32))


def _length(y: Any) -> int:
    shape = getattr(y, "shape", None)
    return int(shape[0]) if shape else len(y) if hasattr(y, "__len__") else -1


@final
class Labelled(NamedTuple):
    """Nodes and their known labels.

    Attributes
    ----------
    nodes, labels
        Both of shape (m,).
    rows, length
        The place of each among the labels as given, shape (m,), and how many these are: what else is given with the
        labels, such as weights, is of that length, and ``given[rows]`` belongs to the nodes.
    unlabelled
        How many of the nodes given were left out, since their label is unknown.
    named
        How what else is given with the labels is matched with them, by its index.
    """

    nodes: NDArray[np.int64]
    labels: NDArray[Any]
    rows: NDArray[np.int64]
    length: int
    unlabelled: int
    named: Beside


@final
class Beside(NamedTuple):
    """The nodes that labels were given for, in the order in which these are used, shape (length,).

    Attributes
    ----------
    nodes, graph
        Positions, and their graph.
    indices
        The index of the nodes and of the labels as given, each with the row that belongs to each node (None: in order).
    """

    nodes: NDArray[np.int64]
    graph: Graph
    indices: tuple[tuple[Any, NDArray[np.int64] | None], ...] = ()

    def ordered(self, data: Any, parameter: str, function: str) -> Any:
        """Return what was given with the labels, one row each, in the order in which these are used."""
        moved = any(rows is not None for _, rows in self.indices)
        index = index_of(data)
        order = rows_beside(data, self.nodes, NodeNames.of(self.graph), parameter, function, self.indices)
        if moved and data is not None and order is None and (index is None or numbers_rows(index)):
            expected = "a series with the index of the labels, whose rows are found by it"
            reject(parameter, function, expected, "rows without names", remedy="Pass pd.Series(values, index=y.index).")
        return data if order is None else cast("Any", data).iloc[order]


def read_labelled(
    X: object,
    y: object,
    parameters: tuple[str, str],
    function: str,
    graph: Graph,
    *,
    ids: object = None,
    missing: tuple[str, ...] = MISSING_LABELS,
    classes: NDArray[Any] | None = None,
    kind: type[Target] = Classes,
) -> Labelled:
    """Return the nodes whose label is known; see `node_positions` and `class_labels` for what may be given.

    `kind` is what the labels are of.

    With a mask, or None for all nodes, y may have one label per node of the graph or one per node that is marked. Without
    X the index of a series y names the nodes; with it, rows of y are found by their index (`rows_beside`).

    >>> three = Graph.from_scipy(sparse.csr_array((3, 3)))
    >>> read_labelled([False, True, True], ["a", "b", "?"], ("X", "y"), "fit", three)[:3]
    (array([1]), array(['b'], dtype='<U1'), array([1]))
    """
    nodes = node_positions(X, parameters[0], function, graph, ids=ids)
    names, labels = NodeNames.of(graph), cast("Any", y)
    if not len(nodes):
        return Labelled(nodes, np.empty(0, dtype=np.int64), nodes, 0, 0, Beside(nodes, graph))
    by_name = nodes_of_rows(y, names, parameters[1], function) if X is None and ids is None else None
    whole = ids is None and len(nodes) != graph.n_nodes == _length(y) and is_mask(X)
    beside: list[tuple[Any, NDArray[np.int64] | None]] = []
    if by_name is not None:
        order = np.argsort(by_name)
        nodes = by_name[order]
    elif whole:
        order = rows_of_nodes(y, names, parameters[1], function)
    else:
        index = index_of(X if ids is None else ids)
        if index is not None and is_mask(X) and ids is None:
            index = None if numbers_rows(index) else np.array(names.named(nodes))
        beside.append((index, None))
        order = rows_beside(y, nodes, names, parameters[1], function, beside)
    if order is not None:
        order = None if np.array_equal(order, np.arange(_length(y))) else order
    beside.append((index_of(y), order))
    labels = labels if order is None else labels.iloc[order]
    rows = nodes if whole else np.arange(len(nodes))
    size = graph.n_nodes if whole else len(nodes)
    found = kind.read(
        labels, parameters[1], function, size, rows=rows if whole else None, missing=missing, classes=classes
    )
    known = found.known
    given = Beside(np.arange(graph.n_nodes) if whole else nodes, graph, tuple(beside))
    return Labelled(nodes[known], found.values[known], rows[known], size, int(len(known) - known.sum()), given)


def labelled_nodes(
    X: object,
    y: object,
    graph: Graph,
    estimator: str,
    function: str = "fit",
    *,
    ids: object = None,
    missing_labels: object = MISSING_LABELS,
    kind: type[Target] = Classes,
) -> Labelled:
    """Return the nodes given to `fit` whose label is known, checked; at least one. `kind` is what the labels are of."""
    if y is None:  # in the words that scikit-learn's users know
        node_positions(X, "X", function, graph, ids=ids)
        remedy = "Pass one class label per node."
        if graph.labels is not None:
            remedy = "Pass one class label per node. Those of the graph are not read: y=graph.labels passes them."
        raise InputError(f"{estimator} requires y to be passed, but the target y is None. {remedy}")
    missing = check_missing(missing_labels, function)
    found = read_labelled(X, y, ("X", "y"), function, graph, ids=ids, missing=missing, kind=kind)
    check_some(found, function)
    if kind is Classes:
        _check_classes(found.labels, y, graph, function, missing)
    return found


def _check_classes(labels: NDArray[Any], y: object, graph: Graph, function: str, missing: tuple[str, ...]) -> None:
    """Refuse or warn of labels that seem to be no classes, unless the graph has classes of these names.

    Classes of the graph were checked where its table was read. Where nothing stands for an unknown label, each text is a class.
    """
    if graph.class_names is not None and np.isin(np.unique(labels).astype(str), graph.class_names).all():
        return
    if missing:
        check_class_texts(labels, "y", function, y)
    if (advice := check_codes(labels, "y", function, given=y)) is not None:
        warn(advice)


def _pair(stopping: object) -> tuple[Any, Any] | None:
    """Return stopping nodes and their labels where `stopping` is such a pair."""
    items: Sequence[Any] = cast("Any", stopping) if isinstance(stopping, tuple | list) else ()
    return (items[0], items[1]) if len(items) == 2 else None


def check_some(given: Labelled, function: str) -> None:
    """Refuse no nodes at all, and nodes whose labels are all unknown."""
    if not len(given.nodes) + given.unlabelled:
        reject("X", function, "an array of at least one node", "none")
    if not len(given.nodes):
        got = f"{counted(given.unlabelled, 'label')}, all unknown,"
        reject("y", function, "labels of which some are known", got)


def read_stopping(
    stopping: object,
    labels: NDArray[Any],
    graph: Graph,
    missing_labels: object = MISSING_LABELS,
    function: str = "fit",
    kind: type[Target] = Classes,
) -> object:
    """Return a pair of stopping nodes and labels as arrays, those of unknown label left out; else what was given.

    Parameters
    ----------
    stopping
        A pair, or anything that `FitData.of` takes.
    labels
        Of the nodes that train: what is among them is a class here, too.
    graph, missing_labels, function
        See `labelled_nodes`.
    """
    pair = _pair(stopping)
    if pair is None:
        return stopping
    missing = check_missing(missing_labels, function)
    names, classes = ("stopping", "stopping"), np.unique(labels) if kind is Classes else None
    found = read_labelled(pair[0], pair[1], names, function, graph, missing=missing, classes=classes, kind=kind)
    if not len(found.nodes):
        got = "none" if not found.unlabelled else f"{counted(found.unlabelled, 'label')}, all unknown,"
        reject("stopping", function, "at least one node with its class, or a fraction", got)
    if found.labels.dtype.kind != labels.dtype.kind:
        reject("stopping", function, "labels of the same kind as y, integers or strings", found.labels)
    if found.labels.shape[1:] != labels.shape[1:]:
        reject("stopping", function, f"labels of as many columns as y, {labels.shape[1:]}", found.labels)
    return found.nodes, found.labels


@final
@dataclass(frozen=True, eq=False)
class Given:
    """What `fit` was given, read and checked, without nodes of unknown label and of weight 0.

    Attributes
    ----------
    nodes, labels, weights
        All of shape (m,); `weights` None: all the same.
    stopping
        A pair of arrays (nodes, labels), a fraction as given, or None.
    unlabelled, missing_labels
        How many nodes had an unknown label, and what stands for one.
    kind
        What the labels are of.
    """

    nodes: NDArray[np.int64]
    labels: NDArray[Any]
    weights: Weights | None
    stopping: object
    unlabelled: int
    missing_labels: tuple[str, ...]
    kind: type[Target] = Classes

    @classmethod
    def read(
        cls,
        graph: Graph,
        X: object,
        y: object,
        estimator: str,
        function: str = "fit",
        *,
        stopping: object = None,
        sample_weight: object = None,
        ids: object = None,
        missing_labels: Sequence[str] = MISSING_LABELS,
        kind: type[Target] = Classes,
    ) -> Self:
        """Read the arguments of `fit`, whose docstring says what they may be.

        Parameters
        ----------
        graph, X, y, stopping, sample_weight, ids, missing_labels
            As given.
        estimator, function
            Names for an error.
        kind
            What the labels are of.
        """
        found = labelled_nodes(X, y, graph, estimator, function, ids=ids, missing_labels=missing_labels, kind=kind)
        held = read_stopping(stopping, found.labels, graph, missing_labels, function, kind)
        nodes, labels, weights = found.nodes, found.labels, check_sample_weight(sample_weight, found, function)
        if weights is not None:
            some = weights > 0
            nodes, labels, weights = nodes[some], labels[some], weights[some]
        return cls(nodes, labels, weights, held, found.unlabelled, tuple(missing_labels), kind)

    def validation(self) -> tuple[tuple[NDArray[np.int64], NDArray[Any]], float | None]:
        """Return further nodes for early stopping with their labels, as a rule none, and the fraction in their place, checked."""
        pair = _pair(self.stopping)
        if pair is not None:
            both = np.intersect1d(self.nodes, pair[0])
            if both.size:
                reject("stopping", "fit", "nodes that are not in X", f"node {both[0]}, which is,")
            return pair, None
        none = self.nodes[:0], self.labels[:0]
        if self.stopping is None:
            return none, None
        try:
            return none, check_float(self.stopping, "stopping", "fit", "(0, 1)")
        except InputError:
            reject("stopping", "fit", "a pair (nodes, y) or a float in (0, 1)", describe(self.stopping))

    def all_labels(self) -> Self:
        """Return the same with validation nodes among the others, weight 1 each: for what learns from all labels."""
        (nodes, labels), _ = self.validation()
        weights = None if self.weights is None else np.concatenate([self.weights, np.ones(len(nodes))])
        together = np.concatenate([self.nodes, nodes]), np.concatenate([self.labels, labels])
        return replace(self, nodes=together[0], labels=together[1], weights=weights, stopping=None)


@final
@dataclass(frozen=True, eq=False)
class FitData:
    """What a model learns from.

    Attributes
    ----------
    graph
        With features as the model reads them, and without labels and class names, so that nothing can read those.
    target, values
        What is predicted, and its value at each node of the graph, shape (n, ...): of classes the index, -1 where unknown, of
        others numbers (n, columns), NaN where unknown.
    split
        Training and validation nodes.
    seed
        Of the run.
    weights
        How much each node counts; None: all the same.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((5, 5)))
    >>> data = FitData.of(Given.read(graph, [0, 1, 3, 4], ["a", "a", "b", "b"], "APPNPClassifier", stopping=0.5), graph)
    >>> data.split, data.classes.names, data.values
    (Split(2 train, 2 stopping, 0 test, seed=0), array(['a', 'b'], dtype='<U1'), array([ 0,  0, -1,  1,  1]))
    """

    graph: Graph
    target: Target
    values: NDArray[Any]
    split: Split
    seed: int = 0
    weights: NodeWeights | None = None

    @property
    def classes(self) -> Classes:
        """The target, where it is one of several classes; refuse another."""
        return as_classes(self.target, "fit")

    @classmethod
    def of(cls, given: Given, graph: Graph, seed: int = 0, class_weight: ClassWeight = None) -> Self:
        """Divide what was given into training and validation nodes; those of a pair are the latter."""
        nodes, labels = given.nodes, given.labels
        (watched, watched_labels), fraction = given.validation()
        much = None if given.weights is None else np.concatenate([given.weights, np.ones(len(watched))])
        target = given.kind.of(np.concatenate([labels, watched_labels]), much)
        codes = target.encode(labels)
        every = np.concatenate([codes, target.encode(watched_labels)])
        values = target.at_nodes(np.concatenate([nodes, watched]), every, graph.n_nodes)
        train = nodes
        if fraction is not None:
            train, watched = target.hold_out(nodes, codes, fraction, seed)
        split = Split(train, watched, nodes[:0])
        return cls(graph, target, values, split, seed, node_weights(given, split, values, target, class_weight))

    @property
    def known(self) -> NDArray[np.int64]:
        """The nodes whose value is known, in ascending order."""
        return np.flatnonzero(self.target.known(self.values))


def check_sample_weight(value: object, given: Labelled, function: str = "fit") -> Weights | None:
    """Return the weights of some of the nodes given to `fit` or `score`: finite, not negative and not all zero; None: all the same.

    Parameters
    ----------
    value
        One weight per label given, shape (length,), or None.
    given
        The labels, and which of them are known, shape (m,).

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((3, 3)))
    >>> check_sample_weight([1, 0, 2], read_labelled(None, ["a", None, "b"], ("X", "y"), "fit", graph))
    array([1., 2.])
    """
    if value is None:
        return None
    length, rows = given.length, given.rows
    expected = f"an array of {length} weights, one per label, finite, not negative and not all zero"
    array = check_array(given.named.ordered(value, "sample_weight", function), "sample_weight", function, expected)
    if array.shape != (length,) or array.dtype.kind not in "fiub":
        reject("sample_weight", function, expected, array)
    weights = array[rows].astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        reject("sample_weight", function, expected, f"{weights[wrong[0]]} at index {rows[wrong[0]]}")
    if not weights.any():
        reject("sample_weight", function, expected, "zero for all nodes with a known label")
    return weights


def class_weights(setting: ClassWeight, codes: NDArray[np.int64], much: Weights, classes: NDArray[Any]) -> Weights:
    """Return the weight of every class, shape (c,).

    ``"balanced"``: m / (k count), where m is the weight of all nodes, k the number of classes among them and `count` the
    weight of the class's own, as in scikit-learn; 1 for a class without nodes.

    Parameters
    ----------
    setting
        None, ``"balanced"``, or a number for some of the classes; the others then have 1.
    codes, much
        Class index and weight of some nodes, shape (m,).
    classes
        Names of all classes, shape (c,).

    Examples
    --------
    >>> class_weights("balanced", np.array([0, 0, 0, 1]), np.ones(4), np.array(["no", "yes"]))
    array([0.66666667, 2.        ])
    >>> class_weights({"yes": 3.0}, np.array([0, 1]), np.ones(2), np.array(["no", "yes"]))
    array([1., 3.])
    """
    found = np.ones(len(classes))
    if setting == "balanced":
        count = np.bincount(codes, much, minlength=len(classes))
        some = count > 0
        found[some] = much.sum() / (np.count_nonzero(some) * count[some])
    elif isinstance(setting, Mapping):
        names: list[Any] = classes.tolist()
        unknown = [name for name in setting if name not in names]
        if unknown and len(setting) - len(unknown) < len(names):  # else a class may just be missing among these nodes
            expected = f"None, 'balanced' or a dict of classes among {describe(names)}"
            reject("class_weight", "fit", expected, describe(unknown[0]))
        found = np.array([float(setting.get(name, 1.0)) for name in names])
    return found


@final
class NodeWeights(NamedTuple):
    """How much each node of a graph counts, shape (n,), and each class of the training nodes, shape (c,)."""

    nodes: Weights
    classes: Weights


def node_weights(
    given: Given, split: Split, labels: NDArray[Any], target: Target, class_weight: ClassWeight
) -> NodeWeights | None:
    """Return how much nodes and classes count; None: all the same.

    A node that is listed several times, with several weights, counts their sum: each time their mean. ``"balanced"`` is
    meant for the training nodes and for the stopping nodes each, so that early stopping watches the balanced accuracy.

    Parameters
    ----------
    given
        With weights, or without. Stopping nodes that were given as a pair have weight 1.
    split, labels
        Training and stopping nodes, and class indices of both, shape (n,).
    target, class_weight
        The classes, and the setting.

    Examples
    --------
    >>> split = Split(np.array([0, 1, 2]), np.array([3]), np.array([], dtype=int))
    >>> labels, target = np.array([0, 0, 1, 1, -1]), Classes(np.array(["no", "yes"]))
    >>> given = Given(split.train, target.decode(labels[:3]), None, 0.25, 0, ())
    >>> node_weights(given, split, labels, target, "balanced").nodes
    array([0.75, 0.75, 1.5 , 1.  , 1.  ])
    """
    if given.weights is None and class_weight is None:
        return None
    own = np.ones(len(labels))
    if given.weights is not None:
        nodes = given.nodes
        times = np.bincount(nodes, minlength=len(labels))
        total = np.bincount(nodes, given.weights, minlength=len(labels))
        own[nodes] = (total / np.maximum(times, 1))[nodes]
    if not isinstance(target, Classes):
        return NodeWeights(own, np.ones(target.columns))
    weights, by_class = own.copy(), np.ones(target.columns)
    for some in (split.stopping, split.train):
        by_class = class_weights(class_weight, labels[some], own[some], target.names)
        weights[some] = own[some] * by_class[labels[some]]
    return NodeWeights(weights, by_class)
