"""Files as they should be treated: checked before they are opened, complete before they are visible."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from pprop._errors import InputError
from pprop._validate import describe, reject

__all__ = ["atomic_writer", "existing_file", "path_of"]


def path_of(path: object, parameter: str, function: str) -> Path:
    """Return `path` as a Path, or say that it is not one.

    >>> path_of(3, "path", "read_npz")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'path' parameter of read_npz must be a path. Got 3 instead.
    """
    name = cast("object", os.fspath(cast("Any", path)) if isinstance(path, str | os.PathLike) else None)
    if isinstance(name, str) and name:
        return Path(name)
    reject(parameter, function, "a path", describe(cast("object", path)))


def existing_file(path: object, parameter: str, function: str) -> Path:
    """Return `path` as a Path to a file that exists and may be read.

    >>> existing_file("no/such.csv", "path", "read_edges")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'path' parameter of read_edges must be an existing file. Got 'no/such.csv' instead.
    """
    file = path_of(path, parameter, function)
    try:
        found = file.is_file()
    except (OSError, ValueError):  # a name too long, or with a null character
        found = False
    if not found:
        reject(parameter, function, "an existing file", repr(str(path)))
    if not os.access(file, os.R_OK):
        reject(parameter, function, "a readable file", f"{str(path)!r}, which this user may not read,")
    return file


@contextmanager
def atomic_writer(path: object, parameter: str, function: str) -> Generator[IO[bytes]]:
    """Open a new file beside `path` that takes its place only when the block has ended without an error.

    The bytes are on the disk before the name changes, so a crash leaves the old file or the new one, never a part.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with atomic_writer(Path(folder.name, "note.txt"), "path", "write") as stream:
    ...     _ = stream.write(b"whole")
    >>> [file.name for file in Path(folder.name).iterdir()]
    ['note.txt']
    >>> folder.cleanup()
    """
    target = path_of(path, parameter, function)
    if not target.parent.is_dir():
        reject(parameter, function, "a file in an existing folder", repr(str(path)))
    if target.is_dir():
        reject(parameter, function, "the path of a file", f"the folder {str(path)!r}")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        stream = temporary.open("xb")
    except OSError as error:
        raise InputError(
            f"The {parameter!r} parameter of {function} must be a path that can be written. "
            f"Got {str(path)!r} instead ({error.strerror})."
        ) from error
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # Windows has no handle of a folder to flush
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
