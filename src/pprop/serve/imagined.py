"""Graphs that are only imagined: with some edges more or less, or with one node more. The served graph stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from pprop.estimators.decomposed import Decomposed
from pprop.graph import Graph
from pprop.serve.answers import explain
from pprop.serve.faults import Fault, invalid, unusable
from pprop.serve.features import Given, feature_row, network_row
from pprop.serve.spread import Spread, softmax
from pprop.serve.view import View

MOST_MOVED = 20

Change = Mapping[str, Any]  # source, target and, of a new edge, weight


def what_if(
    view: View,
    key: Any,
    remove: Sequence[Change],
    add: Sequence[Change],
    alpha: float | None,
    steps: int | None,
    k: int = 20,
    name: str | None = None,
) -> dict[str, Any]:
    """Return the prediction of a node before and after edges are removed and others added.

    The one after is explained on the graph with these edges: the logit of the class `name` (None: the predicted one) as
    a sum over nodes, the `k` largest terms by name.
    """
    at, before = view.find(key), view.solved(alpha, steps)
    if view.spread is None:
        raise unusable(view.refusal or "This model spreads nothing over the graph.")
    graph = changed_graph(view, remove, add)
    spread = Spread(graph, view.spread.H, view.spread.how, choose=view.choose)
    after = spread.solved(alpha, steps)
    other = replace(view, graph=graph, spread=spread, default=after)
    vars(other).update(
        index=view.index, labels=view.labels, codes=view.codes, roles=view.roles
    )  # the nodes are the same
    moved = np.flatnonzero(after.predicted != before.predicted)
    moved = moved[moved != at]
    size = np.abs(after.probabilities[moved] - before.probabilities[moved]).sum(axis=1)
    first = moved[np.argsort(-size, kind="stable")][:MOST_MOVED].tolist()
    return {
        "before": view.prediction(at, before),
        "after": other.prediction(at, after),
        "explanation": explain(other, key, k, name, None, None),  # the other view's own alpha and steps
        "moved": [{**other.brief(one, after), "before": view.classes[before.predicted[one]]} for one in first],
        "moved_total": len(moved),
    }


def changed_graph(view: View, remove: Sequence[Change], add: Sequence[Change]) -> Graph:
    """Return the graph with some edges removed and then others added; an edge must be there, or not, as that demands."""
    graph = view.graph
    data = np.ones(graph.n_entries) if graph.weights is None else graph.weights.copy()
    new: dict[tuple[int, int], float] = {}

    def there(row: int, column: int) -> float:
        entry = _entry(graph, row, column)
        return new.get((row, column), 0.0) if entry < 0 else float(data[entry])

    def put(row: int, column: int, weight: float) -> None:
        entry = _entry(graph, row, column)
        if entry >= 0:
            data[entry] = weight
        else:
            new[row, column] = weight

    for change, weight in [*((one, 0.0) for one in remove), *((one, float(one["weight"])) for one in add)]:
        giver, receiver = view.find(change["source"]), view.find(change["target"])
        known = there(receiver, giver)
        if (known == 0.0) == (weight == 0.0):
            what = "is not in the graph" if weight == 0.0 else "is in the graph already"
            text = f"The edge between {change['source']!r:.80} and {change['target']!r:.80} {what}."
            raise Fault(409, "edge_state", text)
        put(receiver, giver, weight)
        if not graph.directed:
            put(giver, receiver, weight)
    shape = (view.n, view.n)
    matrix = sparse.csr_array((data, graph.indices, graph.indptr), shape=shape)
    if new:
        rows, columns = np.array(list(new)).T
        matrix = sparse.csr_array(
            matrix + sparse.csr_array((np.array(list(new.values())), (rows, columns)), shape=shape)
        )
    return Graph.from_scipy(matrix, graph.directed)


def _entry(graph: Graph, row: int, column: int) -> int:
    """Return where an entry of the adjacency is stored, -1 where it is zero."""
    begin, end = int(graph.indptr[row]), int(graph.indptr[row + 1])
    entry = begin + int(np.searchsorted(graph.indices[begin:end], column))
    return entry if entry < end and graph.indices[entry] == column else -1


def predict_new(
    view: View, parts: Decomposed | None, features: Given, edges: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the prediction that a node would get if it were added with these features and edges.

    Of a directed graph, edges lead to the new node: it receives along them.
    """
    if parts is None:
        raise unusable(view.refusal)
    row = feature_row(view.graph, features)
    alone = network_row(parts, row)
    if not np.isfinite(alone).all():
        raise invalid("These features are so large that the network predicts no finite number.")
    at = [view.find(edge["id"]) for edge in edges]
    if len(set(at)) < len(at):
        raise invalid("A new node has one edge to each of its neighbours. Got one of them twice.")
    probabilities = softmax(alone)[0]
    if view.spread is not None:
        n, count = view.n, len(at)
        weights = np.array([edge["weight"] for edge in edges], dtype=np.float64)
        ends, here = np.array(at, dtype=np.int64), np.full(count, n)
        rows, columns = (here, ends) if view.graph.directed else (np.r_[here, ends], np.r_[ends, here])
        grown: Any = view.graph.adjacency
        grown.resize((n + 1, n + 1))
        more = sparse.csr_array((np.resize(weights, len(rows)), (rows, columns)), shape=(n + 1, n + 1))
        graph = Graph.from_scipy(sparse.csr_array(grown + more), view.graph.directed)
        probabilities = Spread(graph, np.concatenate([view.spread.H, alone]), view.spread.how).probabilities_of(n)
    best = int(probabilities.argmax() if view.choose is None else view.choose(probabilities[None])[0])
    return {
        "prediction": {
            "predicted": view.classes[best],
            "confidence": float(probabilities[best]),
            "probabilities": probabilities.tolist(),
            "network": softmax(alone)[0].tolist(),
        },
        "used": row.used,
        "left_out": row.left_out,
    }
