"""The vote of an ensemble, and how it is judged by nodes on which its members did not train.

Stopping nodes may train, too: dealt into folds, of which each member holds one out to stop on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pprop._validate import check_int, reject
from pprop.datasets import Split
from pprop.models.ensemble import KnownErrors, best_temperature, mean_log_probabilities

Nodes = NDArray[np.int64]


def member_splits(split: Split, labels: NDArray[np.int64], members: int, folds: int) -> list[Split]:
    """Return the training and stopping nodes of every member.

    Sorted by class, the i-th stopping node is in fold i mod `folds`, so that every fold has the classes in the same
    shares. Member k stops on fold k mod `folds`, and trains on the training nodes and all other folds. With `folds` = 0
    every member has the nodes of `split`: stopping nodes do not train.

    Parameters
    ----------
    split
        Training and stopping nodes.
    labels
        Class indices, shape (n,); those of stopping nodes are read.
    members
        How many splits to return.
    folds
        0, or from 2 to the number of stopping nodes.

    Examples
    --------
    >>> split = Split(np.array([0, 1]), np.array([2, 3, 4, 5]), np.array([6]))
    >>> for one in member_splits(split, np.array([0, 1, 0, 1, 0, 1, -1]), members=3, folds=2):
    ...     print(one.train, one.stopping)
    [0 1 4 5] [2 3]
    [0 1 2 3] [4 5]
    [0 1 4 5] [2 3]
    """
    check_int(folds, "folds", "member_splits", low=0)
    if folds == 0:
        return [split] * members
    watched = split.stopping
    if not 2 <= folds <= len(watched):
        reject("folds", "member_splits", f"0, or from 2 to {len(watched)}, the number of stopping nodes", folds)
    fold = np.empty(len(watched), dtype=np.int64)
    fold[np.argsort(labels[watched], kind="stable")] = np.arange(len(watched)) % folds
    parts = [
        Split(np.concatenate([split.train, watched[fold != k]]), watched[fold == k], split.evaluation)
        for k in range(min(folds, members))
    ]
    return [parts[k % folds] for k in range(members)]


def held_out(logits: NDArray[Any], splits: list[Split]) -> tuple[Nodes, NDArray[np.float32]]:
    """Return the stopping nodes of all members, sorted, and the vote of the members that did not train on each of them.

    Parameters
    ----------
    logits
        Of the members, shape (m, n, c).
    splits
        Their nodes; no member trains on a node that it stops on.

    Returns
    -------
    nodes, logits
        The logits are logarithms of mean probabilities, shape (nodes, c), each over the members that stop on the node.

    Examples
    --------
    >>> halves = [Split(np.array([0, 2]), np.array([1]), np.array([3])), Split(np.array([0, 1]), np.array([2]), np.array([3]))]
    >>> nodes, found = held_out(np.log([[[0.9, 0.1]] * 4, [[0.6, 0.4]] * 4]), halves)
    >>> nodes, np.exp(found).round(2)[:, 0]
    (array([1, 2]), array([0.9, 0.6], dtype=float32))
    """
    nodes = np.unique(np.concatenate([one.stopping for one in splits]))
    found = np.empty((len(nodes), logits.shape[2]), dtype=np.float32)
    watching = np.array([np.isin(nodes, one.stopping) for one in splits])  # (m, nodes)
    for who in np.unique(watching, axis=1).T:
        mine = (watching == who[:, None]).all(axis=0)
        found[mine] = mean_log_probabilities(logits[who][:, nodes[mine]])
    return nodes, found


def scores(
    logits: NDArray[np.float32],
    splits: list[Split],
    train: Nodes,
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
) -> tuple[float, float, float]:
    """Return the mean cross entropy of training and of stopping nodes, and the accuracy on the latter.

    Parameters
    ----------
    logits
        Of the members, shape (m, n, c).
    splits
        Their nodes; of a stopping node only those members are asked that stop on it, and so did not train on it.
    train
        Training nodes of all members.
    labels
        Class indices, shape (n,).
    weights
        How much each node counts, shape (n,); None: all the same.

    Examples
    --------
    >>> split = Split(np.array([0]), np.array([1, 2]), np.array([3]))
    >>> logits = np.log(np.array([[[0.5, 0.5], [0.9, 0.1], [0.9, 0.1], [0.5, 0.5]]], dtype=np.float32))
    >>> [round(score, 3) for score in scores(logits, [split], split.train, np.array([0, 0, 1, -1]))]
    [0.693, 1.204, 0.5]
    """
    watched, found = held_out(logits, splits)
    stopping_logs = special.log_softmax(found.astype(np.float64), axis=1)
    train_logs = special.log_softmax(mean_log_probabilities(logits[:, train]).astype(np.float64), axis=1)
    right = stopping_logs.argmax(axis=1) == labels[watched]
    each_train = -train_logs[np.arange(len(train)), labels[train]]
    each_stopping = -stopping_logs[np.arange(len(watched)), labels[watched]]
    if weights is None:
        accuracy = float(np.count_nonzero(right) / len(watched))
        return float(each_train.mean()), float(each_stopping.mean()), accuracy
    train_loss = np.average(each_train, weights=weights[train])
    stopping_loss, accuracy = (np.average(each, weights=weights[watched]) for each in (each_stopping, right))
    return float(train_loss), float(stopping_loss), float(accuracy)


def vote_errors(logits: NDArray[Any], splits: list[Split], labels: NDArray[np.int64]) -> KnownErrors:
    """Return the errors at all training and stopping nodes, for `spread_errors`.

    A stopping node is judged by the members that stop on it, and so did not train on it, every other one by all of
    them. The temperature is the one that suits the stopping nodes best.

    Parameters
    ----------
    logits
        Of the members, shape (m, n, c).
    splits
        Their nodes.
    labels
        Class indices, shape (n,); -1 where unknown.

    Examples
    --------
    >>> halves = [Split(np.array([0, 2]), np.array([1]), np.array([3])), Split(np.array([0, 1]), np.array([2]), np.array([3]))]
    >>> logits = np.log([[[0.9, 0.1]] * 4, [[0.4, 0.6]] * 4])
    >>> known = vote_errors(logits, halves, np.array([0, 0, 0, -1]))
    >>> known.nodes, (known.errors[:, 0] > 0.5).tolist()  # the vote is right; the member that stops on node 2 is not
    (array([0, 1, 2]), [False, False, True])
    """
    watched, held = held_out(logits, splits)
    temperature = best_temperature(held, labels[watched])
    nodes = np.unique(np.concatenate([part for one in splits for part in (one.train, one.stopping)]))
    own = mean_log_probabilities(logits[:, nodes])
    own[np.searchsorted(nodes, watched)] = held
    return KnownErrors.of(nodes, own, labels[nodes], temperature)
