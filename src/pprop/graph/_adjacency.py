"""From any scipy sparse matrix to the one canonical CSR form that a Graph holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import GraphError
from pprop._validate import describe, reject

__all__ = ["Csr", "canonical_csr", "freeze", "is_symmetric"]

Csr = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64] | None]
"""``indptr`` (n + 1,), ``indices`` (entries,) sorted within rows, ``weights`` (entries,) or None for all ones."""


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Return `array` read-only; one that somebody else could still write to is copied first.

    >>> freeze(np.arange(3)).flags.writeable
    False
    """
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def canonical_csr(adjacency: object, function: str) -> Csr:
    """Validate a square sparse matrix and return it with sorted rows, summed duplicates and no stored zeros.

    >>> canonical_csr(sparse.csr_array([[0, 2.0], [0, 0]]), "Graph.from_scipy")
    (array([0, 1, 1]), array([1], dtype=int32), array([2.]))
    """
    if not sparse.issparse(adjacency):
        reject("adjacency", function, "a scipy sparse matrix", describe(adjacency), error=GraphError)
    matrix: Any = adjacency
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        reject("adjacency", function, "a square matrix", f"shape {matrix.shape}", error=GraphError)
    if matrix.shape[0] == 0:
        reject("adjacency", function, "a matrix with at least one node", "an empty matrix", error=GraphError)
    if matrix.shape[0] > np.iinfo(np.int32).max:
        reject(
            "adjacency", function, "a matrix with at most 2147483647 nodes", f"shape {matrix.shape}", error=GraphError
        )
    if matrix.dtype.kind not in "buif":
        reject("adjacency", function, "a matrix of real numbers", f"dtype {matrix.dtype}", error=GraphError)
    csr: Any = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    if not np.isfinite(csr.data).all():
        reject("adjacency", function, "a matrix of finite weights", "NaN or infinity", error=GraphError)
    if (csr.data < 0).any():
        reject(
            "adjacency",
            function,
            "a matrix of non-negative weights",
            f"a weight of {csr.data.min():g}",
            error=GraphError,
        )
    csr.sum_duplicates()
    csr.eliminate_zeros()
    weights = None if (csr.data == 1.0).all() else csr.data
    return csr.indptr.astype(np.int64), csr.indices.astype(np.int32), weights


def is_symmetric(adjacency: sparse.csr_array) -> bool:
    """Return whether a canonical matrix equals its transpose, weights to rounding.

    >>> is_symmetric(sparse.csr_array([[0, 1.0], [0, 0]]))
    False
    """
    transpose = adjacency.T.tocsr()
    return (
        np.array_equal(adjacency.indptr, transpose.indptr)
        and np.array_equal(adjacency.indices, transpose.indices)
        and np.allclose(adjacency.data, transpose.data, rtol=1e-12, atol=0.0)
    )
