"""Power steps on a graph whose states do not fit into the GPU's cache, without dropout.

A step is bound by the gathers of rows of the state, one per entry. At binding, nodes are numbered anew by falling
number of entries. The rows that are gathered most then share cache lines; rows of like length are neighbours, so that
one launch each serves the short rows (many rows a program, entries one after the other), the middle ones (a program a
row, many entries at once) and the pieces of the long ones, whose sums a last launch adds in order. Nothing is added
atomically: the same input gives the same bits every time.

On the device lie 4 bytes an entry and 12 bytes a node (offset, scale and old number; 16 where there are 2^31 entries or
more, 4 more where rows and columns are scaled apart, 4 more an entry with weights). H is read and Z written in the
caller's order, so that there are three states: H and the two that steps go between. Where these do not fit, columns are
taken in panels of 32, whose rows are one cache line each.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
import triton.language as tl
from torch import Tensor

from pprop._process import free_device_memory
from pprop.graph import Transition
from pprop.kernels.random_bits import Draw
from pprop.kernels.triton_gpu.launch import LargeTuning, device, kernel, power_of_two
from pprop.kernels.triton_gpu.sparse import TritonSteps

_COLUMNS = 64  # of a state that a program sums at once
PANEL = 32  # columns of a panel, where not all of them fit
_ROW = 64  # bytes of a row of the state that launch shapes are made for


@device
def _rows(
    source, j, column, there, C: tl.constexpr, S: tl.constexpr, WHOLE: tl.constexpr, POLICY: tl.constexpr
):  # fmt: skip
    """Return the rows j of a state, S numbers apart, zero where `there`, of shape (rows, 1), is not."""
    wanted = there if WHOLE else there & (column < C)[None, :]
    at = source + j.to(tl.int64)[:, None] * S + column[None, :]
    return tl.load(at, mask=wanted, other=0.0, eviction_policy=POLICY)


@device
def _sum(
    begin, end, indices, weights, source, column,
    C: tl.constexpr, W: tl.constexpr, B: tl.constexpr, E: tl.constexpr, WEIGHTED: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Return the sum over the entries begin to end of one row, shape (1, B); E of them in flight."""
    acc = tl.zeros((E, B), source.dtype.element_ty)
    at = begin + tl.arange(0, E)
    j = tl.load(indices + at, mask=at < end, other=0, eviction_policy="evict_first")
    while begin < end:
        term = _rows(source, j, column, (at < end)[:, None], C, W, WHOLE, "")
        if WEIGHTED:
            term *= tl.load(weights + at, mask=at < end, other=0.0, eviction_policy="evict_first")[:, None]
        begin += E
        at += E
        j = tl.load(
            indices + at, mask=at < end, other=0, eviction_policy="evict_first"
        )  # before the gathers are waited for
        acc += term
    return tl.sum(acc, axis=0)[None, :]


@device
def _write(
    acc, i, live, column, alpha, row_scale, column_scale, order, loops, source, own, out,
    C: tl.constexpr, W: tl.constexpr, S: tl.constexpr, WHOLE: tl.constexpr, LAST: tl.constexpr, LOOPS: tl.constexpr,
):  # fmt: skip
    """Make rows i of the new state, given their sums over the old one: y' = S_c ((1 - alpha) S_r sum + alpha h).

    The last step leaves out S_c and writes in the caller's order. With LOOPS, rows that have a self-loop which is no entry
    add themselves. H and Z have rows S numbers apart, the states W.
    """
    node = tl.load(order + i, mask=live, other=0)
    if LOOPS:
        there = live & (tl.load(loops + i, mask=live, other=0) != 0)
        acc += _rows(source, i, column, there[:, None], C, W, WHOLE, "")
    mine = _rows(own, node, column, live[:, None], C, S, WHOLE, "evict_first")
    teleport, stay = tl.load(alpha), tl.load(alpha + 1)
    arrived = stay * tl.load(row_scale + i, mask=live, other=0.0)
    wanted = live[:, None] if WHOLE else live[:, None] & (column < C)[None, :]
    if LAST:
        tl.store(out + node.to(tl.int64)[:, None] * S + column, arrived[:, None] * acc + teleport * mine, mask=wanted)
    else:
        factor = tl.load(column_scale + i, mask=live, other=0.0)
        value = (arrived * factor)[:, None] * acc + (teleport * factor)[:, None] * mine
        tl.store(out + i.to(tl.int64)[:, None] * W + column, value, mask=wanted)


