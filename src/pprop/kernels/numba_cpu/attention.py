"""Attention over the entries of a sparsity pattern. One thread owns each row, and in the adjoint each column.

No exponential is taken per entry. With t the largest right_j of the run and c_i = LeakyReLU(left_i + t),

    exp(e_ij - c_i)  =  exp(right_j - t)                                           where left_i + right_j > 0,
                        exp(SLOPE (right_j - t)) exp(SLOPE (left_i + t) - c_i)     elsewhere:

one of two numbers of j, the second times a number of i. That is safe while the right_j of a run span no more than
`_MOST_SPAN`; a run in which they span more takes its exponentials entry by entry, less the largest score of the row.

The adjoint recomputes these weights. Sums over entries are split by the sign of the score, since LeakyReLU has one
slope for each: with s+ and s- the sums of the weights of row i, and a+ and a- those of the weights times
keep_ij <gradient_i, values_j> / (1 - p),

    dleft_i = (1 - SLOPE) (a+ s- - a- s+) / (s+ + s-)^2.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from numba import prange
from numpy.typing import NDArray
from scipy import sparse

from pprop.graph import Transition
from pprop.kernels.contract import SLOPE, EdgeAttention
from pprop.kernels.numba_cpu._jit import ROW_BLOCK, inline, kernel
from pprop.kernels.numba_cpu.bits import KeepWords
from pprop.kernels.numba_cpu.team import aligned
from pprop.kernels.random_bits import EDGES, Draw

Values = NDArray[Any]

_MOST_SPAN = 40.0  # exp(-40) = 4e-18: a row of such weights alone still has all its digits in float32


@kernel
def prepare(right, largest, factors):
    """largest[r] = max_j right, infinite where a run spans too much; factors[r, j] = exp of 1 and SLOPE times the rest."""
    runs, n = right.shape
    for run in prange(runs):
        high, low, sound = -np.inf, np.inf, True
        for j in range(n):
            value = right[run, j]
            high, low = max(high, value), min(low, value)
            sound = sound and value == value
        largest[run] = high if sound and high - low <= _MOST_SPAN else np.inf
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        if largest[run] < np.inf:
            for j in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
                rest = right[run, j] - largest[run]
                factors[run, j, 0], factors[run, j, 1] = math.exp(rest), math.exp(SLOPE * rest)


@inline
def _row(i, left, right, largest, indptr, indices):
    """Return what the scores of row i are reduced by, and the factor of its weights of negative scores."""
    if largest < np.inf:
        score = left[i] + largest
        return score, (math.exp((SLOPE - 1.0) * score) if score > 0 else 1.0 + 0.0 * score)
    high = -np.inf
    for e in range(indptr[i], indptr[i + 1]):
        high = max(high, right[indices[e]])
    score = left[i] + high
    return (score if score > 0 else SLOPE * score), 0.0


@inline
def _weight(score, wide, factors, j, row_factor, top):
    """Return exp(e_ij - c_i)."""
    if wide:
        return math.exp((score if score > 0 else SLOPE * score) - top)
    return factors[j, 0] if score > 0 else factors[j, 1] * row_factor


@kernel
def forward_rows(indptr, indices, words, bit, scale, values, left, right, largest, factors, out):
    """out[r, i] = sum_j drop(a_ij) values[r, j]; words (R, entries), or (1, 0) for no dropout."""
    runs, n, width = out.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    drop, mask = words.shape[1] > 0, np.uint32(1) << np.uint32(bit)
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        source, target, keep = values[run], out[run], words[run if drop else 0]
        mine, theirs, pair, wide = left[run], right[run], factors[run], largest[run] == np.inf
        acc = np.empty(width, out.dtype)
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            top, row_factor = _row(i, mine, theirs, largest[run], indptr, indices)
            norm = 0.0
            for q in range(width):
                acc[q] = 0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                weight = _weight(mine[i] + theirs[j], wide, pair, j, row_factor, top)
                norm += weight
                if not drop or keep[e] & mask:
                    rounded = out.dtype.type(weight)
                    for q in range(width):
                        acc[q] += rounded * source[j, q]
            share = out.dtype.type(scale / norm if norm != 0 else 0.0)
            for q in range(width):
                target[i, q] = acc[q] * share


@kernel
def backward_rows(indptr, indices, words, bit, scale, gradient, values, left, right, largest, factors, rows, to_left):
    """Fill the gradient of left, and rows[r, i] = (c_i, factor, 1 / norm, sum_j drop(a_ij) <gradient_i, values_j>)."""
    runs, n, width = values.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    drop, mask = words.shape[1] > 0, np.uint32(1) << np.uint32(bit)
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        above, source, keep = gradient[run], values[run], words[run if drop else 0]
        mine, theirs, pair, wide = left[run], right[run], factors[run], largest[run] == np.inf
        sums, norms = np.empty((2, width), values.dtype), np.empty(2)  # of positive scores, and of the others
        plus, minus = sums[0], sums[1]
        for i in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            top, row_factor = _row(i, mine, theirs, largest[run], indptr, indices)
            norms[0] = norms[1] = 0.0
            for q in range(width):
                plus[q] = minus[q] = 0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                score = mine[i] + theirs[j]
                weight = _weight(score, wide, pair, j, row_factor, top)
                side, rounded = 0 if score > 0 else 1, values.dtype.type(weight)
                norms[side] += weight
                if not drop or keep[e] & mask:
                    for q in range(width):
                        sums[side, q] += rounded * source[j, q]
            dot_plus, dot_minus = 0.0, 0.0
            for q in range(width):
                dot_plus += above[i, q] * plus[q]
                dot_minus += above[i, q] * minus[q]
            norm = norms[0] + norms[1]
            inverse = 1.0 / norm if norm != 0 else 0.0
            rows[run, i, 0], rows[run, i, 1], rows[run, i, 2] = top, row_factor, inverse
            rows[run, i, 3] = scale * (dot_plus + dot_minus) * inverse
            cross = (dot_plus * inverse) * (norms[1] * inverse) - (dot_minus * inverse) * (norms[0] * inverse)
            to_left[run, i] = (1.0 - SLOPE) * scale * cross


@kernel
def backward_columns(
    indptr, indices, place, words, bit, scale, gradient, values, left, right, largest, factors, rows, to_values,
    to_right,
):  # fmt: skip
    """Fill the gradients of values and right, by the columns of the pattern; `place` finds an entry's word."""
    runs, n, width = values.shape
    blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK
    drop, mask = words.shape[1] > 0, np.uint32(1) << np.uint32(bit)
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        above, own, target, keep = gradient[run], values[run], to_values[run], words[run if drop else 0]
        mine, theirs, pair, wide, row = left[run], right[run], factors[run], largest[run] == np.inf, rows[run]
        sums = np.empty((2, width), values.dtype)  # of positive scores, and of the others
        plus, minus = sums[0], sums[1]
        for j in range(block * ROW_BLOCK, min(n, (block + 1) * ROW_BLOCK)):
            centre = 0.0
            for q in range(width):
                plus[q] = minus[q] = 0
            for e in range(indptr[j], indptr[j + 1]):
                i = indices[e]
                score = mine[i] + theirs[j]
                share = _weight(score, wide, pair, j, row[i, 1], row[i, 0]) * row[i, 2]
                side, slope = (0, 1.0) if score > 0 else (1, SLOPE)
                rounded = values.dtype.type(share * scale)
                centre += slope * (share * row[i, 3])
                if not drop or keep[place[e]] & mask:
                    for q in range(width):
                        sums[side, q] += rounded * above[i, q]
            dot = 0.0
            for q in range(width):
                target[j, q] = plus[q] + minus[q]
                dot += own[j, q] * (plus[q] + SLOPE * minus[q])
            to_right[run, j] = dot - centre


