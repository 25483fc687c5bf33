"""Reading and writing files: checked before they are opened, complete before they are visible."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Collection, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from pprop._errors import CapacityError, FormatError, InputError, TakenError
from pprop._process import usable_memory
from pprop._validate import describe, reject

LARGEST_JSON = 2**26
DEEPEST_JSON = 32


def path_of(path: object, parameter: str, function: str) -> Path:
    """Return `path` as a Path, or say that it is not one.

    >>> path_of(3, "path", "read_npz")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'path' parameter of read_npz must be a path. Got 3 instead.
    """
    name = cast("object", os.fspath(cast("Any", path)) if isinstance(path, str | os.PathLike) else None)
    if isinstance(name, str) and name and "\0" not in name:
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
    if not os.path.isfile(file):  # also where the name is too long, or this user may not look
        reject(parameter, function, "an existing file", repr(str(path)))
    if not os.access(file, os.R_OK):
        reject(parameter, function, "a readable file", f"{str(path)!r}, which this user may not read,")
    return file


def is_array_file(name: str) -> bool:
    """Whether something is named as an array of features is that lies in a file, and not as a column.

    >>> is_array_file("emb.npy"), is_array_file("age")
    (True, False)
    """
    return name.lower().endswith(".npy")


def mapped_array(file: Path, parameter: str, function: str) -> NDArray[Any]:
    """Return the array of an npy file, mapped to be read; nothing is unpickled."""
    try:
        found: Any = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        got = f"{str(file)!r} with damaged or other content"
        reject(parameter, function, "a sound npy file", got, error=FormatError)
    if not isinstance(found, np.ndarray):
        reject(parameter, function, "a sound npy file", f"{str(file)!r} with something else", error=FormatError)
    return cast("NDArray[Any]", found)


def check_memory(path: Path, needed: int) -> None:
    """Refuse a file whose content, all sizes being true, does not fit twice (as read, as kept) into usable memory.

    >>> check_memory(Path("a.npz"), 10**6)
    """
    memory = usable_memory()
    if memory is not None and 2 * needed > memory:
        raise CapacityError(
            f"Loading {str(path)!r} takes {2 * needed / 1e9:.1f} GB, and this process may use {memory / 1e9:.1f} GB."
        )


def check_disk(folder: Path, needed: int, files: str = "The files of this work") -> None:
    """Refuse work whose files do not fit onto the disk of a folder; a full disk is the cause of the error.

    Parameters
    ----------
    folder
        Where the files are to be. A folder that does not exist is left to the program that writes there.
    needed
        Bytes that are not there yet.
    files
        What takes them, as the beginning of the sentence.

    Examples
    --------
    >>> check_disk(Path("."), 10**18, "Its files")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    pprop._errors.CapacityError: Its files take 1000000000.0 GB of disk, and ... GB are free in '.'. Free some, or use another disk.
    """
    if not folder.is_dir() or (free := shutil.disk_usage(folder).free) >= needed:
        return
    raise CapacityError(
        f"{files} take {needed / 1e9:.1f} GB of disk, and {free / 1e9:.1f} GB are free in {str(folder)!r}. "
        "Free some, or use another disk."
    ) from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file to be read. Anything else is an OSError: a pipe or a device may never end."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))  # or a pipe would wait for a writer

    stream = open(path, "rb", opener=opener)  # noqa: SIM115  the caller closes it
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "it is not a regular file")
    return stream


def read_file(path: Path, most: int | None = None) -> bytes:
    """Return the content of a regular file, as long as it is now, and at most `most` bytes."""
    with open_regular(path) as stream:
        return read_stream(path, stream, most)


def read_stream(path: Path, stream: IO[bytes], most: int | None = None) -> bytes:
    """Return the same of a file that `open_regular` has opened, from its beginning."""
    size = os.fstat(stream.fileno()).st_size
    if most is not None and size > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes")
    check_memory(path, size)
    stream.seek(0)
    return stream.read(size)


def read_json(path: Path) -> object:
    """Return the value in a small, untrusted JSON file.

    Raises
    ------
    OSError
        It cannot be read, is not a regular file, or is larger than anything that pprop writes.
    ValueError
        It is no JSON, is nested more deeply than anything that pprop writes, has NaN or infinity for a number, or a key
        twice, of which two programs might each use another.
    """
    return parse_json(read_file(path, LARGEST_JSON))


def parse_json(content: bytes) -> object:
    """Return the value of an untrusted JSON text; the ValueErrors are those of `read_json`.

    >>> parse_json(b'{"fill": 0.5}')
    {'fill': 0.5}
    """
    try:
        value: object = json.loads(content, object_pairs_hook=_distinct, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level: list[Any] = [value]
    for _ in range(DEEPEST_JSON):
        nested: list[Any] = [one for one in level if isinstance(one, dict | list)]
        level = [part for one in nested for part in (one.values() if hasattr(one, "values") else one)]
    if level:
        raise ValueError("nested too deeply")
    return value


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


@contextmanager
def atomic_writer(path: object, parameter: str, function: str) -> Generator[IO[bytes]]:
    """Check the path of an argument, then open a new file that takes its place as in `replaced_file`.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with atomic_writer(Path(folder.name, "note.txt"), "path", "write") as stream:
    ...     _ = stream.write(b"whole")
    >>> [file.name for file in Path(folder.name).iterdir()]
    ['note.txt']
    >>> folder.cleanup()
    """
    target = path_of(path, parameter, function)
    if not os.path.isdir(target.parent):  # also where this user may not look
        reject(parameter, function, "a file in an existing folder", repr(str(path)))
    if os.path.isdir(target):
        reject(parameter, function, "the path of a file", f"the folder {str(path)!r}")
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(replaced_file(target))
        except OSError as error:
            raise InputError(
                f"The {parameter!r} parameter of {function} must be a path that can be written. "
                f"Got {str(path)!r} instead ({error.strerror})."
            ) from error
        yield stream


@contextmanager
def replaced_file(path: Path, *, replace: bool = True) -> Generator[IO[bytes]]:
    """Open a new file beside `path` that takes its place only when the block has ended without an error.

    The bytes are on the disk before the name changes, so a crash leaves the old file or the new one, never a part.
    `replace` as in `place_file`.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        place_file(temporary, path, replace=replace)
    finally:
        temporary.unlink(missing_ok=True)
    _sync(path.parent)


