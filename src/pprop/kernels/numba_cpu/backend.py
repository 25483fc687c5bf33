"""The numba backend: torch tensors in, numba kernels on their memory, torch tensors out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, final

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.contract import Draw, EdgeAttention, FeatureProduct, Kernels, RowPropagation, StepPropagation
from pprop.kernels.numba_cpu import bits, dense, elementwise, training
from pprop.kernels.numba_cpu import rows as rows_kernels
from pprop.kernels.numba_cpu import sparse as sparse_kernels
from pprop.kernels.numba_cpu._jit import ROW_BLOCK
from pprop.kernels.numba_cpu.attention import NumbaAttention
from pprop.kernels.numba_cpu.keep_words import NO_WORDS, KeepWords, keep_words
from pprop.kernels.numba_cpu.large_steps import LargeSteps
from pprop.kernels.numba_cpu.solves import NumbaSolves, accurate_residual
from pprop.kernels.numba_cpu.trainer import NumbaTrainer, trainer_bytes
from pprop.kernels.sized import LARGE_ENTRIES, SizedSteps
from pprop.kernels.solves import ProductSolves, Solves, System
from pprop.kernels.streams import EDGES, FEATURES, HIDDEN, PPR, Bernoulli, stream
from pprop.kernels.trainer import Trainer, TrainerBytes, TrainerSizes, TrainerSpec

__all__ = ["NumbaKernels"]

_NO_SEEDS = np.empty(0, dtype=np.uint64)


def _blocks(rows: int) -> int:
    return -(-rows // ROW_BLOCK)


def _seeds(draw: Draw | None) -> NDArray[np.uint64]:
    return _NO_SEEDS if draw is None else draw.seeds.numpy().view(np.uint64)


def _bernoulli(draw: Draw | None) -> Bernoulli:
    return Bernoulli.from_probability(0.5 if draw is None else draw.probability)


def _as_rows(values: Tensor) -> NDArray[Any]:
    return values.contiguous().numpy().reshape(-1, values.shape[-1])


def _loss(
    kernel: Callable[..., None], outputs: Tensor, labels: Tensor, *constants: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Return loss (R,), right answers (R,) and gradient (R, m, c) of what a model puts out, (R, m, c)."""
    loss = torch.empty(len(outputs), dtype=outputs.dtype)
    right = torch.empty(len(outputs), dtype=torch.int64)
    gradient = torch.empty_like(outputs, memory_format=torch.contiguous_format)
    given, results = ([t.contiguous().numpy() for t in ts] for ts in ((outputs, labels), (loss, right, gradient)))
    kernel(*given, *constants, *results)
    return loss, right, gradient


