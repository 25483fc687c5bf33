"""Loss, accuracy and gradient of the fused epoch, and the end of the epoch: sums, results, the epoch counter."""

from __future__ import annotations

import triton.language as tl

from pprop.kernels.triton_gpu._jit import kernel

__all__ = ["cross_entropy_rows", "finish_epoch"]


@kernel("m", "blocks", "label_stride")
def cross_entropy_rows(
    logits, logits_run, logits_row, labels, counts, sizes, label_stride, sums, gradient, gradient_run, states,
    states_run, column_scale, alphas, m, c, blocks, MODE: tl.constexpr, CLASSES: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """sums[run, block] = the cross entropy of this block's rows and its right answers; every row counts `counts` times.

    MODE 0 makes no gradient, 1 writes it, 2 begins the adjoint steps with it: alpha g to the total and S_c g to the
    state. Rows that are in no set get a zero.
    """
    block, run = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row, column = block * B + tl.arange(0, B), tl.arange(0, CLASSES)
    real = (column < c)[None, :]
    label = tl.load(labels + run * label_stride + row, mask=row < m, other=-1)
    times = tl.load(counts + run * label_stride + row, mask=(row < m) & (label >= 0), other=0.0)
    counted = times > 0
    value = tl.load(logits + run * logits_run + row[:, None] * logits_row + column[None, :],
                    mask=counted[:, None] & real, other=0.0)  # fmt: skip
    shown = tl.where(real, value, -float("inf"))
    top = tl.max(shown, axis=1)
    power = tl.where(real, tl.exp(shown - top[:, None]), 0.0)
    norm = tl.sum(power, axis=1)
    hit = column[None, :] == label[:, None]
    loss = tl.log(norm) + top - tl.sum(tl.where(hit, value, 0.0), axis=1)
    # of equal logits the first counts, as in torch
    answer = tl.min(tl.where(shown == top[:, None], column[None, :], CLASSES), axis=1)
    at = sums + (run * blocks + block) * 2
    tl.store(at, tl.sum(tl.where(counted, loss * times, 0.0), axis=0))
    tl.store(at + 1, tl.sum(tl.where(counted & (answer == label), times, 0.0), axis=0))
    if MODE > 0:
        share = tl.where(counted, times / tl.load(sizes + run), 0.0)
        slope = (power / norm[:, None] - tl.where(hit, 1.0, 0.0)) * share[:, None]
        slope = tl.where(counted[:, None] & real, slope, 0.0)
        place = row[:, None] * CLASSES + column[None, :]
        there = (row < m)[:, None]
        if MODE == 1:
            tl.store(gradient + run * gradient_run + place, slope, mask=there)
        else:
            scale = tl.load(column_scale + row, mask=row < m, other=0.0)
            tl.store(gradient + run * gradient_run + place, tl.load(alphas + run) * slope, mask=there)
            tl.store(states + run * states_run + place, scale[:, None] * slope, mask=there)


@kernel("advance", "runs", "norm_count", "train_blocks", "stop_blocks")
def finish_epoch(
    train_sums, stop_sums, train_sizes, stop_sizes, norms, pending, out, clock, powers, betas, corrections,
    train_blocks, stop_blocks, norm_count, runs, penalty, advance, B: tl.constexpr,
):  # fmt: skip
    """Write the results of an epoch and remember the training loss of the next one, whose pass is already made.

    With `advance` the epoch counter and the powers of Adam's constants go on; no other program of this kernel reads
    them.
    """
    run = tl.program_id(0)
    lane = tl.arange(0, B)
    norm = tl.zeros((B,), tl.float32)
    k = 0
    while k < norm_count:
        norm += tl.load(norms + run.to(tl.int64) * norm_count + k + lane, mask=k + lane < norm_count, other=0.0)
        k += B
    train = tl.zeros((B,), tl.float32)
    k = 0
    while k < train_blocks:
        train += tl.load(train_sums + (run * train_blocks + k + lane) * 2, mask=k + lane < train_blocks, other=0.0)
        k += B
    stop, right = tl.zeros((B,), tl.float32), tl.zeros((B,), tl.float32)
    k = 0
    while k < stop_blocks:
        at = stop_sums + (run * stop_blocks + k + lane) * 2
        stop += tl.load(at, mask=k + lane < stop_blocks, other=0.0)
        right += tl.load(at + 1, mask=k + lane < stop_blocks, other=0.0)
        k += B
    share = 0.5 * penalty * tl.sum(norm, axis=0)
    tl.store(out + run, tl.load(pending + run))
    tl.store(pending + run, tl.sum(train, axis=0) / tl.load(train_sizes + run) + share)
    size = tl.load(stop_sizes + run)
    tl.store(out + runs + run, tl.sum(stop, axis=0) / size + share)
    tl.store(out + 2 * runs + run, tl.sum(right, axis=0) / size)
    if (run == 0) & (advance == 1):
        tl.store(clock, tl.load(clock) + 1)
        which = tl.arange(0, 2)
        power = tl.load(powers + which) * tl.load(betas + which)
        tl.store(powers + which, power)
        tl.store(corrections + which, (1.0 - power).to(tl.float32))
