"""From the predictions of one run to the logits of its labelled nodes and back: none, K power steps, or PPR rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from pprop.kernels.numba_cpu import fused_steps, rows
from pprop.kernels.numba_cpu.fused_structure import Crew, Entries, Law, Masks, shares
from pprop.kernels.numba_cpu.vectors import lanes
from pprop.kernels.random_bits import EDGES
from pprop.kernels.trainer import LabelledNodes, PropagateRows, PropagateSteps, TrainerSpec


class _Nodes(NamedTuple):
    places: NDArray[np.int64]  # of the nodes, or of their rows in a PPR block
    labels: NDArray[np.int64]


class RunReadout(ABC):
    """The readout of one run. Predictions (c blocks, n, 2 c) come in, halves of training and evaluation side by side."""

    def __init__(self, readout: Readout, run: int, crew: Crew) -> None:
        n, lanes_c, blocks = readout.shape
        self.train, self.stopping = (readout.nodes(which, run) for which in (readout.spec.train, readout.spec.stopping))
        self.predictions = crew.arena.empty((blocks, n, 2 * lanes_c))
        self.above = crew.arena.zeros((blocks, n, lanes_c))  # gradient of the training half
        self.train_logits = np.zeros((len(self.train.places), blocks * lanes_c), np.float32)
        self.stopping_logits = np.zeros((len(self.stopping.places), blocks * lanes_c), np.float32)
        self.gradient = np.zeros_like(self.train_logits)
        self._crew, self._lanes = crew, lanes_c
        self._token, self._pair = lanes(lanes_c), lanes(2 * lanes_c)

    def _part(self, thread: int, count: int) -> tuple[int, int]:
        threads = self._crew.team.threads
        return count * thread // threads, count * (thread + 1) // threads

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


class Readout(ABC):
    """The readout of all runs: what they share."""

    def __init__(self, spec: TrainerSpec, lanes_c: int, blocks: int) -> None:
        self.spec, self.shape = spec, (spec.features.shape[0], lanes_c, blocks)

    def nodes(self, labelled: LabelledNodes, run: int) -> _Nodes:
        """Return the labelled nodes of a run."""
        return _Nodes(*(np.ascontiguousarray(tensor[run].numpy()) for tensor in (labelled.nodes, labelled.labels)))

    @abstractmethod
    def of_run(self, run: int, seed: np.uint64, crew: Crew) -> RunReadout:
        """Return the readout of one run."""


def make_readout(spec: TrainerSpec, lanes_c: int, blocks: int) -> Readout:
    """Return the readout that a specification asks for."""
    match spec.propagation:
        case PropagateSteps():
            return _Steps(spec, lanes_c, blocks, spec.propagation)
        case PropagateRows():
            return _Rows(spec, lanes_c, blocks, spec.propagation)
        case None:
            return _Plain(spec, lanes_c, blocks)


@final
class _Plain(Readout):
    def of_run(self, run: int, seed: np.uint64, crew: Crew) -> RunReadout:
        return _PlainRun(self, run, crew)


@final
class _PlainRun(RunReadout):
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
    def __init__(self, spec: TrainerSpec, lanes_c: int, blocks: int, propagation: PropagateSteps) -> None:
        super().__init__(spec, lanes_c, blocks)
        T = propagation.transition
        self.steps, self.law = propagation.steps, Law.of(spec.matrix_dropout)
        values = np.empty(0, np.float32) if T.weights is None else T.weights.astype(np.float32)
        self.edges = Entries.of(T.indptr, T.indices, values, T.n_nodes)
        self._rows, self._columns = T.row_scale.astype(np.float32), T.column_scale.astype(np.float32)
        self._alphas = propagation.alphas(len(spec.seeds)).numpy()
        self._scales: dict[np.float32, fused_steps.Scales] = {}

    def scales(self, run: int) -> fused_steps.Scales:
        """Return the factors of a run, which runs with the same alpha share."""
        alpha = self._alphas[run]
        if alpha not in self._scales:
            self._scales[alpha] = self._scales_of(alpha)
        return self._scales[alpha]

    def _scales_of(self, alpha: np.float32) -> fused_steps.Scales:
        rows, columns = self._rows, self._columns
        arrived = (1 - alpha) * self.law.scale * columns  # in the transposed matrix the scales change places
        return fused_steps.Scales(
            alpha=alpha,
            keep=self.law.scale,
            rows=rows,
            columns=columns,
            state=(1 - alpha) * rows * columns,
            start=alpha * columns,
            flipped_state=arrived * rows,
            flipped_total=np.stack([arrived, alpha * arrived]),
        )

    def of_run(self, run: int, seed: np.uint64, crew: Crew) -> RunReadout:
        return _StepsRun(self, run, seed, crew)


@final
class _StepsRun(RunReadout):
    def __init__(self, readout: _Steps, run: int, seed: np.uint64, crew: Crew) -> None:
        super().__init__(readout, run, crew)
        self._all, self._scales, threads = readout, readout.scales(run), crew.team.threads
        self._masks = Masks(readout.edges, readout.law, EDGES, seed, crew, readout.steps)
        self._by_row, self._by_column = (shares(s[0], threads) for s in (readout.edges.matrix, readout.edges.flipped))
        self._state, self._spare = (crew.arena.empty(self.predictions.shape[1:]) for _ in range(2))

    def renew(self, thread: int, epoch: int) -> None:
        self._masks.renew(thread, epoch, self._all.steps)

    def forward(self, thread: int, epoch: int) -> None:
        team = self._crew.team
        fused_steps.forward(
            thread, team.threads, team.desk, self._by_row[thread], self._by_row[thread + 1], self._all.edges.matrix,
            self._masks.planes[0], epoch, self._all.steps, self._scales, self.predictions, self._state, self._spare,
            self.train.places, self.train_logits, self.stopping.places, self.stopping_logits, self._pair,
        )  # fmt: skip

    def adjoint(self, thread: int, epoch: int) -> None:
        team = self._crew.team
        fused_steps.adjoint(
            thread, team.threads, team.desk, self._by_column[thread], self._by_column[thread + 1],
            self._all.edges.flipped, self._masks.planes[1], epoch, self._all.steps, self._scales, self.above,
            self._state, self._spare, self._token,
        )  # fmt: skip


@final
class _Rows(Readout):
    def __init__(self, spec: TrainerSpec, lanes_c: int, blocks: int, propagation: PropagateRows) -> None:
        super().__init__(spec, lanes_c, blocks)
        self.block = np.ascontiguousarray(propagation.block.numpy(), dtype=np.float32)
        self.owners, self._row_of_node = propagation.nodes.numpy(), propagation.row_of_node.numpy()
        self.law = Law.of(spec.matrix_dropout)

    def nodes(self, labelled: LabelledNodes, run: int) -> _Nodes:
        nodes = super().nodes(labelled, run)
        return _Nodes(self._row_of_node[nodes.places], nodes.labels)

    def of_run(self, run: int, seed: np.uint64, crew: Crew) -> RunReadout:
        return _RowsRun(self, run, seed, crew)


@final
class _RowsRun(RunReadout):
    def __init__(self, readout: _Rows, run: int, seed: np.uint64, crew: Crew) -> None:
        super().__init__(readout, run, crew)
        self._all, self._seed = readout, seed
        self._words = [np.empty((max(4, len(self.train.places)), 4), np.uint32) for _ in range(crew.team.threads)]

    def scatter(self) -> None:
        pass  # the rows do that

    def forward(self, thread: int, epoch: int) -> None:
        n, width = self.predictions.shape[1], 2 * self._lanes
        off = Law.of(0.0)
        for half, nodes, logits, law in (
            (0, self.train, self.train_logits, self._all.law),
            (1, self.stopping, self.stopping_logits, off),
        ):
            first, last = self._part(thread, -(-len(nodes.places) // 4))
            for block in range(len(self.predictions)):
                rows.run_forward(
                    first, last, self._all.block, self._all.owners, nodes.places, self.predictions,
                    block * n * width + half * self._lanes, width, self._seed, epoch, law, self._crew.raw[thread],
                    self._words[thread], logits, block * self._lanes, self._token,
                )  # fmt: skip

    def adjoint(self, thread: int, epoch: int) -> None:
        first, last = self._part(thread, -(-self.above.shape[1] // rows.GROUP))
        for block, target in enumerate(self.above):
            rows.run_adjoint(
                first, last, self._all.block, self._all.owners, self.train.places, self.gradient, block * self._lanes,
                self._seed, epoch, self._all.law, self._crew.raw[thread], self._words[thread], target, self._token,
            )  # fmt: skip
