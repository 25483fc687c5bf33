"""Power steps on a graph whose states do not fit into the cache, without dropout.

A step is bound by the cache misses of its gathers, one row of the state per entry. So rows are prefetched `AHEAD`
entries before they are summed, which keeps about ten misses in flight where a processor by itself finds two or three;
a row of sums stays in registers; states lie on cache-line borders and on large pages; and nothing is stored per entry
but the column.

Where a state takes more than 2 GB, the entries of groups of rows are sorted first: see `column_ranges`.

Work is shared by entries. Row i belongs to the window of `PIECE` entries in which it starts; a row of more than `PIECE`
entries is cut into pieces of that length, whose sums are added in order. Threads take windows and pieces as they become
free; since neither depends on the number of threads, nor do the bits of the result.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from pprop.graph import Transition
from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel, part, serial, usable_threads
from pprop.kernels.numba_cpu.column_ranges import AHEAD, add_sorted, column_ranges, sort_group
from pprop.kernels.numba_cpu.sparse import NumbaSteps
from pprop.kernels.numba_cpu.team import Arena, fetch_add
from pprop.kernels.numba_cpu.vectors import add, address, count, fma, item, lanes, load, prefetch, store, times, zeros
from pprop.kernels.random_bits import Draw

# Entries in one task. Part of the definition of the sums of longer rows, so it never depends on the machine.
PIECE = 8192
_LINE = 64  # bytes
_REGISTERS = 256  # bytes of a row that are summed at once: 16 of NEON's 32 registers, 8 of AVX2's 16


@part
def _sum(begin, end, edges, source, stride, column, shift, width, twice, line):
    """Return the sums of weight times row of the state over the entries begin to end, of two groups of columns.

    The second group begins `shift` columns after the first, which it overlaps, or is left out.
    """
    indices, weights, weighted, past = edges
    first = second = zeros(source, width)
    for e in range(begin, end):
        soon = np.int64(item(indices, min(e + AHEAD, past - 1))) * stride + column
        at = np.int64(item(indices, e)) * stride + column
        for q in range(0, count(width), count(line)):
            prefetch(source, soon + q)
            if count(twice) == 2:
                prefetch(source, soon + shift + count(width) - 1 - q)
        weight = item(weights, e) if weighted else 1.0
        first = fma(weight, load(source, at, width), first)
        if count(twice) == 2:
            second = fma(weight, load(source, at + shift, width), second)
    return first, second


@part
def _scales(T, alpha):
    """Return S_r, S_c, alpha and 1 - alpha; addresses, since a reference is counted where an array is read."""
    return address(T.rows), address(T.columns), alpha[0], alpha.dtype.type(1) - alpha[0]


@part
def _finish(i, first, second, last, scales, loops, own, stride, column, shift, out, width, twice, looped):
    """Write row i of the new state, given its sums over the old one."""
    rows, columns, alpha, stay = scales
    at = i * stride + column
    if count(looped) == 2:
        added, here = loops
        first = fma(item(added, i), load(here, at, width), first)
        if count(twice) == 2:
            second = fma(item(added, i), load(here, at + shift, width), second)
    if last:
        arrived, share = stay * item(rows, i), alpha
    else:
        arrived, share = stay * item(rows, i) * item(columns, i), alpha * item(columns, i)
    store(out, at, fma(arrived, first, times(share, load(own, at, width))))
    if count(twice) == 2:
        store(out, at + shift, fma(arrived, second, times(share, load(own, at + shift, width))))


@part
def _piece(task, T, partial, edges, source, stride, column, shift, width, twice, line):
    """Sum one piece of a long row."""
    k = np.searchsorted(T.pieces, task + 1) - 1
    i = T.long_rows[k]
    begin = T.indptr[i] + (task - T.pieces[k]) * PIECE
    end = min(begin + PIECE, T.indptr[i + 1])
    first, second = _sum(begin, end, edges, source, stride, column, shift, width, twice, line)
    store(partial, 2 * task * count(width), first)
    store(partial, (2 * task + 1) * count(width), second)


@serial
def _work(counter, T, partial, alpha, last, source, own, stride, column, shift, out, width, twice, line, looped):
    """Take pieces of long rows and windows until there are none left."""
    source, own, out, partial = address(source), address(own), address(out), address(partial)
    loops = address(T.loops), address(T.here)
    indptr, scales, pieces, windows = address(T.indptr), _scales(T, alpha), T.pieces[-1], len(T.indices) // PIECE + 1
    edges = address(T.indices), address(T.weights), len(T.weights) > 0, len(T.indices)
    task = fetch_add(counter, 0, 1)
    while task < pieces + windows:
        if task < pieces:
            _piece(task, T, partial, edges, source, stride, column, shift, width, twice, line)
        else:
            window = (task - pieces) * PIECE
            starts = T.indptr[:-1]
            for i in range(np.searchsorted(starts, window), np.searchsorted(starts, window + PIECE)):
                begin, end = item(indptr, i), item(indptr, i + 1)
                if end - begin <= PIECE:
                    first, second = _sum(begin, end, edges, source, stride, column, shift, width, twice, line)
                    _finish(
                        i, first, second, last, scales, loops, own, stride, column, shift, out, width, twice, looped
                    )
        task = fetch_add(counter, 0, 1)


@serial
def _far_work(
    counter, T, groups, bits, fill, held, partial, alpha, last, source, own, stride, column, shift, out, width, twice,
    line, looped,
):  # fmt: skip
    """Take pieces of long rows and groups of rows until there are none left; the sums of a group are in `out`."""
    source, own, out, partial = address(source), address(own), address(out), address(partial)
    loops, scales, pieces = (address(T.loops), address(T.here)), _scales(T, alpha), T.pieces[-1]
    edges = address(T.indices), address(T.weights), len(T.weights) > 0, len(T.indices)
    task = fetch_add(counter, 0, 1)
    while task < pieces + len(groups) - 1:
        if task < pieces:
            _piece(task, T, partial, edges, source, stride, column, shift, width, twice, line)
        else:
            low, high = groups[task - pieces], groups[task - pieces + 1]
            taken = sort_group(low, high, PIECE, T, bits, fill, held)
            none = zeros(source, width)
            for i in range(low, high):
                store(out, i * stride + column, none)
                store(out, i * stride + column + shift, none)
            sums = out, low * stride + column
            add_sorted(taken, held, source, stride, column, shift, sums, width, twice, line)
            for i in range(low, high):
                at = i * stride + column
                first, second = load(out, at, width), load(out, at + shift, width)
                _finish(i, first, second, last, scales, loops, own, stride, column, shift, out, width, twice, looped)
        task = fetch_add(counter, 0, 1)


@serial
def _combine(T, partial, alpha, last, own, stride, column, shift, out, width, twice, looped):
    """Add the pieces of every long row in order, and make the row."""
    sums, own, out, scales = address(partial), address(own), address(out), _scales(T, alpha)
    loops = address(T.loops), address(T.here)
    for k in range(len(T.long_rows)):
        first = second = zeros(sums, width)
        for p in range(T.pieces[k], T.pieces[k + 1]):
            first = add(first, load(sums, 2 * p * count(width), width))
            second = add(second, load(sums, (2 * p + 1) * count(width), width))
        i = T.long_rows[k]
        _finish(i, first, second, last, scales, loops, own, stride, column, shift, out, width, twice, looped)


@kernel
def _step(
    threads, counter, T, partial, alpha, last, source, own, stride, column, shift, out, width, twice, line, looped
):
    """out = (1 - alpha) S_r f A source + alpha f own with f = S_c, or 1 in the last step; some columns of it."""
    counter[0] = 0
    for _ in prange(threads):
        _work(counter, T, partial, alpha, last, source, own, stride, column, shift, out, width, twice, line, looped)
    _combine(T, partial, alpha, last, own, stride, column, shift, out, width, twice, looped)


@kernel
def _far_step(
    counter, T, groups, bits, fill, held, partial, alpha, last, source, own, stride, column, shift, out, width, twice,
    line, looped,
):  # fmt: skip
    """The same, the entries of each group of rows sorted by ranges of columns."""
    entries, weights = held
    counter[0] = 0
    for k in prange(len(fill)):
        _far_work(
            counter, T, groups, bits, fill[k], (entries[k], weights[k]), partial, alpha, last, source, own,
            stride, column, shift, out, width, twice, line, looped,
        )  # fmt: skip
    _combine(T, partial, alpha, last, own, stride, column, shift, out, width, twice, looped)


@kernel
def scale_rows(scale, source, out):
    """out[i] = scale[i] * source[i]."""
    n, width = source.shape
    for block in prange((n + ROW_BLOCK - 1) // ROW_BLOCK):
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            for q in range(width):
                out[i, q] = scale[i] * source[i, q]


@final
class TransitionRows(NamedTuple):
    """Rows of T = S_r A S_c in one float type: all of them, or some that follow each other."""

    indptr: NDArray[np.int64]  # from 0
    indices: NDArray[np.int32]  # columns among all nodes
    weights: NDArray[Any]  # empty when all are one
    rows: NDArray[Any]  # S_r of these rows
    columns: NDArray[Any]  # S_c of these nodes
    long_rows: NDArray[np.int64]  # rows of more than `PIECE` entries
    pieces: NDArray[np.int64]  # where the pieces of each long row begin in the list of all pieces
    loops: NDArray[np.uint8]  # 1 where A has a self-loop beside the entries given; empty when it has none
    here: NDArray[Any]  # the rows of the state that `loops` multiplies, shape (rows, c); empty without loops

    @classmethod
    def of(cls, transition: Transition, dtype: np.dtype[Any]) -> TransitionRows:
        """Return a transition matrix with the scales cast; the structure is shared."""
        rows, columns = transition.row_scale, transition.column_scale
        weights = np.empty(0, dtype) if transition.weights is None else transition.weights.astype(dtype)
        row_scale = rows.astype(dtype)
        equal = rows is columns or np.array_equal(rows, columns)
        column_scale = row_scale if equal else columns.astype(dtype)
        return cls.made(transition.indptr, transition.indices, weights, row_scale, column_scale)

    @classmethod
    def made(
        cls,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        weights: NDArray[Any],
        rows: NDArray[Any],
        columns: NDArray[Any],
        loops: NDArray[np.uint8] | None = None,
        here: NDArray[Any] | None = None,
    ) -> TransitionRows:
        """Find the long rows; the arrays are shared."""
        block = 1 << 20  # so that no array as long as the list of nodes is made
        found = [
            first + np.flatnonzero(np.diff(indptr[first : first + block + 1]) > PIECE)
            for first in range(0, len(indptr) - 1, block)
        ]
        long_rows = np.concatenate([np.empty(0, np.int64), *found])
        pieces = -(-(indptr[long_rows + 1] - indptr[long_rows]) // PIECE)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(pieces)])
        loops = np.empty(0, np.uint8) if loops is None else loops
        here = np.empty((0, 0), rows.dtype) if here is None else here
        return cls(indptr, indices, weights, rows, columns, long_rows, starts, loops, here)


def worker_threads() -> int:
    """Return how many threads share a step.

    >>> worker_threads() >= 1
    True
    """
    return usable_threads()


def use_threads(count: int) -> None:
    """Let at most so many threads of this process share a step from now on.

    >>> use_threads(worker_threads())
    """
    numba.set_num_threads(count)


def step_rows(
    T: TransitionRows, alpha: float, last: bool, source: NDArray[Any], own: NDArray[Any], out: NDArray[Any]
) -> None:
    """Make some rows of one power step: see `LargeSteps` for y, and for what is different in the last step.

    Parameters
    ----------
    T
        The rows.
    source
        y of all nodes, shape (n, c).
    own, out
        H and the new y, or z, of the rows of T; shape (rows, c).

    Examples
    --------
    >>> one = np.ones(1, np.float32)
    >>> T = TransitionRows.made(np.array([0, 2]), np.array([0, 2], np.int32), np.empty(0, np.float32), one, one)
    >>> out = np.empty((1, 1), np.float32)
    >>> step_rows(T, 0.5, True, np.array([[1], [2], [4]], np.float32), np.array([[8]], np.float32), out)
    >>> out
    array([[6.5]], dtype=float32)
    """
    dtype, c = source.dtype, source.shape[1]
    share, counter, line = np.array([alpha], dtype), np.zeros(1, np.int64), lanes(_LINE // dtype.itemsize)
    block = _REGISTERS // dtype.itemsize
    partial, threads = np.empty(2 * int(T.pieces[-1]) * block, dtype), usable_threads()
    far = column_ranges(T.indptr, T.weights, PIECE, len(source), c * dtype.itemsize, threads)
    for column in range(0, c, block):
        columns = min(block, c - column)
        power = 1 << (columns.bit_length() - 1)  # two groups of as many columns, overlapping, make up the block
        rest = (
            partial, share, last, source, own, c, column, columns - power, out, lanes(power),
            lanes(1 if columns == power else 2), line, lanes(2 if len(T.loops) else 1),
        )  # fmt: skip
        if far is None:
            _step(threads, counter, T, *rest)
        else:
            _far_step(counter, T, *far, *rest)


@final
class LargeSteps(NumbaSteps):
    """K power steps; those without dropout one run after the other, with two states beside H.

    With T = S_r A S_c and y = S_c z, a step z' = (1 - alpha) T z + alpha h is

        y' = (1 - alpha) S_c S_r A y + alpha S_c h,

    and the last step leaves out the factor S_c and gives z. Without dropout Z = p(T) H with a polynomial p, so that the
    adjoint is the same loop over T^T.

    Examples
    --------
    >>> ring = Transition(
    ...     np.arange(6), np.array([1, 2, 3, 4, 0], np.int32), None, np.ones(5), np.ones(5), symmetric=False
    ... )
    >>> LargeSteps(ring, alpha=0.5, steps=1).forward(np.eye(5)[None, :, :1], None).ravel()
    array([0.5, 0. , 0. , 0. , 0.5])
    """

    def __init__(self, transition: Transition, alpha: float, steps: int) -> None:
        super().__init__(transition, alpha, steps)
        self._share = alpha
        self._casts: dict[tuple[int, str], TransitionRows] = {}

    def forward(self, predictions: NDArray[Any], draw: Draw | None) -> NDArray[Any]:
        return super().forward(predictions, draw) if draw or self._steps == 0 else self._whole(0, predictions)

    def adjoint(self, gradient: NDArray[Any], draw: Draw | None) -> NDArray[Any]:
        return super().adjoint(gradient, draw) if draw or self._steps == 0 else self._whole(1, gradient)

    def _whole(self, which: int, start: NDArray[Any]) -> NDArray[Any]:
        """Make the steps of every run over T (0) or its transpose (1)."""
        array = np.ascontiguousarray(start)
        key = which, array.dtype.str
        if key not in self._casts:
            self._casts[key] = TransitionRows.of(self._sides[which], array.dtype)
        each = [self._run(self._casts[key], one) for one in array]
        return each[0][None] if len(each) == 1 else np.stack(each)

    def _run(self, side: TransitionRows, start: NDArray[Any]) -> NDArray[Any]:
        state, spare = (Arena().empty(start.shape, start.dtype) for _ in range(2))  # apart: one of them is the result
        scale_rows(side.columns, start, state)
        for step in range(self._steps):
            step_rows(side, self._share, step == self._steps - 1, state, start, spare)
            state, spare = spare, state
        return state
