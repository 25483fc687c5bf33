"""What is answered to questions about a view: explanations, neighbourhoods, searches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pprop.serve.faults import invalid, unusable
from pprop.serve.layout import positions
from pprop.serve.spread import SpreadResult, Values
from pprop.serve.view import ROLES, Nodes, View

MOST_SHOWN = 200  # nodes of a neighbourhood


def settings_of(solved: SpreadResult) -> dict[str, Any]:
    """Return the alpha and the steps of predictions, as answers have them."""
    return {"alpha": solved.alpha, "steps": solved.steps}


def predict(view: View, ids: list[Any], alpha: float | None, steps: int | None) -> dict[str, Any]:
    """Return the predictions of some nodes."""
    solved = view.solved(alpha, steps)
    return {"predictions": [view.prediction(view.find(key), solved) for key in ids], **settings_of(solved)}


def _row(view: View, solved: SpreadResult, at: int) -> Values:
    if solved.row is None:
        raise unusable(view.refusal)
    return solved.row(at)


def largest(scores: Values, most: int) -> Nodes:
    """Return the positions of the largest scores that are not zero, in falling order; of equal ones the first.

    >>> largest(np.array([0.0, 2.0, 1.0, 2.0]), 3)
    array([1, 3, 2])
    """
    found = np.flatnonzero(scores)
    if len(found) > most:
        least = np.partition(scores[found], len(found) - most)[len(found) - most]
        found = found[scores[found] >= least]
    return found[np.lexsort((found, -scores[found]))][:most]


def explain(view: View, key: Any, k: int, name: str | None, alpha: float | None, steps: int | None) -> dict[str, Any]:
    """Return the logit of a class as a sum over nodes, the largest terms by name."""
    at, solved = view.find(key), view.solved(alpha, steps)
    code = int(solved.predicted[at]) if name is None else view.class_code(name)
    row = _row(view, solved, at)
    assert view.H is not None
    terms = row * view.H[:, code]
    logit = float(terms.sum())
    best = largest(np.abs(terms), k)
    reached, shown = int(np.count_nonzero(row)), terms[best]
    network = view.network
    contributors = [
        {
            **view.brief(node, solved),
            "weight": float(row[node]),
            "contribution": float(terms[node]),
            "network": None if network is None else network[node].tolist(),
        }
        for node in best.tolist()
    ]
    total, weights = float(row.sum()), float(row[best].sum())
    rest = {
        "nodes": reached - len(best),
        "weight": total - weights if reached > len(best) else 0.0,
        "contribution": logit - float(shown.sum()),
    }
    return {
        "id": view.keys[at],
        "class": view.classes[code],
        "logit": logit,
        "contributors": contributors,
        "rest": rest,
        **settings_of(solved),
    }


def neighbourhood(view: View, key: Any, size: int, alpha: float | None, steps: int | None) -> dict[str, Any]:
    """Return the nodes that a prediction draws on most, with the edges among them and places to draw them at."""
    at, solved = view.find(key), view.solved(alpha, steps)
    row = _row(view, solved, at)
    score = np.abs(row)
    score[at] = np.inf  # the centre comes first
    if view.spread is None:  # the network alone draws on no other node: its neighbours are shown all the same
        near = view.graph.indices[view.graph.indptr[at] : view.graph.indptr[at + 1]]
        score[near] = np.where(score[near] == 0, 1e-300, score[near])
    chosen = largest(score, min(size, MOST_SHOWN))
    sources, targets, weights = edges_among(view, chosen)
    place = positions(len(chosen), np.column_stack([sources, targets]), solved.predicted[chosen], np.abs(row[chosen]))
    nodes = [
        {**view.brief(node, solved), "x": float(x), "y": float(y), "influence": float(row[node])}
        for node, (x, y) in zip(chosen.tolist(), place, strict=True)
    ]
    keys = [node["id"] for node in nodes]
    edges = [
        {"source": keys[u], "target": keys[v], "weight": weight}
        for u, v, weight in zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True)
    ]
    return {
        "centre": keys[0],
        "nodes": nodes,
        "edges": edges,
        "degree": int(view.degree[at]),
        "shown": len(nodes),
        **settings_of(solved),
    }


def edges_among(view: View, nodes: Nodes) -> tuple[Nodes, Nodes, Values]:
    """Return the edges among nodes as positions in `nodes`, and their weights; of an undirected pair one, no loops.

    Of a directed graph an edge goes from the node that gives to the node that receives.
    """
    graph = view.graph
    place = np.full(view.n, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    lengths = np.diff(graph.indptr)[nodes]
    entries = np.repeat(graph.indptr[nodes] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    entries += np.arange(len(entries))
    receiver, giver = np.repeat(np.arange(len(nodes)), lengths), place[graph.indices[entries]]
    inside = (giver >= 0) & (giver != receiver)
    if not graph.directed:
        inside &= receiver < giver
    weights = np.ones(len(entries)) if graph.weights is None else graph.weights[entries]
    first, second = (giver, receiver) if graph.directed else (receiver, giver)
    return first[inside], second[inside], weights[inside]


def search(
    view: View,
    *,
    q: str = "",
    label: str | None = None,
    predicted: str | None = None,
    role: str | None = None,
    distance: int | None = None,
    confidence: tuple[float, float] = (0.0, 1.0),
    order: str | None = None,
    limit: int = 20,
    offset: int = 0,
) -> dict[str, Any]:
    """Return the nodes that fit all that is asked for; a distance of -1 is that of nodes without a way to training nodes."""
    solved, wanted = view.default, q.strip().casefold()
    if confidence[0] > confidence[1]:
        raise invalid(
            f"confidence_from must be at most confidence_to. Got {confidence[0]} and {confidence[1]} instead."
        )
    fits = solved.sure(*confidence)
    if label is not None:
        fits &= np.array([one == label for one in view.labels], dtype=bool)
    if predicted is not None:
        fits &= solved.predicted == (view.classes.index(predicted) if predicted in view.classes else -1)
    if role is not None:
        fits &= view.roles == ROLES.index(role)
    if distance is not None:
        fits &= view.distance == distance
    if wanted:
        texts = view.searchable
        fits &= np.fromiter((wanted in text for text in texts), dtype=bool, count=view.n)
    found = np.flatnonzero(fits)
    if order == "confidence":
        found = found[np.argsort(solved.confidence[found], kind="stable")]
    elif order != "id" and wanted:
        rank = [_rank(wanted, view.searchable[at]) for at in found.tolist()]
        found = found[np.argsort(np.array(rank, dtype=np.int64), kind="stable")]
    if wanted and order != "confidence":
        exact = view.index.get(q.strip())
        if exact is not None and fits[exact]:
            found = np.concatenate([[exact], found[found != exact]])
    some = found[offset : offset + limit].tolist()
    return {"total": len(found), "nodes": [view.brief(at, solved) for at in some]}


def _rank(wanted: str, text: str) -> int:
    """Return how good a match is: the whole id, the beginning of the id, of the name, of a word, anything else."""
    key, _, name = text.partition("\n")
    if key == wanted:
        return 0
    if key.startswith(wanted):
        return 1
    if name.startswith(wanted):
        return 2
    return 3 if f" {wanted}" in name else 4


def every_prediction(view: View, together: int = 500) -> Iterator[list[dict[str, Any]]]:
    """Give the predictions of all nodes, some at a time."""
    solved = view.default
    for begin in range(0, view.n, together):
        yield [
            {**view.brief(at, solved), "probabilities": solved.probabilities[at].tolist()}
            for at in range(begin, min(begin + together, view.n))
        ]
