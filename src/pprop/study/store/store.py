"""The rows of a study in one SQLite file, each durable the moment it is added."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

from pprop._errors import FormatError, InputError
from pprop.study.cell import Cell, Seeds
from pprop.study.revisions import recorded_revision, stored_names
from pprop.study.store.file import (
    FORMAT,
    MARK,
    SCHEMA,
    check_file,
    check_sound,
    connect_unchanged,
    damaged,
    damaged_row,
    is_empty,
    is_read_only,
    translated,
)
from pprop.study.store.row import COLUMNS, KEY, Row, RowKey, decode, encode, key_values, same_result

FILE = "rows.sqlite"
"""Name of the file in a study's folder."""

_PATIENCE = 60  # seconds to wait for another process that is writing; it needs milliseconds

_COLUMN_LIST = ", ".join(COLUMNS)
_KEY_LIST = ", ".join(KEY)
_SAME_CLAIM = " AND ".join(f"{name} = ?" for name in KEY)


@final
@dataclass(frozen=True)
class Group:
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
        self.path = path
        self.lock = threading.RLock()
        self._db = connection

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
            if not create and is_read_only(path):
                return cls(path, connect_unchanged(path))
            connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            try:
                _set_up(connection, path)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. What was added stays."""
        with self.lock:
            self._db.close()

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, a transaction of its own unless one was begun, and return what it selects."""
        with self.lock, translated(self.path):
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
        marks = ", ".join("?" * len(COLUMNS))
        where, same = _same_key(row.key)
        # One statement, so that Ctrl-C comes before the row is written or after, and never undoes it.
        new = self.execute(
            f"INSERT INTO rows ({_COLUMN_LIST}) SELECT {marks} WHERE NOT EXISTS (SELECT 1 FROM rows WHERE {where}) "
            "RETURNING 1",
            (*encode(row), *same),
        )
        if not new:
            (there,) = self._select(f"WHERE {where}", same)
            if not same_result(there, row):
                raise InputError(
                    f"The store {str(self.path)!r} has another result for split {row.key.seeds.split}, initialisation "
                    f"{row.key.seeds.init} of {row.cell}. The one in the store was kept."
                )
            if len(row.predictions) > len(there.predictions):
                whole = encode(replace(there, predictions=row.predictions))
                self.execute(f"REPLACE INTO rows ({_COLUMN_LIST}) VALUES ({marks})", whole)
            return False
        finished = (time.time(), *key_values(row.key))
        self.execute(f"UPDATE attempts SET ended = ? WHERE ended IS NULL AND {_SAME_CLAIM}", finished)
        return True

    def has(self, key: RowKey) -> bool:
        """Say whether a run is finished."""
        where, same = _same_key(key)
        return bool(self.execute(f"SELECT 1 FROM rows WHERE {where}", same))

    def keys(self, config: str | None = None) -> set[RowKey]:
        """Return the keys of all rows, or of those of one cell."""
        where, values = ("", ()) if config is None else ("WHERE config = ?", (config,))
        found = self.execute(f"SELECT {_KEY_LIST} FROM rows {where}", values)
        return {
            RowKey(config, recorded_revision(code), data, Seeds(split, init))
            for config, code, data, split, init in found
        }

    def rows(self, config: str | None = None) -> list[Row]:
        """Return all rows, or those of one cell, in the order of their keys, however they came in."""
        return self._select("", ()) if config is None else self._select("WHERE config = ?", (config,))

    def cells(self) -> list[Cell]:
        """Return the cells that have rows, in the order of their texts."""
        return [self._cell(text) for (text,) in self.execute("SELECT DISTINCT cell FROM rows ORDER BY cell")]

    def groups(self) -> list[Group]:
        """Return what there is, in numbers: one entry for each cell, revision and data version."""
        found = self.execute(
            "SELECT cell, config, code, data, count(*), sum(seconds), max(created), max(backend), "
            "group_concat(DISTINCT device) "
            "FROM rows GROUP BY cell, config, code, data ORDER BY cell, code, data"
        )
        groups: dict[tuple[str, str, str], Group] = {}
        for text, config, code, data, runs, seconds, newest, backend, devices in found:
            key = text, recorded_revision(code), data
            before = groups.get(key)  # rows of one revision may be stored under several names
            groups[key] = Group(
                self._cell(text),
                config,
                *key[1:],
                runs + (before.runs if before else 0),
                seconds + (before.seconds if before else 0.0),
                max(newest, before.newest if before else ""),
                backend,
                tuple(sorted({*devices.split(","), *(before.devices if before else ())})),
            )
        return [groups[key] for key in sorted(groups)]

    def add_all(self, rows: Iterable[Row]) -> int:
        """Add rows in one transaction, all or none; return how many were new."""
        with self.lock:
            try:
                self.execute("BEGIN IMMEDIATE")
                new = sum(self.add(row) for row in rows)
                self.execute("COMMIT")
            except BaseException:
                self.roll_back()
                raise
            return new

    def roll_back(self) -> None:
        """Undo the transaction that was begun; SQLite may have done so itself, as when the disk is full."""
        if self._db.in_transaction:
            self._db.rollback()

    def _select(self, where: str, values: Sequence[Any]) -> list[Row]:
        found = self.execute(f"SELECT {_COLUMN_LIST} FROM rows {where} ORDER BY {_KEY_LIST}", values)
        try:
            return [decode(each) for each in found]
        except FormatError as error:  # since it was opened
            raise damaged_row(self.path, error) from None

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


def _set_up(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new store; two processes may do this at the same time."""
    for _ in range(100):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:  # while another process changes the mode, SQLite does not wait
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            time.sleep(0.05)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            check_sound(connection, path)  # it is new, or was begun by a process that was killed
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {MARK}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.rollback()
        raise
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the name of a new file shall be as durable as its content
    finally:
        os.close(folder)


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
