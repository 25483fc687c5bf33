"""The fused training of the paper's models on the CPU.

Runs are independent: a hundred of them are trained by as many threads as there are, one run each at a time, so that a
run's weights and moments stay in the cache; a single run is shared by all threads, rows by rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from pprop.kernels.contract import Trainer, TrainerBytes, TrainerSizes, TrainerSpec
from pprop.kernels.losses import ELEMENTWISE
from pprop.kernels.numba_cpu import fused_network
from pprop.kernels.numba_cpu._jit import usable_threads
from pprop.kernels.numba_cpu.dense import elementwise_of_run, loss_of_run
from pprop.kernels.numba_cpu.fused_network import (
    Biases,
    DenseFirst,
    SparseFirst,
    Tokens,
    Weights,
    first_bytes,
    prepared,
)
from pprop.kernels.numba_cpu.fused_readout import Crew, Law, Masks, Nodes, padded, readout_of
from pprop.kernels.numba_cpu.stored_rows import RowsInMemory
from pprop.kernels.numba_cpu.team import Team
from pprop.kernels.numba_cpu.vectors import lanes

_UNITS, _CLASSES = (16, 64), (4, 8, 16, 20, 24)  # lanes of a block of hidden units, and of classes
_WORK_PER_THREAD = 100_000  # entries times lanes: with less, waking a second thread costs more than it brings


def _quiet() -> np.errstate:
    """Let numbers that float32 cannot hold become infinite or NaN without a warning: the loss tells, and ends the run."""
    return np.errstate(over="ignore", invalid="ignore")


@final
class _Shared:
    """What all runs of a trainer read."""

    def __init__(self, spec: TrainerSpec) -> None:
        self.n, self.f = spec.features.shape
        self.h, self.c = spec.weights[0].shape[2], spec.weights[1].shape[2]
        self.h_lanes, self.h_blocks = padded(self.h, _UNITS)
        self.c_lanes, self.c_blocks = padded(self.c, _CLASSES)
        self.features = prepared(spec.features)
        self.law = Law.of(spec.dropout)
        self.readout, self.propagation = readout_of(spec)
        self._kind = ELEMENTWISE.index(spec.loss) if spec.loss in ELEMENTWISE else -1
        self.workers = usable_threads()  # asked here: numba's number belongs to the calling thread

    def compare(
        self, logits: NDArray[np.float32], nodes: Nodes, gradient: NDArray[np.float32] | None
    ) -> tuple[float, float, float]:
        """Return the loss at some nodes, the weight of what is right there, and the weight of all; fill the gradient."""
        if nodes.targets is None:
            return loss_of_run(logits, nodes.labels, nodes.weights, self.c, gradient)
        return elementwise_of_run(logits, nodes.targets, nodes.weights, self._kind, gradient)

    @property
    def threads(self) -> int:
        """How many threads one run is worth."""
        X = self.features
        work = (
            self.h_blocks * self.h_lanes * ((X.matrix.size if isinstance(X, RowsInMemory) else len(X.order)) + self.f)
        )
        return max(1, min(self.workers, work // _WORK_PER_THREAD))


@final
class _Run:
    """One run in training: all its memory, and the epoch that every thread of its team works through.

    Hidden units and classes are padded to whole blocks of lanes with zeros, which stay zeros.
    """

    def __init__(self, shared: _Shared, spec: TrainerSpec, run: int, threads: int) -> None:
        self._shared, self._rate, self._penalty = shared, spec.rate, np.float32(spec.penalty)
        self._epoch, self._seed = 0, np.uint64(int(spec.seeds[run]) % 2**64)
        self._crew = crew = Crew(Team(threads))
        lanes_c, blocks = shared.c_lanes, shared.c_blocks
        self._readout = shared.readout(shared.propagation, spec, run, self._seed, crew, lanes_c, blocks)
        self._tokens = Tokens(lanes(shared.h_lanes), lanes(shared.c_lanes))
        self._allocate(*(array[run] for array in spec.weights))
        X, rest = shared.features, (shared.law, self._seed, crew, self._weights, self._tokens)
        self._first = DenseFirst(X, *rest) if isinstance(X, RowsInMemory) else SparseFirst(X, *rest)
        self.values = np.zeros(3, np.float32)
        try:
            crew.team.run(self._forward)
        except BaseException:
            crew.team.close()
            raise

    def _allocate(self, W_1: NDArray[np.float32], W_2: NDArray[np.float32], *biases: NDArray[np.float32]) -> None:
        """Take the memory of the weights and of what the second layer needs; nothing is allocated in training."""
        s = self._shared
        units, classes = s.h_blocks * s.h_lanes, s.c_blocks * s.c_lanes
        full_1, full_2 = np.zeros((s.f, units), np.float32), np.zeros((units, classes), np.float32)
        full_1[:, : s.h], full_2[: s.h, : s.c] = W_1, W_2
        arena = self._crew.arena
        first = arena.empty((s.h_blocks, s.f, s.h_lanes))
        first[...] = full_1.reshape(s.f, s.h_blocks, s.h_lanes).transpose(1, 0, 2)
        second = np.ascontiguousarray(full_2.reshape(units, s.c_blocks, s.c_lanes).transpose(1, 0, 2))
        self._biases = Biases(biases, (units, classes), s.n)
        self._weights = Weights(first, second, self._biases.values)
        self._W_2_flipped = np.ascontiguousarray(full_2.reshape(s.h_blocks, s.h_lanes, classes).transpose(0, 2, 1))
        self._moments = arena.zeros((2, *second.shape))
        self._hidden, self._below = (arena.empty((s.h_blocks, s.n, s.h_lanes)) for _ in range(2))
        blocks = -(-s.n // fused_network.SUM_ROWS)
        self._partial = np.empty((blocks, s.h_blocks, classes, s.h_lanes), np.float32)
        self._gradient_2, self._squares_2 = np.empty((classes, s.h_lanes), np.float32), np.zeros(s.c_lanes, np.float32)
        self._squares = float(np.square(full_1).sum())

    def epoch(self) -> NDArray[np.float32]:
        """Make one step and evaluate; return training loss, stopping loss and stopping accuracy."""
        self._crew.team.run(self._work)
        return self.values

    def _work(self, thread: int) -> None:
        self._backward(thread)
        if thread == 0:
            self._epoch += 1
        self._meet()
        self._forward(thread)

    def _meet(self) -> None:
        self._crew.team.meet()

    def _forward(self, thread: int) -> None:
        """Predict with the present weights, for the evaluation and for the next step; evaluate."""
        s, epoch, readout = self._shared, self._epoch, self._readout
        readout.renew(thread, epoch)
        self._first.forward(thread, epoch, self._hidden, readout.predictions)
        self._meet()
        readout.forward(thread, epoch)
        self._meet()
        if thread == 0:
            loss, right, whole = s.compare(readout.stopping_logits, readout.stopping, None)
            self.values[1] = loss + 0.5 * self._penalty * self._squares
            self.values[2] = right / whole

    def _backward(self, thread: int) -> None:
        """Turn the logits of the training nodes into new weights."""
        s, epoch, readout = self._shared, self._epoch, self._readout
        if thread == 0:
            loss, _, _ = s.compare(readout.train_logits, readout.train, readout.gradient)
            self.values[0] = loss + 0.5 * self._penalty * self._squares
            readout.scatter()
        self._meet()
        readout.adjoint(thread, epoch)
        self._meet()
        blocks, threads = len(self._partial), self._crew.team.threads
        first, last = blocks * thread // threads, blocks * (thread + 1) // threads
        fused_network.backward(
            first, last, readout.above, self._hidden, self._W_2_flipped,
            s.law.scale * s.law.scale, self._partial, self._below, *self._tokens,
        )  # fmt: skip
        self._biases.add_up(first, last, self._below, readout.above)
        self._meet()
        step = epoch + 1
        rates = np.float32(self._rate / (1 - 0.9**step)), np.float32((1 - 0.999**step) ** -0.5)
        self._first.step(thread, epoch, self._below, self._penalty, rates)
        if thread == 0:
            fused_network.weights_two(
                self._partial, self._weights.W_2, self._moments, self._W_2_flipped, self._gradient_2, *rates,
                self._squares_2, self._tokens.classes,
            )  # fmt: skip
            self._biases.step(s.law.scale, rates)
        self._meet()
        if thread == 0:
            self._squares = float(self._first.squares.sum(dtype=np.float64))

    def close(self) -> None:
        """End the team's threads."""
        self._crew.team.close()

    def weights(self) -> tuple[NDArray[np.float32], ...]:
        """Return W_1 (f, h) and W_2 (h, c), views where there is one block, and the biases (1, h) and (1, c) if any."""
        s, (*layers, values) = self._shared, self._weights
        W_1, W_2 = (w[0] if len(w) == 1 else np.concatenate(list(w), axis=1) for w in layers)
        biases = [value[None, :width] for value, width in zip(values, (s.h, s.c), strict=True) if len(value)]
        return W_1[:, : s.h], W_2[: s.h, : s.c], *biases


