"""Which runs are trained when: in chunks that fit into memory, batch after batch, or by several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from pprop.kernels.trainer import Trainer
from pprop.training.loop import run_captured, run_loop
from pprop.training.progress import Report
from pprop.training.result import LoopResult, join_results
from pprop.training.stopping import Stopping

# Called as runs end, with what they leave behind, which runs they are, and the epochs made by all runs so far.
RunsEnded = Callable[[LoopResult, NDArray[np.int64], int], None]


@final
@dataclass(frozen=True)
class RunBatch:
    """Consecutive runs that one loop trains together, and a function that makes their trainer."""

    runs: slice
    make: Callable[[], Trainer]

    @property
    def positions(self) -> NDArray[np.int64]:
        """The runs one by one."""
        return np.r_[self.runs]


def train_chunks(
    chunks: Iterable[slice],
    batches_of: Callable[[slice], tuple[int, list[RunBatch]]],
    rule: Stopping,
    device: torch.device,
    report: Report,
    ended: RunsEnded,
) -> LoopResult:
    """Train the runs of every chunk in turn; return the results of all runs in their order.

    `batches_of` makes what the runs of a chunk share, which is freed before the next chunk begins: how many threads may
    train a batch each at the same time, and the batches.
    """
    tally = _Tally(report, ended)

    def train_batch(batch: RunBatch, in_thread: bool) -> LoopResult:
        trainer, observer = batch.make(), _Part(tally, batch.positions, in_thread)
        try:
            if device.type == "cuda":
                return run_captured(trainer, observer.runs, rule, observer, device)
            return run_loop(trainer, observer.runs, rule, observer)
        finally:
            trainer.close()

    def train_chunk(chunk: slice) -> list[LoopResult]:
        threads, batches = batches_of(chunk)
        if threads == 1:
            return [train_batch(batch, False) for batch in batches]
        with ThreadPoolExecutor(threads, "pprop-run") as pool:
            jobs = {pool.submit(train_batch, batch, True): batch for batch in batches}
            try:
                for job in as_completed(jobs):  # not in order: the first may be far from its end
                    tally.ended(job.result(), jobs[job].positions)
                return [job.result() for job in jobs]
            except BaseException:
                tally.stop.set()
                for job in jobs:
                    job.cancel()
                raise

    return join_results([result for chunk in chunks for result in train_chunk(chunk)])


@final
class _Stopped(Exception):  # noqa: N818  no error: the main thread raises what ended the training
    """Ends a thread whose training is no longer wanted."""


@final
class _Tally:
    """Adds up the progress of all batches, trained one after another or side by side."""

    def __init__(self, report: Report, ended: RunsEnded) -> None:
        self.stop = threading.Event()
        self._report, self._ended, self._lock = report, ended, threading.Lock()
        self._runs_ended, self._work, self._going = 0, 0, dict[_Part, tuple[int, int]]()

    def epoch(self, part: _Part, epoch: int, ended: int) -> None:
        """Take the report of one batch, and pass on that of all."""
        if self.stop.is_set():
            raise _Stopped
        with self._lock:
            epoch_before, ended_before = self._going.get(part, (0, 0))
            self._work += (epoch - epoch_before) * (part.runs - ended_before)
            self._runs_ended += ended - ended_before
            self._going[part] = epoch, ended
            mean = sum(one for one, _ in self._going.values()) // len(self._going)
            if ended == part.runs:
                del self._going[part]
            self._report(mean, self._runs_ended, self._work)

    def ended(self, result: LoopResult, runs: NDArray[np.int64]) -> None:
        """Pass on what runs leave behind; called in the main thread alone."""
        self._ended(result, runs, self._work)


@final
class _Part:
    """The observer of one batch. In a thread it leaves it to the main one to say which runs have ended."""

    def __init__(self, tally: _Tally, positions: NDArray[np.int64], in_thread: bool) -> None:
        self.runs, self._positions, self._tally, self._in_thread = len(positions), positions, tally, in_thread

    def epoch(self, epoch: int, runs_ended: int) -> None:
        self._tally.epoch(self, epoch, runs_ended)

    def ended(self, result: LoopResult, runs: NDArray[np.int64]) -> None:
        if not self._in_thread:
            self._tally.ended(result, self._positions[runs])
