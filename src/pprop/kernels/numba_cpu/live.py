"""The hot loops of a live graph: what an edit changes in the residual, and the pushes that make up for it.

Everything is in the variables Y = D^-p Z of the row-stochastic form (p = 1/2, 0 or 1 for "sym", "row" and "col"),

    Y = (1 - alpha) D^-1 A_tilde Y + alpha D^-p H,      r_i = alpha G_i + (1 - alpha) (A_tilde Y)_i / d_i - Y_i,

where an edit of the edge (i, j) changes rows i and j alone, and by a rank-one term: no neighbour is looked at.
Columns are padded to a multiple of eight, which is a cache line, so that one compiled kernel serves every number.

The adjacency is in sorted rows that can grow and shrink, in one pool of memory. A row that is full moves to the end of
the pool with half as much room again, and the pool is packed anew when its end is reached, so that an edit costs a
binary search and a shift of the row's tail, and an addition O(1) moves on average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import kernel, part, serial
from pprop.kernels.numba_cpu.vectors import add, address, any_above, item, lanes, load, prefetch, store, times

# Columns in one block.
WIDTH = 8
_BLOCK = lanes(WIDTH)
_AHEAD = 12  # entries between asking for a neighbour's cache line and using it
_LEVELS = 40  # queues by degree: up to 16 neighbours, up to 32, and so on


class LiveRows(NamedTuple):
    """The neighbours of every node but itself: row i is ``indices[start[i] : start[i] + length[i]]``, sorted."""

    start: NDArray[np.int64]
    length: NDArray[np.int64]
    room: NDArray[np.int64]  # entries that the row may grow to where it lies
    indices: NDArray[np.int32]
    weights: NDArray[np.float64]  # empty when all are one


@part
def lower(indices, low, count, j):
    """Return where j is, or belongs, in a sorted row."""
    high = low + count
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low


@part
def _insert(rows, i, j, weight):
    """Write entry (i, j), which is not there, into a row that has room."""
    begin, count = rows.start[i], rows.length[i]
    at = lower(rows.indices, begin, count, j)
    weighted = len(rows.weights) > 0
    for e in range(begin + count, at, -1):
        rows.indices[e] = rows.indices[e - 1]
        if weighted:
            rows.weights[e] = rows.weights[e - 1]
    rows.indices[at] = j
    if weighted:
        rows.weights[at] = weight
    rows.length[i] = count + 1


@part
def _erase(rows, i, j):
    """Take entry (i, j), which is there, out of its row."""
    begin, count = rows.start[i], rows.length[i]
    at = lower(rows.indices, begin, count, j)
    for e in range(at, begin + count - 1):
        rows.indices[e] = rows.indices[e + 1]
        if len(rows.weights) > 0:
            rows.weights[e] = rows.weights[e + 1]
    rows.length[i] = count - 1


@serial
def edge_weights(rows, u, v, found):
    """found[k] = the weight of the edge (u[k], v[k]), 0 where there is none and for a self-loop."""
    for k in range(len(u)):
        i, j = u[k], v[k]
        found[k] = 0.0
        if rows.length[j] < rows.length[i]:
            i, j = j, i
        at = lower(rows.indices, rows.start[i], rows.length[i], j)
        if at < rows.start[i] + rows.length[i] and rows.indices[at] == j:
            found[k] = rows.weights[at] if len(rows.weights) > 0 else 1.0


@part
def _copy_row(rows, i, indices, weights, tail):
    """Copy row i to the place `tail` of a pool, and let it begin there."""
    begin = rows.start[i]
    for e in range(rows.length[i]):
        indices[tail + e] = rows.indices[begin + e]
        if len(weights) > 0:
            weights[tail + e] = rows.weights[begin + e] if len(rows.weights) > 0 else 1.0
    rows.start[i] = tail


@serial
def move_rows(rows, nodes, extra, tail):
    """Give each row of `nodes` room for so many entries more, at the end of the pool where it must; return the new end."""
    for k in range(len(nodes)):
        i = nodes[k]
        wanted = rows.length[i] + extra[k]
        if wanted <= rows.room[i]:
            continue
        _copy_row(rows, i, rows.indices, rows.weights, tail)
        rows.room[i] = wanted + (wanted >> 1) + 4
        tail += rows.room[i]
    return tail


@serial
def pack_rows(rows, n, indices, weights):
    """Copy the rows of n nodes one after another into another pool, and let them begin there; return its end."""
    tail = 0
    for i in range(n):
        _copy_row(rows, i, indices, weights, tail)
        rows.room[i] = rows.length[i]
        tail += rows.room[i]
    return tail


class LiveState(NamedTuple):
    """The state of every node: Y, r and H, shape (nodes, columns), and its row of A_tilde in sums."""

    Y: NDArray[np.float64]
    r: NDArray[np.float64]
    H: NDArray[np.float64]
    degree: NDArray[np.float64]
    peak: NDArray[np.float64]  # largest degree since the row was last summed up
    loop: NDArray[np.float64]  # weight of the self-loop in A_tilde
    own: NDArray[np.bool_]  # whether that self-loop is the graph's


@part
def scale_of(degree, power):
    """d^-p."""
    if power == 0.0:
        return 1.0
    return 1.0 / np.sqrt(degree) if power == 0.5 else 1.0 / degree


@part
def _largest(values):
    largest = 0.0
    for q in range(len(values)):
        largest = max(largest, abs(values[q]))
    return largest


@part
def sum_row(rows, state, i, alpha, power):
    """Sum up row i anew: its degree and its residual."""
    begin, end = rows.start[i], rows.start[i] + rows.length[i]
    weighted = len(rows.weights) > 0
    degree = float(end - begin)
    if weighted:
        degree = 0.0
        for e in range(begin, end):
            degree += rows.weights[e]
    degree += state.loop[i]
    state.degree[i] = state.peak[i] = degree
    own, scale, stay = state.loop[i], alpha * scale_of(degree, power), (1.0 - alpha) / degree
    columns, past = state.r.shape[1], len(rows.indices) - 1
    r, Y, H = address(state.r), address(state.Y), address(state.H)
    indices, weights = address(rows.indices), address(rows.weights)
    for block in range(0, columns, WIDTH):
        at = i * columns + block
        total = times(own, load(Y, at, _BLOCK))
        for e in range(begin, end):
            prefetch(Y, np.int64(item(indices, min(e + _AHEAD, past))) * columns + block)  # of the next row, or of none
            weight = item(weights, e) if weighted else 1.0
            total = add(total, times(weight, load(Y, np.int64(item(indices, e)) * columns + block, _BLOCK)))
        total = add(times(scale, load(H, at, _BLOCK)), times(stay, total))
        store(r, at, add(total, times(-1.0, load(Y, at, _BLOCK))))


@part
def _held(state, i, power):
    largest, total, scale = 0.0, 0.0, scale_of(state.degree[i], power)
    for c in range(state.Y.shape[1]):
        value, own = abs(state.Y[i, c]), abs(state.H[i, c] * scale)
        largest, total = max(largest, value, own), total + (value + own)
    return largest + 0.0 * total


@kernel
def all_residuals(rows, state, alpha, power, largest):
    """Sum up every row anew; largest[i] = the largest |Y| and |D^-p H| of node i, NaN if one is."""
    for i in prange(len(largest)):
        sum_row(rows, state, i, alpha, power)
        largest[i] = _held(state, i, power)


@part
def _shift(rows, state, i, j, change, alpha, power):
    """Let entry (i, j) of A_tilde change by so much: r_i by what it holds already, without a look at the neighbours.

    Sums that shrink are summed up anew when half of them is gone, so that rounding stays in proportion to what is left.
    """
    before = state.degree[i]
    after = before + change
    if after < 0.5 * state.peak[i]:
        sum_row(rows, state, i, alpha, power)  # the row is already changed
        return
    state.degree[i], state.peak[i] = after, max(after, state.peak[i])
    old, new = alpha * scale_of(before, power), alpha * scale_of(after, power)
    stay, arrived = before / after, (1.0 - alpha) * change / after
    for c in range(state.r.shape[1]):
        held = state.r[i, c] + state.Y[i, c] - old * state.H[i, c]  # (1 - alpha) (A_tilde Y)_i / d_i
        state.r[i, c] = new * state.H[i, c] + (held * stay + arrived * state.Y[j, c]) - state.Y[i, c]


@part
def _settle_loop(rows, state, i, own, weight, self_loops, alpha, power):
    """Give node i the self-loop that it has in A_tilde after its row has changed."""
    wanted = weight if own else (1.0 if self_loops or rows.length[i] == 0 else 0.0)
    change = wanted - state.loop[i]
    state.own[i], state.loop[i] = own, wanted
    if change != 0.0:
        _shift(rows, state, i, i, change, alpha, power)


@part
def _settle_loops(rows, state, i, j, self_loops, alpha, power):
    """Settle the self-loops of two nodes that have none of the graph's."""
    for end in (i, j):
        if not state.own[end]:
            _settle_loop(rows, state, end, False, 0.0, self_loops, alpha, power)


