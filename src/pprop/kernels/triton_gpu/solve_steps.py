"""Steps of solves to a tolerance that know by themselves when to end.

What a solve is told and where it stands is on the device, in `control`: float64 numbers, then five rows of one number a
column. A step does nothing once the solve is done, so that the host may launch too many and need not look. The sums over
nodes that a step needs are made by its programs in parts; the program that ends last, known by a ticket, adds the parts in
their order and writes down what follows from them. Only the ticket is counted atomically: the same input gives the same
bits.
"""

from __future__ import annotations

import triton.language as tl

from pprop.kernels.triton_gpu.bits import loop_end
from pprop.kernels.triton_gpu.gather import gather, rows_of, tile_of
from pprop.kernels.triton_gpu.launch import device, kernel

# Places in `control`: whether it is done, products made, the limits, Chebyshev's weight and momentum. Then the rows.
DONE, MADE, NEAR, MOST, STOP, WEIGHT, MOMENTUM, HEAD = (tl.constexpr(k) for k in range(8))
RESIDUAL, SIZE, SQUARE, STEP, BACK = (tl.constexpr(k) for k in range(5))
ROWS_OF_CONTROL = 5

# Kinds of `product_step`.
POWER, CHEBYSHEV, IMAGE = (tl.constexpr(k) for k in range(3))


@device
def _watched(control, k, LOOK: tl.constexpr):
    """Whether the norms are computed after product k; see `Limits.looks`. Product 0 is the start."""
    near, most = tl.load(control + NEAR), tl.load(control + MOST)
    return (k > 0) & ((k >= near) | (k == most) | (k.to(tl.int32) % LOOK == 0))


@device
def _term(value, mass, NORM: tl.constexpr):
    """A node's share of a norm; one that is not a number is infinite, since maxima would pass it over."""
    size = tl.abs(value.to(tl.float64))
    if NORM == 0:
        size = size * size
    size = mass[:, None] * size
    return tl.where(size >= 0.0, size, float("inf"))


@device
def _joined(total, terms, NORM: tl.constexpr):
    """Add the shares of some rows, (rows, C), to a sum, (C,); or take the maximum."""
    if NORM == 1:
        return tl.maximum(total, tl.max(terms, axis=0))
    else:
        return total + tl.sum(terms, axis=0)


@device
def _part_at(partial, part, side: tl.constexpr, column, stride):
    return partial + (part * 2 + side).to(tl.int64) * stride + column


@device
def _whole(partial, side: tl.constexpr, parts, column, stride, C: tl.constexpr, P: tl.constexpr, NORM: tl.constexpr):
    """Add up the parts of a sum, P at a time, in an order that depends on their number alone; shape (C,)."""
    acc = tl.zeros((P, C), tl.float64)
    for first in range(0, loop_end(parts), P):
        part = first + tl.arange(0, P)
        at = _part_at(partial, part[:, None], side, column[None, :], stride)
        one = tl.load(at, mask=(part < parts)[:, None], other=0.0, cache_modifier=".cg")
        if NORM == 1:
            acc = tl.maximum(acc, one)
        else:
            acc += one
    return tl.max(acc, axis=0) if NORM == 1 else tl.sum(acc, axis=0)


@device
def _ends_last(ticket):
    """Whether all other programs of the launch have written their parts; the ticket then starts anew."""
    tl.debug_barrier()  # every thread's stores come before the ticket
    programs = tl.num_programs(0) * tl.num_programs(1)
    last = tl.atomic_add(ticket, 1, sem="acq_rel", scope="gpu") == programs - 1
    if last:
        tl.store(ticket, 0)
    return last


@device
def _at(control, row: tl.constexpr, column, width):
    return control + HEAD + row * width + column


@device
def _judge(control, column, width, residual, size, NORM: tl.constexpr):
    """Write down the norms of some columns; return whether all of them are good enough."""
    if NORM == 0:
        residual, size = tl.sqrt(residual), tl.sqrt(size)
    real = column < width
    tl.store(_at(control, RESIDUAL, column, width), residual, mask=real)
    tl.store(_at(control, SIZE, column, width), size, mask=real)
    fine = (residual <= tl.load(control + STOP) * size) | (column >= width)
    return tl.min(fine.to(tl.int32), axis=0)


@device
def _close(control, k, watched, good):
    """Write down that product k was made, and whether it was the last."""
    if watched:
        done = (good == 1) | (k == tl.load(control + MOST))
        tl.store(control + DONE, done.to(tl.float64))
    tl.store(control + MADE, k)


