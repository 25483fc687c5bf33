"""What is worth keeping of a training besides the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from pprop.training import Trained

__all__ = ["TrainingRecord"]


@final
@dataclass(frozen=True)
class TrainingRecord:
    """How one fit went.

    Attributes
    ----------
    epochs, best_epoch
        Epochs made, and the epoch (from 0) whose weights were kept.
    stopping_loss, stopping_accuracy
        On the stopping nodes, at the kept epoch.
    seconds
        Wall-clock time of the fit, set-up included.
    backend, device
        Name of the backend that trained, and where: ``"cpu"``, or a GPU such as ``"cuda:0"``.
    seed
        Of the run: with it as ``random_state`` the same fit gives the same weights.
    train_nodes, stopping_nodes
        Their numbers.

    Examples
    --------
    >>> TrainingRecord(320, 219, 0.51, 0.84, 2.1, "numba", "cpu", 0, 120, 500).best_epoch
    219
    """

    epochs: int
    best_epoch: int
    stopping_loss: float
    stopping_accuracy: float
    seconds: float
    backend: str
    device: str
    seed: int
    train_nodes: int
    stopping_nodes: int


def record_of(trained: Trained) -> TrainingRecord:
    """Return the record of the first run of a training."""
    return TrainingRecord(
        epochs=int(trained.epochs[0]),
        best_epoch=int(trained.best_epoch[0]),
        stopping_loss=float(trained.stopping_loss[0]),
        stopping_accuracy=float(trained.stopping_accuracy[0]),
        seconds=trained.seconds,
        backend=trained.backend,
        device=trained.device,
        seed=trained.seeds[0],
        train_nodes=len(trained.splits[0].train),
        stopping_nodes=len(trained.splits[0].stopping),
    )