@kernel("first", "past")
def _short_rows(
    first, past, indptr, indices, weights, alpha, row_scale, column_scale, order, loops, source, own, out,
    C: tl.constexpr, W: tl.constexpr, S: tl.constexpr, B: tl.constexpr, ROWS: tl.constexpr, U: tl.constexpr,
    WEIGHTED: tl.constexpr, WHOLE: tl.constexpr, LAST: tl.constexpr, LOOPS: tl.constexpr,
):  # fmt: skip
    """Make ROWS neighbouring rows of like length, U entries of each at once."""
    longest = first + tl.program_id(0) * ROWS
    most = tl.load(indptr + longest + 1) - tl.load(indptr + longest)
    i = longest + tl.arange(0, ROWS)
    column = tl.program_id(1) * B + tl.arange(0, B)
    live = i < past
    begin = tl.load(indptr + i, mask=live, other=0)
    length = tl.load(indptr + i + 1, mask=live, other=0) - begin
    acc = tl.zeros((ROWS, B), source.dtype.element_ty)
    t = 0
    while t < most:
        columns, terms = (), ()
        for k in tl.static_range(U):
            columns = columns + (tl.load(indices + begin + (t + k), mask=t + k < length, other=0),)
        for k in tl.static_range(U):
            there = t + k < length[:, None]
            term = _rows(source, columns[k], column, there, C, W, WHOLE, "")
            if WEIGHTED:
                term *= tl.load(weights + begin[:, None] + (t + k), mask=there, other=0.0)
            terms = terms + (term,)
        for k in tl.static_range(U):
            acc += terms[k]
        t += U
    _write(acc, i, live, column, alpha, row_scale, column_scale, order, loops, source, own, out, C, W, S, WHOLE, LAST,
           LOOPS)  # fmt: skip


@kernel("first")
def _long_row(
    first, rows, starts, indptr, indices, weights, partial, alpha, row_scale, column_scale, order, loops, source, own, out,
    C: tl.constexpr, W: tl.constexpr, S: tl.constexpr, B: tl.constexpr, E: tl.constexpr, PIECE: tl.constexpr,
    WEIGHTED: tl.constexpr, WHOLE: tl.constexpr, LAST: tl.constexpr, LOOPS: tl.constexpr,
):  # fmt: skip
    """Make one row; or, with PIECE > 0, sum one piece of a row.

    `rows` names the row of each piece, `starts` the first piece of each row.
    """
    p, part = tl.program_id(0), tl.program_id(1)
    column = part * B + tl.arange(0, B)
    if PIECE > 0:
        row = tl.load(rows + p)
        begin = tl.load(indptr + row) + (p - tl.load(starts + row)) * PIECE
        end = tl.minimum(begin + PIECE, tl.load(indptr + row + 1))
    else:
        row = first + p
        begin, end = tl.load(indptr + row), tl.load(indptr + row + 1)
    acc = _sum(begin, end, indices, weights, source, column, C, W, B, E, WEIGHTED, WHOLE)
    if PIECE > 0:
        at = partial + (part * tl.num_programs(0) + p).to(tl.int64) * B + tl.arange(0, B)
        tl.store(at[None, :], acc)
    else:
        i = row + tl.arange(0, 1)
        _write(acc, i, i >= 0, column, alpha, row_scale, column_scale, order, loops, source, own, out, C, W, S, WHOLE, LAST,
               LOOPS)  # fmt: skip


