"""Rows of a polynomial in T: all of a row by gathering, or its large entries by pushing what is large enough.

A row of p(T) is a column of p(T^T). With x = row_scale * u the product u <- T^T u of T = diag(row_scale) A
diag(column_scale) reads x <- row_scale * column_scale * (A^T x), so that no value per entry is needed.

Inside, nodes are ordered by falling degree: rows of one length follow each other, which a processor foresees, and the
nodes that are read most often lie close together. That halves the time of a step.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from numba import prange
from numpy.typing import NDArray

from pprop.graph import Transition
from pprop.kernels.numba_cpu._jit import kernel, serial
from pprop.kernels.numba_cpu.vectors import address, count, fma, gather, item, lanes, load, store, times

# Rows that one thread computes together: a cache line of float64.
LANES = 8
_NO_WEIGHTS = np.empty(0)


@final
class OperatorStructure(NamedTuple):
    """T = diag(row_scale) A diag(column_scale) by rows of A and by rows of A^T, nodes in an order of their own.

    `order` (n,) holds the nodes in that order, `position` (n,) the place of each node; `scale` is the product of the
    row and the column scale; empty weights are all one.
    """

    order: NDArray[np.int64]
    position: NDArray[np.int64]

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float64]
    back_indptr: NDArray[np.int64]
    back_indices: NDArray[np.int32]
    back_weights: NDArray[np.float64]
    row_scale: NDArray[np.float64]
    column_scale: NDArray[np.float64]
    scale: NDArray[np.float64]


@final
class Recurrence(NamedTuple):
    """x_0 = first e, x_(k+1) = product_k T^T x_k + before_k x_(k-1) + own_k e, with x_(-1) = 0; three arrays (K,)."""

    first: float
    product: NDArray[np.float64]
    before: NDArray[np.float64]
    own: NDArray[np.float64]


def structure_of(transition: Transition) -> OperatorStructure:
    """Return a transition matrix as the kernels of this module take it."""
    back = transition.transpose
    order = np.argsort(-np.diff(back.indptr), kind="stable")
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    there = _reordered(transition, order, position)
    again = there if transition.symmetric else _reordered(back, order, position)
    rows, columns = transition.row_scale[order], transition.column_scale[order]
    return OperatorStructure(order, position, *there, *again, rows, columns, rows * columns)


def _reordered(
    transition: Transition, order: NDArray[np.int64], position: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Return the CSR structure and the weights of A with its nodes in another order."""
    lengths = np.diff(transition.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    entries = np.repeat(transition.indptr[order] - indptr[:-1], lengths) + np.arange(indptr[-1])
    weights = _NO_WEIGHTS if transition.weights is None else transition.weights[entries]
    return indptr, position[transition.indices[entries]].astype(np.int32), weights


def recurrence_rows(T: OperatorStructure, recurrence: Recurrence, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the rows that belong to `nodes`, shape (tasks, n, width): row r is [r // width, :, r % width].

    A task is `width` rows and all of their steps, by one thread that never waits for another.
    """
    width = LANES if len(nodes) > LANES // 2 else 1
    starts = np.full((-(-len(nodes) // width), width), -1, dtype=np.int64)
    starts.flat[: len(nodes)] = T.position[nodes]
    out = np.empty((len(starts), len(T.scale), width))
    if len(out) == 1:  # to call threads takes as long as a third of a step
        _one_task(T, *recurrence, starts[0], out[0], lanes(width))
    else:
        _all_tasks(T, *recurrence, starts, out, lanes(width))
    return out


@kernel
def _all_tasks(T, first, product, before, own, starts, out, width):
    for task in prange(len(out)):
        _one_task(T, first, product, before, own, starts[task], out[task], width)


@serial
def _one_task(T, first, product, before, own, starts, out, width):
    """Make all steps of some rows. As long as they have reached few nodes, only those are visited."""
    n, lane_count, weighted = len(T.scale), count(width), len(T.weights) > 0
    state, other = np.zeros(n * lane_count), np.zeros(n * lane_count)
    reached, known = np.empty(n, np.int64), np.zeros(n, np.bool_)
    size, expanded = 0, 0
    for q in range(lane_count):
        if starts[q] >= 0:
            state[starts[q] * lane_count + q] = first * T.row_scale[starts[q]]
            if not known[starts[q]]:
                known[starts[q]], reached[size] = True, starts[q]
                size += 1
    pointers, indices, weights = address(T.back_indptr), address(T.back_indices), address(T.back_weights)
    scale = address(T.scale)
    for k in range(len(product)):
        if 4 * size < n:  # from a quarter of all nodes on, their order in memory is quicker than that of a list
            past = size
            for r in range(expanded, past):
                for e in range(T.indptr[reached[r]], T.indptr[reached[r] + 1]):
                    j = T.indices[e]
                    if not known[j]:
                        known[j], reached[size] = True, j
                        size += 1
            expanded = past
        few = 4 * size < n
        a, b, x, y = product[k], before[k], address(state), address(other)
        for r in range(size if few else n):
            i = reached[r] if few else r
            total = gather(
                item(pointers, i), item(pointers, i + 1), indices, weights, weighted, x, lane_count, 0, width
            )
            at = i * lane_count
            store(y, at, fma(a * item(scale, i), total, times(b, load(y, at, width))))
        for q in range(lane_count):
            if starts[q] >= 0:
                other[starts[q] * lane_count + q] += own[k] * T.row_scale[starts[q]]
        state, other = other, state
    for i in range(n):
        for q in range(lane_count):
            out[T.order[i], q] = state[i * lane_count + q] / T.row_scale[i]


@serial
def _summarise(row, lane, H, size, nodes, values, sums):
    """Summarise one row; see `summaries`."""
    n, c, most, found, reached, absolute = H.shape[0], H.shape[1], len(nodes), 0, 0, 0.0
    best = np.empty(most)
    for i in range(n):
        value = row[i, lane]
        if value == 0.0:
            continue
        reached += 1
        score = abs(value) * size[i]
        absolute += score
        for q in range(c):
            sums[q] += value * H[i, q]
        if found < most or score > best[most - 1]:
            place = found if found < most else most - 1
            found = min(found + 1, most)
            while place > 0 and score > best[place - 1]:
                best[place], nodes[place] = best[place - 1], nodes[place - 1]
                place -= 1
            best[place], nodes[place] = score, i
    for place in range(found):
        values[place] = row[nodes[place], lane]
    return absolute, reached


@kernel
def _summarise_all(rows, H, size, nodes, values, sums, absolute, reached):
    width = rows.shape[2]
    for r in prange(len(nodes)):
        row = rows[r // width]
        absolute[r], reached[r] = _summarise(row, r % width, H, size, nodes[r], values[r], sums[r])


def summaries(
    rows: NDArray[np.float64], H: NDArray[np.float64], size: NDArray[np.float64], most: int, m: int
) -> tuple[Any, Any, Any, Any, Any]:
    """Return summaries of the first m rows, each times H (n, c); `size` (n,) is |H_i|_1.

    Nodes with the `most` largest |row_i| size_i in falling order, -1 where there are no more, and the row there, both
    (m, most); row H (m, c); the sum of all |row_i| size_i (m,); and the number of entries that are not zero (m,).
    """
    nodes, values, sums = np.full((m, most), -1, dtype=np.int64), np.zeros((m, most)), np.zeros((m, H.shape[1]))
    absolute, reached = np.zeros(m), np.zeros(m, dtype=np.int64)
    if m == 1:
        absolute[0], reached[0] = _summarise(rows[0], 0, H, size, nodes[0], values[0], sums[0])
    else:
        _summarise_all(rows, H, size, nodes, values, sums, absolute, reached)
    return nodes, values, sums, absolute, reached


@serial
def level_push(T, alpha, steps, node, eps, arrived, coming, row, lists):
    """Push what is at `node` through `steps` power steps, but for what is too small to matter; return counts.

    Level k holds u_k = ((1 - alpha) T^T)^k e. Of each entry alpha u_k goes to the row (all of it at the last level),
    and the rest to the senders, if u_k[i] / column_scale[i], relative to the start, is at least eps times the entries of
    row i. What is not sent on is missing in the row, which so is never above the true one.

    Nodes, `node` among them, are places in the order of T. `arrived`, `coming` and `row` (n,) are zero before, and
    again afterwards but for `row`, which the caller reads and clears at lists[0, :count]; `lists` (3, n) is room for
    nodes. Returns that count and the entries of T that were read.
    """
    stay, weighted = 1.0 - alpha, len(T.weights) > 0
    seen, frontier, ahead = lists[0], lists[1], lists[2]
    relative = T.column_scale[node] if T.column_scale[node] > 0.0 else 1.0
    arrived[node], frontier[0] = 1.0, node  # in units of column_scale, which the first level has not been given
    size, found, touched = 1, 0, 0
    for k in range(steps + 1):
        last, grown = k == steps, 0
        for f in range(size):
            i = frontier[f]
            amount, arrived[i] = arrived[i], 0.0
            u = amount * T.column_scale[i] if k > 0 else amount
            credit = u if last else alpha * u
            if credit > 0.0:
                if row[i] == 0.0:
                    seen[found] = i
                    found += 1
                row[i] += credit
            begin, end = T.indptr[i], T.indptr[i + 1]
            send = stay * u * T.row_scale[i]
            if last or send <= 0.0 or (k > 0 and amount * relative < eps * (end - begin)):
                continue
            touched += end - begin
            for e in range(begin, end):
                j = T.indices[e]
                there = coming[j]
                total = there + (send * T.weights[e] if weighted else send)
                if there == 0.0 and total > 0.0:  # once in the list; nothing may be left of a very small weight
                    ahead[grown] = j
                    grown += 1
                coming[j] = total
        arrived, coming = coming, arrived
        frontier, ahead = ahead, frontier
        size = grown
        if size == 0:
            break
    return found, touched
