"""Progress of a training on standard error: how fast it goes and how long it may still take.

When a run will stop is not known in advance, but the runs that have stopped say something about the others. A run is taken to end
x epochs after the earliest one, its risk of ending growing in proportion to x:

    P(x > t) = exp(-s t^2 / 2),   s = 2 (runs ended) / (sum of x^2 over all runs begun)

with s by maximum likelihood. The sum goes over the runs still going, too, with the x they have reached: those that end
first are the short ones, and their mean alone would promise too much.

How good it is. A constant risk was tried first; on the last epochs in results/core_accuracy.json (four cells of 20 runs)
it was 2 to 10 times too long where the growing risk was 0.6 to 2.3 times right. The form was chosen on those very
trainings, so these factors are no independent check. Even where the model holds, the earliest end seen lies later than
the earliest possible one, and with 100 runs side by side the estimate is too short: by a quarter when four fifths of the
work are done, by a twelfth at 95 %. With runs in smaller batches that bias is gone.

With fewer than five ended runs there is no such estimate, and the cap on epochs gives an upper bound instead.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import final

from pprop._compiling import COMPILING, compiling
from pprop._words import duration

_PAUSE = 0.1  # seconds between two updates of the line: an epoch may be much shorter
LEAST_ENDED = 5  # runs; the relative error is about one over the square root of their number


@final
class Pace:
    """Runs done, epochs per second and time left, from the reports of a training loop.

    Runs begin in batches, whose runs make their epochs together; the next batch begins when the last run of one ends.

    Parameters
    ----------
    runs
        R.
    batch
        Runs that are trained together; 1 where they are trained one after another.
    max_epochs
        Epochs after which a run ends in any case.
    refill
        Whether a new run takes the place of every one that ends, instead of a new batch that of the last.

    Examples
    --------
    >>> pace = Pace(runs=2, batch=1, max_epochs=100)
    >>> pace.report(10, 0, seconds=1.0)
    >>> pace.report(20, 0, seconds=2.0)
    >>> pace.epochs_per_second, pace.time_left()
    (10.0, 'at most 18 s')
    """

    def __init__(self, runs: int, batch: int, max_epochs: int, *, refill: bool = False) -> None:
        self._runs, self._batch, self._cap, self._refill = runs, batch, max_epochs, refill
        self._ended = self._batch_begin = self._epoch = 0
        self._work = 0  # epochs of all runs together
        self._last_epochs: list[tuple[int, int]] = []  # (epoch, runs that ended at it)
        self._first: tuple[float, int] | None = None  # when the first report came, and the work until then
        self._seconds = 0.0

    @property
    def epochs_per_second(self) -> float:
        """Epochs of all runs together, since the first report: what came before it was set-up and compilation."""
        if self._first is None or self._seconds <= self._first[0]:
            return 0.0
        return (self._work - self._first[1]) / (self._seconds - self._first[0])

    def report(self, epoch: int, runs_ended: int, seconds: float, work: int | None = None) -> None:
        """Take note: the runs of this batch have made `epoch` epochs, `runs_ended` of all runs have ended.

        `work` is the number of epochs of all runs together, where it does not follow from the others.
        """
        self._work = self._work + (epoch - self._epoch) * self._going if work is None else work
        self._epoch, self._seconds = epoch, seconds
        if runs_ended > self._ended:
            self._last_epochs.append((epoch, runs_ended - self._ended))
            self._ended = runs_ended
        if self._first is None:
            self._first = seconds, self._work
        if self._going == 0:
            self._batch_begin, self._epoch = self._ended, 0

    @property
    def _going(self) -> int:
        """Runs of this batch that have not ended."""
        if self._refill:
            return min(self._batch, self._runs - self._ended)
        return min(self._batch, self._runs - self._batch_begin) - (self._ended - self._batch_begin)

    def epochs_left(self) -> tuple[float, bool]:
        """Return the epochs of all runs still to make, and whether that is an upper bound.

        Examples
        --------
        >>> pace = Pace(runs=10, batch=10, max_epochs=1000)
        >>> pace.report(100, 0, seconds=1.0)
        >>> pace.epochs_left()
        (9000, True)
        >>> for ended in range(1, 6):
        ...     pace.report(100 + 10 * ended, ended, seconds=1.0 + 0.1 * ended)
        >>> left, bounded = pace.epochs_left()  # five ended at 110 to 150, five are at 150
        >>> round(left), bounded
        (98, False)
        """
        going, waiting = self._going, self._runs - self._ended - self._going
        bound = going * (self._cap - self._epoch) + waiting * self._cap
        if self._ended < LEAST_ENDED:
            return bound, True
        earliest = min(epoch for epoch, _ in self._last_epochs)
        reached = max(0, self._epoch - earliest)
        squares = sum(runs * (epoch - earliest) ** 2 for epoch, runs in self._last_epochs) + going * reached**2
        growth = 2 * self._ended / max(squares, 1)
        left = going * (max(0, earliest - self._epoch) + _mean_rest(growth, reached))
        left += waiting * (earliest + _mean_rest(growth, 0))
        return min(left, bound), False

    def time_left(self) -> str:
        """Return the time left in words, or nothing if it is not known."""
        (left, bounded), rate = self.epochs_left(), self.epochs_per_second
        if rate == 0 or self._ended == self._runs:
            return ""
        return f"{'at most' if bounded else 'about'} {duration(left / rate)}"


def _mean_rest(growth: float, reached: float) -> float:
    """Return the mean of x - t given x > t, for P(x > t) = exp(-growth t^2 / 2) and t = reached.

    >>> round(_mean_rest(0.02, 0.0), 2), round(_mean_rest(0.02, 10.0), 2), round(_mean_rest(0.02, 1000.0), 4)
    (8.86, 3.79, 0.05)
    """
    z = reached * math.sqrt(growth / 2)
    if z > 5:  # the limit; the product below would be infinity times zero
        return 1 / (growth * reached)
    return math.sqrt(math.pi / (2 * growth)) * math.exp(z * z) * math.erfc(z)


# What a training calls after an epoch, or a few of them: the runs now in training have made so many epochs (those that
# are trained at different paces, on average), so many of all runs have ended, and all have made so many epochs together.
Report = Callable[[int, int, int], None]


@contextmanager
def show_progress(
    show: bool | None, runs: int, *, batch: int, max_epochs: int, refill: bool = False
) -> Generator[Report]:
    """Draw a live line while the block runs, if `show`, or if it is None and standard error is a terminal.

    Above it stands a word on kernels that are being compiled. The line says how many runs have ended, how many epochs all
    runs together make in a second, and how long it may still take.

    Parameters
    ----------
    show
        Whether to draw.
    runs
        How many runs there are.
    batch
        How many of them are trained together.
    max_epochs
        Epochs after which a run ends in any case.
    refill
        Whether a new run takes the place of every one that ends.

    Examples
    --------
    >>> with show_progress(False, 1, batch=1, max_epochs=10) as report:
    ...     report(1, 0, 1)
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield _silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs, epoch {task.fields[epoch]}, {task.fields[rate]:,.0f} epochs/s,"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task("Training", total=runs, epoch=0, rate=0.0, left="")
        pace = Pace(runs, batch, max_epochs, refill=refill)
        begin = time.perf_counter()
        drawn = (0.0, 0)  # when, and how many runs had ended

        def draw(epoch: int, runs_ended: int, work: int) -> None:
            nonlocal drawn
            now = time.perf_counter() - begin
            pace.report(epoch, runs_ended, now, work)
            if now < drawn[0] + _PAUSE and runs_ended == drawn[1]:
                return
            drawn, left = (now, runs_ended), pace.time_left()
            text = f"{left} left" if left else ""
            bar.update(task, completed=runs_ended, epoch=epoch, rate=pace.epochs_per_second, left=text)

        with compiling.telling(lambda: bar.console.print(COMPILING)):  # above the line
            yield draw


def _silent(epoch: int, runs_ended: int, work: int) -> None:
    """Draw nothing."""
