"""Attention over the entries of a sparsity pattern: weights are computed anew wherever an entry is read.

A pass goes over the tiles of `plan`, by rows or by columns of the pattern; a program makes all columns of the values.
Sums over entries are split by the sign of the score, since LeakyReLU has one slope for each: with s+ and s- the sums of
the weights exp(e_ij - max_j e_ij) of row i, and a+ and a- those of the weights times keep_ij <gradient_i, values_j>,

    dleft_i = (1 - SLOPE) / (1 - p) (a+ s- - a- s+) / (s+ + s-)^2.
"""

from __future__ import annotations

from typing import Any, final

import torch
import triton.language as tl
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.contract import SLOPE, EdgeAttention
from pprop.kernels.random_bits import EDGES, Draw
from pprop.kernels.triton_gpu.bits import kept
from pprop.kernels.triton_gpu.gather import rows_of, tile_of
from pprop.kernels.triton_gpu.launch import SLOTS, Masks, accumulator, device, kernel, power_of_two
from pprop.kernels.triton_gpu.plan import RowPlan, row_plan


@device
def _leaky(score, slope):
    return tl.where(score > 0, score, score * slope)


@device
def _largest(value, E: tl.constexpr, T: tl.constexpr):
    """Replace every lane's number by the largest of its row: (T,) to (T,)."""
    largest = tl.max(tl.reshape(value, (T // E, E)), axis=1)
    return tl.reshape(tl.broadcast_to(largest[:, None], (T // E, E)), (T,))


@device
def _sum_lanes(value, E: tl.constexpr, T: tl.constexpr):
    """Add up the lanes of each row: (T,) to (T / E,)."""
    return tl.sum(tl.reshape(value, (T // E, E)), axis=1)


@device
def _places(row_at, n, width, run, E: tl.constexpr, T: tl.constexpr, C: tl.constexpr):
    """Return which rows of a tile there are, their nodes among those of all runs, where their values are, and which."""
    rows = tl.load(row_at + tl.arange(0, T // E) * E)
    column = tl.arange(0, C)
    node = run.to(tl.int64) * n + rows
    inside = (rows >= 0)[:, None] & (column < width)[None, :]
    return rows >= 0, node, node[:, None] * width + column[None, :], inside


@device
def _finish_rows(
    plus, minus, norm_plus, norm_minus, row_at, gradient, out, to_left, stats, scale, slope, n, width, run,
    E: tl.constexpr, T: tl.constexpr, C: tl.constexpr, BACKWARD: tl.constexpr,
):  # fmt: skip
    """Write what the rows of one tile add up to: the output, or the gradient of left and what the columns need."""
    there, node, at, inside = _places(row_at, n, width, run, E, T, C)
    s_plus, s_minus = _sum_lanes(norm_plus, E, T), _sum_lanes(norm_minus, E, T)
    norm = s_plus + s_minus
    inverse = tl.where(norm == 0, 0.0, 1.0 / tl.where(norm == 0, 1.0, norm))
    if BACKWARD:
        above = tl.load(gradient + at, mask=inside, other=0.0)
        a_plus = tl.sum(above * rows_of(plus, E, T, C), axis=1) * inverse * scale
        a_minus = tl.sum(above * rows_of(minus, E, T, C), axis=1) * inverse * scale
        cross = a_plus * (s_minus * inverse) - a_minus * (s_plus * inverse)
        tl.store(to_left + node, (1.0 - slope) * cross, mask=there)
        tl.store(stats + node * 3 + 1, inverse, mask=there)
        tl.store(stats + node * 3 + 2, a_plus + a_minus, mask=there)
    else:
        tl.store(out + at, rows_of(plus, E, T, C) * (inverse * scale)[:, None], mask=inside)


@kernel("n", "width", "threshold", "digits")
def _by_rows(
    tiles, rows, index, gradient, values, left, right, out, to_left, stats, epoch, seeds, constants, n, width,
    threshold, digits,
    T: tl.constexpr, C: tl.constexpr, STREAM: tl.constexpr, DROP: tl.constexpr,
    BACKWARD: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """One tile of rows of one run: the output, or BACKWARD the gradient of left."""
    tile, run = tl.program_id(0), tl.program_id(1)
    slot, column = tl.arange(0, T), tl.arange(0, C)
    klass, base, length, _word = tile_of(tiles, tile)
    row = tl.load(rows + tile * T + slot)
    seed, position = tl.load(seeds + run), tl.load(epoch)
    scale, slope = tl.load(constants), tl.load(constants + 1)
    skip = run.to(tl.int64) * n
    own = tl.load(left + skip + row, mask=row >= 0, other=0.0)
    high = tl.full((T,), float("-inf"), ACC)
    t = 0
    while t < length:
        j = tl.load(index + base + t * T + slot)
        score = tl.load(right + skip + j, mask=j < n, other=float("-inf"))
        high = tl.where(score > high, score, high)
        t += 1
    for k in tl.static_range(1, 3):
        if klass == k:
            high = _largest(high, 4**k, T)
    top = _leaky(own + tl.where(high == float("-inf"), 0.0, high), slope)  # a row without entries subtracts nothing
    if BACKWARD:
        tl.store(stats + (skip + row) * 3, top, mask=row >= 0)  # all lanes of a row write the same
    plus, minus = tl.zeros((T, C), ACC), tl.zeros((T, C), ACC)
    norm_plus, norm_minus = tl.zeros((T,), ACC), tl.zeros((T,), ACC)
    t = 0
    while t < length:
        j = tl.load(index + base + t * T + slot)
        there = j < n
        score = own + tl.load(right + skip + j, mask=there, other=float("-inf"))
        weight = tl.where(there, tl.exp(_leaky(score, slope) - top), 0.0)
        wanted = there
        if DROP:
            wanted = there & kept(seed, row, j, position, threshold, digits, STREAM)
        where = values + (skip + j)[:, None] * width + column[None, :]
        term = weight[:, None] * tl.load(where, mask=wanted[:, None] & (column < width)[None, :], other=0.0)
        if BACKWARD:
            positive = score > 0
            norm_plus += tl.where(positive, weight, 0.0)
            norm_minus += tl.where(positive, 0.0, weight)
            plus += tl.where(positive[:, None], term, 0.0)
            minus += tl.where(positive[:, None], 0.0, term)
        else:
            norm_plus += weight
            plus += term
        t += 1
    for k in tl.static_range(3):
        if klass == k:
            _finish_rows(plus, minus, norm_plus, norm_minus, rows + tile * T, gradient, out, to_left, stats, scale,
                         slope, n, width, run, 4**k, T, C, BACKWARD)  # fmt: skip


@device
def _finish_columns(
    plus, minus, centre, row_at, values, to_values, to_right, slope, n, width, run,
    E: tl.constexpr, T: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Write the gradients of values and right of the nodes of one tile."""
    there, node, at, inside = _places(row_at, n, width, run, E, T, C)
    a_plus, a_minus = rows_of(plus, E, T, C), rows_of(minus, E, T, C)
    tl.store(to_values + at, a_plus + a_minus, mask=inside)
    own = tl.load(values + at, mask=inside, other=0.0)
    dot = tl.sum(own * (a_plus + slope * a_minus), axis=1)
    tl.store(to_right + node, dot - _sum_lanes(centre, E, T), mask=there)


@kernel("n", "width", "threshold", "digits")
def _by_columns(
    tiles, rows, index, gradient, values, left, right, to_values, to_right, stats, epoch, seeds, constants, n, width,
    threshold, digits,
    T: tl.constexpr, C: tl.constexpr, STREAM: tl.constexpr, DROP: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """One tile of columns of one run: the gradients of values and right. A slot is a column, its entries are rows."""
    tile, run = tl.program_id(0), tl.program_id(1)
    slot, column = tl.arange(0, T), tl.arange(0, C)
    klass, base, length, _word = tile_of(tiles, tile)
    node = tl.load(rows + tile * T + slot)
    seed, position = tl.load(seeds + run), tl.load(epoch)
    scale, slope = tl.load(constants), tl.load(constants + 1)
    skip = run.to(tl.int64) * n
    own = tl.load(right + skip + node, mask=node >= 0, other=0.0)
    plus, minus, centre = tl.zeros((T, C), ACC), tl.zeros((T, C), ACC), tl.zeros((T,), ACC)
    t = 0
    while t < length:
        i = tl.load(index + base + t * T + slot)
        there = i < n
        score = own + tl.load(left + skip + i, mask=there, other=float("-inf"))
        top = tl.load(stats + (skip + i) * 3, mask=there, other=0.0)
        inverse = tl.load(stats + (skip + i) * 3 + 1, mask=there, other=0.0)
        middle = tl.load(stats + (skip + i) * 3 + 2, mask=there, other=0.0)
        share = tl.where(there, tl.exp(_leaky(score, slope) - top) * inverse, 0.0)
        wanted = there
        if DROP:
            wanted = there & kept(seed, i, node, position, threshold, digits, STREAM)
        where = gradient + (skip + i)[:, None] * width + column[None, :]
        above = tl.load(where, mask=wanted[:, None] & (column < width)[None, :], other=0.0)
        term = (share * scale)[:, None] * above
        positive = score > 0
        centre += share * middle * tl.where(positive, 1.0, slope)
        plus += tl.where(positive[:, None], term, 0.0)
        minus += tl.where(positive[:, None], 0.0, term)
        t += 1
    for k in tl.static_range(3):
        if klass == k:
            _finish_columns(plus, minus, centre, rows + tile * T, values, to_values, to_right, slope, n, width, run,
                            4**k, T, C)  # fmt: skip


@final
class TritonAttention(EdgeAttention):
    """Attention by rows of the pattern; the gradients of values and right by its columns."""

    def __init__(self, transition: Transition) -> None:
        self._sides = transition, transition.transpose
        self._known: dict[tuple[int, torch.device], RowPlan] = {}

    def forward(self, values: Tensor, left: Tensor, right: Tensor, draw: Draw | None) -> Tensor:
        values, left, right = values.contiguous(), left.contiguous(), right.contiguous()
        out = torch.empty_like(values)
        if out.numel() > 0:
            arrays = values, values, left, right, out, left, left  # without BACKWARD the others are not touched
            self._launch(_by_rows, 0, arrays, draw, BACKWARD=False)
        return out

    def adjoint(
        self, gradient: Tensor, values: Tensor, left: Tensor, right: Tensor, draw: Draw | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        given = gradient.contiguous(), values.contiguous(), left.contiguous(), right.contiguous()
        to_values, to_left, to_right = (torch.empty_like(tensor) for tensor in given[1:])
        if to_values.numel() > 0:
            # per row: the largest score, one over the sum of the weights, and sum_j drop(a_ij) <gradient_i, values_j>
            stats = values.new_empty(*left.shape, 3)
            self._launch(_by_rows, 0, (*given, to_values, to_left, stats), draw, BACKWARD=True)
            self._launch(_by_columns, 1, (*given, to_values, to_right, stats), draw)
        return to_values, to_left, to_right

    def _launch(self, function: Any, side: int, arrays: tuple[Tensor, ...], draw: Draw | None, **named: bool) -> None:
        values = arrays[1]
        runs, n, width = values.shape
        key, t = (side, values.device), self._sides[side]
        if key not in self._known:
            self._known[key] = row_plan(t.indptr, t.indices, t.n_nodes, slots=SLOTS, device=values.device)
        plan, drawn = self._known[key], Masks.of(draw, runs, values.device)
        # in memory, because a constant of a kernel is rounded to float32
        constants = values.new_full((2,), SLOPE)  # filled there: a copy from the host could not be captured
        constants[:1].fill_(drawn.law.scale)
        function[(plan.count, runs)](
            plan.tiles, plan.rows, plan.index, *arrays, drawn.epoch, drawn.seeds, constants, n, width, *drawn.law,
            T=plan.slots, C=power_of_two(width), STREAM=EDGES, DROP=draw is not None, ACC=accumulator(values),
            num_warps=4, **named,
        )  # fmt: skip
