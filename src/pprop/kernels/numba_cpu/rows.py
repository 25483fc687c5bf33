"""PPNP's block of dense PPR rows, with dropout on its entries: for R runs at once, and for one run of the fused trainer.

For R runs, kernels are compiled for one width, a number of classes, so that the inner loops are unrolled. The sums of the
forward product are held in a tuple, which LLVM keeps in registers; an array would be stored and loaded again for every
term. One keep word covers 32 columns.

For one run, `run_forward` and `run_adjoint` do the share of one thread, four rows or columns at a time, so that their
sums hide each other's latency. block (b, n) holds the rows; column offsets select a block of classes.
"""

from __future__ import annotations

from functools import cache
from typing import Any, final

import numpy as np
from numba import prange
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.np.unsafe.ndarray import to_fixed_tuple
from numpy.typing import NDArray

from pprop.kernels.contract import RowPropagation
from pprop.kernels.numba_cpu._jit import ROW_BLOCK, kernel, part, serial
from pprop.kernels.numba_cpu.bits import keep_word, keep_words, mask_of
from pprop.kernels.numba_cpu.team import aligned
from pprop.kernels.numba_cpu.vectors import address, fma, load, store, zeros
from pprop.kernels.random_bits import PPR, Draw

# Most columns that one forward call computes: more sums than that do not fit into the registers.
FORWARD_WIDTH = 16


