"""The entries of a matrix sorted within bounded memory: scattered to files by ranges of rows, each then sorted in memory.

An entry is one number, its row above its column, so that sorting numbers sorts entries. With weights the column is
moved up by one bit, which says whether the entry is the edge as it was listed (0) or its reverse (1): the weights of
an edge that is listed several times are summed for each direction, and the larger sum counts for both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import CapacityError
from pprop.graph.building.sorting import stable_order

ROW = np.uint64(32)
COLUMN = np.uint64(2**32 - 1)
SYNCED = 16  # files that are brought to the disk together, which takes hardly longer than one
PARTS = 64  # that a bucket beyond memory is divided into
WEIGHTED = np.dtype([("key", "<u8"), ("weight", "<f8")])
PLAIN = np.dtype("<u8")


def sorted_entries(
    source: NDArray[Any], target: NDArray[Any], weights: NDArray[np.float64] | None, *, directed: bool
) -> NDArray[Any]:
    """Return the entries of edges, sorted by their keys; those of an undirected edge are two.

    >>> one = np.array([1]), np.array([0])
    >>> [divmod(int(key), 2**32) for key in sorted_entries(*one, None, directed=False)]
    [(0, 1), (1, 0)]
    """
    m = len(source)
    keys = np.empty(m if directed else 2 * m, dtype=np.uint64)
    shift = np.uint64(0 if weights is None else 1)
    for part, (row, column) in enumerate([(target, source)] if directed else [(target, source), (source, target)]):
        some = keys[part * m : (part + 1) * m]
        some[:] = row
        some <<= ROW
        some |= column.astype(np.uint64) << shift
        if weights is not None:
            some |= np.uint64(part)
    if weights is None:
        keys.sort()
        return keys
    order = stable_order(keys)
    found = np.empty(len(keys), dtype=WEIGHTED)
    found["key"] = keys[order]
    found["weight"] = (weights if directed else np.concatenate([weights, weights]))[order]
    return found


def keys_of(entries: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the keys of entries with or without weights."""
    return entries["key"] if entries.dtype == WEIGHTED else entries


@final
@dataclass(frozen=True, eq=False)
class SortedRows:
    """Distinct entries in order: of each row how many, their columns and their weights."""

    counts: NDArray[np.int64]
    columns: NDArray[np.int32]
    weights: NDArray[np.float64] | None
    loops: int

    @classmethod
    def of(cls, entries: NDArray[Any], first: int, rows: int) -> SortedRows:
        """Sort entries, merge equal ones, and leave out those of weight zero; they are in `rows` rows from `first` on."""
        weights = None
        if entries.dtype == WEIGHTED:
            keys, weights = _merged(entries)
        else:
            keys = entries
            keys.sort()
            new = np.ones(len(keys), dtype=bool)
            np.not_equal(keys[1:], keys[:-1], out=new[1:])
            keys = keys if new.all() else keys[new]
        starts = np.arange(first, first + rows + 1, dtype=np.uint64) << ROW
        counts = np.diff(np.searchsorted(keys, starts))
        columns = (keys & COLUMN).astype(np.int32)
        loops = int(np.count_nonzero((keys >> ROW).astype(np.int32) == columns))
        return cls(counts, columns, weights, loops)


