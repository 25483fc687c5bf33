"""Where a verb writes: refused before the work if it cannot be, complete before it is visible."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated

import typer

from pprop.cli.output import Session

__all__ = ["ForceOption", "check_file", "check_folder", "new_file", "new_folder"]

ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is already at --out.")]


def check_file(path: Path, *, force: bool) -> None:
    """Refuse, before any work is done, a file that could not be written, or that is there already."""
    if path.is_dir():
        raise IsADirectoryError(f"--out must be a file, and {str(path)!r} is a folder.")
    if path.exists() and not force:
        raise FileExistsError(f"{str(path)!r} is already there. Choose another --out, or add --force to replace it.")
    _check_parent(path)


def check_folder(path: Path, *, names: frozenset[str], force: bool) -> None:
    """Refuse, before any work is done, a folder that could not be written, or that is there already.

    Even with `force`, a folder with anything in it that is not among `names`, which the verb writes itself, stays.
    """
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"--out must be a folder, and {str(path)!r} is a file.")
    if path.is_dir() and any(path.iterdir()):
        strange = sorted(file.name for file in path.iterdir() if file.name not in names)
        if strange:
            raise FileExistsError(
                f"The folder {str(path)!r} holds {strange[0]!r}, which is not pprop's to replace. Choose another --out."
            )
        if not force:
            raise FileExistsError(
                f"The folder {str(path)!r} is already there. Choose another --out, or add --force to replace it."
            )
    _check_parent(path)


@contextmanager
def new_file(path: Path, session: Session, *, force: bool) -> Generator[IO[bytes]]:
    """Open a file beside `path` that takes its place, flushed to the disk, when the block has ended without an error."""
    check_file(path, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    session.keep(path)


@contextmanager
def new_folder(path: Path, session: Session, *, names: frozenset[str], force: bool) -> Generator[Path]:
    """Give the name of a folder to be made; it takes the place of `path` when the block has ended without an error."""
    check_folder(path, names=names, force=force)
    path.parent.mkdir(parents=True, exist_ok=True)
    workplace = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    replaced = workplace / f"{path.name}.replaced"
    try:
        yield workplace / path.name
        if path.exists():
            path.rename(replaced)
        (workplace / path.name).rename(path)
    finally:
        if not path.exists() and replaced.exists():
            replaced.rename(path)
        shutil.rmtree(workplace, ignore_errors=True)
    session.keep(path)


def _check_parent(path: Path) -> None:
    nearest = next(folder for folder in path.absolute().parents if folder.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(f"{str(path)!r} cannot be written: {str(nearest)!r} is a file.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(f"{str(path)!r} cannot be written: this user may not write in {str(nearest)!r}.")
