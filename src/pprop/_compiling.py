"""How long kernels take to compile, and who is told that they do.

A kernel is compiled at its first use on a machine, and read from a cache later. A user who waits for that should know why,
and a time per epoch that includes it says nothing about the next training. The backends report here; what trains takes
the seconds of before from those of after; who speaks to people asks to be told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import final

# What to tell people. The figure is that of a first training on two cores that are free.
COMPILING = "Compiling the kernels for this machine (once; about 15 s)"
_MOMENT = 0.3  # seconds of compiling that nobody has to be told of


@final
class CompileClock:
    """Adds up the time in which a kernel is being compiled, in whichever thread.

    Examples
    --------
    >>> clock = CompileClock()
    >>> clock.begin()
    >>> time.sleep(0.01)
    >>> clock.end()
    >>> clock.seconds >= 0.01
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total, self._begin, self._going = 0.0, 0.0, 0
        self._listeners: list[Callable[[], object]] = []
        self._told = False

    @property
    def seconds(self) -> float:
        """Seconds spent so far."""
        with self._lock:
            return self._total + (time.perf_counter() - self._begin if self._going else 0.0)

    def begin(self) -> None:
        """Note that a kernel begins to be compiled; one that another one calls is part of that one."""
        with self._lock:
            if self._going == 0:
                self._begin = time.perf_counter()
            self._going += 1
            due = self._total > _MOMENT and not self._told and bool(self._listeners)
            self._told = self._told or due
            tell = self._listeners[-1] if due else None
        if tell is not None:
            tell()

    def end(self) -> None:
        """Note that what began last is compiled."""
        with self._lock:
            self._going -= 1
            if self._going == 0:
                self._total += time.perf_counter() - self._begin

    @contextmanager
    def telling(self, tell: Callable[[], object]) -> Generator[None]:
        """Call `tell` if kernels are compiled while the block runs and that takes longer than a moment.

        It is told once in the life of a clock, to the innermost block.
        """
        with self._lock:
            self._listeners.append(tell)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(tell)


# That of this process, whose compilers work for all its threads.
compiling = CompileClock()
