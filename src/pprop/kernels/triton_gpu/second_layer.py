"""The second layer of the fused epoch: forward for both passes, backward with the gradient of the activation.

Products are in full float32 ("ieee"): no TF32.
"""

from __future__ import annotations

import triton.language as tl

from pprop.kernels.triton_gpu._jit import kernel
from pprop.kernels.triton_gpu.first_layer import adam_step

__all__ = ["adam_second", "backward_second", "copy_where", "forward_second"]


@kernel("n")
def forward_second(
    hidden, quiet, second, start, states, column_scale, n, SLICES: tl.constexpr, C: tl.constexpr,
    CLASSES: tl.constexpr, B: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """H = hidden W_2 of both passes, (R, n + 1, 2 CLASSES); with steps to come also the first state, S_c H."""
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
    size = (n + 1).to(tl.int64) * (2 * CLASSES)
    to = row[:, None] * (2 * CLASSES) + label[None, :]
    tl.store(start + run * size + to, trained, mask=there)
    tl.store(start + run * size + to + CLASSES, seen, mask=there)
    if STEPS:
        scale = tl.load(column_scale + row, mask=row < n, other=0.0)[:, None]
        tl.store(states + run * 2 * size + to, trained * scale, mask=there)
        tl.store(states + run * 2 * size + to + CLASSES, seen * scale, mask=there)


@kernel("n", "blocks")
def backward_second(
    above, second, hidden, part, n, blocks, scale, SLICES: tl.constexpr, C: tl.constexpr, CLASSES: tl.constexpr,
    K: tl.constexpr, B: tl.constexpr, REPEAT: tl.constexpr, TOGETHER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Turn hidden into scale * (dH W_2^T) where it is positive, in place; part = this block's share of hidden^T dH.

    One program owns B * REPEAT nodes of TOGETHER slices, one or all; after the first slice it finds dH in the L1 cache.
    The order of the sums depends on the sizes alone.
    """
    block, run = tl.program_id(0), tl.program_id(2).to(tl.int64)
    column, label = tl.arange(0, C), tl.arange(0, K)  # K is the least that a product may add up, or CLASSES
    known = (label < CLASSES)[None, :]
    for part_of in tl.static_range(TOGETHER):
        group = tl.program_id(1) * TOGETHER + part_of
        weight_at = ((run * SLICES + group) * C + column[:, None]) * CLASSES + label[None, :]
        weight = tl.load(second + weight_at, mask=known, other=0.0)
        share = tl.zeros((C, K), tl.float32)
        for k in range(REPEAT):
            row = (block * REPEAT + k) * B + tl.arange(0, B)
            there = (row < n)[:, None]
            above_at = (run * (n + 1) + row)[:, None] * CLASSES + label[None, :]
            gradient = tl.load(above + above_at, mask=there & known, other=0.0)
            at = hidden + ((run * SLICES + group) * (n + 1) + row)[:, None] * C + column[None, :]
            value = tl.load(at, mask=there, other=0.0)
            if C >= 16:
                share = tl.dot(tl.trans(value), gradient, share, input_precision=PRECISION)
                down = tl.dot(gradient, tl.trans(weight), input_precision=PRECISION)
            else:
                share += tl.sum(value[:, :, None] * gradient[:, None, :], axis=0)
                down = tl.sum(gradient[:, None, :] * weight[None, :, :], axis=2)
            tl.store(at, tl.where(value > 0, down * scale, 0.0), mask=there)
        to = part + (((run * blocks + block) * SLICES + group) * C + column[:, None]) * CLASSES + label[None, :]
        tl.store(to, share, mask=known)


@kernel("blocks")
def adam_second(part, weights, means, squares, corrections, size, blocks, rate, B: tl.constexpr):
    """Add up the blocks' shares in their order and make one Adam step on B weights of W_2 of one run."""
    run = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * B + tl.arange(0, B)
    there = at < size
    gradient = tl.zeros((B,), tl.float32)
    block = 0
    while block < blocks:
        gradient += tl.load(part + (run * blocks + block) * size + at, mask=there, other=0.0)
        block += 1
    place = run * size + at
    old = tl.load(weights + place, mask=there, other=0.0)
    mean = tl.load(means + place, mask=there, other=0.0)
    square = tl.load(squares + place, mask=there, other=0.0)
    new, mean, square = adam_step(old, gradient, mean, square, tl.load(corrections), tl.load(corrections + 1), rate)
    tl.store(weights + place, new, mask=there)
    tl.store(means + place, mean, mask=there)
    tl.store(squares + place, square, mask=there)


@kernel()
def copy_where(wanted, source, target, size, B: tl.constexpr):
    """target[run] = source[run] for the runs that are wanted; the others cost nothing but the look."""
    run = tl.program_id(1).to(tl.int64)
    if tl.load(wanted + run) != 0:
        at = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(target + run * size + at, tl.load(source + run * size + at, mask=at < size), mask=at < size)
