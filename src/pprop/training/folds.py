"""Stopping nodes that train, too: dealt into folds, of which each member of an ensemble holds one out to stop on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pprop._validate import check_int, reject
from pprop.datasets import Split
from pprop.models.ensemble import mean_log_probabilities

__all__ = ["held_out", "member_splits"]

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
    """Return the stopping nodes of all members, sorted, and what the members that did not train on them say of each.

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
