"""The network of one run: its first layer, both forward passes at once, and the backward pass into Adam.

Every function does the share of one thread, rows `begin` to `end`, and every sum has one owner and one order.

Hidden units come in blocks of h lanes, classes in blocks of c lanes, both padded with zeros, which stay zeros: a padded
unit has no gradient. Layouts: W_1 (h blocks, f, h); hidden (h blocks, n, h); W_2 (c blocks, all h, c) and, transposed
for the backward pass, (h blocks, all c, h); predictions (c blocks, n, 2 c), the training half first.

Of a dense matrix of features a row of X is read once for both passes. The gradient of W_1 is then a sum over nodes: a fixed
number of chunks of nodes make a part of it each, and the parts are added in their order. The gradients of biases, of both
layers, are sums over nodes in blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from pprop.graph.features.scaling import DenseRows
from pprop.kernels.contract import FeatureMatrix
from pprop.kernels.numba_cpu._jit import part, serial
from pprop.kernels.numba_cpu.bits import keep_words, row_words
from pprop.kernels.numba_cpu.dense_features import BLOCK, SUMS, TILE, add_products, copy_kept, words_of
from pprop.kernels.numba_cpu.fused_readout import Crew, Entries, Law, Masks, shares
from pprop.kernels.numba_cpu.stored_rows import RowsInMemory, copy_row
from pprop.kernels.numba_cpu.vectors import (
    add,
    address,
    count,
    divide,
    fma,
    item,
    lane,
    lanes,
    load,
    prefetch,
    put,
    relu_keep,
    root,
    store,
    times,
    where_positive,
    zeros,
)
from pprop.kernels.random_bits import DENSE_FEATURES, FEATURES, HIDDEN, stream

# Rows whose terms of a sum over rows are added first. Part of the definition of the sums, so it is fixed.
SUM_ROWS = 128
_AHEAD = 6  # entries between asking for a row of W_1 and reading it
# Room that the lists of a row's entries need behind its longest.
SPARE_PLACES = _AHEAD
_LINE = 16  # float32 numbers in a cache line
# Keep decisions where nothing is dropped.
ALL = np.uint32(0xFFFFFFFF)
_FOUR = lanes(4)


@part
def _sort_out(words, bit, begin, end, indices, values, width, places, factors):
    """List the entries begin to end as (place in the matrix, factor), the kept ones from the front, the others from the
    back; return how many are kept. Without a branch: half of all branches on random bits would be predicted wrongly.
    """
    kept, back, shift = 0, end - begin - 1, np.uint32(bit)
    for e in range(begin, end):
        keep = np.int64((item(words, e) >> shift) & np.uint32(1))
        at = back + keep * (kept - back)
        put(places, at, np.int64(item(indices, e)) * width)
        put(factors, at, item(values, e))
        kept, back = kept + keep, back - 1 + keep
    return kept


@part
def _gather(first, last, places, factors, matrix, base, token):
    """Return the sum of factors[k] * matrix[base + places[k]:] for k from first to last.

    Looks _AHEAD places beyond: the lists have that much room behind their end, filled with valid places.
    """
    total = zeros(matrix, token)
    for k in range(first, last):
        ahead = base + item(places, k + _AHEAD)
        for line in range(0, count(token), _LINE):
            prefetch(matrix, ahead + line)
        total = fma(item(factors, k), load(matrix, base + item(places, k), token), total)
    return total


@part
def _row_sum(begin, end, last, indices, values, matrix, base, token):
    """Return the sum of values[e] * matrix[base + indices[e]] over all entries of a row; `last` is the matrix's last."""
    width = count(token)
    total = zeros(matrix, token)
    for e in range(begin, end):
        ahead = base + np.int64(item(indices, min(e + _AHEAD, last))) * width
        for line in range(0, width, _LINE):
            prefetch(matrix, ahead + line)
        total = fma(item(values, e), load(matrix, base + np.int64(item(indices, e)) * width, token), total)
    return total


