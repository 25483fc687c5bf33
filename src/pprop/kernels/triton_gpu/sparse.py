"""The sparse operators one by one, in float32 and float64, with masks drawn as the entries are read.

Steps in float32 keep the masks that they draw (see `DroppedSteps`).
"""

from __future__ import annotations

from typing import Any, final

import torch
import triton.language as tl
from scipy import sparse
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.contract import FeatureProduct, Sides, StepPropagation
from pprop.kernels.random_bits import EDGES, FEATURES, Draw
from pprop.kernels.triton_gpu.bits import kept
from pprop.kernels.triton_gpu.gather import rows_of, tile_of
from pprop.kernels.triton_gpu.launch import SLOTS, Masks, accumulator, device, kernel, power_of_two
from pprop.kernels.triton_gpu.plan import RowPlan, row_plan
from pprop.kernels.triton_gpu.planned_steps import DroppedSteps

_MOST_COLUMNS = 64


@device
def _scales(scale, rows, there, scale_at, real, PER_RUN: tl.constexpr):
    """Load factors of rows, (rows, 1), or where each run has its own those of rows and columns, (rows, C)."""
    if PER_RUN:
        found = tl.load(scale + rows[:, None] + scale_at[None, :], mask=there[:, None] & real[None, :], other=0.0)
    else:
        found = tl.load(scale + rows, mask=there, other=0.0)[:, None]
    return found


