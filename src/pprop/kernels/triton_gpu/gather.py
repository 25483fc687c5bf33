"""Sums over the entries of a tile (see `plan`): T slots at a time, U entries of each in flight.

Entries are loaded one turn of the loop before the rows they point to; the last load reads past the tile. Every load is
issued before the first is used.
"""

from __future__ import annotations

import triton.language as tl

from pprop.kernels.triton_gpu.bits import loop_end, lowest_one
from pprop.kernels.triton_gpu.launch import device


@device
def tile_of(tiles, tile):
    """Return the class of a tile, its first entry, its number of iterations and its first mask word."""
    at = tiles + tile * 4
    return tl.load(at), tl.load(at + 1), tl.load(at + 2), tl.load(at + 3)


@device
def rows_of(acc, E: tl.constexpr, T: tl.constexpr, C: tl.constexpr):
    """Add up the lanes of each row: (T, C) to (T / E, C)."""
    if E == 1:
        return acc
    else:
        return tl.sum(tl.reshape(acc, (T // E, E, C)), axis=1)


@device
def value_of(entry):
    """Return the value of packed entries, their high half."""
    return (entry >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@device
def _row_at(source, entry, stride: tl.constexpr, WIDE: tl.constexpr):
    """Return where the rows of a matrix begin that entries point to."""
    row = entry.to(tl.int32)
    return source + (row.to(tl.int64) if WIDE else row)[:, None] * stride


@device
def load_entries(entries, at, slot, T: tl.constexpr, U: tl.constexpr, POLICY: tl.constexpr):
    """Load U neighbouring iterations of a tile."""
    loaded = ()
    for k in tl.static_range(U):
        loaded = loaded + (tl.load(entries + (at + k * T) + slot, eviction_policy=POLICY),)
    return loaded


@device
def _load_kept(entries, at, slot, bits, T: tl.constexpr, U: tl.constexpr):
    """The next U kept entries of every slot; return them, which of them there are, where they are, and the bits left.

    `at` is where the 32 iterations of the bits begin.
    """
    loaded, there, places = (), (), ()
    for _ in tl.static_range(U):
        one, k = lowest_one(bits)
        bits = bits ^ one
        place, found = at + k * T + slot, one != 0
        loaded = loaded + (tl.load(entries + place, mask=found, other=0),)
        there = there + (found,)
        places = places + (place,)
    return loaded, there, places, bits


@device
def gather(
    source, plane, entries, values, base, length, first, stride: tl.constexpr,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, MASKED: tl.constexpr, DROP: tl.constexpr,
    WEIGHTS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Add up columns first to first + C of the rows of `stride` numbers that T slots point to; WIDE if 2^31 or more in all.

    With DROP the columns before MASKED leave out what the plane drops. WEIGHTS says where the values of the entries
    are: "packed" with the columns, "stored" in `values`, or "" where all are one. Sums are in float64 for such a source.
    """
    slot = tl.arange(0, T)
    column = first + tl.arange(0, C)
    acc = tl.zeros((T, C), tl.float64 if source.dtype.element_ty == tl.float64 else tl.float32)
    coming = load_entries(entries, base, slot, T, U, "")
    for t in range(0, loop_end(length), U):
        if DROP:
            bits = tl.load(plane + (t // 32) * T + slot) >> (t % 32)
        entry = coming
        coming = load_entries(entries, base + (t + U) * T, slot, T, U, "")
        gathered = ()
        for k in tl.static_range(U):
            where = _row_at(source, entry[k], stride, WIDE) + column[None, :]
            if DROP:
                wanted = (((bits >> k) & 1) == 1)[:, None] | (column >= MASKED)[None, :]
                if stride % C != 0:
                    wanted = wanted & (column < stride)[None, :]
                term = tl.load(where, mask=wanted, other=0.0)
            elif stride % C != 0:
                term = tl.load(where, mask=(column < stride)[None, :], other=0.0)
            else:
                term = tl.load(where)
            gathered = gathered + (term,)
        for k in tl.static_range(U):
            if WEIGHTS == "packed":
                acc += value_of(entry[k])[:, None] * gathered[k]
            elif WEIGHTS == "stored":
                acc += gathered[k] * tl.load(values + (base + (t + k) * T) + slot)[:, None]
            else:
                acc += gathered[k]
    return acc


@device
def gather_kept(
    source, plane, most_at, entries, values, base, length, first, stride: tl.constexpr,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, WEIGHTS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The same where all columns are masked: each slot goes from one kept entry to the next.

    `most_at` says for every 32 iterations how many entries the fullest slot keeps.
    """
    slot = tl.arange(0, T)
    column = first + tl.arange(0, C)
    acc = tl.zeros((T, C), tl.float32)
    for t in range(0, loop_end(length), 32):
        bits = tl.load(plane + (t // 32) * T + slot)
        left = tl.load(most_at + t // 32).to(tl.int32)
        coming, come, to_come, bits = _load_kept(entries, base + t * T, slot, bits, T, U)
        for _ in range(0, loop_end(left), U):
            entry, there, places = coming, come, to_come
            coming, come, to_come, bits = _load_kept(entries, base + t * T, slot, bits, T, U)
            gathered = ()
            for k in tl.static_range(U):
                where = _row_at(source, entry[k], stride, WIDE) + column[None, :]
                wanted = there[k][:, None] if stride % C == 0 else there[k][:, None] & (column < stride)[None, :]
                gathered = gathered + (tl.load(where, mask=wanted, other=0.0),)
            for k in tl.static_range(U):
                if WEIGHTS == "packed":
                    acc += value_of(entry[k])[:, None] * gathered[k]
                elif WEIGHTS == "stored":
                    acc += gathered[k] * tl.load(values + places[k], mask=there[k], other=0.0)[:, None]
                else:
                    acc += gathered[k]
    return acc
