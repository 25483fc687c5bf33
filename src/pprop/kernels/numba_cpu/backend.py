"""The numba backend: torch tensors in, numba kernels on their memory, torch tensors out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.graph import Transition
from pprop.graph.features.dense_rows import DenseRows
from pprop.kernels.contract import LARGE_ENTRIES, FeatureProduct, Kernels
from pprop.kernels.numba_cpu import bits, dense
from pprop.kernels.numba_cpu.attention import NumbaAttention
from pprop.kernels.numba_cpu.dense_features import NumbaDenseFeatures
from pprop.kernels.numba_cpu.large_steps import LargeSteps
from pprop.kernels.numba_cpu.rows import NumbaRows
from pprop.kernels.numba_cpu.solves import LargeSolves, NumbaSolves
from pprop.kernels.numba_cpu.sparse import NumbaFeatures, NumbaSteps
from pprop.kernels.numba_cpu.threads import usable_threads
from pprop.kernels.numba_cpu.trainer import NumbaTrainer, trainer_bytes
from pprop.kernels.random_bits import HIDDEN, Draw, law_of, stream
from pprop.kernels.solves import Solves, System
from pprop.kernels.trainer import FeatureMatrix, Trainer, TrainerBytes, TrainerSizes, TrainerSpec


def _as_rows(values: Tensor) -> NDArray[Any]:
    return values.contiguous().numpy().reshape(-1, values.shape[-1])


def _in_place(values: Tensor) -> NDArray[Any]:
    return values.view(-1).numpy()


def _loss(
    kernel: Callable[..., None], outputs: Tensor, labels: Tensor, weights: Tensor | None, *constants: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Return loss (R,), right answers (R,) and gradient (R, m, c) of what a model puts out, (R, m, c)."""
    loss = torch.empty(len(outputs), dtype=outputs.dtype)
    right = torch.empty(len(outputs), dtype=torch.float64)
    gradient = torch.empty_like(outputs, memory_format=torch.contiguous_format)
    much = torch.ones(labels.shape, dtype=torch.float64) if weights is None else weights.double()
    kernel(*(tensor.contiguous().numpy() for tensor in (outputs, labels, much, loss, right, gradient)), *constants)
    return loss, right.long() if weights is None else right, gradient


def _masked(values: Tensor, layer: int, draw: Draw | None, *, relu: bool) -> Tensor:
    array = values.numpy()
    dense.activate(array, relu, *bits.mask_of(draw, stream(HIDDEN, layer), array))
    return values


@final
class NumbaKernels(Kernels):
    """Fixed-order kernels for CPU tensors of float32 or float64."""

    def features(self, matrix: FeatureMatrix) -> FeatureProduct:
        return NumbaDenseFeatures(matrix) if isinstance(matrix, DenseRows) else NumbaFeatures(matrix)

    def steps(self, transition: Transition, alpha: float | Tensor, steps: int) -> NumbaSteps:
        large = len(transition.indices) >= LARGE_ENTRIES and steps > 0 and not isinstance(alpha, Tensor)
        return (LargeSteps if large else NumbaSteps)(transition, alpha, steps)

    def rows(self, block: Tensor, nodes: Tensor) -> NumbaRows:
        return NumbaRows(block, nodes)

    def attention(self, transition: Transition) -> NumbaAttention:
        return NumbaAttention(transition)

    def activate(self, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
        return _masked(values, layer, draw, relu=True)

    def activate_adjoint(self, gradient: Tensor, activated: Tensor, draw: Draw | None) -> Tensor:
        array = _in_place(gradient)
        dense.activate_adjoint(array, activated.reshape(-1).numpy(), array.dtype.type(law_of(draw).scale))
        return gradient

    def drop(self, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
        return values if draw is None else _masked(values, layer, draw, relu=False)

    def elu(self, values: Tensor) -> Tensor:
        dense.elu(_in_place(values))
        return values

    def elu_adjoint(self, gradient: Tensor, result: Tensor) -> Tensor:
        dense.elu_adjoint(_in_place(gradient), result.reshape(-1).numpy())
        return gradient

    def softmax(self, values: Tensor) -> Tensor:
        out = torch.empty_like(values, memory_format=torch.contiguous_format)
        dense.softmax(*(_as_rows(tensor) for tensor in (values, out)))
        return out

    def softmax_adjoint(self, gradient: Tensor, result: Tensor) -> Tensor:
        out = torch.empty_like(gradient, memory_format=torch.contiguous_format)
        dense.softmax_adjoint(*(_as_rows(tensor) for tensor in (gradient, result, out)))
        return out

    def linear(self, inputs: Tensor, weights: Tensor) -> Tensor:
        out = torch.empty(*inputs.shape[:2], weights.shape[2], dtype=inputs.dtype)
        dense.linear(weights.shape[2])(inputs.contiguous().numpy(), weights.contiguous().numpy(), out.numpy())
        return out

    def linear_input_adjoint(self, gradient: Tensor, weights: Tensor) -> Tensor:
        return self.linear(gradient, weights.mT.contiguous())

    def linear_weight_adjoint(self, inputs: Tensor, gradient: Tensor) -> Tensor:
        out = torch.empty(len(inputs), inputs.shape[2], gradient.shape[2], dtype=inputs.dtype)
        arrays = (tensor.contiguous().numpy() for tensor in (inputs, gradient, out))
        dense.linear_weight_adjoint(gradient.shape[2])(*arrays)
        return out

    def cross_entropy(
        self, logits: Tensor, labels: Tensor, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        return _loss(dense.cross_entropy, logits, labels, weights)

    def likelihood(
        self, probabilities: Tensor, labels: Tensor, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        least = np.finfo(probabilities.numpy().dtype).tiny
        return _loss(dense.likelihood, probabilities, labels, weights, least)

    def adam(
        self, weights: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, *,
        step: int | Tensor, rate: float, penalty: float,
    ) -> Tensor:  # fmt: skip
        squares = torch.empty(len(weights), dtype=weights.dtype)
        scalar = weights.numpy().dtype.type
        with np.errstate(over="ignore"):  # a penalty that float32 cannot hold is infinite
            constants = (scalar(rate), scalar(1 - 0.9 ** int(step)), scalar(1 - 0.999 ** int(step)), scalar(penalty))
        dense.adam(*(tensor.numpy() for tensor in (weights, gradient, mean, square)), *constants, squares.numpy())
        return squares

    def solves(self, system: System) -> Solves:
        if len(system.transition.indices) < LARGE_ENTRIES:
            return NumbaSolves(system)
        return LargeSolves(system, self.steps(system.transition, 0.0, 1).forward)

    def uniform(self, seeds: Tensor, stream: int, rows: int, columns: int, limit: float) -> Tensor:
        out = torch.empty(len(seeds), rows, columns)
        bits.uniform(seeds.numpy().view(np.uint64), stream, limit, out.numpy())
        return out

    def runs_at_once(self, runs: int) -> int:
        threads = usable_threads()
        return threads if runs >= threads else 1

    def trainer(self, spec: TrainerSpec) -> Trainer:
        return NumbaTrainer(spec)

    def trainer_bytes(self, sizes: TrainerSizes) -> TrainerBytes:
        return trainer_bytes(sizes)