@serial
def change_edges(rows, state, u, v, weights, adding, self_loops, alpha, power):
    """Add edges that are not there, for which the rows have room, or remove edges that are there, of these weights.

    An edge is between two nodes or from one to itself.
    """
    for k in range(len(u)):
        i, j, weight = u[k], v[k], weights[k]
        if i == j:
            _settle_loop(rows, state, i, adding, weight if adding else 0.0, self_loops, alpha, power)
            continue
        if adding:
            _insert(rows, i, j, weight)
            _insert(rows, j, i, weight)
        else:
            _erase(rows, i, j)
            _erase(rows, j, i)
            _settle_loops(rows, state, i, j, self_loops, alpha, power)  # first, so that no row of A_tilde is ever empty
        change = weight if adding else -weight
        _shift(rows, state, i, j, change, alpha, power)
        _shift(rows, state, j, i, change, alpha, power)
        if adding:
            _settle_loops(rows, state, i, j, self_loops, alpha, power)


@serial
def set_predictions(state, nodes, H, alpha, power):
    """Give nodes other predictions of their own, shape (nodes, columns)."""
    for k in range(len(nodes)):
        i = nodes[k]
        scale = alpha * scale_of(state.degree[i], power)
        for c in range(state.H.shape[1]):
            state.r[i, c] += scale * (H[k, c] - state.H[i, c])
            state.H[i, c] = H[k, c]