@device
def _finish(
    acc, row_at, row_scale, start, start_scale, total, total_scale, scale_at, out, width, onto, real,
    E: tl.constexpr, T: tl.constexpr, C: tl.constexpr, START: tl.constexpr, TOTAL: tl.constexpr, PER_RUN: tl.constexpr,
):  # fmt: skip
    """out = row_scale * sum, plus start_scale * start; and total += total_scale * sum."""
    rows = tl.load(row_at + tl.arange(0, T // E) * E)
    there = rows >= 0
    inside = there[:, None] & real[None, :]
    at = rows[:, None].to(tl.int64) * width + onto[None, :]
    value = rows_of(acc, E, T, C)
    if TOTAL:
        old = tl.load(total + at, mask=inside, other=0.0)
        tl.store(total + at, old + _scales(total_scale, rows, there, scale_at, real, PER_RUN) * value, mask=inside)
    value = _scales(row_scale, rows, there, scale_at, real, PER_RUN) * value
    if START:
        share = _scales(start_scale, rows, there, scale_at, real, PER_RUN)
        value += share * tl.load(start + at, mask=inside, other=0.0)
    tl.store(out + at, value, mask=inside)


@kernel("n", "columns", "width", "runs", "step", "steps", "threshold", "digits")
def _apply(
    tiles, rows, index, values, dense, row_scale, start, start_scale, total, total_scale, out, epoch, step, steps,
    seeds, n, columns, width, runs, threshold, digits,
    T: tl.constexpr, C: tl.constexpr, STREAM: tl.constexpr, FLIPPED: tl.constexpr, DROP: tl.constexpr,
    WEIGHTED: tl.constexpr, START: tl.constexpr, TOTAL: tl.constexpr, PER_RUN: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """One tile of drop(M) dense for C columns, and what a power step does with it.

    The columns are those of one run where entries are dropped, since each run has masks of its own; else they go on
    through all runs, so that narrow operands fill a program too.
    """
    tile = tl.program_id(0)
    slot, column = tl.arange(0, T), tl.program_id(1) * C + tl.arange(0, C)
    if DROP:
        run = tl.program_id(2) + column * 0
        real = column < width
        seed, position = tl.load(seeds + tl.program_id(2)), tl.load(epoch) * steps + step
    else:
        run = column // width
        column = column - run * width
        real = run < runs
    into = run.to(tl.int64) * columns * width + column
    onto = run.to(tl.int64) * n * width + column
    scale_at = run.to(tl.int64) * n
    klass, base, length, _word = tile_of(tiles, tile)
    row = tl.load(rows + tile * T + slot)
    acc = tl.zeros((T, C), ACC)
    t = 0
    while t < length:
        at = base + t * T + slot
        j = tl.load(index + at)
        wanted = j < columns
        if DROP:
            if FLIPPED:
                wanted = wanted & kept(seed, j, row, position, threshold, digits, STREAM)
            else:
                wanted = wanted & kept(seed, row, j, position, threshold, digits, STREAM)
        where = dense + j[:, None].to(tl.int64) * width + into[None, :]
        term = tl.load(where, mask=wanted[:, None] & real[None, :], other=0.0)
        if WEIGHTED:
            term = term * tl.load(values + at)[:, None]
        acc += term
        t += 1
    for k in tl.static_range(3):
        if klass == k:
            _finish(acc, rows + tile * T, row_scale, start, start_scale, total, total_scale, scale_at, out, width, onto,
                    real, 4**k, T, C, START, TOTAL, PER_RUN)  # fmt: skip


@final
class _Matrix:
    """One sparse matrix on a device, in one floating type, and vectors that scale its rows and columns."""

    def __init__(self, plan: RowPlan, n: int, kind: int, *, flipped: bool) -> None:
        self.plan, self.n, self._kind, self._flipped = plan, n, kind, flipped

    def apply(
        self,
        dense: Tensor,
        row_scale: Tensor,
        drawn: Masks,
        *,
        step: int = 0,
        steps: int = 1,
        start: tuple[Tensor, Tensor] | None = None,
        total: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Return row_scale * (drop(M) dense) + start_scale * start; add total_scale * (drop(M) dense) to the total.

        All scales have shape (n,), or all (R, n).
        """
        plan, dropped = self.plan, drawn.law.digits > 0
        runs, _, width = dense.shape
        out = dense.new_empty(runs, self.n, width)
        if out.numel() == 0:
            return out
        together, programs = (width, runs) if dropped else (runs * width, 1)
        columns = min(power_of_two(together), _MOST_COLUMNS)
        none = dense, row_scale  # not read
        _apply[(plan.count, -(-together // columns), programs)](
            plan.tiles, plan.rows, plan.index, row_scale if plan.values is None else plan.values, dense, row_scale,
            *(start or none), *(total or none), out, drawn.epoch, step, steps, drawn.seeds,
            self.n, plan.columns, width, runs, *drawn.law,
            T=plan.slots, C=columns, STREAM=self._kind, FLIPPED=self._flipped, DROP=dropped,
            WEIGHTED=plan.values is not None, START=start is not None, TOTAL=total is not None,
            PER_RUN=row_scale.ndim == 2, ACC=accumulator(dense), num_warps=4,
        )  # fmt: skip
        return out


@final
class TritonFeatures(FeatureProduct):
    """drop(X) W by rows of X; the adjoint by rows of X^T, which is stored apart."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        self._sides = Sides(matrix)
        self._known: dict[Any, _Matrix] = {}

    def apply(self, side: int, operand: Tensor, draw: Draw | None) -> Tensor:
        key = side, operand.device, operand.dtype
        if key not in self._known:
            m = self._sides[side]
            values = torch.from_numpy(m.data.copy()).to(operand.dtype)
            plan = row_plan(m.indptr, m.indices, m.shape[1], slots=SLOTS, device=operand.device, values=values)
            self._known[key] = _Matrix(plan, m.shape[0], FEATURES, flipped=side == 1)
        matrix, drawn = self._known[key], Masks.of(draw, len(operand), operand.device)
        return matrix.apply(operand.contiguous(), operand.new_full((matrix.n,), drawn.law.scale), drawn)


class TritonSteps(StepPropagation):
    """Power steps in scaled variables, so that no value per edge is stored for an unweighted graph.

    With T = S_r A S_c and y = S_c z, a step z' = (1 - alpha) T z + alpha h is

        y' = (1 - alpha) S_c S_r A y + alpha S_c h,

    one scale per node; the last step leaves out the factor S_c and gives z. The adjoint runs over A^T with the scales
    exchanged, y = S_r g, and collects dH = alpha (g_1 + ... + g_K) + g_0 on the way.
    """

    def __init__(self, transition: Transition, alpha: float | Tensor, steps: int) -> None:
        self.alpha, self._steps = alpha, steps
        self._sides = transition, transition.transpose
        self._known: dict[Any, tuple[_Matrix, Tensor, Tensor]] = {}
        self._with_masks: dict[Any, DroppedSteps] = {}

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        start = predictions.contiguous()
        if self._steps == 0:
            return start.clone()
        dropped = self._dropped(0, start, draw)
        if dropped is not None:
            return dropped
        matrix, drawn, alpha, arrived, columns, state = self._begin(0, start, draw)
        teleports = isinstance(alpha, Tensor) or alpha > 0
        # all steps but the last write scaled states; the products are made once, not at every step
        scales = [(arrived * factor, alpha * factor) for factor in (columns, torch.ones_like(columns))]
        for step in range(self._steps):
            scale, share = scales[step == self._steps - 1]
            added = (start, share) if teleports else None
            state = matrix.apply(state, scale, drawn, step=step, steps=self._steps, start=added)
        return state

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        gradient = gradient.contiguous()
        if self._steps == 0:
            return gradient.clone()
        dropped = self._dropped(1, gradient, draw)
        if dropped is not None:
            return dropped
        matrix, drawn, alpha, arrived, columns, state = self._begin(1, gradient, draw)
        total = gradient * (alpha[:, :, None] if isinstance(alpha, Tensor) else alpha)
        teleports = isinstance(alpha, Tensor) or alpha > 0
        scale, share = arrived * columns, arrived * alpha
        for step in reversed(range(self._steps)):
            added = (total, share if step > 0 else arrived) if teleports or step == 0 else None
            state = matrix.apply(state, scale, drawn, step=step, steps=self._steps, total=added)
        return total

    def _dropped(self, side: int, operand: Tensor, draw: Draw | None) -> Tensor | None:
        """Return steps with dropout in float32 by masks that are kept; None where there is no dropout, or float64."""
        if draw is None or operand.dtype != torch.float32 or operand.numel() == 0:
            return None
        drawn, key = (
            Masks.of(draw, len(operand), operand.device),
            (side, operand.device, operand.shape, draw.probability),
        )
        if drawn.law.digits == 0:
            return None
        if key not in self._with_masks:
            kept = {known: steps for known, steps in self._with_masks.items() if known[2][0] == len(operand)}
            self._with_masks = kept  # of as many runs: those of more are no longer in training
            self._with_masks[key] = DroppedSteps(
                self._sides[0],
                self.alpha,
                self._steps,
                operand.shape,
                draw.probability,
                operand.device,
                adjoint=side == 1,
            )
        return self._with_masks[key].apply(operand, drawn)

    def _begin(self, side: int, start: Tensor, draw: Draw | None) -> tuple[_Matrix, Masks, Any, Tensor, Tensor, Tensor]:
        """Return A or its transpose, the draw, alpha (a number, or (R, 1)), (1 - alpha) S_r over the keep probability,
        S_c and the first scaled state.
        """
        key, drawn = (side, start.device, start.dtype), Masks.of(draw, len(start), start.device)
        if key not in self._known:
            t = self._sides[side]
            values = None if t.weights is None else torch.from_numpy(t.weights).to(start.dtype)
            plan = row_plan(t.indptr, t.indices, t.n_nodes, slots=SLOTS, device=start.device, values=values)
            matrix = _Matrix(plan, t.n_nodes, EDGES, flipped=side == 1)
            scales = (torch.from_numpy(scale).to(start) for scale in (t.row_scale, t.column_scale))
            self._known[key] = (matrix, *scales)
        matrix, rows, columns = self._known[key]
        alpha, rest = self.alpha, (1 - self.alpha) * drawn.law.scale
        if isinstance(rest, Tensor):
            alpha, rest = torch.stack([torch.as_tensor(alpha), rest])[:, :, None].to(start)
        return matrix, drawn, alpha, rest * rows, columns, start * columns[:, None]
