"""Early stopping by a scoring: a trainer of any kind, and the value of the scoring at the validation nodes after each epoch.

The trainers return loss and accuracy alone, as the paper's early stopping needs no more. A scoring needs the probabilities
of the validation nodes: they are computed once more, from the weights after each step, so that the training itself has the
same bits with a scoring and without one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special
from torch import Tensor

from pprop._validate import reject
from pprop.kernels.contract import LabelledNodes, Trainer
from pprop.scoring import Scoring
from pprop.training.loop import Stopping

# The logits (R, m, c) of nodes (R, m), given the weights of R runs.
LogitsOf = Callable[[list[Tensor], Tensor], Tensor]


def rule_of(stopping: Stopping, scoring: Scoring | None) -> Stopping:
    """Return when a run ends: with a scoring, "plateau" with its value in place of the accuracy.

    >>> rule_of(Stopping(), Scoring("accuracy", np.array([0, 1]))).criterion
    'plateau'
    """
    if scoring is None or stopping.patience is None:
        return stopping
    if stopping.criterion not in ("paper", "plateau"):
        expected = "'paper' or 'plateau' with a scoring: the other criteria end a run by its loss alone"
        reject("criterion", "train", expected, repr(stopping.criterion))
    return Stopping(stopping.patience, stopping.max_epochs, "plateau")


@final
class ScoredTrainer(Trainer):
    """A trainer, and the value of a scoring at the stopping nodes after each of its epochs.

    Parameters
    ----------
    trainer
        Of R runs.
    scoring
        Every stopping node counts once, whatever its weight in the loss.
    stopping
        The nodes of the runs.
    logits
        Of nodes, dropout off.
    keep
        Called when some runs are kept, where `logits` has a state of its own for each.
    ones
        What the logits are divided by, shape (R, m), so that nodes can be ranked; None: nothing.
    """

    scored = True

    def __init__(
        self,
        trainer: Trainer,
        scoring: Scoring,
        stopping: LabelledNodes,
        logits: LogitsOf,
        keep: Callable[[Tensor], None] | None = None,
        ones: NDArray[np.float64] | None = None,
    ) -> None:
        self._trainer, self._scoring, self._logits, self._keep = trainer, scoring, logits, keep
        self._nodes, self._ones = stopping.nodes, ones
        self._labels = stopping.labels.cpu().numpy()

    def epoch(self) -> Tensor:
        values = self._trainer.epoch()
        logits = self._logits(self._trainer.weights(), self._nodes).cpu().numpy()
        if self._ones is not None:
            logits = logits / self._ones[:, :, None].astype(logits.dtype)
        scores = [self._value(*run) for run in zip(logits, self._labels, strict=True)]
        return torch.cat([values, torch.tensor([scores], dtype=values.dtype, device=values.device)])

    def _value(self, logits: np.ndarray[tuple[int, int], np.dtype[np.float32]], labels: np.ndarray) -> float:
        known = labels >= 0
        if not np.isfinite(logits[known].max(axis=1)).all():  # the run has diverged, and ends with this epoch
            return -np.inf
        return self._scoring(labels[known], special.softmax(logits[known], axis=1))

    def weights(self) -> list[Tensor]:
        return self._trainer.weights()

    def all_weights(self, kept: list[Tensor]) -> list[Tensor]:
        return self._trainer.all_weights(kept)

    def remember(self, wanted: Tensor) -> None:
        self._trainer.remember(wanted)

    def remembered(self) -> list[Tensor]:
        return self._trainer.remembered()

    def keep(self, slots: Tensor) -> None:
        self._trainer.keep(slots)
        if self._keep is not None:
            self._keep(slots)
        kept = slots.cpu().numpy()
        self._nodes, self._labels = self._nodes[slots], self._labels[kept]
        self._ones = None if self._ones is None else self._ones[kept]

    def close(self) -> None:
        self._trainer.close()