def place_file(new: Path, path: Path, *, replace: bool) -> None:
    """Give a finished file its name, in one step.

    Parameters
    ----------
    new
        The file, on the same disk as `path`.
    path
        Its name.
    replace
        Whether a file that is there is replaced. If not, the new file is kept beside it, and TakenError names it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     first, second, path = (Path(place, name) for name in ("first", "second", "scores.csv"))
    ...     _ = first.write_text("1"), second.write_text("2")
    ...     place_file(first, path, replace=False)
    ...     try:
    ...         place_file(second, path, replace=False)
    ...     except TakenError:
    ...         sorted(file.name for file in Path(place).iterdir())
    ['scores-2.csv', 'scores.csv']
    """
    if replace:
        new.replace(path)
    elif not _linked(new, path):
        kept = next(name for name in _names_beside(path) if _linked(new, name))
        raise TakenError(_taken(path, kept, "it appeared while this result was made"))


def _linked(new: Path, path: Path) -> bool:
    """Move a file to a name that nothing has; return whether it was free. Unlike a rename, a link replaces nothing."""
    try:
        os.link(new, path)
    except FileExistsError:
        return False
    except OSError:  # a disk without links: the name is taken first
        try:
            path.open("xb").close()
        except FileExistsError:
            return False
        new.replace(path)
    new.unlink(missing_ok=True)
    return True


@contextmanager
def replaced_folder(path: Path, *, replace: Collection[str] | None) -> Generator[Path]:
    """Give the name of a folder to be made; it takes the place of `path` only when the block has ended without an error.

    A crash leaves the old folder or the new one, never a part. (Replacing takes two renamings; a crash between them
    leaves the old folder within a hidden one beside it.) `replace` as in `place_folder`.
    """
    workplace = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    try:
        yield workplace / path.name
        place_folder(workplace / path.name, path, replace=replace)
        _sync(path.parent)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


def place_folder(new: Path, path: Path, *, replace: Collection[str] | None) -> None:
    """Give a finished folder its name, and look at this moment whether the name is free.

    Parameters
    ----------
    new
        The folder, on the same disk as `path`. A folder that it replaces is moved beside it.
    path
        Its name. An empty folder is always replaced.
    replace
        The names of the files in a folder that may be replaced; None: no folder may. In any other case the new folder is
        kept beside `path`, and TakenError names it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     workplace, path = Path(place, "work"), Path(place, "model")
    ...     for name in ("first", "second"):
    ...         (workplace / name).mkdir(parents=True)
    ...         _ = (workplace / name / "weights").write_text(name)
    ...     place_folder(workplace / "first", path, replace=None)
    ...     try:
    ...         place_folder(workplace / "second", path, replace=None)
    ...     except TakenError:
    ...         (path / "weights").read_text(), Path(place, "model-2", "weights").read_text()
    ('first', 'second')
    """
    old = new.with_name(f"{path.name}.replaced")
    try:
        while not _renamed(new, path):
            try:
                found = set(os.listdir(path))
            except FileNotFoundError:
                continue  # it has just gone
            except NotADirectoryError:
                reason = "it is a file"
                break
            if replace is None and found:
                reason = "it appeared while this result was made"
                break
            if strange := sorted(found.difference(replace or ())):
                reason = f"it holds {strange[0]!r}, which pprop did not write"
                break
            shutil.rmtree(old, ignore_errors=True)
            with suppress(FileNotFoundError):
                path.rename(old)
        else:
            return
    finally:
        if old.exists() and not os.path.lexists(path):
            old.rename(path)
    kept = next(name for name in _names_beside(path) if _renamed(new, name))
    raise TakenError(_taken(path, kept, reason))


def _renamed(new: Path, path: Path) -> bool:
    """Rename a folder; return False where `path` is a file or a folder that is not empty, which are left alone."""
    try:
        new.rename(path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        return False
    return True


def _names_beside(path: Path) -> Iterator[Path]:
    """Return free names for what cannot be placed at `path`: results-2.csv, results-3.csv, ... for results.csv."""
    names = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
    return (name for name in names if not os.path.lexists(name))


def _taken(path: Path, kept: Path, reason: str) -> str:
    return (
        f"{str(path)!r} was not replaced: {reason}. This result is in {str(kept)!r}. "
        f"Rename it, or remove {str(path)!r} first."
    )


def _sync(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    if os.name == "posix":  # Windows has no handle of a folder to flush
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
