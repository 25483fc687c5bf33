"""What the tasks of one power step do.

A task has a share of the entries. Rows that are whole in it are made and written at once; of a row that is cut, and of all
rows where the state has several stripes of columns, it gives the sums of its own entries as pieces. `Combine` adds pieces up:
of cut rows, of which a task has two at most, on the driver; of stripes in tasks. Both also say by how much the state has changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from pprop.kernels.numba_cpu.large_steps import TransitionRows, step_rows
from pprop.spark.arrays import write_rows
from pprop.spark.foreign import RecordBatch, arrow
from pprop.spark.ranges import Span, spans
from pprop.spark.session import one_thread
from pprop.spark.work import Work

# A row is a piece of a state (panel), or a report of a task (changed and size, the norms of every column).
PIECES = (
    "chunk int, place bigint, first bigint, rows int, panel binary, changed binary, size binary, written bigint, "
    "seconds double"
)


@final
class Step(NamedTuple):
    """One step: `number` from 0, whether it is the last, which makes Z, and whether to measure by how much it changes."""

    number: int
    last: bool
    measured: bool

    @property
    def source(self) -> str:
        """Name of the state that is read."""
        return f"state-{self.number}"

    @property
    def target(self) -> str:
        """Name of the state that is written."""
        return "values" if self.last else f"state-{self.number + 1}"


@final
class Norms:
    """Norms of the columns of z' - z and of z, in the norm in which T is at most 1; gathered from parts of the rows."""

    def __init__(self, work: Work) -> None:
        self._kind = work.normalization
        self.changed, self.size = np.zeros(work.c), np.zeros(work.c)

    def add(self, new: NDArray[Any], old: NDArray[Any], columns: NDArray[Any]) -> None:
        """Take some rows of y' and y with their S_c."""
        inverse = np.divide(1.0, columns, out=np.zeros(len(columns)), where=columns > 0)[:, None]
        for total, part in ((self.changed, (new - old) * inverse), (self.size, old * inverse)):
            merge(self._kind, total, _part(self._kind, part))


def _part(kind: str, rows: NDArray[Any]) -> NDArray[np.float64]:
    if kind == "row":
        return np.abs(rows).max(axis=0, initial=0.0)
    return np.square(rows).sum(axis=0) if kind == "sym" else np.abs(rows).sum(axis=0)


def merge(kind: str, total: NDArray[np.float64], part: NDArray[np.float64]) -> None:
    """Put the norms of two parts of the rows together, before any root is taken.

    >>> total = np.array([1.0])
    >>> merge("row", total, np.array([3.0])), total
    (None, array([3.]))
    """
    if kind == "row":
        np.maximum(total, part, out=total)
    else:
        total += part


