"""The missing runs of a study, and only those, into its store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import torch

from pprop._errors import DivergenceError, InputError, MissingDependencyError, PpropError, Remedy
from pprop._process import TimeUp, check_interrupt, end_at, remember_interrupts
from pprop._validate import check_choice, check_float
from pprop.kernels import choose_backend
from pprop.settings import DEVICE
from pprop.study.cell import Cell, Seeds, model_kind, title_of
from pprop.study.graphs import load_graph
from pprop.study.revisions import revision_of
from pprop.study.run.attempts import Attempts
from pprop.study.run.progress import StudyPace, Watch
from pprop.study.run.recipe import (
    CellRunner,
    CellRuns,
    ComputePlace,
    Datasets,
    FittedAlone,
    Prepared,
    TrainedTogether,
    build,
)
from pprop.study.run.user_model import user_recipe
from pprop.study.store.row import Row, RowKey
from pprop.study.store.store import Store
from pprop.training.result import divergence_text


@final
@dataclass(frozen=True)
class Job:
    """Runs of one cell.

    Attributes
    ----------
    cell
        What is run.
    seeds
        Which runs, in the order in which they are wanted.
    alone
        Whether they are trained one at a time, to be timed.
    """

    cell: Cell
    seeds: tuple[Seeds, ...]
    alone: bool = False


@final
@dataclass(frozen=True)
class Refused:
    """A cell that cannot be run, and why."""

    cell: Cell
    reason: str


@final
@dataclass(frozen=True)
class StudyOutcome:
    """How a study went, in runs.

    Attributes
    ----------
    wanted
        All runs of the jobs, each once.
    found, computed
        Those that were in the store before, and those computed now.
    elsewhere
        Those that other processes are computing.
    refused
        Cells that could not be run.
    left
        What is still to be computed of the others.
    time_up
        Whether the time limit ended it.
    """

    wanted: int
    found: int
    computed: int
    elsewhere: int
    left: int
    refused: tuple[Refused, ...]
    time_up: bool


def place_of(device: str) -> ComputePlace:
    """Return where runs are computed on a device: the backend for it.

    >>> place_of("cpu")
    ComputePlace(device='cpu', backend='numba')
    """
    check_choice(device, "device", "study", ("cpu", "cuda"))
    if device == "cuda" and not torch.cuda.is_available():
        cpu = Remedy(settings={"device": DEVICE.default})
        raise InputError("The device 'cuda' needs a CUDA GPU, and torch sees none here.", remedies=[cpu])
    return ComputePlace(device, choose_backend("auto", device, "study").name)


def recipe_of(cell: Cell, prepared: Prepared, place: ComputePlace, *, alone: bool = False) -> CellRunner:
    """Return how the runs of a cell, of a model of the paper or of a user's model, are computed.

    Examples
    --------
    >>> from pprop.study.cell import make_cell
    >>> cell = make_cell("mlp", {"max_epochs": 2}, "citeseer")
    >>> rows = []
    >>> recipe = recipe_of(cell, Datasets().of(cell), ComputePlace("cpu", "numba"))
    >>> recipe.compute([Seeds(2144199730, 0), Seeds(794209841, 0)], rows.append)
    >>> sorted(row.key.seeds.split for row in rows), rows[0].epochs, rows[0].predictions.shape
    ([794209841, 2144199730], 2, (2110,))
    """
    if ":" in cell.model:
        return user_recipe(cell, prepared, place)
    model = build(cell, prepared.graph)
    if model_kind(cell.model).trained:
        return TrainedTogether(
            CellRuns(cell, prepared, place, revision_of(cell.model, place.backend)), model, alone=alone
        )
    here = ComputePlace(place.device, "numpy" if place.device == "cpu" else "torch")  # it needs none of our kernels
    model.device = here.device
    # one object for all runs: its fit starts anew, and shares what splits have in common
    return FittedAlone(CellRuns(cell, prepared, here, revision_of(cell.model, here.backend)), lambda seed: model)


def run_study(
    store: Store, jobs: Sequence[Job], watch: Watch, *, device: str = DEVICE.default, minutes: float | None = None
) -> StudyOutcome:
    """Compute what is missing of some jobs. Each run is in the store when it ends; what ends this function loses none.

    Runs that another process has claimed are left to it. A cell that cannot be run, such as one with more labels per
    class than there are, is refused, and the others go on. So is a cell of which runs diverge, when its other runs are
    in the store; these have no row, and diverge again in the next call.

    Parameters
    ----------
    store
        Where rows go.
    jobs
        Cells and their runs; of the same cell twice, each run counts once.
    watch
        Where progress is reported.
    device
        ``"cpu"`` or ``"cuda"``.
    minutes
        Time limit. Nothing is begun that is not expected to end in time, by the rows of the same model on the same
        dataset, and what is in training then is ended.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pprop.study.run.progress import show_study
    >>> from pprop.study.cell import make_cell
    >>> job = Job(make_cell("mlp", {"max_epochs": 2}, "citeseer"), (Seeds(2144199730, 0), Seeds(794209841, 0)))
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     with show_study(print, cells=1, runs=2, show=False) as watch:
    ...         outcome = run_study(store, [job], watch)
    MLP on citeseer: 2 runs computed.
    >>> outcome.computed, outcome.left
    (2, 0)
    """
    limit = None if minutes is None else 60 * check_float(minutes, "minutes", "run_study", "(0, inf)")
    end = None if limit is None else time.monotonic() + limit
    with Attempts(store) as attempts:
        return _StudyRun(store, attempts, watch, place_of(device), end).all(_unique(jobs))


@final
class _StudyRun:
    """One call of `run_study`."""

    def __init__(self, store: Store, attempts: Attempts, watch: Watch, place: ComputePlace, end: float | None) -> None:
        self._store, self._attempts, self._watch, self._place, self._end = store, attempts, watch, place, end
        self._datasets = Datasets(partial(load_graph, study=store.path.parent))
        self._pace = StudyPace(store.groups(), place.device)
        self._done = self._found = self._computed = self._here = 0  # runs: of all, before, now, of this cell
        self._refused: list[Refused] = []
        self._time_up = False
        self._ahead: Sequence[Job] = ()
        self._store_error: PpropError | None = None

    def all(self, jobs: list[Job]) -> StudyOutcome:
        keys: list[RowKey] = []
        for number, job in enumerate(jobs, start=1):
            self._watch.cell(job.cell, number)
            self._ahead = jobs[number:]
            keys += self._job(job)
        missing = [key for key in keys if not self._store.has(key)]
        elsewhere = self._attempts.elsewhere(missing)
        counts = sum(len(job.seeds) for job in jobs), self._found, self._computed, elsewhere, len(missing) - elsewhere
        return StudyOutcome(*counts, tuple(self._refused), self._time_up)

    def _job(self, job: Job) -> list[RowKey]:
        """Compute what is missing of a job; return the keys of its runs, or none if it was refused."""
        try:
            prepared = self._datasets.of(job.cell)
            for seeds in job.seeds:
                prepared.split(seeds.split, job.cell.per_class)  # what cannot be drawn is refused before anything runs
            recipe = recipe_of(job.cell, prepared, self._place, alone=job.alone)
        except MissingDependencyError:
            raise  # it would be missing for every cell
        except PpropError as error:
            self._refuse(job.cell, error)
            return []
        keys, self._here = [recipe.task.key(seeds) for seeds in job.seeds], 0
        there = self._store.keys(job.cell.config)
        found = sum(key in there for key in keys)
        self._found += found
        self._count(job, found)
        before, diverged = self._computed, dict[RowKey, int]()
        try:
            while claimed := self._claim(recipe, keys):
                with end_at(self._end), remember_interrupts():
                    try:
                        recipe.compute([key.seeds for key in claimed], lambda row: self._finished(job, row))
                    except DivergenceError as error:  # the others have their rows
                        lost = [key for key in claimed if not self._store.has(key)]
                        # an ensemble is one run, and may name several
                        diverged |= zip(lost, error.epochs, strict=False)
                    check_interrupt()
        except TimeUp:
            self._time_up = True
            self._attempts.release()
        except PpropError as error:
            if error is self._store_error:
                raise
            self._attempts.release()
            self._refuse(job.cell, error)
            keys = [key for key in keys if self._store.has(key)]
        if diverged:
            self._attempts.release()
            names = [f"split seed {key.seeds.split}, init seed {key.seeds.init}" for key in diverged]
            self._refuse(job.cell, DivergenceError(divergence_text(names, tuple(diverged.values()))))
            keys = [key for key in keys if key not in diverged]
        if new := self._computed - before:
            self._watch.say(f"{title_of(job.cell)}: {new} run{'s' * (new > 1)} computed.")
        return keys

    def _claim(self, recipe: CellRunner, keys: list[RowKey]) -> list[RowKey]:
        """Claim as many runs as go together and can be expected to end in time."""
        most = recipe.at_once or len(keys)
        if self._end is not None:
            room, each = self._end - time.monotonic(), self._pace.seconds(recipe.task.cell)
            if each is not None:
                most = min(most, int(room / max(each, 1e-9)))
            if room <= 0 or most < 1:
                self._time_up = self._time_up or any(not self._store.has(key) for key in keys)
                return []
        return self._attempts.claim(keys, most)

    def _finished(self, job: Job, row: Row) -> None:
        try:
            self._store.add(row)
        except PpropError as error:
            self._store_error = error  # not the cell's fault
            raise
        self._computed += 1
        self._pace.note(job.cell, row.seconds)
        self._count(job, 1)

    def _count(self, job: Job, runs: int) -> None:
        self._done, self._here = self._done + runs, self._here + runs
        ahead = [(job.cell, len(job.seeds) - self._here), *((other.cell, len(other.seeds)) for other in self._ahead)]
        self._watch.runs(self._done, self._pace.together(ahead))

    def _refuse(self, cell: Cell, error: PpropError) -> None:
        reason = " ".join(str(error).split())
        self._refused.append(Refused(cell, reason))
        self._watch.say(f"Refused: {title_of(cell)}. {reason}")


def _unique(jobs: Sequence[Job]) -> list[Job]:
    """Return each cell once, with all the runs that are wanted of it."""
    found: dict[str, Job] = {}
    for job in jobs:
        before = found.get(job.cell.config, Job(job.cell, ()))
        seeds = tuple(dict.fromkeys((*before.seeds, *job.seeds)))
        found[job.cell.config] = Job(job.cell, seeds, before.alone or job.alone)
    return list(found.values())