@cache
def rows_forward(width):
    """out[r, k] = sum_j drop(block)[rows[r, k], j] predictions[r, j], for `width` columns from `column` on.

    No dropout when there are no digits.
    """

    @kernel
    def run_rows_forward(block, nodes, rows, predictions, seeds, stream, epoch, threshold, digits, scale, column, out):
        runs, m, _ = out.shape
        n = block.shape[1]
        for task in prange(runs * m):
            run, k = task // m, task % m
            at, source = rows[run, k], predictions[run]
            acc = to_fixed_tuple(np.zeros(width, out.dtype), width)  # pyright: ignore[reportCallIssue]  an intrinsic
            for first in range(0, n, 32):
                keep = keep_word(seeds[run], stream, nodes[at], epoch, first // 32, threshold, digits)
                for j in range(first, min(n, first + 32)):
                    if (keep >> np.uint64(j - first)) & np.uint64(1):
                        value = block[at, j] * scale
                        for q in range(width):
                            acc = tuple_setitem(acc, q, acc[q] + value * source[j, column + q])
            for q in range(width):
                out[run, k, column + q] = acc[q]

    return run_rows_forward


@cache
def rows_adjoint(width):
    """out[r, j] = sum_k drop(block)[rows[r, k], j] gradient[r, k]; a task owns one block of columns j."""

    @kernel
    def run_rows_adjoint(block, nodes, rows, gradient, seeds, stream, epoch, threshold, digits, scale, out):
        runs, n, _ = out.shape
        m = gradient.shape[1]
        blocks = (n + ROW_BLOCK - 1) // ROW_BLOCK  # ROW_BLOCK is a multiple of 32, the columns of one keep word
        for task in prange(runs * blocks):
            run, part = task // blocks, task % blocks
            above, target = gradient[run], out[run]
            begin, end = part * ROW_BLOCK, min(n, (part + 1) * ROW_BLOCK)
            for j in range(begin, end):
                for q in range(width):
                    target[j, q] = 0
            for k in range(m):
                at = rows[run, k]
                for first in range(begin, end, 32):
                    keep = keep_word(seeds[run], stream, nodes[at], epoch, first // 32, threshold, digits)
                    for j in range(first, min(end, first + 32)):
                        if (keep >> np.uint64(j - first)) & np.uint64(1):
                            value = block[at, j] * scale
                            for q in range(width):
                                target[j, q] += value * above[k, q]

    return run_rows_adjoint


@final
class NumbaRows(RowPropagation):
    """drop(Pi_rows) H and its adjoint; a mask word covers 32 columns."""

    def __init__(self, block: NDArray[Any], nodes: NDArray[np.int64]) -> None:
        self._block, self._nodes = np.ascontiguousarray(block), nodes

    def forward(self, predictions: NDArray[Any], rows: NDArray[np.int64], draw: Draw | None) -> NDArray[Any]:
        width = predictions.shape[2]
        out = aligned((*rows.shape, width), predictions.dtype)
        arguments = self._arguments(predictions, rows, draw)
        for column in range(0, width, FORWARD_WIDTH):
            rows_forward(min(width - column, FORWARD_WIDTH))(*arguments, column, out)
        return out

    def adjoint(self, gradient: NDArray[Any], rows: NDArray[np.int64], draw: Draw | None) -> NDArray[Any]:
        out = aligned((len(rows), self._block.shape[1], gradient.shape[2]), gradient.dtype)
        rows_adjoint(gradient.shape[2])(*self._arguments(gradient, rows, draw), out)
        return out

    def _arguments(self, operand: NDArray[Any], rows: NDArray[np.int64], draw: Draw | None) -> tuple[Any, ...]:
        array = np.ascontiguousarray(operand)
        return self._block, self._nodes, np.ascontiguousarray(rows), array, *mask_of(draw, PPR, array)


# Columns whose keep decisions one call of Philox gives at p = 1/2.
GROUP = 128


@part
def _kept(value, word, bit, scale):
    """Return what is left of an entry of the block, given the word with its keep decision."""
    return value * scale if (word >> np.uint32(bit)) & np.uint32(1) else np.float32(0)


@serial
def run_forward(
    first, last, block, nodes, rows, predictions, offset, stride, seed, epoch, law, raw, words, logits, column, token
):
    """logits[k, column:] = drop(block)[rows[k]] predictions for k in quadruples `first` to `last`; no digits, no dropout.

    The predictions of node j begin at element stride * j + offset.
    """
    threshold, digits, scale = law
    n, m, width = block.shape[1], len(rows), logits.shape[1]
    H, out = address(predictions), address(logits)
    for quad in range(first, last):
        k0 = 4 * quad
        k1, k2, k3 = min(k0 + 1, m - 1), min(k0 + 2, m - 1), min(k0 + 3, m - 1)  # a short quadruple repeats its last
        r0, r1, r2, r3 = rows[k0], rows[k1], rows[k2], rows[k3]
        t0, t1, t2, t3 = zeros(H, token), zeros(H, token), zeros(H, token), zeros(H, token)
        for begin in range(0, n, GROUP):
            if digits > 0:
                keep_words(seed, PPR, nodes[r0], epoch, begin // 32, 4, threshold, digits, raw, words[0])
                keep_words(seed, PPR, nodes[r1], epoch, begin // 32, 4, threshold, digits, raw, words[1])
                keep_words(seed, PPR, nodes[r2], epoch, begin // 32, 4, threshold, digits, raw, words[2])
                keep_words(seed, PPR, nodes[r3], epoch, begin // 32, 4, threshold, digits, raw, words[3])
            for j in range(begin, min(n, begin + GROUP)):
                p0, p1, p2, p3 = block[r0, j], block[r1, j], block[r2, j], block[r3, j]
                if digits > 0:
                    at, bit = (j - begin) // 32, j % 32
                    p0 = _kept(p0, words[0, at], bit, scale)
                    p1 = _kept(p1, words[1, at], bit, scale)
                    p2 = _kept(p2, words[2, at], bit, scale)
                    p3 = _kept(p3, words[3, at], bit, scale)
                row = load(H, stride * j + offset, token)
                t0, t1, t2, t3 = fma(p0, row, t0), fma(p1, row, t1), fma(p2, row, t2), fma(p3, row, t3)
        store(out, k3 * width + column, t3)
        store(out, k2 * width + column, t2)
        store(out, k1 * width + column, t1)
        store(out, k0 * width + column, t0)


@serial
def run_adjoint(first, last, block, nodes, rows, gradient, column, seed, epoch, law, raw, words, out, token):
    """out[j] = sum over k of drop(block)[rows[k], j] gradient[k, column:] for groups `first` to `last` of columns j.

    `words` has room for four words of every row.
    """
    threshold, digits, scale = law
    n, m, width, stride = block.shape[1], len(rows), out.shape[1], gradient.shape[1]
    above, below = address(gradient), address(out)
    for group in range(first, last):
        begin, end = group * GROUP, min(n, (group + 1) * GROUP)
        if digits > 0:
            for k in range(m):
                keep_words(seed, PPR, nodes[rows[k]], epoch, begin // 32, 4, threshold, digits, raw, words[k])
        for j0 in range(begin, end, 4):
            j1, j2, j3 = min(j0 + 1, end - 1), min(j0 + 2, end - 1), min(j0 + 3, end - 1)
            t0, t1, t2, t3 = zeros(below, token), zeros(below, token), zeros(below, token), zeros(below, token)
            for k in range(m):
                r = rows[k]
                p0, p1, p2, p3 = block[r, j0], block[r, j1], block[r, j2], block[r, j3]
                if digits > 0:
                    word = words[k, (j0 - begin) // 32]
                    p0 = _kept(p0, word, j0 % 32, scale)
                    p1 = _kept(p1, word, j1 % 32, scale)
                    p2 = _kept(p2, word, j2 % 32, scale)
                    p3 = _kept(p3, word, j3 % 32, scale)
                row = load(above, k * stride + column, token)
                t0, t1, t2, t3 = fma(p0, row, t0), fma(p1, row, t1), fma(p2, row, t2), fma(p3, row, t3)
            store(below, j3 * width, t3)
            store(below, j2 * width, t2)
            store(below, j1 * width, t1)
            store(below, j0 * width, t0)
