"""Which of the labelled nodes train, and which are watched by early stopping."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pprop._validate import check_float, describe, reject
from pprop.datasets import Split
from pprop.estimators._samples import class_labels, known_labels, node_positions

__all__ = ["divide_nodes", "hold_out"]


def divide_nodes(
    nodes: NDArray[np.int64], labels: NDArray[Any], stopping: object, seed: int, n_nodes: int
) -> tuple[Split, NDArray[np.int64], NDArray[Any]]:
    """Return training and stopping nodes, the class index of each node that has one, and the classes."""
    pair = _pair(stopping)
    if pair is not None:
        watched = node_positions(pair[0], "stopping", "fit", n_nodes)
        watched_labels = class_labels(pair[1], "stopping", "fit", len(watched))
        both = np.intersect1d(nodes, watched)
        if both.size:
            reject("stopping", "fit", "nodes that are not in X", f"node {both[0]}, which is,")
        if not watched.size:
            reject("stopping", "fit", "at least one node with its class, or a fraction", "none")
        if watched_labels.dtype.kind != labels.dtype.kind:
            reject("stopping", "fit", "labels of the same kind as y, integers or strings", watched_labels)
        classes, codes = np.unique(np.concatenate([labels, watched_labels]), return_inverse=True)
        known = known_labels(np.concatenate([nodes, watched]), codes, n_nodes, "fit")
        train_nodes = nodes
    else:
        fraction = _fraction(stopping)
        classes, codes = np.unique(labels, return_inverse=True)
        known = known_labels(nodes, codes, n_nodes, "fit")
        train_nodes, watched = hold_out(nodes, codes, fraction, seed)
    if len(classes) < 2:
        reject("y", "fit", "labels of at least two classes", f"1 class, {classes[0].item()!r},")
    return Split(train_nodes, watched, np.empty(0, dtype=np.int64)), known, classes


def hold_out(
    nodes: NDArray[np.int64], codes: NDArray[np.int64], fraction: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Divide labelled nodes into training and stopping nodes, class by class.

    Of a class with m distinct nodes, ``round(fraction * m)`` go to the stopping nodes, but at least one and at most
    m - 1; the only node of a class goes to the training nodes. Where every class has only one node, the stopping nodes
    are the training nodes, and a warning says so. A node that is listed several times stays on one side.

    Returns
    -------
    Training and stopping nodes, in the order given.

    Examples
    --------
    >>> train, stopping = hold_out(np.arange(6), np.array([0, 0, 0, 0, 1, 2]), fraction=0.25, seed=0)
    >>> train, stopping
    (array([1, 2, 3, 4, 5]), array([0]))
    """
    # RandomState, because numpy promises its stream for all versions to come; two words, because it takes 32 bits each
    random = np.random.RandomState([seed & 0xFFFFFFFF, seed >> 32])
    distinct, first = np.unique(nodes, return_index=True)
    chosen: list[NDArray[np.int64]] = []
    for code in range(int(codes.max()) + 1):
        members = distinct[codes[first] == code]
        if len(members) > 1:
            size = min(max(round(fraction * len(members)), 1), len(members) - 1)
            chosen.append(random.choice(members, size, replace=False))
    if not chosen:
        warnings.warn(
            "Every class has one node only, so early stopping watches the training nodes themselves. "
            "Pass stopping=(nodes, y) to fit, or more nodes.",
            stacklevel=4,
        )
        return nodes, nodes
    held = np.isin(nodes, np.concatenate(chosen))
    return nodes[~held], nodes[held]


def _pair(stopping: object) -> tuple[object, object] | None:
    if not isinstance(stopping, tuple | list):
        return None
    parts = cast("Sequence[object]", stopping)
    return (parts[0], parts[1]) if len(parts) == 2 else None


def _fraction(stopping: object) -> float:
    try:
        return check_float(stopping, "stopping", "fit", "(0, 1)")
    except ValueError:
        reject("stopping", "fit", "a pair (nodes, y) or a float in (0, 1)", describe(stopping))
