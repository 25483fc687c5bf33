"""Arrays in files that many tasks fill, each with rows of its own, and that all of them map to read.

They are npy files in a folder that every executor sees under the same path.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pprop.graph.folder_arrays import HEADER, npy_header


def new_array(path: Path, dtype: Any, shape: Sequence[int]) -> None:
    """Make an array of zeros; it takes room on the disk as it is filled."""
    kind = np.dtype(dtype).newbyteorder("<")
    with path.open("wb") as stream:
        stream.write(npy_header(kind, shape))
        stream.truncate(HEADER + math.prod(shape) * kind.itemsize)


def write_rows(path: Path, first: int, rows: NDArray[Any]) -> int:
    """Write rows from row `first` on, bring them to the disk, and return their bytes.

    `rows` must have the type of the array. Nothing else of the file is read or written, so that tasks on several machines
    may write neighbouring rows.
    """
    flat: Any = np.ascontiguousarray(rows).reshape(-1).view(np.uint8)
    data = memoryview(flat)
    size = math.prod(rows.shape[1:]) * rows.dtype.itemsize
    stream = os.open(path, os.O_WRONLY)
    try:
        at, done = HEADER + first * size, 0
        while done < len(data):
            done += os.pwrite(stream, data[done:], at + done)
        os.fsync(stream)
    finally:
        os.close(stream)
    return len(data)


def map_rows(path: Path, dtype: Any, shape: Sequence[int]) -> NDArray[Any]:
    """Map an array to be read. It may be written to, in memory alone, since for read-only arrays numba compiles again."""
    if not math.prod(shape):
        return np.empty(tuple(shape), dtype)
    return np.asarray(np.memmap(path, np.dtype(dtype), "c", HEADER, tuple(shape)))
