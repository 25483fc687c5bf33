"""The training loop: epochs, early stopping, best weights, runs that leave the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.training.program import Program
from pprop.training.progress import Progress
from pprop.training.stopping import Stopping, StoppingState

__all__ = ["History", "LoopResult", "run_loop"]

_COMPACT_SHARE = 0.1  # the batch is packed anew when this share of it has ended; until then ended runs idle along


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
    """What the loop leaves behind, per run in the original order."""

    weights: list[Tensor]
    epochs: NDArray[np.int64]
    best_epoch: NDArray[np.int64]
    stopping_loss: NDArray[np.float64]
    stopping_accuracy: NDArray[np.float64]
    history: tuple[History, ...]


def run_loop(program: Program, runs: int, stopping: Stopping, progress: Progress) -> LoopResult:
    """Train until every run has ended; return each run's best weights, as copies.

    One epoch is one training step, then the stopping loss and accuracy with dropout off.
    """
    state = StoppingState(stopping, runs)
    run_of_slot = np.arange(runs)
    best = [torch.empty_like(w) for w in program.weights()]
    epochs, best_epoch = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
    kept_loss, kept_accuracy = np.zeros(runs), np.zeros(runs)
    curves: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []

    while len(run_of_slot):
        epoch = state.epochs
        train_loss = program.train_epoch(epoch).double().numpy()
        loss, accuracy = (tensor.double().numpy() for tensor in program.evaluate())
        curves.append((run_of_slot, np.stack([train_loss, loss, accuracy])))
        before = state.ended
        improved = np.flatnonzero(state.update(loss, accuracy))
        for kept, live in zip(best, program.weights(), strict=True):
            kept[run_of_slot[improved]] = live[improved]
        for slot in np.flatnonzero(state.ended & ~before):
            run = run_of_slot[slot]
            epochs[run], best_epoch[run] = state.epochs, state.best_epoch[slot]
            kept_loss[run], kept_accuracy[run] = state.kept_loss[slot], state.kept_accuracy[slot]
        ended = int(state.ended.sum())
        progress.epoch(state.epochs, runs - len(run_of_slot) + ended)
        if ended == len(run_of_slot):
            break
        if ended >= max(1, _COMPACT_SHARE * len(run_of_slot)):
            slots = np.flatnonzero(~state.ended)
            run_of_slot = run_of_slot[slots]
            program.keep(slots)
            state.keep(slots)
    return LoopResult(best, epochs, best_epoch, kept_loss, kept_accuracy, _histories(curves, epochs))


def _histories(
    curves: list[tuple[NDArray[np.int64], NDArray[np.float64]]], epochs: NDArray[np.int64]
) -> tuple[History, ...]:
    table = np.zeros((3, len(epochs), len(curves)))
    for epoch, (run_of_slot, values) in enumerate(curves):
        table[:, run_of_slot, epoch] = values
    return tuple(History(*(table[:, run, : epochs[run]].copy())) for run in range(len(epochs)))