@final
class NumbaFeatures(FeatureProduct):
    """drop(X) W by rows of X; the adjoint by rows of X^T, which is stored apart."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        flipped = matrix.T.tocsr()
        flipped.sort_indices()
        self._matrices = [
            (m.indptr.astype(np.int64), m.indices.astype(np.int32), m.data.copy()) for m in (matrix, flipped)
        ]
        self._words = KeepWords(FEATURES, *((indptr, indices) for indptr, indices, _ in self._matrices))

    def forward(self, weights: Tensor, draw: Draw | None) -> Tensor:
        return self._apply(0, weights, draw)

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        return self._apply(1, gradient, draw)

    def _apply(self, side: int, operand: Tensor, draw: Draw | None) -> Tensor:
        indptr, indices, values = self._matrices[side]
        out = torch.empty(len(operand), len(indptr) - 1, operand.shape[2], dtype=operand.dtype)
        words, bit, scale = self._words.at(draw, side)
        array = operand.contiguous().numpy()
        sparse_kernels.product(operand.shape[2])(
            indptr,
            indices,
            values.astype(array.dtype, copy=False),
            words,
            bit,
            array.dtype.type(scale),
            array,
            out.numpy(),
        )
        return out


@final
class NumbaSteps(StepPropagation):
    """Power steps in scaled variables, so that a step reads each edge once and no edge value is stored.

    With T = S_r A S_c and y = S_c z, a step z' = (1 - alpha) T z + alpha h is

        y' = (1 - alpha) S_c S_r A y + alpha S_c h,

    one scale per node; the last step leaves out the factor S_c and gives z. The adjoint runs over A^T with the scales
    exchanged, y = S_r g, and collects dH = alpha (g_1 + ... + g_K) + g_0 on the way.
    """

    def __init__(self, transition: Transition, alpha: float | Tensor, steps: int) -> None:
        self.alpha, self._steps = alpha, steps
        self._sides = (transition, transition.transpose)
        self._words = KeepWords(EDGES, *((side.indptr, side.indices) for side in self._sides))

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        start = predictions.contiguous()
        if self._steps == 0:
            return start.clone()
        side, rows, columns, weights = self._side(0, start)
        a = self._alphas(rows.dtype)
        state = (start * torch.from_numpy(columns)[:, None]).contiguous()
        spare = torch.empty_like(state)
        words, bit = NO_WORDS, 0
        for step in range(self._steps):
            last = step == self._steps - 1
            if draw is not None:
                words, bit = self._step_words(0, draw, words, step, refresh=step % 32 == 0)
            factor = np.ones_like(columns) if last else columns
            keep = self._keep_scale(draw, rows.dtype)
            sparse_kernels.step(start.shape[2])(
                side.indptr, side.indices, weights, words, bit, state.numpy(), (1 - a) * keep * rows * factor,
                start.numpy(), a * factor, spare.numpy(),
            )  # fmt: skip
            state, spare = spare, state
        return state

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        gradient = gradient.contiguous()
        if self._steps == 0:
            return gradient.clone()
        side, rows, columns, weights = self._side(1, gradient)
        a = self._alphas(rows.dtype)
        total = gradient * torch.from_numpy(a)[:, :, None]
        state = (gradient * torch.from_numpy(columns)[:, None]).contiguous()
        spare = torch.empty_like(state)
        words, bit = NO_WORDS, 0
        for step in reversed(range(self._steps)):
            if draw is not None:
                refresh = step % 32 == 31 or step == self._steps - 1
                words, bit = self._step_words(1, draw, words, step, refresh=refresh)
            arrived = (1 - a) * self._keep_scale(draw, rows.dtype) * rows
            share = a if step > 0 else np.ones_like(a)
            sparse_kernels.step_adjoint(gradient.shape[2])(
                side.indptr, side.indices, weights, words, bit, state.numpy(), arrived * columns,
                total.numpy(), share * arrived, spare.numpy(),
            )  # fmt: skip
            state, spare = spare, state
        return total

    def _alphas(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return alpha as a column, (1, 1) or (R, 1)."""
        return np.asarray(self.alpha, dtype).reshape(-1, 1)

    def _side(self, which: int, like: Tensor) -> tuple[Transition, NDArray[Any], NDArray[Any], NDArray[Any]]:
        dtype = like.numpy().dtype
        side = self._sides[which]
        weights = np.empty(0, dtype) if side.weights is None else side.weights.astype(dtype)
        return side, side.row_scale.astype(dtype), side.column_scale.astype(dtype), weights

    def _step_words(
        self, which: int, draw: Draw, words: NDArray[np.uint32], step: int, *, refresh: bool
    ) -> tuple[NDArray[np.uint32], int]:
        if self._steps == 1:
            return self._words.at(draw, which)[:2]  # one word per entry serves 32 epochs
        first = step // 32 * 32  # or 32 steps
        if refresh:
            side = self._sides[which]
            position = draw.number * self._steps + first
            words = keep_words((side.indptr, side.indices), draw, EDGES, position, transposed=which == 1)
        return words, step - first

    @staticmethod
    def _keep_scale(draw: Draw | None, dtype: np.dtype[Any]) -> Any:
        return dtype.type(1.0 if draw is None else _bernoulli(draw).scale)


@final
class NumbaRows(RowPropagation):
    """drop(Pi_rows) H and its adjoint; a mask word covers 32 columns."""

    def __init__(self, block: Tensor, nodes: Tensor) -> None:
        self._block, self._nodes = np.ascontiguousarray(block.numpy()), nodes.numpy()

    def forward(self, predictions: Tensor, rows: Tensor, draw: Draw | None) -> Tensor:
        width = predictions.shape[2]
        out = torch.empty(*rows.shape, width, dtype=predictions.dtype)
        arguments = self._arguments(predictions, rows, draw)
        for column in range(0, width, rows_kernels.FORWARD_WIDTH):
            part = min(width - column, rows_kernels.FORWARD_WIDTH)
            rows_kernels.rows_forward(part)(*arguments, column, out.numpy())
        return out

    def adjoint(self, gradient: Tensor, rows: Tensor, draw: Draw | None) -> Tensor:
        out = torch.empty(len(rows), self._block.shape[1], gradient.shape[2], dtype=gradient.dtype)
        rows_kernels.rows_adjoint(gradient.shape[2])(*self._arguments(gradient, rows, draw), out.numpy())
        return out

    def _arguments(self, operand: Tensor, rows: Tensor, draw: Draw | None) -> tuple[Any, ...]:
        array, law = operand.contiguous().numpy(), _bernoulli(draw)
        scale = array.dtype.type(1.0 if draw is None else law.scale)
        epoch = 0 if draw is None else draw.number
        mask = (_seeds(draw), PPR, epoch, law.threshold, law.digits, scale)
        return self._block, self._nodes, rows.numpy(), array, *mask


