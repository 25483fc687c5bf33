"""Edge lists to the CSR arrays of a graph folder, in two passes: entries to buckets, and buckets to arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import GraphError
from pprop._validate import counted, describe, reject
from pprop.graph.building.ahead import THREADS, worked_ahead
from pprop.graph.building.entry_buckets import Buckets, SortedRows, sorted_entries
from pprop.graph.building.id_keys import id_columns
from pprop.graph.building.node_numbers import ByPosition, Lookup
from pprop.graph.building.plan import Plan
from pprop.graph.building.workplace import Workplace
from pprop.graph.folder_arrays import ArrayWriter, blocks, map_array
from pprop.graph.tables.build import TableColumns, caution_weights, caution_zeros, edge_weights
from pprop.graph.tables.streams import ReadPosition, TableStream
from pprop.graph.tables.table import DataTable

WEIGHTS = "weights64.npy"
# Bytes written between two records of what is done: of scattered entries, and of arrays, for which buckets are removed.
SCATTERED, SORTED = 2**32, 2**30


@final
@dataclass(frozen=True)
class MatrixBuild:
    """What the matrix of a graph folder is built of.

    Attributes
    ----------
    edges, columns
        The edge lists, and what their columns mean.
    lookup
        Positions of nodes by id.
    plan, workplace
        Sizes, and where the files are.
    """

    edges: TableStream
    columns: TableColumns
    lookup: Lookup
    plan: Plan
    workplace: Workplace

    @property
    def _weighted(self) -> bool:
        return self.columns.weight is not None

    def scatter(self, tick: Callable[[int], None]) -> None:
        """Write the entries of all edges to buckets; goes on where a record says."""
        known: dict[str, Any] = self.workplace.state.get("scatter", {})
        count = known.get("buckets", self.plan.buckets)
        buckets = Buckets(self.workplace.path, self.lookup.n_nodes, count, weighted=self._weighted)
        place = ReadPosition(*known["place"]) if known else None
        done = {"rows": known.get("rows", 0), "dropped": known.get("dropped", 0), "zeros": known.get("zeros", 0)}
        tick(done["rows"])
        written = 0
        buckets.open(known.get("sizes"))
        try:
            for table, after, (entries, cuts, lost, zeros) in self._worked(place):
                buckets.write(entries, cuts)
                written += entries.nbytes
                done["rows"] += table.n_rows
                done["dropped"] += lost
                done["zeros"] += zeros
                if after is not None and written >= SCATTERED:
                    where = [after.file, after.part, after.row]
                    self.workplace.save(scatter={**done, "place": where, "sizes": buckets.sync(), "buckets": count})
                    written = 0
                tick(table.n_rows)
            sizes = buckets.sync()
        finally:
            buckets.close()
        end = [len(self.edges.files), 0, 0]
        self.workplace.save(scatter={**done, "place": end, "sizes": sizes, "buckets": count}, scattered=True)

    def _worked(self, place: ReadPosition | None) -> Iterator[tuple[DataTable, ReadPosition | None, Any]]:
        """Give tables of edges in their order, each with its entries, which threads have sorted."""
        tables = self.edges.tables(self.plan.rows, place)
        for (table, after), made in worked_ahead(tables, lambda one: self._entries(one[0])):
            yield table, after, made

    def _entries(self, table: DataTable) -> tuple[NDArray[Any], NDArray[np.int64], int, int]:
        """Return the sorted entries of some edges, where each bucket's begin, and how many edges were left out."""
        columns = self.columns
        ends = {"source": columns.source, "target": columns.target}
        ids = id_columns(table, ends, text=self.lookup.seed is not None)
        source, target = self.lookup.positions(ids)
        weights = None if columns.weight is None else edge_weights(table, columns.weight)
        lost = 0
        if len(source) and min(int(source.min()), int(target.min())) < 0:
            unknown = (source < 0) | (target < 0)
            lost = int(unknown.sum())
            if columns.unknown_nodes != "drop":
                self._refuse(table, ids, source, unknown)
            source, target = source[~unknown], target[~unknown]
            weights = None if weights is None else weights[~unknown]
        zeros = 0 if weights is None else int(np.count_nonzero(weights == 0))
        entries = sorted_entries(source, target, weights, directed=columns.directed)
        count = self.workplace.state.get("scatter", {}).get("buckets", self.plan.buckets)
        buckets = Buckets(self.workplace.path, self.lookup.n_nodes, count, weighted=self._weighted)
        return entries, buckets.cuts(entries), lost, zeros

    def _refuse(self, table: DataTable, ids: list[Any], source: NDArray[Any], unknown: NDArray[np.bool_]) -> None:
        row = int(np.argmax(unknown))
        cell = ids[0 if source[row] < 0 else 1][row]
        key = str(cell.as_py() if hasattr(cell, "as_py") else cell)
        if isinstance(self.lookup, ByPosition):
            expected = (
                f"an edge list of positions from 0 to {self.lookup.n_nodes - 1:,}, as nodes={self.lookup.n_nodes} says"
            )
            table.complain(expected, describe(key), row, remedy="Pass unknown_nodes='drop' to leave such edges out.")
        self.columns.refuse_unknown(table, "the node table", key, row, "", int(unknown.sum()))

    def caution(self) -> None:
        """Warn of what was left out."""
        found = self.workplace.state["scatter"]
        title = self.edges.title
        if found["dropped"]:
            lost = counted(found["dropped"], "edge")
            warnings.warn(f"Left out {lost} of {title} to nodes that the node table does not have.", stacklevel=4)
        caution_zeros(found["zeros"], title, stacklevel=4)
        if self.columns.weight is None:
            table, _ = next(self.edges.tables(1))
            caution_weights(table, stacklevel=4)

    def sort(self, tick: Callable[[int], None]) -> None:
        """Write the arrays from the buckets, in order; goes on where a record says."""
        count = self.workplace.state["scatter"]["buckets"]
        buckets = Buckets(self.workplace.path, self.lookup.n_nodes, count, weighted=self._weighted)
        known: dict[str, Any] = self.workplace.state.get("sort", {})
        arrays = _Arrays(self.workplace, known, weighted=self._weighted)
        first = known.get("bucket", 0)
        tick(first)
        try:
            for bucket, made in worked_ahead(range(first, buckets.count), lambda one: self._sorted(buckets, one)):
                arrays.add(buckets.divided(bucket, self.plan.most_sorted) if made is None else iter([made]), self.edges)
                if arrays.waiting >= SORTED or bucket == buckets.count - 1:
                    self.workplace.save(sort={"bucket": bucket + 1, **arrays.sync()})
                    for old in range(first, bucket + 1):
                        buckets.file(old).unlink(missing_ok=True)
                    first = bucket + 1
                tick(1)
        except BaseException:
            arrays.abandon()
            raise
        self.workplace.save(matrix=arrays.close(), sorted=True)

    def weights(self) -> dict[str, Any]:
        """Put the weights in their place, in float32 where that loses nothing; return what a manifest says of them."""
        found: dict[str, Any] = self.workplace.state["matrix"]
        about, file = found["weights"], self.workplace.path / WEIGHTS
        if about is None or found["ones"]:
            return {}
        target = self.workplace.result / "weights.npy"
        if not found["narrow"]:
            if file.exists():
                file.replace(target)
            return {"weights": about}
        held = map_array(file, about["dtype"], about["shape"])
        with ArrayWriter(target, np.float32) as writer:
            for rows in blocks(len(held), 8):
                writer.write(held[rows])
            return {"weights": writer.close()}

    def _sorted(self, buckets: Buckets, bucket: int) -> SortedRows | None:
        """Return a bucket sorted; None for one that does not fit into memory as a whole."""
        most = self.plan.most_sorted // (THREADS + 1)
        return None if buckets.length(bucket) > most else buckets.sorted(bucket)


