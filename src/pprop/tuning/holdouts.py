"""Repeated holdout: which of the labelled nodes train, which stop, and which judge the settings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pprop._validate import reject
from pprop.datasets import Split
from pprop.estimators.samples import divide_nodes


def repeated_holdout(
    nodes: NDArray[np.int64], labels: NDArray[Any], stopping: object, *, times: int, seed: int, n_nodes: int
) -> tuple[tuple[Split, ...], NDArray[np.int64], NDArray[Any]]:
    """Divide labelled nodes several times; the evaluation nodes of a split are those that judge.

    What `fit` would give to early stopping, nodes of their own or a fraction, drawn anew each time, is halved at
    random, class by class: one half stops, the other judges.

    Returns
    -------
    The splits, the class index of every node that has one (-1: none), and the classes.

    Examples
    --------
    >>> nodes, labels = np.arange(8), np.array(["a", "b"] * 4)
    >>> splits, known, classes = repeated_holdout(nodes, labels, 0.5, times=2, seed=0, n_nodes=9)
    >>> splits[0]
    Split(4 train, 2 stopping, 2 validation, seed=0)
    >>> known, classes
    (array([ 0,  1,  0,  1,  0,  1,  0,  1, -1]), array(['a', 'b'], dtype='<U1'))
    """
    splits: list[Split] = []
    known, classes = np.empty(0, dtype=np.int64), np.empty(0)
    for time in range(times):
        # the seed of the first holdout is that of `fit`, which draws the same nodes
        with warnings.catch_warnings():  # of classes with a single node, which are refused below
            warnings.simplefilter("ignore")
            divided, known, classes = divide_nodes(nodes, labels, stopping, (seed + time) % 2**64, n_nodes)
        held = np.unique(divided.stopping)
        if len(held) < 2 or len(np.intersect1d(held, divided.train)):
            reject("stopping", "tune", "nodes, or a share, of which one half can stop and the other judge", "too few")
        random = np.random.RandomState([seed & 0xFFFFFFFF, seed >> 32, time])
        shuffled = held[random.permutation(len(held))]
        by_class = shuffled[np.argsort(known[shuffled], kind="stable")]
        splits.append(Split(divided.train, np.sort(by_class[::2]), np.sort(by_class[1::2]), time, test=False))
    return tuple(splits), known, classes
