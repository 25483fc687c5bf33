"""Every sound row of a store, also of a damaged one, which is read from a copy and left as it is."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import final

from pprop._errors import FormatError
from pprop.study.row import Row
from pprop.study.row_codec import COLUMNS, decode
from pprop.study.store import FILE, Store
from pprop.study.store_errors import damaged

__all__ = ["Salvage"]

_SUFFIXES = ("", "-wal")  # the log holds the latest rows of a process that was killed
_COLUMN_LIST = ", ".join(COLUMNS)


@final
class Salvage:
    """The rows that can be read from the store in `folder`, one after another.

    Attributes
    ----------
    problem
        What is wrong with the store, or None.
    lost
        After iteration: how many rows could not be read.
    certain
        Whether that is their number; False where more may have been there, of which no trace is left.

    Examples
    --------
    >>> import tempfile
    >>> from pprop.study.row_codec import example_row
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store.open(Path(folder), create=True) as store:
    ...         added = store.add(example_row())
    ...     salvage = Salvage(Path(folder))
    ...     len(list(salvage)), salvage.lost, salvage.problem
    (1, 0, None)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.problem: str | None = None
        self.lost, self.certain = 0, True
        try:
            Store.open(self.folder).close()
        except FormatError as error:
            self.problem = str(error)

    def __iter__(self) -> Iterator[Row]:
        self.lost = 0
        if self.problem is None:
            yield from self._read(self.folder / FILE)
            return
        with tempfile.TemporaryDirectory() as copy:  # SQLite would write to the original: it repairs what it can
            for suffix in _SUFFIXES:
                file = self.folder / f"{FILE}{suffix}"
                if file.exists():
                    shutil.copyfile(file, Path(copy) / file.name)
            yield from self._read(Path(copy) / FILE)

    def _read(self, path: Path) -> Iterator[Row]:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            if self.problem is not None:
                connection.execute("PRAGMA writable_schema = ON")  # else SQLite opens no file that was cut short
            largest = self._largest_number(connection)
            for number in range(1, largest + 1):  # rows are numbered as they come and never deleted
                try:
                    found = connection.execute(f"SELECT {_COLUMN_LIST} FROM rows WHERE number = ?", (number,))
                    yield decode(found.fetchone() or (None,) * len(COLUMNS))
                except (sqlite3.DatabaseError, FormatError):
                    self.lost += 1
        finally:
            connection.close()
        if self.lost and self.problem is None:
            self.problem = str(damaged(self.folder / FILE, f"{self.lost} rows do not match their checksums"))

    def _largest_number(self, connection: sqlite3.Connection) -> int:
        """Return the largest number seen anywhere: in the table from both of its ends, and in its index."""
        seen, self.certain = 0, False
        for rows in ("rows ORDER BY number DESC", "rows INDEXED BY rows_key", "rows NOT INDEXED ORDER BY number"):
            try:
                for (number,) in connection.execute(f"SELECT number FROM {rows}"):
                    seen = max(seen, number)
                    if "DESC" in rows:
                        break
                self.certain = True  # that end was reached
                if "DESC" in rows:
                    break
            except sqlite3.DatabaseError:
                continue
        return seen
