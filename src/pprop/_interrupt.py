"""Ctrl-C that is not lost, and a time limit that ends a computation in the same way.

Python raises KeyboardInterrupt wherever it happens to be. Inside a callback of a compiled library (LLVM calls back while
numba compiles) the exception is printed and forgotten, and a long training would go on. `remember_interrupts` notes the
signal as well, and `check_interrupt`, called once an epoch, raises it again.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_pending = threading.Event()


class _Noted:
    """Call a handler of SIGINT, and note that it has raised."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        try:
            self.handler(number, frame)
        except BaseException:  # of PySpark after its context has ended also an AttributeError
            _pending.set()
            raise KeyboardInterrupt from None


@contextmanager
def remember_interrupts() -> Generator[None]:
    """Note Ctrl-C while the block runs; in the main thread.

    A handler that the program or a library has set (PySpark sets one and leaves it) is called as before: if it raises, that is
    noted, and if it does not, nothing is.

    >>> with remember_interrupts():
    ...     check_interrupt()
    """
    before = signal.getsignal(signal.SIGINT)
    within = isinstance(before, _Noted)  # a block in a block
    if not callable(before) or within or threading.current_thread() is not threading.main_thread():
        yield
        return
    _pending.clear()
    signal.signal(signal.SIGINT, _Noted(before))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _pending.clear()


def check_interrupt() -> None:
    """Raise KeyboardInterrupt if there was one that was lost."""
    if _pending.is_set() and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


class TimeUp(Exception):  # noqa: N818  no error: the user asked for it
    """The time limit has come."""


@contextmanager
def end_at(moment: float | None) -> Generator[None]:
    """Raise TimeUp in the block when `time.monotonic` reaches `moment`; None: never.

    The main thread is interrupted as by Ctrl-C, which training loops answer within an epoch. In another thread, which
    cannot be interrupted, the block is not ended.

    Examples
    --------
    >>> try:
    ...     with end_at(time.monotonic() + 0.05):
    ...         time.sleep(10)
    ... except TimeUp:
    ...     print("over")
    over
    """
    if moment is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    fired = threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    def fire() -> None:
        fired.set()
        signal.pthread_kill(main, signal.SIGINT)

    timer = threading.Timer(max(0.0, moment - time.monotonic()), fire)
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        if fired.is_set():
            raise TimeUp from None
        raise
    finally:
        timer.cancel()
        try:
            timer.join()
        except KeyboardInterrupt:
            if not fired.is_set():  # if it has fired while we stop it, this is its interrupt, and not Ctrl-C
                raise
