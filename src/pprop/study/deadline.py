"""An end to a computation at a given time, by the same way as Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["TimeUp", "end_at"]


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
        _stop(timer, fired)


def _stop(timer: threading.Timer, fired: threading.Event) -> None:
    """Stop the timer; if it fires while we do so, its interrupt comes now, and is not Ctrl-C."""
    timer.cancel()
    try:
        timer.join()
    except KeyboardInterrupt:
        if not fired.is_set():
            raise
