"""The limit of power iteration without teleport, Z = lim T^k H: what the paper's figure of K shows for alpha = 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from pprop._validate import check_float, describe, reject
from pprop.graph import Transition
from pprop.kernels import Draw, FeatureProduct, Kernels
from pprop.propagation.dense import check_row_memory
from pprop.propagation.operator import PPROperator
from pprop.propagation.solution import Outcome
from pprop.propagation.solvers import LinearMap, MatrixMap, RowSolver

__all__ = ["Limit"]


@final
@dataclass(frozen=True)
class Limit(RowSolver):
    """Infinitely many power steps without teleport, alpha = 0: all that is left of H is one row per component.

        Z = v v^T H,    v = sqrt(d) / |sqrt(d)|,

    with the degrees d of the graph with self-loops ("sym"); for "row" and "col" the two factors are the ones and
    d / sum(d). A graph of several components has such a pair for each. The graph must be undirected, and where there
    are no self-loops, no component may be bipartite: T^k then has no limit.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> star = pprop.Graph.from_scipy(sp.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]]))
    >>> pprop.propagate(star, [7.0, 0.0, 0.0], alpha=0, solver=Limit(), normalization="row")
    array([3., 3., 3.])
    """

    outcome = Outcome.EXACT

    def check_alpha(self, alpha: object, function: str) -> float:
        if check_float(alpha, "alpha", function, "[0, 1]") != 0.0:
            reject(
                "alpha", function, "0 with Limit()", describe(alpha), remedy="Use Exact() for the limit with teleport."
            )
        return 0.0

    def bind(self, operator: PPROperator, kernels: Kernels) -> LinearMap:
        n, whole = operator.graph.n_nodes, _PerComponent(*_factors(operator.transition), kernels)
        return MatrixMap(n, kernels, lambda: self.rows(operator, np.arange(n), torch.float64), whole)

    def rows(self, operator: PPROperator, nodes: NDArray[np.int64], dtype: torch.dtype) -> Tensor:
        received, sent, component = _factors(operator.transition)
        check_row_memory("Limit", len(nodes), operator.graph.n_nodes, dtype.itemsize)
        out = torch.empty(len(nodes), operator.graph.n_nodes, dtype=dtype)
        for k, node in enumerate(nodes):
            out[k] = torch.from_numpy(np.where(component == component[node], received[node] * sent, 0.0))
        return out


@final
class _PerComponent(LinearMap):
    """Z = U (W^T H) with one column of U and W per component, in float64."""

    def __init__(
        self, received: NDArray[np.float64], sent: NDArray[np.float64], component: NDArray[np.int32], kernels: Kernels
    ) -> None:
        self._received, self._sent = (kernels.features(_columns(v, component)) for v in (received, sent))

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        return _through(self._sent, self._received, predictions)

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        return _through(self._received, self._sent, gradient)


def _through(gather: FeatureProduct, scatter: FeatureProduct, operand: Tensor) -> Tensor:
    wide = operand.to(torch.float64)
    return scatter.forward(gather.adjoint(wide, None), None).to(operand.dtype)


def _columns(values: NDArray[np.float64], component: NDArray[np.int32]) -> sparse.csr_array:
    """Return a matrix (n, components) with values[i] in row i, in the column of the component of i."""
    n = len(values)
    return sparse.csr_array((values, component, np.arange(n + 1)), shape=(n, int(component.max(initial=0)) + 1))


def _factors(transition: Transition) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]:
    """Return u, w and the component of every node; the limit's entry (i, j) is u_i w_j within a component, else 0.

    T = S_r A S_c with S_r S_c = D^-1 leaves u = S_c^-1 1 unchanged, and T^T leaves w = S_r^-1 1.
    """
    remedy = "Use PowerIteration(steps) with alpha=0."
    if transition.folded:
        expected, got = "of degrees within a factor of 2^64 in every component", "degrees that differ by more"
        reject("graph", "Limit", expected, got, remedy=remedy)
    if not transition.symmetric:
        reject("graph", "Limit", "undirected", "a directed one", remedy=remedy)
    n, structure = transition.n_nodes, transition.to_scipy()
    count, component = sparse.csgraph.connected_components(structure, directed=False)
    # every node twice, an edge leading from one copy to the other: two halves where the component is bipartite
    _, half = sparse.csgraph.connected_components(sparse.block_array([[None, structure], [structure, None]]))
    if n and (bipartite := np.flatnonzero(half[:n] != half[n:])).size:
        got = f"a bipartite component, that of node {bipartite[0]}, whose powers of T alternate"
        reject("graph", "Limit", "without bipartite components where it has no self-loops", got)
    received, sent = 1.0 / transition.column_scale, 1.0 / transition.row_scale
    # 1-norm over the component of their product: the degrees, summed in the order of the nodes
    total = np.bincount(component, weights=received * sent, minlength=count)[component]
    if np.array_equal(received, sent):  # v v^T, its factors and so its rows symmetric to the last bit
        received = sent = received / np.sqrt(total)
        return received, sent, component
    constant_sent = bool((transition.row_scale == 1.0).all())  # "col": w = 1 exactly, u holds the shares
    return (received / total, sent, component) if constant_sent else (received, sent / total, component)
