"""Every sound row of a store, also of a damaged one, which is read from a copy and left as it is."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import final

from pprop._errors import FormatError
from pprop.study.store.file import connect_unchanged, damaged, is_read_only
from pprop.study.store.row import COLUMNS, Row, decode
from pprop.study.store.store import FILE, Store

_SUFFIXES = ("", "-wal")  # the log holds the latest rows of a process that was killed
_SMALLEST = 100  # bytes; every row has more
_LEAF = 0x0D  # the first byte of a table's leaf
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
    >>> from pprop.study.store.row import example_row
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
        with tempfile.TemporaryDirectory() as name:  # SQLite would write to the original: it repairs what it can
            copy = Path(name) / FILE
            for suffix in _SUFFIXES:
                file = self.folder / f"{FILE}{suffix}"
                if file.exists():
                    shutil.copyfile(file, copy.with_name(file.name))
            _renew_first_page(copy)
            yield from self._read(copy)

    def _read(self, path: Path) -> Iterator[Row]:
        most = sum(file.stat().st_size for file in path.parent.glob(f"{FILE}*")) // _SMALLEST
        found: set[int] = set()
        connection = connect_unchanged(path) if is_read_only(path) else sqlite3.connect(path, isolation_level=None)
        try:
            if self.problem is not None:
                connection.execute("PRAGMA writable_schema = ON")  # else SQLite opens no file that was cut short
            largest, odd = self._numbers(connection, most)
            for number in chain(range(1, largest + 1), odd):  # rows are numbered as they come and never deleted
                try:
                    values = connection.execute(f"SELECT {_COLUMN_LIST} FROM rows WHERE number = ?", (number,))
                    row = decode(values.fetchone() or (None,) * len(COLUMNS))
                except (sqlite3.DatabaseError, FormatError):
                    continue
                found.add(number)
                yield row
        finally:
            connection.close()
        if self.problem is not None and (len(found) < largest + len(odd) or not self.certain):
            for number, row in _rows_of_leaves(path):
                if number not in found:
                    found.add(number)
                    yield row
        largest = max(largest, *(number for number in found if number <= most), 0)
        self.lost = len({*range(1, largest + 1), *odd} - found)
        if self.lost and self.problem is None:
            self.problem = str(damaged(self.folder / FILE, f"{self.lost} rows cannot be read"))

    def _numbers(self, connection: sqlite3.Connection, most: int) -> tuple[int, list[int]]:
        """Return the largest number seen anywhere: in the table from both of its ends, and in its index.

        A number above `most` was changed, as the file has no room for so many rows; these are returned apart.
        """
        seen, self.certain = 0, False
        odd: set[int] = set()
        for rows in ("rows ORDER BY number DESC", "rows INDEXED BY rows_key", "rows NOT INDEXED ORDER BY number"):
            try:
                for (number,) in connection.execute(f"SELECT number FROM {rows}"):
                    if number > most:
                        odd.add(number)
                        continue
                    seen = max(seen, number)
                    if "DESC" in rows:
                        break
                self.certain = True  # that end was reached
                if "DESC" in rows:
                    break
            except sqlite3.DatabaseError:
                continue
        return seen, sorted(odd)


def _renew_first_page(path: Path) -> None:
    """Give a copy the first page of a new store: it holds the tables' names, and is the same in all stores.

    A single changed bit in it would keep every sound row on the other pages out of reach. What differs is the number of
    pages and a list of free ones, which is of no use here.
    """
    with tempfile.TemporaryDirectory() as name:
        Store.open(Path(name), create=True).close()
        page = bytearray((Path(name) / FILE).read_bytes())
    size = int.from_bytes(page[16:18], "big")  # https://sqlite.org/fileformat2.html#the_database_header
    del page[size:]
    pages = -(-path.stat().st_size // size)
    page[28:32] = pages.to_bytes(4, "big")
    with path.open("r+b") as stream:
        stream.write(page)


def _rows_of_leaves(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the sound rows of each leaf of a copy by itself, for when the pages that lead to the leaves are damaged.

    SQLite is told that the table consists of that one page. Other tables have leaves, too, and pages that are no longer
    used: what is no row does not match its checksum.
    """
    with sqlite3.connect(path) as connection:
        try:
            (size,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # its pages are to be in the file
        except sqlite3.DatabaseError:
            return
    connection.close()
    content = path.read_bytes()
    for leaf in range(2, len(content) // size + 1):
        if content[(leaf - 1) * size] != _LEAF:
            continue
        connection = sqlite3.connect(path)
        try:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("PRAGMA synchronous = OFF")  # it is a copy
            connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = 'rows'", (leaf,))
            connection.commit()
        finally:
            connection.close()
        yield from _rows_of_table(path)


def _rows_of_table(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the rows from both ends of the table up to what cannot be read."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes  # so that a changed text does not end the loop
    try:
        connection.execute("PRAGMA writable_schema = ON")
        for order in ("ASC", "DESC"):
            with suppress(sqlite3.DatabaseError):
                for number, *values in connection.execute(
                    f"SELECT number, {_COLUMN_LIST} FROM rows NOT INDEXED ORDER BY number {order}"
                ):
                    with suppress(FormatError, UnicodeDecodeError):
                        texts = zip(COLUMNS, values, strict=True)
                        yield (
                            number,
                            decode(
                                [v.decode() if isinstance(v, bytes) and n != "predictions" else v for n, v in texts]
                            ),
                        )
    finally:
        connection.close()
