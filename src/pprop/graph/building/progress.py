"""A live line on standard error for a stage of work whose size is known."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from pprop._process import check_interrupt


@contextmanager
def show_stage(show: bool | None, title: str, total: int) -> Generator[Callable[[int], None]]:
    """Draw a line while the block runs, if `show`, or if it is None and standard error is a terminal.

    The block calls what it is given with the units of work that are done.

    Examples
    --------
    >>> with show_stage(False, "Reading edges", 10) as tick:
    ...     tick(10)
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield _silent
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description:<22}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(title, total=max(total, 1))

        def draw(units: int) -> None:
            check_interrupt()
            bar.advance(task, units)

        yield draw


def _silent(units: int) -> None:
    """Draw nothing."""
    check_interrupt()
