"""Runs that diverge: their loss, or what they predict, is no finite number any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop._errors import DivergenceError
from pprop.training.loop import LoopResult

__all__ = ["LARGEST_RATE", "diverged", "divergence_text", "finite_logits"]

LARGEST_RATE = 1e37
"""Learning rate beyond which float32 cannot hold a step; a training diverges in its first epoch long before."""
_NAMED = 5  # runs in a message; the error has them all


def finite_logits(
    result: LoopResult, infer: Callable[[list[Tensor]], Tensor], place: torch.device
) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
    """Return which runs have not diverged, shape (R,), and the logits of just those, shape (s, n, c).

    A logit of minus infinity, as a module of one's own may give to a class that cannot be, is a probability of zero:
    what counts is that each node has probabilities.
    """
    sound = np.isfinite(result.stopping_loss)
    if not sound.any():
        return sound, np.empty((0, 0, 0), dtype=np.float32)
    logits = infer([tensor.to(place) for tensor in result.of(sound).weights])
    probable = logits.amax(dim=2).isfinite().all(dim=1)
    sound[sound] = probable.cpu().numpy()
    logits = (logits if bool(probable.all()) else logits[probable]).cpu().numpy()
    return sound, logits


def diverged(
    result: LoopResult, sound: NDArray[np.bool_], finished: Any, names: Sequence[str] | None = None
) -> DivergenceError:
    """Return the error for the runs that are not sound; `names` are those of all runs, by default their positions."""
    runs = np.flatnonzero(~sound).tolist()
    epochs = (result.best_epoch[runs] + 1).tolist()
    if names is None:
        names = [f"run {run}" for run in range(len(sound))] if len(sound) > 1 else [""]
    return DivergenceError(divergence_text([names[run] for run in runs], epochs), runs, epochs, finished)


def divergence_text(names: Sequence[str], epochs: Sequence[int]) -> str:
    """Return the sentences for runs that diverged, each with its epoch from 1. An only run needs no name.

    >>> print(divergence_text(["run 4", "run 7"], [1, 30]))
    Training diverged in epoch 1 of run 4, epoch 30 of run 7: the loss or the logits are not finite. \
Use a lower learning_rate or penalty, or features of a smaller scale.
    """
    each = [f"epoch {epoch} of {name}" if name else f"epoch {epoch}" for name, epoch in zip(names, epochs, strict=True)]
    more = f" and in {len(each) - _NAMED} more runs" if len(each) > _NAMED else ""
    return (
        f"Training diverged in {', '.join(each[:_NAMED])}{more}: the loss or the logits are not finite. "
        "Use a lower learning_rate or penalty, or features of a smaller scale."
    )
