"""A graph that changes, with predictions that follow: edits in, corrected predictions out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pprop._errors import InputError
from pprop._validate import check_choice, check_float, check_int, describe, reject
from pprop.graph import Graph
from pprop.graph.attributes import Features
from pprop.graph.rows import NodeNames, in_node_order, index_of, rows_beside
from pprop.propagation import live_batch, live_record
from pprop.propagation.live_history import LiveHistory
from pprop.propagation.live_record import LiveDifference, LiveRecord, LiveUpdate, one_or_many
from pprop.propagation.operator import Nodes, Values, check_operator
from pprop.settings import ALPHA, LIVE_TOL, NORMALIZATION, SELF_LOOPS

Network = Callable[[Features], NDArray[Any]]  # features of m nodes, shape (m, ...), to their own predictions (m, c)


@final
class LiveGraph:
    """An undirected graph under edits, and the fixed point of its personalized PageRank within a tolerance.

        Z = (1 - alpha) T Z + alpha H

    is kept up to date after every edit by pushes around it, at a cost that depends on the edit and not on the size of
    the graph. Nodes are named by positions, which never change: a removed node leaves its position unused, and new
    nodes come at the end. Ids that are text name them, too; `positions` finds integer ids. An edit is made whole or, with
    an error, not at all.

    Made by `pprop.live`.

    Parameters
    ----------
    graph
        Undirected.
    H
        Predictions of each node on its own, shape (n, c).
    alpha
        Teleport probability, at least 0.001.
    tol
        |Z_i - Z*_i| <= tol d_i^p for every node i and class at any time, Z* being the exact fixed point on the graph
        as it is: d_i is the node's degree, self-loop and weights counted, and p is 1/2 for "sym", 0 for "row" and 1
        for "col".
    normalization, self_loops
        See `transition_matrix`.
    network
        Predicts nodes from their features alone.
    classes
        Names of the classes, shape (c,).
    history
        Number of edits that can be undone.
    response
        What H and Z are: "logits", or "probabilities", which are then divided by their sum and go through no softmax.
    choose
        Predicts positions of classes from probabilities (m, c); None: the most probable.

    Attributes
    ----------
    alpha, tol
        As given.
    difference : LiveDifference or None
        How far the model as it was evaluated is from this fixed point at the start.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> live = pprop.live(Graph.from_scipy(path), np.eye(5)[:, :2], alpha=0.2, tol=1e-6)
    >>> live.remove_edge(1, 2).nodes
    array([1, 2])
    >>> live.logits([2]).round(3) + 0.0
    array([[0., 0.]])
    >>> live.undo().edit, live.graph
    ('undo remove_edge', Graph(5 nodes, 4 edges, undirected))
    """

    def __init__(
        self,
        graph: Graph,
        H: ArrayLike,
        alpha: float = ALPHA.default,
        *,
        tol: float = LIVE_TOL.default,
        normalization: str = NORMALIZATION.default,
        self_loops: bool = SELF_LOOPS.default,
        network: Network | None = None,
        classes: NDArray[Any] | None = None,
        history: int = 1000,
        response: str = "logits",
        choose: Callable[[Values], NDArray[np.int64]] | None = None,
    ) -> None:
        from pprop.propagation.live_system import LiveSystem  # compiled, which is loaded here only

        check_operator(graph, normalization, self_loops, "live")
        if graph.directed:  # the error bound needs the degrees of rows and columns to be the same
            reject("graph", "live", "undirected", "a directed graph", remedy="Call .undirected() to ignore directions.")
        self.alpha = check_float(alpha, "alpha", "live", "[0.001, 1]")
        self.tol = check_float(tol, "tol", "live", "(0, inf)")
        self._response = check_choice(response, "response", "live", live_record.RESPONSES)
        given = in_node_order(H, NodeNames.of(graph), "H", "live")
        predictions = live_record.check_predictions(given, "H", graph.n_nodes, None, "live", response)
        most = check_int(history, "history", "live", low=0)
        self._network, self._classes, self._choose = network, classes, choose
        self._record, self._graph = LiveRecord(graph), graph
        self._system = LiveSystem(graph, predictions, self.alpha, self.tol, normalization, self_loops)
        self._history, self._changes = LiveHistory(self._system, self._record, most), 0
        least = self._system.least_tolerance()
        if least == np.inf:
            expected = "of degrees that predictions can be multiplied with and divided by in float64"
            reject("graph", "live", expected, "degrees too large or too small", remedy="Use weights nearer to 1.")
        if not least <= self.tol:
            enough = f"a float of at least {least:.2g} for predictions as large, or degrees as small, as these"
            reject("tol", "live", enough, describe(tol))
        self.difference: LiveDifference | None = None

    def __repr__(self) -> str:
        return f"LiveGraph({self._record.count} nodes, alpha={self.alpha:g}, tol={self.tol:g})"

    @property
    def nodes(self) -> Nodes:
        """Positions of the nodes that are there, in the order of `graph`."""
        return self._record.nodes

    @property
    def graph(self) -> Graph:
        """The graph as it is now, frozen; built on demand. Features are left out once a node has none."""
        if self._changes != self._history.changes:
            self._graph, self._changes = self._record.graph(*self._system.entries()), self._history.changes
        return self._graph

    @property
    def fingerprint(self) -> str:
        """That of `graph`."""
        return self.graph.fingerprint

    def positions(self, ids: ArrayLike) -> Nodes:
        """Return the positions of nodes given by id, shape (m,)."""
        return self._record.positions(ids)

    def logits(self, nodes: ArrayLike | None = None) -> Values:
        """Return Z of nodes (default: all that are there), shape (m, c): where probabilities are spread, these."""
        return self._system.values(self._positions(nodes, "logits"))

    def predict_proba(self, nodes: ArrayLike | None = None) -> Values:
        """Return the probabilities of the classes, shape (m, c).

        Logits go through the softmax as they are. With "sym" they grow with the number of neighbours, and these
        probabilities should not rank nodes; the `predict_proba` of a classifier divides them by the propagation of ones.
        """
        return live_record.probabilities_of(
            self._system.values(self._positions(nodes, "predict_proba")), self._response
        )

    def predict(self, nodes: ArrayLike | None = None) -> NDArray[Any]:
        """Return the classes of nodes, shape (m,); column numbers where classes have no names."""
        if self._choose is None:
            best = self._system.values(self._positions(nodes, "predict")).argmax(axis=1)
        else:
            best = self._choose(self.predict_proba(nodes))
        return best if self._classes is None else self._classes[best]

    def error_bound(self, nodes: ArrayLike | None = None) -> Values:
        """Return the most by which a logit of each node may differ from the exact one, shape (m,): tol d^p."""
        return self.tol * self._system.degrees(self._positions(nodes, "error_bound"))

    def add_edge(self, u: int | str, v: int | str, weight: float = 1.0) -> LiveUpdate:
        """Add an edge between two nodes, or a self-loop, that is not there."""
        pair = self._record.check_pair(u, v, "add_edge")
        weights = [check_float(weight, "weight", "add_edge", "(0, inf)")]
        return self._change_edges(pair, weights, "add_edge", add=True)

    def add_edges(self, pairs: ArrayLike, weights: ArrayLike | None = None) -> LiveUpdate:
        """Add edges, shape (m, 2), of weight one or of weights (m,), with one round of pushes for all."""
        return self._change_edges(self._record.check_pairs(pairs, "add_edges"), weights, "add_edges", add=True)

    def remove_edge(self, u: int | str, v: int | str) -> LiveUpdate:
        """Remove an edge."""
        return self._change_edges(self._record.check_pair(u, v, "remove_edge"), None, "remove_edge", add=False)

    def remove_edges(self, pairs: ArrayLike) -> LiveUpdate:
        """Remove edges, shape (m, 2), with one round of pushes for all."""
        return self._change_edges(self._record.check_pairs(pairs, "remove_edges"), None, "remove_edges", add=False)

    def set_weight(self, u: int | str, v: int | str, weight: float) -> LiveUpdate:
        """Give an edge another weight."""
        pair = self._record.check_pair(u, v, "set_weight")
        return self._set_weights(pair, [check_float(weight, "weight", "set_weight", "(0, inf)")], "set_weight")

    def set_weights(self, pairs: ArrayLike, weights: ArrayLike) -> LiveUpdate:
        """Give edges, shape (m, 2), other weights (m,)."""
        return self._set_weights(self._record.check_pairs(pairs, "set_weights"), weights, "set_weights")

    def add_node(
        self,
        features: object = None,
        neighbours: Sequence[int] | Sequence[str] | None = None,
        *,
        prediction: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        id: object = None,  # noqa: A002  what a Graph calls it
    ) -> LiveUpdate:
        """Add a node, and edges to `neighbours` if there are any; its position is ``nodes[0]`` of what is returned.

        Without an edge its prediction is that of the network alone: the paper's inductive case.

        Parameters
        ----------
        features
            One node's, for the network to predict from: shape (f,), or (1, f) if sparse.
        neighbours, weights
            Nodes to connect it with, if any, and weights of these edges, one each by default.
        prediction
            In place of the network's, shape (c,).
        id
            Of the node, if the others have ids.
        """
        ids, others = None if id is None else [id], () if neighbours is None else neighbours
        return self._add_nodes(one_or_many(features), one_or_many(prediction), ids, others, weights, 1, "add_node")

    def add_nodes(
        self, features: object = None, *, predictions: ArrayLike | None = None, ids: ArrayLike | None = None
    ) -> LiveUpdate:
        """Add m nodes without edges, from features (m, f) or predictions (m, c)."""
        several: Any = features if features is not None else predictions
        count = several.shape[0] if hasattr(several, "shape") and several.ndim else len(np.atleast_1d(several))
        return self._add_nodes(features, predictions, ids, (), None, count, "add_nodes")

    def remove_node(self, u: int | str) -> LiveUpdate:
        """Remove a node and its edges. Its position is not given to another."""
        return self._remove_nodes(np.array([self._record.check_node(u, "u", "remove_node")]), "remove_node")

    def remove_nodes(self, nodes: ArrayLike) -> LiveUpdate:
        """Remove nodes, shape (m,), and their edges."""
        at = self._record.check_positions(nodes, "nodes", "remove_nodes", distinct=True)
        return self._remove_nodes(at, "remove_nodes")

    def set_features(self, nodes: ArrayLike, features: object) -> LiveUpdate:
        """Give a node other features, or several (m,) theirs (m, f): the network predicts them anew, on their own."""
        at, given = self._several(nodes, features, "features", "set_features")
        found = self._record.check_features(given, len(at), "set_features")
        predictions = self._predict_alone(found, "set_features")
        before = self._record.put_features(at.tolist(), [found[k : k + 1] for k in range(len(at))])
        return self._set_predictions(at, predictions, "set_features", before)

    def set_predictions(self, nodes: ArrayLike, predictions: ArrayLike) -> LiveUpdate:
        """Give a node another prediction of its own (c,), or several (m,) theirs (m, c)."""
        at, given = self._several(nodes, predictions, "predictions", "set_predictions")
        found = self._check_predictions(given, "predictions", len(at), "set_predictions")
        return self._set_predictions(at, found, "set_predictions", None)

    def apply(self, edits: Iterable[Sequence[Any]], *, places: Sequence[str] | None = None) -> LiveUpdate:
        """Make many edits together, in their order and all or none: rows are changed once, and then pushed from once.

        Far faster than one after another. Pushes from many nodes meet, and where they would read more entries than a few
        sweeps over all rows, these are made instead. The bound of the error is the same. A batch is undone as a whole.

        Parameters
        ----------
        edits
            Tuples of the name of a method and its arguments: ``("add_edge", u, v)``, ``("remove_edges", pairs)``. If the
            last one is a dictionary, it has arguments by name: ``("add_node", features, {"id": "z"})``. Edits that follow
            one another should be of edges alone, where they can be: these are checked and made as arrays.
        places
            What an error calls each edit, a line of a file for instance; otherwise it names the index of the edit.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> live = pprop.live(pprop.Graph.from_scipy(sp.csr_array((4, 4))), np.eye(4), alpha=0.2)
        >>> update = live.apply([("add_edge", 0, 1), ("add_edges", [[1, 2], [2, 3]]), ("remove_edge", 0, 1)])
        >>> update.nodes, live.graph.n_edges
        (array([0, 1, 1, 2, 2, 3, 0, 1]), 2)
        >>> live.apply([("add_edge", 0, 1), ("remove_edge", 0, 2)])
        Traceback (most recent call last):
            ...
        pprop._errors.EdgeError: No edit was made, because of the one at index 1: remove_edge: there is no edge between 0 and 2.
        """
        updates = list[LiveUpdate]()
        with self._history.together(updates):
            for run in live_batch.runs(edits, self._record, places, self):
                if isinstance(run, live_batch.EdgeEdits):
                    changes = run.net(self._system.weights_of)
                    self._make_changes("edges", run.nodes(), *changes)
                    continue
                index, call = run
                with live_batch.at_edit(index, places):
                    live_batch.bind(self, call)
                    getattr(self, call[0])(*call[1], **call[2])
        return updates[0]

    def undo(self) -> LiveUpdate:
        """Take back the last edit. Predictions are then within the tolerance of what they were, not the same bits."""
        return self._history.undo()

    def refresh(self) -> LiveUpdate:
        """Recompute all residuals from the graph as it is, and push where one is too large. The cost is that of all nodes.

        Never necessary: rounding is accounted for. ``drift`` of the result is the rounding since the last time.
        """
        pushes, entries, drift = self._system.refresh()
        return LiveUpdate("refresh", self.nodes, pushes, entries, summed_up=True, drift=drift / self.alpha)

    def _change_edges(self, pairs: Nodes, weights: ArrayLike | None, edit: str, *, add: bool) -> LiveUpdate:
        """Add edges of these weights, or remove edges."""
        u, v = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
        known = self._system.weights_of(u, v)
        of_each = live_record.check_weights(weights, len(pairs), edit) if add else known
        wrong = np.flatnonzero(known if add else known == 0.0)
        if len(wrong):
            live_record.reject_edge(int(u[wrong[0]]), int(v[wrong[0]]), edit, there=add)
        self._system.change_edges(u, v, of_each, add=add)
        reverse = partial(self._system.change_edges, u, v, of_each, add=not add)
        return self._history.commit(edit, pairs.ravel(), pairs.ravel(), reverse)

    def _set_weights(self, pairs: Nodes, weights: ArrayLike, edit: str) -> LiveUpdate:
        u, v = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
        old, new = self._system.weights_of(u, v), live_record.check_weights(weights, len(pairs), edit)
        wrong = np.flatnonzero(old == 0.0)
        if len(wrong):
            live_record.reject_edge(int(u[wrong[0]]), int(v[wrong[0]]), edit, there=False)
        return self._make_changes(edit, pairs.ravel(), u, v, old, new)

    def _make_changes(self, edit: str, nodes: Nodes, u: Nodes, v: Nodes, old: Values, new: Values) -> LiveUpdate:
        """Give distinct edges other weights, 0 where there is none before or after."""
        self._system.change_together(u, v, old, new)
        reverse = partial(self._system.change_together, u, v, new, old)
        return self._history.commit(edit, nodes, np.concatenate([u, v]), reverse)

    def _add_nodes(
        self, features: Any, predictions: Any, ids: Any, neighbours: Any, weights: Any, count: int, edit: str
    ) -> LiveUpdate:
        if features is None and predictions is None:
            raise InputError(f"{edit} needs features for the network to predict from, or a prediction.")
        found = None if features is None else self._record.check_features(features, count, edit)
        alone = self._predict_alone(found, edit) if found is not None and predictions is None else predictions
        H = self._check_predictions(alone, "predictions", count, edit)
        keys = self._record.check_ids(ids, count, edit)
        others = self._record.check_positions(neighbours, "neighbours", edit, distinct=True)
        strengths = live_record.check_weights(weights, len(others), edit)
        self._record.add(count, found, keys)
        at = self._system.append(H)
        ends = np.full(len(others), at[0] if count else 0, np.int64)
        self._system.change_edges(ends, others, strengths, add=True)

        def reverse() -> None:
            self._system.change_edges(ends, others, strengths, add=False)
            self._system.pop(count)
            self._record.pop(count)

        return self._history.commit(edit, at, np.concatenate([at, others]), reverse)

    def _remove_nodes(self, at: Nodes, edit: str) -> LiveUpdate:
        if len(at) >= self._record.count:
            reject("nodes", edit, "fewer nodes than there are: a graph has at least one", f"all {len(at)}")
        u, v, weights = self._system.edges_at(at)
        touched = np.unique(np.concatenate([at, u, v]))
        self._system.change_edges(u, v, weights, add=False)
        self._record.hide(at, hidden=True)

        def reverse() -> None:
            self._system.change_edges(u, v, weights, add=True)
            self._record.hide(at, hidden=False)

        return self._history.commit(edit, at, touched, reverse)

    def _set_predictions(self, at: Nodes, H: Values, edit: str, features: list[Features | None] | None) -> LiveUpdate:
        before = self._system.set_predictions(at, H)

        def reverse() -> None:
            self._system.set_predictions(at, before)
            if features is not None:
                self._record.put_features(at.tolist(), features)

        return self._history.commit(edit, at, at, reverse)

    def _predict_alone(self, features: Features, function: str) -> Values:
        if self._network is None:
            raise InputError(
                f"{function} was given features, and this graph is live with predictions from elsewhere: there is no "
                "network. Use set_predictions, or predictions=... for new nodes."
            )
        return self._check_predictions(self._network(features), "features", features.shape[0], function)

    def _check_predictions(self, given: Any, parameter: str, count: int, function: str) -> Values:
        return live_record.check_predictions(given, parameter, count, self._system.columns, function, self._response)

    def _several(self, nodes: Any, values: Any, parameter: str, function: str) -> tuple[Nodes, Any]:
        """Return distinct positions, shape (m,), and their values; m = 1 where nodes is one position."""
        if np.ndim(nodes) == 0:
            nodes, values = [nodes], one_or_many(values)
        at = self._record.check_positions(nodes, "nodes", function, distinct=True)
        if index_of(values) is None:  # as a rule: the names of all nodes are not gathered for an edit of a few
            return at, values
        rows = rows_beside(values, at, self._record.names, parameter, function, [(index_of(nodes), None)])
        return at, values if rows is None else values.iloc[rows]

    def _positions(self, nodes: ArrayLike | None, function: str) -> Nodes:
        """Return positions to be read, all of them for None: of an edit that would be too much."""
        return self.nodes if nodes is None else self._record.check_positions(nodes, "nodes", function)


_COMPLETE = 160  # nodes of a complete graph: a batch that changes all of them reads so many entries that rows are swept


@cache
def compile_edits(columns: int) -> None:
    """Compile what edits of a live graph with so many classes need, by making edits of every kind in small graphs.

    Without it a kernel is compiled by the first edit that needs it, which takes seconds. What numba has in its cache on the
    disk is loaded.

    Examples
    --------
    >>> compile_edits(2)
    """
    H = np.arange(_COMPLETE * columns, dtype=np.float64).reshape(_COMPLETE, columns) % 7
    complete = sparse.csr_array(1.0 - np.eye(_COMPLETE))
    for graph in (Graph.from_scipy(complete), Graph.from_scipy(complete * 0.5)):
        changing = LiveGraph(graph, H)
        changing.apply([("set_predictions", changing.nodes, H[::-1])])  # swept
        new = int(changing.add_node(prediction=H[1]).nodes[0])
        changing.apply([("set_predictions", 0, H[2]), ("add_edge", new, 0), ("remove_edge", 0, 1)])  # pushed
        changing.apply([("add_edge", 0, 1, 2.0), ("remove_node", new)])  # with weights from now on
        changing.undo()
        changing.refresh()
