"""Local push: one row of the personalized PageRank matrix from the part of the graph that it reaches.

For a non-negative matrix B = diag(f) A and the row q_i of alpha (I - (1 - alpha) B)^-1, every push of a node u keeps

    q_i = p + sum_u r_u q_u,      beginning with p = 0, r = e_i:

r_u = x is taken away, alpha x is added to p_u, and (1 - alpha) x B[u, v] to every r_v. A self-loop that the adjacency
does not store is summed as the geometric series that it is. Nodes are pushed in the order in which they came above
their threshold, eps times the degree: in that order more residual gathers before it is passed on than in any that
turns to the newest node first.

Nodes that a row reaches get numbers of its own, 0, 1, ..., found by hashing; the lists of neighbours are written down
in these numbers when a node is pushed for the first time. All that is read again and again thus lies close together,
and nothing here is as long as the graph. Every row is worked on by one thread, in an order that no other row and no
number of threads changes.
"""

from __future__ import annotations

import numpy as np

from pprop.kernels.numba_cpu._jit import part, serial
from pprop.kernels.numba_cpu.vectors import address, item, prefetch, put

# What a tally counts: nodes reached, nodes pushed, neighbours written down, entries of the graph passed over, pushes;
# and where the queue, a ring, begins and ends.
COUNT, OPENED, FILLED, TOUCHED, PUSHES, HEAD, TAIL = 0, 1, 2, 3, 4, 5, 6
# The lowest threshold, however light the edges are: one of zero would be above no residual.
LEAST = 1e-290


@serial
def new_desk(slots):
    """Return the arrays that one thread works on, with room for a power of two of nodes.

    A hash table of (node << 32 | slot); by slot the node, its place in the table, its residual and threshold (infinite
    while it waits in a queue), and its number among the nodes that were pushed, or -1; by that number the slot,
    what a push needs (p, the shares kept and sent, the degree), and where its neighbours are (first and number among
    the neighbours written down, first in the graph); the queue of slots; neighbours as slots, and their degrees.
    """
    table = np.empty(2 * slots, np.int64)
    for at in range(len(table)):
        table[at] = -1
    node, place, state = np.empty(slots, np.int32), np.empty(slots, np.uint32), np.empty((slots, 2), np.float64)
    number, opened = np.empty(slots, np.int32), np.empty(slots, np.uint32)
    facts, spans = np.empty((slots, 4), np.float64), np.empty((slots, 3), np.int64)
    queue, arena, wanted = np.empty(slots, np.uint32), np.empty(4 * slots, np.uint32), np.empty(4 * slots, np.float32)
    return table, node, place, state, number, opened, facts, spans, queue, arena, wanted


@part
def _home(node, bits):
    """The place in a table of 2^bits at which the search for a node begins."""
    return (np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)


@part
def _bits(table):
    bits = 0
    while (1 << bits) < len(table):
        bits += 1
    return bits


@part
def copy(source, target, count):
    """Copy the first numbers of an array of any shape; a loop, since slices of arrays compile for seconds."""
    old, new = address(source), address(target)
    for k in range(count):
        put(new, k, item(old, k))


@part
def longer(array, used, needed):
    """Return an array with room for what is needed, or twice as long, that begins with the part that is used."""
    larger = np.empty(max(needed, 2 * len(array)), array.dtype)
    copy(array, larger, used)
    return larger


@serial
def _roomier(desk, tally, slots, neighbours):
    """Return the desk with room for that many nodes and neighbours; what is on it moves along."""
    table, node, place, state, number, opened, facts, spans, queue, arena, wanted = desk
    count, pushed = tally[COUNT], tally[OPENED]
    if neighbours > len(arena):
        arena = longer(arena, tally[FILLED], neighbours)
        wanted = np.empty(len(arena), np.float32)
    size = len(node)
    while size < slots:
        size *= 2
    if size > len(node):
        large = new_desk(size)
        copy(node, large[1], count)
        copy(state, large[3], 2 * count)
        copy(number, large[4], count)
        copy(opened, large[5], pushed)
        copy(facts, large[6], 4 * pushed)
        copy(spans, large[7], 3 * pushed)
        for k in range(tally[HEAD], tally[TAIL]):
            large[8][k & (size - 1)] = queue[k & (len(queue) - 1)]
        table, node, place, state, number, opened, facts, spans, queue, _, _ = large
        bits = _bits(table)
        for slot in range(count):
            at = _home(node[slot], bits)
            while table[at] >= 0:
                at = (at + np.uint64(1)) & np.uint64(len(table) - 1)
            table[at], place[slot] = (np.int64(node[slot]) << 32) | slot, at
    return table, node, place, state, number, opened, facts, spans, queue, arena, wanted


@part
def _slot_of(v, degree, table, bits, node, place, state, number, eps, count):
    """Return the slot of a node: `count`, the next free one, if it has just been reached."""
    at = _home(v, bits)
    found = table[at]
    while found >= 0:
        if (found >> 32) == v:
            return np.uint32(found)
        at = (at + np.uint64(1)) & np.uint64(len(table) - 1)
        found = table[at]
    slot = np.uint32(count)
    table[at] = (np.int64(v) << 32) | count
    node[slot], place[slot], number[slot] = v, at, -1
    state[slot, 0], state[slot, 1] = 0.0, max(eps * degree, LEAST)
    return slot


