"""K power steps over tiles with planes of masks, one launch a step: those of the fused trainer, and dropped steps alone.

The states are (R, 2, n + 1, width): two to step between, and a row of zeros for padding. Steps are made in scaled
variables, y = S_c z (see `TritonSteps`), so that an unweighted graph stores no value per edge. Each step is a launch over
all runs; within a captured graph a launch costs little.
"""

from __future__ import annotations

from typing import final

import torch
import triton.language as tl
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.random_bits import EDGES
from pprop.kernels.triton_gpu.bits import Planes, loop_end, mask_words, plane_of, ring_size
from pprop.kernels.triton_gpu.gather import gather, gather_kept, rows_of, tile_of
from pprop.kernels.triton_gpu.launch import Masks, Tuning, device, kernel, power_of_two
from pprop.kernels.triton_gpu.plan import row_plan


@device
def _finish(
    acc, row_at, fixed, target, row_scale, column_scale, first, last, alpha, keep_scale,
    E: tl.constexpr, T: tl.constexpr, C: tl.constexpr, ROW: tl.constexpr, WIDTH: tl.constexpr, ADJOINT: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """y' = S_c ((1 - alpha) S_r sum + alpha h); the last step leaves out S_c.

    ADJOINT: g = (1 - alpha) S_r sum; y' = S_c g, and alpha g (g itself in the last step) goes to the total. Each side
    loads in the order that leaves the gathers before it the most loads in flight.
    """
    rows = tl.load(row_at + tl.arange(0, T // E) * E)
    column = first + tl.arange(0, C)
    there = rows >= 0
    if WIDE:
        rows = rows.to(tl.int64)
    at = rows[:, None] * WIDTH + column[None, :]
    scale = tl.load(row_scale + rows, mask=there, other=0.0)
    factor = tl.load(column_scale + rows, mask=there, other=0.0)
    there = there[:, None] if WIDTH % C == 0 else there[:, None] & (column < WIDTH)[None, :]
    if ADJOINT:
        value = ((1.0 - alpha) * keep_scale * scale)[:, None] * rows_of(acc, E, T, C)
        old = tl.load(fixed + at, mask=there, other=0.0)
        tl.store(fixed + at, old + tl.where(last, 1.0, alpha) * value, mask=there)
        value = factor[:, None] * value
    else:
        factor = tl.where(last, 1.0, factor)
        old = tl.load(fixed + at, mask=there, other=0.0)
        share = tl.where(column < ROW, keep_scale, 1.0)
        arrived = ((1.0 - alpha) * scale * factor)[:, None] * share[None, :]
        value = arrived * rows_of(acc, E, T, C) + (alpha * factor)[:, None] * old
    tl.store(target + at, value, mask=there)


@kernel("ahead", "words", "groups", "done", "steps")
def power_step(
    clock, ahead, tiles, count, rows, index, planes, words, rounds, groups, values, fixed, states, row_scale,
    column_scale, n, done, steps, alphas, keep_scale,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, ROW: tl.constexpr, WIDTH: tl.constexpr, RING: tl.constexpr,
    DROP: tl.constexpr, WEIGHTS: tl.constexpr, ADJOINT: tl.constexpr, TILES: tl.constexpr, ALPHAS: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """TILES neighbouring tiles of one step of one run, after `done` steps.

    `fixed` is H, read in every step, or with ADJOINT the gradient's total, added to in every step. `alphas` is one
    number, which takes no register, or with ALPHAS points to one a run. Of the WIDTH numbers of a node, masks apply to the
    first ROW.
    """
    begin, run = tl.program_id(0) * TILES, tl.program_id(1)
    alpha = tl.load(alphas + run) if ALPHAS else alphas
    step = steps - 1 - done if ADJOINT else done  # the adjoint takes the masks in reverse
    position = (tl.load(clock) + ahead) * steps + step
    plane, most_at = plane_of(planes, run, position, words, RING), plane_of(rounds, run, position, groups, RING)
    size = (n + 1).to(tl.int64) * WIDTH
    state = states + run * 2 * size
    source, target = state + (done % 2) * size, state + ((done + 1) % 2) * size
    last = done == steps - 1
    for tile in range(loop_end(begin), loop_end(tl.minimum(begin + TILES, count))):
        klass, base, length, word = tile_of(tiles, tile)
        for first in tl.static_range(0, WIDTH, C):
            if DROP and WIDTH == ROW:
                acc = gather_kept(source, plane + word, most_at + word // T, index, values, base, length, first, WIDTH,
                                  T, C, U, WEIGHTS, WIDE)  # fmt: skip
            else:
                acc = gather(source, plane + word, index, values, base, length, first, WIDTH,
                             T, C, U, ROW, DROP, WEIGHTS, WIDE)  # fmt: skip
            row_at = rows + tile * T
            for k in tl.static_range(4):
                if 4**k <= T:
                    if klass == k:
                        _finish(acc, row_at, fixed + run * size, target, row_scale, column_scale, first, last,
                                alpha, keep_scale, 4**k, T, C, ROW, WIDTH, ADJOINT, WIDE)  # fmt: skip


def step_mask_bytes(n: int, entries: int, steps: int, width: int, tuning: Tuning) -> int:
    """Return about how many bytes the masks of K steps of a run take, forth and back, from above."""
    slots = 128 * tuning.tile_warps // min(power_of_two(width), 128)
    words = mask_words(n, entries, slots, tuning.most_iterations(n, entries))
    return 32 * ring_size(steps) * (2 * 4 * words + 2 * words // slots)


@final
class PlannedSteps:
    """K steps by the rows of a transition matrix, or with `adjoint` by those of its transpose, for R runs.

    Parameters
    ----------
    alpha
        The teleport probability, or one for every run, (R,).
    row, width
        Numbers of a node that masks apply to, and all of them: more where a pass without dropout is beside it.
    dropout
        Probability of dropping an entry.

    Attributes
    ----------
    planes
        The masks.
    row_scale, column_scale
        S_r and S_c, (n,).
    """

    def __init__(
        self,
        transition: Transition,
        alpha: float | Tensor,
        steps: int,
        runs: int,
        dropout: float,
        tuning: Tuning,
        place: torch.device,
        *,
        row: int,
        width: int,
        adjoint: bool,
    ) -> None:
        t = transition.transpose if adjoint else transition
        n, self._steps, self._alpha, self._tuning = t.n_nodes, steps, alpha, tuning
        self._n, self._row, self._width, self._adjoint = n, row, width, adjoint
        self._columns, self._weighted = min(power_of_two(width), 128), t.weights is not None
        plan = row_plan(
            t.indptr,
            t.indices,
            n,
            slots=128 * tuning.tile_warps // self._columns,
            unroll=tuning.step_unroll,
            limit=tuning.most_iterations(n, len(t.indices)),
            device=place,
            values=None if t.weights is None else torch.from_numpy(t.weights).float(),
        )
        self.row_scale, self.column_scale = (
            torch.from_numpy(scale).float().to(place) for scale in (t.row_scale, t.column_scale)
        )
        self._values = self.row_scale if plan.values is None else plan.values
        self.planes = Planes(plan, EDGES, steps, runs, dropout, flipped=adjoint, walked=width == row)

    def launch(self, clock: Tensor, ahead: int, fixed: Tensor, states: Tensor) -> None:
        """Make the steps of epoch clock + ahead from states[:, 0]; `fixed` is what `power_step` says."""
        planes, tuning, alphas = self.planes, self._tuning, isinstance(self._alpha, Tensor)
        tiles = tuning.step_tiles or (4 if self._row >= 16 else 1)
        for done in range(self._steps):
            power_step[(-(-planes.plan.count // tiles), len(states))](
                clock, ahead, *planes.structure(planes.plan.index), self._values, fixed, states, self.row_scale,
                self.column_scale, self._n, done, self._steps, self._alpha, planes.law.scale, T=planes.plan.slots,
                C=self._columns, U=tuning.step_unroll, ROW=self._row, WIDTH=self._width, RING=planes.ring,
                DROP=planes.law.digits > 0, WEIGHTS="stored" if self._weighted else "", ADJOINT=self._adjoint,
                TILES=tiles, ALPHAS=alphas, WIDE=2 * self._row * self._n >= 2**31, num_warps=tuning.tile_warps,
                **tuning.registers(tuning.step_registers, tuning.tile_warps),
            )  # fmt: skip

    def keep(self, slots: Tensor) -> None:
        """Go on with these runs."""
        if isinstance(self._alpha, Tensor):
            self._alpha = self._alpha[slots]


@final
class DroppedSteps:
    """Power steps with dropout, forth or with `adjoint` back, of R runs with operands (n, columns) in float32.

    The masks of 32 steps are drawn at once and kept; what has been drawn is noted on the device, so that launches that are
    captured draw what is missing when they are replayed.
    """

    def __init__(
        self,
        transition: Transition,
        alpha: float | Tensor,
        steps: int,
        shape: torch.Size,
        dropout: float,
        place: torch.device,
        *,
        adjoint: bool,
    ) -> None:
        tuning, (runs, _, columns) = Tuning(), shape
        row = tuning.row(columns)
        if isinstance(alpha, Tensor):
            alpha = alpha.to(place, torch.float32).contiguous()
        self._steps = PlannedSteps(
            transition, alpha, steps, runs, dropout, tuning, place, row=row, width=row, adjoint=adjoint
        )
        self._alpha, self._count, self._row, self._adjoint = alpha, steps, row, adjoint
        self._held = torch.full((1 + runs,), -2, device=place)

    def apply(self, operand: Tensor, drawn: Masks) -> Tensor:
        """Return the dropped steps of an operand (R, n, columns), or their adjoint."""
        runs, n, columns = operand.shape
        states = operand.new_zeros(runs, 2, n + 1, self._row)
        torch.mul(operand, self._steps.column_scale[:, None], out=states[:, 0, :n, :columns])
        fixed = operand.new_zeros(runs, n + 1, self._row)
        share = 1.0
        if self._adjoint:
            share = self._alpha[:, None, None] if isinstance(self._alpha, Tensor) else self._alpha
        torch.mul(operand, share, out=fixed[:, :n, :columns])
        self._steps.planes.draw(drawn.epoch, drawn.seeds, ahead=0, held=self._held)
        torch.cat([drawn.epoch, drawn.seeds], out=self._held)
        self._steps.launch(drawn.epoch, 0, fixed, states)
        found = (fixed if self._adjoint else states[:, self._count % 2])[:, :n, :columns]
        return found.clone(memory_format=torch.contiguous_format)  # of its own: autograd refuses to change a view
