"""What SQLite says when a store cannot be used, in the words of this library."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pprop._errors import FormatError

__all__ = ["damaged", "damaged_row", "translated"]

_CHANGED = ("Could not decode to UTF-8", "no such table", "no such column")  # our own statements are sound


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
            case _ if str(error).startswith(_CHANGED):
                raise damaged(path, str(error).splitlines()[0]) from None
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


def damaged_row(path: Path, error: FormatError) -> FormatError:
    """Return the error for a file with a row that `pprop.study.row_codec.decode` refused.

    >>> str(damaged_row(Path("rows.sqlite"), FormatError("The row 7 is wrong."))).split(". ")[0]
    "The store 'rows.sqlite' is damaged (the row 7 is wrong) and was left as it is"
    """
    said = str(error).removesuffix(".")
    return damaged(path, f"{said[:1].lower()}{said[1:]}")
