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
    digest = hashlib.sha256(b"pprop graph 2")
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
        "features.shape": np.asarray(features.shape, dtype=np.int64),  # columns at the end may be empty
        "features.indptr": features.indptr.astype(np.int64),
        "features.indices": features.indices.astype(np.int32),
        "features.data": features.data,
    }


def id_part(ids: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return ids as bytes, so that the width of their type does not count; 1 and "1" are not the same.

    >>> bytes(id_part(np.array(["a", "bc"])))
    b'text 1:a2:bc'
    """
    if ids is None:
        return None
    kind = "text" if ids.dtype.kind == "U" else "integers"
    keys = "".join(f"{len(key)}:{key}" for key in map(str, ids.tolist()))  # lengths, as an id may hold any character
    return np.frombuffer(f"{kind} {keys}".encode("utf-8", "surrogatepass"), dtype=np.uint8)
