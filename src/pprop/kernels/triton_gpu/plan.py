"""How the rows of a sparse matrix are dealt out to a GPU: tiles of equal work, entries laid out as they are read.

Rows differ in length (on Cora-ML an average of 7 neighbours and a hub of 247), and a program waits for its longest row.
So rows are sorted by length, long ones are spread over 4, 16 or 64 lanes, and T slots (row, lane) of similar length
make a tile. Entry k of a row is at iteration k div lanes, lane k mod lanes; an iteration of a tile is T neighbouring
entries in memory, and the sum of a row has an order that depends on the matrix alone. Coordinates are the original ones
throughout, so that masks do not depend on the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop._errors import CapacityError

# Lanes per row, by class.
LANES = (1, 4, 16, 64)


@final
@dataclass(frozen=True)
class Plan:
    """Tiles of one matrix, on a device.

    Attributes
    ----------
    tiles
        Per tile its class, first entry, number of iterations and first mask word, shape (tiles, 4), int32.
    rows
        The row of every slot, -1 for none, shape (tiles * T,), int32.
    index
        Column of every entry, shape (entries + padding,), int32; `columns`, one too many, where there is no entry.
        An unrolled iteration of padding at the end is there to be read past the last tile.
    order
        Which original entry is at each place, -1 for none; int64, on the CPU.
    slots
        T.
    words
        Mask words of one plane: for each tile, T for every 32 iterations.
    groups
        Every T words of a plane: first entry, number of iterations, tile; shape (words / T, 3), int32.
    """

    tiles: Tensor
    rows: Tensor
    index: Tensor
    order: Tensor
    slots: int
    columns: int
    words: int
    groups: Tensor

    @property
    def count(self) -> int:
        """Number of tiles."""
        return len(self.tiles)

    def packed(self, values: NDArray[Any]) -> Tensor:
        """Return the entries as int64, the column in the low half and the float32 value in the high half."""
        placed = self.placed(torch.from_numpy(values.astype(np.float32)))
        return (placed.view(torch.int32).long() << 32) | self.index.long()

    def placed(self, values: Tensor) -> Tensor:
        """Return a value per entry, in the order of the tiles and on their device; zero where there is no entry."""
        padded = torch.cat([values, values.new_zeros(1)])
        return padded[self.order].to(self.index.device)


def row_plan(
    indptr: NDArray[Any], indices: NDArray[Any], columns: int, *,
    slots: int, device: torch.device | str, unroll: int = 1, limit: int = 32,
) -> Plan:  # fmt: skip
    """Deal out the rows of a CSR structure.

    Parameters
    ----------
    slots
        T, a power of two.
    unroll
        Iterations come in multiples of this divisor of 32.
    limit
        Most iterations of a row before it is spread over more lanes.

    Examples
    --------
    >>> plan = row_plan(np.array([0, 1, 4]), np.array([2, 0, 1, 2]), 3, slots=2, device="cpu")
    >>> plan.rows, plan.index.reshape(-1, 2)
    (tensor([1, 0], dtype=torch.int32), tensor([[0, 2],
            [1, 3],
            [2, 3],
            [3, 3]], dtype=torch.int32))
    """
    indptr = np.asarray(indptr, dtype=np.int64)
    lengths = np.diff(indptr)
    n = len(lengths)
    lanes = np.array([k for k in LANES if k <= slots], dtype=np.int64)
    klass = np.minimum(np.searchsorted(lanes * limit, lengths), len(lanes) - 1)
    by_length = np.lexsort((np.arange(n), -lengths, -klass))  # the longest first
    klass, lengths = klass[by_length], lengths[by_length]

    # place every sorted row in a tile of its class
    per_tile = slots // lanes
    first_of_class = np.searchsorted(-klass, -np.arange(len(lanes)), side="left")
    counts = np.bincount(klass, minlength=len(lanes))
    tiles_of_class = -(-counts // per_tile)
    first_tile = np.concatenate([np.cumsum(tiles_of_class[::-1])[::-1][1:], [0]])  # higher classes come first
    rank = np.arange(n) - first_of_class[klass]
    tile = first_tile[klass] + rank // per_tile[klass]
    slot = rank % per_tile[klass] * lanes[klass]
    count = int(tiles_of_class.sum())
    tile_class = np.repeat(np.arange(len(lanes))[::-1], tiles_of_class[::-1])

    iterations = np.zeros(count, dtype=np.int64)
    np.maximum.at(iterations, tile, -(-lengths // lanes[klass]))
    iterations = -(-iterations // unroll) * unroll
    base = np.concatenate([[0], np.cumsum(iterations * slots)])
    words = np.concatenate([[0], np.cumsum(-(-iterations // 32) * slots)])
    if base[-1] >= 2**31:
        raise CapacityError(
            f"The GPU trainer numbers entries with 31 bits, and this matrix takes {base[-1]} places. Train on the CPU."
        )

    rows = np.full(count * slots, -1)
    for class_, width in enumerate(lanes):
        at = klass == class_
        where = (tile[at] * slots + slot[at])[:, None] + np.arange(width)
        rows[where] = by_length[at][:, None]

    # place every entry
    place = np.empty(n, dtype=np.int64)
    place[by_length] = np.arange(n)
    row = np.repeat(np.arange(n), np.diff(indptr))
    k, sorted_row = np.arange(len(row)) - indptr[row], place[row]
    width = lanes[klass[sorted_row]]
    at = base[tile[sorted_row]] + k // width * slots + slot[sorted_row] + k % width
    order = np.full(int(base[-1]) + slots * unroll, -1, dtype=np.int64)
    order[at] = np.arange(len(row))
    index = np.full(len(order), columns, dtype=np.int32)
    index[at] = indices

    # every 32 iterations of a tile share T mask words
    blocks = -(-iterations // 32)
    of_tile = np.repeat(np.arange(count), blocks)
    done = 32 * (np.arange(len(of_tile)) - np.repeat(np.cumsum(blocks) - blocks, blocks))
    groups = np.stack([base[of_tile] + done * slots, np.minimum(iterations[of_tile] - done, 32), of_tile], axis=1)
    table = np.stack([tile_class, base[:-1], iterations, words[:-1]], axis=1)

    def put(array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array.astype(np.int32, copy=False)).to(device)

    return Plan(
        tiles=put(table), rows=put(rows), index=put(index), order=torch.from_numpy(order), slots=slots, columns=columns,
        words=max(int(words[-1]), slots), groups=put(groups if len(groups) > 0 else np.zeros((1, 3))),
    )  # fmt: skip
