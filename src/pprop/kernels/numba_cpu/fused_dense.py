"""The fused first layer of one run for a dense matrix: both forward passes at once, and the gradient into Adam.

Layouts are those of `fused_network`. A row of X is read once for both passes. The gradient of W_1 is a sum over nodes: a
fixed number of chunks of nodes make a part of it each, and the parts are added in their order.
"""

from __future__ import annotations

from pprop.kernels.numba_cpu._jit import serial
from pprop.kernels.numba_cpu.bits import row_words
from pprop.kernels.numba_cpu.dense_features import BLOCK, SUMS, add_products, copy_kept
from pprop.kernels.numba_cpu.fused_network import ALL, SUM_ROWS, adam_row, finish_node, hidden_words
from pprop.kernels.numba_cpu.stored_rows import copy_row
from pprop.kernels.numba_cpu.vectors import add, address, count, load, store, zeros
from pprop.kernels.random_bits import DENSE_FEATURES

_CHUNKS, _CHUNK_ROWS = 16, 256  # most chunks, and least nodes of one


def chunks_of(nodes: int) -> int:
    """Return in how many parts the gradient of W_1 is made: part of the definition of its sums.

    >>> chunks_of(100), chunks_of(20_000)
    (1, 16)
    """
    return max(1, min(_CHUNKS, nodes // _CHUNK_ROWS))


@serial
def forward(
    begin, end, source, words, seed, stream, epoch, law, scratch, W_1, W_2, biases, hidden, predictions, h_token, c_token, tile
):  # fmt: skip
    """Do what `fused_network.forward` does for rows begin to end of a dense X, and keep their mask words.

    Six sums are made at a time: those of three nodes in both passes, or of six nodes without dropout.
    """
    threshold, digits, scale = law
    raw, four, rows, sums = scratch[2], scratch[3], scratch[5], scratch[6]
    X, by_row, by_column = source
    mask, left, total = address(words), address(rows), address(sums)
    first, f, width, per_row, room = address(W_1), X.shape[1], count(h_token), words.shape[1], rows.shape[1]
    each = SUMS // 2 if digits > 0 else SUMS
    for i in range(begin, end, each):
        some = min(each, end - i)
        for r in range(some):
            node = i + r
            copy_row(X, by_row, by_column, node, 0, f, left, r * room)
            if digits > 0:
                row_words(seed, DENSE_FEATURES, node, epoch, threshold, digits, raw, four, words[node], 0, per_row)
                copy_kept(left, r * room, mask, node * per_row, f, left, (each + r) * room)
        for block in range(len(W_1)):
            for t in range(0, width, count(tile)):
                for r in range(SUMS):
                    store(total, r * width + t, zeros(total, tile))
                add_products(left, 0, room, 1, f, first, block * f * width + t, width, total, t, width, tile)
            for r in range(some):
                low, high = ALL, ALL
                if digits > 0:
                    low, high = hidden_words(seed, stream, i + r, epoch, block, width, threshold, digits, raw, four)
                whole = load(total, r * width, h_token)
                train = load(total, (r + each if digits > 0 else r) * width, h_token)
                finish_node(
                    i + r, block, train, whole, low, high, scale, scratch[4], W_2, biases, hidden, predictions, h_token,
                    c_token,
                )  # fmt: skip


@serial
def gradient(begin, end, source, words, digits, below, kept, partial, tile):
    """partial = drop(X)^T below over the nodes begin to end, without the scale of kept features.

    below (h blocks, n, h); partial (h blocks, features and more up to whole sixes, h); kept (BLOCK, features and more).
    """
    blocks, n, width = below.shape
    X, by_row, by_column = source
    f, room, rows, per_row = X.shape[1], kept.shape[1], partial.shape[1], words.shape[1]
    mask, left, right, sums = address(words), address(kept), address(below), address(partial)
    partial[:] = 0
    for start in range(begin, end, BLOCK):
        nodes = min(BLOCK, end - start)
        for k in range(nodes):
            i = start + k
            copy_row(X, by_row, by_column, i, 0, f, left, k * room)
            if digits > 0:
                copy_kept(left, k * room, mask, i * per_row, f, left, k * room)
        for block in range(blocks):
            for j in range(0, f, SUMS):
                for t in range(0, width, count(tile)):
                    from_, to = (block * n + start) * width + t, (block * rows + j) * width + t
                    add_products(left, j, 1, room, nodes, right, from_, width, sums, to, width, tile)


@serial
def weight_step(first, last, partial, row, W_1, moments, penalty, step, correction, squares, token, some):
    """For blocks `first` to `last` of SUM_ROWS features: add up the chunks' parts of the gradient of W_1, into Adam.

    partial (chunks, h blocks, features and more, h); squares (feature blocks, h) receives the terms of |W_1|^2.
    """
    chunks, blocks, rows, width = partial.shape
    f, parts, own = W_1.shape[1], address(partial), address(row)
    weights, mean, square = address(W_1), address(moments[0]), address(moments[1])
    for block_of_rows in range(first, last):
        sums = squares[block_of_rows]
        sums[:] = 0
        for j in range(block_of_rows * SUM_ROWS, min(f, (block_of_rows + 1) * SUM_ROWS)):
            for block in range(blocks):
                total = load(parts, (block * rows + j) * width, token)
                for chunk in range(1, chunks):
                    total = add(total, load(parts, ((chunk * blocks + block) * rows + j) * width, token))
                store(own, 0, total)
                at = (block * f + j) * width
                adam_row(weights, mean, square, own, at, width, penalty, step, correction, address(sums), some)
