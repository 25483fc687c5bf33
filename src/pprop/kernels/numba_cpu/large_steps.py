"""Power steps on a graph whose states do not fit into the cache, without dropout.

A step is bound by the cache misses of its gathers, one row of the state per entry. So rows are asked for `_AHEAD`
entries before they are summed, which keeps about ten misses in flight where a processor by itself finds two or three;
a row of sums stays in registers; states lie on cache-line borders and on large pages; and nothing is stored per entry
but the column.

Work is shared by entries. Row i belongs to the window of `PIECE` entries in which it starts; a row of more than `PIECE`
entries is cut into pieces of that length, whose sums are added in order. Threads take windows and pieces as they become
free; since neither depends on the number of threads, nor do the bits of the result.
"""

from __future__ import annotations

from typing import Any, final

import numba
import numpy as np
import torch
from llvmlite import ir
from numba import prange, types
from numba.extending import intrinsic
from numpy.typing import NDArray
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.contract import Draw, StepPropagation
from pprop.kernels.numba_cpu._jit import inline, kernel, serial
from pprop.kernels.numba_cpu.vectors import add, count, fma, lanes, load, prefetch, store, times, zeros

__all__ = ["PIECE", "LargeSteps"]

PIECE = 8192
"""Entries in one task. Part of the definition of the sums of longer rows, so it never depends on the machine."""
_AHEAD = 24
_LINE = 64  # bytes
_REGISTERS = 256  # bytes of a row that are summed at once: 16 of NEON's 32 registers, 8 of AVX2's 16


@intrinsic
def _claim(typing, counter):
    """Return the first element of an int64 array and add one to it, as one step that no other thread can part."""

    def codegen(context, builder, sig, args):
        place = context.make_array(counter)(context, builder, args[0]).data
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(counter), codegen


@inline
def _sum(width, line, begin, end, indices, weights, source, stride, column):
    """Return the sum over entries begin to end of weight times row of the state, the columns from `column` on."""
    most = len(indices) - 1
    acc = zeros(source, width)
    for e in range(begin, end):
        soon = np.int64(indices[min(e + _AHEAD, most)]) * stride + column
        for q in range(0, count(width), count(line)):
            prefetch(source, soon + q)
        if count(width) % count(line) != 0:
            prefetch(source, soon + count(width) - 1)
        row = load(source, np.int64(indices[e]) * stride + column, width)
        acc = fma(weights[e], row, acc) if len(weights) > 0 else add(acc, row)
    return acc


@inline
def _finish(i, acc, width, last, alpha, row_scale, column_scale, own, stride, column, out):
    """Write row i of the new state, given its sum over the old one."""
    factor = alpha.dtype.type(1) if last else column_scale[i]
    teleport = times(alpha[0] * factor, load(own, i * stride + column, width))
    store(out, i * stride + column, fma(alpha[1] * row_scale[i] * factor, acc, teleport))


@serial
def _window(width, line, w, structure, scales, alpha, last, source, own, stride, column, out):
    """Make all rows that start among the entries of window w, but for those that are cut."""
    indptr, indices, weights = structure
    row_scale, column_scale = scales
    n = len(indptr) - 1
    first, past = np.searchsorted(indptr[:n], w * PIECE), np.searchsorted(indptr[:n], (w + 1) * PIECE)
    for i in range(first, past):
        begin, end = indptr[i], indptr[i + 1]
        if end - begin <= PIECE:
            acc = _sum(width, line, begin, end, indices, weights, source, stride, column)
            _finish(i, acc, width, last, alpha, row_scale, column_scale, own, stride, column, out)


@serial
def _piece(width, line, begin, end, structure, source, stride, column, partial, p):
    """Sum one piece of a long row."""
    acc = _sum(width, line, begin, end, structure[1], structure[2], source, stride, column)
    store(partial, p * count(width), acc)


@serial
def _combine(width, rows, starts, partial, scales, alpha, last, own, stride, column, out):
    """Add the pieces of every long row in order, and make the row."""
    for k in range(len(rows)):
        acc = zeros(partial, width)
        for p in range(starts[k], starts[k + 1]):
            acc = add(acc, load(partial, p * count(width), width))
        _finish(rows[k], acc, width, last, alpha, scales[0], scales[1], own, stride, column, out)


@kernel
def _step(
    width, line, counter, threads, structure, scales, alpha, last, long, partial, source, own, stride, column, out
):
    """out = (1 - alpha) S_r f A source + alpha f own with f = S_c, or 1 in the last step."""
    rows, starts = long
    indptr = structure[0]
    pieces, windows = starts[-1], indptr[-1] // PIECE + 1
    counter[0] = 0
    for _ in prange(threads):
        while True:
            task = _claim(counter)
            if task >= pieces + windows:
                break
            if task >= pieces:
                w = task - pieces
                _window(width, line, w, structure, scales, alpha, last, source, own, stride, column, out)
            else:
                k = np.searchsorted(starts, task, side="right") - 1
                begin = indptr[rows[k]] + (task - starts[k]) * PIECE
                end = min(begin + PIECE, indptr[rows[k] + 1])
                _piece(width, line, begin, end, structure, source, stride, column, partial, task)
    _combine(width, rows, starts, partial, scales, alpha, last, own, stride, column, out)


