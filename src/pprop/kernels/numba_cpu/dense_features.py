"""The first layer for a dense matrix X: six sums at a time in registers, each in the order of its terms.

Both products, drop(X) W and drop(X)^T G, are made of one small loop, which adds a row of one matrix, weighted by six
numbers, to six sums. It reads a row once for six uses, so that the processor's arithmetic is the limit and not its memory.
A sum has one owner and one order, so that its bits depend neither on threads nor on runs.
"""

from __future__ import annotations

from typing import Any, final

import llvmlite.binding as llvm
import numpy as np
from numba import prange
from numpy.typing import NDArray

from pprop.graph.features.scaling import DenseRows
from pprop.kernels.contract import FeatureProduct
from pprop.kernels.numba_cpu._jit import kernel, part
from pprop.kernels.numba_cpu.bits import dense_words, mask_of
from pprop.kernels.numba_cpu.stored_rows import RowsInMemory, copy_row
from pprop.kernels.numba_cpu.team import aligned
from pprop.kernels.numba_cpu.vectors import address, count, fma, item, keep_lanes, lanes, load, put, store
from pprop.kernels.random_bits import DENSE_FEATURES, Draw

SUMS = 6  # that are made together
# Lanes of a sum: six of them and one row fill the registers, of which AVX-512 has 2 kB, AVX2 and NEON 512 bytes.
TILE = 64 if llvm.get_host_cpu_features().get("avx512f", False) else 16
BLOCK = 64  # nodes whose kept features lie side by side on the way back
_COLUMNS = 96  # of X that a task of the way back owns: whole words of masks, and whole sixes
_ROWS = 48  # of X that a task of the way forth owns
_WORD = lanes(32)


def words_of(columns: int) -> int:
    """Return how many words hold the keep decisions of a row.

    >>> words_of(500)
    16
    """
    return -(-columns // 32)


@part
def add_products(left, at, row, step, terms, right, right_at, right_step, sums, sums_at, sums_step, token):
    """sums[r] += sum over k of left[at + r * row + k * step] * right[k] for r < SUMS; right[k] and sums[r] are lanes.

    Row k of `right` begins at right_at + k * right_step, sum r at sums_at + r * sums_step.
    """
    s0, s1 = load(sums, sums_at, token), load(sums, sums_at + sums_step, token)
    s2, s3 = load(sums, sums_at + 2 * sums_step, token), load(sums, sums_at + 3 * sums_step, token)
    s4, s5 = load(sums, sums_at + 4 * sums_step, token), load(sums, sums_at + 5 * sums_step, token)
    for k in range(terms):
        values, own = load(right, right_at + k * right_step, token), at + k * step
        s0, s1 = fma(item(left, own), values, s0), fma(item(left, own + row), values, s1)
        s2, s3 = fma(item(left, own + 2 * row), values, s2), fma(item(left, own + 3 * row), values, s3)
        s4, s5 = fma(item(left, own + 4 * row), values, s4), fma(item(left, own + 5 * row), values, s5)
    store(sums, sums_at, s0)
    store(sums, sums_at + sums_step, s1)
    store(sums, sums_at + 2 * sums_step, s2)
    store(sums, sums_at + 3 * sums_step, s3)
    store(sums, sums_at + 4 * sums_step, s4)
    store(sums, sums_at + 5 * sums_step, s5)


@part
def copy_kept(row, at, words, word, columns, out, out_at):
    """Copy so many numbers with zeros in place of those that are dropped: 32 decisions a word."""
    whole = columns // 32
    for k in range(whole):
        store(out, out_at + 32 * k, keep_lanes(load(row, at + 32 * k, _WORD), item(words, word + k)))
    for j in range(32 * whole, columns):
        kept = (item(words, word + whole) >> np.uint32(j % 32)) & np.uint32(1)
        put(out, out_at + j, item(row, at + j) * kept)


@kernel
def _forth(X, by_row, by_column, words, W, scale, out, token):
    """out[r] = scale * drop(X) W[r] for W (R, f, h) and out (R, n, h); words (R, n, words), or none in a row."""
    runs, n, width = out.shape
    f, per_row = X.shape[1], words.shape[2]
    blocks = (n + _ROWS - 1) // _ROWS
    for task in prange(runs * blocks):
        run, block = task // blocks, task % blocks
        rows, room = np.zeros((SUMS, f), out.dtype), np.empty((SUMS, width), out.dtype)
        a, w, s = address(rows), address(W[run]), address(room)
        mask, target = address(words[run if per_row else 0]), out[run]
        for i in range(block * _ROWS, min(n, (block + 1) * _ROWS), SUMS):
            some = min(SUMS, n - i)
            for r in range(some):
                copy_row(X, by_row, by_column, i + r, 0, f, a, r * f)
                if per_row:
                    copy_kept(a, r * f, mask, (i + r) * per_row, f, a, r * f)
            room[:] = 0
            for t in range(0, width, count(token)):
                add_products(a, 0, f, 1, f, w, t, width, s, t, width, token)
            for r in range(some):
                for q in range(width):
                    target[i + r, q] = scale * room[r, q]


@kernel
def _back(X, by_row, by_column, words, G, scale, out, token):
    """out[r] = scale * drop(X)^T G[r] for G (R, n, h) and out (R, columns, h): those of X, and more up to whole tasks."""
    runs, columns, width = out.shape
    (n, f), per_row = X.shape, words.shape[2]
    blocks = columns // _COLUMNS
    for task in prange(runs * blocks):
        run, first = task // blocks, task % blocks * _COLUMNS
        own = min(_COLUMNS, f - first)
        kept, total = np.zeros((BLOCK, _COLUMNS), out.dtype), out[run]
        a, g, s = address(kept), address(G[run]), address(total)
        mask = address(words[run if per_row else 0])
        total[first : first + _COLUMNS] = 0
        for begin in range(0, n, BLOCK):
            nodes = min(BLOCK, n - begin)
            for i in range(nodes):
                at = i * _COLUMNS
                copy_row(X, by_row, by_column, begin + i, first, own, a, at)
                if per_row:
                    copy_kept(a, at, mask, (begin + i) * per_row + first // 32, own, a, at)
            for j in range(0, own, SUMS):
                for t in range(0, width, count(token)):
                    add_products(
                        a, j, 1, _COLUMNS, nodes, g, begin * width + t, width, s, (first + j) * width + t, width, token
                    )
        total[first : first + _COLUMNS] *= scale


@final
class NumbaDenseFeatures(FeatureProduct):
    """drop(X) W and drop(X)^T G of R runs."""

    def __init__(self, rows: DenseRows) -> None:
        self._rows = RowsInMemory.of(rows)

    def apply(self, side: int, operand: NDArray[Any], draw: Draw | None) -> NDArray[Any]:
        (n, f), width = self._rows.matrix.shape, operand.shape[2]
        lanes_ = next((size for size in (4, 16) if size >= width), TILE)
        array = np.ascontiguousarray(np.pad(operand, ((0, 0), (0, 0), (0, -width % lanes_))))
        seeds, stream, epoch, threshold, digits, scale = mask_of(draw, DENSE_FEATURES, array)
        words = np.empty((len(array), n, words_of(f) if digits else 0), np.uint32)
        if digits:
            dense_words(seeds, stream, epoch, threshold, digits, words)
        many = -(-f // _COLUMNS) * _COLUMNS if side else n
        out = aligned((len(array), many, array.shape[2]), array.dtype)
        (_back if side else _forth)(*self._rows, words, array, scale, out, lanes(lanes_))
        return np.ascontiguousarray(out[:, : f if side else n, :width])
