"""What a process may use of the machine, Ctrl-C and time limits, and how long its kernels take to compile.

Memory is known to refuse early what cannot fit. Cores are those that the process is bound to, and no more than the quota of
its container. More threads than that do not help: the system stops them all for the rest of each period once the quota is
used up, and the threads of one loop wait for the slowest.

Python raises KeyboardInterrupt wherever it happens to be. Inside a callback of a compiled library (LLVM calls back while
numba compiles) the exception is printed and forgotten, and a long training would go on. `remember_interrupts` notes the
signal as well, and `check_interrupt`, called once an epoch, raises it again. `end_at` ends a computation in the same way.

A kernel is compiled at its first use on a machine, and read from a cache later. A user who waits for that should know why,
and a time per epoch that includes it says nothing about the next training. The backends report to `compiling`; what trains
takes the seconds of before from those of after; who speaks to people asks to be told.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, MutableMapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    import torch

# By the version of control groups: a group's limit, what it uses, and the parts of
# that which the system gives up when memory is short.
_GROUP_FILES = {
    2: ("memory.max", "memory.current", ("inactive_file", "active_file")),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")),
}

# Of the usable memory that a training may take: the graph as loaded, other programs and the file cache need some.
CPU_SHARE = 0.6
# Of the GPU's free memory that a training may use: compiled kernels, captured graphs and torch's allocator need some.
GPU_SHARE = 0.7
# What counts the machine's cores, and not those that a process may use.
_LIBRARIES = ("NUMBA", "OMP", "OPENBLAS", "MKL")


def usable_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes this process may take, or None where the system does not report it.

    That is the machine's memory, or what is left of a smaller limit: of the process (RLIMIT_AS, RLIMIT_DATA), or of its
    control group, as of a container, and the groups around it. Files are read below `root`.

    >>> usable_memory() != 0
    True
    """
    found = [*_machine(), *_left_to_groups(root), *_left_to_process(root)]
    return max(0, min(found)) if found else None


def free_device_memory(device: torch.device) -> int | None:
    """Return the free bytes of a GPU, with those that torch holds for later; None of another device.

    >>> import torch
    >>> free_device_memory(torch.device("cpu"))
    """
    if device.type != "cuda":
        return None
    import torch

    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def memory_limit(device: str) -> int:
    """Return how many bytes a training may use: a share of the usable memory, or of the GPU's free memory.

    Where the system does not report its memory, there is no limit.
    """
    if device == "cpu":
        memory = usable_memory()
        return 2**62 if memory is None else int(CPU_SHARE * memory)
    import torch

    free = free_device_memory(torch.device(device))
    return 2**62 if free is None else int(GPU_SHARE * free)


def _machine() -> Iterator[int]:
    try:
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # no such query on this platform
        return


def _left_to_groups(root: Path) -> Iterator[int]:
    """Yield what is left of the limit of each control group that this process is in."""
    for version, group in control_groups("memory", root):
        limit_file, use_file, reclaimed = _GROUP_FILES[version]
        limit, use = text_of(group / limit_file).strip(), text_of(group / use_file).strip()
        if limit.isdigit() and use.isdigit():  # not "max"
            parts = dict(part.split(" ", 1) for part in text_of(group / "memory.stat").splitlines())
            yield int(limit) - int(use) + sum(int(parts.get(name, 0)) for name in reclaimed)


def _left_to_process(root: Path) -> Iterator[int]:
    try:
        import resource
    except ImportError:  # Windows has none
        return
    pages = [int(count) for count in text_of(root / "proc/self/statm").split()] or [0] * 7
    for limit, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
        soft, _ = resource.getrlimit(limit)
        if soft != resource.RLIM_INFINITY:
            yield soft - used * resource.getpagesize()


def usable_cores() -> int:
    """Return how many threads of this process can run at once.

    >>> usable_cores() >= 1
    True
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(bound, core_quota() or bound))


@cache
def core_quota(root: Path = Path("/")) -> int | None:
    """Return how many whole cores the quota of the control group allows, at least one; None: there is no quota.

    It is that of this process's group or of a group around it, whichever is least. Files are read below `root`.
    """
    least = min(_quotas(root), default=None)
    return None if least is None else max(1, int(least))


def _quotas(root: Path) -> Iterator[float]:
    for version, group in control_groups("cpu", root):
        if version == 2:
            found = text_of(group / "cpu.max").split()
        else:
            found = [text_of(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        if len(found) == 2 and all(word.isdigit() for word in found) and int(found[1]) > 0:  # not "max", not -1
            yield int(found[0]) / int(found[1])


def wait_asleep(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let threads that wait give their core away, if torch is not loaded yet and the user has not chosen otherwise.

    GNU OpenMP's otherwise spin, and on a busy machine hold up those that they wait for. `benchmarks/busy.py` measures by how
    much, with torch loaded before pprop and after it.

    >>> chosen = {"OMP_WAIT_POLICY": "ACTIVE"}
    >>> wait_asleep(chosen)
    >>> chosen["OMP_WAIT_POLICY"]
    'ACTIVE'
    """
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def settle_threads(environment: MutableMapping[str, str]) -> None:
    """Tell libraries that count the machine's cores of a smaller number, in a process of ours before they are loaded.

    What its user has chosen stays.
    """
    cores = usable_cores()
    if cores < (os.cpu_count() or 1):
        for library in _LIBRARIES:
            environment.setdefault(f"{library}_NUM_THREADS", str(cores))


def control_groups(controller: str, root: Path = Path("/")) -> Iterator[tuple[int, Path]]:
    """Yield version (1 or 2) and folder of each control group with a controller that this process is in, inner ones first.

    In a container the path of its group may be that on the host, while the folder of the hierarchy is the group itself:
    so a folder that is not there is no error. Files are read below `root`.

    >>> all(version in (1, 2) for version, _ in control_groups("cpu"))
    True
    """
    for line in text_of(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        # version 1 has a hierarchy for each set of controllers, under their names and often under each name alone
        folders = {"": [""], controller: [controller]}.get(controllers, [controllers, controller])
        inner = PurePosixPath(path.lstrip("/"))
        for place in (inner, *inner.parents):
            for folder in folders:
                yield (1 if controllers else 2), root / "sys/fs/cgroup" / folder / place


def text_of(file: Path) -> str:
    """Return the content of a file of the system, or nothing if it cannot be read."""
    try:
        return file.read_text()
    except OSError:
        return ""


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