@final
class NumbaTrainer(Trainer):
    """R runs, each with its own memory, which it takes at its first epoch."""

    def __init__(self, spec: TrainerSpec, shared: _Shared | None = None, run: int | None = None) -> None:
        self._spec, self._shared = spec, _Shared(spec) if shared is None else shared
        self._places = list(range(len(spec.seeds))) if run is None else [run]
        self._values = np.zeros((3, len(self._places)), np.float32)

    @cached_property
    def _runs(self) -> list[_Run]:
        threads = self._shared.threads if len(self._spec.seeds) < self._shared.workers else 1
        with _quiet():
            return [_Run(self._shared, self._spec, run, threads) for run in self._places]

    def epoch(self) -> NDArray[np.float32]:
        runs = self._runs
        with _quiet():
            for slot, run in enumerate(runs):
                self._values[:, slot] = run.epoch()
        return self._values

    def weights(self) -> list[NDArray[np.float32]]:
        pairs = [run.weights() for run in self._runs]
        if len(pairs) == 1:
            return [w[None] for w in pairs[0]]
        return [np.stack(layer) for layer in zip(*pairs, strict=True)]

    def keep(self, slots: NDArray[np.int64]) -> None:
        kept = set(slots.tolist())
        for slot, run in enumerate(self._runs):
            if slot not in kept:
                run.close()
        self._runs[:] = [self._runs[slot] for slot in slots.tolist()]
        self._values = np.zeros((3, len(self._runs)), np.float32)

    def parts(self) -> tuple[int, list[Trainer]]:
        workers = self._shared.workers if len(self._places) >= self._shared.workers else 1
        return workers, [NumbaTrainer(self._spec, self._shared, run) for run in self._places]

    def close(self) -> None:
        if "_runs" in self.__dict__:
            for run in self._runs:
                run.close()
            self._runs.clear()


