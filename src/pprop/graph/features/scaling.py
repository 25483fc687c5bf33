"""Scaling: what is done to node features before a network reads them, by rows or column by column, fitted once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import FormatError, GraphError
from pprop._validate import check_choice, reject

Features = sparse.csr_array | NDArray[Any]  # of nodes, shape (n, f), or (n, ...) when dense
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


CHOICES = ("auto", "l1", "standard", "none")
# A dense matrix is a bag of words all the same if it has no negative values, so many columns, and is not full.
WORDS_COLUMNS = 50
_AT_ONCE = 2**24  # entries of a sparse matrix that are scaled at a time


@final
@dataclass(frozen=True, eq=False)
class Scaling:
    """How features are scaled; applied to another graph, it does what it did on the graph it was fitted to.

    Attributes
    ----------
    kind
        ``"l1"``: each row is divided by the sum of its absolute values, as in the paper. ``"standard"``: of each column
        `center` is subtracted, and it is divided by `scale`. ``"none"``: features are used as they are.
    center, scale
        Of ``"standard"``: shape (f,), float64; 0 and 1 for columns that are left as they are. A sparse matrix without a
        recipe is never centred.

    Examples
    --------
    >>> X = np.array([[1.0, 10.0], [3.0, 10.0]], dtype=np.float32)
    >>> Scaling.fit(X, "standard").apply(X)
    array([[-1.,  0.],
           [ 1.,  0.]], dtype=float32)
    >>> Scaling.fit(X, "l1").apply(sparse.csr_array(X)).toarray().round(2)
    array([[0.09, 0.91],
           [0.23, 0.77]], dtype=float32)
    """

    kind: str
    center: NDArray[np.float64] | None = None
    scale: NDArray[np.float64] | None = None

    @classmethod
    def fit(cls, features: Features, choice: str = "auto", numbers: NDArray[np.bool_] | None = None) -> Scaling:
        """Fit to features of shape (n, f); the choice ``"auto"`` depends on them alone.

        Parameters
        ----------
        features
            Sparse or dense, finite.
        choice
            ``"auto"``, ``"l1"``, ``"standard"`` or ``"none"``. Auto: with a recipe, standard where it has numbers
            and else none; without one, l1 for a sparse matrix without negative values and for a dense one that is a bag
            of words, none for features of more than one axis, and else standard.
        numbers
            Which columns came from numbers and dates, shape (f,), where the features were made by a recipe. Only these
            are standardised: flags, categories and texts have a common scale already.
        """
        check_choice(choice, "scaling", "Graph.scaled", CHOICES)
        kind = _choose(features, numbers) if choice == "auto" else choice
        if kind != "none" and features.ndim != 2:
            got = f"{kind!r} for features of shape {features.shape}"
            reject("scaling", "Graph.scaled", "'none' for features that are no matrix", got)
        if kind != "standard":
            return cls(kind)
        mask = np.ones(features.shape[1], dtype=np.bool_) if numbers is None else numbers
        mean, deviation = _moments(features)
        whole = sparse.issparse(features) and numbers is None
        center = np.where(mask & (not whole), mean, 0.0)
        return cls("standard", center, np.where(mask & (deviation > 0), deviation, 1.0))

    def apply(self, features: Features) -> Features:
        """Return scaled features of the same shape, float32; a sparse matrix stays sparse."""
        if self.kind == "none":
            return features
        if isinstance(features, np.ndarray):
            rows = self.rows(features)
            return _rows_to_one(sparse.csr_array(features)) if rows is None else rows.toarray()
        if self.kind == "l1":
            return _rows_to_one(features)
        self._check_columns(features)
        assert self.center is not None
        assert self.scale is not None
        centred = np.flatnonzero(self.center)
        rest = features.astype(np.float32)
        if len(centred):  # these columns are full afterwards
            part = Scaling("standard", self.center[centred], self.scale[centred])
            full = part.apply(features[:, centred].toarray())
            keep = np.ones(features.shape[1], dtype=np.float32)
            keep[centred] = 0
            rest.data *= keep[rest.indices]
            rest.data /= self.scale[rest.indices].astype(np.float32)
            place = sparse.csr_array(
                (np.ones(len(centred), dtype=np.float32), (np.arange(len(centred)), centred)),
                shape=(len(centred), features.shape[1]),
            )
            rest = sparse.csr_array(rest + sparse.csr_array(full) @ place)
        else:
            rest.data = (features.data / self.scale[features.indices]).astype(np.float32)
        rest.eliminate_zeros()
        return rest

    def rows(self, features: NDArray[Any]) -> DenseRows | None:
        """Return a dense matrix (n, f) scaled as it is read, without a copy; None where it is to be read by its nonzeros.

        That is a bag of words: rows are divided by the sums of their absolute values, and not full.

        >>> X = np.array([[1.0, 10.0], [3.0, 10.0]], dtype=np.float32)
        >>> Scaling.fit(X, "standard").rows(X).toarray()
        array([[-1.,  0.],
               [ 1.,  0.]], dtype=float32)
        """
        if self.kind == "none":
            return DenseRows(features)
        if self.kind == "l1":
            return DenseRows(features, by_row=_row_sizes(features)) if is_full(features) else None
        self._check_columns(features)
        assert self.center is not None
        assert self.scale is not None
        return DenseRows(features, by_column=np.stack([self.scale, self.center / self.scale]))

    def _check_columns(self, features: Features) -> None:
        assert self.scale is not None
        if features.ndim != 2 or features.shape[1] != len(self.scale):
            expected = f"a matrix of {len(self.scale)} columns, as in the training"
            reject("features", "Scaling.apply", expected, f"shape {features.shape}", error=GraphError)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scaling) or self.kind != other.kind:
            return False
        ours, theirs = self.arrays(), other.arrays()
        return all(np.array_equal(ours[name], theirs[name]) for name in ours)

    def __hash__(self) -> int:
        return hash((self.kind, *(array.tobytes() for array in self.arrays().values())))

    def __str__(self) -> str:
        if self.scale is None or self.center is None:
            return {"l1": "each node's features are divided by the sum of their absolute values"}.get(
                self.kind, "features are used as they are"
            )
        count, total = int(np.count_nonzero((self.scale != 1) | (self.center != 0))), len(self.scale)
        how = "centred and divided" if self.center.any() else "divided"
        return f"{count:,} of {total:,} feature columns are {how} by their standard deviation"

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return what has to be saved besides the kind."""
        return {} if self.center is None or self.scale is None else {"center": self.center, "scale": self.scale}

    @classmethod
    def restored(cls, kind: str, arrays: Mapping[str, NDArray[Any]], n_features: int) -> Scaling:
        """Return a scaling from what was saved of it; raise FormatError where that is no scaling of so many columns."""
        wanted = {"center", "scale"} if kind == "standard" else set[str]()
        sound = kind in CHOICES[1:] and set(arrays) == wanted
        for array in arrays.values():
            sound = sound and array.dtype == np.float64 and array.shape == (n_features,) and np.isfinite(array).all()
        if not sound or ("scale" in arrays and not (arrays["scale"] > 0).all()):
            raise FormatError(f"the scaling {kind!r} does not fit {n_features} features")
        return cls(kind, **arrays)


