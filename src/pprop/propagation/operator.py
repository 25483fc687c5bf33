"""The personalized PageRank operator, a transition matrix and a teleport probability; and its dense matrix, equation (2)."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits
from torch import Tensor

from pprop._validate import check_bool, check_choice, describe, reject
from pprop.graph import NORMALIZATIONS, Graph, Transition, transition_matrix
from pprop.kernels import Kernels
from pprop.propagation.fixed_point import ROUNDING, check_row_memory, count_products, ppr_rows
from pprop.settings import NORMALIZATION, SELF_LOOPS

DENSE_NODES = 4000  # up to which a dense inverse, n^3 operations, is quicker than solving for the rows of a training
MOST_PRODUCTS = 10000  # beyond which the dense inverse is used anyway: alpha is then below 1e-5, or 0.004 if directed


def check_operator(graph: object, normalization: object, self_loops: object, function: str) -> None:
    """Check the arguments of the operator in the name of the public function that was given them.

    >>> import scipy.sparse as sp
    >>> check_operator(Graph.from_scipy(sp.csr_array((2, 2))), "row", True, "propagate")
    """
    if not isinstance(graph, Graph):
        reject("graph", function, "a pprop.Graph", describe(graph), remedy="Make one with pprop.Graph.from_scipy.")
    check_choice(normalization, "normalization", function, NORMALIZATIONS)
    check_bool(self_loops, "self_loops", function)


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

    def __init__(
        self,
        graph: Graph,
        alpha: float,
        normalization: str = NORMALIZATION.default,
        self_loops: bool = SELF_LOOPS.default,
    ) -> None:
        self.graph, self.alpha, self.normalization, self.self_loops = graph, alpha, normalization, self_loops
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
            return "max", float(residual.abs().max()) if residual.numel() else 0.0  # there may be no columns
        return "column", float(residual.abs().sum(dim=-2).max()) if residual.numel() else 0.0


def dense_ppr(transition: Transition, alpha: float) -> NDArray[np.float64]:
    """Return Pi = alpha (I - (1 - alpha) T)^-1, shape (n, n), inverted in place.

    BLAS is held to one thread, since its sums depend on the number of threads and the rows of Pi enter training.

    Raises
    ------
    CapacityError
        When the buffer is larger than the memory that this process may use.
    InputError
        When alpha is so small that the matrix is singular in double precision.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop.graph import Graph, transition_matrix
    >>> pair = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]))
    >>> dense_ppr(transition_matrix(pair), alpha=0.5)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    n = transition.n_nodes
    check_row_memory("Exact", n, n, itemsize=8)
    buffer = np.zeros((n, n), order="F")  # holds the transpose, so that the result has its rows contiguous
    rows = np.repeat(np.arange(n), np.diff(transition.indptr))
    buffer[transition.indices, rows] = -(1.0 - alpha) * transition.to_scipy().data
    buffer[np.arange(n), np.arange(n)] += 1.0
    definite = transition.symmetric and np.array_equal(transition.row_scale, transition.column_scale)
    with threadpool_limits(limits=1, user_api="blas"):
        inverse = _invert_definite(buffer) if definite else _invert_general(buffer)
    if inverse is None:  # regular for every alpha > 0 (the paper's Appendix A), but 1 - 1e-17 is 1 in float64
        reject("alpha", "Exact", "large enough for I - (1 - alpha) T to be regular in double precision", alpha)
    inverse *= alpha
    return inverse.T


def _invert_definite(matrix: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Invert a symmetric positive definite matrix in place: its eigenvalues lie in [alpha, 2 - alpha)."""
    factor, status = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
    inverse, inverted = lapack.dpotri(factor, lower=1, overwrite_c=1) if status == 0 else (factor, 1)
    if inverted != 0:
        return None
    for column in range(len(inverse)):  # LAPACK fills the lower triangle; a contiguous column of it becomes a row
        inverse[column, column + 1 :] = inverse[column + 1 :, column]
    return inverse


def _invert_general(matrix: NDArray[np.float64]) -> NDArray[np.float64] | None:
    factor, pivots, status = lapack.dgetrf(matrix, overwrite_a=1)
    if status != 0:
        return None
    work: Any = lapack.dgetri_lwork(len(matrix))
    inverse, status = lapack.dgetri(factor, pivots, lwork=int(work[0].real), overwrite_lu=1)
    return inverse if status == 0 else None
