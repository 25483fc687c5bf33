"""K power steps of one run, for the training state and the evaluation's side by side, and the adjoint of the first.

In scaled variables (see `NumbaSteps`) no edge value is stored. A row of the state is [training | evaluation], so that
one gathered cache line serves both: the evaluation's half counts always, the training half when its bit is set. Columns
come in blocks of at most 2 x 16; every block makes its K steps alone. Layouts: predictions (n, 2 C) with C all padded
classes, states (blocks, n, 2 c), c the classes of one block. Every function does one thread's share of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import serial
from pprop.kernels.numba_cpu.team import meet
from pprop.kernels.numba_cpu.vectors import count, fma, fma_halves, load, store, times, zeros

__all__ = ["Scales", "adjoint", "forward"]


class Scales(NamedTuple):
    """Factors per node, for T = S_r A S_c: the forward steps over A, and the adjoint ones over A^T."""

    alpha: np.float32
    keep: np.float32  # one over the keep probability
    rows: NDArray[np.float32]
    columns: NDArray[np.float32]
    state: NDArray[np.float32]
    start: NDArray[np.float32]
    flipped_state: NDArray[np.float32]
    flipped_total: NDArray[np.float32]  # of step 0, and of every other step


@serial
def _start(begin, end, predictions, columns, state, pair):
    """state = S_c predictions, for one block of columns of rows begin to end."""
    width = count(pair)
    for i in range(begin, end):
        store(state, i * width, times(columns[i], load(predictions, i * width, pair)))


@serial
def _arrive(first, last, indices, weights, words, bit, state, pair):
    """Return what a row receives: sum of weight * state, in the first half of the lanes over kept entries only."""
    width, shift, one = count(pair), np.uint32(bit), np.uint32(1)
    total = zeros(state, pair)
    if len(weights) > 0:
        for e in range(first, last):
            kept = np.float32((words[e] >> shift) & one)  # a number, not a branch on a random bit
            row = load(state, np.int64(indices[e]) * width, pair)
            total = fma_halves(kept * weights[e], weights[e], row, total)
    else:
        for e in range(first, last):
            kept = np.float32((words[e] >> shift) & one)
            total = fma_halves(kept, np.float32(1), load(state, np.int64(indices[e]) * width, pair), total)
    return total


@serial
def _step(begin, end, A, words, bit, scale, state, state_scale, predictions, start_scale, out, pair):
    """out = state_scale * (drop(A) state) + start_scale * predictions for rows begin to end, every scale per node.

    `scale` is one over the keep probability, for the first half of the lanes.
    """
    indptr, indices, weights = A
    width = count(pair)
    for i in range(begin, end):
        total = _arrive(indptr[i], indptr[i + 1], indices, weights, words, bit, state, pair)
        own = times(start_scale[i], load(predictions, i * width, pair))
        store(out, i * width, fma_halves(scale * state_scale[i], state_scale[i], total, own))


@serial
def _last_step(nodes, half, begin, end, A, words, bit, scale, alpha, rows, state, predictions, logits, column, pair):
    """The K-th step at some nodes only: half 0 of the lanes is the training's, half 1 the evaluation's.

    logits[k, column:] = (1 - alpha) rows[i] (drop(A) state)_i + alpha predictions_i for node i = nodes[k].
    """
    indptr, indices, weights = A
    width = count(pair)
    classes, stride = width // 2, logits.shape[1]
    flat = logits.reshape(-1)
    row = np.empty(width, logits.dtype)
    for k in range(begin, end):
        i = nodes[k]
        total = _arrive(indptr[i], indptr[i + 1], indices, weights, words, bit, state, pair)
        arrived = (np.float32(1) - alpha) * rows[i]
        store(row, 0, fma_halves(scale * arrived, arrived, total, times(alpha, load(predictions, i * width, pair))))
        for q in range(classes):
            flat[k * stride + column + q] = row[half * classes + q]


@serial
def _adjoint_start(begin, end, gradient, columns, alpha, state, total, token):
    """state = S_c gradient and total = alpha * gradient for rows begin to end."""
    width = count(token)
    for i in range(begin, end):
        row = load(gradient, i * width, token)
        store(state, i * width, times(columns[i], row))
        store(total, i * width, times(alpha, row))


@serial
def _adjoint_step(begin, end, A, words, bit, state, state_scale, total, total_scale, out, token):
    """s = drop(A) state; out = state_scale * s and total += total_scale * s, for rows begin to end."""
    indptr, indices, weights = A
    width = count(token)
    shift, one = np.uint32(bit), np.uint32(1)
    for i in range(begin, end):
        arrived = zeros(state, token)
        for e in range(indptr[i], indptr[i + 1]):
            kept = np.float32((words[e] >> shift) & one)
            if len(weights) > 0:
                kept *= weights[e]
            arrived = fma(kept, load(state, np.int64(indices[e]) * width, token), arrived)
        store(total, i * width, fma(total_scale[i], arrived, load(total, i * width, token)))
        store(out, i * width, times(state_scale[i], arrived))


@serial
def forward(
    thread, threads, desk, begin, end, A, planes, epoch, steps, scales, predictions, state, spare,
    train_nodes, train_logits, stopping_nodes, stopping_logits, pair,
):  # fmt: skip
    """K steps of all column blocks by one thread of a team; the last one only where a logit is asked for."""
    for part in range(len(predictions)):
        own = predictions[part]
        _start(begin, end, own, scales.columns, state, pair)
        meet(desk, threads)
        for k in range(steps - 1):
            at = epoch * steps + k
            words = planes[at // 32 % len(planes)]
            _step(begin, end, A, words, at % 32, scales.keep, state, scales.state, own, scales.start, spare, pair)
            state, spare = spare, state
            meet(desk, threads)
        at = epoch * steps + steps - 1
        words = planes[at // 32 % len(planes)]
        for half in range(2):
            nodes = train_nodes if half == 0 else stopping_nodes
            logits = train_logits if half == 0 else stopping_logits
            first, last = len(nodes) * thread // threads, len(nodes) * (thread + 1) // threads
            _last_step(
                nodes, half, first, last, A, words, at % 32, scales.keep, scales.alpha, scales.rows, state, own, logits,
                part * count(pair) // 2, pair,
            )  # fmt: skip
        meet(desk, threads)


@serial
def adjoint(thread, threads, desk, begin, end, A, planes, epoch, steps, scales, gradient, state, spare, token):
    """The gradient of the predictions in place of that of the propagated ones, (blocks, n, c), by one thread of a team.

    dH = alpha (g_1 + ... + g_K) + g_0 is collected on the way.
    """
    for part in range(len(gradient)):
        total = gradient[part]
        _adjoint_start(begin, end, total, scales.rows, scales.alpha, state, total, token)
        meet(desk, threads)
        for k in range(steps - 1, -1, -1):
            at = epoch * steps + k
            words, share = planes[at // 32 % len(planes)], scales.flipped_total[1 if k > 0 else 0]
            _adjoint_step(begin, end, A, words, at % 32, state, scales.flipped_state, total, share, spare, token)
            state, spare = spare, state
            meet(desk, threads)
