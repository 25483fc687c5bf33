"""Training of the paper's network in R runs: the fused trainer where a backend has one, and who drives it."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import final

from pprop.kernels.trainer import LabelledNodes, PropagateRows, PropagateSteps, Trainer, TrainerSpec
from pprop.models.network import FeatureNetwork, RunsNetwork, glorot_uniform, normalized_features
from pprop.models.readout import RowReadout
from pprop.propagation import PowerIteration, PPROperator
from pprop.training.captured import run_captured
from pprop.training.chunks import join_results
from pprop.training.loop import LoopResult, run_loop
from pprop.training.program import Task
from pprop.training.progress import Progress
from pprop.training.runs_program import RunsProgram

__all__ = ["make_trainer", "train_runs"]


def make_trainer(task: Task, predictor: FeatureNetwork, operator: PPROperator | None, *, fused: bool = True) -> Trainer:
    """Return the backend's fused trainer for a network with one hidden layer, else the program of single operations."""
    features = normalized_features(task.graph)
    widths = predictor.widths(features.shape[1], task.n_classes)
    weights = glorot_uniform(widths, task.seed_tensor, task.kernels)
    if fused and len(weights) == 2:
        spec = TrainerSpec(
            features=features,
            weights=(weights[0], weights[1]),
            seeds=task.seed_tensor,
            propagation=_propagation(task, operator),
            train=LabelledNodes(task.train.nodes, task.train.labels),
            stopping=LabelledNodes(task.stopping.nodes, task.stopping.labels),
            dropout=predictor.dropout,
            matrix_dropout=task.matrix_dropout,
            rate=task.rate,
            penalty=task.model.penalty,
        )
        trainer = task.kernels.trainer(spec)
        if trainer is not None:
            return trainer
    return RunsProgram(task, RunsNetwork(task.kernels, features, weights), predictor.dropout)


def _propagation(task: Task, operator: PPROperator | None) -> PropagateSteps | PropagateRows | None:
    settings = task.model.propagation
    if operator is None or settings is None:
        return None
    if isinstance(settings.solver, PowerIteration):
        steps = settings.solver.steps
        return PropagateSteps(operator.transition, operator.alpha, steps) if steps > 0 else None
    assert isinstance(task.readout, RowReadout)
    return PropagateRows(task.readout.block, task.readout.nodes, task.readout.row_of_node)


def train_runs(task: Task, predictor: FeatureNetwork, operator: PPROperator | None, progress: Progress) -> LoopResult:
    """Train the paper's network in every run of a task."""
    runs, trainer = len(task.seeds), make_trainer(task, predictor, operator)
    if task.device.type == "cuda":
        return run_captured(trainer, runs, task.rule, progress, task.device)
    threads, parts = trainer.parts()
    if threads == 1 or len(parts) == 1:
        alone = [(trainer, runs)] if len(parts) == 1 else [(part, 1) for part in parts]
        return _one_after_another(alone, task, progress)
    return _side_by_side(parts, threads, task, progress)


def _one_after_another(trainers: list[tuple[Trainer, int]], task: Task, progress: Progress) -> LoopResult:
    results: list[LoopResult] = []
    together = _Together(progress)
    for trainer, runs in trainers:
        try:
            results.append(run_loop(trainer, runs, task.rule, together.share() if len(trainers) > 1 else progress))
        finally:
            trainer.close()
    return join_results(results)


def _side_by_side(parts: list[Trainer], threads: int, task: Task, progress: Progress) -> LoopResult:
    """Train single runs, as many at a time as there are threads; an interruption or an error in one ends them all."""
    together = _Together(progress)

    def train_one(trainer: Trainer) -> LoopResult:
        try:
            return run_loop(trainer, 1, task.rule, together.share())
        finally:
            trainer.close()

    with ThreadPoolExecutor(threads, "pprop-run") as pool:
        pending = [pool.submit(train_one, part) for part in parts]
        try:
            done = wait(pending, return_when=FIRST_EXCEPTION).done  # not in order: the first may be far from its end
            for one in done:
                one.result()
            return join_results([one.result() for one in pending])
        except BaseException:
            together.stop.set()
            for one in pending:
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
