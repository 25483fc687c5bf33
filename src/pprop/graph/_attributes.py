"""Checks of what a Graph carries besides its edges: features, labels, names."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import GraphError
from pprop._validate import check_array, check_sequence, check_texts, describe, reject
from pprop.graph._adjacency import freeze, seal, share, sound_csr
from pprop.graph.recommended import Recommended

__all__ = ["Features", "check_feature_names", "check_features", "check_labels", "check_names", "check_origin"]

Features = sparse.csr_array | NDArray[Any]
"""Node features, shape (n, f), or (n, ...) when dense."""


def check_features(features: object, n: int, function: str) -> Features:
    expected = f"an array of finite numbers with {n} rows"
    if sparse.issparse(features):
        given: Any = features
        if given.ndim != 2 or given.shape[0] != n or given.dtype.kind not in "buif":
            reject("features", function, expected, given, error=GraphError)
        matrix = sound_csr(given, "features", function)
        matrix = matrix.astype(_float_type(matrix.dtype), copy=False)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        check_finite(matrix.data, function)
        matrix = share(matrix)  # the same arrays, but for indices wider than they need to be
        for part in ("data", "indices", "indptr"):
            seal(getattr(matrix, part))
        return matrix
    array = check_array(features, "features", function, expected, GraphError)
    if array.ndim < 2 or array.shape[0] != n or array.dtype.kind not in "buif":
        reject("features", function, expected, array, error=GraphError)
    values = array.astype(_float_type(array.dtype), copy=False)
    check_finite(values, function)
    return freeze(values) if values is array else seal(values)


def _float_type(dtype: np.dtype[Any]) -> type[np.float32 | np.float64]:
    """Numbers of double precision keep it; integers, truth values and half precision become float32."""
    return np.float64 if dtype.kind == "f" and dtype.itemsize >= 8 else np.float32


def check_finite(values: NDArray[Any], function: str) -> None:
    if not np.isfinite(values).all():
        count = int(values.size - np.isfinite(values).sum())
        reject("features", function, "free of NaN and infinity", f"{count} such values", error=GraphError)


def check_labels(labels: object, n: int, class_names: tuple[str, ...] | None, function: str) -> NDArray[np.int64]:
    expected = f"an integer array of shape ({n},), with -1 for unknown"
    array = check_array(labels, "labels", function, expected, GraphError)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        reject("labels", function, expected, array, error=GraphError)
    high = n if class_names is None else len(class_names)
    if array.min() < -1 or array.max() >= high:
        bad = array.min() if array.min() < -1 else array.max()
        expected = f"an array of class indices from 0 to {high - 1}, or -1" if high else "an array of -1 for no classes"
        reject("labels", function, expected, f"the label {bad}", error=GraphError)
    return seal(array.astype(np.int64))


def check_names(names: object, parameter: str, function: str) -> tuple[str, ...] | None:
    """Return the names of classes or features as a tuple of str; numbers may be names."""
    if names is None:
        return None
    expected = "a sequence of names, or None"
    found = check_sequence(names, parameter, function, expected, GraphError)
    for index, name in enumerate(found):
        if not isinstance(name, str | numbers.Real):
            reject(parameter, function, expected, f"{describe(name)} at index {index}", error=GraphError)
    texts = tuple(str(name) for name in found)
    check_texts(texts, parameter, function, GraphError)  # they are written, and used as labels, as arrays
    return texts


def check_feature_names(names: object, features: Features | None, function: str) -> tuple[str, ...] | None:
    found = check_names(names, "feature_names", function)
    width = 0 if features is None else features.shape[1]
    if found is not None and len(found) != width:
        expected = f"a sequence of {width} names, one per feature"
        reject("feature_names", function, expected, f"{len(found)} names", error=GraphError)
    return found


def check_origin(name: object, recommended: object, function: str) -> tuple[str | None, Recommended | None]:
    if not isinstance(name, str | None):
        reject("name", function, "a str or None", describe(name))
    if not isinstance(recommended, Recommended | None):
        reject("recommended", function, "a pprop.graph.Recommended or None", describe(recommended))
    return name, recommended
