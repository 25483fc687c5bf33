"""Checks of what a Graph carries besides its edges: features, labels, ids, names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pprop._errors import GraphError
from pprop._validate import describe, reject
from pprop.graph._adjacency import freeze

__all__ = ["Features", "check_feature_names", "check_features", "check_ids", "check_labels"]

Features = sparse.csr_array | NDArray[Any]
"""Node features, shape (n, f), or (n, ...) when dense."""


def check_features(features: object, n: int, function: str) -> Features:
    expected = f"an array of finite numbers with {n} rows"
    if sparse.issparse(features):
        matrix = sparse.csr_array(cast("sparse.csr_array", features), copy=True)
        if matrix.shape[0] != n or matrix.dtype.kind not in "buif":
            reject("features", function, expected, matrix, error=GraphError)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float32)
        matrix.sum_duplicates()
        check_finite(matrix.data, function)
        for part in ("data", "indices", "indptr"):
            setattr(matrix, part, freeze(getattr(matrix, part)))
        return matrix
    array: NDArray[Any] = np.asarray(features)
    if array.ndim < 2 or array.shape[0] != n or array.dtype.kind not in "buif":
        reject("features", function, expected, array, error=GraphError)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32)
    check_finite(array, function)
    return freeze(array)


def check_finite(values: NDArray[Any], function: str) -> None:
    if not np.isfinite(values).all():
        count = int(values.size - np.isfinite(values).sum())
        reject("features", function, "free of NaN and infinity", f"{count} such values", error=GraphError)


def check_labels(labels: ArrayLike, n: int, class_names: tuple[str, ...] | None, function: str) -> NDArray[np.int64]:
    array = np.asarray(labels)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        reject("labels", function, f"an integer array of shape ({n},), with -1 for unknown", array, error=GraphError)
    high = n if class_names is None else len(class_names)
    if array.min() < -1 or array.max() >= high:
        bad = array.min() if array.min() < -1 else array.max()
        reject(
            "labels",
            function,
            f"an array of class indices from 0 to {high - 1}, or -1",
            f"the label {bad}",
            error=GraphError,
        )
    return freeze(array.astype(np.int64))


def check_ids(ids: ArrayLike, n: int, function: str) -> NDArray[Any]:
    array = np.asarray(ids)
    if array.shape != (n,) or array.dtype.kind not in "iuU":
        reject("ids", function, f"an array of {n} integers or strings", describe(array), error=GraphError)
    values, counts = np.unique(array, return_counts=True)
    if len(values) != n:
        reject(
            "ids",
            function,
            "an array of distinct ids",
            f"the id {values[counts > 1][0].item()!r} more than once",
            error=GraphError,
        )
    return freeze(array)


def check_feature_names(
    names: Sequence[str] | None, features: Features | None, function: str
) -> tuple[str, ...] | None:
    if names is None:
        return None
    width = None if features is None else features.shape[1]
    if len(names) != width:
        reject(
            "feature_names",
            function,
            f"a sequence of {width or 0} names, one per feature",
            f"{len(names)} names",
            error=GraphError,
        )
    return tuple(str(name) for name in names)
