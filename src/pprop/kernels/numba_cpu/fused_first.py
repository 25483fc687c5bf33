"""The first layer of one run, in training: for a sparse or a dense matrix, with the masks and the room that it needs.

Layouts are those of `fused_network`, which has the kernels for a sparse matrix. Of a dense one a row of X is read once for
both passes. The gradient of W_1 is then a sum over nodes: a fixed number of chunks of nodes make a part of it each, and the
parts are added in their order. The gradients of biases, of both layers, are sums over nodes in blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from pprop.graph.features.dense_rows import DenseRows
from pprop.kernels.contract import FeatureMatrix
from pprop.kernels.numba_cpu import fused_network
from pprop.kernels.numba_cpu._jit import serial
from pprop.kernels.numba_cpu.bits import row_words
from pprop.kernels.numba_cpu.dense_features import BLOCK, SUMS, TILE, add_products, copy_kept, words_of
from pprop.kernels.numba_cpu.fused_network import ALL, SUM_ROWS, adam_row, finish_node, hidden_words
from pprop.kernels.numba_cpu.fused_structure import Crew, Entries, Law, Masks, shares
from pprop.kernels.numba_cpu.stored_rows import RowsInMemory, copy_row
from pprop.kernels.numba_cpu.vectors import add, address, count, lanes, load, store, zeros
from pprop.kernels.random_bits import DENSE_FEATURES, FEATURES, HIDDEN, stream

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
    """Weights of a run in blocks of lanes, as `fused_network` describes them; `biases` are both, or empty."""

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
        self.squares = np.empty((-(-f // fused_network.SUM_ROWS), width), np.float32)

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
        self._by_feature = shares(entries.flipped[0], threads, fused_network.SUM_ROWS)
        self._masks = Masks(entries, self._law, FEATURES, self._seed, self._crew)
        longest = max(int(np.diff(side[0]).max(initial=1)) for side in (entries.matrix, entries.flipped))
        room = longest + fused_network.SPARE_PLACES
        self.scratch = [
            (np.zeros(room, np.int64), np.zeros(room, np.float32), raw, four, np.empty(width, np.float32))
            for raw, four in zip(self._crew.raw, self._crew.four, strict=True)
        ]

    def forward(self, thread: int, epoch: int, hidden: NDArray[Any], predictions: NDArray[Any]) -> None:
        self._masks.renew(thread, epoch, 1)
        fused_network.forward(
            self._by_row[thread], self._by_row[thread + 1], self._entries.matrix, *self._masks.at(0, epoch), self._seed,
            _HIDDEN, epoch, self._law, self.scratch[thread], *self._weights, hidden, predictions, *self._tokens,
        )  # fmt: skip

    def step(
        self, thread: int, epoch: int, below: NDArray[Any], penalty: np.float32, rates: tuple[np.float32, np.float32]
    ) -> None:
        fused_network.weight_step(
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
