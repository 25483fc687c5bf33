"""The first layer of one run, in training: for a sparse or a dense matrix, with the masks and the room that it needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from pprop.graph.features.dense_rows import DenseRows
from pprop.kernels.numba_cpu import fused_dense, fused_network
from pprop.kernels.numba_cpu.dense_features import BLOCK, SUMS, TILE, words_of
from pprop.kernels.numba_cpu.fused_structure import Crew, Entries, Law, Masks, shares
from pprop.kernels.numba_cpu.stored_rows import RowsInMemory
from pprop.kernels.numba_cpu.vectors import lanes
from pprop.kernels.random_bits import FEATURES, HIDDEN, stream
from pprop.kernels.trainer import FeatureMatrix

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
        self._partial = arena.empty((fused_dense.chunks_of(n), blocks, padded, width))
        self._kept = [arena.zeros((BLOCK, padded)) for _ in range(threads)]
        none = np.empty(0, np.int64), np.empty(0, np.float32)
        self.scratch = [
            (*none, raw, four, np.empty(width, np.float32), arena.zeros((SUMS, padded)), arena.zeros((SUMS, width)))
            for raw, four in zip(self._crew.raw, self._crew.four, strict=True)
        ]

    def forward(self, thread: int, epoch: int, hidden: NDArray[Any], predictions: NDArray[Any]) -> None:
        fused_dense.forward(
            *_share(len(self._words), thread, self._crew.team.threads), self._rows, self._words, self._seed, _HIDDEN,
            epoch, self._law, self.scratch[thread], *self._weights, hidden, predictions, *self._tokens, self._tile,
        )  # fmt: skip

    def step(
        self, thread: int, epoch: int, below: NDArray[Any], penalty: np.float32, rates: tuple[np.float32, np.float32]
    ) -> None:
        chunks, team, n = len(self._partial), self._crew.team, len(self._words)
        for chunk in range(*_share(chunks, thread, team.threads)):
            fused_dense.gradient(
                *_share(n, chunk, chunks), self._rows, self._words, self._law.digits, below, self._kept[thread],
                self._partial[chunk], self._tile,
            )  # fmt: skip
        team.meet()
        fused_dense.weight_step(
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
        return 4 * nodes * features, 4 * nodes * words, 4 * fused_dense.chunks_of(nodes) * (features + SUMS) * units
    # by rows and by columns: index and value; and where an entry is on the other side
    planes = Masks.planes_for(1) if dropout else 1
    return 20 * nonzeros + 8 * (nodes + features + 2), 4 * 2 * planes * nonzeros, 0


def prepared(matrix: FeatureMatrix) -> Entries | RowsInMemory:
    """Return X as the first layers of all runs read it."""
    if isinstance(matrix, DenseRows):
        return RowsInMemory.of(matrix)
    return Entries.of(matrix.indptr, matrix.indices, matrix.data.astype(np.float32), matrix.shape[1])
