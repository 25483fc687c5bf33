"""The propagation's part of the fused trainer: three ways from predictions to logits and back.

Each leaves the training and the stopping logits where `logits` says, and turns the gradient of the training logits,
which the loss kernel writes where `gradient` says, into that of the predictions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor

from pprop.kernels.random_bits import EDGES, Bernoulli
from pprop.kernels.trainer import LabelledNodes, PropagateRows, PropagateSteps
from pprop.kernels.triton_gpu import power
from pprop.kernels.triton_gpu.network import Network, Shape
from pprop.kernels.triton_gpu.plan import row_plan
from pprop.kernels.triton_gpu.planes import Planes
from pprop.kernels.triton_gpu.rows import launch_rows_adjoint, launch_rows_forward
from pprop.kernels.triton_gpu.tuning import Tuning

__all__ = ["Gradient", "NoPropagation", "Propagation", "RowsPropagation", "StepsPropagation", "make_propagation"]


@final
@dataclass(frozen=True)
class Gradient:
    """Where the loss kernel writes the gradient: its mode, buffers, and what the steps scale by; alphas (R,)."""

    mode: int
    total: Tensor
    states: Tensor
    column_scale: Tensor
    alphas: Tensor


class Propagation(ABC):
    """Predictions of both passes (R, n + 1, 2 classes) to logits, and the gradient back; buffers for R runs."""

    predictions: Tensor
    """(R, n + 1, 2 classes): the training pass's predictions, then the evaluation's."""
    above: Tensor
    """(R, n + 1, classes): the gradient of the training pass's predictions, after `backward`."""
    by_node: bool
    """Whether logits have a row for every node; otherwise one for every node of the set."""
    gradient: Gradient

    @abstractmethod
    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        """Draw the masks of epoch clock + ahead."""

    @abstractmethod
    def forward(self, network: Network, clock: Tensor, seeds: Tensor, *, ahead: int) -> tuple[Tensor, Tensor]:
        """Make the predictions and propagate them; return training and stopping logits."""

    @abstractmethod
    def backward(self, clock: Tensor, seeds: Tensor) -> None:
        """Fill `above` from the gradient of the training logits."""

    @abstractmethod
    def keep(self, slots: Tensor) -> None:
        """Go on with these runs."""


@final
class NoPropagation(Propagation):
    """Logits are predictions."""

    by_node = True

    def __init__(self, runs: int, shape: Shape, device: torch.device) -> None:
        self.predictions = torch.zeros(runs, shape.n + 1, 2 * shape.padded_classes, device=device)
        self.above = torch.zeros(runs, shape.n + 1, shape.padded_classes, device=device)
        self.gradient = Gradient(1, self.above, self.above, self.above, self.above)

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        pass

    def forward(self, network: Network, clock: Tensor, seeds: Tensor, *, ahead: int) -> tuple[Tensor, Tensor]:
        network.predict(self.predictions, None, None)
        return _halves(self.predictions)

    def backward(self, clock: Tensor, seeds: Tensor) -> None:
        pass

    def keep(self, slots: Tensor) -> None:
        pass