@final
class NumbaKernels(Kernels):
    """Fixed-order kernels for CPU tensors of float32 or float64."""

    def features(self, matrix: sparse.csr_array) -> FeatureProduct:
        return NumbaFeatures(matrix)

    def steps(self, transition: Transition, alpha: float | Tensor, steps: int) -> StepPropagation:
        some = NumbaSteps(transition, alpha, steps)
        if len(transition.indices) < LARGE_ENTRIES or steps == 0 or isinstance(alpha, Tensor):
            return some
        return SizedSteps(some, LargeSteps(transition, alpha, steps))

    def rows(self, block: Tensor, nodes: Tensor) -> RowPropagation:
        return NumbaRows(block, nodes)

    def attention(self, transition: Transition) -> EdgeAttention:
        return NumbaAttention(transition)

    def activate(self, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
        law, array = _bernoulli(draw), values.numpy()
        epoch = 0 if draw is None else draw.number
        dense.activate(
            array, _seeds(draw), stream(HIDDEN, layer), epoch, law.threshold, law.digits, array.dtype.type(law.scale)
        )
        return values

    def activate_adjoint(self, gradient: Tensor, activated: Tensor, draw: Draw | None) -> Tensor:
        array = gradient.numpy()
        scale = 1.0 if draw is None else _bernoulli(draw).scale
        dense.activate_adjoint(array, activated.numpy(), array.dtype.type(scale))
        return gradient

    def drop(self, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
        if draw is not None:
            law, array = _bernoulli(draw), values.numpy()
            scale = array.dtype.type(law.scale)
            mask = (_seeds(draw), stream(HIDDEN, layer), draw.number, law.threshold, law.digits)
            elementwise.drop(array, *mask, scale)
        return values

    def elu(self, values: Tensor) -> Tensor:
        elementwise.elu(values.numpy())
        return values

    def elu_adjoint(self, gradient: Tensor, result: Tensor) -> Tensor:
        elementwise.elu_adjoint(gradient.numpy(), result.numpy())
        return gradient

    def softmax(self, values: Tensor) -> Tensor:
        out = torch.empty_like(values, memory_format=torch.contiguous_format)
        elementwise.softmax(*(_as_rows(tensor) for tensor in (values, out)))
        return out

    def softmax_adjoint(self, gradient: Tensor, result: Tensor) -> Tensor:
        out = torch.empty_like(gradient, memory_format=torch.contiguous_format)
        elementwise.softmax_adjoint(*(_as_rows(tensor) for tensor in (gradient, result, out)))
        return out

    def linear(self, inputs: Tensor, weights: Tensor) -> Tensor:
        out = torch.empty(*inputs.shape[:2], weights.shape[2], dtype=inputs.dtype)
        dense.linear(weights.shape[2])(inputs.contiguous().numpy(), weights.contiguous().numpy(), out.numpy())
        return out

    def linear_input_adjoint(self, gradient: Tensor, weights: Tensor) -> Tensor:
        return self.linear(gradient, weights.mT.contiguous())

    def linear_weight_adjoint(self, inputs: Tensor, gradient: Tensor) -> Tensor:
        runs, n, inner = inputs.shape
        partial = torch.empty(runs, _blocks(n), inner, gradient.shape[2], dtype=inputs.dtype)
        out = torch.empty(runs, inner, gradient.shape[2], dtype=inputs.dtype)
        arrays = (tensor.contiguous().numpy() for tensor in (inputs, gradient, partial, out))
        dense.linear_weight_adjoint(gradient.shape[2])(*arrays)
        return out

    def cross_entropy(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return _loss(training.cross_entropy, logits, labels)

    def likelihood(self, probabilities: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        least = np.finfo(probabilities.numpy().dtype).tiny
        return _loss(elementwise.likelihood, probabilities, labels, least)

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
        partial = torch.empty(len(weights), _blocks(weights.shape[1]), weights.shape[2], dtype=weights.dtype)
        squares = torch.empty(len(weights), dtype=weights.dtype)
        scalar = weights.numpy().dtype.type
        with np.errstate(over="ignore"):  # a penalty that float32 cannot hold is infinite
            constants = (scalar(rate), scalar(1 - 0.9 ** int(step)), scalar(1 - 0.999 ** int(step)), scalar(penalty))
        arrays = [tensor.numpy() for tensor in (weights, gradient, mean, square)]
        training.adam(*arrays, *constants, partial.numpy(), squares.numpy())
        return squares

    def solves(self, system: System) -> Solves:
        if len(system.transition.indices) < LARGE_ENTRIES:
            return NumbaSolves(system)
        product = self.steps(system.transition, 0.0, 1).forward
        return ProductSolves(system, product, partial(accurate_residual, system))

    def uniform(self, seeds: Tensor, stream: int, rows: int, columns: int, limit: float) -> Tensor:
        out = torch.empty(len(seeds), rows, columns)
        bits.uniform(seeds.numpy().view(np.uint64), stream, limit, out.numpy())
        return out

    def runs_at_once(self, runs: int) -> int:
        return numba.get_num_threads() if runs >= numba.get_num_threads() else 1

    def trainer(self, spec: TrainerSpec) -> Trainer:
        return NumbaTrainer(spec)

    def trainer_bytes(self, sizes: TrainerSizes) -> TrainerBytes:
        return trainer_bytes(sizes)
