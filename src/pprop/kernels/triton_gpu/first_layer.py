"""The first layer of the fused epoch: evaluation and next training pass in one, and the adjoint that ends in Adam.

Work is dealt out as units of (run, slice of C hidden columns, tile of rows), in this order, and programs take units in
turns: all multiprocessors work on the same few runs, whose slices of W stay in the L2 cache. (A slice of 16
columns would stay in one L1 cache, if one multiprocessor kept to it: no faster on an H200.) Counted for 100 runs on
Cora-ML: 142,286 entries x 256 bytes x 100 = 3.6 GB of gathered rows, half a millisecond from an L2 at 7 TB/s.

Everything with hidden columns is stored slice by slice, (R, slices, rows, C). The product with W_2 is a kernel of its
own: inside this one it would cost more in exchanges between threads than in memory traffic.
"""

from __future__ import annotations

import triton.language as tl

from pprop.kernels.triton_gpu._jit import device, kernel
from pprop.kernels.triton_gpu.bits import loop_end, lowest_one
from pprop.kernels.triton_gpu.planes import plane_of

__all__ = ["adam_step", "backward_first", "forward_pair", "load_entries", "load_kept", "rows_of"]


@device
def rows_of(acc, E: tl.constexpr, T: tl.constexpr, C: tl.constexpr):
    """Add up the lanes of each row: (T, C) to (T / E, C)."""
    if E == 1:
        return acc
    else:
        return tl.sum(tl.reshape(acc, (T // E, E, C)), axis=1)


@device
def load_entries(entries, at, slot, T: tl.constexpr, U: tl.constexpr, POLICY: tl.constexpr):
    """U neighbouring iterations of a tile. All loads are issued before the first is used."""
    loaded = ()
    for k in tl.static_range(U):
        loaded = loaded + (tl.load(entries + (at + k * T) + slot, eviction_policy=POLICY),)
    return loaded


@device
def load_kept(entries, at, slot, bits, T: tl.constexpr, U: tl.constexpr, POLICY: tl.constexpr):
    """The next U kept entries of every slot; return them, which of them there are, where they are, and the bits left.

    `at` is where the 32 iterations of the bits begin.
    """
    loaded, there, places = (), (), ()
    for _ in tl.static_range(U):
        one, k = lowest_one(bits)
        bits = bits ^ one
        place, found = at + k * T + slot, one != 0
        loaded = loaded + (tl.load(entries + place, mask=found, other=0, eviction_policy=POLICY),)
        there = there + (found,)
        places = places + (place,)
    return loaded, there, places, bits


@device
def _value_of(entry):
    return (entry >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@device
def _finish_pair(
    whole, kept, row_at, hidden_words, hidden, quiet, n, run, group, kept_scale, hidden_scale,
    E: tl.constexpr, T: tl.constexpr, C: tl.constexpr, WORDS: tl.constexpr, SLICES: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    """ReLU and dropout for the rows of one tile."""
    rows = tl.load(row_at + tl.arange(0, T // E) * E)
    column = tl.arange(0, C)
    there = rows >= 0
    at = ((run * SLICES + group).to(tl.int64) * (n + 1) + rows)[:, None] * C + column[None, :]
    value = rows_of(whole, E, T, C)
    tl.store(quiet + at, tl.where(value <= 0, 0.0, value), mask=there[:, None])  # a NaN stays one
    if DROP:
        value = rows_of(kept, E, T, C) * kept_scale
        word_at = hidden_words + (run.to(tl.int64) * n + rows) * WORDS + (group * C) // 32
        bits = tl.load(word_at, mask=there, other=0)[:, None] >> ((group * C + column) % 32)[None, :]
        if C > 32:  # a slice of two words
            upper = tl.load(word_at + 1, mask=there, other=0)
            bits = tl.where((column < 32)[None, :], bits, upper[:, None] >> (column % 32)[None, :])
        value = tl.where((bits & 1) == 1, value * hidden_scale, 0.0)
    tl.store(hidden + at, tl.where(value <= 0, 0.0, value), mask=there[:, None])


@kernel("ahead", "units", "n", "f", "words")
def forward_pair(
    clock, ahead, units, tiles, count, rows, entries, planes, words, weights, hidden_words,
    hidden, quiet, n, f, kept_scale, hidden_scale,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, SLICES: tl.constexpr, WORDS: tl.constexpr, DROP: tl.constexpr,
    AHEAD: tl.constexpr, STREAM_POLICY: tl.constexpr, GATHER_POLICY: tl.constexpr,
):  # fmt: skip
    """X W once: all entries feed the evaluation, those kept in epoch clock + ahead the training pass.

    Programs take units in turns. With AHEAD entries are loaded one turn of the loop before the
    rows they point to; the last load reads past the tile.
    """
    unit = tl.program_id(0).to(tl.int64)
    slot, column = tl.arange(0, T), tl.arange(0, C)
    epoch = tl.load(clock) + ahead
    while unit < units:
        tile, copy = (unit % count).to(tl.int32), (unit // count).to(tl.int32)
        run, group = copy // SLICES, copy % SLICES
        klass, base = tl.load(tiles + tile * 4), tl.load(tiles + tile * 4 + 1)
        length, word = tl.load(tiles + tile * 4 + 2), tl.load(tiles + tile * 4 + 3)
        source = weights + copy.to(tl.int64) * (f + 1) * C
        plane = plane_of(planes, run, epoch, words, 1) + word
        whole = tl.zeros((T, C), tl.float32)
        kept = tl.zeros((T, C), tl.float32)
        if AHEAD:
            coming = load_entries(entries, base, slot, T, U, STREAM_POLICY)
        for t in range(0, loop_end(length), U):
            if AHEAD:
                entry = coming
                coming = load_entries(entries, base + (t + U) * T, slot, T, U, STREAM_POLICY)
            else:
                entry = load_entries(entries, base + t * T, slot, T, U, STREAM_POLICY)
            if DROP:
                bits = tl.load(plane + (t // 32) * T + slot, eviction_policy=STREAM_POLICY) >> (t % 32)
            gathered = ()
            for k in tl.static_range(U):
                where = source + entry[k].to(tl.int32)[:, None] * C + column[None, :]
                gathered = gathered + (tl.load(where, eviction_policy=GATHER_POLICY),)
            for k in tl.static_range(U):
                value = _value_of(entry[k])
                whole += value[:, None] * gathered[k]
                if DROP:
                    kept += tl.where(((bits >> k) & 1) == 1, value, 0.0)[:, None] * gathered[k]
        row_at = rows + tile * T
        if klass == 0:
            _finish_pair(whole, kept, row_at, hidden_words, hidden, quiet, n, run, group, kept_scale, hidden_scale,
                         1, T, C, WORDS, SLICES, DROP)  # fmt: skip
        if T >= 4:
            if klass == 1:
                _finish_pair(whole, kept, row_at, hidden_words, hidden, quiet, n, run, group, kept_scale,
                             hidden_scale, 4, T, C, WORDS, SLICES, DROP)  # fmt: skip
        if T >= 16:
            if klass == 2:
                _finish_pair(whole, kept, row_at, hidden_words, hidden, quiet, n, run, group, kept_scale,
                             hidden_scale, 16, T, C, WORDS, SLICES, DROP)  # fmt: skip
        if T >= 64:
            if klass == 3:
                _finish_pair(whole, kept, row_at, hidden_words, hidden, quiet, n, run, group, kept_scale,
                             hidden_scale, 64, T, C, WORDS, SLICES, DROP)  # fmt: skip
        unit += tl.num_programs(0)


@device
def adam_step(weight, gradient, mean, square, mean_correction, square_correction, rate):
    """Return the new weight and moments; the constants are 0.9, 0.999 and 1e-8."""
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * (gradient * gradient)
    step = (mean / mean_correction) / (tl.sqrt_rn(square / square_correction) + 1e-8)
    return weight - rate * step, mean, square


@device
def _finish_adam(
    acc, row_at, source, mean_at, square_at, squares_at, mean_correction, square_correction, rate, penalty,
    E: tl.constexpr, T: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """One Adam step on the rows of one tile, and the sum of their squares after it."""
    rows = tl.load(row_at + tl.arange(0, T // E) * E)
    there = rows[:, None] >= 0
    at = rows[:, None] * C + tl.arange(0, C)[None, :]
    old = tl.load(source + at, mask=there, other=0.0)
    mean = tl.load(mean_at + at, mask=there, other=0.0)
    square = tl.load(square_at + at, mask=there, other=0.0)
    gradient = rows_of(acc, E, T, C) + penalty * old
    new, mean, square = adam_step(old, gradient, mean, square, mean_correction, square_correction, rate)
    tl.store(source + at, new, mask=there)
    tl.store(mean_at + at, mean, mask=there)
    tl.store(square_at + at, square, mask=there)
    tl.store(squares_at, tl.sum(tl.sum(tl.where(there, new * new, 0.0), axis=1), axis=0))


@kernel("units", "n", "f", "words", "groups")
def backward_first(
    clock, corrections, units, tiles, count, rows, entries, planes, words, rounds, groups,
    gradient, weights, means, squares_of, norms, n, f, rate, penalty,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, SLICES: tl.constexpr, DROP: tl.constexpr, KEPT: tl.constexpr,
    AHEAD: tl.constexpr, STREAM_POLICY: tl.constexpr, GATHER_POLICY: tl.constexpr,
):  # fmt: skip
    """drop(X)^T G by rows of X^T; each finished row goes straight into Adam. norms[run, slice, tile] = its |W|^2.

    With KEPT every slot goes from one kept entry to the next, in `rounds`; otherwise all slots read all entries.
    """
    unit = tl.program_id(0).to(tl.int64)
    slot, column = tl.arange(0, T), tl.arange(0, C)
    epoch = tl.load(clock)
    mean_correction, square_correction = tl.load(corrections), tl.load(corrections + 1)
    while unit < units:
        tile, copy = (unit % count).to(tl.int32), (unit // count).to(tl.int32)
        klass, base = tl.load(tiles + tile * 4), tl.load(tiles + tile * 4 + 1)
        length, word = tl.load(tiles + tile * 4 + 2), tl.load(tiles + tile * 4 + 3)
        source = gradient + copy.to(tl.int64) * (n + 1) * C
        plane = plane_of(planes, copy // SLICES, epoch, words, 1) + word
        acc = tl.zeros((T, C), tl.float32)
        if KEPT:
            most_at = plane_of(rounds, copy // SLICES, epoch, groups, 1) + word // T
            for t in range(0, loop_end(length), 32):
                bits = tl.load(plane + (t // 32) * T + slot)
                left = tl.load(most_at + t // 32).to(tl.int32)
                if AHEAD:
                    coming, come, _places, bits = load_kept(entries, base + t * T, slot, bits, T, U, "")
                for _ in range(0, loop_end(left), U):
                    if AHEAD:
                        entry, there = coming, come
                        coming, come, _places, bits = load_kept(entries, base + t * T, slot, bits, T, U, "")
                    else:
                        entry, there, _places, bits = load_kept(entries, base + t * T, slot, bits, T, U, "")
                    gathered = ()
                    for k in tl.static_range(U):
                        where = source + entry[k].to(tl.int32)[:, None] * C + column[None, :]
                        term = tl.load(where, mask=there[k][:, None], other=0.0, eviction_policy=GATHER_POLICY)
                        gathered = gathered + (term,)
                    for k in tl.static_range(U):
                        acc += _value_of(entry[k])[:, None] * gathered[k]
        else:
            t = 0
            while t < length:
                entry = load_entries(entries, base + t * T, slot, T, U, STREAM_POLICY)
                if DROP:
                    bits = tl.load(plane + (t // 32) * T + slot, eviction_policy=STREAM_POLICY) >> (t % 32)
                gathered = ()
                for k in tl.static_range(U):
                    where = source + entry[k].to(tl.int32)[:, None] * C + column[None, :]
                    if DROP:
                        kept = (((bits >> k) & 1) == 1)[:, None]
                        term = tl.load(where, mask=kept, other=0.0, eviction_policy=GATHER_POLICY)
                    else:
                        term = tl.load(where, eviction_policy=GATHER_POLICY)
                    gathered = gathered + (term,)
                for k in tl.static_range(U):
                    acc += _value_of(entry[k])[:, None] * gathered[k]
                t += U
        row_at = rows + tile * T
        skip = copy.to(tl.int64) * (f + 1) * C
        to, mean_at, square_at = weights + skip, means + skip, squares_of + skip
        norm_at = norms + unit
        if klass == 0:
            _finish_adam(acc, row_at, to, mean_at, square_at, norm_at, mean_correction, square_correction, rate,
                         penalty, 1, T, C)  # fmt: skip
        if T >= 4:
            if klass == 1:
                _finish_adam(acc, row_at, to, mean_at, square_at, norm_at, mean_correction, square_correction, rate,
                             penalty, 4, T, C)  # fmt: skip
        if T >= 16:
            if klass == 2:
                _finish_adam(acc, row_at, to, mean_at, square_at, norm_at, mean_correction, square_correction, rate,
                             penalty, 16, T, C)  # fmt: skip
        if T >= 64:
            if klass == 3:
                _finish_adam(acc, row_at, to, mean_at, square_at, norm_at, mean_correction, square_correction, rate,
                             penalty, 64, T, C)  # fmt: skip
        unit += tl.num_programs(0)
