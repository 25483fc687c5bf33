"""The rows of a study in one SQLite file, each durable the moment it is added."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, final

from pprop._errors import FormatError, InputError
from pprop.study.cell import Cell, Seeds
from pprop.study.revisions import recorded_revision, stored_names
from pprop.study.store.file import check_file, connect_unchanged, damaged, is_empty, set_up, translated
from pprop.study.store.row import COLUMNS, KEY, SAME_KEY, Row, RowKey, decode, encode, key_values, same_result

# Name of the file in a study's folder.
FILE = "rows.sqlite"

_PATIENCE = 60  # seconds to wait for another process that is writing; it needs milliseconds

_COLUMN_LIST = ", ".join(COLUMNS)
_MARKS = ", ".join("?" * len(COLUMNS))
_KEY_LIST = ", ".join(KEY)


@final
@dataclass(frozen=True)
class RowGroup:
    """Rows of one cell with one revision and one data version, in numbers.

    Attributes
    ----------
    cell, config, revision, data
        What they share.
    runs
        How many there are.
    seconds
        What they took together.
    newest
        When the last one was added (ISO 8601, UTC).
    backend, devices
        What computed them (a revision is one of a backend, too), and where.
    """

    cell: Cell
    config: str
    revision: str
    data: str
    runs: int
    seconds: float
    newest: str
    backend: str
    devices: tuple[str, ...]


@final
class Store:
    """The rows of a study. Open one with `Store.open`; several threads and processes may.

    SQLite in WAL mode with full synchronisation: a row is on the disk when `add` returns, or not there at all.

    Examples
    --------
    >>> import tempfile
    >>> from pprop.study.store.row import example_row
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder), create=True) as store:
    ...     store.add(example_row(split=5)), store.add(example_row(split=5)), store.has(example_row(split=5).key)
    (True, False, True)
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._db, self._lock = path, connection, threading.RLock()
        connection.create_function("revision", 1, recorded_revision, deterministic=True)

    @classmethod
    def open(cls, folder: Path, create: bool = False) -> Store:
        """Open the store of a study's folder; make both first if `create`.

        One that this user may not write to is opened for reading, unless `create`.

        Raises
        ------
        FileNotFoundError
            There is none, and `create` is False.
        FormatError
            The file is damaged or no store. It is left as it is.
        OSError
            It cannot be read or written, or the disk is full.
        """
        path = Path(folder) / FILE
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not path.is_file():
            raise FileNotFoundError(f"There is no study in {str(folder)!r}: it has no file {FILE!r}.")
        if path.exists() and not path.is_file():
            raise FormatError(f"The store {str(path)!r} is not a regular file. Choose another folder.")
        if path.exists() and not is_empty(path):
            check_file(path)
        elif not create:
            raise FormatError(f"The store {str(path)!r} is empty: it was never begun, or has lost all its rows.")
        with translated(path):
            if not create and not all(os.access(at, os.W_OK) for at in (path, path.parent)):  # SQLite writes to both
                return cls(path, connect_unchanged(path))
            connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            set_up(connection, path)
        return cls(path, connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. What was added stays."""
        with self._lock:
            self._db.close()

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, as one transaction unless another was begun, and return what it selects."""
        with self._lock, translated(self.path):
            return self._db.execute(sql, values).fetchall()

    def add(self, row: Row) -> bool:
        """Write a row; it is on the disk when this returns. Return False for one that is there already.

        A row that is there without its predictions gets those of the one given.

        Raises
        ------
        InputError
            The row there is another one: the same key with a different result.
        OSError
            The disk is full. All other rows are intact.
        """
        where, same = _same_key(row.key)
        # One statement, so that Ctrl-C comes before the row is written or after, and never undoes it.
        absent = f"NOT EXISTS (SELECT 1 FROM rows WHERE {where})"
        insert = f"INSERT INTO rows ({_COLUMN_LIST}) SELECT {_MARKS} WHERE {absent} RETURNING 1"
        new = self.execute(insert, (*encode(row), *same))
        if not new:
            (there,) = self._select(f"WHERE {where}", same)
            if not same_result(there, row):
                raise InputError(
                    f"The store {str(self.path)!r} has another result for split {row.key.seeds.split}, initialisation "
                    f"{row.key.seeds.init} of {row.cell}. The one in the store was kept."
                )
            if len(row.predictions) > len(there.predictions):
                whole = encode(replace(there, predictions=row.predictions))
                self.execute(f"REPLACE INTO rows ({_COLUMN_LIST}) VALUES ({_MARKS})", whole)
            return False
        finished = (time.time(), *key_values(row.key))
        self.execute(f"UPDATE attempts SET ended = ? WHERE ended IS NULL AND {SAME_KEY}", finished)
        return True

    def has(self, key: RowKey) -> bool:
        """Say whether a run is finished."""
        where, same = _same_key(key)
        return bool(self.execute(f"SELECT 1 FROM rows WHERE {where}", same))

    def keys(self, config: str | None = None) -> set[RowKey]:
        """Return the keys of all rows, or of those of one cell."""
        where, values = ("", ()) if config is None else ("WHERE config = ?", (config,))
        found = self.execute(f"SELECT config, revision(code), data, split, init FROM rows {where}", values)
        return {RowKey(config, revision, data, Seeds(*seeds)) for config, revision, data, *seeds in found}

    def rows(self, config: str | None = None) -> list[Row]:
        """Return all rows, or those of one cell, in the order of their keys, however they came in."""
        return self._select("", ()) if config is None else self._select("WHERE config = ?", (config,))

    def cells(self) -> list[Cell]:
        """Return the cells that have rows, in the order of their texts."""
        return [self._cell(text) for (text,) in self.execute("SELECT DISTINCT cell FROM rows ORDER BY cell")]

    def groups(self) -> list[RowGroup]:
        """Return what there is, in numbers: one entry for each cell, revision and data version."""
        found = self.execute(
            "SELECT cell, config, revision(code) AS revision, data, count(*), sum(seconds), max(created), max(backend), "
            "group_concat(DISTINCT device) FROM rows GROUP BY cell, revision, data ORDER BY cell, revision, data"
        )
        return [RowGroup(self._cell(cell), *rest, devices=tuple(sorted(on.split(",")))) for cell, *rest, on in found]

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Make what is executed in the block one transaction: all of it is written, or nothing."""
        with self._lock:
            try:
                self.execute("BEGIN IMMEDIATE")
                yield
                self.execute("COMMIT")
            finally:
                if self._db.in_transaction:  # SQLite may have undone it itself, as when the disk is full
                    self._db.rollback()

    def add_all(self, rows: Iterable[Row]) -> int:
        """Add rows in one transaction, all or none; return how many were new."""
        with self.transaction():
            return sum(self.add(row) for row in rows)

    def _select(self, where: str, values: Sequence[Any]) -> list[Row]:
        found = self.execute(f"SELECT {_COLUMN_LIST} FROM rows {where} ORDER BY {_KEY_LIST}", values)
        try:
            return [decode(each) for each in found]
        except FormatError as error:  # since it was opened
            raise damaged(self.path, str(error)) from None

    def _cell(self, text: str) -> Cell:
        try:
            return Cell.parse(text)
        except (TypeError, ValueError):
            raise damaged(self.path, f"{text!r} is no cell") from None


def _same_key(key: RowKey) -> tuple[str, tuple[str | int, ...]]:
    """Return the condition that a row has a key, by any name that its revision is stored under, and its values."""
    names = stored_names(key.revision)
    where = f"config = ? AND code IN ({', '.join('?' * len(names))}) AND data = ? AND split = ? AND init = ?"
    return where, (key.config, *names, key.data, key.seeds.split, key.seeds.init)


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
    found: dict[tuple[str, str], list[Row]] = {}
    for row in store.rows(cell.config):
        found.setdefault((row.key.revision, row.key.data), []).append(row)
    return newest_first(Pool(cell, *version, tuple(rows)) for version, rows in found.items())


def newest_first(found: Iterable[Pool]) -> list[Pool]:
    """Return pools of one cell in the order in which they are shown.

    >>> newest_first([])
    []
    """
    return sorted(found, key=lambda pool: (pool.newest, pool.revision, pool.data), reverse=True)
