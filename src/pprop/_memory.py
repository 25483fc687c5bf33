"""How much memory this machine has, for refusing early what cannot fit."""

from __future__ import annotations

import os

__all__ = ["physical_memory"]


def physical_memory() -> int | None:
    """Return the machine's memory in bytes, or None where the system does not tell.

    >>> physical_memory() != 0
    True
    """
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # no such query on this platform
        return None
