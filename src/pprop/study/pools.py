"""Rows that may be compared and averaged: of one cell, with one revision and one version of the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import final

from pprop.study.cell import Cell
from pprop.study.row import Row
from pprop.study.store import Store

__all__ = ["Pool", "newest_first", "pools"]


@final
@dataclass(frozen=True, eq=False)
class Pool:
    """Rows of one cell with one revision and one data version.

    Attributes
    ----------
    cell, revision, data
        What they share.
    rows
        In the order of their seeds.
    """

    cell: Cell
    revision: str
    data: str
    rows: tuple[Row, ...]

    @property
    def newest(self) -> str:
        """When the last of the rows was made."""
        return max(row.created for row in self.rows)


def pools(store: Store, cell: Cell) -> list[Pool]:
    """Return the pools of a cell, that with the newest row first. A table uses one and names the others.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     pools(store, Cell("mlp", {}, "citeseer"))
    []
    """

    def versions(row: Row) -> tuple[str, str]:
        return row.key.revision, row.key.data

    rows = sorted(store.rows(cell.config), key=versions)  # stable: seeds stay in order
    found = [Pool(cell, revision, data, tuple(group)) for (revision, data), group in groupby(rows, key=versions)]
    return newest_first(found)


def newest_first(found: Iterable[Pool]) -> list[Pool]:
    """Return pools of one cell in the order in which they are shown.

    >>> newest_first([])
    []
    """
    return sorted(found, key=lambda pool: (pool.newest, pool.revision, pool.data), reverse=True)
