"""The part of the labelled nodes that a fit sets aside for early stopping."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

__all__ = ["hold_out"]


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
