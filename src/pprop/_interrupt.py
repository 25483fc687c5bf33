"""Ctrl-C that is not lost.

Python raises KeyboardInterrupt wherever it happens to be. Inside a callback of a compiled library (LLVM calls back while
numba compiles) the exception is printed and forgotten, and a long training would go on. `remember_interrupts` notes the
signal as well, and `check_interrupt`, called once an epoch, raises it again.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["check_interrupt", "remember_interrupts"]

_pending = threading.Event()


@contextmanager
def remember_interrupts() -> Generator[None]:
    """Note Ctrl-C while the block runs; in the main thread of a program that has not set a handler of its own.

    >>> with remember_interrupts():
    ...     check_interrupt()
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: object) -> None:
        _pending.set()
        raise KeyboardInterrupt

    _pending.clear()
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _pending.clear()


def check_interrupt() -> None:
    """Raise KeyboardInterrupt if there was one that nobody has seen."""
    if _pending.is_set() and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt
