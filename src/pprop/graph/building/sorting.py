"""Stable orders of 64-bit keys, by sorts of numbers that hold a key and its place: numpy sorts numbers ten times as fast."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


def stable_order(keys: NDArray[Any]) -> NDArray[np.int64]:
    """Return the order that sorts keys, int64 or uint64, fewer than 2^32 of them; equal ones stay in their order.

    >>> stable_order(np.array([3, -1, 3, 0])).tolist()
    [1, 3, 0, 2]
    """
    if not len(keys):
        return np.empty(0, dtype=np.int64)
    bits = max(len(keys) - 1, 1).bit_length()
    low, high = int(keys.min()), int(keys.max())
    numbers = (keys - keys.dtype.type(low)).view(np.uint64)
    if high - low < 2 ** (64 - bits):
        return _order(numbers, bits)
    order = _order(numbers & _LOW, 32)
    return order[_order((numbers >> _HALF)[order], 32)]


def _order(numbers: NDArray[np.uint64], bits: int) -> NDArray[np.int64]:
    packed = numbers << np.uint64(bits)
    packed |= np.arange(len(numbers), dtype=np.uint64)
    packed.sort()
    packed &= np.uint64(2**bits - 1)
    return packed.view(np.int64)


def distinct_codes(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct keys, sorted, and the number of each key among them.

    >>> distinct_codes(np.array([5, 2, 5]))
    (array([2, 5]), array([1, 0, 1]))
    """
    order = stable_order(keys)
    ordered = keys[order]
    new = np.ones(len(keys), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    codes = np.empty(len(keys), dtype=np.int64)
    codes[order] = np.cumsum(new) - 1
    return ordered[new], codes
