"""PPNP's rows of the PPR matrix for one run, four rows or columns at a time, so that their sums hide each other's wait.

Every function does the share of one thread. block (b, n) holds the rows; column offsets select a block of classes.
"""

from __future__ import annotations

import numpy as np

from pprop.kernels.numba_cpu._jit import serial
from pprop.kernels.numba_cpu.bits import keep_words
from pprop.kernels.numba_cpu.vectors import address, fma, load, store, zeros

__all__ = ["GROUP", "rows_adjoint", "rows_forward"]

GROUP = 128
"""Columns whose keep decisions one call of Philox gives at p = 1/2."""


@serial
def rows_forward(
    first,
    last,
    block,
    nodes,
    rows,
    predictions,
    offset,
    stride,
    seed,
    stream,
    epoch,
    law,
    raw,
    words,
    logits,
    column,
    token,
):
    """logits[k, column:] = drop(block)[rows[k]] predictions for k in quadruples `first` to `last`; no digits, no dropout.

    The predictions of node j begin at element stride * j + offset.
    """
    threshold, digits, scale = law
    n, m, width = block.shape[1], len(rows), logits.shape[1]
    H, out = address(predictions), address(logits)
    for quad in range(first, last):
        k0 = 4 * quad
        k1, k2, k3 = (
            min(k0 + 1, m - 1),
            min(k0 + 2, m - 1),
            min(k0 + 3, m - 1),
        )  # a short quadruple repeats its last row
        r0, r1, r2, r3 = rows[k0], rows[k1], rows[k2], rows[k3]
        t0, t1 = zeros(H, token), zeros(H, token)
        t2, t3 = zeros(H, token), zeros(H, token)
        for begin in range(0, n, GROUP):
            if digits > 0:
                keep_words(seed, stream, nodes[r0], epoch, begin // 32, 4, threshold, digits, raw, words[0])
                keep_words(seed, stream, nodes[r1], epoch, begin // 32, 4, threshold, digits, raw, words[1])
                keep_words(seed, stream, nodes[r2], epoch, begin // 32, 4, threshold, digits, raw, words[2])
                keep_words(seed, stream, nodes[r3], epoch, begin // 32, 4, threshold, digits, raw, words[3])
            for j in range(begin, min(n, begin + GROUP)):
                p0, p1, p2, p3 = block[r0, j], block[r1, j], block[r2, j], block[r3, j]
                if digits > 0:
                    at, bit = (j - begin) // 32, np.uint32(j % 32)
                    p0 = p0 * scale if (words[0, at] >> bit) & np.uint32(1) else np.float32(0)
                    p1 = p1 * scale if (words[1, at] >> bit) & np.uint32(1) else np.float32(0)
                    p2 = p2 * scale if (words[2, at] >> bit) & np.uint32(1) else np.float32(0)
                    p3 = p3 * scale if (words[3, at] >> bit) & np.uint32(1) else np.float32(0)
                row = load(H, stride * j + offset, token)
                t0, t1, t2, t3 = fma(p0, row, t0), fma(p1, row, t1), fma(p2, row, t2), fma(p3, row, t3)
        store(out, k3 * width + column, t3)
        store(out, k2 * width + column, t2)
        store(out, k1 * width + column, t1)
        store(out, k0 * width + column, t0)


@serial
def rows_adjoint(first, last, block, nodes, rows, gradient, column, seed, stream, epoch, law, raw, words, out, token):
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
                keep_words(seed, stream, nodes[rows[k]], epoch, begin // 32, 4, threshold, digits, raw, words[k])
        for j0 in range(begin, end, 4):
            j1, j2, j3 = min(j0 + 1, end - 1), min(j0 + 2, end - 1), min(j0 + 3, end - 1)
            t0, t1, t2, t3 = zeros(below, token), zeros(below, token), zeros(below, token), zeros(below, token)
            for k in range(m):
                r = rows[k]
                p0, p1, p2, p3 = block[r, j0], block[r, j1], block[r, j2], block[r, j3]
                if digits > 0:
                    word = words[k, (j0 - begin) // 32]
                    p0 = p0 * scale if (word >> np.uint32(j0 % 32)) & np.uint32(1) else np.float32(0)
                    p1 = p1 * scale if (word >> np.uint32(j1 % 32)) & np.uint32(1) else np.float32(0)
                    p2 = p2 * scale if (word >> np.uint32(j2 % 32)) & np.uint32(1) else np.float32(0)
                    p3 = p3 * scale if (word >> np.uint32(j3 % 32)) & np.uint32(1) else np.float32(0)
                row = load(above, k * stride + column, token)
                t0, t1, t2, t3 = fma(p0, row, t0), fma(p1, row, t1), fma(p2, row, t2), fma(p3, row, t3)
            store(below, j3 * width, t3)
            store(below, j2 * width, t2)
            store(below, j1 * width, t1)
            store(below, j0 * width, t0)
