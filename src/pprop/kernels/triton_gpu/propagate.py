"""The propagation's part of the fused trainer: three ways from predictions to logits and back.

Each leaves the training and the stopping logits where `forward` returns them, and turns the gradient of the training
logits, which the loss kernel writes where `gradient` says, into that of the predictions.

The states of power steps lie side by side for the training pass and the evaluation, (R, 2, n + 1, 2 row). One pass over
the edges moves both: all entries carry the evaluation's half, the kept ones the other half too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, final

import torch
from torch import Tensor

from pprop.kernels.contract import PropagateRows, PropagateSteps, TrainerSpec
from pprop.kernels.random_bits import Bernoulli
from pprop.kernels.triton_gpu.launch import Masks, Shape, Tuning
from pprop.kernels.triton_gpu.network import Network
from pprop.kernels.triton_gpu.planned_steps import PlannedSteps
from pprop.kernels.triton_gpu.rows import launch_rows


class Gradient(NamedTuple):
    """Where the loss kernel writes the gradient: its mode, buffers, and what the steps scale by; alphas (R,)."""

    mode: int
    total: Tensor
    states: Tensor
    column_scale: Tensor
    alphas: Tensor


class GpuPropagation(ABC):
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
class NoPropagation(GpuPropagation):
    """Logits are predictions."""

    def __init__(self, spec: TrainerSpec, shape: Shape) -> None:
        super().__init__(spec, shape)
        self.gradient = Gradient(1, self.above, self.above, self.above, self.above)

    def forward(self, network: Network, clock: Tensor, seeds: Tensor, *, ahead: int) -> tuple[Tensor, Tensor]:
        network.predict(self.predictions, None, None, clock, ahead=ahead)
        return _halves(self.predictions)


@final
class StepsPropagation(GpuPropagation):
    """K power steps in scaled variables, one launch a step."""

    def __init__(self, spec: TrainerSpec, steps: PropagateSteps, shape: Shape, tuning: Tuning) -> None:
        super().__init__(spec, shape)
        runs, device, row = self._runs, self._device, shape.row
        alphas = torch.as_tensor(steps.alpha, dtype=torch.float64).float().expand(runs).to(device).contiguous()
        self._steps = steps.steps
        alpha = alphas if isinstance(steps.alpha, Tensor) else steps.alpha
        self._forth, self._back = (
            PlannedSteps(
                steps.transition, alpha, steps.steps, runs, spec.matrix_dropout, tuning, device,
                row=row, width=row if adjoint else 2 * row, adjoint=adjoint,
            )
            for adjoint in (False, True)
        )  # fmt: skip
        self.states = torch.zeros(runs, 2, shape.n + 1, 2 * row, device=device)
        self.above_states = torch.zeros(runs, 2, shape.n + 1, row, device=device)
        self.gradient = Gradient(2, self.above, self.above_states, self._back.column_scale, alphas)

    def draw(self, clock: Tensor, seeds: Tensor, *, ahead: int, force: bool) -> None:
        for steps in (self._forth, self._back):
            steps.planes.draw(clock, seeds, ahead=ahead, held=None if force else clock)

    def forward(self, network: Network, clock: Tensor, seeds: Tensor, *, ahead: int) -> tuple[Tensor, Tensor]:
        self.predict(network, clock, ahead=ahead)
        self.forward_steps(clock, ahead=ahead)
        return _halves(self.states[: self._runs, self._steps % 2])

    def predict(self, network: Network, clock: Tensor, *, ahead: int) -> None:
        """Make the predictions and the first state."""
        network.predict(self.predictions, self.states, self._forth.column_scale, clock, ahead=ahead)

    def forward_steps(self, clock: Tensor, *, ahead: int) -> None:
        """Make the steps from states[:, 0]."""
        self._forth.launch(clock, ahead, self.predictions, self.states[: self._runs])

    def backward(self, clock: Tensor, seeds: Tensor) -> None:
        self._back.launch(clock, 0, self.above, self.above_states[: self._runs])

    def keep(self, slots: Tensor) -> None:
        super().keep(slots)
        for steps in (self._forth, self._back):
            steps.keep(slots)
        self.gradient = self.gradient._replace(alphas=self.gradient.alphas[slots])


@final
class RowsPropagation(GpuPropagation):
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
        drawn, scale = Masks(clock, seeds, self._laws[side]), self._scales[side]
        launch_rows(
            self._block, self._nodes, self._rows[side], operand, out, drawn, scale, adjoint=adjoint, ahead=ahead
        )


def _halves(both: Tensor) -> tuple[Tensor, Tensor]:
    classes = both.shape[-1] // 2
    return both[..., :classes], both[..., classes:]


def make_propagation(spec: TrainerSpec, shape: Shape, tuning: Tuning) -> GpuPropagation:
    """Bind the propagation of a trainer to buffers for R runs."""
    if spec.propagation is None:
        return NoPropagation(spec, shape)
    if isinstance(spec.propagation, PropagateSteps):
        return StepsPropagation(spec, spec.propagation, shape, tuning)
    return RowsPropagation(spec, spec.propagation, shape)
