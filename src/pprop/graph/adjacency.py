"""From any scipy sparse matrix to the one canonical CSR form that a Graph holds."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import GraphError
from pprop._validate import describe, reject

# ``indptr`` (n + 1,), ``indices`` (entries,) sorted within rows, ``weights`` (entries,) or None for all ones.
Csr = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64] | None]


ROUNDING = 1e-12  # a relative difference of weights that two orders of summation explain


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Return `array` read-only; one that can still be written to elsewhere, itself or its base, is copied first.

    >>> freeze(np.arange(3)).flags.writeable
    False
    """
    holder: Any = array
    while isinstance(holder, np.ndarray) and not holder.flags.writeable:
        holder = cast("Any", holder.base)
    return array if holder is None or isinstance(holder, bytes) else seal(array.copy())


def seal(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array without other users read-only, in place and with its bases, and return it.

    >>> seal(np.arange(3)[:2]).base.flags.writeable
    False
    """
    holder: Any = array
    while isinstance(holder, np.ndarray):
        holder.flags.writeable = False
        holder = cast("Any", holder.base)
    return array


def share(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return a new object around the arrays of a canonical matrix, so that setting its attributes changes nothing else.

    >>> matrix = sparse.csr_array([[0, 2.0], [0, 0]])
    >>> share(matrix) is matrix, np.shares_memory(share(matrix).data, matrix.data)
    (False, True)
    """
    shared = sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    shared.has_canonical_format = True  # known, and would be found out again by a pass over the entries
    return shared


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
        expected = f"a matrix with at most {np.iinfo(np.int32).max} nodes"
        reject("adjacency", function, expected, f"shape {matrix.shape}", error=GraphError)
    if matrix.dtype.kind not in "buif":
        reject("adjacency", function, "a matrix of real numbers", f"dtype {matrix.dtype}", error=GraphError)
    csr = sound_csr(matrix, "adjacency", function).astype(np.float64, copy=False)
    csr.sum_duplicates()  # first, as scipy does so on the way from some forms, and as a sum may be infinite
    csr.eliminate_zeros()
    if not np.isfinite(csr.data).all():
        reject("adjacency", function, "a matrix of finite weights", "NaN or infinity", error=GraphError)
    negative = csr.data[csr.data < 0]
    if negative.size:
        got = f"a weight of {negative[0]:g}"
        reject("adjacency", function, "a matrix of non-negative weights", got, error=GraphError)
    return csr.indptr.astype(np.int64), csr.indices.astype(np.int32), _weights(csr.data)


def sound_csr(matrix: Any, parameter: str, function: str) -> sparse.csr_array:
    """Return a copy in CSR form whose every index is in range, which scipy does not check by itself."""
    own = matrix.copy()  # the check tidies up what it looks at
    try:
        if hasattr(own, "check_format"):  # before any conversion, which would write where a wrong index points
            own.check_format(full_check=True)
        return sparse.csr_array(own)
    except (TypeError, ValueError) as error:
        reject(parameter, function, "a sound sparse matrix", f"an inconsistent one ({error})", error=GraphError)


def symmetrized(csr: Csr) -> Csr | None:
    """Return a canonical matrix as its own transpose to the last bit, or None where they differ by more than rounding.

    Of two weights that differ by rounding the larger counts.

    >>> symmetrized(canonical_csr(sparse.csr_array([[0, 1.0], [1 - 1e-14, 0]]), "Graph.from_scipy"))
    (array([0, 1, 2]), array([1, 0], dtype=int32), None)
    """
    indptr, indices, weights = csr
    values, shape = np.ones(len(indices)) if weights is None else weights, (len(indptr) - 1, len(indptr) - 1)
    transpose = sparse.csr_array((values, indices, indptr), shape=shape).T.tocsr()
    same_structure = np.array_equal(indptr, transpose.indptr) and np.array_equal(indices, transpose.indices)
    if not same_structure or not np.allclose(values, transpose.data, rtol=ROUNDING, atol=0.0):
        return None
    return csr if weights is None else (indptr, indices, _weights(np.maximum(weights, transpose.data)))


def _weights(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    return None if (values == 1.0).all() else values
