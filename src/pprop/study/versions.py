"""Which version of the code a cell would run through now."""

from __future__ import annotations

from pprop.study.cell import Cell
from pprop.study.code_version import code_version

__all__ = ["current_code"]


def current_code(cell: Cell, backend: str) -> str:
    """Return the version of the code that a cell, also of one's own model, would run through now.

    >>> len(current_code(Cell("mlp", {}, "citeseer"), "numba"))
    12
    """
    if ":" in cell.model:
        from pprop.study.own_model import own_version

        return own_version(cell, backend)
    return code_version(cell, backend)
