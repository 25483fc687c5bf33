"""What a task does with its part of the entries: sort them, count them, and put them into the arrays of the graph.

An entry is one number, row << 32 | column << 1 | back: sorted, these are in the order of rows and columns, and next to
each other where an undirected edge is listed in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop.graph.folder_arrays import BLOCK, HEADER, Digest
from pprop.spark.arrays import write_rows
from pprop.spark.foreign import RecordBatch, arrow, partition

SORTED = "part int, entries bigint, loops bigint, repeated bigint, ones boolean, narrow boolean, before binary"
_COLUMN = 2**31 - 1
_READ = 2**28  # bytes of an array that one task digests


@final
@dataclass(frozen=True)
class Layout:
    """Which rows and columns each part of the entries has.

    Attributes
    ----------
    n, rows
        Nodes, and rows of a block; part k is block k: the rows from k * rows on, but for the hubs.
    hubs, pieces
        Rows of many entries, ascending, and into how many parts each is cut, by its columns.
    """

    n: int
    rows: int
    hubs: tuple[int, ...]
    pieces: tuple[int, ...]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return -(-self.n // self.rows)

    @property
    def parts(self) -> int:
        """Number of all parts."""
        return self.blocks + sum(self.pieces)

    def first_part(self, hub: int) -> int:
        """Return the first part of a hub, given by its place among them."""
        return self.blocks + sum(self.pieces[:hub])

    def hubs_of(self, block: int) -> NDArray[np.int64]:
        """Return the hubs of a block, counted from its first row."""
        hubs = np.array(self.hubs, np.int64)
        return hubs[hubs // self.rows == block] - block * self.rows


@final
@dataclass(frozen=True)
class SortEntries:
    """Sort the entries of a part, merge those that are listed more than once, and write them to files of the part."""

    layout: Layout
    folder: Path
    weighted: bool

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        pa = arrow()
        part = partition()
        kept = [[column.to_numpy() for column in batch.columns] for batch in batches]
        keys = np.concatenate([np.empty(0, np.int64), *(one[0] for one in kept)])
        weights = np.concatenate([np.empty(0), *(one[1] for one in kept)]) if self.weighted else None
        kept.clear()
        pairs, weights = _merged(keys, weights)
        rows, columns = pairs >> 31, (pairs & _COLUMN).astype(np.int32)
        loops = int((rows == columns).sum())
        before = np.empty(0, np.int64)
        if part < self.layout.blocks:
            first = part * self.layout.rows
            counts = np.bincount(rows - first, minlength=min(self.layout.rows, self.layout.n - first))
            before = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])[self.layout.hubs_of(part)]
            _save(self.folder / f"{part}.counts.npy", counts)
        _save(self.folder / f"{part}.columns.npy", columns)
        if weights is not None:
            _save(self.folder / f"{part}.weights.npy", weights)
        yield pa.RecordBatch.from_pydict(
            {
                "part": pa.array([part], pa.int32()),
                "entries": [len(columns)],
                "loops": [loops],
                "repeated": [len(keys) - len(columns)],
                "ones": [weights is None or bool((weights == 1).all())],
                "narrow": [weights is None or bool((weights == weights.astype(np.float32)).all())],
                "before": [before.tobytes()],
            }
        )


def _merged(
    keys: NDArray[np.int64], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return the distinct pairs of row and column, sorted, and their weights.

    Weights of one direction are added up; of two directions the larger sum counts.

    >>> _merged(np.array([3, 2, 2, 8]), np.array([4.0, 1.0, 2.0, 5.0]))
    (array([1, 4]), array([4., 5.]))
    """
    if weights is None:
        pairs = np.sort(keys) >> 1
        return pairs[_firsts(pairs)], None
    order = np.lexsort((weights, keys))  # by weight too, so that sums do not depend on the order of arrival
    keys, weights = keys[order], weights[order]
    starts = np.flatnonzero(_firsts(keys))
    if not len(starts):
        return keys, weights
    pairs, sums = keys[starts] >> 1, np.add.reduceat(weights, starts)
    starts = np.flatnonzero(_firsts(pairs))
    return pairs[starts], np.maximum.reduceat(sums, starts)


