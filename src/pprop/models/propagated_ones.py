"""The propagation of ones, u = P 1: by how much the matrix of a model scales the logits Z = P H of each node.

With "row", u is one: logits are averages. With "sym", P is D^1/2 P_row D^-1/2, so that u_i grows like the root of the degree of
node i, and with "col" like the degree. Where most logits favour one class, a node with many neighbours is then more certain to be
of that class, whatever its neighbours are. Z_i / u_i is an average again. u_i is common to the classes of a node: its largest
logit remains the largest.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pprop._process import memory_limit
from pprop.graph import Graph
from pprop.models.blocks import STREAMED, steps_fit
from pprop.propagation import PowerIteration, Solver, solve


class Propagates(Protocol):
    """What says how a model propagates."""

    @property
    def alpha(self) -> float:
        """Teleport probability."""
        ...

    @property
    def solver(self) -> Solver:
        """What propagates."""
        ...

    @property
    def normalization(self) -> str:
        """Of the matrix."""
        ...

    @property
    def self_loops(self) -> bool:
        """Whether nodes without a self-loop get one."""
        ...


def propagated_ones(graph: Graph, how: Propagates) -> NDArray[np.float64] | None:
    """Return u of a graph, shape (n,), all above 0; None where it is one for every node.

    A node at which nothing arrives, and which keeps nothing of its own, has no logits but zeros. It gets 1.

    >>> import scipy.sparse as sp
    >>> from pprop.models.model import PropagationSettings
    >>> star = Graph.from_scipy(sp.csr_array([[0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]))
    >>> propagated_ones(star, PropagationSettings(0.1)).round(2)
    array([1.23, 0.89, 0.89, 0.89])
    >>> propagated_ones(star, PropagationSettings(0.1, normalization="row"))
    """
    if how.normalization == "row":
        return None
    ones = np.ones((graph.n_nodes, 1))
    if isinstance(how.solver, PowerIteration) and (graph.n_entries >= STREAMED or not steps_fit(graph, 1)):
        given = how.alpha, how.solver.steps, how.normalization, how.self_loops
        # its steps are numba's, which a graph in memory does not need
        from pprop.propagation.stored.steps import propagate_folder

        found = propagate_folder(graph, ones.astype(np.float32), *given, memory=memory_limit("cpu")).values[:, 0]
    else:
        found = solve(graph, ones, how.alpha, how.solver, how.normalization, how.self_loops).value[:, 0]
    usable = np.isfinite(found) & (found > np.finfo(np.float32).tiny)
    return np.where(usable, found, 1.0).astype(np.float64)
