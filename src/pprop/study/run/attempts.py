"""Who computes what: each process claims the runs it is about to compute, so that none is computed twice.

A claim is an attempt that has not ended. It ends when its run is added, when the process lets go of it, or when another
process finds that its owner is dead: on the same machine by the process number and its start time, from another machine
when the claim has not been renewed for `LEASE` seconds. Attempts are kept, as a log of what was begun.
"""

from __future__ import annotations

import os
import platform
import subprocess
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Self, final

from pprop.study.store.row import KEY, SAME_KEY, RowKey, key_values
from pprop.study.store.store import Store


@final
@dataclass(frozen=True)
class Owner:
    """A process: where it runs, its number there, and when it was started (numbers are used again).

    Examples
    --------
    >>> here = this_process()
    >>> here.alive(), Owner(here.place, here.pid, "another time").alive(), Owner("elsewhere", 1, "").alive()
    (True, False, None)
    """

    place: str
    pid: int
    started: str

    def alive(self) -> bool | None:
        """Say whether the process still runs; None for one of another machine or container, of which nothing is seen."""
        return _started(self.pid) == self.started if self.place == _place() else None


def this_process() -> Owner:
    """Return the process that asks.

    >>> this_process().pid == os.getpid()
    True
    """
    return Owner(_place(), os.getpid(), _started(os.getpid()))


@cache
def _place() -> str:
    """Return a name for the machine since it was started and, in it, for the container that numbers its processes."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{platform.node()} {boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # not Linux
        return platform.node()


def _started(pid: int) -> str:
    """Return when a process was started, in the words of the system; empty: there is none."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] in "ZX" else fields[19]  # a killed child that was not waited for is dead
    found = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip()


# Seconds after which a claim from another machine counts as abandoned, unless it was renewed.
LEASE = 600.0
_RENEWAL = 30.0

_FINISHED = f"EXISTS (SELECT 1 FROM rows WHERE {' AND '.join(f'rows.{name} = attempts.{name}' for name in KEY)})"
_BEGUN = ", ".join((*KEY, "place", "pid", "started", "lease", "begun"))
_MARKS = ", ".join("?" * (len(KEY) + 5))
_MINE = "ended IS NULL AND place = ? AND pid = ? AND started = ?"


@final
class Attempts:
    """The claims of one process on runs of a store; renewed by a thread while the context is open, ended after it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pprop.study.cell import Seeds
    >>> keys = [RowKey("a1", "c1", "d1", Seeds(split, 0)) for split in range(3)]
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     with Attempts(store) as mine:
    ...         [len(mine.claim(keys, most=2)), len(mine.claim(keys)), len(mine.claim(keys))]
    [2, 1, 0]
    """

    def __init__(self, store: Store, owner: Owner | None = None) -> None:
        self._store, self._mine = store, astuple(this_process() if owner is None else owner)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="pprop-claims", daemon=True)

    def __enter__(self) -> Self:
        # a process that was killed right after it had written a row has left its claim open
        self._store.execute(f"UPDATE attempts SET ended = ? WHERE ended IS NULL AND {_FINISHED}", (time.time(),))
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._over.set()
        self._thread.join()
        try:
            self.release()
        except OSError:  # a full disk takes no note of this either; the claims end with this process
            if error is None:
                raise

    def claim(self, keys: Iterable[RowKey], most: int | None = None) -> list[RowKey]:
        """Return the first `most` of those runs that are neither finished nor being computed: they are now ours."""
        claimed: list[RowKey] = []
        with self._store.transaction():  # no other process claims meanwhile
            for key in keys:
                if most is not None and len(claimed) == most:
                    break
                if not self._store.has(key) and not self._claimed(key):
                    now = time.time()
                    values = (*key_values(key), *self._mine, now + LEASE, now)
                    self._store.execute(f"INSERT INTO attempts ({_BEGUN}) VALUES ({_MARKS})", values)
                    claimed.append(key)
        return claimed

    def elsewhere(self, keys: Iterable[RowKey]) -> int:
        """Return how many of those runs are being computed by other processes."""
        return sum(not self._store.has(key) and self._claimed(key) for key in keys)

    def release(self) -> None:
        """End all claims of this process."""
        self._store.execute(f"UPDATE attempts SET ended = ? WHERE {_MINE}", (time.time(), *self._mine))

    def _claimed(self, key: RowKey) -> bool:
        """Say whether a living process has a claim; end that of a dead one."""
        claims = f"SELECT number, place, pid, started, lease FROM attempts WHERE ended IS NULL AND {SAME_KEY}"
        for number, *claim in self._store.execute(claims, key_values(key)):
            if _valid(*claim):
                return True
            self._store.execute("UPDATE attempts SET ended = ? WHERE number = ?", (time.time(), number))
        return False

    def _renew(self) -> None:
        while not self._over.wait(_RENEWAL):
            with suppress(OSError):  # a full disk: the next row says so, in the thread that computes
                lease = time.time() + LEASE
                self._store.execute(f"UPDATE attempts SET lease = ? WHERE {_MINE}", (lease, *self._mine))


def count_claims(store: Store) -> int:
    """Return how many runs are being computed now, by any process.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     count_claims(store)
    0
    """
    found = store.execute(f"SELECT place, pid, started, lease FROM attempts WHERE ended IS NULL AND NOT {_FINISHED}")
    return sum(_valid(*claim) for claim in found)


def _valid(place: str, pid: int, started: str, lease: float) -> bool:
    """Say whether the owner of a claim is alive; of one on another machine the lease decides."""
    alive = Owner(place, pid, started).alive()
    return lease > time.time() if alive is None else alive
