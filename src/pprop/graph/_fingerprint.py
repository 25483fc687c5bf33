"""Content digests of arrays: equal contents, equal digits, on every machine."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pprop.graph._attributes import Features

__all__ = ["content_digest", "feature_parts", "id_part"]


def content_digest(parts: dict[str, NDArray[Any] | None]) -> str:
    """Return 32 hex digits of named arrays, in the order given; None counts as absent.

    >>> content_digest({"a": np.arange(2)}) == content_digest({"a": np.arange(2), "b": None})
    True
    """
    digest = hashlib.sha256(b"pprop graph 1")
    for name, value in parts.items():
        if value is not None:
            array = np.ascontiguousarray(value)
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(f"{name} {little.dtype.str} {array.shape}".encode())
            digest.update(little.tobytes())
    return digest.hexdigest()[:32]


def feature_parts(features: Features | None) -> dict[str, NDArray[Any] | None]:
    """Return the arrays that make up features, dense or sparse."""
    if features is None or isinstance(features, np.ndarray):
        return {"features": features}
    return {
        "features.indptr": features.indptr.astype(np.int64),
        "features.indices": features.indices.astype(np.int32),
        "features.data": features.data,
    }


def id_part(ids: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return ids as bytes, so that the width of a string array does not count."""
    if ids is None:
        return None
    text = "\0".join(str(key) for key in ids.tolist())
    return np.frombuffer(f"{ids.dtype.kind}{text}".encode(), dtype=np.uint8)