@final
class _Arrays:
    """The arrays of the matrix, as far as they are written."""

    def __init__(self, workplace: Workplace, known: dict[str, Any], *, weighted: bool) -> None:
        self._folder = workplace.result
        entries = known.get("entries")
        rows = known.get("rows")
        self._indptr = ArrayWriter(self._folder / "indptr.npy", np.int64, rows=None if rows is None else rows + 1)
        self._indices = ArrayWriter(self._folder / "indices.npy", np.int32, rows=entries)
        self._weights = ArrayWriter(workplace.path / WEIGHTS, np.float64, rows=entries) if weighted else None
        if rows is None:
            self._indptr.write(np.zeros(1, dtype=np.int64))
        self._loops, self._ones, self._narrow = (
            known.get("loops", 0),
            known.get("ones", True),
            known.get("narrow", True),
        )
        self.waiting = 0

    def add(self, parts: Iterator[SortedRows], edges: TableStream) -> None:
        """Add the rows of a bucket, which may come in several parts."""
        base = self._indices.rows
        counts: NDArray[np.int64] | None = None
        for part in parts:
            counts = part.counts if counts is None else counts + part.counts
            self._indices.write(part.columns)
            self._loops += part.loops
            self.waiting += part.columns.nbytes
            if self._weights is not None and part.weights is not None:
                if not np.isfinite(part.weights).all():
                    got = f"weights in {edges.title} whose sum is beyond the largest float"
                    reject(edges.parameter, edges.function, "an edge list of finite weights", got, error=GraphError)
                self._ones = self._ones and bool((part.weights == 1).all())
                with np.errstate(over="ignore"):
                    self._narrow = self._narrow and bool((part.weights.astype(np.float32) == part.weights).all())
                self._weights.write(part.weights)
                self.waiting += part.weights.nbytes
        assert counts is not None
        self._indptr.write(base + np.cumsum(counts))

    def sync(self) -> dict[str, Any]:
        """Bring everything to the disk; return how far it is."""
        for writer in (self._indptr, self._indices, self._weights):
            if writer is not None:
                writer.sync()
        self.waiting = 0
        done = {"entries": self._indices.rows, "rows": self._indptr.rows - 1, "loops": self._loops}
        return {**done, "ones": self._ones, "narrow": self._narrow}

    def close(self) -> dict[str, Any]:
        """Complete the arrays."""
        arrays = {"indptr": self._indptr.close(), "indices": self._indices.close()}
        weights = None if self._weights is None else self._weights.close()
        about = {"loops": self._loops, "ones": self._ones, "narrow": self._narrow}
        return {"arrays": arrays, "weights": weights, **about}

    def abandon(self) -> None:
        """Close the files as they are."""
        for writer in (self._indptr, self._indices, self._weights):
            if writer is not None:
                writer.abandon()
