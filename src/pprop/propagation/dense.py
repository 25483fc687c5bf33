"""The dense personalized PageRank matrix of the paper's equation (2), in one n x n buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from pprop._errors import CapacityError
from pprop._memory import usable_memory
from pprop._validate import reject
from pprop.graph import Transition

__all__ = ["check_row_memory", "dense_ppr"]


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
    if status != 0:
        return None
    inverse, status = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if status != 0:
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


def check_row_memory(solver: str, rows: int, n: int, itemsize: int) -> None:
    """Refuse rows of an n x n matrix that this process cannot hold.

    >>> check_row_memory("Exact", 20, 1000, itemsize=4)
    """
    needed, usable = rows * n * itemsize, usable_memory()
    if usable is not None and needed > 0.9 * usable:
        what, fewer = (
            ("the dense matrix", "") if rows == n else (f"{rows} rows of the matrix", ", or fewer nodes in one call")
        )
        raise CapacityError(
            f"{solver} needs {what} of {n} nodes, {needed / 2**30:.1f} GiB, and this process may use "
            f"{usable / 2**30:.1f} GiB. Use PowerIteration(steps=10){fewer}."
        )
