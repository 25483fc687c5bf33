"""How certain a difference between two models is for other test nodes: all splits of a graph share the same ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from pprop._validate import reject
from pprop.study.store.row import Row

_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]

RESAMPLES = 1000


@final
@dataclass(frozen=True)
class OverNodes:
    """The mean of a number over nodes, as nodes drawn with replacement vary it.

    Attributes
    ----------
    mean
        Over the nodes.
    half
        The larger distance from the mean to an end of the 95 % percentile bootstrap interval.
    error
        The standard error of the mean.
    nodes
        How many there are.
    """

    mean: float
    half: float
    error: float
    nodes: int


def right_shares(rows: Iterable[Row], labels: _Ints, nodes: _Ints) -> _Floats:
    """Return for each node the share of runs that predict its label: the mean over splits of that over initialisations.

    Parameters
    ----------
    rows
        Runs of one model, each with its predictions for all nodes of the graph.
    labels
        Of all nodes, shape (n,).
    nodes
        The test nodes, shape (m,): the same in every split.

    Returns
    -------
    array of float64, shape (m,)

    Examples
    --------
    >>> from types import SimpleNamespace as Run  # in place of a Row
    >>> runs = [Run(key=Run(seeds=Run(split=split)), predictions=np.array(classes))
    ...         for split, classes in ((7, [0, 1, 1]), (7, [0, 0, 1]), (8, [0, 0, 0]))]
    >>> right_shares(runs, np.array([0, 0, 1]), np.array([1, 2]))
    array([0.75, 0.5 ])
    """
    by_split: dict[int, list[NDArray[np.bool_]]] = {}
    for row in rows:
        by_split.setdefault(row.key.seeds.split, []).append(row.predictions[nodes] == labels[nodes])
    if not by_split:
        reject("rows", "right_shares", "at least one run", "none")
    return np.mean([np.mean(each, axis=0) for each in by_split.values()], axis=0)


def over_nodes(values: _Floats, resamples: int = RESAMPLES, seed: int = 0) -> list[OverNodes]:
    """Return the mean over nodes of each column with its bootstrap interval; the same nodes are drawn for all columns.

    Parameters
    ----------
    values
        One row for each node, shape (m, k), at least two.

    Examples
    --------
    >>> (one,) = over_nodes(np.full((50, 1), 2.0))
    >>> one
    OverNodes(mean=2.0, half=0.0, error=0.0, nodes=50)
    """
    n, draw = len(values), np.random.default_rng(seed)
    counts = (np.bincount(draw.integers(n, size=n), minlength=n) for _ in range(resamples))
    means = np.stack([each @ values / n for each in counts])  # shape (resamples, k)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    mean = values.mean(axis=0)
    halves, errors = np.maximum(mean - low, high - mean), values.std(axis=0, ddof=1) / np.sqrt(n)
    return [
        OverNodes(float(one), float(half), float(error), n)
        for one, half, error in zip(mean, halves, errors, strict=True)
    ]
