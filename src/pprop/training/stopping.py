"""The paper's early stopping, for R runs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch

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

    One definition serves both loops: numpy arrays on the CPU, where a run decides for itself after every epoch, and
    torch tensors on a GPU, where `update` is captured with the epoch and nothing of it leaves the device.

    Attributes
    ----------
    epochs
        Epochs each run has made until its end.
    best_epoch
        The one whose weights are kept, from 0; -1 before the first.
    kept_loss, kept_accuracy
        At that epoch.
    ended
        Which runs have ended. What an ended run is told afterwards changes nothing.

    Examples
    --------
    >>> state = StoppingState(Stopping(patience=2), runs=1)
    >>> for loss, accuracy in [(1.0, 0.5), (1.1, 0.4), (1.2, 0.4)]:
    ...     improved = state.update(np.array([loss]), np.array([accuracy]))
    >>> state.ended, state.best_epoch
    (array([ True]), array([0]))
    """

    def __init__(self, rule: Stopping, runs: int, device: torch.device | None = None) -> None:
        self._rule = rule
        self._xp: Any = np if device is None else torch  # both name the few functions needed alike
        place = {} if device is None else {"device": device}
        full, wide, whole = self._xp.full, self._xp.float64, self._xp.int64
        self._patience = full((runs,), rule.patience, dtype=whole, **place)
        self._best_loss = full((runs,), np.inf, dtype=wide, **place)
        self._best_accuracy = full((runs,), -np.inf, dtype=wide, **place)
        self.epochs = full((runs,), 0, dtype=whole, **place)
        self.best_epoch = full((runs,), -1, dtype=whole, **place)
        self.kept_loss = full((runs,), np.inf, dtype=wide, **place)
        self.kept_accuracy = full((runs,), -np.inf, dtype=wide, **place)
        self.ended = full((runs,), False, dtype=self._xp.bool if device is not None else np.bool_, **place)

    def update(self, loss: Any, accuracy: Any) -> Any:
        """Take the stopping loss and accuracy of one epoch; return which runs shall keep their present weights.

        Everything is written in place, so that a captured update finds its state again.
        """
        where, going = self._xp.where, ~self.ended
        refilled = (accuracy >= self._best_accuracy) | (loss <= self._best_loss)
        self._best_accuracy[...] = self._xp.maximum(self._best_accuracy, accuracy)
        self._best_loss[...] = self._xp.fmin(self._best_loss, loss)
        self._patience[...] = where(refilled, self._rule.patience, self._patience - 1)
        same = accuracy == self.kept_accuracy
        better = ((accuracy > self.kept_accuracy) | (same & (loss < self.kept_loss))) & going
        self.kept_accuracy[...] = where(better, accuracy, self.kept_accuracy)
        self.kept_loss[...] = where(better, loss, self.kept_loss)
        self.best_epoch[...] = where(better, self.epochs, self.best_epoch)
        self.epochs[...] = self.epochs + going
        self.ended[...] = self.ended | (self._patience <= 0) | (self.epochs >= self._rule.max_epochs)
        return better

    def keep(self, slots: Any) -> None:
        """Go on with some of the runs only."""
        for name, value in vars(self).items():
            if not name.endswith(("_rule", "_xp")):
                setattr(self, name, value[slots])
