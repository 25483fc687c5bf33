"""The fixed point of a changing graph, kept within a tolerance: rows, residual, pushes and what rounding may add.

With Y = D^-p Z (p = 1/2, 0 or 1 for "sym", "row" or "col") and P = D^-1 A_tilde, whose rows sum to one, the fixed point is

    Y = (1 - alpha) P Y + alpha G,    G = D^-p H.

For any Y with residual r = alpha G + (1 - alpha) P Y - Y the error e solves e = (1 - alpha) P e + r. P is an average, so
|e|_inf <= (1 - alpha) |e|_inf + |r|_inf, that is

    |e|_inf <= |r|_inf / alpha,    and of Z in node i at most d_i^p times that.

A push sets one row of r to zero and adds (1 - alpha) A_ij / d_i times as much to each neighbour, so that the sum of
d_i |r_i| falls by alpha d_j |r_j|. An edge edit adds at most a few times its weight times |Y| to that sum for
any degrees: its pushes read at most (what it adds) / (alpha threshold) entries, for a graph of any size.

That is a bound for one edge. A hub that comes or goes is many, and their pushes can take far longer than all nodes at once,
by a polynomial: the error solves the equation of Y with r in place of alpha G. So pushes end where they have read as
much as such a solve costs, and it goes on from what they have reached: never much more than twice the cheaper of both.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np
from scipy import sparse

from pprop.graph import Graph, transition_matrix
from pprop.kernels import choose_backend
from pprop.kernels.numba_cpu import live as loops
from pprop.kernels.numba_cpu import live_batch as batch
from pprop.kernels.numba_cpu.live import LiveRows, edge_weights, move_rows, pack_rows
from pprop.kernels.numba_cpu.team import Arena
from pprop.propagation.operator import POWERS, FixedPoint, Nodes, Values

RESERVE = 1 / 16  # share of alpha tol that is left to rounding; pushes leave no residual above the rest
UNIT = float(np.finfo(np.float64).eps)
START = 0.03  # share of the tolerance that a solve leaves, so that the next edits find residuals well below it
ROUNDS = 20  # polynomials in a row at most, each for the rest of the one before; pushes do what is left
NO_LIMIT = int(np.iinfo(np.int64).max)
PRODUCT = 1 / 8  # cost of a product per entry, in entries read by pushes: 22 and 170 ns on two cores, with 2 M entries
LEAST_PATIENCE = 1_000_000  # entries that pushes may always read: they are fast in a small graph, a solve has overhead
SWEEP = 1 / 16  # rough cost of a sweep per entry, in entries read by pushes; it changes speed alone
SWEEPS = 6  # that a batch is expected to need: pushes that would read more than these cost are not begun
MOST_SWEEPS = 24  # before a polynomial, which gains on them where alpha is small and the graph is long
BATCH_PATIENCE = 20_000  # entries that the pushes of a batch may always read


@final
class LiveSystem:
    """Y, r and the adjacency of an undirected graph under edits that are known to be possible.

    Nothing is validated here; every edit leaves the residual right, and `settle` makes it small again.

    Parameters
    ----------
    graph
        Undirected.
    H
        Shape (n, c), finite.
    alpha, tol, normalization, self_loops
        See `LiveGraph`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> pair = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]))
    >>> system = LiveSystem(pair, np.eye(2), alpha=0.5, tol=1e-6, normalization="sym", self_loops=True)
    >>> system.values(np.array([0])).round(4)
    array([[0.75, 0.25]])
    """

    def __init__(self, graph: Graph, H: Values, alpha: float, tol: float, normalization: str, self_loops: bool) -> None:
        self.n, self.columns = len(H), int(H.shape[1])
        self.alpha, self.tol = alpha, tol
        self._normalization, self._power, self._self_loops = normalization, POWERS[normalization], self_loops
        self._threshold = (1 - RESERVE) * alpha * tol
        self._rows, self._tail = _split_loops(graph)
        self._state = state = self._allocate(self.n)
        loops_of = graph.adjacency.diagonal()
        state.own[:] = loops_of > 0
        implied = (self._rows.length == 0) | self_loops
        state.loop[:] = np.where(state.own, loops_of, implied.astype(np.float64))
        state.H[:, : self.columns] = H
        self._grow(self.n + self.n // 8 + 16)  # some nodes may come before everything is copied
        self._products = 1  # of the last solve
        self._fresh = np.empty((0, 0))  # as Y, once rows were swept: what the next sweep makes of it
        self._unsettled = False  # whether residuals may be too large, or old
        self._sum_up()
        if self.least_tolerance() <= tol:
            self._solve(graph)
            self._push_at_most(NO_LIMIT, self._everyone())

    def reach(self, nodes: Nodes) -> float:
        """Return the largest number that `nodes` or all before them hold, on which rounding depends; NaN if it overflows."""
        with np.errstate(all="ignore"):
            held = np.concatenate([self._own_part(nodes), self._state.r[nodes]])
            return self._sound(nodes, float(np.maximum(np.abs(held).max(initial=0.0), self._scale)))

    def least_tolerance(self, reach: float = 0.0) -> float:
        """Return the smallest tolerance that float64 can guarantee, with numbers up to `reach`; infinity for NaN."""
        largest = float(np.maximum(self._scale, reach))
        return math.inf if math.isnan(largest) else (2**14 + 32 * self._longest) * UNIT * largest / self.alpha

    def weights_of(self, u: Nodes, v: Nodes) -> Values:
        """Return the weight of each edge (u, v), 0 where there is none."""
        found = np.empty(len(u))
        edge_weights(self._rows, u, v, found)
        loop = np.flatnonzero(u == v)
        if len(loop):
            at = u[loop]
            found[loop] = np.where(self._state.own[at], self._state.loop[at], 0.0)
        return found

    def change_edges(self, u: Nodes, v: Nodes, weights: Values, *, add: bool) -> None:
        """Add edges that are not there, or remove edges that are, of these weights; there may be none."""
        if not len(u):
            return
        if add:
            if not len(self._rows.weights) and not (weights == 1.0).all():
                self._pack(0, weighted=True)
            self._make_room(u, v)
        u, v, weights = _by_neighbour(u, v, weights, last_first=not add)
        loops.change_edges(self._rows, self._state, u, v, weights, add, self._self_loops, self.alpha, self._power)

    def change_together(self, u: Nodes, v: Nodes, old: Values, new: Values) -> None:
        """Give distinct edges other weights than they have, all at once; 0 where there is none before, or after."""
        if not len(u):
            return
        if not len(self._rows.weights) and not ((new == 0.0) | (new == 1.0)).all():
            self._pack(0, weighted=True)
        comes = (old == 0.0) & (u != v)
        if comes.any():
            self._make_room(u[comes], v[comes])
        changes = _by_row(u, v, old, new)
        batch.change_rows(self._rows, self._state, changes, self._self_loops, self.alpha, self._power)

    def edges_at(self, nodes: Nodes) -> tuple[Nodes, Nodes, Values]:
        """Return the edges of distinct `nodes`, each once, self-loops of the graph included."""
        u, v, weights = self._listed(nodes)
        if len(nodes) > 1:
            once = (u <= v) | ~np.isin(v, nodes)  # an edge between two of them is in the rows of both
            u, v, weights = u[once], v[once], weights[once]
        return u, v, weights

    def set_predictions(self, nodes: Nodes, H: Values) -> Values:
        """Give distinct nodes other rows of H, shape (m, c); return those they had."""
        before = self._state.H[nodes, : self.columns]
        padded = np.zeros((len(nodes), self._state.H.shape[1]))
        padded[:, : self.columns] = H
        loops.set_predictions(self._state, nodes, padded, self.alpha, self._power)
        return before

    def append(self, H: Values) -> Nodes:
        """Add nodes without edges, which keep their own predictions; return their positions."""
        first, self.n = self.n, self.n + len(H)
        if self.n > len(self._queued):
            self._grow(self.n + self.n // 2)
        at, state = slice(first, self.n), self._state
        for array in (*self._rows[:3], state.r, state.own):
            array[at] = 0
        for array in (state.degree, state.peak, state.loop):
            array[at] = 1.0
        state.H[at, : self.columns] = H
        state.H[at, self.columns :] = 0.0
        state.Y[at] = state.H[at]  # d = 1 in every normalisation
        return np.arange(first, self.n, dtype=np.int64)

    def pop(self, count: int) -> None:
        """Forget the last nodes, which have no edges."""
        self.n -= count

    def count_rounding(self, nodes: Nodes, reach: float) -> None:
        """Take into account that the rows of `nodes`, one as often as it is there, were changed, with numbers up to `reach`."""
        self._operations += 4.0 * len(nodes)
        self._scale = max(self._scale, reach)

    def settle(self, nodes: Nodes, reach: float, *, together: bool = False) -> tuple[int, int, bool]:
        """Push from the nodes that edits have touched; return pushes, entries read, and whether all rows were summed up.

        Rows are summed up anew when the roundings since the last time could add up to what is reserved for them, and
        where pushes took so long that all nodes were solved for at once; after many edits together also where they would.
        """
        again, self._unsettled = self._unsettled, True  # an interruption leaves it so
        self.count_rounding(nodes, reach)
        pushes, entries, solved = self._relax(np.unique(nodes)) if together else self._push(nodes)
        if not again and self._drift() <= RESERVE * self.alpha * self.tol:
            self._unsettled = False
            return pushes, entries, solved
        more = self.refresh()
        return pushes + more[0], entries + more[1], True

    def refresh(self) -> tuple[int, int, float]:
        """Sum up all rows and push; return pushes, entries read, and by how much the residual had drifted."""
        before = self._state.r[: self.n].copy()
        self._sum_up()
        drift = float(np.abs(self._state.r[: self.n] - before).max(initial=0.0))
        pushes, entries, _ = self._push(self._everyone())
        self._unsettled = False
        return pushes, entries + self._count(), drift

    def values(self, nodes: Nodes) -> Values:
        """Return rows of Z = D^p Y, shape (m, c), settled first where that was interrupted."""
        if self._unsettled:
            self.refresh()
        return self._state.Y[nodes, : self.columns] * self.degrees(nodes)[:, None]

    def degrees(self, nodes: Nodes) -> Values:
        """Return d^p, the size of the error of Z that an error of one in Y makes."""
        return self._state.degree[nodes] ** self._power

    def entries(self) -> tuple[Nodes, Nodes, Values]:
        """Return all entries of the adjacency matrix, self-loops of the graph included, as rows, columns, weights."""
        return self._listed(self._everyone())

    def _everyone(self) -> Nodes:
        return np.arange(self.n, dtype=np.int64)

    def _listed(self, nodes: Nodes) -> tuple[Nodes, Nodes, Values]:
        """Return the entries of some rows, self-loops of the graph last."""
        rows, lengths, loop = self._rows, self._rows.length[nodes], nodes[self._state.own[nodes]]
        row = np.repeat(nodes, lengths)
        at = np.repeat(rows.start[nodes] - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(row))
        weights = rows.weights[at] if len(rows.weights) else np.ones(len(at))
        u, v = np.concatenate([row, loop]), np.concatenate([rows.indices[at].astype(np.int64), loop])
        return u, v, np.concatenate([weights, self._state.loop[loop]])

    def _own_part(self, nodes: Nodes) -> Values:
        """G = D^-p H."""
        return self._state.H[nodes] / self.degrees(nodes)[:, None]

    def _sound(self, nodes: Nodes, largest: float) -> float:
        """Return the largest number, or NaN where a node's degree cannot be multiplied with it or divided by."""
        degree = self._state.degree[nodes]
        with np.errstate(all="ignore"):
            sums, inverse = degree.max(initial=1.0) * largest, 1.0 / degree.min(initial=1.0)
            return float(largest + 0.0 * sums + 0.0 * inverse)

    def _drift(self) -> float:
        """Bound what rounding has added to r: of long sums, and twice the unit of the largest number per operation."""
        return (self._longest + 16 + 2 * self._operations) * UNIT * self._scale

    def _push(self, nodes: Nodes) -> tuple[int, int, bool]:
        """Push from `nodes`; where that takes too long, solve. Return pushes, entries read, and whether it was solved."""
        # the used part of the pool is a bound of the entries that is at hand
        most = max(LEAST_PATIENCE, int(PRODUCT * self._products * (self._tail + self.n)))
        pushes, entries = self._push_at_most(most, nodes)
        if entries <= most:
            return pushes, entries, False
        more = self._solve_and_push()
        return pushes + more[0], entries + more[1], True

    def _solve_and_push(self) -> tuple[int, int]:
        self._sum_up()
        entries = self._solve(self._graph())
        pushes, more = self._push_at_most(NO_LIMIT, self._everyone())
        return pushes, entries + more

    def _relax(self, nodes: Nodes) -> tuple[int, int, bool]:
        """Push from distinct `nodes`, or sweep over all rows where pushes read, or would read, more than sweeps cost."""
        count, pushes, entries = self._count(), 0, 0
        most = max(BATCH_PATIENCE, int(SWEEPS * SWEEP * count))
        if batch.foresee(self._rows, self._state, nodes, self.alpha, self._threshold, count) <= most:
            pushes, entries = self._push_at_most(most, nodes)
            if entries <= most:
                return pushes, entries, False
        above = np.empty(self.n, np.int64)
        if self._fresh.shape != self._state.Y.shape:
            self._fresh = Arena().zeros(self._state.Y.shape, np.float64)
        for _ in range(MOST_SWEEPS):
            fresh, former = self._fresh, self._state.Y
            batch.sweep(self._rows, self._state, self.n, self.alpha, self._power, self._threshold, fresh, above)
            self._state, self._fresh = self._state._replace(Y=fresh), former
            pushes, entries = pushes + self.n, entries + count
            if above.sum() > SWEEP * count:  # to push from those that it found would cost more than the next sweep
                continue
            self._sum_up()
            more = self._push_at_most(most, self._everyone())
            pushes, entries = pushes + more[0], entries + count + more[1]
            if more[1] <= most:
                return pushes, entries, True
        more = self._solve_and_push()
        return pushes + more[0], entries + more[1], True

    def _push_at_most(self, most: int, nodes: Nodes) -> tuple[int, int]:
        pushes, entries, largest = loops.push(
            self._rows, self._state, nodes, self.alpha, self._threshold, self._link, self._queued, most
        )
        self._operations += pushes
        self._scale = max(self._scale, largest)
        return pushes, entries

    def _count(self) -> int:
        """Return the number of entries off the diagonal."""
        return int(self._rows.length[: self.n].sum())

    def _graph(self) -> Graph:
        """Return the graph as it is, on all positions."""
        u, v, weights = self.entries()
        return Graph.from_scipy(sparse.coo_array((weights, (u, v)), shape=(self.n, self.n)))

    def _sum_up(self) -> None:
        largest = np.empty(self.n)
        loops.all_residuals(self._rows, self._state, self.alpha, self._power, largest)
        self._scale, self._operations = self._sound(self._everyone(), float(largest.max(initial=0.0))), 0.0
        self._longest = float(self._rows.length[: self.n].max(initial=0))

    def _solve(self, graph: Graph) -> int:
        """Correct Y by Chebyshev's polynomial of r, to well below the tolerance; return the entries read."""
        transition = transition_matrix(graph, self._normalization, self._self_loops)
        kernels = choose_backend("numba", "cpu", "live").own_kernels
        everyone, goal, self._products = self._everyone(), START * self.alpha * self.tol, 1
        for _ in range(ROUNDS):  # more than one for a few nodes: the polynomial's error is known in the 2-norm alone
            left = float(np.abs(self._state.r[: self.n]).max(initial=0.0))
            if left <= max(goal, self._drift()):
                break
            powers = self.degrees(everyone)[:, None]
            solver = FixedPoint(transition, self.alpha, kernels, min(0.1, goal / left))
            r = (self._state.r[: self.n] * powers / self.alpha)[None]
            self._state.Y[: self.n] += solver.forward(r)[0] / powers
            self._products += solver.matrix_products + 1
            self._sum_up()
        return self._products * self._count()

    def _allocate(self, room: int) -> loops.LiveState:
        """Return zeroed arrays for so many nodes; the rows of eight columns begin at cache lines."""
        arena, padded = Arena(), -(-max(self.columns, 1) // loops.WIDTH) * loops.WIDTH
        wide = [arena.zeros((room, padded), np.float64) for _ in range(3)]
        narrow = [arena.zeros((room,), np.float64) for _ in range(3)]
        return loops.LiveState._make([*wide, *narrow, np.zeros(room, np.bool_)])

    def _grow(self, room: int) -> None:
        """Make the arrays of the nodes longer."""
        state, self._state = self._state, self._allocate(room)
        before = len(state.degree)
        for new, old in zip(self._state, state, strict=True):
            new[:before] = old
        start, length, size = (np.concatenate([array, np.zeros(room - before, np.int64)]) for array in self._rows[:3])
        self._rows = LiveRows(start, length, size, self._rows.indices, self._rows.weights)
        self._link, self._queued = np.empty(room, np.int64), np.zeros(room, np.bool_)

    def _make_room(self, u: Nodes, v: Nodes) -> None:
        ends = np.concatenate([u, v])
        if len(u) == 1 and (self._rows.length[ends] < self._rows.room[ends]).all():
            return  # most of the time
        nodes, extra = (ends, np.ones(len(ends), np.int64)) if len(u) == 1 else np.unique(ends, return_counts=True)
        wanted = self._rows.length[nodes] + extra
        needed = wanted + (wanted >> 1) + 4
        if self._tail + int(needed[wanted > self._rows.room[nodes]].sum()) > len(self._rows.indices):
            self._pack(int(needed.sum()), weighted=len(self._rows.weights) > 0)
        self._tail = move_rows(self._rows, nodes, extra.astype(np.int64), self._tail)
        self._longest = max(self._longest, float(needed.max()))  # the room that a row may fill unseen

    def _pack(self, needed: int, *, weighted: bool) -> None:
        """Copy the rows, without any room, to a pool of twice their size; what is not touched of it costs nothing."""
        size = 2 * self._count() + needed + 1024
        indices, weights = np.empty(size, np.int32), np.empty(size if weighted else 0)
        self._tail = pack_rows(self._rows, self.n, indices, weights)
        self._rows = LiveRows(*self._rows[:3], indices, weights)


def _by_neighbour(u: Nodes, v: Nodes, weights: Values, *, last_first: bool) -> tuple[Nodes, Nodes, Values]:
    """Return edges in an order that is that of the neighbours in every row: by the larger end, then by the smaller.

    A whole row is then written from its beginning, or taken away from its end, and nothing in it is shifted: a hub costs
    its degree and not the square of it.
    """
    if len(u) == 1:
        return u, v, weights
    order = np.lexsort((np.minimum(u, v), np.maximum(u, v)))
    if last_first:
        order = order[::-1]
    return u[order], v[order], weights[order]


def _by_row(u: Nodes, v: Nodes, old: Values, new: Values) -> batch.Changes:
    """Return what becomes of the entries of every row, given distinct edges, weights that they have and will have."""
    off = u != v
    row, other = np.concatenate([u, v[off]]), np.concatenate([v, u[off]])
    order = np.argsort(row * (max(int(u.max()), int(v.max())) + 1) + other)
    row = row[order]
    first = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
    old, new = np.concatenate([old, old[off]])[order], np.concatenate([new, new[off]])[order]
    return batch.Changes(row[first], np.append(first, len(row)), other[order], old, new)


def _split_loops(graph: Graph) -> tuple[LiveRows, int]:
    """Return the rows of a graph without its self-loops, in a pool twice as long, and the end of what is used of it."""
    row = np.repeat(np.arange(graph.n_nodes, dtype=np.int32), np.diff(graph.indptr))
    keep = row != graph.indices
    length = np.bincount(row[keep], minlength=graph.n_nodes).astype(np.int64)
    tail = int(length.sum())
    indices = np.empty(2 * tail + 1024, np.int32)
    indices[:tail] = graph.indices[keep]
    weights = np.empty(0 if graph.weights is None else len(indices))
    if graph.weights is not None:
        weights[:tail] = graph.weights[keep]
    return LiveRows(np.cumsum(length) - length, length.copy(), length, indices, weights), tail
