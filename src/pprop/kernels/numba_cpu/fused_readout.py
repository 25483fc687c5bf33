"""From the predictions of one run to the logits of its labelled nodes and back: none, K power steps, or PPR rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from pprop.graph import Transition
from pprop.kernels.numba_cpu import fused_steps, rows
from pprop.kernels.numba_cpu.fused_structure import Crew, Entries, Law, Masks, shares
from pprop.kernels.numba_cpu.vectors import lanes
from pprop.kernels.random_bits import EDGES
from pprop.kernels.trainer import LabelledNodes, PropagateRows, PropagateSteps, TrainerSpec

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
        self._scales: dict[np.float32, fused_steps.Scales] = {}

    def scales(self, run: int) -> fused_steps.Scales:
        """Return the factors of a run, which runs with the same alpha share."""
        alpha, rows, columns = self._alphas[run], self._rows, self._columns
        if alpha not in self._scales:
            arrived = (1 - alpha) * self.law.scale * columns  # in the transposed matrix the scales change places
            forward = (1 - alpha) * rows * columns, alpha * columns
            backward = arrived * rows, np.stack([arrived, alpha * arrived])
            self._scales[alpha] = fused_steps.Scales(alpha, self.law.scale, rows, columns, *forward, *backward)
        return self._scales[alpha]


@final
class SharedRows:
    """What all runs with PPR rows read: the block (b, n), the nodes of its rows, and the row of each node."""

    def __init__(self, spec: TrainerSpec, propagation: PropagateRows) -> None:
        self.block = np.ascontiguousarray(propagation.block, dtype=np.float32)
        self.owners, self.row_of_node = propagation.nodes, propagation.row_of_node
        self.law = Law.of(spec.matrix_dropout)


class _Nodes(NamedTuple):
    places: NDArray[np.int64]  # of the nodes, or of their rows in a PPR block
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]


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

    def _nodes(self, labelled: LabelledNodes, run: int) -> _Nodes:
        places, labels = (np.ascontiguousarray(array[run]) for array in (labelled.nodes, labelled.labels))
        given = labelled.weights
        return _Nodes(places, labels, np.ones(len(labels)) if given is None else given[run].astype(np.float64))

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
        self._away = [fused_steps.hops(*edges.matrix[:2], nodes) for nodes in (labelled, self.train.places)]
        self._state, self._spare = (crew.arena.empty(self.predictions.shape[1:]) for _ in range(2))

    def renew(self, thread: int, epoch: int) -> None:
        self._masks.renew(thread, epoch, self._shared.steps)

    def forward(self, thread: int, epoch: int) -> None:
        fused_steps.forward(
            *self._part_of_steps(0, thread, epoch), self.predictions, self._state, self._spare,
            self.train.places, self.train_logits, self.stopping.places, self.stopping_logits, self._pair,
        )  # fmt: skip

    def adjoint(self, thread: int, epoch: int) -> None:
        part = self._part_of_steps(1, thread, epoch)
        fused_steps.adjoint(*part, self.above, self._state, self._spare, self._token)

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

    def _nodes(self, labelled: LabelledNodes, run: int) -> _Nodes:
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