@final
class NumbaAttention(EdgeAttention):
    """Attention by rows of the pattern; the gradients of values and right by its columns."""

    def __init__(self, transition: Transition) -> None:
        self._structure = transition.indptr, transition.indices
        entries, shape = np.arange(len(transition.indices)), (transition.n_nodes, transition.n_nodes)
        flipped = sparse.csr_array((entries, transition.indices, transition.indptr), shape=shape).T.tocsr()
        flipped.sort_indices()
        self._columns = flipped.indptr.astype(np.int64), flipped.indices.astype(np.int32), flipped.data
        self._words = KeepWords(EDGES, self._structure)

    def forward(self, values: Values, left: Values, right: Values, draw: Draw | None) -> Values:
        arrays = self._arrays(values, left, right)
        out = aligned(values.shape, values.dtype)
        forward_rows(*self._structure, *self._words.at(draw), *arrays, out)
        return out

    def adjoint(
        self, gradient: Values, values: Values, left: Values, right: Values, draw: Draw | None
    ) -> tuple[Values, Values, Values]:
        arrays, mask = (np.ascontiguousarray(gradient), *self._arrays(values, left, right)), self._words.at(draw)
        to_values, to_left, to_right = (aligned(given.shape, given.dtype) for given in (values, left, right))
        rows = np.empty((*left.shape, 4))
        backward_rows(*self._structure, *mask, *arrays, rows, to_left)
        backward_columns(*self._columns, *mask, *arrays, rows, to_values, to_right)
        return to_values, to_left, to_right

    def _arrays(self, values: Values, left: Values, right: Values) -> tuple[Values, ...]:
        given = [np.ascontiguousarray(array) for array in (values, left, right)]
        largest, factors = np.empty(len(right)), np.empty((*right.shape, 2))
        prepare(given[2], largest, factors)
        return *given, largest, factors
