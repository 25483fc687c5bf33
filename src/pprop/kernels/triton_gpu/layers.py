"""The kernels of the fused epoch's network: two layers forward for two passes at once, and back to an Adam step.

**First layer.** Work is dealt out as units of (run, slice of C hidden columns, tile of rows), in this order, and
programs take units in turns: all multiprocessors work on the same few runs, whose slices of W stay in the L2 cache. (A
slice of 16 columns would stay in one L1 cache, if one multiprocessor kept to it: no faster on an H200.) Counted for 100
runs on Cora-ML: 142,286 entries x 256 bytes x 100 = 3.6 GB of gathered rows, half a millisecond from an L2 at 7 TB/s.

Everything with hidden columns is stored slice by slice, (R, slices, rows, C). The product with W_2 is a kernel of its
own: inside the first layer's it would cost more in exchanges between threads than in memory traffic. Products are in
full float32 ("ieee"): no TF32.
"""

from __future__ import annotations

import triton.language as tl

from pprop.kernels.triton_gpu.bits import loop_end, plane_of
from pprop.kernels.triton_gpu.gather import gather, gather_kept, load_entries, rows_of, tile_of, value_of
from pprop.kernels.triton_gpu.launch import device, kernel


@device
def activated(
    whole, kept, rows, there, hidden_words, biases, n, run, group, kept_scale, hidden_scale,
    C: tl.constexpr, WORDS: tl.constexpr, DROP: tl.constexpr, BIAS: tl.constexpr,
):  # fmt: skip
    """Bias, ReLU and dropout for some rows of one slice, from the sums of the evaluation and of the training pass.

    BIAS is how many biases a run has, those of the hidden units first; 0 for none. A NaN stays one.
    """
    column = tl.arange(0, C)
    if BIAS > 0:
        shift = tl.load(biases + run.to(tl.int64) * BIAS + group * C + column)[None, :]
        whole, kept = whole + shift, kept + shift / kept_scale
    value = whole
    if DROP:
        value = kept * kept_scale
        word_at = hidden_words + (run.to(tl.int64) * n + rows) * WORDS + (group * C) // 32
        bits = tl.load(word_at, mask=there, other=0)[:, None] >> ((group * C + column) % 32)[None, :]
        if C > 32:  # a slice of two words
            upper = tl.load(word_at + 1, mask=there, other=0)
            bits = tl.where((column < 32)[None, :], bits, upper[:, None] >> (column % 32)[None, :])
        value = tl.where((bits & 1) == 1, value * hidden_scale, 0.0)
    return tl.where(whole <= 0, 0.0, whole), tl.where(value <= 0, 0.0, value)


@device
def _finish_rows(
    whole, kept, rows, hidden_words, hidden, quiet, biases, n, run, group, kept_scale, hidden_scale,
    C: tl.constexpr, WORDS: tl.constexpr, SLICES: tl.constexpr, DROP: tl.constexpr, BIAS: tl.constexpr,
):  # fmt: skip
    """Write the hidden layer of both passes."""
    there = rows >= 0
    calm, noisy = activated(whole, kept, rows, there, hidden_words, biases, n, run, group, kept_scale, hidden_scale,
                            C, WORDS, DROP, BIAS)  # fmt: skip
    at = ((run * SLICES + group).to(tl.int64) * (n + 1) + rows)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(quiet + at, calm, mask=there[:, None])
    tl.store(hidden + at, noisy, mask=there[:, None])


