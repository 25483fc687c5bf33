"""Many edits of a live graph at once: every row is changed once, and sweeps over all rows where pushes would read more.

With the variables of `live`: a sweep solves the equation of one row after another,

    Y_i = (alpha G_i + (1 - alpha) sum_(j != i) A_ij Y_j / d_i) / (1 - (1 - alpha) A_ii / d_i),

with the neighbours as they are. Rows of one of `_PARTS` parts read each other as they were before it, so that threads may
share them; the parts follow one another. Neither depends on the number of threads, nor do the bits of the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import kernel, part, serial
from pprop.kernels.numba_cpu.live import WIDTH, lower, scale_of, sum_row
from pprop.kernels.numba_cpu.vectors import (
    add,
    address,
    any_above,
    fma,
    item,
    lanes,
    load,
    prefetch,
    store,
    times,
    zeros,
)

_BLOCK = lanes(WIDTH)
_PARTS = 4  # of the rows, in a sweep; all threads wait for each other after every one
_AHEAD = 16  # entries between asking for a neighbour's cache line and using it
_SEEDS, _NEIGHBOURS = 1024, 64  # at most, that are looked at to tell what pushes would read


class Changes(NamedTuple):
    """What becomes of the entries of some rows: those of ``nodes[k]`` are ``other[begin[k] : begin[k + 1]]``, ascending."""

    nodes: NDArray[np.int64]
    begin: NDArray[np.int64]
    other: NDArray[np.int64]  # the node itself: the graph's self-loop
    old: NDArray[np.float64]  # 0 where there is no entry
    new: NDArray[np.float64]  # 0 where there will be none


@part
def _move(rows, begin, end, by):
    """Move entries to another place in the pool; they may overlap."""
    weighted = len(rows.weights) > 0
    count = end - begin
    for k in range(count if by != 0 else 0):
        e = begin + k if by < 0 else end - 1 - k
        rows.indices[e + by] = rows.indices[e]
        if weighted:
            rows.weights[e + by] = rows.weights[e]


@part
def _merge(rows, i, changes, first, last):
    """Make the changes of row i, which has room: what goes or gets another weight from the left, what comes from the right."""
    weighted, start = len(rows.weights) > 0, rows.start[i]
    read, end, gone, new = start, start + rows.length[i], 0, 0
    for k in range(first, last):
        j = changes.other[k]
        if j == i:
            continue
        if changes.old[k] == 0.0:
            new += 1
            continue
        at = lower(rows.indices, read, end - read, j)
        _move(rows, read, at, -gone)
        read = at + 1
        if changes.new[k] == 0.0:
            gone += 1
            continue
        rows.indices[at - gone] = j
        if weighted:
            rows.weights[at - gone] = changes.new[k]
    _move(rows, read, end, -gone)
    end -= gone
    rows.length[i] = end - start + new
    for k in range(last - 1, first - 1, -1):
        j = changes.other[k]
        if j == i or changes.old[k] != 0.0:
            continue
        at = lower(rows.indices, start, end - start, j)
        _move(rows, at, end, new)
        new -= 1
        rows.indices[at + new] = j
        if weighted:
            rows.weights[at + new] = changes.new[k]
        end = at


@part
def _change_row(rows, state, changes, k, self_loops, alpha, power):
    """Change one row and its residual, by what it holds already and what has changed, without a look at other neighbours."""
    i, first, last = changes.nodes[k], changes.begin[k], changes.begin[k + 1]
    _merge(rows, i, changes, first, last)
    own, wanted = state.own[i], state.loop[i]
    for e in range(first, last):
        if changes.other[e] == i:
            own, wanted = changes.new[e] > 0.0, changes.new[e]
    if not own:
        wanted = 1.0 if self_loops or rows.length[i] == 0 else 0.0
    loop_change = wanted - state.loop[i]
    state.own[i], state.loop[i] = own, wanted
    before = state.degree[i]
    after = before + loop_change
    for e in range(first, last):
        if changes.other[e] != i:
            after += changes.new[e] - changes.old[e]
    if not after >= 0.5 * state.peak[i]:  # sums that shrink are summed up anew, as after single edits
        sum_row(rows, state, i, alpha, power)
        return
    state.degree[i], state.peak[i] = after, max(after, state.peak[i])
    old, new = alpha * scale_of(before, power), alpha * scale_of(after, power)
    for c in range(state.r.shape[1]):
        arrived = loop_change * state.Y[i, c]
        for e in range(first, last):
            j = changes.other[e]
            if j != i:
                arrived += (changes.new[e] - changes.old[e]) * state.Y[j, c]
        held = state.r[i, c] + state.Y[i, c] - old * state.H[i, c]  # (1 - alpha) (A_tilde Y)_i / d_i
        held = held * (before / after) + (1.0 - alpha) * (arrived / after)
        state.r[i, c] = new * state.H[i, c] + held - state.Y[i, c]


@kernel
def change_rows(rows, state, changes, self_loops, alpha, power):
    """Make all changes of distinct rows that have room for them."""
    for k in prange(len(changes.nodes)):
        _change_row(rows, state, changes, k, self_loops, alpha, power)


@part
def _largest(values):
    largest = 0.0
    for c in range(len(values)):
        largest = max(largest, abs(values[c]))
    return largest


@serial
def foresee(rows, state, nodes, alpha, threshold, entries):
    """Return about how many entries pushes from distinct nodes, and then from their neighbours, would read.

    Some of the nodes are looked at, evenly spaced, and some of the neighbours of each; a graph has so many entries.
    """
    stride = max(1, len(nodes) // _SEEDS)
    own, seen = 0.0, 0
    for k in range(0, len(nodes), stride):
        seen += 1
        if _largest(state.r[nodes[k]]) > threshold:
            own += rows.length[nodes[k]]
    scale = len(nodes) / max(seen, 1)
    own = min(own * scale, entries)
    met, next_round = (
        own / max(entries, 1),
        0.0,
    )  # share of the neighbours of any node that are pushed: a hub is met often
    for k in range(0, len(nodes), stride):
        i = nodes[k]
        largest = _largest(state.r[i])
        if not largest > threshold:
            continue
        begin, count = rows.start[i], rows.length[i]
        looked, found = min(count, _NEIGHBOURS), 0.0
        for e in range(begin, begin + looked):
            j = rows.indices[e]
            weight = rows.weights[e] if len(rows.weights) > 0 else 1.0
            if (1.0 - alpha) * weight * largest > threshold * state.degree[j]:
                found += rows.length[j] / max(1.0, met * rows.length[j])
        if looked > 0:
            next_round += found * (count / looked)
    return own + min(next_round * scale, entries)


@part
def _gather(rows, begin, end, fresh, first, Y, columns, block):
    """Return the sum of weight times Y of the neighbours, `fresh` of those before the first row of the part, in eight columns."""
    indices, weights, weighted = address(rows.indices), address(rows.weights), len(rows.weights) > 0
    past = len(rows.indices) - 1
    total = zeros(Y, _BLOCK)
    for e in range(begin, end):
        soon = np.int64(item(indices, min(e + _AHEAD, past)))  # of the next row, or of none
        prefetch(fresh if soon < first else Y, soon * columns + block)
        j = np.int64(item(indices, e))
        weight = item(weights, e) if weighted else 1.0
        total = fma(weight, load(fresh if j < first else Y, j * columns + block, _BLOCK), total)
    return total


@part
def _solve_row(rows, state, i, first, alpha, power, threshold, out):
    """Write what solves the equation of row i; return its entries if its residual was above the threshold, else 0."""
    columns, degree = state.Y.shape[1], state.degree[i]
    Y, H, fresh = address(state.Y), address(state.H), address(out)
    begin, end = rows.start[i], rows.start[i] + rows.length[i]
    stay, share = (1.0 - alpha) / degree, alpha * scale_of(degree, power)
    own = 1.0 / (1.0 - stay * state.loop[i])
    above = False
    for block in range(0, columns, WIDTH):
        total = _gather(rows, begin, end, fresh, first, Y, columns, block)
        found = fma(own * share, load(H, i * columns + block, _BLOCK), times(own * stay, total))
        store(fresh, i * columns + block, found)
        above |= any_above(add(found, times(-1.0, load(Y, i * columns + block, _BLOCK))), threshold * own)
    return end - begin if above else 0


@kernel
def sweep(rows, state, n, alpha, power, threshold, fresh, above):
    """Write to `fresh`, shaped as Y, what solves the equation of each row; neighbours of parts before its own are fresh.

    above[i] = the entries of row i where its residual was above the threshold, else 0.
    """
    size = (n + _PARTS - 1) // _PARTS
    for first in range(0, n, size):
        for i in prange(first, min(first + size, n)):
            above[i] = _solve_row(rows, state, i, first, alpha, power, threshold, fresh)
