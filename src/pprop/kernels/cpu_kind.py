"""The kind of CPU that kernels are compiled for: results have the same bits on machines of one kind."""

from __future__ import annotations

import platform
from functools import cache

__all__ = ["cpu_kind"]


@cache
def cpu_kind() -> str:
    """Return the architecture and LLVM's name of this CPU, such as ``"aarch64 neoverse-n1"``.

    >>> len(cpu_kind().split())
    2
    """
    from llvmlite import binding

    return f"{platform.machine()} {binding.get_host_cpu_name()}"
