"""The one decorator of this backend's kernels, with a compile cache that notices changes in any kernel source."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

__all__ = ["ROW_BLOCK", "inline", "kernel", "part", "serial"]

ROW_BLOCK = 256
"""Rows in one task. Part of the definition of the sums that run over nodes, so it never depends on the machine."""


def _sources_digest() -> str:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


_STAMP = _sources_digest()


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel with threads, cached on disk until any source of this backend changes.

    numba's own stamp covers the file of the function alone, and so misses a change in what it calls.
    """
    return _stamped(numba.njit(parallel=True, cache=True, nogil=True, error_model="numpy")(function))


def serial(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that one thread runs from start to end; cached as a kernel is."""
    return _stamped(numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function as a part of every serial function that calls it, by LLVM's inliner.

    A call that passes arrays costs about 100 ns, more than a short row of a sparse matrix.
    """
    return numba.njit(nogil=True, error_model="numpy", forceinline=True)(function)


def _stamped(dispatcher: Any) -> Any:
    cache_file = getattr(dispatcher._cache, "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = _STAMP
    return dispatcher


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function into every kernel that calls it: passing arrays costs more than a short row."""
    return numba.njit(inline="always", error_model="numpy")(function)
