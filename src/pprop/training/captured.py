"""The training loop on a GPU: epochs are captured once and replayed; early stopping is decided on the device.

A CUDA graph holds one epoch: the trainer's kernels, the update of the stopping state, the copy of improved weights, and
a note of the three curves. The host only replays it, and looks at the device every few epochs to see which runs have
ended. Ended runs are packed away, which changes the shapes and so needs a new graph.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from pprop.kernels.trainer import Trainer
from pprop.training.loop import COMPACT_SHARE, Ended, Ledger, LoopResult, nobody
from pprop.training.progress import Progress
from pprop.training.stopping import Stopping, StoppingState

__all__ = ["run_captured"]

_EPOCHS_PER_LOOK = 32
_WARM_UP = 2  # epochs before the capture: the first compiles kernels and takes memory


@final
class _Batch:
    """The slots in training, with everything on the device that one epoch reads and writes."""

    def __init__(self, trainer: Trainer, state: StoppingState, runs: int, device: torch.device):
        self.trainer, self.state = trainer, state
        self._curves = torch.zeros(3, _EPOCHS_PER_LOOK, runs, device=device)
        self._at = torch.zeros(1, dtype=torch.int64, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._made = 0
        self._can_capture = trainer.capturable and device.type == "cuda"  # others keep their epoch in Python

    def _epoch(self) -> None:
        values = self.trainer.epoch()
        improved = self.state.update(values[1].double(), values[2].double())
        self.trainer.remember(improved)
        self._curves.index_copy_(1, self._at, values[:, None])
        self._at.add_(1).remainder_(_EPOCHS_PER_LOOK)

    def advance(self) -> np.ndarray[Any, Any]:
        """Make the epochs until the next look; return their curves, (3, epochs, slots)."""
        for _ in range(_EPOCHS_PER_LOOK):
            if self._graph is None and self._made >= _WARM_UP and self._can_capture:
                self._capture()
            if self._graph is None:
                self._epoch()
            else:
                self._graph.replay()
            self._made += 1
        return self._curves.double().cpu().numpy()

    def _capture(self) -> None:
        torch.cuda.synchronize(self._curves.device)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._epoch()

    def keep(self, slots: Tensor) -> None:
        """Go on with some of the slots; their epoch is captured anew after one that takes the memory of its shapes."""
        self.trainer.keep(slots)
        self.state.keep(slots)
        self._curves = self._curves[:, :, slots].contiguous()
        self._graph, self._made = None, _WARM_UP - 1


def run_captured(
    trainer: Trainer,
    runs: int,
    stopping: Stopping,
    progress: Progress,
    device: torch.device,
    ended_runs: Ended = nobody,
) -> LoopResult:
    """Train until every run has ended, as `run_loop` does; up to a few epochs more are computed and not counted."""
    ledger = Ledger(runs, trainer.weights())
    batch = _Batch(trainer, StoppingState(stopping, runs, device), runs, device)
    known = np.zeros(runs, dtype=np.bool_)
    epochs = 0
    while True:
        ledger.record(batch.advance())
        epochs += _EPOCHS_PER_LOOK
        now = batch.state.ended.cpu().numpy().copy()
        fresh = np.flatnonzero(now & ~known)
        if len(fresh):
            ledger.keep_weights(fresh, trainer.remembered())
            ledger.end(fresh, batch.state)
            over = ledger.run_of_slot[fresh]
            ended_runs(ledger.result(over), over, ledger.work + epochs * int((~now).sum()))
        known = now
        ended = int(known.sum())
        progress.epoch(epochs, runs - len(ledger.run_of_slot) + ended)
        if ended == len(known):
            return ledger.result()
        if ended >= max(1, COMPACT_SHARE * len(known)):
            slots = np.flatnonzero(~known)
            ledger.keep(slots)
            batch.keep(torch.from_numpy(slots).to(device))
            known = known[slots]
