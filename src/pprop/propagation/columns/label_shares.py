"""Known labels nearby, as columns: their shares one and two steps away and by personalized PageRank, out of fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pprop.graph import Graph
from pprop.propagation.columns.averages import averages
from pprop.propagation.columns.walks import walk_statistics

_ALPHA, _STEPS = 0.1, 40  # 0.9^40 is 0.015
_LEAST = 1e-12  # of a mass whose logarithm is a column


def known_nearby(
    graph: Graph,
    nodes: NDArray[np.int64],
    values: NDArray[np.floating],
    folds: NDArray[np.int64],
    names: Sequence[str],
    *,
    prior: float = 1.0,
    stored: bool = False,
) -> dict[str, NDArray[np.float64]]:
    """Return columns (n,) by name: means of known values near each node, and how much is known there.

    A node whose value is known sees only those of other folds than its own, so that no way leads back to its own value; all
    others see all. Means are drawn to the mean of all known values by the weight of `prior` known nodes: where nothing is known
    nearby, they are that mean.

    Parameters
    ----------
    graph
        The graph, n nodes.
    nodes, values
        Nodes whose values are known, shape (m,), each once, and the values, shape (m, t): indicators of classes, or numbers.
    folds
        The fold of each of these nodes, shape (m,).
    names
        Names of the t values.
    prior
        Known nodes that the mean of all counts for.
    stored
        As in `averages`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(4, 4)))
    >>> columns = known_nearby(path, np.array([0, 1]), np.array([[1.0], [0.0]]), np.array([0, 1]), ["y"], prior=0.0)
    >>> columns["y 1 away"], columns["known 1 away"].round(2)
    (array([0. , 1. , 0. , 0.5]), array([0.69, 0.69, 0.69, 0.  ]))
    """
    n = graph.n_nodes
    others = np.ones(n, dtype=np.bool_)
    others[nodes] = False
    readers = [(np.ones(len(nodes), dtype=np.bool_), others)]
    for fold in np.unique(folds):
        own = np.zeros(n, dtype=np.bool_)
        own[nodes[folds == fold]] = True
        readers.append((folds != fold, own))
    columns: dict[str, NDArray[np.float64]] = {}
    for seen, some in readers:
        for name, column in _seen_from(graph, nodes[seen], values[seen], names, prior, stored=stored).items():
            columns.setdefault(name, np.empty(n))[some] = column[some]
    return columns


def _seen_from(
    graph: Graph,
    nodes: NDArray[np.int64],
    values: NDArray[np.floating],
    names: Sequence[str],
    prior: float,
    *,
    stored: bool,
) -> dict[str, NDArray[np.float64]]:
    """Return the columns that show all nodes the values of some."""
    n, t = graph.n_nodes, len(names)
    mean = values.mean(axis=0) if len(values) else np.zeros(t)
    table = np.zeros((n, t + 1))  # the last column counts the known nodes
    table[nodes, :t], table[nodes, t] = values, 1.0
    columns: dict[str, NDArray[np.float64]] = {}
    sides = {"": False} if not graph.directed else {"": False, " against edges": True}
    for side, against in sides.items():
        degree = np.diff(graph.adjacency.T.tocsr().indptr if against else graph.indptr)
        scale = np.maximum(degree, 1)[:, None]  # shares of neighbours become numbers of them
        for hop in walk_statistics(graph, table, hops=2, against=against):
            where, amount = f"{hop.steps} away{side}", hop.mean.astype(np.float64) * scale
            columns |= _named(_drawn(amount, mean, prior), names, where)
            columns[f"known {where}"] = np.log1p(amount[:, t])
    spread = averages(graph, table, _ALPHA, _STEPS, stored=stored) * (n / max(len(nodes), 1))
    columns |= _named(_drawn(spread, mean, prior), names, "by PPR")
    columns["known by PPR"] = np.log(np.maximum(spread[:, t], _LEAST))
    return columns


def _named(values: NDArray[np.float64], names: Sequence[str], where: str) -> dict[str, NDArray[np.float64]]:
    return {f"{name} {where}": column for name, column in zip(names, values.T, strict=True)}


def _drawn(amount: NDArray[np.float64], mean: NDArray[np.float64], prior: float) -> NDArray[np.float64]:
    """Return means drawn to that of all, (n, t), from sums of values and, in the last column, of known nodes.

    >>> _drawn(np.array([[2.0, 2.0], [0.0, 0.0]]), np.array([0.5]), 1.0).round(2)
    array([[0.83],
           [0.5 ]])
    """
    total, whole = amount[:, :-1] + prior * mean, amount[:, -1:] + prior
    return np.where(whole > 0, total / np.where(whole > 0, whole, 1.0), mean)
