"""The files of the page: found by their names alone, with a type each and a tag that says whether one has changed."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple, final

from pprop.serve.faults import Fault

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_DEEPEST = 4


@final
class PageFile(NamedTuple):
    """A file: its bytes, its type and its tag."""

    content: bytes
    kind: str
    tag: str


@final
class PageFiles:
    """The files in a folder and in the folders of it.

    Examples
    --------
    >>> PageFiles(FOLDER).read("../settings.py")
    Traceback (most recent call last):
        ...
    pprop.serve.faults.Fault: There is no such file.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder.resolve()
        self._kept: dict[Path, tuple[tuple[int, int], PageFile]] = {}

    def read(self, name: str) -> PageFile:
        """Return a file by its name, with ``/`` between folders; no name leads out of the folder."""
        parts = name.split("/")
        file = self._folder.joinpath(*parts)
        kind = TYPES.get(file.suffix)
        sound = kind is not None and len(parts) <= _DEEPEST and all(_PART.fullmatch(part) for part in parts)
        if not sound or not file.is_file() or not file.resolve().is_relative_to(self._folder):
            raise Fault(404, "not_found", "There is no such file.")
        assert kind is not None
        state = file.stat()
        stamp = state.st_mtime_ns, state.st_size
        kept = self._kept.get(file)
        if kept is None or kept[0] != stamp:
            content = file.read_bytes()
            kept = self._kept[file] = stamp, PageFile(content, kind, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
        return kept[1]
