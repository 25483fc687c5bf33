"""Progress of a search on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

__all__ = ["Bar", "show_trials"]


@final
@dataclass(frozen=True)
class Bar:
    """Told how many trials there are, and the best score so far (None: there is none)."""

    report: Callable[[int, float | None], None]


@contextmanager
def show_trials(show: bool | None, trials: int) -> Generator[Bar]:
    """Draw a live line while the block runs, if `show`, or if it is None and standard error is a terminal.

    Examples
    --------
    >>> with show_trials(False, 10) as bar:
    ...     bar.report(1, 0.8)
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield Bar(lambda done, best: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("Tuning"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trials{task.fields[best]},"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task("", total=trials, best="")

        def report(done: int, best: float | None) -> None:
            bar.update(task, completed=done, best="" if best is None else f", best {best:.1%}")

        yield Bar(report)
