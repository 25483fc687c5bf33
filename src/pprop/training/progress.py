"""Progress of a training on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol, final

from pprop.training.pace import Pace

__all__ = ["Progress", "show_progress"]

_PAUSE = 0.1  # seconds between two updates of the line: an epoch may be much shorter


class Progress(Protocol):
    """Told after an epoch, or a few of them, how far the runs are."""

    def epoch(self, epoch: int, runs_ended: int, work: int | None = None) -> None:
        """Report that the runs now in training have made `epoch` epochs, and `runs_ended` of all runs have ended.

        Runs that are trained at different paces report the mean of their epochs, and in `work` those of all together.
        """
        ...


@contextmanager
def show_progress(
    show: bool | None,
    title: str,
    runs: int,
    *,
    batch: int | None = None,
    max_epochs: int | None = None,
    refill: bool = False,
) -> Generator[Progress]:
    """Draw a live line while the block runs, if `show`, or if it is None and standard error is a terminal.

    The line says how many runs have ended, how many epochs all runs together make in a second, and how long it may
    still take (see `pprop.training.pace`).

    Parameters
    ----------
    show
        Whether to draw.
    title
        What is going on.
    runs
        How many runs there are.
    batch
        How many of them are trained together; None: all.
    max_epochs
        Epochs after which a run ends in any case.
    refill
        Whether a new run takes the place of every one that ends.

    Examples
    --------
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
        TextColumn("runs, epoch {task.fields[epoch]}, {task.fields[rate]:,.0f} epochs/s,"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(title, total=runs, epoch=0, rate=0.0, left="")
        pace = Pace(runs, runs if batch is None else batch, max_epochs, refill=refill)
        begin = time.perf_counter()
        drawn = (0.0, 0)  # when, and how many runs had ended

        @final
        class Line:
            """Runs ended, epochs made, epochs per second, time spent and left."""

            def epoch(self, epoch: int, runs_ended: int, work: int | None = None) -> None:
                nonlocal drawn
                now = time.perf_counter() - begin
                pace.report(epoch, runs_ended, now, work)
                if now < drawn[0] + _PAUSE and runs_ended == drawn[1]:
                    return
                drawn, left = (now, runs_ended), pace.time_left()
                bar.update(
                    task,
                    completed=runs_ended,
                    epoch=epoch,
                    rate=pace.epochs_per_second,
                    left=f"{left} left" if left else "",
                )

        yield Line()


@final
class _Silent:
    def epoch(self, epoch: int, runs_ended: int, work: int | None = None) -> None:
        pass
