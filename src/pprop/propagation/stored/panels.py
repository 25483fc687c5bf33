"""The steps of every panel of columns: blocks read ahead, kept where a plan says so, summed, and written when done."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import IO, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import CapacityError, InputError
from pprop._process import check_interrupt
from pprop.kernels.arrays import all_finite
from pprop.kernels.numba_cpu.large_steps import TransitionRows, step_rows
from pprop.kernels.numba_cpu.team import Arena
from pprop.propagation.stored.checkpoint import Checkpoint
from pprop.propagation.stored.file_rows import Buffer, StoredRows, ahead
from pprop.propagation.stored.graph_rows import DegreeScales, GraphRows, StoredEntries, degree_scales, largest_block
from pprop.propagation.stored.plan import StepsPlan

Values = NDArray[np.float32]


@final
class StepsProgress(NamedTuple):
    """How far the steps have come: a part of the work by its name, and which share of it is done."""

    stage: str
    share: float


def block_bytes(rows: GraphRows, given: StoredRows, starts: Sequence[int]) -> int:
    """Return the bytes of the buffers: two blocks of entries and predictions.

    >>> import scipy.sparse as sp
    >>> from pprop import Graph
    >>> rows = GraphRows(Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]])))
    >>> block_bytes(rows, StoredRows(np.ones((2, 3), np.float32), "H"), [0, 2])
    96
    """
    most_rows, most_entries = largest_block(rows, starts)
    read = given.row_bytes if given.in_file else 0
    return 2 * (most_rows * (read + 4 * given.array.shape[1]) + 8 * (most_rows + 1) + most_entries * rows.entry_bytes)


@final
class Reader:
    """Reads blocks of entries and of the columns `begin` to `end` of H, and keeps the first of them."""

    def __init__(self, rows: GraphRows, given: StoredRows, starts: Sequence[int], plan: StepsPlan) -> None:
        self._rows, self._given, self._plan = rows, given, plan
        self.spans = list(pairwise(starts))
        most = largest_block(rows, starts)
        self._buffers = [rows.buffers(*most) for _ in range(2)]
        self._raw = [Buffer(most[0] * given.row_bytes if given.in_file else 0) for _ in range(2)]
        self._panels = [np.empty(most[0] * max(plan.panels), np.float32) for _ in range(2)]
        ends = rows.indptr.array[np.asarray(starts[1:])]
        self._keep_entries = int(np.searchsorted(ends, plan.kept_entries, side="right")) if plan.kept_entries else 0
        self._keep_own = int(np.searchsorted(starts[1:], plan.kept_rows, side="right"))
        self._entries: dict[int, StoredEntries] = {}
        self.choose(0, given.array.shape[1])

    def choose(self, begin: int, end: int) -> None:
        """Read these columns of H from now on."""
        self._begin, self._end = begin, end
        self._own: dict[int, Values] = {}

    def entries(self, k: int, slot: int) -> StoredEntries:
        """Return the entries of block k."""
        if k in self._entries:
            return self._entries[k]
        found = self._rows.read(*self.spans[k], self._buffers[slot])
        if k < self._keep_entries:
            found = found._replace(indices=found.indices.copy(), weights=found.weights.copy())
            self._entries[k] = found
        return found

    def own(self, k: int, slot: int) -> Values:
        """Return the columns of H in block k, in float32."""
        if k in self._own:
            return self._own[k]
        first, last = self.spans[k]
        raw = self._given.read(first, last, self._raw[slot])
        width = self._end - self._begin
        if raw.dtype == np.float32 and width == raw.shape[1] and raw.flags.c_contiguous and raw.flags.writeable:
            found = raw
        else:
            found = self._panels[slot][: (last - first) * width].reshape(last - first, width)
            with np.errstate(over="ignore"):  # what becomes infinite is refused
                np.copyto(found, raw[:, self._begin : self._end], casting="same_kind")
        if k < self._keep_own:
            found = self._own[k] = found.copy()
        return found


class PanelSteps:
    """K power steps over a stored graph, one panel of columns after the other; see `propagate_folder`."""

    apart = False  # whether also an only panel is written to the result, and is not the result itself

    def __init__(
        self,
        rows: GraphRows,
        given: StoredRows,
        starts: Sequence[int],
        plan: StepsPlan,
        alpha: float,
        told: Callable[[StepsProgress], object],
        checkpoint: Checkpoint | None,
    ) -> None:
        self._rows, self._given, self._starts, self._plan = rows, given, starts, plan
        self._alpha, self._told, self._checkpoint = alpha, told, checkpoint

    def to_memory(self, normalization: str, self_loops: bool) -> Values:
        """Return Z."""
        n, c = self._given.array.shape
        several = self.apart or len(self._plan.panels) > 1
        result = np.empty((n if several else 0, c), np.float32)

        def put(rows: Values, first: int, column: int) -> None:
            result[first : first + len(rows), column : column + rows.shape[1]] = rows

        state = self._run(normalization, self_loops, put if several else None)
        return result if several else state

    def to_file(self, normalization: str, self_loops: bool, stream: IO[bytes]) -> None:
        """Write Z as an .npy file: in rows, or in columns where there are several panels."""
        n, c = self._given.array.shape
        several = len(self._plan.panels) > 1
        header = {"descr": "<f4", "fortran_order": several, "shape": (n, c)}
        np.lib.format.write_array_header_1_0(stream, header)  # pyright: ignore[reportArgumentType]
        stream.flush()
        file, begin = stream.fileno(), stream.tell()
        self._claim(file, begin, 4 * n * c)

        def put(rows: Values, first: int, column: int) -> None:
            if not several:
                _write(file, rows, begin + 4 * first * c)
                return
            for k, values in enumerate(np.ascontiguousarray(rows.T)):
                _write(file, values, begin + 4 * ((column + k) * n + first))

        self._run(normalization, self_loops, put)

    def _claim(self, file: int, begin: int, size: int) -> None:
        """Take the room of the result before the work begins, so that a full disk is known now."""
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(file, begin, size)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):  # others cannot take room beforehand
                return
            raise CapacityError(
                f"The disk has no room for the result of {size / 1e9:.1f} GB ({error.strerror}). Free some, or give a path "
                "on another disk."
            ) from error

    def _run(self, normalization: str, self_loops: bool, put: Callable[[Values, int, int], None] | None) -> Values:
        """Make all steps and return the last state of an only panel; `put` gets finished rows, in a thread of its own."""
        n, plan, checkpoint = self._rows.n_nodes, self._plan, self._checkpoint
        scales = self._scales(normalization, self_loops)
        memory = [Arena().empty((n * max(plan.panels),), np.float32) for _ in range(2)]  # apart: one is the result
        reader, begin = Reader(self._rows, self._given, self._starts, plan), 0
        with ThreadPoolExecutor(1, "pprop-read") as reading, ThreadPoolExecutor(1, "pprop-write") as writing:
            for number, width in enumerate(plan.panels):
                reader.choose(begin, begin + width)
                states = [one[: n * width].reshape(n, width) for one in memory]
                name = f"panel {number + 1} of {len(plan.panels)}, " if len(plan.panels) > 1 else ""
                made = 0 if checkpoint is None else checkpoint.step
                if made and checkpoint is not None:
                    checkpoint.load(states[made % 2])
                else:
                    self._start(reader, reading, scales, states[0], begin)
                written: list[Future[None]] = []
                for first, last, state in self._steps(reader, (reading, writing), scales, states, made, name):
                    self._check_result(state[first:last])
                    if put is not None:
                        written.append(writing.submit(put, state[first:last], first, begin))
                for one in written:
                    one.result()
                begin += width
        return memory[plan.sizes.steps % 2].reshape(n, -1)

    def _scales(self, normalization: str, self_loops: bool) -> DegreeScales:
        def told(share: float) -> None:
            self._told(StepsProgress("degrees", share))

        return degree_scales(self._rows, self._starts, normalization, self_loops, told)

    def _start(
        self, reader: Reader, pool: ThreadPoolExecutor, scales: DegreeScales, state: Values, column: int
    ) -> None:
        """Fill the first state, y = S_c h; without steps, with h itself."""
        for k, own in enumerate(ahead(reader.own, range(len(reader.spans)), pool)):
            first, last = reader.spans[k]
            self._check_given(own, first, column)
            _, factor = scales.of(first, last)
            if self._plan.sizes.steps:
                np.multiply(factor[:, None], own, out=state[first:last])
            else:
                state[first:last] = own
            check_interrupt()

    def _steps(
        self,
        reader: Reader,
        pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor],
        scales: DegreeScales,
        states: list[Values],
        made: int,
        name: str,
    ) -> Generator[tuple[int, int, Values]]:
        """Make the steps of a panel from `made` on; yield (first row, last row, state) of the blocks of the result."""
        steps, blocks, n = self._plan.sizes.steps, range(len(reader.spans)), self._rows.n_nodes
        if steps == 0:
            yield from ((first, last, states[0]) for first, last in reader.spans)
        tasks = [(step, k) for step in range(made, steps) for k in blocks]
        saved: Future[None] | None = None

        def read(task: tuple[int, int], slot: int) -> tuple[int, StoredEntries, Values]:
            step, k = task
            return step, reader.entries(k, slot), reader.own(k, slot)

        for step, entries, own in ahead(read, tasks, pools[0]):
            source, out, (first, last) = states[step % 2], states[1 - step % 2], entries[:2]
            rows = TransitionRows.made(
                *entries[2:], *scales.of(first, last), scales.loops[first:last], source[first:last]
            )
            step_rows(rows, self._alpha, step == steps - 1, source, own, out[first:last])
            check_interrupt()
            self._told(StepsProgress(f"{name}step {step + 1} of {steps}", last / n))
            if step == steps - 1:
                yield first, last, out
            elif last == n and self._checkpoint is not None:
                if saved is not None:  # the next step but one writes over what is being saved
                    saved.result()
                saved = pools[1].submit(self._checkpoint.save, step + 1, out)
        if saved is not None:
            saved.result()

    def _check_given(self, own: Values, first: int, column: int) -> None:
        if not all_finite(own):
            row, at = np.argwhere(~np.isfinite(own))[0]
            raise InputError(
                "The 'predictions' parameter of propagate_folder must be free of NaN, infinity and numbers beyond float32. "
                f"Got {own[row, at]} at node {first + row:,}, column {column + at} instead."
            )

    def _check_result(self, rows: Values) -> None:
        if not all_finite(rows):
            raise InputError(
                "The 'predictions' parameter of propagate_folder must be small enough for Z to be finite in float32. "
                "Divide the predictions by a constant."
            )


def _write(file: int, values: Values, offset: int) -> None:
    """Write an array at an offset of a file."""
    view, done = np.ascontiguousarray(values).data.cast("B"), 0
    while done < len(view):
        done += os.pwrite(file, view[done:], offset + done)
