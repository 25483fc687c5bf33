"""How many cores this process may use: those that it is bound to, and no more than the quota of its container.

More threads than that do not help: the system stops them all for the rest of each period once the quota is used up, and the
threads of one loop wait for the slowest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from functools import cache
from pathlib import Path

from pprop._control_groups import control_groups, text_of

_LIBRARIES = ("NUMBA", "OMP", "OPENBLAS", "MKL")


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

    GNU OpenMP's otherwise spin, and on a busy machine hold up those that they wait for: beside four busy loops on two
    cores a step of a small module took eight times as long as with one thread.

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