@device
def _rows_step(
    first_row, base, length, index, values, arrived, scale, measure, own, source, out, first, n,
    width: tl.constexpr, factor, other, watched, residual, size,
    E: tl.constexpr, T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, NORM: tl.constexpr, KIND: tl.constexpr,
    GATHER: tl.constexpr, WEIGHTS: tl.constexpr,
):  # fmt: skip
    """Make the rows of one tile, E lanes a row, or T neighbouring rows whose products have `arrived`; return the sums."""
    column = first + tl.arange(0, C)
    if GATHER:
        node = tl.load(first_row + tl.arange(0, T // E) * E)
    else:
        node = base + tl.arange(0, T)
    there = (node >= 0) & (node < n)
    wanted = there[:, None] & (column < width)[None, :]
    at = node[:, None].to(tl.int64) * width + column[None, :]
    here = tl.load(source + at, mask=wanted, other=0.0)
    mine = tl.load(own + at, mask=wanted, other=0.0)  # not loaded where it is not used, nor is the next
    before = tl.load(out + at, mask=wanted, other=0.0)
    stay = tl.load(scale + node, mask=there, other=0.0)[:, None]
    if GATHER:
        total = gather(source, index, index, values, base, length, first, width, T, C, U, 0, False, WEIGHTS,
                       False)  # fmt: skip
        total = rows_of(total, E, T, C)
    else:
        total = tl.load(arrived + at, mask=wanted, other=0.0)
    mass = tl.load(measure + node, mask=there, other=0.0)
    if KIND == IMAGE:
        value = here - stay * total
        tl.store(out + at, value, mask=wanted)
        residual += tl.sum(mass[:, None] * here.to(tl.float64) * value.to(tl.float64), axis=0)
    else:
        value = stay * total + mine
        ahead = factor * value + other * before if KIND == CHEBYSHEV else value
        tl.store(out + at, ahead, mask=wanted)
        if watched:
            residual = _joined(residual, _term(value - here, mass, NORM), NORM)
            size = _joined(size, _term(here if KIND == CHEBYSHEV else value, mass, NORM), NORM)
    return residual, size


@kernel("n", "count", "each")
def product_step(
    control, ticket, tiles, rows, index, values, arrived, scale, measure, own, source, out, partial, n, count,
    width: tl.constexpr, each,
    T: tl.constexpr, C: tl.constexpr, U: tl.constexpr, P: tl.constexpr, LOOK: tl.constexpr, NORM: tl.constexpr,
    KIND: tl.constexpr, GATHER: tl.constexpr, WEIGHTS: tl.constexpr,
):  # fmt: skip
    """One product and what follows from it; `each` tiles of T rows a program. `scale` is (1 - alpha) S.

    POWER: out = v for v = (1 - alpha) S A u + b; the norms are those of v - u and v.
    CHEBYSHEV: out = w v + (1 - w) out; the norms are those of v - u and u.
    IMAGE: out = p - (1 - alpha) S A p for conjugate gradients, and the length of the step along p.

    Without GATHER, A u has been summed before and `arrived`; rows are taken in their order.
    """
    if tl.load(control + DONE) == 0.0:
        part, block = tl.program_id(0), tl.program_id(1)
        column, stride = block * C + tl.arange(0, C), tl.num_programs(1) * C
        k = tl.load(control + MADE) + 1.0
        watched = _watched(control, k, LOOK)
        summed = k > 0 if KIND == IMAGE else watched
        weight = 1.0 / (1.0 - tl.load(control + MOMENTUM) * tl.load(control + WEIGHT))
        factor, other = weight.to(source.dtype.element_ty), (1.0 - weight).to(source.dtype.element_ty)
        residual, size = tl.zeros((C,), tl.float64), tl.zeros((C,), tl.float64)
        for tile in range(loop_end(part * each), loop_end(tl.minimum((part + 1) * each, count))):
            if GATHER:
                klass, base, length, _word = tile_of(tiles, tile)
                for lane in tl.static_range(3):
                    if klass == lane:
                        residual, size = _rows_step(
                            rows + tile * T, base, length, index, values, arrived, scale, measure, own, source, out,
                            block * C, n, width, factor, other, watched, residual, size,
                            4**lane, T, C, U, NORM, KIND, GATHER, WEIGHTS,
                        )  # fmt: skip
            else:
                residual, size = _rows_step(
                    rows, tile * T, 0, index, values, arrived, scale, measure, own, source, out,
                    block * C, n, width, factor, other, watched, residual, size,
                    1, T, C, U, NORM, KIND, GATHER, WEIGHTS,
                )  # fmt: skip
        if summed:
            tl.store(_part_at(partial, part, 0, column, stride), residual)
            tl.store(_part_at(partial, part, 1, column, stride), size)
        if _ends_last(ticket):
            parts, good = tl.num_programs(0), tl.full((), 1, tl.int32)
            if summed:
                for other_block in range(loop_end(tl.num_programs(1))):
                    place = other_block * C + tl.arange(0, C)
                    total = _whole(partial, 0, parts, place, stride, C, P, NORM)
                    if KIND == IMAGE:
                        real = place < width
                        square = tl.load(_at(control, SQUARE, place, width), mask=real, other=0.0)
                        # a column that is solved exactly stays
                        length = tl.where(total > 0.0, square / tl.where(total > 0.0, total, 1.0), 0.0)
                        tl.store(_at(control, STEP, place, width), length, mask=real)
                    else:
                        whole = _whole(partial, 1, parts, place, stride, C, P, NORM)
                        good = tl.minimum(good, _judge(control, place, width, total, whole, NORM))
            if KIND != IMAGE:
                tl.store(control + WEIGHT, weight)
                _close(control, k, watched, good)


@kernel("n", "width", "each")
def descend(
    control, ticket, measure, state, residual, direction, image, partial, n, width, each,
    T: tl.constexpr, C: tl.constexpr, P: tl.constexpr, LOOK: tl.constexpr,
):  # fmt: skip
    """u += t p and r -= t (p - (1 - alpha) S A p), by the step t of each column; |r|^2 and |u|^2 end a product.

    The product before the first is the start: p is zero, and |r|^2 becomes known.
    """
    if tl.load(control + DONE) == 0.0:
        part, block = tl.program_id(0), tl.program_id(1)
        column, stride = block * C + tl.arange(0, C), tl.num_programs(1) * C
        k = tl.load(control + MADE) + 1.0
        watched = _watched(control, k, LOOK)
        step = tl.load(_at(control, STEP, column, width), mask=column < width, other=0.0).to(state.dtype.element_ty)
        square, size = tl.zeros((C,), tl.float64), tl.zeros((C,), tl.float64)
        for tile in range(loop_end(part * each), loop_end((part + 1) * each)):
            node = tile * T + tl.arange(0, T)
            there = node < n
            wanted = there[:, None] & (column < width)[None, :]
            at = node[:, None].to(tl.int64) * width + column[None, :]
            mass = tl.load(measure + node, mask=there, other=0.0)
            value = tl.load(state + at, mask=wanted, other=0.0)
            value += step[None, :] * tl.load(direction + at, mask=wanted, other=0.0)
            rest = tl.load(residual + at, mask=wanted, other=0.0)
            rest -= step[None, :] * tl.load(image + at, mask=wanted, other=0.0)
            tl.store(state + at, value, mask=wanted)
            tl.store(residual + at, rest, mask=wanted)
            square += tl.sum(_term(rest, mass, 0), axis=0)
            size += tl.sum(_term(value, mass, 0), axis=0)
        tl.store(_part_at(partial, part, 0, column, stride), square)
        tl.store(_part_at(partial, part, 1, column, stride), size)
        if _ends_last(ticket):
            parts, good = tl.num_programs(0), tl.full((), 1, tl.int32)
            for other_block in range(loop_end(tl.num_programs(1))):
                place = other_block * C + tl.arange(0, C)
                real = place < width
                total = _whole(partial, 0, parts, place, stride, C, P, 0)
                last = tl.load(_at(control, SQUARE, place, width), mask=real, other=0.0)
                back = tl.where(last > 0.0, total / tl.where(last > 0.0, last, 1.0), 0.0)
                tl.store(_at(control, BACK, place, width), back, mask=real)
                tl.store(_at(control, SQUARE, place, width), total, mask=real)
                if watched:
                    whole = _whole(partial, 1, parts, place, stride, C, P, 0)
                    good = tl.minimum(good, _judge(control, place, width, total, whole, 0))
            _close(control, k, watched, good)


@kernel("n", "width", "each")
def turn(control, residual, direction, n, width, each, T: tl.constexpr, C: tl.constexpr):
    """Make the next direction: p = r + s p, by the factor s of each column."""
    if tl.load(control + DONE) == 0.0:
        part, column = tl.program_id(0), tl.program_id(1) * C + tl.arange(0, C)
        back = tl.load(_at(control, BACK, column, width), mask=column < width, other=0.0)
        for tile in range(loop_end(part * each), loop_end((part + 1) * each)):
            node = tile * T + tl.arange(0, T)
            wanted = (node < n)[:, None] & (column < width)[None, :]
            at = node[:, None].to(tl.int64) * width + column[None, :]
            value = back.to(direction.dtype.element_ty)[None, :] * tl.load(direction + at, mask=wanted, other=0.0)
            value += tl.load(residual + at, mask=wanted, other=0.0)
            tl.store(direction + at, value, mask=wanted)
