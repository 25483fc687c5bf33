"""The one decorator of this backend's kernels: a compile cache that notices changes, and how many threads make a call.

A call never gets more threads than may run at once, and one where more would not make it quicker. A loop that several
threads share begins and ends with a wait for all of them. Where the cores are free that takes ten microseconds; where other
processes hold one of them it takes until that thread gets its turn, milliseconds, and a call that needs 0.1 ms alone takes
a hundred times as long. How busy a machine is cannot be asked everywhere, but it shows in how long calls take. So a small
loop is given to one thread, a large one to all of them, and those between to what has been quicker of late. The bits of a
result never depend on it.
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, final

import numba
import numpy as np
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

from pprop._process import compiling, usable_cores

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
class ThreadChoice:
    """One thread or several for calls of about the same size, by how long calls have taken.

    Begins with one. Several are tried when it has worked for a while, and then at times; they stay for as long as their
    calls, on average, take less time than those of one.

    Examples
    --------
    >>> choice = ThreadChoice(Trials())
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
class ThreadChoices:
    """The choice of one kernel for calls of each size, to a factor of two."""

    _trials = Trials()  # of all kernels

    def __init__(self) -> None:
        self._by_size: dict[int, ThreadChoice] = {}

    def of(self, size: int) -> ThreadChoice | None:
        """Return the choice for a call; None: it is so large that threads share it at once."""
        return None if size >= LARGE else self._by_size.setdefault(size.bit_length(), ThreadChoice(self._trials))


# Rows in one task. Part of the definition of the sums that run over nodes, so it never depends on the machine.
ROW_BLOCK = 256