@serial
def forward(
    begin, end, X, words, bit, seed, stream, epoch, law, scratch, W_1, W_2, biases, hidden, predictions, h_token, c_token
):  # fmt: skip
    """predictions = [ drop(relu(drop(X) W_1)) W_2 | relu(X W_1) W_2 ] for rows begin to end; keeps `hidden` of the first.

    One pass over the entries of X feeds two sums, of the kept and of the dropped entries; the evaluation's is the two
    together. `law` is (threshold, digits, scale), with no digits for no dropout; `biases` are those of both layers, or
    empty.
    """
    threshold, digits, scale = law
    last = len(X[1]) - 1
    indptr, indices, values = address(X[0]), address(X[1]), address(X[2])
    places, factors, raw, four = address(scratch[0]), address(scratch[1]), scratch[2], scratch[3]
    first, bits, f, width = address(W_1), address(words), W_1.shape[1], count(h_token)
    for block in range(len(W_1)):
        base = block * f * width
        for i in range(begin, end):
            low, high = ALL, ALL
            e0, e1 = item(indptr, i), item(indptr, i + 1)
            if digits > 0:
                kept = _sort_out(bits, bit, e0, e1, indices, values, width, places, factors)
                train = _gather(0, kept, places, factors, first, base, h_token)
                total = add(train, _gather(kept, e1 - e0, places, factors, first, base, h_token))
                low, high = hidden_words(seed, stream, i, epoch, block, width, threshold, digits, raw, four)
            else:
                total = train = _row_sum(e0, e1, last, indices, values, first, base, h_token)
            finish_node(
                i, block, train, total, low, high, scale, scratch[4], W_2, biases, hidden, predictions, h_token, c_token
            )


