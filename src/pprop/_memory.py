"""How much memory this process may use, to refuse early what cannot fit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pprop._control_groups import control_groups, text_of

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
