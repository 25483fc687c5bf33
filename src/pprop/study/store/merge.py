"""Rows computed on different machines, or what is left of a damaged store, in one new store."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import final

from pprop._errors import FormatError, InputError
from pprop.study.cell import Cell
from pprop.study.experiment_folder import files_of, merge_experiments
from pprop.study.graphs import merge_graphs
from pprop.study.store.file import PAGE, SCHEMA
from pprop.study.store.pack import Packed
from pprop.study.store.row import COLUMNS, KEY, Row, decode
from pprop.study.store.store import FILE, Store

_BATCH = 200  # rows in one transaction: one commit for each would wait for the disk each time


@final
@dataclass(frozen=True)
class Source:
    """What one folder gave.

    Attributes
    ----------
    folder
        Where it is.
    rows, new
        Rows read, and those of them that the new store did not have yet.
    conflicts
        Runs that were there with another result; the first one was kept.
    lost
        Rows that could not be read.
    certain
        Whether that is their number, or a lower bound.
    problem
        What is wrong with the folder's store, its experiment files or its graphs, or None.
    """

    folder: Path
    rows: int
    new: int
    conflicts: tuple[str, ...]
    lost: int
    certain: bool
    problem: str | None


@final
@dataclass(frozen=True)
class Merged:
    """What a merge gave.

    Attributes
    ----------
    sources
        One for each folder.
    rows
        Rows of the new store.
    """

    sources: tuple[Source, ...]
    rows: int

    @property
    def sound(self) -> bool:
        """Whether every row was read and no two results disagreed."""
        return not any(source.conflicts or source.lost or source.problem for source in self.sources)


def merge_studies(folders: Sequence[Path], out: Path) -> Merged:
    """Write every sound row of some studies, folders or packed files, into the store of `out`, which may have rows.

    A run that two of them have with the same result is taken once. With different results it is a conflict: the first
    one stays, and the run is named. The user's experiment files and graphs are copied, too; of two files that share a name and
    differ, the second gets another name, and of two such graphs the second is left out and named. No source is changed.

    Examples
    --------
    >>> import tempfile
    >>> from pprop.study.store.row import example_row
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     here, there, out = (Path(folder) / name for name in ("here", "there", "out"))
    ...     for place, split in ((here, 5), (there, 6)):
    ...         with Store.open(place, create=True) as store:
    ...             added = store.add(example_row(split))
    ...     merged = merge_studies([here, there], out)
    >>> merged.rows, merged.sound
    (2, True)
    """
    if not folders:
        raise InputError("A merge needs the folder of at least one study.")
    # all of them are looked at before anything is written
    studies = [Packed(at) if Path(at).is_file() else Salvage(at) for at in folders]
    for folder in folders:
        if Path(folder).resolve() == Path(out).resolve():
            raise InputError(f"The study {str(folder)!r} cannot be merged into itself. Choose another --out.")
    with Store.open(out, create=True) as store:
        sources = tuple(_take(study, store, Path(out)) for study in studies)
        return Merged(sources, len(store.keys()))


def _take(study: Salvage | Packed, store: Store, out: Path) -> Source:
    wrong = (*merge_experiments(study.files, out), *merge_graphs(study.folder, out))
    rows = new = 0
    conflicts: list[str] = []
    every = iter(study)
    while batch := list(islice(every, _BATCH)):
        rows += len(batch)
        with store.transaction():
            for row in batch:
                try:
                    new += store.add(row)
                except InputError:
                    seeds = row.key.seeds
                    run = f"split {seeds.split}, initialisation {seeds.init}"
                    conflicts.append(f"{_title(row)} ({row.key.config}), {run}")
    problem = " ".join(filter(None, (study.problem, *wrong))) or None
    return Source(study.folder, rows, new, tuple(conflicts), study.lost, study.certain, problem)


def _title(row: Row) -> str:
    try:
        cell = Cell.parse(row.cell)
    except (TypeError, ValueError):
        return "an unknown cell"
    return f"{cell.model} on {cell.dataset}"


def packs_of(at: Path) -> list[Path]:
    """Return the packed files that stand for a study: the file itself, or those in a folder that has no store.

    Examples
    --------
    >>> packs_of(Path("no study"))
    []
    """
    at = Path(at)
    if at.is_file():
        return [at]
    return [] if (at / FILE).exists() else sorted(at.glob("*.pack"))


@contextmanager
def study_folder(at: Path) -> Generator[Path]:
    """Give the folder of a study to be read; packed files are unpacked into one that is removed afterwards.

    A study's own folder is given as it is, and so is one that holds nothing: who opens its store says so.

    Raises
    ------
    FormatError
        A packed file is damaged, or two have different results for one run.

    Examples
    --------
    >>> from pprop.study.store.pack import pack_study
    >>> from pprop.study.store.row import example_row
    >>> from pprop.study.store.store import Store
    >>> with tempfile.TemporaryDirectory() as name:
    ...     with Store.open(Path(name) / "study", create=True) as store:
    ...         added, packed = store.add(example_row(5)), pack_study(store, Path(name) / "study.pack")
    ...     with study_folder(Path(name)) as folder, Store.open(folder) as store:
    ...         len(store.rows())
    1
    """
    packs = packs_of(at)
    if not packs:
        yield Path(at)
        return
    with tempfile.TemporaryDirectory(prefix="pprop-study-") as name:
        merged = merge_studies(packs, Path(name))
        problems: list[str] = []
        for source in merged.sources:
            if source.problem is not None:
                problems.append(f"{source.problem} {source.lost} rows are lost; 'pprop study merge' saves the others.")
            if source.conflicts:
                run, *others = source.conflicts
                more = f", and {len(others)} more" if others else ""
                problems.append(f"{source.folder} has another result than the files before it for {run}{more}.")
        if problems:
            raise FormatError(" ".join(problems))
        yield Path(name)


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
        found = 0
        for header in (_header((self.folder / FILE).stat().st_size), b""):  # anew; as it is, for pages of another size
            if not found:
                for row in self._read_copy(header):
                    found += 1
                    yield row

    def _read_copy(self, header: bytes) -> Iterator[Row]:
        """Yield the sound rows of a copy of the file that begins with `header`."""
        self.lost, self.certain = 0, False
        with tempfile.TemporaryDirectory() as name:  # SQLite would write to the original: it repairs what it can
            copy = Path(name) / FILE
            for suffix in ("", "-wal"):  # the log holds the latest rows of a process that was killed
                file = self.folder / f"{FILE}{suffix}"
                if file.exists():
                    shutil.copyfile(file, copy.with_name(file.name))
            with copy.open("r+b") as file:
                file.write(header)
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


def _header(size: int) -> bytes:
    """Return what a store of so many bytes begins with, before its first page has content."""
    with closing(sqlite3.connect(":memory:")) as new:
        new.execute(f"PRAGMA page_size = {PAGE}")
        new.execute(SCHEMA[0])
        header = new.serialize()[:100]
    return header[:18] + b"\2\2" + header[20:28] + (size // PAGE).to_bytes(4) + header[32:]  # 2: it has a log


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