@part
def _enqueue(i, count, link, first, last):
    """Append node i to the queue of its level; return the level."""
    level = 0
    while count > 16:
        count >>= 1
        level += 1
    link[i] = -1
    if first[level] < 0:
        first[level] = i
    else:
        link[last[level]] = i
    last[level] = i
    return level


@part
def _receive(r, at, share, step, begin, threshold):
    """r += share * step in the eight columns at an offset; return whether any is above the threshold then."""
    value = add(load(r, at, _BLOCK), times(share, load(step, begin, _BLOCK)))
    store(r, at, value)
    return any_above(value, threshold)


@serial
def push(rows, state, seeds, alpha, threshold, link, queued, most):
    """Push until no row of r is above the threshold in any column, or more than `most` entries have been read.

    A push of node j solves its own equation: Y_j takes up what is left there, and every neighbour i receives
    r_i += (1 - alpha) A_ij / d_i times it. `seeds` are the only nodes that may be above the threshold before.
    Nodes with few neighbours go first: what they send to a hub adds up there, and in part cancels, before the hub,
    whose push costs as many entries as it has neighbours, is pushed once. On RMAT graphs an edit in a hundred reads
    eight times as many entries when all nodes wait in one queue.
    Returns pushes, entries of the adjacency read, and the largest |Y| written.
    """
    columns, weighted = state.r.shape[1], len(rows.weights) > 0
    indices, degree, r, Y = rows.indices, state.degree, state.r, state.Y
    first, last = np.full(_LEVELS, -1), np.full(_LEVELS, -1)
    pushes, entries, largest, lowest = 0, 0, 0.0, _LEVELS
    for k in range(len(seeds)):
        i = seeds[k]
        if not queued[i] and _largest(r[i]) > threshold:
            queued[i] = True
            lowest = min(lowest, _enqueue(i, rows.length[i], link, first, last))
    step = np.empty(columns)
    while True:
        while lowest < _LEVELS and first[lowest] < 0:
            lowest += 1
        if lowest == _LEVELS or entries > most:
            for level in range(lowest, _LEVELS):  # what is left then
                while first[level] >= 0:
                    queued[first[level]] = False
                    first[level] = link[first[level]]
            return pushes, entries, largest
        j = first[lowest]
        first[lowest] = link[j]
        queued[j] = False
        if not _largest(r[j]) > threshold:  # what came later cancelled what was there
            continue
        own = 1.0 / (1.0 - (1.0 - alpha) * state.loop[j] / degree[j])
        for c in range(columns):
            step[c] = own * r[j, c]
            r[j, c] = 0.0
            Y[j, c] += step[c]
            largest = max(largest, abs(Y[j, c]))
            step[c] *= 1.0 - alpha
        begin, count = rows.start[j], rows.length[j]
        end = begin + count
        pushes += 1
        entries += count
        for e in range(begin, min(end, begin + _AHEAD)):
            prefetch(degree, np.uintp(indices[e]))
            prefetch(r, np.uintp(indices[e]) * np.uintp(columns))
        for e in range(begin, end):
            soon = np.uintp(indices[np.uintp(min(e + _AHEAD, end - 1))])
            prefetch(degree, soon)
            prefetch(r, soon * np.uintp(columns))
            i = np.uintp(indices[np.uintp(e)])
            share = (rows.weights[np.uintp(e)] if weighted else 1.0) / degree[i]
            above = False
            for block in range(0, columns, WIDTH):
                above |= _receive(r, i * np.uintp(columns) + np.uintp(block), share, step, block, threshold)
            if above and not queued[i]:
                queued[i] = True
                lowest = min(lowest, _enqueue(np.int64(i), rows.length[i], link, first, last))
