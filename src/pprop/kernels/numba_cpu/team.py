"""A few threads that work through one compiled function together and wait for each other inside it.

Every thread calls the same serial function with its own number. Between two phases it meets the others at a barrier in
memory; that costs well under a microsecond, where a parallel loop of numba's costs several and is compiled apart.
A thread that waits long sleeps, so that its core is another's and it is early to wake: on a busy machine one that spins, or
only yields, uses up its share of time with waiting, and the team is two to three times as slow as one thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import final

import numpy as np
from numba import types
from numba.extending import intrinsic

from pprop.kernels.numba_cpu._jit import serial
from pprop.kernels.numba_cpu.vectors import pointer

_SPINS = 20_000  # looks, a few tens of microseconds: a barrier between free cores takes less than one
_NAP = 20  # microseconds
_CAN_SLEEP = sys.platform != "win32"
_sleep = types.ExternalFunction("usleep", types.int32(types.uint32)) if _CAN_SLEEP else None


@intrinsic
def fetch_add(typing, array, index, amount):
    """Add to an element of an int64 array as one step that no other thread can part; return what it was before."""

    def codegen(context, builder, sig, args):
        amount_value = context.cast(builder, args[2], sig.args[2], types.int64)
        return builder.atomic_rmw("add", pointer(context, builder, sig, args), amount_value, "seq_cst")

    return types.int64(array, index, amount), codegen


@intrinsic
def _look(typing, array, index):
    """Read an element of an int64 array as it is in memory now."""

    def codegen(context, builder, sig, args):
        return builder.load_atomic(pointer(context, builder, sig, args), "seq_cst", 8)

    return types.int64(array, index), codegen


@serial
def meet(desk, threads):
    """Wait until every thread of the team is here, or one of them has failed and will not come.

    `desk` holds how many have come, how often they have met, and whether one has failed.
    """
    if threads == 1:
        return
    met = _look(desk, 1)
    if fetch_add(desk, 0, 1) == threads - 1:
        fetch_add(desk, 0, -threads)
        fetch_add(desk, 1, 1)
        return
    waited = 0
    while _look(desk, 1) == met and _look(desk, 2) == 0:
        waited += 1
        if _CAN_SLEEP and waited % _SPINS == 0:
            _sleep(np.uint32(_NAP))  # pyright: ignore[reportOptionalCall]


@final
class Team:
    """Runs a function once per thread, the caller being thread 0.

    Examples
    --------
    >>> seen, team = [], Team(2)
    >>> team.run(seen.append)
    >>> team.close()
    >>> sorted(seen)
    [0, 1]
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.desk = np.zeros(3, dtype=np.int64)
        self._others = ThreadPoolExecutor(threads - 1, "pprop-team") if threads > 1 else None

    def run(self, function: Callable[[int], object]) -> None:
        """Call function(0), ..., function(threads - 1), each in its own thread, and wait for all.

        An error in one of them, or Ctrl-C, is raised when the others are through: they no longer wait for it. What they
        have computed by then is worth nothing, and the team is of no further use.
        """
        if self._others is None:
            function(0)
            return

        def work(thread: int) -> None:
            try:
                function(thread)
            except BaseException:
                self.desk[2] = 1
                raise

        pending: list[Future[None]] = []
        try:
            pending += [self._others.submit(work, thread) for thread in range(1, self.threads)]
            work(0)
        except BaseException:
            self.desk[2] = 1  # also when the interruption came between two of these lines
            wait(pending)
            raise
        for one in pending:
            one.result()

    def meet(self) -> None:
        """Wait, inside the function that the threads run, until every one of them is here."""
        if self.threads > 1:
            meet(self.desk, self.threads)

    def close(self) -> None:
        """End the threads."""
        if self._others is not None:
            self._others.shutdown()
