"""K power steps of the fused epoch, and their adjoint.

The states of the training pass and of the evaluation lie side by side, (R, 2, n + 1, 2 CLASSES) with two states to
step between and a row of zeros for padding, so that one pass over the edges moves both: all entries carry the
evaluation's half, the kept ones the other half too. Steps are made in scaled variables, y = S_c z (see `NumbaSteps`),
so that an unweighted graph stores no value per edge.

Each step is a launch over all runs; within a captured graph a launch costs little.
"""

from __future__ import annotations

import triton.language as tl

from pprop.kernels.triton_gpu._jit import device, kernel
from pprop.kernels.triton_gpu.bits import loop_end
from pprop.kernels.triton_gpu.first_layer import load_entries, load_kept, rows_of
from pprop.kernels.triton_gpu.planes import plane_of

__all__ = ["adjoint_tile", "forward_tile"]


@device
def _gather(
    source, plane, index, values, base, length, word, first, stride,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, MASKED: tl.constexpr, DROP: tl.constexpr,
    WEIGHTED: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Add up columns first to first + C of the kept entries of T slots; columns from MASKED on keep all entries."""
    slot = tl.arange(0, T)
    column = first + tl.arange(0, C)
    acc = tl.zeros((T, C), tl.float32)
    if AHEAD:
        coming = load_entries(index, base, slot, T, U, "")
    for t in range(0, loop_end(length), U):
        if DROP:
            bits = tl.load(plane + word + (t // 32) * T + slot) >> (t % 32)
        if AHEAD:
            neighbour = coming
            coming = load_entries(index, base + (t + U) * T, slot, T, U, "")
        else:
            neighbour = load_entries(index, base + t * T, slot, T, U, "")
        gathered = ()
        for k in tl.static_range(U):
            where = source + neighbour[k][:, None] * stride + column[None, :]
            if DROP:
                wanted = (((bits >> k) & 1) == 1)[:, None] | (column >= MASKED)[None, :]
                term = tl.load(where, mask=wanted, other=0.0)
            else:
                term = tl.load(where)
            gathered = gathered + (term,)
        for k in tl.static_range(U):
            if WEIGHTED:
                acc += gathered[k] * tl.load(values + (base + (t + k) * T) + slot)[:, None]
            else:
                acc += gathered[k]
    return acc


@device
def _gather_kept(
    source, plane, most_at, index, values, base, length, word, first, stride,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, WEIGHTED: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """The same where nothing but kept entries counts: each slot goes from one to the next."""
    slot = tl.arange(0, T)
    column = first + tl.arange(0, C)
    acc = tl.zeros((T, C), tl.float32)
    for t in range(0, loop_end(length), 32):
        bits = tl.load(plane + word + (t // 32) * T + slot)
        left = tl.load(most_at + word // T + t // 32).to(tl.int32)
        if AHEAD:
            coming, come, to_come, bits = load_kept(index, base + t * T, slot, bits, T, U, "")
        for _ in range(0, loop_end(left), U):
            if AHEAD:
                neighbour, there, places = coming, come, to_come
                coming, come, to_come, bits = load_kept(index, base + t * T, slot, bits, T, U, "")
            else:
                neighbour, there, places, bits = load_kept(index, base + t * T, slot, bits, T, U, "")
            gathered = ()
            for k in tl.static_range(U):
                where = source + neighbour[k][:, None] * stride + column[None, :]
                gathered = gathered + (tl.load(where, mask=there[k][:, None], other=0.0),)
            for k in tl.static_range(U):
                if WEIGHTED:
                    acc += gathered[k] * tl.load(values + places[k], mask=there[k], other=0.0)[:, None]
                else:
                    acc += gathered[k]
    return acc


@device
def _finish_forward(
    acc, row_at, start, target, row_scale, column_scale, first, last, alpha, keep_scale,
    E: tl.constexpr, T: tl.constexpr, C: tl.constexpr, CLASSES: tl.constexpr,
):  # fmt: skip
    """y' = S_c ((1 - alpha) S_r sum + alpha h); the last step leaves out S_c."""
    rows = tl.load(row_at + tl.arange(0, T // E) * E)
    column = first + tl.arange(0, C)
    there = rows >= 0
    arrived = (1.0 - alpha) * tl.load(row_scale + rows, mask=there, other=0.0)
    factor = tl.load(column_scale + rows, mask=there, other=0.0)
    factor = tl.where(last, 1.0, factor)
    share = tl.where(column < CLASSES, keep_scale, 1.0)
    at = rows[:, None] * (2 * CLASSES) + column[None, :]
    own = tl.load(start + at, mask=there[:, None], other=0.0)
    value = (arrived * factor)[:, None] * share[None, :] * rows_of(acc, E, T, C) + (alpha * factor)[:, None] * own
    tl.store(target + at, value, mask=there[:, None])


@device
def _forward_tile(
    tile, first, step, steps, plane, tiles, rows, index, values, start, source, target, row_scale, column_scale, alpha,
    keep_scale,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, CLASSES: tl.constexpr, DROP: tl.constexpr,
    WEIGHTED: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    klass, base = tl.load(tiles + tile * 4), tl.load(tiles + tile * 4 + 1)
    length, word = tl.load(tiles + tile * 4 + 2), tl.load(tiles + tile * 4 + 3)
    acc = _gather(source, plane, index, values, base, length, word, first, 2 * CLASSES,
                  T, C, U, CLASSES, DROP, WEIGHTED, AHEAD)  # fmt: skip
    row_at = rows + tile * T
    last = step == steps - 1
    if klass == 0:
        _finish_forward(acc, row_at, start, target, row_scale, column_scale, first, last, alpha, keep_scale,
                        1, T, C, CLASSES)  # fmt: skip
    if T >= 4:
        if klass == 1:
            _finish_forward(acc, row_at, start, target, row_scale, column_scale, first, last, alpha, keep_scale,
                            4, T, C, CLASSES)  # fmt: skip
    if T >= 16:
        if klass == 2:
            _finish_forward(acc, row_at, start, target, row_scale, column_scale, first, last, alpha, keep_scale,
                            16, T, C, CLASSES)  # fmt: skip
    if T >= 64:
        if klass == 3:
            _finish_forward(acc, row_at, start, target, row_scale, column_scale, first, last, alpha, keep_scale,
                            64, T, C, CLASSES)  # fmt: skip


@kernel("ahead", "words", "step", "steps")
def forward_tile(
    clock, ahead, tiles, count, rows, index, values, planes, words, start, states, row_scale, column_scale, n, step,
    steps, alphas, keep_scale,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, CLASSES: tl.constexpr, RING: tl.constexpr, DROP: tl.constexpr,
    WEIGHTED: tl.constexpr, AHEAD: tl.constexpr,
    TILES: tl.constexpr,
):  # fmt: skip
    """TILES neighbouring tiles of one step of one run."""
    begin, run = tl.program_id(0) * TILES, tl.program_id(1)
    alpha = tl.load(alphas + run)
    plane = plane_of(planes, run, (tl.load(clock) + ahead) * steps + step, words, RING)
    size = (n + 1).to(tl.int64) * (2 * CLASSES)
    state = states + run * 2 * size
    source, target = state + (step % 2) * size, state + ((step + 1) % 2) * size
    for tile in range(loop_end(begin), loop_end(tl.minimum(begin + TILES, count))):
        for first in tl.static_range(0, 2 * CLASSES, C):
            _forward_tile(tile, first, step, steps, plane, tiles, rows, index, values, start + run * size, source,
                          target, row_scale, column_scale, alpha, keep_scale,
                          T, C, U, CLASSES, DROP, WEIGHTED, AHEAD)  # fmt: skip


@device
def _finish_adjoint(
    acc, row_at, total, target, row_scale, column_scale, first, step, alpha, keep_scale,
    E: tl.constexpr, T: tl.constexpr, C: tl.constexpr, CLASSES: tl.constexpr,
):  # fmt: skip
    """g = (1 - alpha) S_r sum; y' = S_c g, and alpha g (g itself after the first step of all) goes to the total."""
    rows = tl.load(row_at + tl.arange(0, T // E) * E)
    column = first + tl.arange(0, C)
    there = rows >= 0
    arrived = (1.0 - alpha) * keep_scale * tl.load(row_scale + rows, mask=there, other=0.0)
    factor = tl.load(column_scale + rows, mask=there, other=0.0)
    value = arrived[:, None] * rows_of(acc, E, T, C)
    at = rows[:, None] * CLASSES + column[None, :]
    old = tl.load(total + at, mask=there[:, None], other=0.0)
    tl.store(total + at, old + tl.where(step > 0, alpha, 1.0) * value, mask=there[:, None])
    tl.store(target + at, factor[:, None] * value, mask=there[:, None])


@device
def _adjoint_tile(
    tile, first, step, plane, most_at, tiles, rows, index, values, total, source, target, row_scale, column_scale,
    alpha, keep_scale,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, CLASSES: tl.constexpr, DROP: tl.constexpr,
    KEPT: tl.constexpr, WEIGHTED: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    klass, base = tl.load(tiles + tile * 4), tl.load(tiles + tile * 4 + 1)
    length, word = tl.load(tiles + tile * 4 + 2), tl.load(tiles + tile * 4 + 3)
    if KEPT:
        acc = _gather_kept(source, plane, most_at, index, values, base, length, word, first, CLASSES,
                           T, C, U, WEIGHTED, AHEAD)  # fmt: skip
    else:
        acc = _gather(source, plane, index, values, base, length, word, first, CLASSES,
                      T, C, U, CLASSES, DROP, WEIGHTED, AHEAD)  # fmt: skip
    row_at = rows + tile * T
    if klass == 0:
        _finish_adjoint(acc, row_at, total, target, row_scale, column_scale, first, step, alpha, keep_scale,
                        1, T, C, CLASSES)  # fmt: skip
    if T >= 4:
        if klass == 1:
            _finish_adjoint(acc, row_at, total, target, row_scale, column_scale, first, step, alpha, keep_scale,
                            4, T, C, CLASSES)  # fmt: skip
    if T >= 16:
        if klass == 2:
            _finish_adjoint(acc, row_at, total, target, row_scale, column_scale, first, step, alpha, keep_scale,
                            16, T, C, CLASSES)  # fmt: skip
    if T >= 64:
        if klass == 3:
            _finish_adjoint(acc, row_at, total, target, row_scale, column_scale, first, step, alpha, keep_scale,
                            64, T, C, CLASSES)  # fmt: skip


@kernel("words", "groups", "done", "steps")
def adjoint_tile(
    clock, tiles, count, rows, index, values, planes, words, rounds, groups, total, states, row_scale, column_scale, n,
    done, steps, alphas, keep_scale,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, CLASSES: tl.constexpr, RING: tl.constexpr, DROP: tl.constexpr,
    KEPT: tl.constexpr, WEIGHTED: tl.constexpr, AHEAD: tl.constexpr,
    TILES: tl.constexpr,
):  # fmt: skip
    """TILES neighbouring tiles of one step of one run."""
    begin, run = tl.program_id(0) * TILES, tl.program_id(1)
    alpha = tl.load(alphas + run)
    step = steps - 1 - done
    position = tl.load(clock) * steps + step
    plane, most_at = plane_of(planes, run, position, words, RING), plane_of(rounds, run, position, groups, RING)
    size = (n + 1).to(tl.int64) * CLASSES
    state = states + run * 2 * size
    source, target = state + (done % 2) * size, state + ((done + 1) % 2) * size
    for tile in range(loop_end(begin), loop_end(tl.minimum(begin + TILES, count))):
        for first in tl.static_range(0, CLASSES, C):
            _adjoint_tile(tile, first, step, plane, most_at, tiles, rows, index, values, total + run * size, source,
                          target, row_scale, column_scale, alpha, keep_scale,
                          T, C, U, CLASSES, DROP, KEPT, WEIGHTED, AHEAD)  # fmt: skip