def _choose(features: Features, numbers: NDArray[np.bool_] | None) -> str:
    if features.ndim != 2:
        return "none"
    if numbers is not None:
        return "standard" if numbers.any() else "none"
    return "l1" if _counts(features) else "standard"


def _counts(features: Features) -> bool:
    """Whether a matrix looks like counts of words: no negative values, and sparse, stored so or not."""
    if isinstance(features, sparse.csr_array):
        return bool((features.data >= 0).all())
    if features.ndim != 2 or features.shape[1] < WORDS_COLUMNS:
        return False
    return all((features[rows] >= 0).all() for rows in row_blocks(features.shape)) and not is_full(features)


def is_full(features: Features) -> bool:
    """Whether more than a quarter of a matrix is not zero: such a one is read as a whole, another by its nonzeros.

    >>> is_full(np.eye(4)), is_full(np.eye(3)), is_full(sparse.csr_array(np.eye(3)))
    (False, True, True)
    """
    if isinstance(features, np.ndarray):
        return DenseRows(features).full
    return int(features.nnz) > FULL * int(np.prod(features.shape))


def _moments(features: Features) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation of every column, shape (f,); exactly zero for a constant one.

    In units of the largest value of a column, so that neither huge nor tiny ones overflow on the way.
    """
    n = features.shape[0]
    if isinstance(features, np.ndarray):
        low, high = _extremes(features)
        top = _units(low, high)

        def in_units(part: NDArray[Any], out: NDArray[np.float64]) -> None:
            np.divide(part, top, out=out)

        def squares(part: NDArray[Any], out: NDArray[np.float64]) -> None:
            np.divide(part, top, out=out)
            out -= mean
            out *= out

        mean = _column_sums(features, in_units) / n
        square = _column_sums(features, squares)
    else:
        columns = features.astype(np.float64).tocsc()
        low, high = (np.asarray(pick(axis=0).toarray()).ravel() for pick in (columns.min, columns.max))
        top, stored = _units(low, high), np.diff(columns.indptr)
        columns.data = columns.data / np.repeat(top, stored)
        mean = np.asarray(columns.sum(axis=0)) / n
        columns.data = (columns.data - np.repeat(mean, stored)) ** 2
        square = np.asarray(columns.sum(axis=0)) + (n - stored) * mean**2  # those that are not stored are zero
    return mean * top, np.sqrt(square / n) * top * (high > low)


def _units(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    top = np.maximum(np.abs(low), np.abs(high))
    return np.where(top > 0, top, 1.0)


def _extremes(features: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest number of every column."""
    low, high = (np.asarray(features[0]).astype(np.float64) for _ in range(2))
    for rows in row_blocks(features.shape):
        part = _quick(features[rows])
        low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
    return low, high


