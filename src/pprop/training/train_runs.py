"""Training of the paper's network in R runs: the fused trainer where a backend has one, and who drives it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import final

import numpy as np

from pprop.kernels.trainer import LabelledNodes, PropagateRows, PropagateSteps, Trainer, TrainerSpec
from pprop.models.network import FeatureNetwork, RunsNetwork, glorot_uniform, normalized_features
from pprop.models.readout import RowReadout
from pprop.propagation import PowerIteration
from pprop.training.captured import run_captured
from pprop.training.chunks import join_results
from pprop.training.loop import Ended, LoopResult, run_loop
from pprop.training.program import Task
from pprop.training.progress import Progress
from pprop.training.propagated import Propagated
from pprop.training.runs_program import RunsProgram

__all__ = ["drive", "make_trainer"]


def make_trainer(task: Task, propagated: Propagated, predictor: FeatureNetwork, *, fused: bool = True) -> Trainer:
    """Return the backend's fused trainer for a network with one hidden layer, else the program of single operations."""
    features = normalized_features(task.graph)
    widths = predictor.widths(features.shape[1], task.n_classes)
    weights = glorot_uniform(widths, task.seed_tensor, task.kernels)
    if fused and len(weights) == 2:
        spec = TrainerSpec(
            features=features,
            weights=(weights[0], weights[1]),
            seeds=task.seed_tensor,
            propagation=_propagation(propagated),
            train=LabelledNodes(task.train.nodes, task.train.labels),
            stopping=LabelledNodes(task.stopping.nodes, task.stopping.labels),
            dropout=predictor.dropout,
            matrix_dropout=propagated.dropout,
            rate=task.rate,
            penalty=propagated.model.penalty,
        )
        trainer = task.kernels.trainer(spec)
        if trainer is not None:
            return trainer
    return RunsProgram(
        task, propagated, RunsNetwork(task.kernels, task.kernels.features(features), weights), predictor.dropout
    )


def _propagation(propagated: Propagated) -> PropagateSteps | PropagateRows | None:
    settings, operator, readout = propagated.model.propagation, propagated.operator, propagated.readout
    if operator is None or settings is None:
        return None
    if isinstance(readout, RowReadout):
        return PropagateRows(readout.block, readout.nodes, readout.row_of_node)
    assert isinstance(settings.solver, PowerIteration)
    steps = settings.solver.steps
    return PropagateSteps(operator.transition, operator.alpha, steps) if steps > 0 else None


def drive(trainer: Trainer, task: Task, progress: Progress, ended: Ended) -> LoopResult:
    """Train every run of a task with a trainer, in the loop that suits the device and the trainer."""
    runs = len(task.seeds)
    if task.device.type == "cuda":
        return run_captured(trainer, runs, task.rule, progress, task.device, ended)
    threads, parts = trainer.parts()
    if len(parts) == 1:
        try:
            return run_loop(trainer, runs, task.rule, progress, ended)
        finally:
            trainer.close()
    if threads == 1:
        return _one_after_another(parts, task, progress, ended)
    return _side_by_side(parts, threads, task, progress, ended)


def _one_after_another(parts: list[Trainer], task: Task, progress: Progress, ended: Ended) -> LoopResult:
    results: list[LoopResult] = []
    together = _Together(progress)
    for run, trainer in enumerate(parts):
        try:
            results.append(run_loop(trainer, 1, task.rule, together.share()))
        finally:
            trainer.close()
        ended(results[-1], np.array([run]), together.work)
    return join_results(results)


def _side_by_side(parts: list[Trainer], threads: int, task: Task, progress: Progress, ended: Ended) -> LoopResult:
    """Train single runs, as many at a time as there are threads; an interruption or an error in one ends them all."""
    together = _Together(progress)

    def train_one(trainer: Trainer) -> LoopResult:
        try:
            return run_loop(trainer, 1, task.rule, together.share())
        finally:
            trainer.close()

    with ThreadPoolExecutor(threads, "pprop-run") as pool:
        run_of = {pool.submit(train_one, part): run for run, part in enumerate(parts)}
        try:
            for one in as_completed(run_of):  # not in order: the first may be far from its end
                ended(one.result(), np.array([run_of[one]]), together.work)
            return join_results([one.result() for one in run_of])
        except BaseException:
            together.stop.set()
            for one in run_of:
                one.cancel()
            raise


@final
class _Stopped(Exception):  # noqa: N818  no error: the main thread raises what ended the training
    """Ends a thread whose training is no longer wanted."""


@final
class _Together:
    """Adds up the progress of runs that are trained one after another, by one thread or several."""

    def __init__(self, whole: Progress) -> None:
        self.stop = threading.Event()
        self._whole, self._lock = whole, threading.Lock()
        self._ended, self._work, self._going = 0, 0, dict[int, int]()

    @property
    def work(self) -> int:
        """Epochs made by all runs so far."""
        return self._work

    def share(self) -> Progress:
        """Return what one run reports to."""
        return _Share(self)

    def report(self, run: int, epoch: int, ended: int) -> None:
        """Take the report of one run, and pass on that of all."""
        if self.stop.is_set():
            raise _Stopped
        with self._lock:
            self._work += epoch - self._going.get(run, 0)
            self._going[run] = epoch
            mean = sum(self._going.values()) // len(self._going)
            if ended:
                self._ended += 1
                del self._going[run]
            self._whole.epoch(mean, self._ended, self._work)


@final
class _Share:
    def __init__(self, together: _Together) -> None:
        self._together = together

    def epoch(self, epoch: int, runs_ended: int, work: int | None = None) -> None:
        """Pass on the report of one run."""
        self._together.report(id(self), epoch, runs_ended)
