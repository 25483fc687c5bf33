"""Sparse products of R runs: the first layer, the power steps, and their adjoints. One thread owns each output row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, final

import numpy as np
import torch
from numba import prange
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.contract import Draw, FeatureProduct, StepPropagation
from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel
from pprop.kernels.numba_cpu.bits import NO_WORDS, KeepWords, matrix_words
from pprop.kernels.random_bits import EDGES, FEATURES, Bernoulli


@cache
def product(width):
    """s = drop(M) operand for a CSR matrix M, followed by one of three steps.

        out = s;    out = scale * s + own_scale * own;    out = scale * s, total += total_scale * s.

    Scales are per row, (1, n) or of each run, (R, n). Empty values are all one; words (R, entries), or (1, 0) for no
    dropout. Compiled for one width, the length of a row of the operand, so that the inner loops are unrolled, and for the
    arguments that are None; `acc` holds one row of s.
    """

    @kernel
    def run_product(indptr, indices, values, words, bit, operand, scale, own, own_scale, total, total_scale, out):
        runs, n, _ = out.shape
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
        drop, mask, weighted = words.shape[1] > 0, np.uint32(1) << np.uint32(bit), len(values) > 0
        for task in prange(runs * blocks):
            run, block = task // blocks, task % blocks
            source, target, keep = operand[run], out[run], words[run if drop else 0]
            acc = np.empty(width, out.dtype)
            # numba leaves out what is for arguments that are None, so that nothing below is unbound
            if scale is not None:
                factor = scale[run % len(scale)]
            if own is not None:
                start, start_share = own[run], own_scale[run % len(own_scale)]
            if total is not None:
                sums, sums_share = total[run], total_scale[run % len(total_scale)]
            for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
                for q in range(width):
                    acc[q] = 0
                if weighted:
                    for e in range(indptr[i], indptr[i + 1]):
                        if not drop or keep[e] & mask:
                            value, j = values[e], indices[e]
                            for q in range(width):
                                acc[q] += value * source[j, q]
                else:
                    for e in range(indptr[i], indptr[i + 1]):
                        if not drop or keep[e] & mask:
                            j = indices[e]
                            for q in range(width):
                                acc[q] += source[j, q]
                for q in range(width):
                    if scale is None:
                        target[i, q] = acc[q]
                    if own is not None:
                        target[i, q] = factor[i] * acc[q] + start_share[i] * start[i, q]  # pyright: ignore[reportPossiblyUnboundVariable]
                    if total is not None:
                        sums[i, q] += sums_share[i] * acc[q]  # pyright: ignore[reportPossiblyUnboundVariable]
                        target[i, q] = factor[i] * acc[q]  # pyright: ignore[reportPossiblyUnboundVariable]

    return run_product


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
        values = values.astype(array.dtype, copy=False)
        if draw is not None:
            values = values * array.dtype.type(scale)
        product(operand.shape[2])(indptr, indices, values, words, bit, array, None, None, None, None, None, out.numpy())
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
        matrix, a, arrived, columns, state = self._begin(0, start, draw)
        spare = torch.empty_like(state)
        for step, words, bit in self._masks(0, draw, range(self._steps)):
            factor = np.ones_like(columns) if step == self._steps - 1 else columns
            product(start.shape[2])(
                *matrix, words, bit, state.numpy(), arrived * factor, start.numpy(), a * factor, None, None, spare.numpy()
            )  # fmt: skip
            state, spare = spare, state
        return state

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        gradient = gradient.contiguous()
        if self._steps == 0:
            return gradient.clone()
        matrix, a, arrived, columns, state = self._begin(1, gradient, draw)
        spare, total = torch.empty_like(state), gradient * torch.from_numpy(a)[:, :, None]
        for step, words, bit in self._masks(1, draw, reversed(range(self._steps))):
            share = arrived * a if step > 0 else arrived
            product(gradient.shape[2])(
                *matrix, words, bit, state.numpy(), arrived * columns, None, None, total.numpy(), share, spare.numpy()
            )
            state, spare = spare, state
        return total

    def _begin(self, which: int, start: Tensor, draw: Draw | None) -> tuple[Any, Any, Any, Any, Tensor]:
        """Return A or its transpose, alpha (R, 1) or (1, 1), (1 - alpha) S_r over the keep probability (R, n) or (1, n),
        S_c (n,), and the first scaled state.
        """
        side, dtype = self._sides[which], start.numpy().dtype
        weights = np.empty(0, dtype) if side.weights is None else side.weights.astype(dtype)
        a, columns = np.asarray(self.alpha, dtype).reshape(-1, 1), side.column_scale.astype(dtype)
        keep = dtype.type(1.0 if draw is None else Bernoulli.from_probability(draw.probability).scale)
        state = (start * torch.from_numpy(columns)[:, None]).contiguous()
        return (side.indptr, side.indices, weights), a, (1 - a) * keep * side.row_scale.astype(dtype), columns, state

    def _masks(
        self, which: int, draw: Draw | None, steps: Iterable[int]
    ) -> Iterator[tuple[int, NDArray[np.uint32], int]]:
        """Yield every step with the words and the bit of its mask; a word of an entry serves 32 steps, or 32 epochs."""
        words, drawn, side = NO_WORDS, -1, self._sides[which]
        for step in steps:
            if draw is None or self._steps == 1:
                yield step, *self._words.at(draw, which)[:2]
                continue
            if step // 32 != drawn:
                drawn = step // 32
                position = draw.number * self._steps + 32 * drawn
                words = matrix_words((side.indptr, side.indices), draw, EDGES, position, transposed=which == 1)
            yield step, words, step % 32
