"""Many rows by local push: shared out to threads, with a bound of the error of each.

What is left over of a residual is mostly worth something: a node with residual r keeps at least ``kept r`` of it, which
is added to the nodes that have been pushed (they have an entry anyway). Every value stays at or below the exact one.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pprop.kernels.numba_cpu._jit import part, serial, usable_threads
from pprop.kernels.numba_cpu.push import COUNT, OPENED, PUSHES, TOUCHED, begin, copy, finer, longer, new_desk, settle
from pprop.kernels.numba_cpu.team import Team, fetch_add

# Where the error is bounded by what: residual mass and, entry by entry, degrees; mass; 2-norm; largest residual.
UNDIRECTED, DIRECTED_ROW, DIRECTED_SYM, DIRECTED_COL = 0, 1, 2, 3
# By which eps is divided when the largest entries are not proven yet.
FINER = 4.0
_NO_COLUMNS, _NO_VALUES = np.empty(0, np.int32), np.empty(0, np.float64)
# By which an entry must exceed the bound of another, so that no rounding turns their order round.
DOUBT = 1.0 + 1e-10
# What makes up for degrees that were rounded down to float32: to the nearest number and the next below, or to its
# bounds. A threshold may be lower than eps times the degree; the bound of an error must not be.
ROUNDED_DOWN, LEAST_DEGREE, MOST_DEGREE = 1.0 + 2.0**-22, 2.0**-125, 2.0**127


@serial
def push_some(graph, rule, nodes, eps, most, finest, ticket, past, worker, where, reports):
    """Push the rows of ``nodes[:past]`` that no other worker with the same `ticket` has taken.

    `graph` is that of `push.settle`. `rule` is (scale or none, kind, power, least degree, largest degree): entry j of
    row i is p_j scale_j / scale_i, where scale_j = degree_j^-power on an undirected graph, and kind one of the four
    above. `most` is 0, or how many of the largest entries of a row are wanted, for which eps may go down to `finest`.

    Writes into row t of `where` the worker, the first and the number of entries, pushes, touched entries and proven
    entries, and of `reports` the bound of the error, the bound without what was left out, the last eps, and whether the
    largest entries are proven.
    Returns the columns and the values of this worker's rows.
    """
    desk, tally = new_desk(1024), np.zeros(7, np.int64)
    columns, values, used = np.empty(1024, np.int32), np.empty(1024, np.float64), 0
    while True:
        t = fetch_add(ticket, 0, 1)
        if t >= past:
            return columns[:used], values[:used]
        source, level, proven = nodes[t], eps, 0
        begin(graph, source, level, desk, tally)
        desk = settle(graph, level, desk, tally)
        while True:
            if used + tally[COUNT] > len(columns):
                columns = longer(columns, used, used + tally[COUNT])
                values = longer(values, used, used + tally[COUNT])
            row_columns, row_values = columns[used:], values[used:]
            length, bound = _read(rule, source, desk, tally, row_columns, row_values)
            reports[t, 1] = bound
            if most == 0:
                break
            length, proven, bound = _largest(
                graph, rule, source, most, level, bound, desk, tally, row_columns, row_values
            )
            closed = tally[OPENED] == tally[COUNT]  # every node reached was pushed, so that there is no other
            sure = proven == length and (length == most or closed)
            reports[t, 3] = 1.0 if sure else 0.0
            if sure or level <= finest:
                break
            before, level = level, max(level / FINER, finest)
            finer(level / before, desk, tally)
            desk = settle(graph, level, desk, tally)
        where[t, 0], where[t, 1], where[t, 2] = worker, used, length
        where[t, 3], where[t, 4], where[t, 5] = tally[PUSHES], tally[TOUCHED], proven
        reports[t, 0], reports[t, 2] = bound, level
        used += length


# Columns and values of the rows that one thread has made, one after another.
Part = tuple[NDArray[np.int32], NDArray[np.float64]]


def _read_only(graph: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return views that cannot be written: arrays that can are another type, for which all would be compiled again."""
    views = tuple(array.view() for array in graph)
    for view in views:
        view.flags.writeable = False
    return views


def share_out(
    graph: tuple[Any, ...],
    rule: tuple[Any, ...],
    nodes: NDArray[np.int64],
    eps: float,
    most: int,
    finest: float,
    where: NDArray[np.int64],
    reports: NDArray[np.float64],
) -> list[Part]:
    """Run `push_some` in numba's number of threads; return what each has made."""
    parts: list[Part] = [(_NO_COLUMNS, _NO_VALUES)] * max(1, min(usable_threads(), len(nodes)))
    graph, ticket = _read_only(graph), np.zeros(1, np.int64)

    def work(worker: int) -> None:
        parts[worker] = push_some(graph, rule, nodes, eps, most, finest, ticket, len(nodes), worker, where, reports)

    with closing(Team(len(parts))) as team:
        team.run(work)
    return parts


def put_together(shared: list[tuple[slice, list[Part]]], where: NDArray[np.int64], indptr: NDArray[np.int64]) -> Part:
    """Return the columns and values of all rows in their order, given which rows each call of `share_out` has made."""
    columns, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float64)

    def work(worker: int) -> None:
        for rows, parts in shared:
            if worker < len(parts):
                put_rows(worker, where[rows], indptr[rows], *parts[worker], columns, values)

    with closing(Team(max((len(parts) for _, parts in shared), default=1))) as team:
        team.run(work)
    return columns, values