@final
class StepsPropagation(Propagation):
    """K power steps in scaled variables, one launch a step."""

    by_node = True

    def __init__(
        self,
        spec: PropagateSteps,
        runs: int,
        shape: Shape,
        dropout: float,
        tuning: Tuning,
        device: torch.device,
    ) -> None:
        self._steps, self._n, self._tuning, self._runs = spec.steps, shape.n, tuning, runs
        self._alphas = spec.alphas(runs).to(device).contiguous()
        self._classes = classes = shape.padded_classes
        self._warps = tuning.tile_warps
        self._columns = [min(2 * classes, 128), min(classes, 128)]

        sides = (spec.transition, spec.transition.transpose)
        self._plans = [
            row_plan(
                side.indptr,
                side.indices,
                shape.n,
                slots=128 * self._warps // columns,
                unroll=tuning.step_unroll,
                limit=tuning.step_limit,
                device=device,
            )
            for side, columns in zip(sides, self._columns, strict=True)
        ]
        self._weighted = spec.transition.weights is not None
        self._scales = [
            tuple(torch.from_numpy(scale).float().to(device) for scale in (side.row_scale, side.column_scale))
            for side in sides
        ]
        self._values = [
            self._scales[0][0] if side.weights is None else plan.placed(torch.from_numpy(side.weights).float())
            for side, plan in zip(sides, self._plans, strict=True)
        ]
        self._law = None if dropout == 0 or spec.steps == 0 else Bernoulli.from_probability(dropout)
        self._planes = [
            Planes(plan, EDGES, spec.steps, runs, dropout, flipped=side == 1)
            for side, plan in enumerate(self._plans)
            if self._law is not None
        ]
        self.predictions = torch.zeros(runs, shape.n + 1, 2 * classes, device=device)
        self.states = torch.zeros(runs, 2, shape.n + 1, 2 * classes, device=device)
        self.above = torch.zeros(runs, shape.n + 1, classes, device=device)
        self.above_states = torch.zeros(runs, 2, shape.n + 1, classes, device=device)
        # without a step the gradient of the logits is that of the predictions
        first_share = self._alphas if spec.steps > 0 else torch.ones_like(self._alphas)
        self.gradient = Gradient(2, self.above, self.above_states, self._scales[1][1], first_share)

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        for planes in self._planes:
            planes.draw(clock, seeds, ahead=ahead, force=force)

    def forward(self, network: Network, clock: Tensor, seeds: Tensor, *, ahead: int) -> tuple[Tensor, Tensor]:
        network.predict(self.predictions, self.states if self._steps > 0 else None, self._scales[0][1])
        self.forward_steps(clock, ahead=ahead)
        return _halves(self.predictions if self._steps == 0 else self.states[:, self._steps % 2])

    def forward_steps(self, clock: Tensor, *, ahead: int) -> None:
        """Make the steps from states[:, 0]."""
        arguments = (clock, ahead, *self._structure(0), self.predictions, self.states, *self._scales[0], self._n)
        self._launch(power.forward_tile, 0, arguments)

    def backward(self, clock: Tensor, seeds: Tensor) -> None:
        rounds = self._planes[1].rounds if self._planes else self._plans[1].rows
        structure = (*self._structure(1), rounds, rounds.shape[-1])
        arguments = (clock, *structure, self.above, self.above_states, *self._scales[1], self._n)
        self._launch(power.adjoint_tile, 1, arguments)

    def keep(self, slots: Tensor) -> None:
        self._runs, self._alphas = len(slots), self._alphas[slots]
        self.gradient = replace(self.gradient, alphas=self.gradient.alphas[slots])

    def _structure(self, side: int) -> tuple[Any, ...]:
        plan = self._plans[side]
        bits = self._planes[side].bits if self._planes else plan.rows
        return plan.tiles, plan.count, plan.rows, plan.index, self._values[side], bits, plan.words

    def _launch(self, one_step: Any, side: int, arguments: tuple[Any, ...]) -> None:
        if self._steps == 0:
            return
        plan = self._plans[side]
        dropped = self._law is not None
        constants = {
            "T": plan.slots,
            "C": self._columns[side],
            "U": self._tuning.step_unroll,
            "CLASSES": self._classes,
            "RING": self._planes[side].ring if self._planes else 1,
            "DROP": dropped,
            **({"KEPT": dropped and self._tuning.kept_only} if side == 1 else {}),
            "WEIGHTED": self._weighted,
            "AHEAD": self._tuning.load_ahead,
            "num_warps": self._warps,
            **self._tuning.registers(self._tuning.step_registers, self._warps),
        }
        scale = 1.0 if self._law is None else self._law.scale
        several = self._tuning.step_tiles or (4 if self._classes >= 16 else 1)
        for step in range(self._steps):
            one_step[(-(-plan.count // several), self._runs)](
                *arguments, step, self._steps, self._alphas, scale, **constants, TILES=several
            )


@final
class RowsPropagation(Propagation):
    """Rows of the PPR matrix: those of the training nodes dropped, those of the stopping nodes whole."""

    by_node = False

    def __init__(
        self, spec: PropagateRows, sets: list[LabelledNodes], shape: Shape, dropout: float, device: torch.device
    ) -> None:
        runs, classes = len(sets[0].nodes), shape.padded_classes
        self._block, self._nodes = spec.block.to(device).contiguous(), spec.nodes.to(device)
        row_of_node = spec.row_of_node.to(device)
        self._rows = [row_of_node[nodes.nodes.to(device)] for nodes in sets]
        self._law = None if dropout == 0 else Bernoulli.from_probability(dropout)
        scale = 1.0 if self._law is None else self._law.scale
        dtype = torch.promote_types(self._block.dtype, torch.float32)
        self._scales = [torch.full((1,), value, dtype=dtype, device=device) for value in (scale, 1.0)]
        self.predictions = torch.zeros(runs, shape.n + 1, 2 * classes, device=device)
        self.above = torch.zeros(runs, shape.n + 1, classes, device=device)
        self._logits = [torch.zeros(runs, rows.shape[1], classes, device=device) for rows in self._rows]
        slope = torch.zeros_like(self._logits[0])
        self.gradient = Gradient(1, slope, slope, slope, slope)

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        pass  # a word serves 32 columns: drawn as the rows are read

    def forward(self, network: Network, clock: Tensor, seeds: Tensor, *, ahead: int) -> tuple[Tensor, Tensor]:
        network.predict(self.predictions, None, None)
        masks = [(clock, ahead, seeds, self._scales[0], self._law), (clock, ahead, seeds, self._scales[1], None)]
        for side, half in enumerate(_halves(self.predictions)):
            rows, out = self._rows[side], self._logits[side]
            launch_rows_forward(self._block, self._nodes, rows, half, out, masks[side])
        return self._logits[0], self._logits[1]

    def backward(self, clock: Tensor, seeds: Tensor) -> None:
        mask = (clock, 0, seeds, self._scales[0], self._law)
        launch_rows_adjoint(self._block, self._nodes, self._rows[0], self.gradient.total, self.above, mask)

    def keep(self, slots: Tensor) -> None:
        self._rows = [rows[slots] for rows in self._rows]


def _halves(both: Tensor) -> tuple[Tensor, Tensor]:
    classes = both.shape[-1] // 2
    return both[..., :classes], both[..., classes:]


def make_propagation(
    spec: PropagateSteps | PropagateRows | None,
    sets: list[LabelledNodes],
    shape: Shape,
    dropout: float,
    tuning: Tuning,
    device: torch.device,
) -> Propagation:
    """Bind the propagation of a trainer to buffers for R runs."""
    runs = len(sets[0].nodes)
    if spec is None:
        return NoPropagation(runs, shape, device)
    if isinstance(spec, PropagateSteps):
        return StepsPropagation(spec, runs, shape, dropout, tuning, device)
    return RowsPropagation(spec, sets, shape, dropout, device)
