"""Every sound row of a store, also of a damaged one, which is read from a copy and left as it is."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import final

from pprop._errors import FormatError
from pprop.study.experiment_folder import files_of
from pprop.study.store.file import SCHEMA
from pprop.study.store.row import COLUMNS, KEY, Row, decode
from pprop.study.store.store import FILE, Store

# Type, name, first page and statement of what is read of a damaged store: the same in all stores.
_ENTRIES = (("table", "rows", 2, SCHEMA[0]), ("index", "rows_key", 3, SCHEMA[1]))
_SMALLEST = 100  # bytes; every row has more
_ONE = f"SELECT {', '.join(COLUMNS)} FROM rows WHERE number = ?"
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)  # the latter: a message that quotes a damaged name


@final
class Salvage:
    """The rows that can be read from the store in `folder`, one after another.

    Attributes
    ----------
    files
        The experiment files of the folder.
    problem
        What is wrong with the store, or None.
    lost
        After iteration: how many rows could not be read.
    certain
        Whether that is their number; False where the index that lists them all is damaged, too.

    Examples
    --------
    >>> import tempfile
    >>> from pprop.study.store.row import example_row
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store.open(Path(folder), create=True) as store:
    ...         added = store.add(example_row())
    ...     salvage = Salvage(Path(folder))
    ...     len(list(salvage)), salvage.lost, salvage.problem
    (1, 0, None)
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = Path(folder), files_of(folder)
        self.problem: str | None = None
        self.lost, self.certain = 0, True
        try:
            Store.open(self.folder).close()
        except FormatError as error:
            self.problem = str(error)

    def __iter__(self) -> Iterator[Row]:
        if self.problem is None:
            with Store.open(self.folder) as store:
                for (config,) in store.execute("SELECT DISTINCT config FROM rows ORDER BY config"):
                    yield from store.rows(config)
            return
        with tempfile.TemporaryDirectory() as name:  # SQLite would write to the original: it repairs what it can
            copy = Path(name) / FILE
            for suffix in ("", "-wal"):  # the log holds the latest rows of a process that was killed
                file = self.folder / f"{FILE}{suffix}"
                if file.exists():
                    shutil.copyfile(file, copy.with_name(file.name))
            self.lost, self.certain = 0, False
            with suppress(*_UNREADABLE), closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                yield from self._rescue(connection)

    def _rescue(self, connection: sqlite3.Connection) -> Iterator[Row]:
        """Yield the sound rows, also where the pages that lead to them or the definitions of the tables are damaged.

        SQLite is given the definitions anew, and then each page in turn as the first one of the table: the rows on it are
        read, and those on the pages that it leads to. What is no row does not match its checksum.
        """
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # changed text does not end a loop
        connection.execute("PRAGMA writable_schema = ON")
        with suppress(*_UNREADABLE):  # definitions that cannot be read fail at the first attempt, not at the second
            connection.execute("SELECT 1 FROM sqlite_master").fetchall()
        connection.execute("PRAGMA synchronous = OFF")  # it is a copy
        connection.execute("DELETE FROM sqlite_master")
        for kind, name, page, sql in _ENTRIES:
            connection.execute("INSERT INTO sqlite_master VALUES (?, ?, 'rows', ?, ?)", (kind, name, page, sql))
        _reload(connection)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        most = pages * size // _SMALLEST
        listed, self.certain = _numbers(connection, "INDEXED BY rows_key", KEY, most)
        connection.execute("DELETE FROM sqlite_master WHERE type = 'index'")
        found: set[int] = set()
        for page in range(2, pages + 1):
            connection.execute("UPDATE sqlite_master SET rootpage = ?", (page,))
            _reload(connection)
            there, _ = _numbers(connection, "NOT INDEXED", ["number"], most)
            for number in sorted(there - found):
                with suppress(sqlite3.DatabaseError, FormatError):
                    row = decode(connection.execute(_ONE, (number,)).fetchone() or (None,) * len(COLUMNS))
                    found.add(number)
                    yield row
        self.lost = len(listed - found)


def _reload(connection: sqlite3.Connection) -> None:
    """Let SQLite read the definitions of the tables again."""
    connection.execute("PRAGMA writable_schema = RESET")
    connection.execute("PRAGMA writable_schema = ON")


def _numbers(connection: sqlite3.Connection, how: str, order: Iterable[str], most: int) -> tuple[set[int], bool]:
    """Return the numbers of rows from both ends up to what cannot be read, and whether all of them can be."""
    found: set[int] = set()
    for way in ("ASC", "DESC"):
        by = ", ".join(f"{name} {way}" for name in order)
        try:
            for (number,) in connection.execute(f"SELECT number FROM rows {how} ORDER BY {by} LIMIT ?", (most,)):
                found.add(number)
        except sqlite3.DatabaseError:
            continue
        return found, True
    return found, False
