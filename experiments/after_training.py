"""What can be done with the predictions of an ensemble once it is trained: none of it trains anything again.

`experiments/more_accuracy.py` keeps the accuracy of each with every row. "stopping" in a name says that labels of stopping
nodes are read for more than stopping: their errors are spread, or a class is raised or lowered by them. The one
temperature that makes probabilities sharp is fitted on stopping nodes everywhere, by members that did not train on
them; means of probabilities or logits need none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pprop import Graph, Split, propagate
from pprop.models.ensemble import KnownErrors, mean_log_probabilities, spread_errors
from pprop.training.votes import vote_errors

Array = NDArray[np.float64]
STRENGTHS = (0.03, 0.1, 0.3)


def treatments(
    graph: Graph, split: Split, own: list[Split], labels: NDArray[np.int64], logits: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """Return scores of all nodes, shape (n, c), by the name of the treatment, from the logits of the members, (m, n, c).

    `own` are the members' splits, of whose union `split` is made.
    """
    members = logits.astype(np.float64)
    voted = special.softmax(members, axis=2).mean(axis=0)
    watched, both = split.stopping, np.concatenate([split.train, split.stopping])
    known = vote_errors(logits, own, labels)
    sharp = special.softmax(np.log(voted) / known.temperature, axis=1)
    truth = np.zeros_like(sharp)
    truth[both, labels[both]] = 1
    teachers = np.isin(known.nodes, split.train)
    taught = KnownErrors(known.nodes[teachers], known.errors[teachers], known.temperature)

    def clamped(nodes: NDArray[np.int64]) -> Array:
        start = sharp.copy()
        start[nodes] = truth[nodes]
        return propagate(graph, start, 0.3)

    found: dict[str, NDArray[Any]] = {
        "mean of probabilities": voted,
        "mean of logits": members.mean(axis=0),
        "mean of sharp probabilities": special.softmax(members / known.temperature, axis=2).mean(axis=0),
        "probabilities propagated, alpha 0.1": propagate(graph, sharp, 0.1),
        "probabilities propagated, alpha 0.3": propagate(graph, sharp, 0.3),
        "probabilities propagated, alpha 0.5": propagate(graph, sharp, 0.5),
        "labels in place, propagated": clamped(split.train),
        "labels in place, propagated (stopping)": clamped(both),
        "class shares raised to those of all predictions": np.log(sharp) + np.log(shares_by_em(sharp)),
        "class shares raised to those of stopping nodes (stopping)": np.log(sharp)
        + class_offsets(np.log(sharp), watched, labels),
    }
    vote = mean_log_probabilities(logits)
    for strength in STRENGTHS:
        found[f"errors spread, strength {strength}"] = spread_errors(graph, vote, taught, strength)
        found[f"errors spread, strength {strength} (stopping)"] = spread_errors(graph, vote, known, strength)
    return found


def shares_by_em(shares: Array) -> Array:
    """Return the shares of the classes that explain the predictions of a model trained on equal ones (Saerens 2002)."""
    prior = np.full(shares.shape[1], 1 / shares.shape[1])
    for _ in range(100):
        posterior = shares * prior
        prior = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
    return prior


def class_offsets(logs: Array, nodes: NDArray[np.int64], labels: NDArray[np.int64]) -> Array:
    """Return one number per class to add, at which the predicted shares of the classes at some nodes are the true ones.

    A penalty of 0.025 times their squares keeps them small.
    """
    offsets = np.zeros(logs.shape[1])
    true = np.bincount(labels[nodes], minlength=len(offsets)) / len(nodes)
    for _ in range(300):
        offsets -= special.softmax(logs[nodes] + offsets, axis=1).mean(axis=0) - true + 0.05 * offsets
    return offsets
