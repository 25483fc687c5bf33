"""The users' own names of their nodes: all integers or all text, each once."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pprop._errors import GraphError, InputError
from pprop._validate import check_array, check_texts, describe, reject
from pprop.graph._adjacency import freeze

__all__ = ["check_ids", "look_up"]


def check_ids(ids: object, n: int, function: str) -> NDArray[Any]:
    """Return distinct ids as a frozen array of integers or text, shape (n,).

    >>> check_ids([30, 10], 2, "Graph.from_scipy")
    array([30, 10])
    """
    expected = f"an array of {n} integers or strings"
    given = check_array(ids, "ids", function, expected, GraphError)
    array = _as_ids(ids, function, GraphError)
    if array is None or array.shape != (n,):
        reject("ids", function, expected, describe(given), error=GraphError)
    values, counts = np.unique(array, return_counts=True)
    if len(values) != n:
        got = f"the id {values[counts > 1][0].item()!r} more than once"
        reject("ids", function, "an array of distinct ids", got, error=GraphError)
    return freeze(array)


def look_up(ids: object, index: Mapping[object, int], function: str) -> NDArray[np.int64]:
    """Return the positions of `ids`, shape (m,).

    >>> look_up(["b"], {"a": 0, "b": 1}, "positions")
    array([1])
    """
    expected = "a one-dimensional array of node ids, all integers or all strings"
    given = check_array(ids, "ids", function, expected)
    wanted = _as_ids(ids, function, InputError)
    if wanted is None:
        reject("ids", function, expected, describe(ids) if given.ndim == 0 else describe(given))
    found = np.empty(len(wanted), dtype=np.int64)
    for k, key in enumerate(wanted.tolist()):
        at = index.get(key)
        if at is None:
            reject("ids", function, "an array of ids of this graph", f"the unknown id {describe(key)} at index {k}")
        found[k] = at
    return found


def _as_ids(ids: object, function: str, error: type[InputError]) -> NDArray[Any] | None:
    """Return ids as an array of integers or text, shape (m,), or None where they are something else.

    A list is looked at one by one, as numpy makes text of ``["a", 1]`` and integers of ``[7, True]``; so are arrays of
    objects, which is how pandas hands out text.
    """
    if isinstance(ids, np.ndarray) and cast("NDArray[Any]", ids).dtype.kind in "iuU":
        array = cast("NDArray[Any]", ids)
        return np.asarray(array) if array.ndim == 1 else None
    objects = np.asarray(ids, dtype=object)
    if objects.ndim != 1:
        return None
    keys: list[object] = objects.tolist()
    if all(isinstance(key, str) for key in keys):
        return check_texts(cast("list[str]", keys), "ids", function, error)
    integers = [int(key) for key in keys if isinstance(key, numbers.Integral) and not isinstance(key, bool)]
    for dtype in (np.int64, np.uint64) if len(integers) == len(keys) else ():
        try:
            return np.asarray(integers, dtype=dtype)
        except OverflowError:
            continue
    return None
