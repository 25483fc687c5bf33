"""The paper's early stopping, for R runs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch

from pprop.settings import CRITERION, MAX_EPOCHS, PATIENCE, check_fields

LEAST_DROP = 1e-3  # of the stopping loss, as a share of it, that counts as progress for the criterion "plateau"


@final
@dataclass(frozen=True)
class Stopping:
    """When a run ends, and which of its epochs is kept.

    ``"paper"``: the patience is refilled in every epoch whose stopping accuracy is at least the best so far, or whose
    stopping loss is at most the best so far; otherwise it drops by one, and the run ends at zero. The weights kept are
    those of the epoch with the highest accuracy, among equals the one with the lowest loss, among equals the earliest.

    ``"loss"``: the same with the loss alone; the weights of the lowest loss are kept.

    ``"window"``: the rule of the first GCN. From epoch `patience` + 1 on, a run ends when its stopping loss exceeds the
    mean of the `patience` losses before it; the last weights are kept.

    ``"plateau"``: the patience is refilled when the stopping accuracy exceeds the best so far, or the stopping loss falls
    a thousandth below what it was when it last did. It ends where a small set of stopping nodes is all right, or no
    longer changes, on which the paper's rule waits for ever. The weights kept are those of ``"paper"``.

    Parameters
    ----------
    patience
        Epochs without improvement before a run ends, or the length of the window. None: no early stopping. A run then
        makes all `max_epochs`, whatever the criterion, keeps the last weights, and needs no stopping nodes.
    max_epochs
        Epochs after which it ends in any case.
    criterion
        ``"paper"``, ``"loss"``, ``"window"`` or ``"plateau"``.

    Examples
    --------
    >>> Stopping()
    Stopping(patience=100, max_epochs=10000, criterion='paper')
    """

    patience: int | None = PATIENCE.optional().but(PATIENCE.default).field()
    max_epochs: int = MAX_EPOCHS.field()
    criterion: str = CRITERION.field()

    def __post_init__(self) -> None:
        check_fields(self, "Stopping")


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
        At that epoch. In place of the accuracy there may be another score, the larger the better.
    ended
        Which runs have ended. Later epochs of an ended run change nothing.

    A run whose loss is no finite number has diverged: it ends with that epoch, and that epoch is the one that is kept,
    as `kept_loss` shows.

    Examples
    --------
    >>> state = StoppingState(Stopping(patience=2), runs=1)
    >>> for loss, accuracy in [(1.0, 0.5), (1.1, 0.4), (1.2, 0.4)]:
    ...     improved = state.update(np.array([loss]), np.array([accuracy]))
    >>> state.ended, state.best_epoch
    (array([ True]), array([0]))
    """

    def __init__(self, rule: Stopping, runs: int, device: torch.device | None = None) -> None:
        # patience beyond the last epoch is never spent, and may not fit into 64 bits
        self._patient = patience = min(rule.max_epochs if rule.patience is None else rule.patience, rule.max_epochs)
        self._rule = rule
        self._xp: Any = np if device is None else torch  # both name the few functions needed alike
        place = {} if device is None else {"device": device}
        full, wide, whole = self._xp.full, self._xp.float64, self._xp.int64
        self._patience = full((runs,), patience, dtype=whole, **place)
        self._best_loss = full((runs,), np.inf, dtype=wide, **place)
        self._best_accuracy = full((runs,), -np.inf, dtype=wide, **place)
        self.epochs = full((runs,), 0, dtype=whole, **place)
        self.best_epoch = full((runs,), -1, dtype=whole, **place)
        self.kept_loss = full((runs,), np.inf, dtype=wide, **place)
        self.kept_accuracy = full((runs,), -np.inf, dtype=wide, **place)
        # the losses before this epoch, the latest last; only the window looks further back than one
        length = patience if rule.criterion == "window" and rule.patience is not None else 1
        self._recent = full((runs, length), np.inf, dtype=wide, **place)
        self.ended = full((runs,), False, dtype=self._xp.bool if device is not None else np.bool_, **place)

    def update(self, loss: Any, accuracy: Any) -> Any:
        """Take the stopping loss and accuracy of one epoch; return which runs shall keep their present weights.

        Everything is written in place, so that a captured update finds its state again. A GPU spends microseconds on each
        operation here, which is why sums and maxima make no array of their own.
        """
        where, going = self._xp.where, ~self.ended
        diverged = ~(loss < np.inf)
        better = (self._better(loss, accuracy) | diverged) & going
        exhausted = self._exhausted(loss, accuracy)
        self.kept_accuracy[...] = where(better, accuracy, self.kept_accuracy)
        self.kept_loss[...] = where(better, loss, self.kept_loss)
        self.best_epoch[...] = where(better, self.epochs, self.best_epoch)
        self.epochs += going
        for reason in (exhausted, diverged, self.epochs >= self._rule.max_epochs):
            self.ended |= reason
        return better

    def _better(self, loss: Any, accuracy: Any) -> Any:
        """Say which runs are at the epoch to be kept so far."""
        match None if self._rule.patience is None else self._rule.criterion:
            case "paper" | "plateau":
                same = accuracy == self.kept_accuracy
                return (accuracy > self.kept_accuracy) | (same & (loss < self.kept_loss))
            case "loss":
                return (loss < self.kept_loss) | (self.best_epoch < 0)
            case _:
                return self.best_epoch < self.epochs  # the last one

    def _exhausted(self, loss: Any, accuracy: Any) -> Any:
        """Note this epoch's values; say which runs have waited long enough."""
        if self._rule.patience is None:
            return self._patience <= 0  # never: it is not touched
        if self._rule.criterion == "window":
            above = (loss > self._recent.mean(-1)) & (self.epochs > self._patient)
            self._recent[:, :-1] = self._xp.roll(self._recent, -1)[:, :-1]
            self._recent[:, -1] = loss
            return above
        if self._rule.criterion == "plateau":
            lower = loss < (1 - LEAST_DROP) * self._best_loss
            refilled = lower | (accuracy > self._best_accuracy)
            self._xp.maximum(self._best_accuracy, accuracy, out=self._best_accuracy)
            self._best_loss[...] = self._xp.where(lower, loss, self._best_loss)
            self._patience[...] = self._xp.where(refilled, self._patient, self._patience - 1)
            return self._patience <= 0
        refilled = loss <= self._best_loss
        if self._rule.criterion == "paper":
            refilled = refilled | (accuracy >= self._best_accuracy)
        self._xp.maximum(self._best_accuracy, accuracy, out=self._best_accuracy)
        self._xp.fmin(self._best_loss, loss, out=self._best_loss)
        self._patience[...] = self._xp.where(refilled, self._patient, self._patience - 1)
        return self._patience <= 0

    def keep(self, slots: Any) -> None:
        """Go on with some of the runs only."""
        for name, value in vars(self).items():
            if not name.endswith(("_rule", "_xp", "_patient")):
                setattr(self, name, value[slots])
