"""The hidden folder beside a graph folder in which that is built: its files, what is done, and a lock."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self, cast, final

from pprop._errors import CapacityError, InputError, Remedy
from pprop.graph.files import place_folder, read_json, replaced_file
from pprop.graph.folder_manifest import FILES

STATE = "state.json"


@final
class Workplace:
    """A folder ``.NAME.build`` beside the folder NAME to be made; what a killed build has finished is recorded in it.

    Parameters
    ----------
    target
        The folder to be made.
    job
        What is built of what: files with their sizes and times of change, and arguments. A build that finds the record of
        another job refuses, unless `restart` is true.
    restart
        Whether to begin anew.
    """

    def __init__(self, target: Path, job: Mapping[str, Any], *, restart: bool) -> None:
        self.target = target
        self.path = target.with_name(f".{target.name}.build")
        self.result = self.path / "graph"
        self._job = dict(job)
        self._lock: IO[bytes] | None = None
        self.path.mkdir(exist_ok=True)
        self._hold()
        try:
            self.state = self._found(restart=restart)
        except BaseException:
            self.release()
            raise

    @property
    def resumed(self) -> bool:
        """Whether some of the work was done before."""
        return bool(self.state)

    def _hold(self) -> None:
        """Keep other processes from building the same folder."""
        stream = (self.path / "lock").open("ab")
        try:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows
            pass
        except OSError:
            stream.close()
            raise InputError(f"Another process is building {str(self.target)!r}. Wait for it, or end it.") from None
        self._lock = stream

    def _found(self, *, restart: bool) -> dict[str, Any]:
        file = self.path / STATE
        known: Any = None
        if file.is_file() and not restart:
            try:
                known = read_json(file)
            except (OSError, ValueError):
                known = None  # nothing that could be used
        if isinstance(known, dict):
            kept = cast("dict[str, Any]", known)
            if kept.get("job") == json.loads(json.dumps(self._job)):
                return kept["done"]
            raise InputError(
                f"{str(self.path)!r} holds a half-built graph of other arguments, or of files that have changed since.",
                remedies=[
                    Remedy("The arguments of before go on with it; others begin anew.", settings={"restart": True})
                ],
            )
        self.clear()
        return {}

    def clear(self) -> None:
        """Remove everything but the lock, and begin with nothing done."""
        for file in self.path.iterdir():
            if file.is_dir():
                shutil.rmtree(file)
            elif file.name != "lock":
                file.unlink()
        self.result.mkdir()
        self.state = {}

    def save(self, **done: Any) -> None:
        """Record, on the disk, what is done; what was recorded before stays."""
        self.state |= done
        with replaced_file(self.path / STATE) as stream:
            stream.write(json.dumps({"job": self._job, "done": self.state}).encode())

    def size(self) -> int:
        """Return how many bytes are in the folder."""
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())

    def move(self, *, replace: bool) -> None:
        """Put the result in its place; a graph folder that is there is removed only then, and only with `replace`."""
        try:
            place_folder(self.result, self.target, replace=FILES if replace else None)
        finally:
            if not self.result.exists():
                shutil.rmtree(self.path, ignore_errors=True)

    @contextmanager
    def removed_where_useless(self) -> Generator[None]:
        """Remove the folder where the block fails and nobody can go on: for wrong input, or before anything was recorded."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, InputError) or not self.state.keys() - {"seed"}:
                shutil.rmtree(self.path, ignore_errors=True)
            raise

    def release(self) -> None:
        """Let other processes build the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


@contextmanager
def disk_errors(target: Path, workplace: Path) -> Generator[None]:
    """Say in one sentence that the disk is full, or that this user may not write."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            kept = workplace.exists()
            left = shutil.disk_usage(workplace if kept else target.parent).free
            more = (
                f" with the same arguments, which goes on where it ended, or remove {str(workplace)!r}" if kept else ""
            )
            raise CapacityError(
                f"The disk of {str(target)!r} is full: {left / 1e9:.1f} GB are free. Free some space and build again{more}."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise InputError(
                f"The 'out' parameter of build_graph must be a path that can be written. Got {str(target)!r} instead "
                f"({error.strerror})."
            ) from error
        raise


def file_mark(path: Path) -> list[Any]:
    """Return what tells a file from another, or from itself after a change: its path, size and time of change."""
    about = path.stat()
    return [os.path.abspath(path), about.st_size, about.st_mtime_ns]
