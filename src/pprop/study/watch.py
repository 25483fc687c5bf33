"""Progress of a study on standard error: a live line on a terminal, a line for each finished cell in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from pprop.study.cell import Cell
from pprop.study.zoo import MODELS

__all__ = ["Watch", "show_study", "title_of"]


class Watch(Protocol):
    """Told how far a study is."""

    def cell(self, cell: Cell, number: int) -> None:
        """Take note: the runs of a cell begin; it is number `number`, from 1."""
        ...

    def runs(self, done: int, seconds_left: float | None) -> None:
        """Take note: so many runs of all are finished; the others may take so long."""
        ...

    def say(self, text: str) -> None:
        """Tell a person something."""
        ...


def title_of(cell: Cell) -> str:
    """Return a short name of a cell for people.

    >>> title_of(Cell("vanilla_gcn", {}, "cora_ml")), title_of(Cell("mymodule:build", {}, "pubmed", per_class=5))
    ('V. GCN on cora_ml', 'mymodule:build on pubmed, 5 labels per class')
    """
    name = MODELS[cell.model].title if cell.model in MODELS else cell.model
    kind = "" if cell.splits == "test" else ", validation"
    labels = "" if cell.per_class == 20 else f", {cell.per_class} label{'s' * (cell.per_class > 1)} per class"
    return f"{name} on {cell.dataset}{kind}{labels}"


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
        yield _Plain(say)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from pprop.training.pace import duration  # here: it brings torch along, which naming a cell does without

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

        class Line:
            """Cell, runs done, time spent and left."""

            def cell(self, cell: Cell, number: int) -> None:
                bar.update(task, description=title_of(cell), number=number)

            def runs(self, done: int, seconds_left: float | None) -> None:
                left = "" if not seconds_left else f"about {duration(seconds_left)} left"
                bar.update(task, completed=done, left=left)

            def say(self, text: str) -> None:
                bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

        yield Line()


class _Plain:
    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def cell(self, cell: Cell, number: int) -> None:
        pass

    def runs(self, done: int, seconds_left: float | None) -> None:
        pass

    def say(self, text: str) -> None:
        self._say(text)