def _firsts(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of sorted values differ from the one before."""
    return np.concatenate([np.ones(min(1, len(values)), np.bool_), values[1:] != values[:-1]])


def _save(file: Path, array: NDArray[Any]) -> None:
    """Write an array under another name first: a task may run twice, and be killed."""
    import os
    import uuid

    new = file.with_name(f"{uuid.uuid4().hex}.npy")
    np.save(new, array)
    os.replace(new, file)


@final
@dataclass(frozen=True)
class PlaceEntries:
    """Put the entries of a part where they belong in the arrays of the graph."""

    layout: Layout
    folder: Path
    graph: Path
    weights: str | None  # their type
    entries: tuple[int, ...]  # of every part
    before: tuple[tuple[int, ...], ...]  # of every block: its entries before each of its hubs

    def __call__(self, part: int) -> Iterator[RecordBatch]:
        pa = arrow()

        columns = np.load(self.folder / f"{part}.columns.npy", mmap_mode="r")
        weights = None
        if self.weights is not None:
            weights = np.load(self.folder / f"{part}.weights.npy", mmap_mode="r")
        for begin, end, at in self._places(part):
            write_rows(self.graph / "indices.npy", at, columns[begin:end])
            if weights is not None:
                write_rows(self.graph / "weights.npy", at, weights[begin:end].astype(self.weights))
        if part < self.layout.blocks:
            counts = np.load(self.folder / f"{part}.counts.npy")
            counts[self.layout.hubs_of(part)] = self._hub_entries(part)
            start = self._start(part)
            write_rows(
                self.graph / "indptr.npy", part * self.layout.rows + 1, start + np.cumsum(counts, dtype=np.int64)
            )
        yield pa.RecordBatch.from_pydict({"part": pa.array([part], pa.int32())})

    def _start(self, block: int) -> int:
        """Return the entries of all blocks before one, those of their hubs included."""
        ends = sum(self.entries[:block])
        return ends + sum(
            sum(self._hub_entries(one)) for one in {hub // self.layout.rows for hub in self.layout.hubs} if one < block
        )

    def _hub_entries(self, block: int) -> list[int]:
        """Return the entries of every hub of a block."""
        found: list[int] = []
        for k, (hub, pieces) in enumerate(zip(self.layout.hubs, self.layout.pieces, strict=True)):
            if hub // self.layout.rows == block:
                first = self.layout.first_part(k)
                found.append(sum(self.entries[first : first + pieces]))
        return found

    def _places(self, part: int) -> list[tuple[int, int, int]]:
        """Return runs of entries of a part, and where each goes."""
        layout = self.layout
        if part >= layout.blocks:
            k = next(k for k in reversed(range(len(layout.hubs))) if layout.first_part(k) <= part)
            block = layout.hubs[k] // layout.rows
            place = int(np.searchsorted(layout.hubs_of(block), layout.hubs[k] - block * layout.rows))
            at = self._start(block) + self.before[block][place] + sum(self._hub_entries(block)[:place])
            return [(0, self.entries[part], at + sum(self.entries[layout.first_part(k) : part]))]
        cuts = [0, *self.before[part], self.entries[part]]
        hubs, start = [0, *self._hub_entries(part)], self._start(part)
        return [(cuts[k], cuts[k + 1], start + cuts[k] + sum(hubs[: k + 1])) for k in range(len(cuts) - 1)]


@final
@dataclass(frozen=True)
class SumBytes:
    """Sum up mebibytes of the arrays of a graph for their digests; see `pprop.graph.folder_arrays.Digest`."""

    graph: Path
    ranges: tuple[tuple[str, int, int], ...]  # the array, first and last byte after the header

    @classmethod
    def of(cls, graph: Path, sizes: dict[str, int]) -> SumBytes:
        """Cut arrays of so many bytes into ranges of whole mebibytes."""
        ranges = [
            (name, first, min(first + _READ, size - size % BLOCK))
            for name, size in sizes.items()
            for first in range(0, size - size % BLOCK, _READ)
        ]
        return cls(graph, tuple(ranges))

    def __call__(self, index: int) -> Iterator[RecordBatch]:
        pa = arrow()

        name, first, last = self.ranges[index]
        data = np.fromfile(self.graph / f"{name}.npy", np.uint8, last - first, offset=HEADER + first)
        yield pa.RecordBatch.from_pydict({"index": pa.array([index], pa.int32()), "sums": [Digest.sums(data)]})
