"""Progress of a study on standard error: a live line on a terminal, a line for each finished cell in a log."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from typing import final

from pprop.study.cell import Cell, title_of
from pprop.study.store.store import RowGroup


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
        self._sums: dict[object, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        for group in groups:
            if all(name.startswith(device) for name in group.devices):
                self.note(group.cell, group.seconds, group.runs)

    def note(self, cell: Cell, seconds: float, runs: int = 1) -> None:
        """Take note of runs that took so many seconds together."""
        for name in (cell.config, (cell.model, cell.dataset)):
            known = self._sums[name]
            self._sums[name] = known[0] + runs, known[1] + seconds

    def seconds(self, cell: Cell) -> float | None:
        """Return what a run of a cell is expected to take; None: nothing is known."""
        for name in (cell.config, (cell.model, cell.dataset)):
            runs, seconds = self._sums[name]
            if runs:
                return seconds / runs
        return None

    def together(self, work: Iterable[tuple[Cell, int]]) -> float | None:
        """Return what so many runs of some cells are expected to take; None while there are unknown ones among them."""
        each = [(self.seconds(cell), runs) for cell, runs in work if runs]
        return None if any(seconds is None for seconds, _ in each) else sum((s or 0.0) * runs for s, runs in each)


class Watch:
    """Where a study reports how far it is. This one passes on messages alone."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say

    def cell(self, cell: Cell, number: int) -> None:
        """Take note: the runs of a cell begin; it is number `number`, from 1."""

    def runs(self, done: int, seconds_left: float | None) -> None:
        """Take note: so many runs of all are finished; the others may take so long."""


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

    from pprop.training.progress import duration  # here: it brings torch along, which naming a cell does without

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

        class Line(Watch):
            """Cell, runs done, time spent and left."""

            def cell(self, cell: Cell, number: int) -> None:
                bar.update(task, description=title_of(cell), number=number)

            def runs(self, done: int, seconds_left: float | None) -> None:
                left = "" if not seconds_left else f"about {duration(seconds_left)} left"
                bar.update(task, completed=done, left=left)

        yield Line(partial(bar.console.print, markup=False, highlight=False, soft_wrap=True))