def trainer_bytes(sizes: TrainerSizes) -> TrainerBytes:
    """Return the bytes of `_Shared` and of one `_Run`."""
    n, f, entries = sizes.nodes, sizes.features, sizes.entries
    (h_lanes, h_blocks), (c_lanes, c_blocks) = padded(sizes.hidden, _UNITS), padded(sizes.classes, _CLASSES)
    units, classes = h_lanes * h_blocks, c_lanes * c_blocks
    first, second = f * units, units * classes
    partial = -(-n // fused_network.SUM_ROWS) * second
    planes = Masks.planes_for(sizes.steps) if sizes.dropout else 1
    features, masks, sums = first_bytes(n, f, sizes.feature_entries, units, dropout=sizes.dropout)
    sides = 1 if sizes.symmetric else 2  # a symmetric matrix has the same arrays by rows and by columns
    graph = (4 + 4 * sides * (1 + sizes.weighted)) * entries + (32 + 8 * sides) * n + 8 * sides if entries else 0
    shared = {"features": features, "graph": graph, "PPR rows": 4 * sizes.ppr_rows * n}
    run = {
        "weights": 4 * (first + 2 * second),
        "moments": 4 * 2 * (first + second),
        "hidden layer": 4 * 2 * n * units,
        "states": 4 * n * (3 * classes + 4 * c_lanes * (entries > 0)) + 2 * n * (entries > 0),
        "feature masks": masks,
        "edge masks": 4 * 2 * planes * entries,
        "sums": sums + 4 * (partial + (2 * sizes.train_nodes + sizes.stopping_nodes) * classes),
    }
    return TrainerBytes(shared, run)