@serial
def put_rows(worker, where, indptr, some_columns, some_values, columns, values):
    """Copy the rows of one worker to their places among all rows."""
    for t in range(len(where)):
        if where[t, 0] == worker:
            begin = where[t, 1]
            for k in range(where[t, 2]):
                columns[indptr[t] + k], values[indptr[t] + k] = some_columns[begin + k], some_values[begin + k]


def push_one(graph: tuple[Any, ...], source: int, eps: float) -> tuple[Any, ...]:
    """Return the nodes that one row reaches, with p and r of the equation at the top of `push`, and entries touched."""
    return _push_one(_read_only(graph), source, eps)


@serial
def _push_one(graph, source, eps):
    """Push one row; see `push_one`."""
    desk, tally = new_desk(1024), np.zeros(7, np.int64)
    begin(graph, source, eps, desk, tally)
    desk = settle(graph, eps, desk, tally)
    count = tally[COUNT]
    node, values, residuals = np.empty(count, np.int32), np.zeros(count, np.float64), np.empty(count, np.float64)
    for slot in range(count):
        node[slot], residuals[slot] = desk[1][slot], desk[3][slot, 0]
        if desk[4][slot] >= 0:
            values[slot] = desk[6][desk[4][slot], 0]
    return node, values, residuals, tally[TOUCHED]


@serial
def _kth_largest(values, length, k):
    """Return the k-th largest of the first `length` values by repeated partition."""
    work = np.empty(length, np.float64)
    copy(values, work, length)
    low, high = 0, length - 1
    while low < high:
        pivot, left, right = work[(low + high) // 2], low, high
        while left <= right:
            while work[left] > pivot:
                left += 1
            while work[right] < pivot:
                right -= 1
            if left <= right:
                work[left], work[right] = work[right], work[left]
                left += 1
                right -= 1
        if k - 1 <= right:
            high = right
        elif k - 1 >= left:
            low = left
        else:
            break
    return work[k - 1]


@part
def _factor(scale, column, row):
    return scale[column] / scale[row] if len(scale) > 0 else 1.0


@serial
def _read(rule, source, desk, tally, columns, values):
    """Write the entries of a row, one for every node pushed; return their number and the bound of the error."""
    scale, kind = rule[0], rule[1]
    node, state, opened, facts = desk[1], desk[3], desk[5], desk[6]
    total = 0.0
    for k in range(tally[OPENED]):
        slot = opened[k]
        value = facts[k, 0] + facts[k, 1] * state[slot, 0]
        columns[k], values[k] = node[slot], value * _factor(scale, node[slot], source)
        total += value
    bound = 0.0
    if kind <= DIRECTED_ROW:
        bound = max(1.0 - total, 0.0)  # the exact row adds up to 1
    else:
        for slot in range(tally[COUNT]):
            r = state[slot, 0] * _factor(scale, node[slot], source)
            bound = max(bound, r) if kind == DIRECTED_COL else bound + r * r
    return tally[OPENED], np.sqrt(bound) if kind == DIRECTED_SYM else bound


@part
def at_most(degree, top):
    """The most that a degree can be, of which `degree` is stored and none is above `top`."""
    return top if degree >= MOST_DEGREE else min(max(np.float64(degree) * ROUNDED_DOWN, LEAST_DEGREE), top)


@serial
def _largest(graph, rule, source, most, eps, bound, desk, tally, columns, values):
    """Keep the `most` largest entries of a row that `_read` has written.

    An entry is proven if it is not below what any entry left out can be: at most `most` - 1 others are then larger.
    Returns how many entries are kept, how many of them are proven, and the error bound with all that was left out.
    """
    degree = graph[3]
    scale, kind, power, least, top = rule
    node, number, opened, length, count = desk[1], desk[4], desk[5], tally[OPENED], tally[COUNT]
    cut, equal = -1.0, 0
    if length > most:
        cut, equal = _kth_largest(values, length, most), most
        for k in range(length):
            equal -= values[k] > cut
    rival = 0.0
    if length < count and kind == UNDIRECTED:  # the worst degree that a node not reached can have
        d = min(max(bound / eps, least), top)
        rival = min(eps * d, bound) * (at_most(degree[source], top) / d) ** power
    elif length < count:
        rival = bound
    for slot in range(count):  # nodes reached and not pushed: their p is 0
        if number[slot] < 0 and kind == UNDIRECTED:
            error = min(eps * at_most(degree[node[slot]], top), bound) * _factor(scale, node[slot], source)
            rival = max(rival, error)
    stored, left_out = 0, 0.0
    for k in range(length):
        value, u = values[k], node[opened[k]]
        if value > cut or (value == cut and equal > 0):
            equal -= value == cut
            columns[stored], values[stored] = u, value
            stored += 1
            continue
        factor = _factor(scale, u, source)
        error = min(eps * at_most(degree[u], top), bound) * factor if kind == UNDIRECTED else bound
        rival = max(rival, value + error)
        if kind == DIRECTED_SYM:
            left_out += value * value
        else:
            left_out = max(left_out, value) if kind == DIRECTED_COL else left_out + value / factor
    proven = 0
    for k in range(stored):
        proven += values[k] > rival * DOUBT
    return stored, proven, bound + (np.sqrt(left_out) if kind == DIRECTED_SYM else left_out)