@serial
def begin(graph, source, eps, desk, tally):
    """Clear the desk of the row before, and put the residual 1 of this one on it; the source is always pushed."""
    table, node, place, state, number = desk[0], desk[1], desk[2], desk[3], desk[4]
    for slot in range(tally[COUNT]):
        table[place[slot]] = -1
    _slot_of(source, graph[3][source], table, _bits(table), node, place, state, number, eps, 0)
    state[0, 0], state[0, 1] = 1.0, np.inf
    desk[8][0] = 0
    for k in range(len(tally)):
        tally[k] = 0
    tally[COUNT], tally[TAIL] = 1, 1


@serial
def _drain(graph, eps, desk, tally):
    """Push until the queue is empty, or there is no room for the neighbours of the node at its head.

    No array is replaced here: numba would count references at every push.
    """
    indptr, indices, weights, degree, kept, sent = graph
    table, node, place, state, number, opened, facts, spans, queue, arena, wanted = desk
    count, pushed, filled, touched = tally[COUNT], tally[OPENED], tally[FILLED], tally[TOUCHED]
    head, tail, wrap = tally[HEAD], tally[TAIL], np.uint64(len(queue) - 1)
    begun, bits, weighted = head, _bits(table), len(weights) > 0
    lists, starts, keeps, sends = address(indices), address(indptr), address(kept), address(sent)
    while head < tail:
        slot = queue[np.uint64(head) & wrap]
        if number[slot] < 0:
            u = node[slot]
            begin, length = indptr[u], indptr[u + 1] - indptr[u]
            if count + length > len(node) or filled + length > len(arena):
                break
            opened[pushed], number[slot] = slot, pushed
            facts[pushed, 0], facts[pushed, 1], facts[pushed, 2], facts[pushed, 3] = 0.0, kept[u], sent[u], degree[u]
            spans[pushed, 0], spans[pushed, 1], spans[pushed, 2] = filled, length, begin
            pushed += 1
            # What a push needs lies anywhere in memory: ask for the next list, and for all about the one after it.
            if head + 1 < tail:
                ahead = queue[np.uint64(head + 1) & wrap]
                if number[ahead] < 0:
                    first = indptr[np.uint32(node[ahead])]
                    prefetch(lists, first)
                    prefetch(lists, first + 16)
            if head + 2 < tail:
                later = np.uint32(node[queue[np.uint64(head + 2) & wrap]])
                prefetch(starts, later)
                prefetch(keeps, later)
                prefetch(sends, later)
            for k in range(np.uint64(length)):  # a loop of its own, so that many fetches are under way at once
                wanted[k] = degree[np.uint32(indices[np.uint64(begin) + k])]
            for k in range(np.uint64(length)):
                v = indices[np.uint64(begin) + k]
                found = _slot_of(v, wanted[k], table, bits, node, place, state, number, eps, count)
                count += found == np.uint32(count)
                arena[np.uint64(filled) + k] = found
            filled += length
        own = np.uint32(number[slot])
        x = state[slot, 0]
        state[slot, 0], state[slot, 1] = 0.0, max(eps * facts[own, 3], LEAST)
        facts[own, 0] += facts[own, 1] * x
        amount, length = facts[own, 2] * x, spans[own, 1]
        start, begin = np.uint64(spans[own, 0]), np.uint64(spans[own, 2])
        for k in range(np.uint64(length)):
            target = arena[start + k]
            r = state[target, 0] + (amount * weights[begin + k] if weighted else amount)
            threshold = state[target, 1]
            above = r >= threshold  # no branch on it: half of them would be mispredicted
            state[target, 0], state[target, 1] = r, np.inf if above else threshold
            queue[np.uint64(tail) & wrap] = target  # where the ring is full, that is the place of the node being pushed
            tail += above
        touched += length
        head += 1
    tally[COUNT], tally[OPENED], tally[FILLED], tally[TOUCHED] = count, pushed, filled, touched
    tally[PUSHES] += head - begun
    tally[HEAD], tally[TAIL] = head, tail


@serial
def settle(graph, eps, desk, tally):
    """Push the nodes in the queue, and all that come above their threshold, until none is left.

    `graph` is (indptr, indices, weights or none, degree, kept, sent): a push of x at u adds ``kept[u] x`` to p and sends
    ``sent[u] x`` times the weight along every edge. Returns the desk, which may have become another, larger one.
    """
    _drain(graph, eps, desk, tally)
    while tally[HEAD] < tally[TAIL]:
        queue = desk[8]
        u = desk[1][queue[tally[HEAD] & (len(queue) - 1)]]
        length = graph[0][u + 1] - graph[0][u]
        desk = _roomier(desk, tally, tally[COUNT] + length, tally[FILLED] + length)
        _drain(graph, eps, desk, tally)
    return desk


@serial
def finer(factor, desk, tally):
    """Multiply the thresholds of all nodes reached by a factor below 1, and put those above theirs in the queue."""
    state, queue = desk[3], desk[8]
    tally[HEAD], tally[TAIL] = 0, 0
    for slot in range(np.uint64(tally[COUNT])):
        threshold = max(factor * state[slot, 1], LEAST)
        state[slot, 1] = threshold
        if state[slot, 0] >= threshold:
            state[slot, 1] = np.inf
            queue[tally[TAIL]] = slot
            tally[TAIL] += 1
