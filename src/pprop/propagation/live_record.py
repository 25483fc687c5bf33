"""The nodes of a live graph, their features and ids, and the Graph made of them; records of edits; checks of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, final

import numpy as np
from scipy import sparse

from pprop._errors import EdgeError, InputError
from pprop._validate import check_array, check_int, check_positions, describe, reject
from pprop.graph import Graph
from pprop.graph.attributes import Features, check_features, check_ids, known_as, look_up
from pprop.graph.rows import NodeNames, is_text
from pprop.propagation.operator import Nodes, Values

RESPONSES = ("logits", "probabilities")  # any numbers, whose softmax are probabilities, or probabilities themselves
SUM_ERROR = 1e-3  # of given probabilities, as for `PropagatedClassifier`: they may come from float16


@final
@dataclass(frozen=True)
class LiveUpdate:
    """What an edit of a live graph cost.

    Attributes
    ----------
    edit
        Name of the method; an undo names what it undid.
    nodes
        Positions that the edit named, or the new ones.
    pushes, entries
        Nodes whose prediction was corrected, counted as often as that happened, and entries of the adjacency read.
    summed_up
        Whether all rows were summed up anew, which `refresh` does, and an edit when rounding might have added up to a
        sixteenth of the tolerance, or when all nodes were solved for at once because pushes would have taken longer.
    drift
        By how much the residual was then off, in the same unit as the tolerance; None where that was not measured.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> live = pprop.live(pprop.Graph.from_scipy(sp.csr_array((3, 3))), np.eye(3), alpha=0.5)
    >>> update = live.add_edge(0, 1)
    >>> update.edit, update.nodes, update.entries > 0
    ('add_edge', array([0, 1]), True)
    """

    edit: str
    nodes: Nodes
    pushes: int
    entries: int
    summed_up: bool = False
    drift: float | None = None


@final
@dataclass(frozen=True)
class LiveDifference:
    """How far the fixed point is from the model as it was evaluated, on the graph as it was at the start.

    Attributes
    ----------
    solver
        Of the model: ``PowerIteration(steps=10)``, for instance.
    largest
        Largest absolute difference of a logit; of a probability where these are spread.
    classes
        Number of nodes whose class is another.

    Examples
    --------
    >>> LiveDifference("PowerIteration(steps=10)", largest=0.02, classes=0).classes
    0
    """

    solver: str
    largest: float
    classes: int


@final
class LiveRecord:
    """Nodes by position: a removed one keeps its place, and new ones come at the end.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> record = LiveRecord(Graph.from_scipy(sp.csr_array((2, 2)), ids=["a", "b"]))
    >>> record.add(1, None, record.check_ids(["c"], 1, "add_node"))
    >>> record.positions(["c", "a"])
    array([2, 0])
    """

    def __init__(self, graph: Graph) -> None:
        self._base = graph
        self.alive = np.ones(graph.n_nodes, np.bool_)
        self.n = self.count = graph.n_nodes  # positions, and nodes that are there
        self._changed: dict[int, Features] = {}
        self._ids: list[Any] = [] if graph.ids is None else graph.ids.tolist()  # by position
        self._index: dict[object, int] = {key: at for at, key in enumerate(self._ids)}  # of the nodes that are there

    @property
    def nodes(self) -> Nodes:
        """Positions of the nodes that are there."""
        return np.flatnonzero(self.alive[: self.n]).astype(np.int64)

    @property
    def names(self) -> NodeNames:
        """What the nodes that are there are called."""
        return NodeNames(np.array(self._ids) if self._ids else None, self.n, lambda: self._index)

    def check_positions(self, nodes: object, parameter: str, function: str, *, distinct: bool = False) -> Nodes:
        """Return positions of nodes that are there, shape (m,), also given as ids that are text; `distinct`: none twice.

        >>> import scipy.sparse as sp
        >>> LiveRecord(Graph.from_scipy(sp.csr_array((2, 2)))).check_positions([1], "nodes", "logits")
        array([1])
        """
        if is_text(nodes):
            return self._of_ids(nodes, parameter, function, distinct=distinct)
        at = check_positions(nodes, parameter, function, n_nodes=self.n)
        gone = at[~self.alive[at]]
        if len(gone):
            reject(parameter, function, "positions of nodes of the graph", f"{gone[0]}, which was removed")
        if distinct and len(np.unique(at)) != len(at):
            reject(parameter, function, "distinct positions", "a position twice")
        return at

    def _of_ids(self, ids: object, parameter: str, function: str, *, distinct: bool = False) -> Nodes:
        if self._base.ids is None:
            reject(parameter, function, "positions, since this graph has no ids", "text, which would be ids,")
        at = look_up(ids, self._index, function, parameter)
        if distinct and len(np.unique(at)) != len(at):
            reject(parameter, function, "distinct nodes", "a node twice")
        return at

    def check_pairs(self, pairs: object, function: str) -> Nodes:
        """Return pairs of nodes that are there, shape (m, 2), each pair once in either order."""
        expected = "an array of shape (m, 2), two nodes an edge: positions, or ids that are text"
        array = check_array(pairs, "pairs", function, expected)
        if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iuUO":
            reject("pairs", function, expected, describe(array))
        found = self.check_positions(array.reshape(-1), "pairs", function).reshape(-1, 2)
        keys, counts = np.unique(found.min(axis=1) * self.n + found.max(axis=1), return_counts=True)
        if len(keys) != len(found):
            twice = int(keys[counts > 1][0])
            reject("pairs", function, "edges each given once", f"({twice // self.n}, {twice % self.n}) more than once")
        return found

    def check_node(self, node: object, parameter: str, function: str) -> int:
        """Return the position of a node that is there, also given as an id that is text.

        >>> import scipy.sparse as sp
        >>> LiveRecord(Graph.from_scipy(sp.csr_array((2, 2)))).check_node(1, "u", "remove_node")
        1
        """
        if isinstance(node, str):
            at = self._index.get(node)
            if at is None:
                expected = (
                    "the id of a node of the graph"
                    if self._ids
                    else f"an integer from 0 to {self.n - 1}, since the graph has no ids"
                )
                reject(parameter, function, expected, describe(node), remedy=known_as(node, self._index))
            return at
        at = check_int(node, parameter, function, low=0, high=self.n - 1)
        if not self.alive[at]:
            reject(parameter, function, "the position of a node of the graph", f"{at}, which was removed")
        return at

    def check_pair(self, u: object, v: object, function: str) -> Nodes:
        """Return one pair of nodes that are there, shape (1, 2)."""
        return np.array([[self.check_node(u, "u", function), self.check_node(v, "v", function)]], np.int64)

    def check_features(self, features: object, count: int, function: str) -> Features:
        """Return the features of so many nodes, shaped as those of the others."""
        known = self._base.features
        if known is None:
            reject("features", function, "None, as the graph has none", describe(features))
        found = check_features(features, count, function)
        if found.shape[1:] != known.shape[1:]:
            wanted = ", ".join(str(size) for size in (count, *known.shape[1:]))
            reject("features", function, f"an array of shape ({wanted})", describe(features))
        return found

    def check_ids(self, ids: object, count: int, function: str) -> list[Any]:
        """Return new ids, or nothing where nodes have none; they are needed where the others have them."""
        if self._base.ids is None:
            if ids is not None:
                reject("ids", function, "None, as the nodes of this graph have none", describe(ids))
            return []
        if ids is None:
            reject("ids", function, f"{count} new ids, as the nodes of this graph have ids", "None")
        found = check_ids(ids, count, function)
        if found.dtype.kind != self._base.ids.dtype.kind and "U" in found.dtype.kind + self._base.ids.dtype.kind:
            reject("ids", function, "of the kind of the other ids, integers or text", describe(ids))
        for key in found.tolist():
            if key in self._index:
                reject("ids", function, "new ids", f"{key!r}, which is in use")
        return found.tolist()

    def positions(self, ids: object) -> Nodes:
        """Return the positions of ids."""
        if self._base.ids is None:
            raise InputError("This graph has no ids: its nodes are named by their positions.")
        return look_up(ids, self._index, "positions")

    def add(self, count: int, features: Features | None, ids: Sequence[Any]) -> None:
        """Add nodes at the end."""
        first, self.n = self.n, self.n + count
        self.count += count
        if self.n > len(self.alive):
            self.alive = np.concatenate([self.alive, np.zeros(self.n + len(self.alive) // 2, np.bool_)])
        self.alive[first : self.n] = True
        if features is not None:
            self.put_features(range(first, self.n), [features[k : k + 1] for k in range(count)])
        self._ids += ids
        self._index |= {key: first + k for k, key in enumerate(ids)}

    def pop(self, count: int) -> None:
        """Remove the last nodes."""
        for at in range(self.n - count, self.n):
            self._changed.pop(at, None)
        self.n, self.count = self.n - count, self.count - count
        for key in self._ids[self.n :]:
            del self._index[key]
        del self._ids[self.n :]

    def hide(self, nodes: Nodes, *, hidden: bool) -> None:
        """Take nodes out, or put them back where they were."""
        self.alive[nodes] = not hidden
        self.count += -len(nodes) if hidden else len(nodes)
        for at in nodes.tolist() if self._ids else ():
            if hidden:
                del self._index[self._ids[at]]
            else:
                self._index[self._ids[at]] = at

    def put_features(self, nodes: Sequence[int], rows: Sequence[Features | None]) -> list[Features | None]:
        """Give nodes other features, one row each (None: those of the start); return what they had."""
        before = [self._changed.get(at) for at in nodes]
        for at, row in zip(nodes, rows, strict=True):
            if row is None:
                self._changed.pop(at, None)
            else:
                self._changed[at] = row
        return before

    def graph(self, u: Nodes, v: Nodes, weights: Values) -> Graph:
        """Return the graph of these entries on the nodes that are there, in the order of their positions."""
        nodes = self.nodes
        place = np.cumsum(self.alive[: self.n]) - 1
        adjacency = sparse.coo_array((weights, (place[u], place[v])), shape=(len(nodes), len(nodes)))
        features, base, labels = self._features(nodes), self._base, self._base.labels
        if labels is not None:
            labels = np.concatenate([labels, np.full(self.n - len(labels), -1)])[nodes]
        return base.replace(
            adjacency=adjacency,
            features=features,
            feature_names=None if features is None else base.feature_names,
            labels=labels,
            ids=[self._ids[at] for at in nodes.tolist()] if self._ids else None,
            name=None,  # a dataset's name is that of its file
        )

    def _features(self, nodes: Nodes) -> Features | None:
        """Return the features of nodes; None where one has none."""
        known = self._base.features
        if known is None or any(at >= self._base.n_nodes and at not in self._changed for at in nodes.tolist()):
            return None
        row_of = np.arange(self.n)
        row_of[list(self._changed)] = self._base.n_nodes + np.arange(len(self._changed))
        rows = [known, *self._changed.values()]
        if isinstance(known, sparse.csr_array):
            return sparse.csr_array(sparse.vstack([sparse.csr_array(row) for row in rows]))[row_of[nodes]]
        dense = [row.toarray() if isinstance(row, sparse.csr_array) else row for row in rows]
        return np.concatenate(dense)[row_of[nodes]]


def check_weights(weights: object, count: int, function: str) -> Values:
    """Return positive, finite weights, shape (m,); None: ones.

    >>> check_weights(None, 2, "add_edges")
    array([1., 1.])
    """
    if weights is None:
        return np.ones(count)
    expected = f"an array of {count} positive, finite numbers"
    array = check_array(weights, "weights", function, expected)
    if array.shape != (count,) or array.dtype.kind not in "iuf":
        reject("weights", function, expected, describe(array))
    found = array.astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(found) & (found > 0)))
    if len(wrong):
        reject("weights", function, expected, f"{found[wrong[0]]} at index {wrong[0]}")
    return found


def reject_edge(u: int, v: int, function: str, *, there: bool) -> NoReturn:
    """Refuse an edge that is there already, or one that is not there."""
    raise EdgeError(u=u, v=v, there=there, function=function)


def one_or_many(features: Any) -> Any:
    """Return one node's features as those of several, shape (1, ...); sparse ones have that shape already."""
    return features if features is None or sparse.issparse(features) else np.asarray(features)[None]