@part
def hidden_words(seed, stream, i, epoch, block, width, threshold, digits, raw, four):
    """Draw the keep decisions of one block of a node's hidden units, at most 64: two words."""
    word = block * width // 32  # more than one block has 64 lanes each
    keep_words(seed, stream, i, epoch, word, (width + 31) // 32, threshold, digits, raw, four)
    return four[0], four[1]


@part
def finish_node(i, block, train, total, low, high, scale, room, W_2, biases, hidden, predictions, h_token, c_token):
    """Take one block of a node's sums of both passes through bias, ReLU, dropout and the second layer.

    `low` and `high` are the decisions on its hidden units. `scale` is that of kept features, which are not scaled yet,
    and of kept units alike; `room` holds a row of units.
    """
    row, units, second = address(room), address(hidden), address(W_2)
    after, n, width, all_units = address(predictions), hidden.shape[1], count(h_token), W_2.shape[1]
    if len(biases[0]) > 0:
        shift = load(address(biases[0]), block * width, h_token)
        train, total = fma(np.float32(1.0) / scale, shift, train), add(total, shift)
    at = (block * n + i) * width
    store(units, at, relu_keep(train, low, high, scale * scale))
    store(row, 0, relu_keep(total, ALL, ALL, 1.0))
    for c_part in range(len(W_2)):
        place = 2 * count(c_token) * (c_part * n + i)
        rows = (c_part * all_units + block * width) * count(c_token)
        _second_layer(units, at, row, second, rows, block > 0, after, place, width, c_token)
        if block == 0 and len(biases[1]) > 0:
            shift_2 = load(address(biases[1]), c_part * count(c_token), c_token)
            store(after, place, add(load(after, place, c_token), shift_2))
            store(after, place + count(c_token), add(load(after, place + count(c_token), c_token), shift_2))


@part
def _second_layer(hidden, at, row, W_2, rows, more, predictions, place, width, c_token):
    """Add one block of hidden units to the predictions of a node; two sums of every second unit hide each other's latency."""
    classes = count(c_token)
    train, train_odd = zeros(W_2, c_token), zeros(W_2, c_token)
    total, total_odd = zeros(W_2, c_token), zeros(W_2, c_token)
    for p in range(0, width, 4):
        kept, all_ = load(hidden, at + p, _FOUR), load(row, p, _FOUR)
        w = load(W_2, rows + p * classes, c_token)
        train, total = fma(lane(kept, 0), w, train), fma(lane(all_, 0), w, total)
        w = load(W_2, rows + (p + 1) * classes, c_token)
        train_odd, total_odd = fma(lane(kept, 1), w, train_odd), fma(lane(all_, 1), w, total_odd)
        w = load(W_2, rows + (p + 2) * classes, c_token)
        train, total = fma(lane(kept, 2), w, train), fma(lane(all_, 2), w, total)
        w = load(W_2, rows + (p + 3) * classes, c_token)
        train_odd, total_odd = fma(lane(kept, 3), w, train_odd), fma(lane(all_, 3), w, total_odd)
    train, total = add(train, train_odd), add(total, total_odd)
    if more:
        train = add(load(predictions, place, c_token), train)
        total = add(load(predictions, place + classes, c_token), total)
    store(predictions, place, train)
    store(predictions, place + classes, total)


@serial
def backward(first, last, above, hidden, W_2_flipped, scale, partial, below, h_token, c_token):
    """For blocks `first` to `last` of SUM_ROWS nodes: below = scale * [hidden > 0] * above W_2^T, partial = hidden^T above.

    above (c blocks, n, c) is the gradient of the predictions, below (h blocks, n, h) that of the hidden layer before
    dropout and ReLU, partial (node blocks, h blocks, all c, h) the terms of W_2's gradient, transposed.
    """
    c_parts, n, _ = above.shape
    lanes_c, width, blocks = count(c_token), count(h_token), len(hidden)
    classes = c_parts * lanes_c
    gradient, units, flipped = address(above), address(hidden), address(W_2_flipped)
    sums, out = address(partial), address(below)
    for node_block in range(first, last):
        begin, end = node_block * SUM_ROWS, min(n, (node_block + 1) * SUM_ROWS)
        for block in range(blocks):
            for c_part in range(c_parts):
                for q in range(lanes_c):
                    total = zeros(units, h_token)
                    for i in range(begin, end):
                        share = item(gradient, (c_part * n + i) * lanes_c + q)
                        total = fma(share, load(units, (block * n + i) * width, h_token), total)
                    store(sums, ((node_block * blocks + block) * classes + c_part * lanes_c + q) * width, total)
            for i in range(begin, end):
                total = zeros(units, h_token)
                for c_part in range(c_parts):
                    row, at = (block * classes + c_part * lanes_c) * width, (c_part * n + i) * lanes_c
                    for q in range(lanes_c):
                        total = fma(item(gradient, at + q), load(flipped, row + q * width, h_token), total)
                at = (block * n + i) * width
                store(out, at, where_positive(total, load(units, at, h_token), scale))


@part
def adam_row(weights, mean, square, gradient, at, width, penalty, step, correction, squares, token):
    """One Adam step for `width` weights from offset `at`; adds |w_new|^2 by place to `squares`.

    w -= step * mean / (correction * sqrt(square) + 1e-8), step = rate / (1 - 0.9^t), correction = (1 - 0.999^t)^-1/2.
    """
    for q in range(0, width, count(token)):
        w = load(weights, at + q, token)
        full = fma(penalty, w, load(gradient, q, token))
        a = fma(0.1, full, times(0.9, load(mean, at + q, token)))
        b = fma(0.001, times(full, full), times(0.999, load(square, at + q, token)))
        w = fma(-step, divide(a, fma(correction, root(b), 1e-8)), w)
        store(mean, at + q, a)
        store(square, at + q, b)
        store(weights, at + q, w)
        store(squares, q, add(load(squares, q, token), times(w, w)))


@serial
def weight_step(
    first, last, X_flipped, words, bit, law, scratch, below, W_1, moments, penalty, step, correction, partial, token, some
):  # fmt: skip
    """For blocks `first` to `last` of SUM_ROWS features: the gradient drop(X)^T below of W_1, straight into Adam.

    partial (feature blocks, h) receives the terms of |W_1|^2. Adam works on `some` lanes at a time.
    """
    digits, width, f, n, last_entry = law[1], count(token), W_1.shape[1], below.shape[1], len(X_flipped[1]) - 1
    indptr, indices, values = address(X_flipped[0]), address(X_flipped[1]), address(X_flipped[2])
    places, factors, row, bits = address(scratch[0]), address(scratch[1]), address(scratch[4]), address(words)
    gradient, weights, mean, square = address(below), address(W_1), address(moments[0]), address(moments[1])
    for block_of_rows in range(first, last):
        sums = partial[block_of_rows]
        sums[:] = 0
        squares = address(sums)
        for j in range(block_of_rows * SUM_ROWS, min(f, (block_of_rows + 1) * SUM_ROWS)):
            e0, e1, kept = item(indptr, j), item(indptr, j + 1), 0
            if digits > 0:
                kept = _sort_out(bits, bit, e0, e1, indices, values, width, places, factors)
            for block in range(len(W_1)):
                if digits > 0:
                    total = _gather(0, kept, places, factors, gradient, block * n * width, token)
                else:
                    total = _row_sum(e0, e1, last_entry, indices, values, gradient, block * n * width, token)
                store(row, 0, total)
                at = (block * f + j) * width
                adam_row(weights, mean, square, row, at, width, penalty, step, correction, squares, some)


@serial
def weights_two(partial, W_2, moments, W_2_flipped, gradient, step, correction, squares, c_token):
    """One Adam step for W_2 from the terms of its gradient, added in their order; renews the transposed copy.

    `gradient` (all c, h) and `squares` (c,) are room to work in.
    """
    node_blocks, blocks, _, width = partial.shape
    c_parts, units, lanes_c = W_2.shape
    weights, mean, square = address(W_2), address(moments[0]), address(moments[1])
    column = np.empty(lanes_c, W_2.dtype)
    for block in range(blocks):
        gradient[:] = 0
        for node_block in range(node_blocks):
            gradient += partial[node_block, block]
        for c_part in range(c_parts):
            for p in range(width):
                at = (c_part * units + block * width + p) * lanes_c
                for q in range(lanes_c):
                    column[q] = gradient[c_part * lanes_c + q, p]
                own, sums = address(column), address(squares)
                adam_row(weights, mean, square, own, at, lanes_c, 0.0, step, correction, sums, c_token)
                for q in range(lanes_c):
                    W_2_flipped[block, c_part * lanes_c + q, p] = W_2[c_part, block * width + p, q]


_CHUNKS, _CHUNK_ROWS = 16, 256  # most chunks, and least nodes of one


def chunks_of(nodes: int) -> int:
    """Return in how many parts the gradient of W_1 is made: part of the definition of its sums.

    >>> chunks_of(100), chunks_of(20_000)
    (1, 16)
    """
    return max(1, min(_CHUNKS, nodes // _CHUNK_ROWS))


@serial
def dense_forward(
    begin, end, source, words, seed, stream, epoch, law, scratch, W_1, W_2, biases, hidden, predictions, h_token, c_token, tile
):  # fmt: skip
    """Do what `forward` does for rows begin to end of a dense X, and keep their mask words.

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
def dense_gradient(begin, end, source, words, digits, below, kept, partial, tile):
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
def dense_weight_step(first, last, partial, row, W_1, moments, penalty, step, correction, squares, token, some):
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


_BIAS_LANES = lanes(4)  # every block of units and of classes is made of fours


@serial
def _bias_sums(first, last, source, partial):
    """partial (node blocks, all lanes) = the sums of source (blocks, n, lanes) over blocks `first` to `last` of nodes."""
    blocks, n, width = source.shape
    for node_block in range(first, last):
        partial[node_block] = 0
        for block in range(blocks):
            for i in range(node_block * SUM_ROWS, min(n, (node_block + 1) * SUM_ROWS)):
                for q in range(width):
                    partial[node_block, block * width + q] += source[block, i, q]


@serial
def _bias_step(partial, factor, bias, moments, step, correction, some):
    """One Adam step, by `factor` times the sum of the terms in their order."""
    gradient, squares = np.zeros_like(bias), np.zeros_like(bias)
    for node_block in range(len(partial)):
        gradient += partial[node_block]
    gradient *= factor
    own, mean, square = address(gradient), address(moments[0]), address(moments[1])
    adam_row(address(bias), mean, square, own, 0, len(bias), 0.0, step, correction, address(squares), some)


@final
class Biases:
    """Both biases, padded to whole blocks of lanes; empty arrays for a network without."""

    def __init__(self, given: tuple[NDArray[np.float32], ...], padded: tuple[int, int], nodes: int) -> None:
        self.values = tuple(np.zeros(width if given else 0, np.float32) for width in padded)
        for value, bias in zip(self.values, given, strict=bool(given)):
            value[: bias.shape[1]] = bias[0]
        self._moments = [np.zeros((2, len(value)), np.float32) for value in self.values]
        self._partial = [np.empty((-(-nodes // SUM_ROWS), len(value)), np.float32) for value in self.values]

    def add_up(self, first: int, last: int, below: NDArray[Any], above: NDArray[Any]) -> None:
        """Make the terms of blocks of nodes from the gradients of the hidden layer and of the predictions."""
        if len(self.values[0]):
            _bias_sums(first, last, below, self._partial[0])
            _bias_sums(first, last, above, self._partial[1])

    def step(self, scale: np.float32, rates: tuple[np.float32, np.float32]) -> None:
        """Make one Adam step; the gradient of the hidden layer has the `scale` of kept features, which biases have not."""
        if len(self.values[0]):
            for layer, factor in enumerate((np.float32(1) / scale, np.float32(1))):
                _bias_step(self._partial[layer], factor, self.values[layer], self._moments[layer], *rates, _BIAS_LANES)


_HIDDEN = stream(HIDDEN, 1)
_SOME = lanes(16)  # that Adam works on at a time


class Weights(NamedTuple):
    """Weights of a run in blocks of lanes, as described above; `biases` are both, or empty."""

    W_1: NDArray[np.float32]
    W_2: NDArray[np.float32]
    biases: tuple[NDArray[np.float32], ...]


class Tokens(NamedTuple):
    """Lanes of a block of hidden units, and of classes."""

    units: tuple[int, ...]
    classes: tuple[int, ...]


class FirstLayer(ABC):
    """Both passes of the network over some rows of X, and the step of W_1.

    Attributes
    ----------
    scratch
        Of each thread: room for a row's entries (place, factor), random words, the decisions, hidden units of
        a node, and for a dense matrix rows of X and six sums.
    squares
        Terms of |W_1|^2, (blocks of features, h).
    """

    scratch: list[tuple[NDArray[Any], ...]]

    def __init__(self, law: Law, seed: np.uint64, crew: Crew, weights: Weights, tokens: Tokens) -> None:
        self._law, self._seed, self._crew, self._weights, self._tokens = law, seed, crew, weights, tokens
        blocks, f, width = weights.W_1.shape
        self._moments = crew.arena.zeros((2, blocks, f, width))
        self.squares = np.empty((-(-f // SUM_ROWS), width), np.float32)

    @abstractmethod
    def forward(self, thread: int, epoch: int, hidden: NDArray[Any], predictions: NDArray[Any]) -> None:
        """Predict a thread's share of the nodes, for the evaluation and for the training step of an epoch."""

    @abstractmethod
    def step(
        self, thread: int, epoch: int, below: NDArray[Any], penalty: np.float32, rates: tuple[np.float32, np.float32]
    ) -> None:
        """Make a thread's share of the Adam step of W_1, given the gradient of the hidden layer."""


@final
class SparseFirst(FirstLayer):
    """By the nonzeros of X."""

    def __init__(self, entries: Entries, *rest: Any) -> None:
        super().__init__(*rest)
        self._entries, threads, width = entries, self._crew.team.threads, self._weights.W_1.shape[2]
        self._by_row = shares(entries.matrix[0], threads)
        self._by_feature = shares(entries.flipped[0], threads, SUM_ROWS)
        self._masks = Masks(entries, self._law, FEATURES, self._seed, self._crew)
        longest = max(int(np.diff(side[0]).max(initial=1)) for side in (entries.matrix, entries.flipped))
        room = longest + SPARE_PLACES
        self.scratch = [
            (np.zeros(room, np.int64), np.zeros(room, np.float32), raw, four, np.empty(width, np.float32))
            for raw, four in zip(self._crew.raw, self._crew.four, strict=True)
        ]

    def forward(self, thread: int, epoch: int, hidden: NDArray[Any], predictions: NDArray[Any]) -> None:
        self._masks.renew(thread, epoch, 1)
        forward(
            self._by_row[thread], self._by_row[thread + 1], self._entries.matrix, *self._masks.at(0, epoch), self._seed,
            _HIDDEN, epoch, self._law, self.scratch[thread], *self._weights, hidden, predictions, *self._tokens,
        )  # fmt: skip

    def step(
        self, thread: int, epoch: int, below: NDArray[Any], penalty: np.float32, rates: tuple[np.float32, np.float32]
    ) -> None:
        weight_step(
            self._by_feature[thread], self._by_feature[thread + 1], self._entries.flipped, *self._masks.at(1, epoch),
            self._law, self.scratch[thread], below, self._weights.W_1, self._moments, penalty, *rates, self.squares,
            self._tokens.units, _SOME,
        )  # fmt: skip


@final
class DenseFirst(FirstLayer):
    """By whole rows of X."""

    def __init__(self, rows: RowsInMemory, *rest: Any) -> None:
        super().__init__(*rest)
        self._rows, (n, f), arena = tuple(rows), rows.matrix.shape, self._crew.arena
        blocks, _, width = self._weights.W_1.shape
        self._words = arena.empty((n, words_of(f) if self._law.digits else 0), np.uint32)
        self._tile = lanes(min(TILE, width))
        padded, threads = -(-f // SUMS) * SUMS, self._crew.team.threads
        self._partial = arena.empty((chunks_of(n), blocks, padded, width))
        self._kept = [arena.zeros((BLOCK, padded)) for _ in range(threads)]
        none = np.empty(0, np.int64), np.empty(0, np.float32)
        self.scratch = [
            (*none, raw, four, np.empty(width, np.float32), arena.zeros((SUMS, padded)), arena.zeros((SUMS, width)))
            for raw, four in zip(self._crew.raw, self._crew.four, strict=True)
        ]

    def forward(self, thread: int, epoch: int, hidden: NDArray[Any], predictions: NDArray[Any]) -> None:
        dense_forward(
            *_share(len(self._words), thread, self._crew.team.threads), self._rows, self._words, self._seed, _HIDDEN,
            epoch, self._law, self.scratch[thread], *self._weights, hidden, predictions, *self._tokens, self._tile,
        )  # fmt: skip

    def step(
        self, thread: int, epoch: int, below: NDArray[Any], penalty: np.float32, rates: tuple[np.float32, np.float32]
    ) -> None:
        chunks, team, n = len(self._partial), self._crew.team, len(self._words)
        for chunk in range(*_share(chunks, thread, team.threads)):
            dense_gradient(
                *_share(n, chunk, chunks), self._rows, self._words, self._law.digits, below, self._kept[thread],
                self._partial[chunk], self._tile,
            )  # fmt: skip
        team.meet()
        dense_weight_step(
            *_share(len(self.squares), thread, team.threads), self._partial, self.scratch[thread][4], self._weights.W_1,
            self._moments, penalty, *rates, self.squares, self._tokens.units, _SOME,
        )  # fmt: skip


def _share(count: int, part: int, parts: int) -> tuple[int, int]:
    """Return where one of several equal parts of a range begins and ends."""
    return count * part // parts, count * (part + 1) // parts


def first_bytes(nodes: int, features: int, nonzeros: int | None, units: int, *, dropout: bool) -> tuple[int, int, int]:
    """Return the bytes of X, shared by all runs, and of one run's masks of it and sums; a dense X is used as it is."""
    if nonzeros is None:
        words = words_of(features) if dropout else 0
        return 4 * nodes * features, 4 * nodes * words, 4 * chunks_of(nodes) * (features + SUMS) * units
    # by rows and by columns: index and value; and where an entry is on the other side
    planes = Masks.planes_for(1) if dropout else 1
    return 20 * nonzeros + 8 * (nodes + features + 2), 4 * 2 * planes * nonzeros, 0


def prepared(matrix: FeatureMatrix) -> Entries | RowsInMemory:
    """Return X as the first layers of all runs read it."""
    if isinstance(matrix, DenseRows):
        return RowsInMemory.of(matrix)
    return Entries.of(matrix.indptr, matrix.indices, matrix.data.astype(np.float32), matrix.shape[1])
