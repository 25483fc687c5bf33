"""The sparse operators one by one, in float32 and float64, with masks drawn as the entries are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import torch
import triton.language as tl
from scipy import sparse
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.contract import Draw, FeatureProduct, StepPropagation
from pprop.kernels.random_bits import EDGES, FEATURES, Bernoulli
from pprop.kernels.triton_gpu._jit import device, epoch_tensor, kernel, power_of_two
from pprop.kernels.triton_gpu.bits import keep_word
from pprop.kernels.triton_gpu.first_layer import rows_of
from pprop.kernels.triton_gpu.plan import Plan, row_plan

__all__ = ["TritonFeatures", "TritonSteps"]

_SLOTS = 32
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
    klass, base, length = tl.load(tiles + tile * 4), tl.load(tiles + tile * 4 + 1), tl.load(tiles + tile * 4 + 2)
    row = tl.load(rows + tile * T + slot)
    acc = tl.zeros((T, C), ACC)
    t = 0
    while t < length:
        at = base + t * T + slot
        j = tl.load(index + at)
        kept = j < columns
        if DROP:
            stream = tl.full((), STREAM, tl.int32)
            if FLIPPED:
                first, second = j, row
            else:
                first, second = row, j
            word = keep_word(seed, stream, first.to(tl.uint32), second.to(tl.uint32), position >> 5, threshold, digits)
            kept = kept & (((word >> (position & 31).to(tl.uint32)) & 1) == 1)
        where = dense + j[:, None].to(tl.int64) * width + into[None, :]
        term = tl.load(where, mask=kept[:, None] & real[None, :], other=0.0)
        if WEIGHTED:
            term = term * tl.load(values + at)[:, None]
        acc += term
        t += 1
    row_at = rows + tile * T
    if klass == 0:
        _finish(acc, row_at, row_scale, start, start_scale, total, total_scale, scale_at, out, width, onto,
                real, 1, T, C, START, TOTAL, PER_RUN)  # fmt: skip
    if klass == 1:
        _finish(acc, row_at, row_scale, start, start_scale, total, total_scale, scale_at, out, width, onto,
                real, 4, T, C, START, TOTAL, PER_RUN)  # fmt: skip
    if klass == 2:
        _finish(acc, row_at, row_scale, start, start_scale, total, total_scale, scale_at, out, width, onto,
                real, 16, T, C, START, TOTAL, PER_RUN)  # fmt: skip


@final
class _Matrix:
    """One sparse matrix on a device, in one floating type."""

    def __init__(self, plan: Plan, values: Tensor | None, n: int, kind: int, *, flipped: bool) -> None:
        self.plan, self.n, self._kind, self._flipped = plan, n, kind, flipped
        self._values = values

    def apply(
        self,
        dense: Tensor,
        row_scale: Tensor,
        draw: Draw | None,
        epoch: Tensor,
        *,
        step: int = 0,
        steps: int = 1,
        start: tuple[Tensor, Tensor] | None = None,
        total: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Return row_scale * (drop(M) dense) + start_scale * start; add total_scale * (drop(M) dense) to the total.

        All scales have shape (n,), or all (R, n).
        """
        plan = self.plan
        runs, _, width = dense.shape
        out = dense.new_empty(runs, self.n, width)
        if out.numel() == 0:
            return out
        together, programs = (width, runs) if draw is not None else (runs * width, 1)
        columns = min(power_of_two(together), _MOST_COLUMNS)
        law = Bernoulli.from_probability(0.5 if draw is None else draw.probability)
        values = row_scale if self._values is None else self._values
        _apply[(plan.count, -(-together // columns), programs)](
            plan.tiles, plan.rows, plan.index, values, dense, row_scale, *(start or (dense, row_scale)),
            *(total or (dense, row_scale)), out, epoch, step, steps, epoch if draw is None else draw.seeds.contiguous(),
            self.n, plan.columns, width, runs, law.threshold, law.digits,
            T=plan.slots, C=columns, STREAM=self._kind, FLIPPED=self._flipped, DROP=draw is not None,
            WEIGHTED=self._values is not None, START=start is not None, TOTAL=total is not None,
            PER_RUN=row_scale.ndim == 2, ACC=tl.float64 if dense.dtype == torch.float64 else tl.float32, num_warps=4,
        )  # fmt: skip
        return out


def _epoch(draw: Draw | None, runs: int, like: Tensor) -> Tensor:
    """The epoch in device memory; also what stands in for the seeds when nothing is dropped."""
    return epoch_tensor(draw, like.device, runs)


def _scale(draw: Draw | None) -> float:
    return 1.0 if draw is None else Bernoulli.from_probability(draw.probability).scale


def _remember(
    known: dict[Any, _Matrix], side: int, like: Tensor, make: Callable[[int, torch.device, torch.dtype], _Matrix]
) -> _Matrix:
    key = (side, like.device, like.dtype)
    if key not in known:
        known[key] = make(side, like.device, like.dtype)
    return known[key]


@final
class TritonFeatures(FeatureProduct):
    """drop(X) W by rows of X; the adjoint by rows of X^T, which is stored apart."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        flipped = matrix.T.tocsr()
        flipped.sort_indices()
        self._sides = matrix, flipped
        self._known: dict[Any, _Matrix] = {}

    def forward(self, weights: Tensor, draw: Draw | None) -> Tensor:
        return self._apply(0, weights, draw)

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        return self._apply(1, gradient, draw)

    def _apply(self, side: int, operand: Tensor, draw: Draw | None) -> Tensor:
        matrix = _remember(self._known, side, operand, self._make)
        scale = operand.new_full((matrix.n,), _scale(draw))
        return matrix.apply(operand.contiguous(), scale, draw, _epoch(draw, len(operand), operand))

    def _make(self, side: int, device: torch.device, dtype: torch.dtype) -> _Matrix:
        matrix = self._sides[side]
        plan = row_plan(matrix.indptr, matrix.indices, matrix.shape[1], slots=_SLOTS, device=device)
        values = plan.placed(torch.from_numpy(matrix.data.copy()).to(dtype))
        return _Matrix(plan, values, matrix.shape[0], FEATURES, flipped=side == 1)


@final
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
        self._known: dict[Any, _Matrix] = {}
        self._scales: dict[Any, tuple[Tensor, Tensor]] = {}

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        start = predictions.contiguous()
        if self._steps == 0:
            return start.clone()
        matrix, rows, columns = self._side(0, start)
        epoch, ones = _epoch(draw, len(start), start), torch.ones_like(columns)
        alpha, rest = self._weights(draw, start)
        arrived, teleports = rest * rows, isinstance(alpha, Tensor) or alpha > 0
        state = start * columns[:, None]
        for step in range(self._steps):
            factor = ones if step == self._steps - 1 else columns
            state = matrix.apply(
                state, arrived * factor, draw, epoch, step=step, steps=self._steps,
                start=(start, alpha * factor) if teleports else None,
            )  # fmt: skip
        return state

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        gradient = gradient.contiguous()
        if self._steps == 0:
            return gradient.clone()
        matrix, rows, columns = self._side(1, gradient)
        epoch = _epoch(draw, len(gradient), gradient)
        alpha, rest = self._weights(draw, gradient)
        arrived, teleports = rest * rows, isinstance(alpha, Tensor) or alpha > 0
        total = gradient * (alpha[:, :, None] if isinstance(alpha, Tensor) else alpha)
        state = gradient * columns[:, None]
        for step in reversed(range(self._steps)):
            share = arrived * (alpha if step > 0 else 1.0)
            state = matrix.apply(
                state, arrived * columns, draw, epoch, step=step, steps=self._steps,
                total=(total, share) if teleports or step == 0 else None,
            )  # fmt: skip
        return total

    def _weights(self, draw: Draw | None, like: Tensor) -> tuple[Any, Any]:
        """Return alpha, and 1 - alpha over the keep probability: numbers, or (R, 1)."""
        if not isinstance(self.alpha, Tensor):
            return self.alpha, (1 - self.alpha) * _scale(draw)
        alpha = self.alpha[:, None].to(like.device)
        return alpha.to(like.dtype), ((1 - alpha) * _scale(draw)).to(like.dtype)

    def _side(self, side: int, like: Tensor) -> tuple[_Matrix, Tensor, Tensor]:
        matrix, key = _remember(self._known, side, like, self._make), (side, like.device, like.dtype)
        if key not in self._scales:
            rows, columns = self._sides[side].row_scale, self._sides[side].column_scale
            place = (like.device, like.dtype)
            self._scales[key] = torch.from_numpy(rows).to(*place), torch.from_numpy(columns).to(*place)
        return matrix, *self._scales[key]

    def _make(self, side: int, device: torch.device, dtype: torch.dtype) -> _Matrix:
        t = self._sides[side]
        plan = row_plan(t.indptr, t.indices, t.n_nodes, slots=_SLOTS, device=device)
        values = None if t.weights is None else plan.placed(torch.from_numpy(t.weights).to(dtype))
        return _Matrix(plan, values, t.n_nodes, EDGES, flipped=side == 1)
