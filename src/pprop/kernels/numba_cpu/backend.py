"""The numba backend: arrays in, numba kernels on their memory, arrays out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop.graph import Transition
from pprop.graph.features.scaling import DenseRows
from pprop.kernels.contract import (
    LARGE_ENTRIES,
    FeatureMatrix,
    FeatureProduct,
    Kernels,
    Trainer,
    TrainerBytes,
    TrainerSizes,
    TrainerSpec,
)
from pprop.kernels.losses import ELEMENTWISE
from pprop.kernels.numba_cpu import bits, dense
from pprop.kernels.numba_cpu._jit import usable_threads
from pprop.kernels.numba_cpu.attention import NumbaAttention
from pprop.kernels.numba_cpu.dense_features import NumbaDenseFeatures
from pprop.kernels.numba_cpu.large_solves import LargeSolves
from pprop.kernels.numba_cpu.large_steps import LargeSteps
from pprop.kernels.numba_cpu.rows import NumbaRows
from pprop.kernels.numba_cpu.solves import NumbaSolves
from pprop.kernels.numba_cpu.sparse import NumbaFeatures, NumbaSteps
from pprop.kernels.numba_cpu.team import aligned
from pprop.kernels.numba_cpu.trainer import NumbaTrainer, trainer_bytes
from pprop.kernels.random_bits import HIDDEN, Draw, law_of, stream
from pprop.kernels.solves import Solves, System

Values = NDArray[Any]


def _as_rows(values: Values) -> Values:
    return np.ascontiguousarray(values).reshape(-1, values.shape[-1])


def _in_place(values: Values) -> Values:
    """Return the numbers in a row, in their memory."""
    assert values.flags.c_contiguous
    return values.reshape(-1)


def _loss(
    kernel: Callable[..., None], outputs: Values, labels: Values, weights: Values | None, *constants: Any
) -> tuple[Values, Values, Values]:
    """Return loss (R,), right answers (R,) and gradient (R, m, c) of what a model puts out, (R, m, c)."""
    loss, right = np.empty(len(outputs), outputs.dtype), np.empty(len(outputs))
    gradient = aligned(outputs.shape, outputs.dtype)
    much = np.ones(labels.shape) if weights is None else weights.astype(np.float64)
    given = (np.ascontiguousarray(array) for array in (outputs, labels, much))
    kernel(*given, loss, right, gradient, *constants)
    return loss, right.astype(np.int64) if weights is None else right, gradient


def _run(compiled: Callable[[int], Callable[..., None]], left: Values, right: Values, out: Values) -> None:
    """Make a product by the kernel that is compiled for tiles of its rows; it takes both factors in one type."""
    given = (np.ascontiguousarray(array, out.dtype) for array in (left, right))
    compiled(dense.tile_of(out.shape[2], out.itemsize))(*given, out)


def _masked(values: Values, layer: int, draw: Draw | None, *, relu: bool) -> Values:
    assert values.flags.c_contiguous
    dense.activate(values, relu, *bits.mask_of(draw, stream(HIDDEN, layer), values))
    return values


@final
class NumbaKernels(Kernels):
    """Fixed-order kernels for arrays of float32 or float64."""

    def features(self, matrix: FeatureMatrix) -> FeatureProduct:
        return NumbaDenseFeatures(matrix) if isinstance(matrix, DenseRows) else NumbaFeatures(matrix)

    def steps(self, transition: Transition, alpha: float | Values, steps: int) -> NumbaSteps:
        if len(transition.indices) >= LARGE_ENTRIES and steps > 0 and isinstance(alpha, float | int):
            return LargeSteps(transition, alpha, steps)
        return NumbaSteps(transition, alpha, steps)

    def rows(self, block: Values, nodes: Values) -> NumbaRows:
        return NumbaRows(block, nodes)

    def attention(self, transition: Transition) -> NumbaAttention:
        return NumbaAttention(transition)

    def activate(self, values: Values, layer: int, draw: Draw | None) -> Values:
        return _masked(values, layer, draw, relu=True)

    def activate_adjoint(self, gradient: Values, activated: Values, draw: Draw | None) -> Values:
        array = _in_place(gradient)
        dense.activate_adjoint(array, activated.reshape(-1), array.dtype.type(law_of(draw).scale))
        return gradient

    def drop(self, values: Values, layer: int, draw: Draw | None) -> Values:
        return values if draw is None else _masked(values, layer, draw, relu=False)

    def elu(self, values: Values) -> Values:
        dense.elu(_in_place(values))
        return values

    def elu_adjoint(self, gradient: Values, result: Values) -> Values:
        dense.elu_adjoint(_in_place(gradient), result.reshape(-1))
        return gradient

    def softmax(self, values: Values) -> Values:
        out = aligned(values.shape, values.dtype)
        dense.softmax(_as_rows(values), _as_rows(out))
        return out

    def softmax_adjoint(self, gradient: Values, result: Values) -> Values:
        out = aligned(gradient.shape, gradient.dtype)
        dense.softmax_adjoint(_as_rows(gradient), _as_rows(result), _as_rows(out))
        return out

    def linear(self, inputs: Values, weights: Values) -> Values:
        out = aligned((*inputs.shape[:2], weights.shape[2]), inputs.dtype)
        _run(dense.linear, inputs, weights, out)
        return out

    def linear_input_adjoint(self, gradient: Values, weights: Values) -> Values:
        return self.linear(gradient, weights.transpose(0, 2, 1))

    def linear_weight_adjoint(self, inputs: Values, gradient: Values) -> Values:
        out = aligned((len(inputs), inputs.shape[2], gradient.shape[2]), inputs.dtype)
        _run(dense.linear_weight_adjoint, inputs, gradient, out)
        return out

    def cross_entropy(
        self, logits: Values, labels: Values, weights: Values | None = None
    ) -> tuple[Values, Values, Values]:
        return _loss(dense.cross_entropy, logits, labels, weights)

    def likelihood(
        self, probabilities: Values, labels: Values, weights: Values | None = None
    ) -> tuple[Values, Values, Values]:
        least = np.finfo(probabilities.dtype).tiny
        return _loss(dense.likelihood, probabilities, labels, weights, least)

    def elementwise_loss(
        self, outputs: Values, targets: Values, weights: Values, kind: str
    ) -> tuple[Values, Values, Values]:
        loss, good = np.empty(len(outputs), outputs.dtype), np.empty(len(outputs))
        gradient = aligned(outputs.shape, outputs.dtype)
        given = (np.ascontiguousarray(array) for array in (outputs, targets, weights.astype(np.float64)))
        dense.elementwise_loss(*given, ELEMENTWISE.index(kind), loss, good, gradient)
        return loss, good, gradient

    def adam(
        self,
        weights: Values,
        gradient: Values,
        mean: Values,
        square: Values,
        *,
        step: int | Values,
        rate: float,
        penalty: float,
    ) -> Values:
        squares = np.empty(len(weights), weights.dtype)
        scalar = weights.dtype.type
        with np.errstate(over="ignore"):  # a penalty that float32 cannot hold is infinite
            constants = (scalar(rate), scalar(1 - 0.9 ** int(step)), scalar(1 - 0.999 ** int(step)), scalar(penalty))
        dense.adam(weights, gradient, mean, square, *constants, squares)
        return squares

    def solves(self, system: System) -> Solves:
        if len(system.transition.indices) < LARGE_ENTRIES:
            return NumbaSolves(system)
        return LargeSolves(system, self.steps(system.transition, 0.0, 1).forward)

    def uniform(self, seeds: Values, stream: int, rows: int, columns: int, limit: float) -> Values:
        out = aligned((len(seeds), rows, columns), np.float32)
        bits.uniform(seeds.view(np.uint64), stream, limit, out)
        return out

    def runs_at_once(self, runs: int) -> int:
        threads = usable_threads()
        return threads if runs >= threads else 1

    def trainer(self, spec: TrainerSpec) -> Trainer:
        return NumbaTrainer(spec)

    def trainer_bytes(self, sizes: TrainerSizes) -> TrainerBytes:
        return trainer_bytes(sizes)
