"""What a propagation needs before its first step: H by position, and the sums of rows and columns of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import FormatError, InputError
from pprop._validate import counted
from pprop.graph.folder import GraphFolder
from pprop.graph.transition import LEAST_DEGREE
from pprop.spark.arrays import new_array, write_rows
from pprop.spark.foreign import DataFrame, RecordBatch, SparkSession, arrow, partition, sql_functions
from pprop.spark.numbering import folder_positions
from pprop.spark.ranges import cut_at
from pprop.spark.session import one_thread, run_tasks
from pprop.spark.tables import Numbers, same_type
from pprop.spark.work import Work

_BLOCK = 2**22  # entries that are looked at together


def write_given(spark: SparkSession, work: Work, graph: GraphFolder, given: Numbers, function: str) -> None:
    """Write H, each row at the position of its id; refuse ids that are unknown, missing or there twice."""
    sql = sql_functions()

    values = [sql.col(name) for name in given.frame.columns[1:]]
    positions = folder_positions(spark, graph)
    if positions is None:
        if given.kind != "bigint":
            raise InputError(f"{function} needs ids that are positions, as the graph has no ids. Got text.")
        found = given.frame.withColumn("position", sql.when(sql.col("id").between(0, work.n - 1), sql.col("id")))
    else:
        same_type({"graph": dict(positions.dtypes)["id"], "predictions.id": given.kind}, function)
        found = given.frame.join(positions, "id", "left")
    chunk = sql.expr(f"CAST(coalesce(position, 0) DIV {work.chunk_rows} AS INT)").alias("chunk")
    parts = found.select("position", sql.col("id").cast("string").alias("id"), *values, chunk)
    new_array(work.path("given"), work.dtype, (work.n, work.c))
    spread = parts.repartitionById(work.chunks, "chunk").drop("chunk")
    schema = "unknown bigint, unknown_id string, repeated bigint, repeated_id string, missing bigint, first bigint"
    rows = spread.mapInArrow(WriteGiven(work), schema).collect()
    count = sum(row["unknown"] for row in rows)
    if count:
        example = next(row["unknown_id"] for row in rows if row["unknown"])
        raise InputError(f"Predictions have {counted(count, 'id')} that no node has, for example {example!r}.")
    count = sum(row["repeated"] for row in rows)
    if count:
        example = next(row["repeated_id"] for row in rows if row["repeated"])
        raise InputError(
            f"Predictions have {counted(count, 'row')} with an id that came before, for example {example!r}."
        )
    count = sum(row["missing"] for row in rows)
    if count:
        at = min(row["first"] for row in rows if row["missing"])
        ids: Any = graph.ids
        name = at if ids is None else ids[np.array([at])].tolist()[0]
        nodes = "1 node has" if count == 1 else f"{count:,} nodes have"
        raise InputError(f"{nodes} no prediction, for example {name!r}. Every node needs one row.")


@final
@dataclass(frozen=True)
class WriteGiven:
    """Put the rows of one chunk into their order, and write them."""

    work: Work

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        pa = arrow()
        first, last = self.work.rows_of(partition())
        rows = np.empty((last - first, self.work.c), self.work.dtype)
        seen = np.zeros(last - first, np.bool_)
        unknown = repeated = 0
        examples: dict[str, str | None] = {"unknown": None, "repeated": None}
        for batch in batches:
            known = batch.column(0).is_valid().to_numpy(zero_copy_only=False)
            if not known.all():
                unknown += int((~known).sum())
                examples["unknown"] = batch.column(1)[int(np.flatnonzero(~known)[0])].as_py()
                batch = batch.filter(pa.array(known))
            at = batch.column(0).to_numpy(zero_copy_only=False).astype(np.int64) - first
            firsts = np.unique(at, return_index=True)[1]
            again = np.concatenate([firsts[seen[at[firsts]]], np.delete(np.arange(len(at)), firsts)])
            if len(again):
                repeated += len(again)
                examples["repeated"] = batch.column(1)[int(again[0])].as_py()
            seen[at] = True
            for k in range(self.work.c):
                rows[at, k] = batch.column(2 + k).to_numpy()
        if not unknown + repeated and seen.all():
            write_rows(self.work.path("given"), first, rows)
        missing = np.flatnonzero(~seen)
        facts = {"unknown": [unknown], "unknown_id": pa.array([examples["unknown"]], pa.string())}
        facts |= {"repeated": [repeated], "repeated_id": pa.array([examples["repeated"]], pa.string())}
        yield pa.RecordBatch.from_pydict(
            {**facts, "missing": [len(missing)], "first": [first + int(missing[0]) if len(missing) else -1]}
        )


def write_sums(spark: SparkSession, work: Work) -> int:
    """Write the sums of rows and columns and the added self-loops; return the entries of the longest row or column."""
    across = work.directed and work.normalization != "row"
    for name, dtype in (("row_sums", np.float64), ("loops", np.uint8), ("column_sums", np.float64)):
        if name != "column_sums" or across:
            new_array(work.path(name), dtype, (work.n,))
    reports = run_tasks(spark, work.tasks, RowSums(work), "least double, most double, longest bigint, wrong bigint")
    found = reports.collect()
    if any(row["wrong"] >= 0 for row in found):
        node = max(row["wrong"] for row in found)
        raise FormatError(
            f"Entries of nodes from {node:,} on have columns out of range, or weights that are no weights. Pack it again."
        )
    if across:
        found += _write_column_sums(spark, work)
    least, most = min(row["least"] for row in found), max(row["most"] for row in found)
    if least < LEAST_DEGREE or most > 1 / LEAST_DEGREE:
        raise InputError(
            f"Sums of weights must be from 2^-64 to 2^64. Got {least:.3g} to {most:.3g} instead. Divide the weights by a constant."
        )
    return max(row["longest"] for row in found)


@final
@dataclass(frozen=True)
class RowSums:
    """Sum up rows: as many as have a share of all entries."""

    work: Work

    def __call__(self, index: int) -> Iterator[RecordBatch]:
        pa = arrow()

        from pprop.kernels.numba_cpu._jit import ROW_BLOCK
        from pprop.kernels.numba_cpu.degrees import scan_rows

        one_thread()
        work, indptr, indices = self.work, self.work.arrays["indptr"], self.work.arrays["indices"]
        first, end = _row_range(indptr, index, work.tasks)
        least, most, longest, bad = 1.0, 1.0, 0, -1
        while first < end:
            # as many rows as have about _BLOCK entries, and at least one
            window: NDArray[np.int64] = indptr[first : min(first + _BLOCK, end) + 1]
            stop = int(window.searchsorted(int(window[0]) + _BLOCK, side="right")) - 1
            last = min(first + max(stop, 1), end)
            pointers = indptr[first : last + 1] - indptr[first]
            part = slice(int(indptr[first]), int(indptr[last]))
            sums, loops = np.zeros(last - first), np.zeros(last - first, np.uint8)
            wrong = np.zeros(-(-(last - first) // ROW_BLOCK), np.uint8)
            weights = work.weights(part.start, part.stop).astype(np.float64)
            scan_rows(first, pointers, indices[part], weights, work.n, sums, loops, wrong)
            if not work.self_loops:  # a row without entries gets a loop in any case
                loops = (np.diff(pointers) > 0).astype(np.uint8)
            added = (1 - loops).astype(np.uint8)
            write_rows(work.path("row_sums"), first, sums)
            write_rows(work.path("loops"), first, added)
            full = sums + added
            least, most = min(least, float(full.min())), max(most, float(full.max()))
            longest, bad = max(longest, int(np.diff(pointers).max()) + 1), first if wrong.any() else bad
            first = last
        yield pa.RecordBatch.from_pydict(
            {
                "least": [least],
                "most": [most],
                "longest": pa.array([longest], pa.int64()),
                "wrong": pa.array([bad], pa.int64()),
            }
        )


def _row_range(indptr: NDArray[np.int64], task: int, tasks: int) -> tuple[int, int]:
    """Return the rows of a task; a row that a cut divides belongs to the task in which it begins."""
    work = int(indptr[-1]) + len(indptr) - 1
    cuts = [cut_at(indptr, work * k // tasks) for k in (task, task + 1)]
    n = len(indptr) - 1
    first, last = (cut.row + (cut.row < n and cut.entry > int(indptr[cut.row])) for cut in cuts)
    return first, last


def _write_column_sums(spark: SparkSession, work: Work) -> list[Any]:
    """Sum up columns: every task those of its entries, and then all of them for each chunk of columns."""
    pieces: DataFrame = run_tasks(spark, work.tasks, ColumnPieces(work), "chunk int, task int, at binary, sums binary")
    spread = pieces.repartitionById(work.chunks, "chunk").sortWithinPartitions("task")
    return spread.mapInArrow(ColumnSums(work), "least double, most double, longest bigint, wrong bigint").collect()


@final
@dataclass(frozen=True)
class ColumnPieces:
    """The sums of the columns that occur in the rows of a task, with the number of entries of each."""

    work: Work

    def __call__(self, index: int) -> Iterator[RecordBatch]:
        pa = arrow()

        work, indptr = self.work, self.work.arrays["indptr"]
        first, last = (int(indptr[row]) for row in _row_range(indptr, index, work.tasks))
        columns = work.arrays["indices"][first:last]
        at, place = np.unique(columns, return_inverse=True)
        weights = work.weights(first, last)
        sums = np.bincount(place, weights.astype(np.float64) if len(weights) else None, len(at)).astype(np.float64)
        counts = np.bincount(place, minlength=len(at)).astype(np.float64)
        borders = np.searchsorted(at, np.arange(work.chunks + 1) * work.chunk_rows)
        for chunk in np.flatnonzero(np.diff(borders)).tolist():
            some = slice(borders[chunk], borders[chunk + 1])
            both = np.stack([sums[some], counts[some]])
            kinds = pa.array([chunk], pa.int32()), pa.array([index], pa.int32())
            yield pa.RecordBatch.from_pydict(
                {
                    "chunk": kinds[0],
                    "task": kinds[1],
                    "at": [at[some].astype(np.int64).tobytes()],
                    "sums": [both.tobytes()],
                }
            )


@final
@dataclass(frozen=True)
class ColumnSums:
    """Add up the sums of the columns of a chunk, and write them."""

    work: Work

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        pa = arrow()
        first, last = self.work.rows_of(partition())
        sums = np.zeros((2, last - first))
        for batch in batches:
            for row in batch.to_pylist():
                at = np.frombuffer(row["at"], np.int64) - first
                sums[:, at] += np.frombuffer(row["sums"], np.float64).reshape(2, -1)
        write_rows(self.work.path("column_sums"), first, sums[0])
        full = sums[0] + self.work.vector("loops", np.uint8)[first:last]
        some = full[full > 0]  # an empty column meets no entry
        yield pa.RecordBatch.from_pydict(
            {
                "least": [float(some.min(initial=1.0))],
                "most": [float(some.max(initial=1.0))],
                "longest": pa.array([int(sums[1].max(initial=0)) + 1], pa.int64()),
                "wrong": pa.array([-1], pa.int64()),
            }
        )


@final
@dataclass(frozen=True)
class StartState:
    """Write y_0 = S_c H of one chunk."""

    work: Work

    def __call__(self, index: int) -> Iterator[RecordBatch]:
        pa = arrow()

        first, last = self.work.rows_of(index)
        columns = self.work.scales(first, last)[1]
        written = write_rows(self.work.path("state-0"), first, columns[:, None] * self.work.panel("given")[first:last])
        yield pa.RecordBatch.from_pydict({"written": [written]})
