"""Averages of columns by personalized PageRank: of a graph in memory, or of one whose entries are read from files."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pprop.graph import Graph
from pprop.propagation.api import propagate
from pprop.propagation.solvers import PowerIteration
from pprop.propagation.stored.steps import propagate_folder
from pprop.settings import SELF_LOOPS


def averages(
    graph: Graph,
    table: NDArray[np.floating],
    alpha: float,
    steps: int,
    normalization: str = "row",
    *,
    self_loops: bool = SELF_LOOPS.default,
    stored: bool = False,
) -> NDArray[Any]:
    """Return the averages of columns by power steps of personalized PageRank, shape (n, c).

    Parameters
    ----------
    graph
        The graph, n nodes.
    table
        The columns, shape (n, c).
    alpha, steps, normalization, self_loops
        As in `propagate` with ``PowerIteration(steps)``.
    stored
        Whether the entries are read from where they lie, block by block, and the steps are computed in float32.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(3, 3)))
    >>> table = np.array([[1.0], [0.0], [0.0]])
    >>> averages(path, table, 0.5, 20).ravel().round(3), averages(path, table, 0.5, 20, stored=True).ravel().round(3)
    (array([0.718, 0.154, 0.051]), array([0.718, 0.154, 0.051], dtype=float32))
    """
    if not stored:
        return np.asarray(propagate(graph, table, alpha, PowerIteration(steps), normalization, self_loops=self_loops))
    narrow = np.ascontiguousarray(table, dtype=np.float32)
    return propagate_folder(graph, narrow, alpha, steps, normalization, self_loops=self_loops).values