def check_predictions(
    predictions: Any, parameter: str, count: int, columns: int | None, function: str, response: str = "logits"
) -> Values:
    """Return predictions of so many nodes, shape (m, c), finite; a torch tensor may be one.

    >>> check_predictions([[1, 2]], "predictions", 1, 2, "add_node")
    array([[1., 2.]])
    >>> check_predictions([[1, 2]], "predictions", 1, 2, "add_node", "probabilities")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'predictions' parameter of add_node must be probabilities, none negative, that sum to one...
    """
    expected = f"an array of finite numbers of shape ({count}, {'c' if columns is None else columns})"
    array = check_array(predictions, parameter, function, expected)
    if columns is None and array.ndim == 1:
        array = array[:, None]
    wrong_shape = array.ndim != 2 or len(array) != count or columns not in (None, array.shape[1])
    if wrong_shape or array.dtype.kind not in "buif":
        reject(parameter, function, expected, describe(array))
    found = array.astype(np.float64)
    if not np.isfinite(found).all():
        reject(parameter, function, expected, f"{int((~np.isfinite(found)).sum())} that are not")
    if response == "probabilities":
        wrong = np.flatnonzero((found < 0).any(axis=1) | (np.abs(found.sum(axis=1) - 1) > SUM_ERROR))
        if len(wrong):
            got = f"{found[wrong[0]].tolist()} at index {wrong[0]}"
            reject(parameter, function, "probabilities, none negative, that sum to one in each row", got)
    return found


def probabilities_of(Z: Values, response: str) -> Values:
    """Return the class probabilities of spread predictions, shape (m, c): the softmax of logits, shares of probabilities.

    Spread probabilities sum to one already where the rows of the transition matrix do, and within the tolerance.

    >>> probabilities_of(np.array([[0.0, 0.0], [0.0, np.log(3.0)]]), "logits").round(3)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    >>> probabilities_of(np.array([[0.3, 0.9]]), "probabilities")
    array([[0.25, 0.75]])
    """
    if response == "probabilities":  # zeros may be a little below, within the tolerance
        powers = np.maximum(Z, np.finfo(np.float64).tiny)
    else:
        powers = np.exp(Z - Z.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
