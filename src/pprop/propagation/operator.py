"""The personalized PageRank operator: a transition matrix and a teleport probability."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop._validate import check_choice, describe, reject
from pprop.graph import NORMALIZATIONS, Graph, Transition, transition_matrix
from pprop.kernels import Kernels
from pprop.propagation.dense import dense_ppr
from pprop.propagation.fixed_point import ROUNDING, count_products, ppr_rows

__all__ = ["PPROperator", "check_operator"]

DENSE_NODES = 4000
"""Nodes up to which a dense inverse, n^3 operations, is quicker than solving for the rows that a training reads."""
MOST_PRODUCTS = 10000
"""Products beyond which the dense inverse is taken all the same: alpha is then below 1e-5, or 0.004 if directed."""


def check_operator(graph: object, normalization: object, self_loops: object, function: str) -> None:
    """Check the arguments of the operator in the name of the public function that was given them.

    >>> import scipy.sparse as sp
    >>> check_operator(Graph.from_scipy(sp.csr_array((2, 2))), "row", True, "propagate")
    """
    if not isinstance(graph, Graph):
        reject("graph", function, "a pprop.Graph", describe(graph), remedy="Make one with pprop.Graph.from_scipy.")
    check_choice(normalization, "normalization", function, NORMALIZATIONS)
    if not isinstance(self_loops, bool | np.bool_):
        reject("self_loops", function, "True or False", describe(self_loops))


@final
class PPROperator:
    """Maps H to the fixed point Z = (1 - alpha) T Z + alpha H, that is Z = Pi H.

    Parameters
    ----------
    graph
        The graph.
    alpha
        Teleport probability.
    normalization, self_loops
        As in `transition_matrix`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> PPROperator(path, alpha=0.1).matrix.shape
    (5, 5)
    """

    def __init__(self, graph: Graph, alpha: float, normalization: str = "sym", self_loops: bool = True) -> None:
        self.graph = graph
        self.alpha = alpha
        self.normalization = normalization
        self.self_loops = self_loops
        self.transition: Transition = transition_matrix(graph, normalization, self_loops)

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """The dense matrix Pi, shape (n, n): computed at most once."""
        return dense_ppr(self.transition, self.alpha)

    @cached_property
    def iterated(self) -> bool:
        """Whether Pi is applied by products with T, since the dense matrix would take longer.

        The choice depends on the graph and on alpha, never on what Pi is applied to: a row has the same bits always.
        """
        if self.graph.n_nodes <= DENSE_NODES:
            return False
        return count_products(self.transition, self.alpha, ROUNDING) <= MOST_PRODUCTS

    def rows(self, nodes: NDArray[np.int64], dtype: torch.dtype) -> Tensor:
        """Return the rows of Pi that belong to `nodes`, shape (m, n)."""
        if self.iterated:
            return ppr_rows(self.transition, self.alpha, nodes, dtype)
        return torch.from_numpy(self.matrix[nodes]).to(dtype)

    def residual(self, predictions: Tensor, value: Tensor, kernels: Kernels) -> Tensor:
        """Return r = alpha H - (Z - (1 - alpha) T Z), all of shape (R, n, c), by one power step from Z."""
        stepped = kernels.steps(self.transition, self.alpha, 1).forward(value, None)  # (1 - alpha) T Z + alpha Z
        return self.alpha * (predictions - value) + (stepped - value)

    def residual_norm(self, residual: Tensor) -> tuple[str, float]:
        """Return the name and the value of the norm in which |error| <= |residual| / alpha holds."""
        if self.normalization == "sym":
            return "frobenius", float(residual.square().sum().sqrt())
        if self.normalization == "row":
            return "max", _largest(residual.abs())
        return "column", _largest(residual.abs().sum(dim=-2))


def _largest(values: Tensor) -> float:
    """Return the largest value, 0 where there is none: predictions may have no columns."""
    return float(values.max()) if values.numel() else 0.0
