"""Progress of a training on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol, final

__all__ = ["Progress", "show_progress"]


class Progress(Protocol):
    """Told after every epoch how far the runs are."""

    def epoch(self, epoch: int, runs_ended: int) -> None:
        """Report one finished epoch."""
        ...


@contextmanager
def show_progress(show: bool | None, title: str, runs: int) -> Generator[Progress]:
    """Draw a live line while the block runs, if `show`, or if it is None and standard error is a terminal.

    >>> with show_progress(False, "Training", 1) as progress:
    ...     progress.epoch(1, 0)
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    with RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs, epoch {task.fields[epoch]}, {task.fields[rate]:.0f} epochs/s"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(title, total=runs, epoch=0, rate=0.0)
        begin = time.perf_counter()

        @final
        class Line:
            """Runs ended, epochs made, epochs per second, time spent."""

            def epoch(self, epoch: int, runs_ended: int) -> None:
                rate = epoch / (time.perf_counter() - begin)
                bar.update(task, completed=runs_ended, epoch=epoch, rate=rate)

        yield Line()


@final
class _Silent:
    def epoch(self, epoch: int, runs_ended: int) -> None:
        pass
