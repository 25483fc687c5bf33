"""Sparse products of R runs: the first layer, the power steps, and their adjoints. One thread owns each output row."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any, final

import numpy as np
from numba import prange
from numpy.typing import NDArray
from scipy import sparse

from pprop.graph import Transition
from pprop.kernels.contract import FeatureProduct, Sides, StepPropagation
from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel, quiet
from pprop.kernels.numba_cpu.bits import NO_WORDS, KeepWords
from pprop.kernels.numba_cpu.team import aligned
from pprop.kernels.numba_cpu.vectors import add, address, item, load, store, times, token_of, zeros
from pprop.kernels.random_bits import EDGES, FEATURES, Draw, law_of

_PLAIN, _STEP, _ADJOINT = 0, 1, 2
_REGISTERS = 256  # bytes of a row that are summed at once: 16 of NEON's 32 registers, 8 of AVX2's 16

Values = NDArray[Any]


@cache
def product(tile):
    """s = drop(M) operand for a CSR matrix M, followed by one of three steps, for `tile` columns from one on.

        _PLAIN: out = s;    _STEP: out = scale * s + share * held;    _ADJOINT: out = scale * s, held += share * s.

    Scale and share are per row, (1, n) or of each run, (R, n). Empty values are all one; words (R, entries), or (1, 0)
    for no dropout. A row of s stays in registers; every product and every sum is rounded.
    """

    @kernel
    def run_product(indptr, indices, values, words, bit, operand, step, scale, share, held, out, column):
        runs, n, width = out.shape
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
        drop, mask, weighted = words.shape[1] > 0, np.uint32(1) << np.uint32(bit), len(values) > 0
        for task in prange(runs * blocks):
            run, block = task // blocks, task % blocks
            first, columns, entries, keep = address(indptr), address(indices), address(values), address(words)
            token = token_of(tile)
            source, target, own, a, b = address(operand), address(out), address(held), address(scale), address(share)
            from_, decided = run * operand.shape[1] * width + column, run * words.shape[1]
            scaled, shared = run % len(scale) * scale.shape[1], run % len(share) * share.shape[1]
            for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
                total = zeros(source, token)
                for e in range(item(first, i), item(first, i + 1)):
                    if not drop or item(keep, decided + e) & mask:
                        row = load(source, from_ + np.int64(item(columns, e)) * width, token)
                        total = add(total, times(item(entries, e) if weighted else 1.0, row))
                at = (run * n + i) * width + column
                if step == _STEP:
                    held_row = load(own, at, token)
                    total = add(times(item(a, scaled + i), total), times(item(b, shared + i), held_row))
                elif step == _ADJOINT:
                    store(own, at, add(load(own, at, token), times(item(b, shared + i), total)))
                    total = times(item(a, scaled + i), total)
                store(target, at, total)

    return run_product


def _multiply(*arguments: Any) -> None:
    """Make a product: as many columns at once as the registers hold."""
    out = arguments[-1]
    width, most = out.shape[2], _REGISTERS // out.itemsize
    for column in range(0, width, most):
        product(min(most, width - column))(*arguments, column)


@final
class NumbaFeatures(FeatureProduct):
    """drop(X) W by rows of X; the adjoint by rows of X^T, which is stored apart."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        self._sides, self._matrices = Sides(matrix), dict[int, tuple[Any, Any, Any]]()

    def _side(self, side: int) -> tuple[Any, Any, Any]:
        if side not in self._matrices:
            m = self._sides[side]
            self._matrices[side] = m.indptr.astype(np.int64), m.indices.astype(np.int32), m.data.copy()
        return self._matrices[side]

    @cached_property
    def _words(self) -> KeepWords:
        return KeepWords(FEATURES, *(self._side(side)[:2] for side in (0, 1)))

    def apply(self, side: int, operand: Values, draw: Draw | None) -> Values:
        indptr, indices, values = self._side(side)
        array = np.ascontiguousarray(operand)
        out = aligned((len(array), len(indptr) - 1, array.shape[2]), array.dtype)
        words, bit, scale = (NO_WORDS, 0, 1.0) if draw is None else self._words.at(draw, side)
        with quiet():
            values = values.astype(array.dtype, copy=False)
            if draw is not None:
                values = values * array.dtype.type(scale)
        none = np.empty((1, 0), array.dtype)
        _multiply(indptr, indices, values, words, bit, array, _PLAIN, none, none, array, out)
        return out


class NumbaSteps(StepPropagation):
    """Power steps in scaled variables, so that a step reads each edge once and no edge value is stored.

    With T = S_r A S_c and y = S_c z, a step z' = (1 - alpha) T z + alpha h is

        y' = (1 - alpha) S_c S_r A y + alpha S_c h,

    one scale per node; the last step leaves out the factor S_c and gives z. The adjoint runs over A^T with the scales
    exchanged, y = S_r g, and collects dH = alpha (g_1 + ... + g_K) + g_0 on the way.
    """

    def __init__(self, transition: Transition, alpha: float | Values, steps: int) -> None:
        self.alpha, self._steps = alpha, steps
        self._sides = (transition, transition.transpose)
        self._words = KeepWords(EDGES, *((side.indptr, side.indices) for side in self._sides))

    def forward(self, predictions: Values, draw: Draw | None) -> Values:
        start = np.ascontiguousarray(predictions)
        if self._steps == 0:
            return start.copy()
        with quiet():
            matrix, a, arrived, columns, state = self._begin(0, start, draw)
            spare = aligned(state.shape, state.dtype)
            for step in range(self._steps):
                words, bit, _ = self._words.at(draw, 0, step, self._steps)
                factor = np.ones_like(columns) if step == self._steps - 1 else columns
                _multiply(*matrix, words, bit, state, _STEP, arrived * factor, a * factor, start, spare)
                state, spare = spare, aligned(state.shape, state.dtype) if state is start else state
        return state

    def adjoint(self, gradient: Values, draw: Draw | None) -> Values:
        gradient = np.ascontiguousarray(gradient)
        if self._steps == 0:
            return gradient.copy()
        with quiet():
            matrix, a, arrived, columns, state = self._begin(1, gradient, draw)
            spare, total = aligned(state.shape, state.dtype), aligned(state.shape, state.dtype)
            np.multiply(gradient, a[:, :, None], out=total)
            for step in reversed(range(self._steps)):
                words, bit, _ = self._words.at(draw, 1, step, self._steps)
                scales = arrived * columns, arrived * a if step > 0 else arrived
                _multiply(*matrix, words, bit, state, _ADJOINT, *scales, total, spare)
                state, spare = spare, aligned(state.shape, state.dtype) if state is gradient else state
        return total

    def _begin(self, which: int, start: Values, draw: Draw | None) -> tuple[Any, Any, Any, Any, Values]:
        """Return A or its transpose, alpha (R, 1) or (1, 1), (1 - alpha) S_r over the keep probability (R, n) or (1, n),
        S_c (n,), and the first scaled state: `start` itself where S_c is one.
        """
        side, dtype = self._sides[which], start.dtype
        weights = np.empty(0, dtype) if side.weights is None else side.weights.astype(dtype)
        a, columns = np.asarray(self.alpha, dtype).reshape(-1, 1), side.column_scale.astype(dtype)
        keep = dtype.type(law_of(draw).scale)
        state = start
        if (columns != 1).any():
            state = np.multiply(start, columns[:, None], out=aligned(start.shape, dtype))
        return (side.indptr, side.indices, weights), a, (1 - a) * keep * side.row_scale.astype(dtype), columns, state