def _merged(entries: NDArray[Any]) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Return the keys of distinct entries, without the bit of the direction, and their weights."""
    if not len(entries):
        return np.empty(0, dtype=np.uint64), np.empty(0)
    keys = np.ascontiguousarray(entries["key"])
    order = stable_order(keys)
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    with np.errstate(over="ignore"):  # the caller looks for infinity
        sums = np.add.reduceat(entries["weight"][order], starts)
    both = keys[starts] >> np.uint64(1)
    starts = np.flatnonzero(np.concatenate([[True], both[1:] != both[:-1]]))
    weights = np.maximum.reduceat(sums, starts)
    both = both[starts]
    # the row went down by the bit of the direction, too
    plain = ((both >> np.uint64(31)) << ROW) | (both & np.uint64(2**31 - 1))
    kept = weights != 0
    return plain[kept], weights[kept]


@final
class Buckets:
    """Files of entries, one for each range of `width` rows.

    Parameters
    ----------
    folder
        Where the files are.
    n_nodes, count
        Rows, and how many files they are divided into.
    weighted
        Whether entries have weights.
    """

    def __init__(self, folder: Path, n_nodes: int, count: int, *, weighted: bool) -> None:
        self._folder, self._n = folder, n_nodes
        self.width = -(-n_nodes // count)
        self.count = -(-n_nodes // self.width)
        self.kind = WEIGHTED if weighted else PLAIN
        self._streams: list[Any] = []

    def file(self, bucket: int) -> Path:
        """Return the file of a bucket."""
        return self._folder / f"bucket{bucket}"

    def rows(self, bucket: int) -> tuple[int, int]:
        """Return the first row of a bucket, and how many it has."""
        first = bucket * self.width
        return first, min(self.width, self._n - first)

    def open(self, sizes: list[int] | None) -> None:
        """Open all files to be written, new or cut to the sizes that are known to be right."""
        for bucket in range(self.count):
            file = self.file(bucket)
            if sizes is None:
                self._streams.append(file.open("wb"))
                continue
            stream = file.open("r+b")
            self._streams.append(stream)
            stream.truncate(sizes[bucket])
            stream.seek(sizes[bucket])

    def cuts(self, entries: NDArray[Any]) -> NDArray[np.int64]:
        """Return where the entries of each bucket begin among sorted ones, shape (count + 1,)."""
        starts = (np.arange(1, self.count, dtype=np.uint64) * np.uint64(self.width)) << ROW
        return np.concatenate([[0], np.searchsorted(keys_of(entries), starts), [len(entries)]])

    def write(self, entries: NDArray[Any], cuts: NDArray[np.int64]) -> None:
        """Add sorted entries to the files."""
        places = cuts.tolist()
        for bucket in np.flatnonzero(np.diff(cuts)).tolist():
            part = entries[places[bucket] : places[bucket + 1]]
            self._streams[bucket].write(part.view(np.uint8).data)

    def sync(self) -> list[int]:
        """Bring everything to the disk; return the size of each file."""
        for stream in self._streams:
            stream.flush()
        handles: list[int] = [stream.fileno() for stream in self._streams]
        with ThreadPoolExecutor(SYNCED) as threads:
            list(threads.map(os.fsync, handles))
        return [stream.tell() for stream in self._streams]

    def close(self) -> None:
        """Close the files."""
        for stream in self._streams:
            stream.close()
        self._streams = []

    def length(self, bucket: int) -> int:
        """Return how many entries a bucket has."""
        return self.file(bucket).stat().st_size // self.kind.itemsize

    def sorted(self, bucket: int) -> SortedRows:
        """Return a bucket that fits into memory, sorted."""
        return SortedRows.of(np.fromfile(self.file(bucket), dtype=self.kind), *self.rows(bucket))

    def divided(self, bucket: int, most: int) -> Iterator[SortedRows]:
        """Give a bucket of more than `most` entries in order, in parts that fit."""
        yield from self._divided(self.file(bucket), bucket, most)

    def _divided(self, file: Path, bucket: int, most: int) -> Iterator[SortedRows]:
        if file.stat().st_size // self.kind.itemsize <= most:
            yield SortedRows.of(np.fromfile(file, dtype=self.kind), *self.rows(bucket))
            return
        low, high = self._range(file, most)
        unit = 2 if self.kind == WEIGHTED else 1  # both directions of an edge stay together
        step = max(-(-(high + 1 - low) // PARTS), unit)
        step += step % unit
        low -= low % unit
        if self.kind == WEIGHTED and high + 1 - low <= unit:
            row, column = divmod(low >> 1, 2**31)
            raise CapacityError(
                f"The edge from node {column} to node {row} is listed more than {most:,} times, which is more than memory "
                "takes together: raise memory, or sum its weights before."
            )
        cuts = list(range(low + step, high + 1, step))
        files = [file.with_name(f"{file.name}.{part}") for part in range(len(cuts) + 1)]
        for part in files:
            part.unlink(missing_ok=True)
        for entries in self._chunks(file, most):
            keys = keys_of(entries)
            if self.kind == WEIGHTED:
                entries = entries[stable_order(np.ascontiguousarray(keys))]
            else:
                entries = np.unique(keys)
            ends = [0, *np.searchsorted(keys_of(entries), np.array(cuts, dtype=np.uint64)).tolist(), len(entries)]
            for part, first, last in zip(files, ends[:-1], ends[1:], strict=True):
                if last > first:
                    with part.open("ab") as stream:
                        stream.write(entries[first:last].view(np.uint8).data)
        for part in files:
            if part.exists():
                yield from self._divided(part, bucket, most)
                part.unlink()

    def _range(self, file: Path, most: int) -> tuple[int, int]:
        ranges = [(int(keys_of(part).min()), int(keys_of(part).max())) for part in self._chunks(file, most)]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def _chunks(self, file: Path, most: int) -> Iterator[NDArray[Any]]:
        with file.open("rb") as stream:
            while len(part := np.fromfile(stream, dtype=self.kind, count=most)):
                yield part
