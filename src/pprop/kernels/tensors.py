"""Kernels on arrays, for callers that have tensors: models, their training, and `propagate` of a tensor.

This is the one place where torch meets the kernels of the CPU. A tensor of the CPU and its array are the same memory:
nothing is copied, and what is changed in place is changed for both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.contract import (
    EdgeAttention,
    FeatureMatrix,
    FeatureProduct,
    Kernels,
    PropagateRows,
    PropagateSteps,
    RowPropagation,
    StepPropagation,
    Trainer,
    TrainerBytes,
    TrainerSizes,
    TrainerSpec,
)
from pprop.kernels.random_bits import Draw
from pprop.kernels.solves import Limits, Solved, Solves, System


def tensor_of(array: NDArray[Any]) -> Tensor:
    """Return the tensor of an array's memory.

    >>> tensor_of(np.ones(2))
    tensor([1., 1.], dtype=torch.float64)
    """
    return torch.from_numpy(array)


def arrays_of(draw: Draw | None) -> Draw | None:
    """Return a draw for arrays.

    >>> arrays_of(Draw(torch.tensor([7]), 3, 0.5))
    Draw(seeds=array([7]), epoch=3, probability=0.5)
    """
    return None if draw is None else Draw(draw.seeds.numpy(), draw.number, draw.probability)


@final
class TensorFeatures(FeatureProduct):
    """A first layer on tensors."""

    def __init__(self, own: FeatureProduct) -> None:
        self._own = own

    def apply(self, side: int, operand: Tensor, draw: Draw | None) -> Tensor:
        return torch.from_numpy(self._own.apply(side, operand.numpy(), arrays_of(draw)))


@final
class TensorSteps(StepPropagation):
    """Power steps on tensors."""

    def __init__(self, own: StepPropagation) -> None:
        self.own = own
        alpha = own.alpha
        self.alpha = alpha if isinstance(alpha, float | int) else torch.from_numpy(alpha)

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        return torch.from_numpy(self.own.forward(predictions.numpy(), arrays_of(draw)))

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        return torch.from_numpy(self.own.adjoint(gradient.numpy(), arrays_of(draw)))

    def of_runs(self, slots: Tensor | slice) -> TensorSteps:
        return TensorSteps(self.own.of_runs(slots.numpy() if isinstance(slots, Tensor) else slots))


@final
class TensorRows(RowPropagation):
    """Rows of the PPR matrix on tensors."""

    def __init__(self, own: RowPropagation) -> None:
        self._own = own

    def forward(self, predictions: Tensor, rows: Tensor, draw: Draw | None) -> Tensor:
        return torch.from_numpy(self._own.forward(predictions.numpy(), rows.numpy(), arrays_of(draw)))

    def adjoint(self, gradient: Tensor, rows: Tensor, draw: Draw | None) -> Tensor:
        return torch.from_numpy(self._own.adjoint(gradient.numpy(), rows.numpy(), arrays_of(draw)))


@final
class TensorAttention(EdgeAttention):
    """Attention on tensors."""

    def __init__(self, own: EdgeAttention) -> None:
        self._own = own

    def forward(self, values: Tensor, left: Tensor, right: Tensor, draw: Draw | None) -> Tensor:
        return torch.from_numpy(self._own.forward(values.numpy(), left.numpy(), right.numpy(), arrays_of(draw)))

    def adjoint(
        self, gradient: Tensor, values: Tensor, left: Tensor, right: Tensor, draw: Draw | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        above, given = gradient.numpy(), (values.numpy(), left.numpy(), right.numpy())
        return _three(self._own.adjoint(above, *given, arrays_of(draw)))


@final
class TensorSolves(Solves):
    """Solves to a tolerance on tensors."""

    def __init__(self, own: Solves) -> None:
        super().__init__(own.system)
        self._own, self.compensated = own, own.compensated

    def recurrence(self, own: Tensor, start: Tensor, momentum: float, limits: Limits) -> Solved:
        return _on_tensors(self._own.recurrence(own.numpy(), start.numpy(), momentum, limits))

    def conjugate_gradient(self, own: Tensor, start: Tensor | None, limits: Limits) -> Solved:
        given = None if start is None else start.numpy()
        return _on_tensors(self._own.conjugate_gradient(own.numpy(), given, limits))

    def residual(self, own: Tensor, state: Tensor) -> Tensor:
        return torch.from_numpy(self._own.residual(own.numpy(), state.numpy()))

    def norms(self, values: Tensor) -> NDArray[np.float64]:
        return self._own.norms(values.numpy())


def _on_tensors(ended: Solved) -> Solved:
    return replace(ended, value=torch.from_numpy(ended.value))


@final
class TensorTrainer(Trainer):
    """A training whose losses, accuracies and weights are tensors."""

    def __init__(self, own: Trainer) -> None:
        self.own = own

    def epoch(self) -> Tensor:
        return torch.from_numpy(self.own.epoch())

    def weights(self) -> list[Tensor]:
        return [torch.from_numpy(array) for array in self.own.weights()]

    def keep(self, slots: Tensor) -> None:
        self.own.keep(slots.numpy())

    def parts(self) -> tuple[int, list[Trainer]]:
        threads, parts = self.own.parts()
        return threads, [TensorTrainer(part) for part in parts]

    def close(self) -> None:
        self.own.close()


def on_arrays(spec: TrainerSpec) -> TrainerSpec:
    """Return what is to be trained, of tensors, for a trainer on arrays."""
    propagation = spec.propagation
    if isinstance(propagation, PropagateSteps) and isinstance(propagation.alpha, Tensor):
        propagation = replace(propagation, alpha=propagation.alpha.numpy())
    if isinstance(propagation, PropagateRows):
        propagation = PropagateRows(
            propagation.block.numpy(), propagation.nodes.numpy(), propagation.row_of_node.numpy()
        )
    return replace(
        spec,
        weights=tuple(tensor.numpy() for tensor in spec.weights),
        seeds=spec.seeds.numpy(),
        propagation=propagation,
        train=spec.train.each(Tensor.numpy),
        stopping=spec.stopping.each(Tensor.numpy),
    )


@final
class TensorKernels(Kernels):
    """The kernels of a backend on arrays, for tensors of the CPU.

    Parameters
    ----------
    own
        The kernels on arrays.

    Examples
    --------
    >>> from pprop.kernels import choose_backend
    >>> kernels = TensorKernels(choose_backend("numba", "cpu", "example").own_kernels)
    >>> kernels.softmax(torch.zeros(1, 2))
    tensor([[0.5000, 0.5000]])
    """

    def __init__(self, own: Kernels) -> None:
        self._own = own

    def features(self, matrix: FeatureMatrix) -> TensorFeatures:
        return TensorFeatures(self._own.features(matrix))

    def steps(self, transition: Transition, alpha: float | Tensor, steps: int) -> TensorSteps:
        given: Any = alpha.numpy() if isinstance(alpha, Tensor) else alpha
        return TensorSteps(self._own.steps(transition, given, steps))

    def rows(self, block: Tensor, nodes: Tensor) -> TensorRows:
        return TensorRows(self._own.rows(block.numpy(), nodes.numpy()))

    def attention(self, transition: Transition) -> TensorAttention:
        return TensorAttention(self._own.attention(transition))

    def activate(self, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
        self._own.activate(values.numpy(), layer, arrays_of(draw))
        return values

    def activate_adjoint(self, gradient: Tensor, activated: Tensor, draw: Draw | None) -> Tensor:
        self._own.activate_adjoint(gradient.numpy(), activated.numpy(), arrays_of(draw))
        return gradient

    def drop(self, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
        self._own.drop(values.numpy(), layer, arrays_of(draw))
        return values

    def elu(self, values: Tensor) -> Tensor:
        self._own.elu(values.numpy())
        return values

    def elu_adjoint(self, gradient: Tensor, result: Tensor) -> Tensor:
        self._own.elu_adjoint(gradient.numpy(), result.numpy())
        return gradient

    def softmax(self, values: Tensor) -> Tensor:
        return torch.from_numpy(self._own.softmax(values.numpy()))

    def softmax_adjoint(self, gradient: Tensor, result: Tensor) -> Tensor:
        return torch.from_numpy(self._own.softmax_adjoint(gradient.numpy(), result.numpy()))

    def linear(self, inputs: Tensor, weights: Tensor) -> Tensor:
        return torch.from_numpy(self._own.linear(inputs.numpy(), weights.numpy()))

    def linear_input_adjoint(self, gradient: Tensor, weights: Tensor) -> Tensor:
        return torch.from_numpy(self._own.linear_input_adjoint(gradient.numpy(), weights.numpy()))

    def linear_weight_adjoint(self, inputs: Tensor, gradient: Tensor) -> Tensor:
        return torch.from_numpy(self._own.linear_weight_adjoint(inputs.numpy(), gradient.numpy()))

    def cross_entropy(
        self, logits: Tensor, labels: Tensor, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        return _three(self._own.cross_entropy(logits.numpy(), labels.numpy(), _array(weights)))

    def likelihood(
        self, probabilities: Tensor, labels: Tensor, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        return _three(self._own.likelihood(probabilities.numpy(), labels.numpy(), _array(weights)))

    def elementwise_loss(
        self, outputs: Tensor, targets: Tensor, weights: Tensor, kind: str
    ) -> tuple[Tensor, Tensor, Tensor]:
        return _three(self._own.elementwise_loss(outputs.numpy(), targets.numpy(), weights.numpy(), kind))

    def adam(
        self,
        weights: Tensor,
        gradient: Tensor,
        mean: Tensor,
        square: Tensor,
        *,
        step: int | Tensor,
        rate: float,
        penalty: float,
    ) -> Tensor:
        given = (tensor.numpy() for tensor in (weights, gradient, mean, square))
        return torch.from_numpy(self._own.adam(*given, step=int(step), rate=rate, penalty=penalty))

    def solves(self, system: System) -> TensorSolves:
        return TensorSolves(self._own.solves(system))

    def uniform(self, seeds: Tensor, stream: int, rows: int, columns: int, limit: float) -> Tensor:
        return torch.from_numpy(self._own.uniform(seeds.numpy(), stream, rows, columns, limit))

    def runs_at_once(self, runs: int) -> int:
        return self._own.runs_at_once(runs)

    def trainer(self, spec: TrainerSpec) -> TensorTrainer | None:
        own = self._own.trainer(on_arrays(spec))
        return None if own is None else TensorTrainer(own)

    def trainer_bytes(self, sizes: TrainerSizes) -> TrainerBytes | None:
        return self._own.trainer_bytes(sizes)


def _array(weights: Tensor | None) -> NDArray[Any] | None:
    return None if weights is None else weights.numpy()


def _three(arrays: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]) -> tuple[Tensor, Tensor, Tensor]:
    first, second, third = arrays
    return torch.from_numpy(first), torch.from_numpy(second), torch.from_numpy(third)
