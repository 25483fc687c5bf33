"""The paper's early stopping, for R runs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from pprop._validate import check_int

__all__ = ["Stopping", "StoppingState"]


@final
@dataclass(frozen=True)
class Stopping:
    """The paper's criterion.

    The patience is refilled in every epoch whose stopping accuracy is at least the best so far, or whose stopping loss
    is at most the best so far; otherwise it drops by one, and the run ends at zero. The weights kept are those of the
    epoch with the highest accuracy, among equals the one with the lowest loss, among equals the earliest.

    Parameters
    ----------
    patience
        Epochs without improvement before a run ends.
    max_epochs
        Epochs after which it ends in any case.

    Examples
    --------
    >>> Stopping()
    Stopping(patience=100, max_epochs=10000)
    """

    patience: int = 100
    max_epochs: int = 10000

    def __post_init__(self) -> None:
        check_int(self.patience, "patience", "Stopping", low=1)
        check_int(self.max_epochs, "max_epochs", "Stopping", low=1)


@final
class StoppingState:
    """Where R runs stand; every array has shape (R,).

    Examples
    --------
    >>> state = StoppingState(Stopping(patience=2), runs=1)
    >>> for loss, accuracy in [(1.0, 0.5), (1.1, 0.4), (1.2, 0.4)]:
    ...     improved = state.update(np.array([loss]), np.array([accuracy]))
    >>> state.ended, state.best_epoch
    (array([ True]), array([0]))
    """

    def __init__(self, rule: Stopping, runs: int) -> None:
        self._rule = rule
        self._patience = np.full(runs, rule.patience)
        self._best_loss, self._best_accuracy = np.full(runs, np.inf), np.full(runs, -np.inf)
        self.epochs = 0
        self.best_epoch = np.full(runs, -1)
        self.kept_loss, self.kept_accuracy = np.full(runs, np.inf), np.full(runs, -np.inf)
        self.ended = np.zeros(runs, dtype=np.bool_)

    def update(self, loss: NDArray[np.float64], accuracy: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Take the stopping loss and accuracy of one epoch; return which runs shall keep their present weights."""
        refilled = (accuracy >= self._best_accuracy) | (loss <= self._best_loss)
        self._best_accuracy = np.maximum(self._best_accuracy, accuracy)
        self._best_loss = np.fmin(self._best_loss, loss)
        self._patience = np.where(refilled, self._rule.patience, self._patience - 1)
        same = accuracy == self.kept_accuracy
        better = ((accuracy > self.kept_accuracy) | (same & (loss < self.kept_loss))) & ~self.ended
        self.kept_accuracy = np.where(better, accuracy, self.kept_accuracy)
        self.kept_loss = np.where(better, loss, self.kept_loss)
        self.best_epoch = np.where(better, self.epochs, self.best_epoch)
        self.epochs += 1
        self.ended = self.ended | (self._patience <= 0) | (self.epochs >= self._rule.max_epochs)
        return better

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Go on with some of the runs only."""
        for name in ("_patience", "_best_loss", "_best_accuracy", "best_epoch", "kept_loss", "kept_accuracy", "ended"):
            setattr(self, name, getattr(self, name)[slots])
