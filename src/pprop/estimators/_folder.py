"""A folder that appears under its name only when it is complete."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from pprop._errors import InputError
from pprop._validate import reject

__all__ = ["write_folder"]


def write_folder(
    target: Path, files: Mapping[str, bytes], function: str, *, may_replace: Callable[[Path], str | None]
) -> None:
    """Write `files` to a new folder `target`, or replace one.

    The files are on the disk before the folder gets its name, so a crash leaves the old folder or the new one, never a
    part. (Replacing takes two renamings; a crash between them leaves the old folder under a hidden name beside it.)

    Parameters
    ----------
    target
        In an existing folder.
    files
        Content by name.
    function
        For the error sentence.
    may_replace
        Called with an existing target; returns why it must stay, or None.
    """
    parent = target.parent
    if not os.path.isdir(parent):  # also where this user may not look
        reject("path", function, "a folder in an existing folder", repr(str(target)))
    if os.path.lexists(target) and (reason := may_replace(target)):
        raise InputError(reason)
    mark = secrets.token_hex(4)
    temporary, old = parent / f".{target.name}.{mark}.part", parent / f".{target.name}.{mark}.old"
    try:
        try:
            temporary.mkdir()
            for name, content in files.items():
                _write_file(temporary / name, content)
            _sync(temporary)
            replaced = os.path.lexists(target)
            if replaced:
                target.rename(old)
            try:
                temporary.rename(target)
            except BaseException:
                if replaced:
                    old.rename(target)
                raise
        except OSError as error:
            raise InputError(
                f"The 'path' parameter of {function} must be a path that can be written. "
                f"Got {str(target)!r} instead ({error.strerror})."
            ) from error
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync(parent)
    shutil.rmtree(old, ignore_errors=True)


def _write_file(path: Path, content: bytes) -> None:
    with path.open("xb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _sync(folder: Path) -> None:
    if os.name != "posix":  # Windows has no handle of a folder to flush
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
