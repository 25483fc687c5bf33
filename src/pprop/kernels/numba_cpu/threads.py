"""How many threads a computation gets: never more than may run at once, and one where more would not make it quicker.

A loop that several threads share begins and ends with a wait for all of them. Where the cores are free that takes ten
microseconds; where other processes hold one of them it takes until that thread gets its turn, milliseconds, and a call
that needs 0.1 ms alone takes a hundred times as long. How busy a machine is cannot be asked everywhere, but it shows in
how long calls take. So a small loop is given to one thread, a large one to all of them, and those between to what has been
quicker of late. The bits of a result never depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numba
import numpy as np

from pprop._machine import usable_cores

# Numbers in the arrays of a call from which on threads share it at once.
LARGE = 1 << 22
_SHORT = 2e-4  # seconds: a call that one thread makes in less is never shared
_SPENT = 0.25  # seconds of one thread's calls before several are tried, which have to be compiled first
_TRIAL = 5  # calls of a trial
_AGAIN = 1.0  # seconds of shared calls until one thread is looked at again: the machine may have changed
_SHARE = 1 / 20  # of all time, what trials that failed may have cost


def usable_threads() -> int:
    """Return how many threads may share a computation: numba's number, and no more than the cores of this process.

    >>> usable_threads() >= 1
    True
    """
    return min(numba.get_num_threads(), usable_cores())


def size_of(arguments: Iterable[object]) -> int:
    """Return how many numbers arrays have, also those inside of tuples.

    >>> size_of((np.zeros(3), 7, (np.zeros((2, 2)), None)))
    7
    """
    total = 0
    for one in arguments:
        if isinstance(one, np.ndarray):
            total += one.size
        elif isinstance(one, tuple):
            total += size_of(one)
    return total


@final
class Trials:
    """What trials of all kernels have cost, so that on a busy machine they remain a small share of the time.

    One call that waits for another thread's turn may take a thousand times as long as it should.
    """

    def __init__(self) -> None:
        self._spent = self._lost = 0.0

    @property
    def affordable(self) -> bool:
        """Whether another one may be made."""
        return self._lost <= _SHARE * self._spent

    def spent(self, seconds: float) -> None:
        """Note the time of a call."""
        self._spent += seconds

    def lost(self, seconds: float) -> None:
        """Note by how much longer a call took than one thread would have."""
        self._lost += max(0.0, seconds)


@final
class Choice:
    """One thread or several for calls of about the same size, by how long calls have taken.

    Begins with one. Several are tried when it has worked for a while, and then at times; they stay for as long as their
    calls, on average, take less time than those of one.

    Examples
    --------
    >>> choice = Choice(Trials())
    >>> for _ in range(300):
    ...     choice.took(choice.several, 0.001 if choice.several else 0.002)
    >>> choice.several
    True
    """

    def __init__(self, trials: Trials) -> None:
        self._trials = trials
        self._one = self._many = 0.0  # mean seconds of a call, the last ones counting most
        self._since = 0.0  # seconds of calls since the other way was last looked at
        self._trial: list[float] | None = None
        self._look = False  # whether one thread is only looked at once more
        self._new = {False, True}  # which of the ways has not been gone yet: what is compiled has to be loaded first
        self.several = False

    def took(self, several: bool, seconds: float) -> None:
        """Note how long a call has taken, and choose for the next."""
        if several in self._new:
            self._new.discard(several)
            return
        self._trials.spent(seconds)
        self._since += seconds
        if not several:
            self._alone(seconds)
        elif self._trial is not None:
            self._try(self._trial, seconds)
        else:
            self._trials.lost(seconds - self._one)
            self._many += (seconds - self._many) / 8
            self.several = self._many < self._one
            if self._since > _AGAIN:
                self.several, self._look, self._since = False, True, 0.0

    def _alone(self, seconds: float) -> None:
        self._one = seconds if self._one == 0.0 else self._one + (seconds - self._one) / 8
        if self._look:
            self._look, self.several = False, self._many < self._one
        elif self._since > _SPENT and self._one > _SHORT and self._trials.affordable:
            self._trial, self.several, self._since = [], True, 0.0

    def _try(self, trial: list[float], seconds: float) -> None:
        trial.append(seconds)
        self._trials.lost(seconds - self._one)
        if len(trial) < _TRIAL and sum(trial) < _TRIAL * self._one:
            return
        self._trial, self._many = None, sum(trial) / len(trial)
        self.several = self._many < 0.9 * self._one


@final
class Choices:
    """The choice of one kernel for calls of each size, to a factor of two."""

    _trials = Trials()  # of all kernels

    def __init__(self) -> None:
        self._by_size: dict[int, Choice] = {}

    def of(self, size: int) -> Choice | None:
        """Return the choice for a call; None: it is so large that threads share it at once."""
        return None if size >= LARGE else self._by_size.setdefault(size.bit_length(), Choice(self._trials))