@kernel("pieces")
def _combine(
    starts, pieces, partial, alpha, row_scale, column_scale, order, loops, source, own, out,
    C: tl.constexpr, W: tl.constexpr, S: tl.constexpr, B: tl.constexpr, E: tl.constexpr, WHOLE: tl.constexpr,
    LAST: tl.constexpr, LOOPS: tl.constexpr,
):  # fmt: skip
    """Add the pieces of one long row, and make the row."""
    row, part = tl.program_id(0), tl.program_id(1)
    p, past = tl.load(starts + row), tl.load(starts + row + 1)
    acc = tl.zeros((E, B), partial.dtype.element_ty)
    while p < past:
        one = p + tl.arange(0, E)
        at = partial + (part * pieces + one).to(tl.int64)[:, None] * B + tl.arange(0, B)[None, :]
        acc += tl.load(at, mask=(one < past)[:, None], other=0.0)
        p += E
    i = row + tl.arange(0, 1)
    column = part * B + tl.arange(0, B)
    total = tl.sum(acc, axis=0)[None, :]
    _write(total, i, i >= 0, column, alpha, row_scale, column_scale, order, loops, source, own, out, C, W, S, WHOLE, LAST,
           LOOPS)  # fmt: skip


@kernel("n", "entries")
def _renumber(
    n, entries, old_indptr, old_indices, old_weights, indptr, order, rank, indices, weights,
    E: tl.constexpr, DEPTH: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Write E entries in the new order of rows, with the new numbers of their columns."""
    e = tl.program_id(0).to(tl.int64) * E + tl.arange(0, E)
    there = e < entries
    low = tl.zeros((E,), tl.int32)  # the last row that begins at or before e
    high = low + n
    for _ in tl.static_range(DEPTH):
        middle = (low + high) // 2
        before = tl.load(indptr + middle, mask=there, other=0) <= e
        low, high = tl.where(before, middle, low), tl.where(before, high, middle)
    origin = tl.load(order + low, mask=there, other=0)
    at = tl.load(old_indptr + origin, mask=there, other=0) + (e - tl.load(indptr + low, mask=there, other=0))
    j = tl.load(old_indices + at, mask=there, other=0)
    tl.store(indices + e, tl.load(rank + j, mask=there, other=0), mask=there)
    if WEIGHTED:
        tl.store(weights + e, tl.load(old_weights + at, mask=there, other=0.0), mask=there)


@kernel("n")
def _scaled(
    n, order, scale, start, out,
    C: tl.constexpr, W: tl.constexpr, S: tl.constexpr, B: tl.constexpr, ROWS: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """out = scale * start, from the caller's order to the new one."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * B + tl.arange(0, B)
    live = i < n
    value = _rows(start, tl.load(order + i, mask=live, other=0), column, live[:, None], C, S, WHOLE, "")
    wanted = live[:, None] if WHOLE else live[:, None] & (column < C)[None, :]
    value *= tl.load(scale + i, mask=live, other=0.0)[:, None]
    tl.store(out + i.to(tl.int64)[:, None] * W + column[None, :], value, mask=wanted)


@final
class Renumbered:
    """T or its transpose on one device in one float type, its nodes numbered by falling number of entries.

    Made of tensors on the device: offsets and columns of the rows, values of the entries or None, the two scales,
    which may be one tensor, and which nodes have a self-loop of weight one that is no entry, (n,), uint8, or None.
    """

    def __init__(
        self,
        indptr: Tensor,
        indices: Tensor,
        weights: Tensor | None,
        scales: tuple[Tensor, Tensor],
        tuning: LargeTuning,
        loops: Tensor | None = None,
    ) -> None:
        where, self.n, entries = indices.device, len(indptr) - 1, len(indices)
        lengths = indptr.diff()
        order = lengths.argsort(descending=True, stable=True)
        lengths = lengths[order]
        # where the middle and the short rows begin, and the pieces of the long ones
        borders = torch.tensor([-tuning.piece, -tuning.short], device=where)
        self.middle, self.short = torch.searchsorted(-lengths, borders).tolist()
        pieces = -(-lengths[: self.middle] // tuning.piece)
        self.piece_rows = torch.arange(self.middle, device=where).repeat_interleave(pieces).to(torch.int32)
        self.starts = torch.zeros(self.middle + 1, dtype=torch.int32, device=where)
        torch.cumsum(pieces, 0, dtype=torch.int32, out=self.starts[1:])
        self.indptr = torch.zeros(self.n + 1, dtype=torch.int32 if entries < 2**31 else torch.int64, device=where)
        torch.cumsum(lengths, 0, dtype=self.indptr.dtype, out=self.indptr[1:])
        del lengths
        rank = torch.empty(self.n, dtype=torch.int32, device=where)
        rank[order] = torch.arange(self.n, dtype=torch.int32, device=where)
        self.order = order.to(torch.int32)
        self.row_scale = scales[0][order]
        self.column_scale = self.row_scale if scales[0] is scales[1] else scales[1][order]
        self.looped = loops is not None
        self.loops = self.order if loops is None else loops[order]
        del order
        self.weighted = weights is not None
        values = scales[0] if weights is None else weights
        self.indices = torch.empty_like(indices)
        self.weights = self.row_scale if weights is None else torch.empty_like(weights)
        if entries:
            _renumber[(-(-entries // 1024),)](
                self.n, entries, indptr, indices, values, self.indptr, self.order, rank, self.indices, self.weights,
                E=1024, DEPTH=self.n.bit_length(), WEIGHTED=self.weighted, num_warps=4,
            )  # fmt: skip


@final
class LargeSteps(TritonSteps):
    """K power steps; those without dropout one run after the other.

    In scaled variables, as on the CPU: y' = (1 - alpha) S_c S_r A y + alpha S_c h. Without dropout Z = p(T) H with a
    polynomial p, so that the adjoint is the same loop over T^T.
    """

    def __init__(
        self, transition: Transition, alpha: float | Tensor, steps: int, tuning: LargeTuning | None = None
    ) -> None:
        super().__init__(transition, alpha, steps)
        self._tuning, rows, columns = tuning or LargeTuning(), transition.row_scale, transition.column_scale
        self._one_scale = rows is columns or np.array_equal(rows, columns)
        self._bound: dict[tuple[Any, ...], Renumbered] = {}
        self._alphas: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def bind(self, like: Tensor, *, transposed: bool = False) -> Renumbered:
        """Return the matrix as the kernels read it, moved to the tensor's device and numbered anew the first time."""
        key = (transposed and not (self._one_scale and self._sides[0].symmetric), like.device, like.dtype)
        if key not in self._bound:
            given = self._sides[key[0]]
            row_scale = torch.from_numpy(given.row_scale).to(like)
            column_scale = row_scale if self._one_scale else torch.from_numpy(given.column_scale).to(like)
            weights = None if given.weights is None else torch.from_numpy(given.weights).to(like)
            indptr, indices = (torch.from_numpy(array).to(like.device) for array in (given.indptr, given.indices))
            self._bound[key] = Renumbered(indptr, indices, weights, (row_scale, column_scale), self._tuning)
        return self._bound[key]

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        if draw or self._steps == 0 or predictions.numel() == 0:
            return super().forward(predictions, draw)
        return self._whole(self.bind(predictions), predictions)

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        if draw or self._steps == 0 or gradient.numel() == 0:
            return super().adjoint(gradient, draw)
        return self._whole(self.bind(gradient, transposed=True), gradient)

    def _shares(self, like: Tensor) -> Tensor:
        """Return alpha and 1 - alpha as the kernels read them, moved to the tensor's device the first time."""
        key = like.device, like.dtype
        if key not in self._alphas:
            shares = torch.tensor([self.alpha, 1.0], dtype=like.dtype)
            shares[1] -= shares[0]
            self._alphas[key] = shares.to(like.device)
        return self._alphas[key]

    def _whole(self, side: Renumbered, start: Tensor) -> Tensor:
        each = [run_steps(side, self._shares(one), self._steps, one, self._tuning) for one in start.contiguous()]
        return each[0][None] if len(each) == 1 else torch.stack(each)


def run_steps(
    side: Renumbered, shares: Tensor, steps: int, start: Tensor, tuning: LargeTuning, out: Tensor | None = None
) -> Tensor:
    """Return `start`, (n, c), after K > 0 steps.

    Parameters
    ----------
    side
        The matrix.
    shares
        alpha and 1 - alpha.
    out
        Where to write the result, which may be `start` itself; then, and where two states of all columns do not fit beside
        a result, columns are taken in panels.
    """
    n, c = start.shape
    free = free_device_memory(start.device)
    if out is None and (free is None or 2 * start.nbytes <= free):
        return _panel(side, shares, steps, start, None, [torch.empty_like(start) for _ in range(2)], tuning)
    out = torch.empty_like(start) if out is None else out
    memory = [torch.empty(n * min(PANEL, power_of_two(c)), dtype=start.dtype, device=start.device) for _ in range(2)]
    for first in range(0, c, PANEL):
        part = slice(first, min(first + PANEL, c))
        row = power_of_two(part.stop - first)
        states = [one[: n * row].view(n, row) for one in memory]
        _panel(side, shares, steps, start[:, part], out[:, part], states, tuning)
    return out


def _panel(
    side: Renumbered,
    shares: Tensor,
    steps: int,
    start: Tensor,
    out: Tensor | None,
    states: list[Tensor],
    tuning: LargeTuning,
) -> Tensor:
    """Make the steps of some columns, from `start` to `out`, or to one of two states of as many columns."""
    c = start.shape[1]
    width = min(power_of_two(c), _COLUMNS)
    blocks = -(-c // width)
    shape: dict[str, Any] = {"C": c, "W": states[0].shape[1], "S": start.stride(0), "B": width, "WHOLE": c % width == 0}
    wide = max(1, width * start.element_size() // _ROW)  # wider rows than the launch shapes are made for
    short_rows, rows = max(1, tuning.short_rows // wide), max(1, 4096 // max(width, wide * 16))
    state, spare = states
    _scaled[(-(-side.n // rows), blocks)](
        side.n, side.order, side.column_scale, start, state, ROWS=rows, num_warps=4, **shape
    )
    shape["LOOPS"] = side.looped
    partial = torch.empty(len(side.piece_rows) * blocks * width, dtype=start.dtype, device=start.device)
    entries, weighted = (side.indptr, side.indices, side.weights), side.weighted
    scales = (shares, side.row_scale, side.column_scale, side.order, side.loops)
    long_rows = [
        (0, len(side.piece_rows), tuning.piece_entries, tuning.piece, tuning.piece_warps),
        (side.middle, side.short - side.middle, tuning.middle_entries, 0, tuning.middle_warps),
    ]
    for step in range(steps):
        last = step == steps - 1
        target = out if last and out is not None else spare
        for first, count, in_flight, piece, warps in long_rows:
            if count > 0:
                _long_row[(count, blocks)](
                    first, side.piece_rows, side.starts, *entries, partial, *scales, state, start, target,
                    E=max(1, in_flight // wide), PIECE=piece, WEIGHTED=weighted, LAST=last and piece == 0,
                    num_warps=warps, **shape,
                )  # fmt: skip
        if side.n > side.short:
            _short_rows[(-(-(side.n - side.short) // short_rows), blocks)](
                side.short, side.n, *entries, *scales, state, start, target, ROWS=short_rows,
                U=tuning.short_unroll, WEIGHTED=weighted, LAST=last, num_warps=tuning.short_warps, **shape,
            )  # fmt: skip
        if side.middle:
            _combine[(side.middle, blocks)](
                side.starts, len(side.piece_rows), partial, *scales, state, start, target, E=32, LAST=last, num_warps=1,
                **shape,
            )  # fmt: skip
        state, spare = target, state
    return state
