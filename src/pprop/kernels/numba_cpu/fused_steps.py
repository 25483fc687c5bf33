"""K power steps of one run, for the training state and the evaluation's side by side, and the adjoint of the first.

In scaled variables (see `NumbaSteps`) no edge value is stored. A row of the state is [training | evaluation], so that
one gathered cache line serves both: the evaluation's half counts always, the training half when its bit is set. Columns
come in blocks of at most 2 x 24; every block makes its K steps alone. Layouts: predictions (n, 2 C) with C all padded
classes, states (blocks, n, 2 c), c the classes of one block. Every function does one thread's share of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import part, serial
from pprop.kernels.numba_cpu.team import meet
from pprop.kernels.numba_cpu.vectors import (
    address,
    count,
    fma,
    fma_halves,
    item,
    load,
    prefetch,
    put,
    store,
    times,
    zeros,
)

_AHEAD = 16  # entries between asking for a row of a state and reading it
_LINE = 16  # float32 numbers in a cache line
# Hops from the labelled nodes beyond which no row is left out.
REACH = 4
_NEAR = 2**20  # numbers of a state that needs no asking


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
def hops(indptr, indices, nodes):
    """Return how many entries, followed from row to column, part every node from the nearest of `nodes`, at most `REACH`."""
    away = np.full(len(indptr) - 1, REACH, np.uint8)
    for i in nodes:
        away[i] = 0
    for hop in range(1, REACH):
        for i in range(len(away)):
            if away[i] == hop - 1:
                for e in range(indptr[i], indptr[i + 1]):
                    away[indices[e]] = min(away[indices[e]], np.uint8(hop))
    return away


@part
def _start(begin, end, predictions, columns, state, pair):
    """state = S_c predictions for rows begin to end."""
    width = count(pair)
    for i in range(begin, end):
        store(state, i * width, times(item(columns, i), load(predictions, i * width, pair)))


@part
def _edges(A, size):
    """Return the addresses of a matrix's parts, whether it has weights, its last entry, and whether to ask for rows ahead.

    `size` is that of the state, in numbers. What is in the second cache comes in time; asking for it costs 10 %.
    """
    return address(A[0]), address(A[1]), address(A[2]), len(A[2]) > 0, len(A[1]) - 1, size > _NEAR


@part
def _ask(state, at, width):
    """Ask for the cache lines of a row; every state begins at one."""
    for line in range(0, width, _LINE):
        prefetch(state, at + line)


@part
def _arrive(i, edges, words, bit, state, pair):
    """Return what row i receives: sum of weight * state, in the first half of the lanes over kept entries only."""
    indptr, indices, weights, weighted, past, ask = edges
    first, last, width, shift, one = item(indptr, i), item(indptr, i + 1), count(pair), np.uint32(bit), np.uint32(1)
    total = zeros(state, pair)
    for e in range(first, last):
        if ask:
            _ask(state, np.int64(item(indices, min(e + _AHEAD, past))) * width, width)
        weight = item(weights, e) if weighted else np.float32(1)
        kept = np.float32((item(words, e) >> shift) & one)  # a number, not a branch on a random bit
        total = fma_halves(kept * weight, weight, load(state, np.int64(item(indices, e)) * width, pair), total)
    return total


@part
def _step(begin, end, edges, words, bit, scale, state, state_scale, predictions, start_scale, out, away, left, pair):
    """out = state_scale * (drop(A) state) + start_scale * predictions for rows begin to end, every scale per node.

    `scale` is one over the keep probability, for the first half of the lanes. Rows that no labelled node reads in the
    steps that are `left` are left out.
    """
    width = count(pair)
    for i in range(begin, end):
        if item(away, i) > left:
            continue
        total = _arrive(i, edges, words, bit, state, pair)
        own, factor = times(item(start_scale, i), load(predictions, i * width, pair)), item(state_scale, i)
        store(out, i * width, fma_halves(scale * factor, factor, total, own))


@part
def _last_step(
    nodes, half, begin, end, edges, words, bit, scale, alpha, rows, state, predictions, logits, stride, room, pair
):
    """The K-th step at some nodes only: half 0 of the lanes is the training's, half 1 the evaluation's.

    logits[k] = (1 - alpha) rows[i] (drop(A) state)_i + alpha predictions_i for node i = nodes[k].
    """
    width = count(pair)
    classes = width // 2
    for k in range(begin, end):
        i = item(nodes, k)
        total = _arrive(i, edges, words, bit, state, pair)
        arrived = (np.float32(1) - alpha) * item(rows, i)
        store(room, 0, fma_halves(scale * arrived, arrived, total, times(alpha, load(predictions, i * width, pair))))
        for q in range(classes):
            put(logits, k * stride + q, item(room, half * classes + q))


@part
def _adjoint_start(begin, end, gradient, columns, alpha, state, token):
    """state = S_c gradient and gradient = alpha * gradient for rows begin to end."""
    width = count(token)
    for i in range(begin, end):
        row = load(gradient, i * width, token)
        store(state, i * width, times(item(columns, i), row))
        store(gradient, i * width, times(alpha, row))


@part
def _adjoint_step(begin, end, edges, words, bit, state, state_scale, total, total_scale, out, away, made, token):
    """s = drop(A) state; out = state_scale * s and total += total_scale * s, for rows begin to end.

    With this step, `made` are made: to rows that are farther from the training nodes nothing has come.
    """
    indptr, indices, weights, weighted, past, ask = edges
    width, shift, one = count(token), np.uint32(bit), np.uint32(1)
    for i in range(begin, end):
        arrived = zeros(state, token)
        if item(away, i) > made:
            store(out, i * width, arrived)
            continue
        for e in range(item(indptr, i), item(indptr, i + 1)):
            if ask:
                soon = min(e + _AHEAD, past)
                _ask(state, np.int64(item(indices, soon) * ((item(words, soon) >> shift) & one)) * width, width)
            kept = (item(words, e) >> shift) & one
            weight = np.float32(kept) * item(weights, e) if weighted else np.float32(kept)
            arrived = fma(weight, load(state, np.int64(item(indices, e) * kept) * width, token), arrived)
        store(total, i * width, fma(item(total_scale, i), arrived, load(total, i * width, token)))
        store(out, i * width, times(item(state_scale, i), arrived))


@serial
def forward(
    thread, threads, desk, begin, end, A, planes, epoch, steps, scales, away, predictions, state, spare,
    train_nodes, train_logits, stopping_nodes, stopping_logits, pair,
):  # fmt: skip
    """K steps of all column blocks by one thread of a team; the last one only at the labelled nodes.

    `away` (n,) says how far every node is from those, at most `REACH`.
    """
    edges = _edges(A, state.size)
    columns, state_scale, start_scale = address(scales.columns), address(scales.state), address(scales.start)
    room = np.empty(count(pair), np.float32)
    for part_of_columns in range(len(predictions)):
        own, now, other = address(predictions[part_of_columns]), address(state), address(spare)
        _start(begin, end, own, columns, now, pair)
        meet(desk, threads)
        for k in range(steps - 1):
            at = epoch * steps + k
            words = address(planes[at // 32 % len(planes)])
            left = steps - 1 - k
            _step(
                begin, end, edges, words, at % 32, scales.keep, now, state_scale, own, start_scale, other, address(away),
                left, pair,
            )  # fmt: skip
            now, other = other, now
            meet(desk, threads)
        at = epoch * steps + steps - 1
        words = address(planes[at // 32 % len(planes)])
        for half in range(2):
            nodes = train_nodes if half == 0 else stopping_nodes
            logits = train_logits if half == 0 else stopping_logits
            first, last = len(nodes) * thread // threads, len(nodes) * (thread + 1) // threads
            column = address(logits[:, part_of_columns * count(pair) // 2 :])
            _last_step(
                address(nodes), half, first, last, edges, words, at % 32, scales.keep, scales.alpha,
                address(scales.rows), now, own, column, logits.shape[1], address(room), pair,
            )  # fmt: skip
        meet(desk, threads)


@serial
def adjoint(thread, threads, desk, begin, end, A, planes, epoch, steps, scales, away, gradient, state, spare, token):
    """The gradient of the predictions in place of that of the propagated ones, (blocks, n, c), by one thread of a team.

    dH = alpha (g_1 + ... + g_K) + g_0 is collected on the way. `away` (n,) says how far every node is from the training
    nodes, where the gradient begins, at most `REACH`.
    """
    edges = _edges(A, state.size // 2)
    for part_of_columns in range(len(gradient)):
        total, now, other = address(gradient[part_of_columns]), address(state), address(spare)
        _adjoint_start(begin, end, total, address(scales.rows), scales.alpha, now, token)
        meet(desk, threads)
        for k in range(steps - 1, -1, -1):
            at = epoch * steps + k
            words = address(planes[at // 32 % len(planes)])
            share = address(scales.flipped_total[1 if k > 0 else 0])
            flipped = address(scales.flipped_state)
            _adjoint_step(
                begin, end, edges, words, at % 32, now, flipped, total, share, other, address(away), steps - k, token
            )
            now, other = other, now
            meet(desk, threads)
