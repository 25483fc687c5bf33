"""The propagation's part of the fused trainer: three ways from predictions to logits and back.

Each leaves the training and the stopping logits where `forward` returns them, and turns the gradient of the training
logits, which the loss kernel writes where `gradient` says, into that of the predictions.

The states of power steps lie side by side for the training pass and the evaluation, (R, 2, n + 1, 2 ROW) with two
states to step between and a row of zeros for padding. One pass over the edges moves both: all entries carry the
evaluation's half, the kept ones the other half too. Steps are made in scaled variables, y = S_c z (see `TritonSteps`),
so that an unweighted graph stores no value per edge. Each step is a launch over all runs; within a captured graph a
launch costs little.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, final

import torch
import triton.language as tl
from torch import Tensor

from pprop.kernels.random_bits import EDGES, Bernoulli
from pprop.kernels.trainer import PropagateRows, PropagateSteps, TrainerSpec
from pprop.kernels.triton_gpu.bits import Planes, loop_end, plane_of
from pprop.kernels.triton_gpu.gather import gather, gather_kept, rows_of, tile_of
from pprop.kernels.triton_gpu.launch import Drawn, Shape, Tuning, device, kernel, power_of_two
from pprop.kernels.triton_gpu.network import Network
from pprop.kernels.triton_gpu.plan import row_plan
from pprop.kernels.triton_gpu.rows import launch_rows


@device
def _finish(
    acc, row_at, fixed, target, row_scale, column_scale, first, last, alpha, keep_scale,
    E: tl.constexpr, T: tl.constexpr, C: tl.constexpr, ROW: tl.constexpr, ADJOINT: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """y' = S_c ((1 - alpha) S_r sum + alpha h); the last step leaves out S_c.

    ADJOINT: g = (1 - alpha) S_r sum; y' = S_c g, and alpha g (g itself in the last step) goes to the total. Each side
    loads in the order that leaves the gathers before it the most loads in flight.
    """
    rows = tl.load(row_at + tl.arange(0, T // E) * E)
    column = first + tl.arange(0, C)
    there = rows >= 0
    width: tl.constexpr = ROW if ADJOINT else 2 * ROW
    if WIDE:
        rows = rows.to(tl.int64)
    at = rows[:, None] * width + column[None, :]
    scale = tl.load(row_scale + rows, mask=there, other=0.0)
    factor = tl.load(column_scale + rows, mask=there, other=0.0)
    there = there[:, None] if width % C == 0 else there[:, None] & (column < width)[None, :]
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
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, ROW: tl.constexpr, RING: tl.constexpr, DROP: tl.constexpr,
    WEIGHTS: tl.constexpr, ADJOINT: tl.constexpr, TILES: tl.constexpr, ALPHAS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """TILES neighbouring tiles of one step of one run, after `done` steps.

    `fixed` is H, read in every step, or with ADJOINT the gradient's total, added to in every step. `alphas` is one
    number, which takes no register, or with ALPHAS points to one a run.
    """
    width: tl.constexpr = ROW if ADJOINT else 2 * ROW
    begin, run = tl.program_id(0) * TILES, tl.program_id(1)
    alpha = tl.load(alphas + run) if ALPHAS else alphas
    step = steps - 1 - done if ADJOINT else done  # the adjoint takes the masks in reverse
    position = (tl.load(clock) + ahead) * steps + step
    plane, most_at = plane_of(planes, run, position, words, RING), plane_of(rounds, run, position, groups, RING)
    size = (n + 1).to(tl.int64) * width
    state = states + run * 2 * size
    source, target = state + (done % 2) * size, state + ((done + 1) % 2) * size
    last = done == steps - 1
    for tile in range(loop_end(begin), loop_end(tl.minimum(begin + TILES, count))):
        klass, base, length, word = tile_of(tiles, tile)
        for first in tl.static_range(0, width, C):
            if ADJOINT and DROP:
                acc = gather_kept(source, plane + word, most_at + word // T, index, values, base, length, first, width,
                                  T, C, U, WEIGHTS, WIDE)  # fmt: skip
            else:
                acc = gather(source, plane + word, index, values, base, length, first, width,
                             T, C, U, ROW, DROP, WEIGHTS, WIDE)  # fmt: skip
            row_at = rows + tile * T
            for k in tl.static_range(4):
                if 4**k <= T:
                    if klass == k:
                        _finish(acc, row_at, fixed + run * size, target, row_scale, column_scale, first, last,
                                alpha, keep_scale, 4**k, T, C, ROW, ADJOINT, WIDE)  # fmt: skip


class Gradient(NamedTuple):
    """Where the loss kernel writes the gradient: its mode, buffers, and what the steps scale by; alphas (R,)."""

    mode: int
    total: Tensor
    states: Tensor
    column_scale: Tensor
    alphas: Tensor


class Propagation(ABC):
    """Predictions of both passes to logits, and the gradient back; buffers for R runs.

    Attributes
    ----------
    predictions
        The training pass's predictions, then the evaluation's, shape (R, n + 1, 2 row).
    above
        The gradient of the training pass's predictions, after `backward`, shape (R, n + 1, row).
    by_node
        Whether logits have a row for every node; otherwise one for every node of the set.
    """

    by_node: bool = True
    gradient: Gradient

    def __init__(self, spec: TrainerSpec, shape: Shape) -> None:
        self._runs, self._device = len(spec.seeds), spec.weights[0].device
        self.predictions = torch.zeros(self._runs, shape.n + 1, 2 * shape.row, device=self._device)
        self.above = torch.zeros(self._runs, shape.n + 1, shape.row, device=self._device)

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:  # noqa: B027
        """Draw the masks of epoch clock + ahead."""

    @abstractmethod
    def forward(self, network: Network, clock: Tensor, seeds: Tensor, *, ahead: int) -> tuple[Tensor, Tensor]:
        """Make the predictions and propagate them; return training and stopping logits."""

    def backward(self, clock: Tensor, seeds: Tensor) -> None:  # noqa: B027
        """Fill `above` from the gradient of the training logits."""

    def keep(self, slots: Tensor) -> None:
        """Go on with these runs."""
        self._runs = len(slots)


@final
class NoPropagation(Propagation):
    """Logits are predictions."""

    def __init__(self, spec: TrainerSpec, shape: Shape) -> None:
        super().__init__(spec, shape)
        self.gradient = Gradient(1, self.above, self.above, self.above, self.above)

    def forward(self, network: Network, clock: Tensor, seeds: Tensor, *, ahead: int) -> tuple[Tensor, Tensor]:
        network.predict(self.predictions, None, None, clock, ahead=ahead)
        return _halves(self.predictions)


@final
class StepsPropagation(Propagation):
    """K power steps in scaled variables, one launch a step."""

    def __init__(self, spec: TrainerSpec, steps: PropagateSteps, shape: Shape, tuning: Tuning) -> None:
        super().__init__(spec, shape)
        runs, device = self._runs, self._device
        self._steps, self._tuning = steps.steps, tuning
        alphas = steps.alphas(runs).to(device)
        self._alphas = alphas.contiguous() if isinstance(steps.alpha, Tensor) else steps.alpha
        self._n, self._row = shape.n, shape.row
        self._columns = [min(power_of_two(width), 128) for width in (2 * shape.row, shape.row)]
        self._values: list[Tensor] = []
        self._scales: list[tuple[Tensor, ...]] = []
        self._planes: list[Planes] = []
        for side, t in enumerate((steps.transition, steps.transition.transpose)):
            plan = row_plan(
                t.indptr, t.indices, shape.n, slots=128 * tuning.tile_warps // self._columns[side],
                unroll=tuning.step_unroll, limit=tuning.most_iterations(shape.n, len(t.indices)), device=device,
                values=None if t.weights is None else torch.from_numpy(t.weights).float(),
            )  # fmt: skip
            scales = tuple(torch.from_numpy(scale).float().to(device) for scale in (t.row_scale, t.column_scale))
            self._scales.append(scales)
            self._values.append(scales[0] if plan.values is None else plan.values)
            self._planes.append(Planes(plan, EDGES, steps.steps, runs, spec.matrix_dropout, flipped=side == 1))
        self._weights = "" if steps.transition.weights is None else "stored"
        self.states = torch.zeros(runs, 2, shape.n + 1, 2 * self._row, device=device)
        self.above_states = torch.zeros(runs, 2, shape.n + 1, self._row, device=device)
        self.gradient = Gradient(2, self.above, self.above_states, self._scales[1][1], alphas.contiguous())

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        for planes in self._planes:
            planes.draw(clock, seeds, ahead=ahead, force=force)

    def forward(self, network: Network, clock: Tensor, seeds: Tensor, *, ahead: int) -> tuple[Tensor, Tensor]:
        self.predict(network, clock, ahead=ahead)
        self.forward_steps(clock, ahead=ahead)
        return _halves(self.states[:, self._steps % 2])

    def predict(self, network: Network, clock: Tensor, *, ahead: int) -> None:
        """Make the predictions and the first state."""
        network.predict(self.predictions, self.states, self._scales[0][1], clock, ahead=ahead)

    def forward_steps(self, clock: Tensor, *, ahead: int) -> None:
        """Make the steps from states[:, 0]."""
        self._launch(0, clock, ahead, self.predictions, self.states)

    def backward(self, clock: Tensor, seeds: Tensor) -> None:
        self._launch(1, clock, 0, self.above, self.above_states)

    def keep(self, slots: Tensor) -> None:
        super().keep(slots)
        if isinstance(self._alphas, Tensor):
            self._alphas = self._alphas[slots]
        self.gradient = self.gradient._replace(alphas=self.gradient.alphas[slots])

    def _launch(self, side: int, clock: Tensor, ahead: int, fixed: Tensor, states: Tensor) -> None:
        planes, tuning = self._planes[side], self._tuning
        tiles = tuning.step_tiles or (4 if self._row >= 16 else 1)
        for done in range(self._steps):
            power_step[(-(-planes.plan.count // tiles), self._runs)](
                clock, ahead, *planes.structure(planes.plan.index), self._values[side], fixed, states,
                *self._scales[side], self._n, done, self._steps, self._alphas, planes.law.scale,
                T=planes.plan.slots, C=self._columns[side], U=tuning.step_unroll, ROW=self._row,
                RING=planes.ring, DROP=planes.law.digits > 0, WEIGHTS=self._weights, ADJOINT=side == 1, TILES=tiles,
                ALPHAS=isinstance(self._alphas, Tensor), WIDE=2 * self._row * self._n >= 2**31, num_warps=tuning.tile_warps,
                **tuning.registers(tuning.step_registers, tuning.tile_warps),
            )  # fmt: skip


@final
class RowsPropagation(Propagation):
    """Rows of the PPR matrix: those of the training nodes dropped, those of the stopping nodes whole."""

    by_node = False

    def __init__(self, spec: TrainerSpec, rows: PropagateRows, shape: Shape) -> None:
        super().__init__(spec, shape)
        device = self._device
        self._block, self._nodes = rows.block.to(device).contiguous(), rows.nodes.to(device)
        row_of_node = rows.row_of_node.to(device)
        self._rows = [row_of_node[nodes.nodes.to(device)] for nodes in (spec.train, spec.stopping)]
        self._laws = [Bernoulli.from_probability(p) for p in (spec.matrix_dropout, 0.0)]
        dtype = torch.promote_types(self._block.dtype, torch.float32)
        self._scales = [torch.full((1,), law.scale, dtype=dtype, device=device) for law in self._laws]
        width = shape.row
        self._logits = [torch.zeros(self._runs, at.shape[1], width, device=device) for at in self._rows]
        slope = torch.zeros_like(self._logits[0])
        self.gradient = Gradient(1, slope, slope, slope, slope)

    # a word serves 32 columns: masks are drawn as the rows are read

    def forward(self, network: Network, clock: Tensor, seeds: Tensor, *, ahead: int) -> tuple[Tensor, Tensor]:
        network.predict(self.predictions, None, None, clock, ahead=ahead)
        for side, half in enumerate(_halves(self.predictions)):
            self._launch(side, half, self._logits[side], clock, ahead, seeds, adjoint=False)
        return self._logits[0], self._logits[1]

    def backward(self, clock: Tensor, seeds: Tensor) -> None:
        self._launch(0, self.gradient.total, self.above, clock, 0, seeds, adjoint=True)

    def keep(self, slots: Tensor) -> None:
        super().keep(slots)
        self._rows = [rows[slots] for rows in self._rows]

    def _launch(
        self, side: int, operand: Tensor, out: Tensor, clock: Tensor, ahead: int, seeds: Tensor, *, adjoint: bool
    ) -> None:
        drawn, scale = Drawn(clock, seeds, self._laws[side]), self._scales[side]
        launch_rows(
            self._block, self._nodes, self._rows[side], operand, out, drawn, scale, adjoint=adjoint, ahead=ahead
        )


def _halves(both: Tensor) -> tuple[Tensor, Tensor]:
    classes = both.shape[-1] // 2
    return both[..., :classes], both[..., classes:]


def make_propagation(spec: TrainerSpec, shape: Shape, tuning: Tuning) -> Propagation:
    """Bind the propagation of a trainer to buffers for R runs."""
    if spec.propagation is None:
        return NoPropagation(spec, shape)
    if isinstance(spec.propagation, PropagateSteps):
        return StepsPropagation(spec, spec.propagation, shape, tuning)
    return RowsPropagation(spec, spec.propagation, shape)
