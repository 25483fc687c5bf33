"""What the vote of an ensemble gets wrong at the nodes whose class it was given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pprop.datasets import Split
from pprop.models.ensemble import mean_log_probabilities
from pprop.models.error_spreading import KnownErrors, best_temperature
from pprop.training.folds import held_out

__all__ = ["vote_errors"]


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