def _quick(part: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers in a type with which numpy is quick."""
    return part.astype(np.float32) if part.dtype == np.float16 else part


def _column_sums(
    features: NDArray[Any], make: Callable[[NDArray[Any], NDArray[np.float64]], None]
) -> NDArray[np.float64]:
    """Add up the terms that `make` writes for some rows: row after row within 2^22 numbers, then these sums, shape (f,)."""
    f = features.shape[1]
    many, total = max(2**22 // max(f, 1), 1), np.zeros(f)
    for first in range(0, len(features), many):
        some, found = features[first : first + many], np.empty((0, f))
        # numpy adds up a lone column in another order
        for rows in row_blocks(some.shape) if f > 1 else [slice(None)]:
            part, before = _quick(some[rows]), len(found)
            room = np.empty((before + len(part), f))
            make(part, room[before:])
            room[:before] = found
            found = room.sum(axis=0, keepdims=True)
        total += found[0]
    return total


def _row_sizes(features: NDArray[Any]) -> NDArray[np.float64]:
    """Return the largest absolute value of every row, and the sum of all in units of it, (n, 2); 1 for an empty row.

    In two steps, so that neither huge nor tiny features overflow on the way.
    """
    sizes = np.empty((len(features), 2))
    for rows in row_blocks(features.shape):
        part = abs(features[rows].astype(np.float64))
        for side, reduce in enumerate((np.max, np.sum)):
            found = reduce(part, axis=1, keepdims=True)
            found = np.where(found > 0, found, 1.0)
            part /= found
            sizes[rows, side : side + 1] = found
    return sizes


def _rows_to_one(features: sparse.csr_array) -> sparse.csr_array:
    """Return a sparse matrix (n, f) in float32 whose rows have 1-norm one; empty rows stay empty.

    A large matrix is scaled some rows at a time, so that float64 copies of it stay small; its indices are shared.
    """
    n = features.shape[0]
    if features.nnz <= _AT_ONCE or n == 1:
        return _scaled_rows(features)
    step, data = max(1, int(n * _AT_ONCE // int(features.nnz))), np.empty(features.nnz, np.float32)
    for first in range(0, n, step):
        part = _scaled_rows(features[first : first + step])
        begin, end = features.indptr[first], features.indptr[min(first + step, n)]
        if part.nnz < end - begin:  # a zero was stored
            tidy = features.copy()
            tidy.eliminate_zeros()
            return _rows_to_one(tidy)
        data[begin:end] = part.data
    return sparse.csr_array((data, features.indices, features.indptr), shape=features.shape)


def _scaled_rows(features: sparse.csr_array) -> sparse.csr_array:
    matrix = features.astype(np.float64)
    matrix.eliminate_zeros()
    per_row = np.diff(matrix.indptr)
    # first by the largest entry, so that neither huge nor tiny features overflow on the way
    largest = abs(matrix).max(axis=1).toarray()
    matrix.data /= np.repeat(largest, per_row)
    matrix.data /= np.repeat(np.asarray(abs(matrix).sum(axis=1)), per_row)
    return matrix.astype(np.float32)
