"""What SQLite says when a store cannot be used, in the words of this library."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pprop._errors import FormatError

__all__ = ["check_sound", "damaged", "translated"]

_HEADER = b"SQLite format 3\x00"


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
    except sqlite3.DatabaseError as error:
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # the lowest byte; the others say where it happened
            case sqlite3.SQLITE_FULL:
                reason = "the disk is full; every finished run is kept, so make room and start again"
                raise OSError(errno.ENOSPC, reason, str(path)) from None
            case sqlite3.SQLITE_IOERR:
                reason = f"{error}; every finished run is kept (is the disk full, or gone?)"
                raise OSError(errno.EIO, reason, str(path)) from None
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                raise damaged(path, str(error)) from None
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                raise PermissionError(errno.EACCES, str(error), str(path)) from None
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise OSError(errno.EBUSY, "another process has held it for a minute", str(path)) from None
            case _:
                raise


def damaged(path: Path, what: str) -> FormatError:
    """Return the error for a file that is not as it was written.

    >>> str(damaged(Path("study/rows.sqlite"), "page 7 is missing")).split(". ")[0]
    "The store 'study/rows.sqlite' is damaged (page 7 is missing) and was left as it is"
    """
    return FormatError(
        f"The store {str(path)!r} is damaged ({what}) and was left as it is. Save its sound rows with: "
        f"pprop study merge {path.parent} --out NEW"
    )


def check_sound(connection: sqlite3.Connection, path: Path, version: int, mark: int) -> None:
    """Refuse a file that is damaged, is no store, or is one of a later version; a new one, still empty, is sound."""
    with path.open("rb") as stream:
        begin = stream.read(len(_HEADER))
    if begin and begin != _HEADER:
        raise damaged(path, "it is no SQLite file")
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if (found, application) == (0, 0):
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables == 0:
            return
    if application != mark:
        raise FormatError(f"The file {str(path)!r} is a database, but no store of a study. It was left as it is.")
    if found > version:
        raise FormatError(f"The store {str(path)!r} was made by a later version of pprop. Update pprop to use it.")
    (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        raise damaged(path, " ".join(str(answer).split()).removeprefix("*** in database main *** "))