@device
def write_predictions(
    trained, seen, row, biases, start, states, column_scale, n, run,
    UNITS: tl.constexpr, CLASSES: tl.constexpr, ROW: tl.constexpr, STEPS: tl.constexpr, BIAS: tl.constexpr,
):  # fmt: skip
    """H of both passes, (R, n + 1, 2 ROW), from products with W_2; with steps to come also the first state, S_c H."""
    label = tl.arange(0, CLASSES)
    if BIAS > 0:
        shift = tl.load(biases + run * BIAS + UNITS + label)[None, :]
        trained, seen = trained + shift, seen + shift
    size = (n + 1).to(tl.int64) * (2 * ROW)
    to = run * size + row.to(tl.int64)[:, None] * (2 * ROW) + label[None, :]
    there = (row < n)[:, None] & (label < ROW)[None, :]
    tl.store(start + to, trained, mask=there)
    tl.store(start + to + ROW, seen, mask=there)
    if STEPS:
        scale, first = tl.load(column_scale + row, mask=row < n, other=0.0)[:, None], states + run * size
        tl.store(first + to, trained * scale, mask=there)
        tl.store(first + to + ROW, seen * scale, mask=there)


@kernel("ahead", "units", "n", "f", "words", "groups")
def forward_first(
    clock, ahead, units, tiles, count, rows, entries, planes, words, rounds, groups, weights, hidden_words, hidden,
    quiet, biases, n, f, kept_scale, hidden_scale,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, SLICES: tl.constexpr, WORDS: tl.constexpr, DROP: tl.constexpr,
    BIAS: tl.constexpr,
):  # fmt: skip
    """X W once: all entries feed the evaluation, those kept in epoch clock + ahead the training pass.

    Programs take units in turns. Entries are loaded one turn of the loop before the rows they point to; the last load
    reads past the tile.
    """
    unit = tl.program_id(0).to(tl.int64)
    slot, column = tl.arange(0, T), tl.arange(0, C)
    epoch = tl.load(clock) + ahead
    while unit < units:
        tile, copy = (unit % count).to(tl.int32), (unit // count).to(tl.int32)
        run, group = copy // SLICES, copy % SLICES
        klass, base, length, word = tile_of(tiles, tile)
        source = weights + copy.to(tl.int64) * (f + 1) * C
        plane = plane_of(planes, run, epoch, words, 1) + word
        whole = tl.zeros((T, C), tl.float32)
        kept = tl.zeros((T, C), tl.float32)
        coming = load_entries(entries, base, slot, T, U, "evict_first")
        for t in range(0, loop_end(length), U):
            entry = coming
            coming = load_entries(entries, base + (t + U) * T, slot, T, U, "evict_first")
            if DROP:
                bits = tl.load(plane + (t // 32) * T + slot, eviction_policy="evict_first") >> (t % 32)
            gathered = ()
            for k in tl.static_range(U):
                gathered = gathered + (tl.load(source + entry[k].to(tl.int32)[:, None] * C + column[None, :]),)
            for k in tl.static_range(U):
                value = value_of(entry[k])
                whole += value[:, None] * gathered[k]
                if DROP:
                    kept += tl.where(((bits >> k) & 1) == 1, value, 0.0)[:, None] * gathered[k]
        row_at = rows + tile * T
        for k in tl.static_range(4):
            if 4**k <= T:
                if klass == k:
                    own = tl.load(row_at + tl.arange(0, T // 4**k) * 4**k)
                    _finish_rows(rows_of(whole, 4**k, T, C), rows_of(kept, 4**k, T, C), own, hidden_words, hidden,
                                 quiet, biases, n, run, group, kept_scale, hidden_scale, C, WORDS, SLICES, DROP,
                                 BIAS)  # fmt: skip
        unit += tl.num_programs(0)


@device
def adam(weights, means, squares, at, there, gradient, penalty, corrections, rate, PENALIZED: tl.constexpr):
    """Make one Adam step on the weights at `at` and return them; the constants are 0.9, 0.999 and 1e-8."""
    old = tl.load(weights + at, mask=there, other=0.0)
    mean = tl.load(means + at, mask=there, other=0.0)
    square = tl.load(squares + at, mask=there, other=0.0)
    if PENALIZED:
        gradient += penalty * old
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * (gradient * gradient)
    step = (mean / tl.load(corrections)) / (tl.sqrt_rn(square / tl.load(corrections + 1)) + 1e-8)
    new = old - rate * step
    tl.store(weights + at, new, mask=there)
    tl.store(means + at, mean, mask=there)
    tl.store(squares + at, square, mask=there)
    return new


@device
def _finish_adam(
    acc, row_at, weights, means, squares, norm_at, corrections, rate, penalty,
    E: tl.constexpr, T: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """One Adam step on the rows of one tile, and the sum of their squares after it."""
    rows = tl.load(row_at + tl.arange(0, T // E) * E)
    there = rows[:, None] >= 0
    at = rows[:, None] * C + tl.arange(0, C)[None, :]
    new = adam(weights, means, squares, at, there, rows_of(acc, E, T, C), penalty, corrections, rate, True)
    tl.store(norm_at, tl.sum(tl.sum(tl.where(there, new * new, 0.0), axis=1), axis=0))


@kernel("n", "f", "words", "groups")
def backward_first(
    clock, corrections, tiles, count, rows, entries, planes, words, rounds, groups, gradient, weights, means, squares,
    norms, n, f, rate, penalty,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, SLICES: tl.constexpr, DROP: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """drop(X)^T G by rows of X^T, a program a unit; each finished row goes straight into Adam.

    norms[run, slice, tile] = its |W|^2.
    """
    unit = tl.program_id(0).to(tl.int64)
    epoch = tl.load(clock)
    tile, copy = (unit % count).to(tl.int32), (unit // count).to(tl.int32)
    klass, base, length, word = tile_of(tiles, tile)
    source = gradient + copy.to(tl.int64) * (n + 1) * C
    plane = plane_of(planes, copy // SLICES, epoch, words, 1) + word
    if DROP:
        most_at = plane_of(rounds, copy // SLICES, epoch, groups, 1) + word // T
        acc = gather_kept(source, plane, most_at, entries, entries, base, length, 0, C, T, C, U, "packed", WIDE)
    else:
        acc = gather(source, plane, entries, entries, base, length, 0, C, T, C, U, 0, False, "packed", WIDE)
    skip = copy.to(tl.int64) * (f + 1) * C
    for k in tl.static_range(4):
        if 4**k <= T:
            if klass == k:
                _finish_adam(acc, rows + tile * T, weights + skip, means + skip, squares + skip, norms + unit,
                             corrections, rate, penalty, 4**k, T, C)  # fmt: skip


@kernel("n")
def forward_second(
    hidden, quiet, second, biases, start, states, column_scale, n, SLICES: tl.constexpr, C: tl.constexpr,
    CLASSES: tl.constexpr, ROW: tl.constexpr, B: tl.constexpr, STEPS: tl.constexpr, BIAS: tl.constexpr,
):  # fmt: skip
    """Make the predictions of both passes, H = hidden W_2, of B nodes of one run."""
    run = tl.program_id(1).to(tl.int64)
    row, column, label = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, C), tl.arange(0, CLASSES)
    there = (row < n)[:, None]
    trained, seen = tl.zeros((B, CLASSES), tl.float32), tl.zeros((B, CLASSES), tl.float32)
    for group in tl.static_range(SLICES):
        at = ((run * SLICES + group) * (n + 1) + row)[:, None] * C + column[None, :]
        weight = tl.load(second + ((run * SLICES + group) * C + column[:, None]) * CLASSES + label[None, :])
        noisy = tl.load(hidden + at, mask=there, other=0.0)
        calm = tl.load(quiet + at, mask=there, other=0.0)
        if C >= 16:  # the least that a product may add up
            trained = tl.dot(noisy, weight, trained, input_precision="ieee")
            seen = tl.dot(calm, weight, seen, input_precision="ieee")
        else:
            trained += tl.sum(noisy[:, :, None] * weight[None, :, :], axis=1)
            seen += tl.sum(calm[:, :, None] * weight[None, :, :], axis=1)
    write_predictions(trained, seen, row, biases, start, states, column_scale, n, run, SLICES * C, CLASSES, ROW, STEPS,
                      BIAS)  # fmt: skip


@kernel("n", "blocks")
def backward_second(
    above, second, hidden, part, bias_part, n, blocks, scale, bias_scale, SLICES: tl.constexpr, C: tl.constexpr,
    CLASSES: tl.constexpr, ROW: tl.constexpr, K: tl.constexpr, B: tl.constexpr, REPEAT: tl.constexpr,
    BIAS: tl.constexpr,
):  # fmt: skip
    """Turn hidden into scale * (dH W_2^T) where it is positive, in place; part = this block's share of hidden^T dH.

    bias_part = its shares of the sums over nodes of both gradients, that of the hidden layer times `bias_scale`.

    One program owns B * REPEAT nodes of all slices; after the first slice it finds dH in the L1 cache. The order of the
    sums depends on the sizes alone.
    """
    block, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column, label = tl.arange(0, C), tl.arange(0, K)  # K is the least that a product may add up, or CLASSES
    known = (label < CLASSES)[None, :]
    for group in tl.static_range(SLICES):
        weight_at = ((run * SLICES + group) * C + column[:, None]) * CLASSES + label[None, :]
        weight = tl.load(second + weight_at, mask=known, other=0.0)
        share = tl.zeros((C, K), tl.float32)
        unit_sums, class_sums = tl.zeros((C,), tl.float32), tl.zeros((K,), tl.float32)
        for k in range(REPEAT):
            row = (block * REPEAT + k) * B + tl.arange(0, B)
            there = (row < n)[:, None]
            above_at = (run * (n + 1) + row)[:, None] * ROW + label[None, :]
            gradient = tl.load(above + above_at, mask=there & (label < ROW)[None, :], other=0.0)
            at = hidden + ((run * SLICES + group) * (n + 1) + row)[:, None] * C + column[None, :]
            value = tl.load(at, mask=there, other=0.0)
            if C >= 16:
                share = tl.dot(tl.trans(value), gradient, share, input_precision="ieee")
                down = tl.dot(gradient, tl.trans(weight), input_precision="ieee")
            else:
                share += tl.sum(value[:, :, None] * gradient[:, None, :], axis=0)
                down = tl.sum(gradient[:, None, :] * weight[None, :, :], axis=2)
            down = tl.where(value > 0, down * scale, 0.0)
            tl.store(at, down, mask=there)
            if BIAS > 0:
                unit_sums += tl.sum(down, axis=0)
                class_sums += tl.sum(gradient, axis=0)
        if BIAS > 0:
            bias_at = bias_part + (run * blocks + block) * BIAS
            tl.store(bias_at + group * C + column, unit_sums * bias_scale)
            if group == 0:
                tl.store(bias_at + SLICES * C + label, class_sums, mask=label < CLASSES)
        to = part + (((run * blocks + block) * SLICES + group) * C + column[:, None]) * CLASSES + label[None, :]
        tl.store(to, share, mask=known)


@kernel("blocks")
def adam_second(part, weights, means, squares, corrections, size, blocks, rate, B: tl.constexpr):
    """Add up the blocks' shares in their order and make one Adam step on B weights of W_2 of one run."""
    run = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * B + tl.arange(0, B)
    gradient = tl.zeros((B,), tl.float32)
    block = 0
    while block < blocks:
        gradient += tl.load(part + (run * blocks + block) * size + at, mask=at < size, other=0.0)
        block += 1
    adam(weights, means, squares, run * size + at, at < size, gradient, 0.0, corrections, rate, False)


@kernel()
def copy_where(wanted, source, target, size, B: tl.constexpr):
    """target[run] = source[run] for the runs that are wanted; the others cost nothing but the look."""
    run = tl.program_id(1).to(tl.int64)
    if tl.load(wanted + run) != 0:
        at = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(target + run * size + at, tl.load(source + run * size + at, mask=at < size), mask=at < size)
