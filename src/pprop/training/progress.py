"""Progress of a training on standard error: runs, epochs per second, and rich's estimate of the time left.

The bar counts epochs, at most `max_epochs` per run; a run that ends early fills its part of the bar. Until the first run
has ended the time left is therefore an upper bound.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic

from pprop._compiling import COMPILING, compiling

_PAUSE = 0.5  # seconds between two updates of the line: an epoch may be much shorter

# What a training calls after an epoch, or a few of them: the runs now in training have made so many epochs (those that
# are trained at different paces, on average), so many of all runs have ended, and all have made so many epochs together.
Report = Callable[[int, int, int], None]


@contextmanager
def show_progress(show: bool | None, runs: int, *, max_epochs: int) -> Generator[Report]:
    """Draw a live line while the block runs, if `show`, or if it is None and standard error is a terminal.

    The line shows how many runs have ended, how many epochs all runs together make per second, and how much time is left.
    Above it stands a note while kernels are being compiled.

    Parameters
    ----------
    show
        Whether to draw.
    runs
        How many runs there are.
    max_epochs
        Epochs after which a run ends in any case.

    Examples
    --------
    >>> with show_progress(False, 1, max_epochs=10) as report:
    ...     report(1, 0, 1)
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield _silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[ended]}/{task.fields[runs]} runs, epoch {task.fields[epoch]},"),
        TextColumn("{task.fields[rate]:,.0f} epochs/s,"),
        TimeElapsedColumn(),
        TextColumn("elapsed, {task.fields[estimate]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        get_time=monotonic,
        speed_estimate_period=math.inf,  # one run may take longer than rich's 30 seconds
    ) as bar:
        total = runs * max_epochs
        task = bar.add_task("Training", total=total, ended=0, runs=runs, epoch=0, rate=0.0, estimate="at most")
        drawn, seen, spared = monotonic(), 0, 0  # when it was drawn, runs that had ended, epochs they did not need
        first: tuple[float, int] | None = None  # time and epochs at the first report; set-up was before it

        def draw(epoch: int, runs_ended: int, work: int) -> None:
            nonlocal drawn, seen, spared, first
            now = monotonic()
            first = (now, work) if first is None else first
            if now < drawn + _PAUSE and runs_ended == seen:
                return
            spared += (runs_ended - seen) * (max_epochs - epoch)
            drawn, seen = now, runs_ended
            done = total if runs_ended == runs else min(work + spared, total)
            rate = (work - first[1]) / (now - first[0]) if now > first[0] else 0.0
            estimate = "about" if runs_ended else "at most"
            bar.update(task, completed=done, ended=runs_ended, epoch=epoch, rate=rate, estimate=estimate)

        with compiling.telling(lambda: bar.console.print(COMPILING)):  # above the line
            yield draw


def _silent(epoch: int, runs_ended: int, work: int) -> None:
    """Draw nothing."""
