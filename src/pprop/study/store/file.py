"""The file of a store: its tables, and whether it is as it was written, found out without a change to it."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pprop._errors import FormatError
from pprop.study.store.row import COLUMN_TYPES, COLUMNS, KEY, decode

# By SQLite's error: the system's, and a sentence.
_REASONS = {
    sqlite3.SQLITE_FULL: (errno.ENOSPC, "the disk is full; every finished run is kept, so make room and start again"),
    sqlite3.SQLITE_IOERR: (errno.EIO, "{}; every finished run is kept (is the disk full, or gone?)"),
    **dict.fromkeys((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM), (errno.EACCES, "{}")),
    **dict.fromkeys(
        (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), (errno.EBUSY, "another process has held it for a minute")
    ),
}
# How messages about a changed file begin that have the code of a wrong statement: our own statements are sound.
_CHANGED = ("Could not decode to UTF-8", "no such table", "no such column", "unsupported file format")


@contextmanager
def translated(path: Path) -> Generator[None]:
    """Turn SQLite's errors about the file at `path` into ours; what concerns a single statement goes through.

    Examples
    --------
    >>> import pprop
    >>> try:
    ...     with translated(Path("rows.sqlite")):
    ...         error = sqlite3.DatabaseError("database disk image is malformed")
    ...         error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    ...         raise error
    ... except pprop.FormatError as error:
    ...     print(str(error)[:40])
    The store 'rows.sqlite' is damaged (data
    """
    try:
        yield
    except UnicodeDecodeError:
        raise damaged(path, "its tables are not those of a store") from None  # the message quotes a damaged name
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the lowest byte; the others say where it happened
        if code == sqlite3.SQLITE_NOTADB:
            raise damaged(path, "it is no SQLite file") from None
        if code == sqlite3.SQLITE_CORRUPT or str(error).startswith(_CHANGED):
            raise damaged(path, str(error).splitlines()[0]) from None
        if code not in _REASONS:
            raise
        number, reason = _REASONS[code]
        raise OSError(number, reason.format(error), str(path)) from None  # EACCES makes it a PermissionError


def damaged(path: Path, what: str) -> FormatError:
    """Return the error for a file that is not as it was written.

    >>> str(damaged(Path("study/rows.sqlite"), "page 7 is missing")).split(". ")[0]
    "The store 'study/rows.sqlite' is damaged (page 7 is missing) and was left as it is"
    """
    return FormatError(
        f"The store {str(path)!r} is damaged ({what}) and was left as it is. Save its sound rows with: "
        f"pprop study merge {path.parent} --out NEW"
    )


FORMAT = 1
# Application number in the file, "ppr1": tells our file from any other database.
MARK = 0x70707231

_OWNER = {"place": "TEXT", "pid": "INTEGER", "started": "TEXT", "lease": "REAL", "begun": "REAL", "ended": "REAL"}
_ATTEMPT = {name: COLUMN_TYPES[name] for name in KEY} | _OWNER
# The statements that make the tables, in this order.
SCHEMA = (
    f"CREATE TABLE rows (number INTEGER PRIMARY KEY, {', '.join(f'{n} {t}' for n, t in COLUMN_TYPES.items())})",
    f"CREATE UNIQUE INDEX rows_key ON rows ({', '.join(KEY)})",
    # an attempt that has not ended is a claim, and there is one of a run at most (see pprop.study.run.attempts)
    f"CREATE TABLE attempts (number INTEGER PRIMARY KEY, {', '.join(f'{n} {t}' for n, t in _ATTEMPT.items())})",
    f"CREATE UNIQUE INDEX one_claim ON attempts ({', '.join(KEY)}) WHERE ended IS NULL",
)

# Bytes of a page of the file: SQLite's default.
PAGE = 4096
_TRIALS = 20
_PAUSE = 0.05  # seconds; much more than the step of the clock that dates files


def check_file(path: Path) -> None:
    """Refuse a file that is damaged, is no store, or is one of a later version, and change nothing.

    SQLite writes to a file that it opens normally and has a log (``-wal``): when it is closed, the log is moved into the
    file and deleted. So this opens it for reading only.
    """
    if _beside(path, "-journal").exists() and path.stat().st_size <= PAGE:
        return  # its maker was killed before it had tables: SQLite begins it again
    for trial in range(_TRIALS):
        before = _dates(path)
        try:
            with translated(path), closing(connect_unchanged(path)) as connection:
                return check_sound(connection, path)
        except FormatError:
            time.sleep(_PAUSE)
            # Without a log to share, nothing stops others from writing while it is read: believe it only at rest.
            if _dates(path) == before or trial == _TRIALS - 1:
                raise


def connect_unchanged(path: Path) -> sqlite3.Connection:
    """Open a store for reading only, and make no file beside it."""
    # A reader of the log would make one where there is none; "immutable" does not.
    how = "mode=ro" if _beside(path, "-wal").exists() else "mode=ro&immutable=1"
    uri = f"{path.resolve().as_uri()}?{how}"
    return sqlite3.connect(uri, uri=True, timeout=60, isolation_level=None, check_same_thread=False)


def check_sound(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse an open file that is damaged, no store, or one of a later version; a new one, still empty, is sound."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    tables = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid")]
    if (found, application, tables) == (0, 0, []):
        return
    if application != MARK and tables != list(SCHEMA):
        raise FormatError(f"The file {str(path)!r} is a database, but no store of a study. It was left as it is.")
    if found > FORMAT:
        raise FormatError(f"The store {str(path)!r} was made by a later version of pprop. Update pprop to use it.")
    if (found, application, tables) != (FORMAT, MARK, list(SCHEMA)):
        raise damaged(path, "its tables are not those of a store")
    (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if answer != "ok":
        raise damaged(path, " ".join(str(answer).split()).removeprefix("*** in database main *** "))
    for values in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM rows NOT INDEXED"):
        try:
            decode(values)
        except FormatError as error:
            raise damaged(path, str(error)) from None
    kinds = {"TEXT": str, "INTEGER": int, "REAL": float}  # attempts have no checksum, but their values have types
    for values in connection.execute(f"SELECT {', '.join(_ATTEMPT)} FROM attempts NOT INDEXED"):
        for (name, kind), value in zip(_ATTEMPT.items(), values, strict=True):
            if not isinstance(value, kinds[kind]) and not (name == "ended" and value is None):
                raise damaged(path, "its list of attempts cannot be read")


def set_up(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new store; two processes may do this at the same time. Close the file if that fails."""
    try:
        for _ in range(100):
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:  # while another process changes the mode, SQLite does not wait
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise
                time.sleep(_PAUSE)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            check_sound(connection, path)  # it is new, or was begun by a process that was killed
            for statement in (*SCHEMA, f"PRAGMA application_id = {MARK}", f"PRAGMA user_version = {FORMAT}"):
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        connection.close()  # what was begun is undone
        raise
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the name of a new file shall be as durable as its content
    finally:
        os.close(folder)


def is_empty(path: Path) -> bool:
    """Say whether a file was never written to, or has lost everything; with a log beside it, it is the latter.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     is_empty(Path(file.name))
    True
    """
    if path.stat().st_size > 0:
        return False
    log = _beside(path, "-wal")
    if log.exists() and log.stat().st_size > 0:  # SQLite would delete it
        raise damaged(path, "it is empty, but its log is not")
    return True


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _dates(path: Path) -> list[tuple[int, int]]:
    """Return size and time of the file and its log."""
    found: list[tuple[int, int]] = []
    for file in (path, _beside(path, "-wal")):
        with suppress(FileNotFoundError):
            about = file.stat()
            found.append((about.st_size, about.st_mtime_ns))
    return found
