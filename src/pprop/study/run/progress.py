"""How far a study is: what its store has of each experiment, and progress on standard error while it goes on."""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import final

from pprop._errors import PpropError
from pprop._words import duration
from pprop.study.cell import Cell, Seeds, title_of
from pprop.study.experiment import Experiment
from pprop.study.revisions import current_data, current_revision
from pprop.study.run.attempts import count_claims
from pprop.study.store.store import RowGroup, Store


@final
@dataclass(frozen=True)
class ExperimentProgress:
    """How far one experiment is.

    Attributes
    ----------
    name
        Of the experiment.
    done, wanted
        Runs of the present revision and data, and of the whole experiment. Where a dataset is not on this machine, the
        revision alone decides.
    seconds
        What they took.
    last
        When the last row of its cells was made; empty without rows.
    other_versions
        Rows of its cells of another revision or other data: not counted.
    """

    name: str
    done: int
    wanted: int
    seconds: float
    last: str
    other_versions: int


@final
@dataclass(frozen=True)
class StudyStatus:
    """What is in a store.

    Attributes
    ----------
    rows
        All of them.
    experiments
        Those with at least one row.
    other_cells
        Cells with rows that belong to no experiment given, and how many rows.
    computing
        Runs that are being computed now.
    """

    rows: int
    experiments: tuple[ExperimentProgress, ...]
    other_cells: tuple[tuple[Cell, int], ...]
    computing: int


def study_status(store: Store, experiments: Iterable[Experiment]) -> StudyStatus:
    """Return how far some experiments are.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     study_status(store, [])
    StudyStatus(rows=0, experiments=(), other_cells=(), computing=0)
    """
    groups: dict[str, list[RowGroup]] = {}
    for group in store.groups():
        groups.setdefault(group.config, []).append(group)
    runs = {config: sum(group.runs for group in some) for config, some in groups.items()}
    data = cache(
        partial(current_data, study=store.path.parent)
    )  # each dataset is read once, and only if there is a row of it
    found: list[ExperimentProgress] = []
    others = {config: (some[0].cell, runs[config]) for config, some in groups.items()}
    for experiment in experiments:
        if any(point.cell.config in groups for point in experiment.points):
            found.append(_progress(store, experiment, groups, data))
        for point in experiment.points:
            others.pop(point.cell.config, None)
    return StudyStatus(sum(runs.values()), tuple(found), tuple(others.values()), count_claims(store))


def _progress(
    store: Store, experiment: Experiment, groups: dict[str, list[RowGroup]], data: Callable[[str], str | None]
) -> ExperimentProgress:
    done = wanted = others = 0
    seconds, last = 0.0, ""
    for point in experiment.points:
        seeds = set(experiment.seeds(cell=point.cell))
        wanted += len(seeds)
        of_cell = groups.get(point.cell.config, [])
        present = (group for group in of_cell if _is_current(group, data))
        current = max(present, key=lambda group: group.newest, default=None)
        last = max([last, *(group.newest for group in of_cell)])
        others += sum(group.runs for group in of_cell if group is not current)
        if current is not None:
            # a cell may have more runs than an experiment names
            runs = "SELECT seconds, split, init FROM rows WHERE config = ? AND data = ? AND revision(code) = ?"
            found = store.execute(runs, (current.config, current.data, current.revision))
            here = [took for took, *run in found if Seeds(*run) in seeds]
            done += len(here)
            seconds += math.fsum(here)
    return ExperimentProgress(experiment.name, done, wanted, seconds, last, others)


def _is_current(group: RowGroup, data: Callable[[str], str | None]) -> bool:
    """Say whether rows are of the present revision and, where the dataset is here, of its data."""
    try:
        current = current_revision(group.cell, group.backend) == group.revision
    except PpropError:  # a user's model that is not here
        return False
    return current and data(group.cell.dataset) in (None, group.data)


@final
class StudyPace:
    """Mean seconds of a run: of the same cell, else of the same model on the same dataset, else unknown.

    Rows of other devices do not count: a GPU says nothing of a CPU.

    Parameters
    ----------
    groups
        What the store has.
    device
        ``"cpu"`` or ``"cuda"``, where the study goes on.

    Examples
    --------
    >>> pace = StudyPace([], "cpu")
    >>> first, other = Cell("mlp", {}, "citeseer"), Cell("mlp", {"hidden": [8]}, "citeseer")
    >>> pace.note(first, 3.0)
    >>> pace.seconds(first), pace.seconds(other), pace.seconds(Cell("mlp", {}, "pubmed"))
    (3.0, 3.0, None)
    """

    def __init__(self, groups: Iterable[RowGroup], device: str) -> None:
        self._runs, self._seconds = Counter[object](), defaultdict[object, float](float)
        for group in groups:
            if all(name.startswith(device) for name in group.devices):
                self.note(group.cell, group.seconds, group.runs)

    def note(self, cell: Cell, seconds: float, runs: int = 1) -> None:
        """Take note of runs that took so many seconds together."""
        for name in (cell.config, (cell.model, cell.dataset)):
            self._runs[name] += runs
            self._seconds[name] += seconds

    def seconds(self, cell: Cell) -> float | None:
        """Return what a run of a cell is expected to take; None: nothing is known."""
        for name in (cell.config, (cell.model, cell.dataset)):
            if self._runs[name]:
                return self._seconds[name] / self._runs[name]
        return None

    def together(self, work: Iterable[tuple[Cell, int]]) -> float | None:
        """Return what so many runs of some cells are expected to take; None while there are unknown ones among them."""
        each = [(self.seconds(cell), runs) for cell, runs in work if runs]
        return None if any(seconds is None for seconds, _ in each) else sum((s or 0.0) * runs for s, runs in each)


@final
class Watch:
    """Where a study reports how far it is: messages to `say`, and what a live line shows to `update`, if there is one."""

    def __init__(self, say: Callable[[str], None], update: Callable[..., None] | None = None) -> None:
        self.say, self._update = say, update

    def cell(self, cell: Cell, number: int) -> None:
        """Take note: the runs of a cell begin; it is number `number`, from 1."""
        if self._update is not None:
            self._update(description=title_of(cell), number=number)

    def runs(self, done: int, seconds_left: float | None) -> None:
        """Take note: so many runs of all are finished; the others may take so long."""
        if self._update is not None:
            self._update(completed=done, left=f"about {duration(seconds_left)} left" if seconds_left else "")


@contextmanager
def show_study(say: Callable[[str], None], cells: int, runs: int, show: bool | None = None) -> Generator[Watch]:
    """Draw a live line while the block runs, if `show`, or if it is None and standard error is a terminal.

    Examples
    --------
    >>> with show_study(print, cells=2, runs=40, show=False) as watch:
    ...     watch.say("Found 3 runs.")
    Found 3 runs.
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield Watch(say)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs, cell {task.fields[number]}/{task.fields[cells]},"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task("Study", total=runs, number=0, cells=cells, left="")
        say = partial(bar.console.print, markup=False, highlight=False, soft_wrap=True)
        yield Watch(say, partial(bar.update, task))
