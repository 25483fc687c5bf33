"""What can be done with the predictions of an ensemble once it is trained: none of it trains anything again.

`experiments/more_accuracy.py` keeps the accuracy of each with every row. "stopping" in a name says that labels of stopping
nodes are read for more than stopping: their errors are spread, or a class is raised or lowered by them. The one
temperature that makes probabilities sharp is fitted on stopping nodes everywhere; means of probabilities or logits need none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pprop import Graph, Split, transition_matrix

Array = NDArray[np.float64]


def treatments(graph: Graph, split: Split, labels: NDArray[np.int64], logits: NDArray[Any]) -> dict[str, Array]:
    """Return scores of all nodes, shape (n, c), by the name of the treatment, from the members' logits, (m, n, c)."""
    matrix = transition_matrix(graph).to_scipy()
    members = logits.astype(np.float64)
    voted = special.softmax(members, axis=2).mean(axis=0)
    watched, both = split.stopping, np.concatenate([split.train, split.stopping])
    heat = temperature(np.log(voted), watched, labels)
    sharp = special.softmax(np.log(voted) / heat, axis=1)
    truth = np.zeros_like(sharp)
    truth[both, labels[both]] = 1

    def propagated(start: Array, alpha: float) -> Array:
        moved = start
        for _ in range(10):
            moved = (1 - alpha) * (matrix @ moved) + alpha * start
        return moved

    def corrected(nodes: NDArray[np.int64], alpha: float, strength: float) -> Array:
        errors = np.zeros_like(sharp)
        errors[nodes] = truth[nodes] - sharp[nodes]
        return sharp + strength / alpha * propagated(errors, alpha)

    def clamped(nodes: NDArray[np.int64]) -> Array:
        start = sharp.copy()
        start[nodes] = truth[nodes]
        return propagated(start, 0.3)

    found = {
        "mean of probabilities": voted,
        "mean of logits": members.mean(axis=0),
        "mean of sharp probabilities": special.softmax(members / heat, axis=2).mean(axis=0),
        "probabilities propagated, alpha 0.1": propagated(sharp, 0.1),
        "probabilities propagated, alpha 0.3": propagated(sharp, 0.3),
        "probabilities propagated, alpha 0.5": propagated(sharp, 0.5),
        "labels in place, propagated": clamped(split.train),
        "labels in place, propagated (stopping)": clamped(both),
        "class shares raised to those of all predictions": np.log(sharp) + np.log(shares_by_em(sharp)),
        "class shares raised to those of stopping nodes (stopping)": np.log(sharp)
        + class_offsets(np.log(sharp), watched, labels),
    }
    for strength in (0.03, 0.1, 0.3):
        found[f"errors spread, strength {strength}"] = corrected(split.train, 0.1, strength)
        found[f"errors spread, strength {strength} (stopping)"] = corrected(both, 0.1, strength)
    return found


def temperature(logs: Array, nodes: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """Return the temperature, of 60 from 0.05 to 3, at which the cross entropy of some nodes is least."""
    tried = np.geomspace(0.05, 3, 60)
    own = logs[nodes]
    losses = [-special.log_softmax(own / heat, axis=1)[np.arange(len(nodes)), labels[nodes]].mean() for heat in tried]
    return float(tried[int(np.argmin(losses))])


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