@final
@dataclass(frozen=True)
class StepTask:
    """Make one share of a step, or of one stripe of it."""

    work: Work
    step: Step

    def __call__(self, index: int) -> Iterator[RecordBatch]:
        one_thread()
        begin, work, written = time.perf_counter(), self.work, 0
        stripe, share = divmod(index, work.tasks)
        indptr, state, given = work.arrays["indptr"], work.panel(self.step.source), work.panel("given")
        norms = Norms(work)
        for place, span in enumerate(spans(indptr, share, work.tasks, work.chunk_rows)):
            if work.stripes > 1 or not span.whole:
                yield from self._pieces(index, place, span, state, stripe)
                continue
            here, out = state[span.first : span.last], np.empty((span.last - span.first, work.c), work.dtype)
            T = work.transition(span, here)
            step_rows(T, work.alpha, self.step.last, state, given[span.first : span.last], out)
            written += write_rows(work.path(self.step.target), span.first, out)
            if self.step.measured:
                norms.add(out, here, T.columns)
        yield report(norms, written, time.perf_counter() - begin)

    def _pieces(self, index: int, place: int, span: Span, state: NDArray[Any], stripe: int) -> Iterator[RecordBatch]:
        """Give the sums of the entries of a span with columns of one stripe, chunk by chunk."""
        work = self.work
        low, high = (work.n * k // work.stripes for k in (stripe, stripe + 1))
        pointers: NDArray[np.int64] = (
            np.clip(work.arrays["indptr"][span.first : span.last + 1], span.begin, span.end) - span.begin
        )
        indices, weights = work.arrays["indices"][span.begin : span.end], work.weights(span.begin, span.end)
        if work.stripes > 1:
            inside = (indices >= low) & (indices < high)
            pointers = np.concatenate([np.zeros(1, np.int64), np.cumsum(inside, dtype=np.int64)])[pointers]
            indices, weights = indices[inside] - np.int32(low), weights[inside] if len(weights) else weights
        rows = span.last - span.first
        ones, out = np.ones(rows, work.dtype), np.empty((rows, work.c), work.dtype)
        T = TransitionRows.made(pointers, indices, weights, ones, ones)
        step_rows(T, 0.0, True, state[low:high], np.zeros((rows, work.c), work.dtype), out)
        first = span.first
        while first < span.last:
            chunk = first // work.chunk_rows
            last = min(work.rows_of(chunk)[1], span.last)
            panel = out[first - span.first : last - span.first]
            # in the order of stripes, tasks and spans, whatever the order in which they arrive
            yield _batch(
                chunk=chunk, place=index * 2**32 + place, first=first, rows=last - first, panel=panel.tobytes()
            )
            first = last


@final
@dataclass(frozen=True)
class Combine:
    """Add up pieces, which come sorted by chunk and place, and make the rows that they belong to."""

    work: Work
    step: Step

    def __call__(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Do it in a task: rows that are reports already are passed on."""
        one_thread()
        begin, reports = time.perf_counter(), list[dict[str, Any]]()
        norms, written = self.add((row for batch in batches for row in batch.to_pylist()), reports)
        for one in reports:
            yield _batch(**one)
        yield report(norms, written, time.perf_counter() - begin)

    def add(self, rows: Iterable[Any], reports: list[Any]) -> tuple[Norms, int]:
        """Write what the pieces add up to; return its norms and bytes. Reports among the rows go into a list."""
        work, norms, written = self.work, Norms(self.work), 0
        region = 0, 0  # the rows that are being added up: a chunk, or one row that is cut
        sums, touched = np.empty((0, work.c), work.dtype), np.empty(0, np.bool_)
        for row in rows:
            if row["panel"] is None:
                reports.append(row)
                continue
            first, last = row["first"], row["first"] + row["rows"]
            own = work.rows_of(row["chunk"]) if work.stripes > 1 else (first, last)
            if own != region:
                written += self._finish(region[0], sums, touched, norms)
                region, size = own, own[1] - own[0]
                sums, touched = np.zeros((size, work.c), work.dtype), np.zeros(size, np.bool_)
            at = slice(first - region[0], last - region[0])
            sums[at] += np.frombuffer(row["panel"], work.dtype).reshape(row["rows"], work.c)
            touched[at] = True
        return norms, written + self._finish(region[0], sums, touched, norms)

    def _finish(self, start: int, sums: NDArray[Any], touched: NDArray[np.bool_], norms: Norms) -> int:
        """Write the rows from `start` on that have pieces; return the bytes."""
        work, written = self.work, 0
        borders = np.flatnonzero(np.diff(np.concatenate([[False], touched, [False]]).astype(np.int8)))
        for begin, end in borders.reshape(-1, 2).tolist():
            first, last = start + begin, start + end
            here, own = work.panel(self.step.source)[first:last], work.panel("given")[first:last]
            rows, columns, loops = work.scales(first, last)
            share = np.ones(len(columns), work.dtype) if self.step.last else columns
            total = sums[begin:end] + loops[:, None] * here
            alpha = np.dtype(work.dtype).type(work.alpha)
            out = ((1 - alpha) * rows * share)[:, None] * total + (alpha * share)[:, None] * own
            written += write_rows(work.path(self.step.target), first, out.astype(work.dtype, copy=False))
            if self.step.measured:
                norms.add(out, here, columns)
        return written


def report(norms: Norms, written: int, seconds: float) -> RecordBatch:
    """Return what a task says when it has ended."""
    facts = {"changed": norms.changed.tobytes(), "size": norms.size.tobytes()}
    return _batch(chunk=-1, written=written, seconds=seconds, **facts)


def _batch(**values: Any) -> RecordBatch:
    """Return one row of the columns of `PIECES`."""
    pa = arrow()

    types = {
        "chunk": pa.int32(),
        "place": pa.int64(),
        "first": pa.int64(),
        "rows": pa.int32(),
        "panel": pa.binary(),
        "changed": pa.binary(),
        "size": pa.binary(),
        "written": pa.int64(),
        "seconds": pa.float64(),
    }
    return pa.RecordBatch.from_pydict({name: pa.array([values.get(name)], kind) for name, kind in types.items()})
