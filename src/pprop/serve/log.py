"""An append-only log of edits: a line for each batch, on the disk before the batch is acknowledged.

The first line names the graph. Every other line is a checksum, a space and JSON: ``{"sequence": 1, "edits": [...]}``. A line
without its end was never acknowledged, and is cut off when the log is opened.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, final

from pprop._errors import FormatError, InputError
from pprop.graph.files import replaced_file

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None

FORMAT, VERSION = "pprop-edits", 1

Edit = Mapping[str, Any]


@final
class EditLog:
    """A log of edits of one graph.

    Parameters
    ----------
    path
        The file, which is made where there is none.
    graph
        Fingerprint of the graph that the edits begin with. A log of another graph is refused.

    Attributes
    ----------
    batches
        All that the log held when it was opened, in order.
    cut
        Bytes of a line without an end that were cut off then.
    broken
        Whether a failed write has left something in the file that is not cut off yet; `append` and `repair` try to.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with EditLog(Path(folder, "edits.log"), "0" * 32) as log:
    ...         log.append([{"op": "remove_edge", "source": 1, "target": 2}])
    ...     with EditLog(Path(folder, "edits.log"), "0" * 32) as log:
    ...         log.sequence, log.batches[0][0]["op"]
    1
    (1, 'remove_edge')
    """

    def __init__(self, path: Path, graph: str) -> None:
        self.path, self._graph = path, graph
        self.broken = False
        header = {"format": FORMAT, "version": VERSION, "graph": graph}
        if path.is_dir() or not path.absolute().parent.is_dir():
            what = "is a folder" if path.is_dir() else "is in a folder that does not exist"
            raise InputError(f"--live needs a file for its log, and {str(path)!r} {what}.")
        if not path.exists():
            with replaced_file(path) as stream:  # it appears with its first line, or not at all
                stream.write(_line(header))
        # without a buffer, which would keep what the disk refused and try to write it again before anything else
        self._file = path.open("r+b", buffering=0)
        try:
            self._lock()
            self.batches, self._end, self.cut = self._read()
            if self.cut:
                self._file.truncate(self._end)
                os.fsync(self._file.fileno())
        except BaseException:
            self._file.close()
            raise
        self.sequence = len(self.batches)

    def __enter__(self) -> EditLog:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the log stays."""
        self._file.close()

    def append(self, edits: Sequence[Edit]) -> int:
        """Write a batch to the disk and return its number; with an error the log is as it was before."""
        self.repair()
        line = _line({"sequence": self.sequence + 1, "edits": list(edits)})
        try:
            self._file.seek(self._end)
            written = 0
            while written < len(line):  # a disk that is nearly full takes a part
                written += self._file.write(line[written:])
            os.fsync(self._file.fileno())
        except OSError:
            self.broken = True
            with contextlib.suppress(OSError):
                self.repair()
            raise
        self._end += len(line)
        self.sequence += 1
        return self.sequence

    def repair(self) -> None:
        """Cut off what a failed write has left after the last batch. Where the disk refuses that, too, `broken` stays true."""
        if self.broken:
            self._file.truncate(self._end)
            os.fsync(self._file.fileno())
            self.broken = False

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"The log {str(self.path)!r} is in use by another server.") from error

    def _read(self) -> tuple[list[list[dict[str, Any]]], int, int]:
        """Return all batches, where the last one ends, and how many bytes come after it."""
        content = self._file.read()
        lines = content.split(b"\n")
        half = lines.pop()  # empty where the last line has its end
        name = str(self.path)
        header = _content(lines[0]) if lines else None
        if header is None or header.get("format") != FORMAT:
            raise FormatError(f"The file {name!r} is no log of edits of pprop. Give --live another file.")
        if header.get("version") != VERSION:
            raise FormatError(f"The log {name!r} was written by a newer pprop. Install that one.")
        if header.get("graph") != self._graph:
            raise FormatError(
                f"The log {name!r} belongs to another graph, with the fingerprint {header.get('graph')}; that of the "
                f"model is {self._graph}. Give --live another file."
            )
        if lines[1:] and b"\0" in lines[-1]:  # of a machine that went down in the middle of a write
            half = lines.pop() + b"\n" + half
        batches: list[list[dict[str, Any]]] = []
        for number, line in enumerate(lines[1:], start=1):
            found = _content(line)
            if found is None or found.get("sequence") != number or not isinstance(found.get("edits"), list):
                raise FormatError(
                    f"The log {name!r} is damaged in line {number + 1}. Use a copy of it, or cut it off before that line."
                )
            batches.append(found["edits"])
        return batches, len(content) - len(half), len(half)


def _line(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
    return b"%08x %b\n" % (zlib.crc32(text), text)


def _content(line: bytes) -> dict[str, Any] | None:
    """Return what a line holds; None where it is damaged."""
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
