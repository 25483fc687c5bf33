"""A dense feature matrix where it lies: rows are made float32, and scaled, as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

# Types of a matrix that is kept as it is given.
STORED = tuple(np.dtype(name) for name in ("float16", "float32", "float64", "int8", "uint8"))
# A matrix of which more than this share is not zero is read as a whole, another by its nonzeros.
FULL = 0.25
# Divisors within 2^-800 and 2^800 make the same float32 numbers by a product with their inverse and one correction as by division.
_DIVISORS = 2.0**-800, 2.0**800
_BLOCK = 2**17  # numbers of a block, which fit a cache in float64


@final
@dataclass(frozen=True, eq=False)
class DenseRows:
    """A matrix X (n, f) of which a network reads float32((X / row divisors) / column divisors - shifts).

    It is never copied as a whole, whether it lies in memory or in a file, unless `readable` has to.

    Attributes
    ----------
    matrix
        Shape (n, f), float16, float32, float64, int8 or uint8.
    by_row
        Two divisors of every row, one after the other, shape (n, 2), float64; None: rows are not scaled.
    by_column
        Divisor and shift of every column, shape (2, f), float64; None: columns are not scaled.

    Examples
    --------
    >>> rows = DenseRows(np.array([[20, 1], [40, 3]], dtype=np.int8), by_column=np.array([[10.0, 1.0], [3.0, 2.0]]))
    >>> rows.toarray()
    array([[-1., -1.],
           [ 1.,  1.]], dtype=float32)
    """

    matrix: NDArray[Any]
    by_row: NDArray[np.float64] | None = None
    by_column: NDArray[np.float64] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (n, f)."""
        return cast("tuple[int, int]", self.matrix.shape)

    @property
    def plain(self) -> bool:
        """Whether nothing is scaled."""
        return self.by_row is None and self.by_column is None

    def __getitem__(self, rows: slice) -> DenseRows:
        """Return some consecutive rows where they lie.

        >>> DenseRows(np.eye(3), by_row=np.full((3, 2), 2.0))[1:].toarray()
        array([[0.  , 0.25, 0.  ],
               [0.  , 0.  , 0.25]], dtype=float32)
        """
        by_row = None if self.by_row is None else self.by_row[rows]
        return DenseRows(self.matrix[rows], by_row, self.by_column)

    def block(self, rows: slice | NDArray[np.int64]) -> NDArray[np.float32]:
        """Return some rows as a network reads them, shape (rows, f)."""
        part = self.matrix[rows]
        if self.by_row is not None:
            part = part.astype(np.float64)
            for side in (0, 1):
                part /= self.by_row[rows, side : side + 1]
        if self.by_column is not None:
            part = part / self.by_column[0]
            part -= self.by_column[1]
        with np.errstate(over="ignore"):
            return part.astype(np.float32, copy=False)

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Give all rows, some at a time: where they are, and the numbers."""
        return ((rows, self.block(rows)) for rows in row_blocks(self.shape))

    def toarray(self) -> NDArray[np.float32]:
        """Return the whole matrix as a network reads it, shape (n, f); the matrix itself, where it is that already."""
        if self.plain and self.matrix.dtype == np.float32:
            return self.matrix
        out = np.empty(self.shape, dtype=np.float32)
        for rows, part in self.blocks():
            out[rows] = part
        return out

    def readable(self) -> DenseRows:
        """Return the same rows for loops that read memory in order: a copy in float32 where the matrix is stored otherwise.

        >>> turned = np.asfortranarray(np.eye(2, dtype=np.int8))
        >>> DenseRows(turned).readable().matrix.dtype
        dtype('float32')
        """
        matrix, divisors = self.matrix, [self.by_row, None if self.by_column is None else self.by_column[0]]
        sound = matrix.flags.c_contiguous and matrix.flags.aligned and matrix.dtype in STORED
        for some in divisors:
            sound = sound and (some is None or bool(((some >= _DIVISORS[0]) & (some <= _DIVISORS[1])).all()))
        return self if sound else DenseRows(np.ascontiguousarray(self.toarray()))

    @cached_property
    def full(self) -> bool:
        """Whether more than a quarter of the numbers that a network reads are not zero; the rest is not looked at."""
        found, enough = 0, FULL * self.matrix.size
        for _, part in self.blocks():
            found += int(np.count_nonzero(part))
            if found > enough:
                return True
        return False


def row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Give the places of the rows of a matrix of some shape, as many at a time as fit a cache in float64."""
    step = max(_BLOCK // max(int(np.prod(shape[1:])), 1), 1)
    return (slice(first, first + step) for first in range(0, shape[0], step))