_FOLDER = Path(__file__).parent
_PACKAGE = "pprop.kernels.numba_cpu"
# A regular expression, since all sources are read whenever kernels are imported, and ast takes 0.1 s for them.
_IMPORT = re.compile(r"^ *from (pprop\.kernels\.[\w.]+) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)


@cache
def made_of(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return what the source of a module of this backend, named by its file, brings into the code of its kernels.

    These are the modules of this backend that it imports, itself among them, and what it takes from other modules of
    `pprop.kernels`: each of their constants that it imports, as "NAME = value".

    >>> [sorted(part) for part in made_of("attention")]
    [['_jit', 'attention', 'bits', 'team'], ['EDGES = 2', 'SLOPE = 0.2']]
    """
    modules, constants = {name}, set[str]()
    for origin, folded, plain in _IMPORT.findall((_FOLDER / f"{name}.py").read_text(encoding="utf-8")):
        names = re.findall(r"\w+", re.sub(r"#.*| as \w+", "", folded or plain))
        if origin == _PACKAGE:
            modules.update(names)
        elif origin.startswith(f"{_PACKAGE}."):
            modules.add(origin.removeprefix(f"{_PACKAGE}."))
        else:
            values = vars(import_module(origin))
            constants.update(f"{one} = {values[one]!r}" for one in names if one.isupper())
    return frozenset(modules), frozenset(constants)


@cache
def stamp_of(name: str) -> str:
    """Return a digest of all sources and constants that decide how the kernels of a module compile."""
    modules, constants, rest = set[str](), set[str](), [name]
    while rest:
        if (one := rest.pop()) not in modules:
            modules.add(one)
            imported, values = made_of(one)
            rest += imported
            constants |= values
    digest = hashlib.sha256("\n".join(sorted(constants)).encode())
    for one in sorted(modules):
        digest.update((_FOLDER / f"{one}.py").read_bytes())
    return digest.hexdigest()


# Whether numba's threads belong to a process that this one was forked from. OpenMP ends or hangs who calls them then.
_threads_lost = False


def _after_fork_in_child() -> None:
    global _threads_lost
    global_compiler_lock.release()
    try:
        numba.threading_layer()  # pyright: ignore[reportPrivateImportUsage]  documented, but not in __all__
    except ValueError:  # not started by the parent, so that this process may start its own
        return
    _threads_lost = True


@final
class _Reported(event.Listener):
    """Reports to the clock what numba compiles for this package; a program may have functions of its own."""

    def __init__(self) -> None:
        self._depth, self._collects = 0, False

    def on_start(self, event: Any) -> None:
        if self._own(event):
            compiling.begin()
            if (
                self._depth == 0
            ):  # the compiler makes objects by the million, and a search through all takes a tenth of its time
                self._collects = gc.isenabled()
                gc.disable()
            self._depth += 1

    def on_end(self, event: Any) -> None:
        if self._own(event):
            self._depth -= 1
            if self._depth == 0 and self._collects:
                gc.enable()
            compiling.end()

    @staticmethod
    def _own(event: Any) -> bool:
        return event.data["dispatcher"].py_func.__module__.startswith("pprop.")


event.register("numba:compile", _Reported())

if hasattr(os, "register_at_fork"):  # a child must not wait for a thread of its parent that compiles
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=_after_fork_in_child,
    )


def quiet() -> np.errstate:
    """Let numbers that a float type cannot hold become infinite or NaN without a warning, as they do in compiled code."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a kernel whose `prange` loops threads share where that is quicker, cached on disk as `_stamped` says.

    It is compiled twice, each when it is first needed: as a serial function, in a third of the time, and with threads.
    `ThreadChoices` says which of them makes a call. Both have the same bits, since no sum depends on
    the number of threads. In a child forked from a process that has started numba's threads it is always the serial one.
    """
    threaded = _stamped(numba.njit(parallel=True, cache=True, nogil=True, error_model="numpy")(function))
    assert isinstance(function, FunctionType)
    name, defaults, closure = function.__name__, function.__defaults__, function.__closure__
    twin = FunctionType(function.__code__, function.__globals__, name, defaults, closure)
    twin.__module__, twin.__qualname__ = function.__module__, f"{function.__qualname__}_alone"  # a cache of its own
    alone, choices = serial(twin), ThreadChoices()

    def shared(threads: int, arguments: tuple[Any, ...]) -> Any:
        own = numba.get_num_threads()
        if threads == own:
            return threaded(*arguments)
        numba.set_num_threads(threads)
        try:
            return threaded(*arguments)
        finally:
            numba.set_num_threads(own)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        if _threads_lost or (threads := usable_threads()) == 1:
            return alone(*arguments)
        choice = choices.of(size_of(arguments))
        if choice is None:
            return shared(threads, arguments)
        several, compiled, begin = choice.several, compiling.seconds, time.perf_counter()
        result = shared(threads, arguments) if several else alone(*arguments)
        choice.took(several, time.perf_counter() - begin - (compiling.seconds - compiled))
        return result

    return call


def serial(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that one thread runs from start to end; cached as a kernel is."""
    return _stamped(numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function as a part of every serial function that calls it, by LLVM's inliner.

    A call that passes arrays costs about 100 ns, more than a short row of a sparse matrix.
    """
    return numba.njit(nogil=True, error_model="numpy", forceinline=True)(function)


def _stamped(dispatcher: Any) -> Any:
    cache_file = getattr(dispatcher._cache, "_cache_file", None)
    module = dispatcher.py_func.__module__
    if cache_file is not None and module.startswith(f"{_PACKAGE}."):
        cache_file._source_stamp = stamp_of(module.removeprefix(f"{_PACKAGE}."))
        cache_file._load_index = _or_nothing(cache_file._load_index)
    return dispatcher


def _or_nothing(load: Callable[[], dict[Any, str]]) -> Callable[[], dict[Any, str]]:
    """Return how to read the index of a cache: empty where it names a module or function that is gone since."""

    def index() -> dict[Any, str]:
        try:
            return load()
        except (ImportError, AttributeError):
            return {}

    return index


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function into every kernel that calls it: passing arrays costs more than a short row."""
    return numba.njit(inline="always", error_model="numpy")(function)