@kernel
def _scaled(scale, start, out):
    """out = scale * start, row by row."""
    n, c = start.shape
    for i in prange(n):
        for q in range(c):
            out[i, q] = scale[i] * start[i, q]


@final
class _Side:
    """T or its transpose, in one float type: the structure is that of the `Transition`, the scales are cast once."""

    def __init__(self, transition: Transition, dtype: np.dtype[Any]) -> None:
        weights = np.empty(0, dtype) if transition.weights is None else transition.weights.astype(dtype)
        self.structure = (transition.indptr, transition.indices, weights)
        rows, columns = transition.row_scale, transition.column_scale
        row_scale = rows.astype(dtype)
        equal = rows is columns or np.array_equal(rows, columns)
        self.scales = (row_scale, row_scale if equal else columns.astype(dtype))
        self.long = _long_rows(transition.indptr)


def _long_rows(indptr: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of more than `PIECE` entries, and where the pieces of each begin in the list of all pieces."""
    block = 1 << 20  # so that no array as long as the list of nodes is made
    found = [
        first + np.flatnonzero(np.diff(indptr[first : first + block + 1]) > PIECE)
        for first in range(0, len(indptr) - 1, block)
    ]
    rows = np.concatenate([np.empty(0, np.int64), *found])
    pieces = -(-(indptr[rows + 1] - indptr[rows]) // PIECE)
    return rows, np.concatenate([np.zeros(1, np.int64), np.cumsum(pieces)])


def _state(n: int, c: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array (n, c) that starts on a cache line; numpy asks for large pages, which torch does not."""
    raw = np.empty(n * c * dtype.itemsize + _LINE, dtype=np.uint8)
    skip = -raw.ctypes.data % _LINE
    return raw[skip : skip + n * c * dtype.itemsize].view(dtype).reshape(n, c)


@final
class LargeSteps(StepPropagation):
    """K power steps without dropout, one run after the other; beside H it holds two states.

    With T = S_r A S_c and y = S_c z, a step z' = (1 - alpha) T z + alpha h is

        y' = (1 - alpha) S_c S_r A y + alpha S_c h,

    and the last step leaves out the factor S_c and gives z. Without dropout Z = p(T) H with a polynomial p, so that the
    adjoint is the same loop over T^T.

    Examples
    --------
    >>> ring = Transition(
    ...     np.arange(6), np.array([1, 2, 3, 4, 0], np.int32), None, np.ones(5), np.ones(5), symmetric=False
    ... )
    >>> LargeSteps(ring, alpha=0.5, steps=1).forward(torch.eye(5)[None, :, :1], None).flatten()
    tensor([0.5000, 0.0000, 0.0000, 0.0000, 0.5000])
    """

    def __init__(self, transition: Transition, alpha: float, steps: int) -> None:
        self._transition, self._alpha, self._steps = transition, alpha, steps
        self._sides: dict[tuple[bool, str], _Side] = {}

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        return self._propagate(predictions, draw, transposed=False)

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        return self._propagate(gradient, draw, transposed=True)

    def _propagate(self, start: Tensor, draw: Draw | None, *, transposed: bool) -> Tensor:
        assert draw is None, "dropout has kernels of its own"
        if self._steps == 0 or start.numel() == 0:
            return start.clone()
        array = start.contiguous().numpy()
        side = self._side(array.dtype, transposed=transposed)
        each = [self._run(side, one) for one in array]
        return torch.from_numpy(each[0])[None] if len(each) == 1 else torch.from_numpy(np.stack(each))

    def _side(self, dtype: np.dtype[Any], *, transposed: bool) -> _Side:
        key = (transposed, dtype.str)
        if key not in self._sides:
            transition = self._transition.transpose if transposed else self._transition
            self._sides[key] = _Side(transition, dtype)
        return self._sides[key]

    def _run(self, side: _Side, start: NDArray[Any]) -> NDArray[Any]:
        (n, c), dtype = start.shape, start.dtype
        alpha = np.array([self._alpha, 1], dtype)
        alpha[1] -= alpha[0]
        state, spare = _state(n, c, dtype), _state(n, c, dtype)
        _scaled(side.scales[1], start, state)
        block = _REGISTERS // dtype.itemsize
        partial = np.empty(int(side.long[1][-1]) * min(c, block), dtype)
        counter, threads, line = np.zeros(1, np.int64), numba.get_num_threads(), lanes(_LINE // dtype.itemsize)
        for step in range(self._steps):
            last = step == self._steps - 1
            for column in range(0, c, block):
                _step(
                    lanes(min(block, c - column)), line, counter, threads, side.structure, side.scales, alpha, last,
                    side.long, partial, state.reshape(-1), start.reshape(-1), c, column, spare.reshape(-1),
                )  # fmt: skip
            state, spare = spare, state
        return state
