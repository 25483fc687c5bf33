"""From the predictions of one run to the logits of its labelled nodes and back: none, K power steps, or PPR rows.

K power steps go for the training state and the evaluation's side by side. In scaled variables (see `NumbaSteps`) no edge
value is stored. A row of the state is [training | evaluation], so that one gathered cache line serves both: the
evaluation's half counts always, the training half when its bit is set. Columns come in blocks of at most 2 x 24; every
block makes its K steps alone. Layouts: predictions (n, 2 C) with C all padded classes, states (blocks, n, 2 c), c the
classes of one block. Every kernel does one thread's share of the rows.

`Entries`, `Masks` and `Crew` are what the other fused kernels work on, too: sparse matrices both ways, keep decisions in
planes, rows shared out to threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from pprop.graph import Transition
from pprop.kernels.contract import LabelledNodes, PropagateRows, PropagateSteps, TrainerSpec
from pprop.kernels.numba_cpu import rows
from pprop.kernels.numba_cpu._jit import part, serial
from pprop.kernels.numba_cpu.bits import RAW_WORDS, plane_words, reorder_planes
from pprop.kernels.numba_cpu.team import Arena, Team, meet
from pprop.kernels.numba_cpu.vectors import (
    address,
    count,
    fma,
    fma_halves,
    item,
    lanes,
    load,
    prefetch,
    put,
    store,
    times,
    zeros,
)
from pprop.kernels.random_bits import EDGES, Bernoulli


def padded(width: int, sizes: tuple[int, ...]) -> tuple[int, int]:
    """Return the lanes of one block, and the blocks: as few as `sizes` allow, each the smallest that holds its share.

    >>> padded(7, (4, 8, 16)), padded(100, (16, 64)), padded(40, (16, 20, 24))
    ((8, 1), (64, 2), (20, 2))
    """
    blocks = -(-width // sizes[-1])
    return next(size for size in sizes if size * blocks >= width), blocks


def shares(indptr: NDArray[np.int64], threads: int, block: int = 1) -> NDArray[np.int64]:
    """Return where each thread's rows begin, in blocks of rows, so that all have about the same number of entries.

    >>> shares(np.array([0, 6, 7, 8, 9]), 2)
    array([0, 2, 4])
    """
    cost = indptr + 4 * np.arange(len(indptr))  # a row costs something even when it is empty
    edges = np.minimum(np.arange(0, len(indptr) - 1 + block, block), len(indptr) - 1)
    bounds = np.searchsorted(cost[edges], cost[-1] * np.arange(threads + 1) / threads)
    bounds[0], bounds[-1] = 0, len(edges) - 1
    return bounds.astype(np.int64)


@serial
def _flip(indptr, indices, values, below, order, rows, turned):
    """Sort the entries of a CSR matrix by column, those of a column by row, by counting them; `rows` may be empty."""
    for e in range(len(indices)):
        below[indices[e] + 1] += 1
    for j in range(len(below) - 1):
        below[j + 1] += below[j]
    free = below.copy()
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            at = free[indices[e]]
            free[indices[e]] = at + 1
            order[at] = e
            if len(rows) > 0:
                rows[at] = i
            if len(turned) > 0:
                turned[at] = values[e]


class Entries(NamedTuple):
    """A sparse matrix by rows and by columns, each (indptr, indices, values), the values empty for a matrix of ones."""

    matrix: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]
    flipped: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]
    order: NDArray[np.int32]  # place in `matrix` of every entry of `flipped`

    @classmethod
    def of(
        cls,
        indptr: NDArray[Any],
        indices: NDArray[Any],
        values: NDArray[np.float32],
        columns: int,
        *,
        symmetric: bool = False,
    ) -> Entries:
        """Return the entries of a CSR matrix with that many columns; of a symmetric one both sides are the same arrays."""
        pointers, places = np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(indices, np.int32)
        matrix = pointers, places, values
        below: NDArray[np.int64] = np.zeros(columns + 1, np.int64)
        order: NDArray[np.int32] = np.empty(len(places), np.int32)
        rows = places[:0] if symmetric else np.empty_like(places)
        turned = values[:0] if symmetric else np.empty_like(values)
        _flip(*matrix, below, order, rows, turned)
        return cls(matrix, matrix if symmetric else (below, rows, turned), order)


class Law(NamedTuple):
    """A drop probability threshold / 2**digits, with one over the keep probability; no digits for no dropout."""

    threshold: int
    digits: int
    scale: np.float32

    @classmethod
    def of(cls, probability: float) -> Law:
        """Return the law of a drop probability in [0, 1)."""
        exact = Bernoulli.from_probability(probability)
        return cls(*exact, np.float32(exact.scale))


@final
class Crew:
    """A team with the memory of its run, and the room each of its threads needs to draw random words."""

    def __init__(self, team: Team) -> None:
        self.team, self.arena = team, Arena()
        self.raw = [np.empty(RAW_WORDS, np.uint64) for _ in range(team.threads)]
        self.four = [np.empty(4, np.uint32) for _ in range(team.threads)]


@final
class Masks:
    """Keep decisions of the entries of a sparse matrix: a ring of planes with 32 of every entry, by rows and by columns.

    A call of Philox gives four words, so four planes are drawn at a time, and none of it is thrown away.
    """

    def __init__(
        self, entries: Entries, law: Law, kind: int, seed: np.uint64, crew: Crew, positions_per_epoch: int = 1
    ) -> None:
        self._entries, self._law, self._kind, self._seed, self._crew = entries, law, kind, seed, crew
        size = len(entries.order)
        self._split = np.linspace(0, size, crew.team.threads + 1).astype(np.int64)
        if law.digits == 0:
            self.planes = crew.arena.empty((2, 1, size), np.uint32)
            self.planes[...] = 0xFFFFFFFF
            return
        self.planes = crew.arena.empty((2, self.planes_for(positions_per_epoch), size), np.uint32)

    @staticmethod
    def planes_for(positions_per_epoch: int) -> int:
        """Return the planes of one side."""
        span = (positions_per_epoch - 1) // 32 + 2  # blocks of 32 positions that one epoch may touch
        return 4 if positions_per_epoch <= 1 else 4 * ((span + 2) // 4 + 1)

    def renew(self, thread: int, epoch: int, positions: int) -> None:
        """Draw what an epoch with that many positions is the first to need: one thread's share of it."""
        if self._law.digits == 0:
            return
        first, last = epoch * positions, (epoch + 1) * positions - 1
        begin, end, team = self._split[thread], self._split[thread + 1], self._crew.team
        for block in range(-(-first // 128) * 4, last // 32 + 1, 4):
            plane_words(
                self._seed, self._kind, *self._entries.matrix[:2], begin, end, block,
                self._law.threshold, self._law.digits, self._crew.raw[thread], self._crew.four[thread], self.planes[0],
            )  # fmt: skip
            meet(team.desk, team.threads)
            reorder_planes(self._entries.order, begin, end, block, self.planes[0], self.planes[1])
            meet(team.desk, team.threads)

    def at(self, side: int, position: int) -> tuple[NDArray[np.uint32], int]:
        """Return the plane and the bit of a position, by rows (side 0) or by columns (side 1)."""
        return self.planes[side, position // 32 % self.planes.shape[1]], position % 32


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
def _edge_lists(A, size):
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
def steps_forward(
    thread, threads, desk, begin, end, A, planes, epoch, steps, scales, away, predictions, state, spare,
    train_nodes, train_logits, stopping_nodes, stopping_logits, pair,
):  # fmt: skip
    """K steps of all column blocks by one thread of a team; the last one only at the labelled nodes.

    `away` (n,) says how far every node is from those, at most `REACH`.
    """
    edges = _edge_lists(A, state.size)
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
def steps_adjoint(
    thread, threads, desk, begin, end, A, planes, epoch, steps, scales, away, gradient, state, spare, token
):
    """The gradient of the predictions in place of that of the propagated ones, (blocks, n, c), by one thread of a team.

    dH = alpha (g_1 + ... + g_K) + g_0 is collected on the way. `away` (n,) says how far every node is from the training
    nodes, where the gradient begins, at most `REACH`.
    """
    edges = _edge_lists(A, state.size // 2)
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


KEPT = 2**23  # entries of a transition matrix whose transpose is kept as long as it is
_kept: WeakKeyDictionary[Transition, Entries] = WeakKeyDictionary()


def _edges(T: Transition) -> Entries:
    """Return a transition matrix by rows and by columns, without its scales."""
    found = _kept.get(T)
    if found is None:
        values = np.empty(0, np.float32) if T.weights is None else T.weights.astype(np.float32)
        found = Entries.of(T.indptr, T.indices, values, T.n_nodes, symmetric=T.symmetric)
        if len(T.indices) <= KEPT:
            _kept[T] = found
    return found


@final
class SharedSteps:
    """What all runs of K power steps read: the edges by rows and by columns, and the factors per node of each alpha."""

    def __init__(self, spec: TrainerSpec, propagation: PropagateSteps) -> None:
        T = propagation.transition
        self.steps, self.law = propagation.steps, Law.of(spec.matrix_dropout)
        self.edges = _edges(T)
        self._rows, self._columns = T.row_scale.astype(np.float32), T.column_scale.astype(np.float32)
        self._alphas = np.full(len(spec.seeds), propagation.alpha, np.float32)
        self._scales: dict[np.float32, Scales] = {}

    def scales(self, run: int) -> Scales:
        """Return the factors of a run, which runs with the same alpha share."""
        alpha, rows, columns = self._alphas[run], self._rows, self._columns
        if alpha not in self._scales:
            arrived = (1 - alpha) * self.law.scale * columns  # in the transposed matrix the scales change places
            forward = (1 - alpha) * rows * columns, alpha * columns
            backward = arrived * rows, np.stack([arrived, alpha * arrived])
            self._scales[alpha] = Scales(alpha, self.law.scale, rows, columns, *forward, *backward)
        return self._scales[alpha]


@final
class SharedRows:
    """What all runs with PPR rows read: the block (b, n), the nodes of its rows, and the row of each node."""

    def __init__(self, spec: TrainerSpec, propagation: PropagateRows) -> None:
        self.block = np.ascontiguousarray(propagation.block, dtype=np.float32)
        self.owners, self.row_of_node = propagation.nodes, propagation.row_of_node
        self.law = Law.of(spec.matrix_dropout)


class Nodes(NamedTuple):
    """Training or stopping nodes of one run."""

    places: NDArray[np.int64]  # of the nodes, or of their rows in a PPR block
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]
    targets: NDArray[np.float32] | None  # (m, c), of an elementwise loss


class Readout(ABC):
    """The readout of one run. Predictions (c blocks, n, 2 c) come in, halves of training and evaluation side by side."""

    def __init__(
        self, shared: Any, spec: TrainerSpec, run: int, seed: np.uint64, crew: Crew, lanes_c: int, blocks: int
    ) -> None:
        n, self._shared = spec.features.shape[0], shared
        self.train, self.stopping = self._nodes(spec.train, run), self._nodes(spec.stopping, run)
        self.predictions = crew.arena.empty((blocks, n, 2 * lanes_c))
        self.above = crew.arena.zeros((blocks, n, lanes_c))  # gradient of the training half
        self.train_logits = np.zeros((len(self.train.places), blocks * lanes_c), np.float32)
        self.stopping_logits = np.zeros((len(self.stopping.places), blocks * lanes_c), np.float32)
        self.gradient = np.zeros_like(self.train_logits)
        self._seed, self._crew, self._lanes = seed, crew, lanes_c
        self._token, self._pair = lanes(lanes_c), lanes(2 * lanes_c)

    def _nodes(self, labelled: LabelledNodes, run: int) -> Nodes:
        places, labels = (np.ascontiguousarray(array[run]) for array in (labelled.nodes, labelled.labels))
        given, targets = labelled.weights, labelled.targets
        weights = np.ones(len(labels)) if given is None else given[run].astype(np.float64)
        return Nodes(places, labels, weights, None if targets is None else np.ascontiguousarray(targets[run]))

    def renew(self, thread: int, epoch: int) -> None:  # noqa: B027  most have none
        """Draw the masks that an epoch is the first to need."""

    def scatter(self) -> None:
        """Put the gradient of the training logits in its place among all nodes."""
        self.above[:] = 0
        for block, target in enumerate(self.above):  # a node that pads a shorter set may also be a real one
            np.add.at(target, self.train.places, self.gradient[:, block * self._lanes : (block + 1) * self._lanes])

    @abstractmethod
    def forward(self, thread: int, epoch: int) -> None:
        """Fill both logits from the predictions."""

    @abstractmethod
    def adjoint(self, thread: int, epoch: int) -> None:
        """Make `above` the gradient of the training half of the predictions."""


@final
class _Plain(Readout):
    def forward(self, thread: int, epoch: int) -> None:
        if thread == 0:
            width = self._lanes
            for half, nodes, logits in ((0, self.train, self.train_logits), (1, self.stopping, self.stopping_logits)):
                for block, values in enumerate(self.predictions):
                    columns = values[:, half * width : (half + 1) * width]
                    logits[:, block * width : (block + 1) * width] = columns[nodes.places]

    def adjoint(self, thread: int, epoch: int) -> None:
        pass  # scattered already


@final
class _Steps(Readout):
    def __init__(
        self, shared: SharedSteps, spec: TrainerSpec, run: int, seed: np.uint64, crew: Crew, lanes_c: int, blocks: int
    ) -> None:
        super().__init__(shared, spec, run, seed, crew, lanes_c, blocks)
        self._scales, edges = shared.scales(run), shared.edges
        self._masks = Masks(edges, shared.law, EDGES, seed, crew, shared.steps)
        self._shares = [shares(side[0], crew.team.threads) for side in (edges.matrix, edges.flipped)]
        labelled = np.concatenate([self.train.places, self.stopping.places])
        self._away = [hops(*edges.matrix[:2], nodes) for nodes in (labelled, self.train.places)]
        self._state, self._spare = (crew.arena.empty(self.predictions.shape[1:]) for _ in range(2))

    def renew(self, thread: int, epoch: int) -> None:
        self._masks.renew(thread, epoch, self._shared.steps)

    def forward(self, thread: int, epoch: int) -> None:
        steps_forward(
            *self._part_of_steps(0, thread, epoch), self.predictions, self._state, self._spare,
            self.train.places, self.train_logits, self.stopping.places, self.stopping_logits, self._pair,
        )  # fmt: skip

    def adjoint(self, thread: int, epoch: int) -> None:
        part = self._part_of_steps(1, thread, epoch)
        steps_adjoint(*part, self.above, self._state, self._spare, self._token)

    def _part_of_steps(self, side: int, thread: int, epoch: int) -> tuple[object, ...]:
        """Return what a thread works on: by rows of A (side 0) or of its transpose (side 1)."""
        team, edges = self._crew.team, self._shared.edges
        begin, end = self._shares[side][thread : thread + 2]
        A, planes, steps = (edges.matrix, edges.flipped)[side], self._masks.planes[side], self._shared.steps
        return thread, team.threads, team.desk, begin, end, A, planes, epoch, steps, self._scales, self._away[side]


@final
class _Rows(Readout):
    def __init__(
        self, shared: SharedRows, spec: TrainerSpec, run: int, seed: np.uint64, crew: Crew, lanes_c: int, blocks: int
    ) -> None:
        super().__init__(shared, spec, run, seed, crew, lanes_c, blocks)
        self._words = [np.empty((max(4, len(self.train.places)), 4), np.uint32) for _ in range(crew.team.threads)]

    def _nodes(self, labelled: LabelledNodes, run: int) -> Nodes:
        nodes = super()._nodes(labelled, run)
        return nodes._replace(places=self._shared.row_of_node[nodes.places])

    def scatter(self) -> None:
        pass  # the rows do that

    def forward(self, thread: int, epoch: int) -> None:
        n, width, shared = self.predictions.shape[1], 2 * self._lanes, self._shared
        for half, nodes, logits, law in (
            (0, self.train, self.train_logits, shared.law),
            (1, self.stopping, self.stopping_logits, Law.of(0.0)),
        ):
            first, last = self._part(thread, -(-len(nodes.places) // 4))
            for block in range(len(self.predictions)):
                rows.run_forward(
                    first, last, shared.block, shared.owners, nodes.places, self.predictions,
                    block * n * width + half * self._lanes, width, self._seed, epoch, law, self._crew.raw[thread],
                    self._words[thread], logits, block * self._lanes, self._token,
                )  # fmt: skip

    def adjoint(self, thread: int, epoch: int) -> None:
        first, last = self._part(thread, -(-self.above.shape[1] // rows.GROUP))
        for block, target in enumerate(self.above):
            rows.run_adjoint(
                first, last, self._shared.block, self._shared.owners, self.train.places, self.gradient,
                block * self._lanes, self._seed, epoch, self._shared.law, self._crew.raw[thread], self._words[thread],
                target, self._token,
            )  # fmt: skip

    def _part(self, thread: int, count: int) -> tuple[int, int]:
        threads = self._crew.team.threads
        return count * thread // threads, count * (thread + 1) // threads


def readout_of(spec: TrainerSpec) -> tuple[type[Readout], SharedSteps | SharedRows | None]:
    """Return the class of a specification's readouts, and what they share: its first argument."""
    match spec.propagation:
        case PropagateSteps():
            return _Steps, SharedSteps(spec, spec.propagation)
        case PropagateRows():
            return _Rows, SharedRows(spec, spec.propagation)
        case None:
            return _Plain, None
