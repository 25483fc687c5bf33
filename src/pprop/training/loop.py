"""The training loop: epochs, early stopping, best weights, runs that leave the batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop._interrupt import check_interrupt
from pprop.kernels.trainer import Trainer
from pprop.training.progress import Progress
from pprop.training.stopping import Stopping, StoppingState

__all__ = ["COMPACT_SHARE", "Ended", "History", "Ledger", "LoopResult", "nobody", "run_loop"]

COMPACT_SHARE = 0.1
"""The batch is packed anew when this share of it has ended; until then ended runs idle along."""


@final
@dataclass(frozen=True)
class History:
    """Curves of one run, one value per epoch, shape (epochs,).

    Attributes
    ----------
    train_loss
        Loss of the training step, dropout on, penalty included.
    stopping_loss, stopping_accuracy
        On the stopping nodes after the step, dropout off, penalty included.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5), labels=[0, 0, 0, 1, 1])
    >>> split = pprop.Split(np.array([0, 4]), np.array([1]), np.array([2, 3]))
    >>> trained = pprop.train(pprop.MLP(hidden=4), graph, split, stopping=pprop.Stopping(max_epochs=3))
    >>> trained.history[0].train_loss.shape
    (3,)
    """

    train_loss: NDArray[np.float64]
    stopping_loss: NDArray[np.float64]
    stopping_accuracy: NDArray[np.float64]


@final
@dataclass(frozen=True)
class LoopResult:
    """What the loop leaves behind, per run in the original order. The stopping loss of a run that diverged is not finite."""

    weights: list[Tensor]
    epochs: NDArray[np.int64]
    best_epoch: NDArray[np.int64]
    stopping_loss: NDArray[np.float64]
    stopping_accuracy: NDArray[np.float64]
    history: tuple[History, ...]

    def of(self, runs: NDArray[np.bool_] | slice) -> LoopResult:
        """Return what some of the runs leave behind."""
        if not isinstance(runs, slice) and runs.all():
            return self
        places: list[int] = np.arange(len(self.history))[runs].tolist()
        return LoopResult(
            [torch.from_numpy(w.numpy()[runs]) for w in self.weights],
            self.epochs[runs],
            self.best_epoch[runs],
            self.stopping_loss[runs],
            self.stopping_accuracy[runs],
            tuple(self.history[place] for place in places),
        )


Ended = Callable[[LoopResult, NDArray[np.int64], int], None]
"""Told of runs as they end: what they leave behind, which runs of the loop, and the epochs made by all runs so far."""


def nobody(result: LoopResult, runs: NDArray[np.int64], work: int) -> None:
    """Take no notice of runs that end."""


@final
class Ledger:
    """What the runs leave behind, collected as they end."""

    def __init__(self, runs: int, weights: list[Tensor]) -> None:
        self.run_of_slot = np.arange(runs)
        self._weights = [torch.empty((runs, *w.shape[1:]), dtype=w.dtype) for w in weights]
        self._epochs, self._best_epoch = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
        self._loss, self._accuracy = np.zeros(runs), np.zeros(runs)
        self._curves: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []

    def record(self, values: NDArray[np.float64]) -> None:
        """Note the values (3, epochs, slots) of some epochs of all slots."""
        self._curves.append((self.run_of_slot, values))

    def keep_weights(self, slots: NDArray[np.int64], weights: list[Tensor]) -> None:
        """Copy the weights of some slots, the best so far."""
        for kept, live in zip(self._weights, weights, strict=True):
            for slot in slots:  # by numpy: torch would wake its own threads for it, beside those that train other runs
                kept.numpy()[self.run_of_slot[slot]] = live[int(slot)].detach().cpu().numpy()

    def end(self, slots: NDArray[np.int64], state: StoppingState) -> None:
        """Note where the runs of these slots stand, which have ended."""
        runs = self.run_of_slot[slots]
        for mine, theirs in (
            (self._epochs, state.epochs),
            (self._best_epoch, state.best_epoch),
            (self._loss, state.kept_loss),
            (self._accuracy, state.kept_accuracy),
        ):
            mine[runs] = (theirs if isinstance(theirs, np.ndarray) else theirs.cpu().numpy())[slots]

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Go on with some of the slots."""
        self.run_of_slot = self.run_of_slot[slots]

    @property
    def work(self) -> int:
        """Epochs that the runs which have ended were trained for."""
        return int(self._epochs.sum())

    def result(self, runs: NDArray[np.int64] | None = None) -> LoopResult:
        """Return everything of some runs (default: all, in their order), which have ended."""
        runs = np.arange(len(self._epochs)) if runs is None else runs
        epochs = self._epochs[runs]
        table = np.zeros((3, len(runs), int(epochs.max())))
        place = np.full(len(self._epochs), -1)
        place[runs] = np.arange(len(runs))
        made = 0
        for in_slots, values in self._curves:
            stop = min(made + values.shape[1], table.shape[2])
            if stop <= made:
                break
            slots = np.flatnonzero(place[in_slots] >= 0)
            table[:, place[in_slots[slots]], made:stop] = values[:, : stop - made, slots].transpose(0, 2, 1)
            made += values.shape[1]
        return LoopResult(
            [w[torch.from_numpy(runs)] for w in self._weights],
            epochs,
            self._best_epoch[runs],
            self._loss[runs],
            self._accuracy[runs],
            tuple(History(*table[:, place[run], :end].copy()) for run, end in zip(runs, epochs, strict=True)),
        )


def run_loop(
    trainer: Trainer, runs: int, stopping: Stopping, progress: Progress, ended_runs: Ended = nobody
) -> LoopResult:
    """Train until every run has ended; return each run's best weights, as copies.

    One epoch is one training step, then the stopping loss and accuracy with dropout off.
    """
    state, ledger = StoppingState(stopping, runs), Ledger(runs, trainer.weights())
    for epoch in itertools.count(1):
        values = trainer.epoch().double().numpy().copy()
        check_interrupt()
        ledger.record(values[:, None])
        before = state.ended.copy()
        improved = np.flatnonzero(state.update(values[1], values[2]))
        if len(improved):
            ledger.keep_weights(improved, trainer.weights())
        ended = int(np.count_nonzero(state.ended))
        if ended > np.count_nonzero(before):
            fresh = np.flatnonzero(state.ended & ~before)
            ledger.end(fresh, state)
            over = ledger.run_of_slot[fresh]
            ended_runs(ledger.result(over), over, ledger.work + epoch * (len(state.ended) - ended))
        progress.epoch(epoch, runs - len(ledger.run_of_slot) + ended)
        if ended == len(ledger.run_of_slot):
            break
        if ended >= max(1, COMPACT_SHARE * len(ledger.run_of_slot)):
            slots = np.flatnonzero(~state.ended)
            ledger.keep(slots)
            trainer.keep(torch.from_numpy(slots))
            state.keep(slots)
    return ledger.result()
