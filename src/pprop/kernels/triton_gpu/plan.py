"""How the rows of a sparse matrix are dealt out to a GPU: tiles of equal work, entries laid out as they are read.

Rows differ in length (on Cora-ML an average of 7 neighbours and a hub of 247), and a program waits for its longest row.
So rows are sorted by length, long ones are spread over 4, 16 or 64 lanes, and T slots (row, lane) of similar length
make a tile. Entry k of a row is at iteration k div lanes, lane k mod lanes; an iteration of a tile is T neighbouring
entries in memory, and the sum of a row has an order that depends on the matrix alone. Coordinates are the original ones
throughout, so that masks do not depend on the plan.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Lanes per row, by class.
LANES = (1, 4, 16, 64)
# Entries that are placed at a time: their places are 64-bit numbers, of which a few arrays are held.
_PLACED = 2**23


@final
@dataclass(frozen=True)
class RowPlan:
    """Tiles of one matrix, on a device.

    Attributes
    ----------
    tiles
        Per tile its class, first entry, number of iterations and first mask word, shape (tiles, 4), int32; int64 where
        there are 2^31 places or more.
    rows
        The row of every slot, -1 for none, shape (tiles * T,), int32.
    index
        Column of every entry, shape (entries + padding,), int32; `columns`, one too many, where there is no entry.
        An unrolled iteration of padding at the end is there to be read past the last tile.
    values
        Value of every entry, in their order, zero where there is none; None where none were given.
    slots
        T.
    words
        Mask words of one plane: for each tile, T for every 32 iterations.
    groups
        Every T words of a plane: first entry, number of iterations, tile; shape (words / T, 3), as `tiles`.
    """

    tiles: Tensor
    rows: Tensor
    index: Tensor
    values: Tensor | None
    slots: int
    columns: int
    words: int
    groups: Tensor

    @property
    def count(self) -> int:
        """Number of tiles."""
        return len(self.tiles)

    def packed(self) -> Tensor:
        """Return the entries as int64, the column in the low half and the float32 value in the high half."""
        assert self.values is not None
        return (self.values.float().view(torch.int32).long() << 32) | self.index.long()


def row_plan(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    columns: int,
    *,
    slots: int,
    device: torch.device | str,
    values: Tensor | None = None,
    unroll: int = 1,
    limit: int = 32,
) -> RowPlan:
    """Deal out the rows of a CSR structure, on the device.

    Parameters
    ----------
    slots
        T, a power of two.
    values
        Of the entries; None: the plan has none.
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
    offsets = torch.from_numpy(np.array(indptr, dtype=np.int64)).to(device)
    lengths, n = offsets.diff(), len(offsets) - 1
    lanes = torch.tensor([k for k in LANES if k <= slots], device=device)
    by_length = lengths.argsort(descending=True, stable=True)
    sorted_lengths = lengths[by_length]
    klass = torch.searchsorted(lanes * limit, sorted_lengths).clamp_(max=len(lanes) - 1)

    # place every sorted row in a tile of its class; higher classes come first
    per_tile, counts = slots // lanes, torch.bincount(klass, minlength=len(lanes))
    tiles_of_class = -(-counts // per_tile)
    first_of_class, first_tile = (each.flip(0).cumsum(0).flip(0) - each for each in (counts, tiles_of_class))
    rank = torch.arange(n, device=device) - first_of_class[klass]
    tile, slot = first_tile[klass] + rank // per_tile[klass], rank % per_tile[klass] * lanes[klass]
    count = int(tiles_of_class.sum())
    tile_class = torch.arange(len(lanes), device=device).flip(0).repeat_interleave(tiles_of_class.flip(0))

    longest = rank % per_tile[klass] == 0  # of a tile, its first row is
    iterations = torch.zeros(count, dtype=torch.int64, device=device)
    iterations[tile[longest]] = -(-sorted_lengths[longest] // lanes[klass[longest]])
    iterations = -(-iterations // unroll) * unroll
    blocks = -(-iterations // 32)  # every 32 iterations of a tile share T mask words
    base, words = _ends(iterations * slots), _ends(blocks * slots)
    places = int(base[-1])
    number = torch.int32 if places < 2**31 else torch.int64

    rows = torch.full((count * slots,), -1, dtype=torch.int32, device=device)
    for class_, width in enumerate(lanes.tolist()):
        at = klass == class_
        where = (tile[at] * slots + slot[at])[:, None] + torch.arange(width, device=device)
        rows[where] = by_length[at].to(torch.int32)[:, None]

    # place every entry: entry k of a row is at iteration k div lanes, lane k mod lanes
    begin, row_lanes = torch.empty_like(lengths), torch.empty_like(lengths)
    begin[by_length], row_lanes[by_length] = base[tile] + slot, lanes[klass]
    index = torch.full((places + slots * unroll,), columns, dtype=torch.int32, device=device)
    placed = None if values is None else torch.zeros(len(index), dtype=values.dtype, device=device)
    for first, past in _row_ranges(np.asarray(indptr)):
        row = torch.arange(first, past, device=device).repeat_interleave(lengths[first:past])
        mine = slice(int(indptr[first]), int(indptr[past]))
        k, width = torch.arange(mine.start, mine.stop, device=device) - offsets[row], row_lanes[row]
        at = begin[row] + k // width * slots + k % width
        index[at] = torch.from_numpy(np.array(indices[mine], dtype=np.int32)).to(device)
        if placed is not None and values is not None:
            placed[at] = values[mine].to(device)

    of_tile = torch.arange(count, device=device).repeat_interleave(blocks)
    done = 32 * (torch.arange(len(of_tile), device=device) - (blocks.cumsum(0) - blocks)[of_tile])
    groups = torch.stack([base[of_tile] + done * slots, (iterations[of_tile] - done).clamp(max=32), of_tile], dim=1)
    return RowPlan(
        tiles=torch.stack([tile_class, base[:-1], iterations, words[:-1]], dim=1).to(number),
        rows=rows,
        index=index,
        values=placed,
        slots=slots,
        columns=columns,
        words=max(int(words[-1]), slots),
        groups=groups.to(number) if len(groups) else torch.zeros(1, 3, dtype=number, device=device),
    )


def _ends(sizes: Tensor) -> Tensor:
    """Return where parts of these sizes begin, one after the other, and where the last ends."""
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def _row_ranges(indptr: NDArray[Any]) -> list[tuple[int, int]]:
    """Return consecutive ranges of rows that cover all of them, of about `_PLACED` entries each, or of one long row."""
    bounds = np.searchsorted(indptr, np.arange(0, int(indptr[-1]), _PLACED))
    bounds = np.unique([0, *bounds, len(indptr) - 1]).tolist()
    return list(itertools.pairwise(bounds))
