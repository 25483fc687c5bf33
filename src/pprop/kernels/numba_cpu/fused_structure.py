"""What the fused kernels work on: sparse matrices both ways, keep decisions in planes, rows shared out to threads."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import serial
from pprop.kernels.numba_cpu.arena import Arena
from pprop.kernels.numba_cpu.bits import RAW_WORDS, plane_words, reorder_planes
from pprop.kernels.numba_cpu.team import Team, meet
from pprop.kernels.random_bits import Bernoulli


def padded(width: int, sizes: tuple[int, ...]) -> tuple[int, int]:
    """Return the lanes of one block, and the blocks: as few as `sizes` allow, each the smallest that holds its share.

    >>> padded(7, (4, 8, 16)), padded(100, (16, 64)), padded(40, (16, 20, 24))
    ((8, 1), (64, 2), (20, 2))
    """
    blocks = -(-width // sizes[-1])
    return next(size for size in sizes if size * blocks >= width), blocks


def shares(indptr: NDArray[np.int64], threads: int, block: int = 1) -> NDArray[np.int64]:
    """Return where each thread's rows begin, in blocks of rows, so that all have about the same number of entries.

    >>> shares(np.array([0, 6, 7, 8, 9]), 2)
    array([0, 2, 4])
    """
    cost = indptr + 4 * np.arange(len(indptr))  # a row costs something even when it is empty
    edges = np.minimum(np.arange(0, len(indptr) - 1 + block, block), len(indptr) - 1)
    bounds = np.searchsorted(cost[edges], cost[-1] * np.arange(threads + 1) / threads)
    bounds[0], bounds[-1] = 0, len(edges) - 1
    return bounds.astype(np.int64)


@serial
def _flip(indptr, indices, values, below, order, rows, turned):
    """Sort the entries of a CSR matrix by column, those of a column by row, by counting them; `rows` may be empty."""
    for e in range(len(indices)):
        below[indices[e] + 1] += 1
    for j in range(len(below) - 1):
        below[j + 1] += below[j]
    free = below.copy()
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            at = free[indices[e]]
            free[indices[e]] = at + 1
            order[at] = e
            if len(rows) > 0:
                rows[at] = i
            if len(turned) > 0:
                turned[at] = values[e]


class Entries(NamedTuple):
    """A sparse matrix by rows and by columns, each (indptr, indices, values), the values empty for a matrix of ones."""

    matrix: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]
    flipped: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]
    order: NDArray[np.int32]  # place in `matrix` of every entry of `flipped`

    @classmethod
    def of(
        cls,
        indptr: NDArray[Any],
        indices: NDArray[Any],
        values: NDArray[np.float32],
        columns: int,
        *,
        symmetric: bool = False,
    ) -> Entries:
        """Return the entries of a CSR matrix with that many columns; of a symmetric one both sides are the same arrays."""
        pointers, places = np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(indices, np.int32)
        matrix = pointers, places, values
        below: NDArray[np.int64] = np.zeros(columns + 1, np.int64)
        order: NDArray[np.int32] = np.empty(len(places), np.int32)
        rows = places[:0] if symmetric else np.empty_like(places)
        turned = values[:0] if symmetric else np.empty_like(values)
        _flip(*matrix, below, order, rows, turned)
        return cls(matrix, matrix if symmetric else (below, rows, turned), order)


class Law(NamedTuple):
    """A drop probability threshold / 2**digits, with one over the keep probability; no digits for no dropout."""

    threshold: int
    digits: int
    scale: np.float32

    @classmethod
    def of(cls, probability: float) -> Law:
        """Return the law of a drop probability in [0, 1)."""
        exact = Bernoulli.from_probability(probability)
        return cls(*exact, np.float32(exact.scale))


@final
class Crew:
    """A team with the memory of its run, and the room each of its threads needs to draw random words."""

    def __init__(self, team: Team) -> None:
        self.team, self.arena = team, Arena()
        self.raw = [np.empty(RAW_WORDS, np.uint64) for _ in range(team.threads)]
        self.four = [np.empty(4, np.uint32) for _ in range(team.threads)]


@final
class Masks:
    """Keep decisions of the entries of a sparse matrix: a ring of planes with 32 of every entry, by rows and by columns.

    A call of Philox gives four words, so four planes are drawn at a time, and none of it is thrown away.
    """

    def __init__(
        self, entries: Entries, law: Law, kind: int, seed: np.uint64, crew: Crew, positions_per_epoch: int = 1
    ) -> None:
        self._entries, self._law, self._kind, self._seed, self._crew = entries, law, kind, seed, crew
        size = len(entries.order)
        self._split = np.linspace(0, size, crew.team.threads + 1).astype(np.int64)
        if law.digits == 0:
            self.planes = crew.arena.empty((2, 1, size), np.uint32)
            self.planes[...] = 0xFFFFFFFF
            return
        self.planes = crew.arena.empty((2, self.planes_for(positions_per_epoch), size), np.uint32)

    @staticmethod
    def planes_for(positions_per_epoch: int) -> int:
        """Return the planes of one side."""
        span = (positions_per_epoch - 1) // 32 + 2  # blocks of 32 positions that one epoch may touch
        return 4 if positions_per_epoch <= 1 else 4 * ((span + 2) // 4 + 1)

    def renew(self, thread: int, epoch: int, positions: int) -> None:
        """Draw what an epoch with that many positions is the first to need: one thread's share of it."""
        if self._law.digits == 0:
            return
        first, last = epoch * positions, (epoch + 1) * positions - 1
        begin, end, team = self._split[thread], self._split[thread + 1], self._crew.team
        for block in range(-(-first // 128) * 4, last // 32 + 1, 4):
            plane_words(
                self._seed, self._kind, *self._entries.matrix[:2], begin, end, block,
                self._law.threshold, self._law.digits, self._crew.raw[thread], self._crew.four[thread], self.planes[0],
            )  # fmt: skip
            meet(team.desk, team.threads)
            reorder_planes(self._entries.order, begin, end, block, self.planes[0], self.planes[1])
            meet(team.desk, team.threads)

    def at(self, side: int, position: int) -> tuple[NDArray[np.uint32], int]:
        """Return the plane and the bit of a position, by rows (side 0) or by columns (side 1)."""
        return self.planes[side, position // 32 % self.planes.shape[1]], position % 32
