"""Which process this is, and whether another one is still alive: so that the work of a dead one can be taken over."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import final

__all__ = ["Owner", "this_process"]


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
    """Return when a process was started, in whatever words the system has for it; empty: there is none."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] in "ZX" else fields[19]  # a killed child that nobody has waited for yet is dead
    found = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip()
