"""In which line of a TOML text a key stands: what tomllib knows and does not tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import final

__all__ = ["line_of"]

KeyPath = tuple[str | int, ...]

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|(?P<blank>\#[^\n]*|[ \t\r]+)"
    r"|\n|[\[\]{}=,.]|[^\s\[\]{}=,.\"'\#]+",
    re.DOTALL,
)


def line_of(text: str, path: KeyPath) -> int:
    r"""Return the line, from 1, of a key or of an element of an array; of what holds it, where it is not written.

    Parameters
    ----------
    text
        Sound TOML: what tomllib accepts.
    path
        Keys and positions in arrays, from the outside in.

    Examples
    --------
    >>> text = 'model = "appnp"\n\n[grid]\nalpha = [0.1,\n         0.2]\nsteps = [10]\n'
    >>> line_of(text, ("grid", "steps")), line_of(text, ("grid", "alpha", 1)), line_of(text, ("grid", "other"))
    (6, 5, 3)
    """
    lines = _Scanner(text).lines
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


@final
class _Scanner:
    """Walks over the tokens once and notes the line of everything that has a path."""

    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._tokens = list(_tokens(text))
        self._at = 0
        prefix: KeyPath = ()
        seen: dict[KeyPath, int] = {}  # tables of an array of tables so far
        while self._peek() is not None:
            if self._skip("\n"):
                continue
            if self._skip("["):
                prefix = self._header(seen)
                continue
            self._pair(prefix)

    def _header(self, seen: dict[KeyPath, int]) -> KeyPath:
        line, many = self._line(), self._skip("[")
        keys = self._key()
        path: KeyPath = ()
        for position, key in enumerate(keys):  # [points.at] belongs to the last of [[points]]
            path = (*path, key)
            if path in seen and position < len(keys) - 1:
                path = (*path, seen[path])
        while self._peek() not in ("\n", None):
            self._next()
        if many:
            seen[path] = seen.get(path, -1) + 1
            self.lines.setdefault(path, line)
            path = (*path, seen[path])
        self.lines.setdefault(path, line)
        return path

    def _pair(self, prefix: KeyPath) -> None:
        line = self._line()
        path = prefix
        for key in self._key():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._skip("=")
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        if self._skip("["):
            position = 0
            while not self._skip("]"):
                if not (self._skip("\n") or self._skip(",")):
                    self.lines[*path, position] = self._line()
                    self._value((*path, position))
                    position += 1
        elif self._skip("{"):
            while not self._skip("}"):
                if not (self._skip("\n") or self._skip(",")):
                    self._pair(path)
        else:
            while self._peek() not in ("\n", ",", "]", "}", None):
                self._next()

    def _key(self) -> list[str]:
        keys = [_plain(self._next())]
        while self._skip("."):
            keys.append(_plain(self._next()))
        return keys

    def _peek(self) -> str | None:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else None

    def _line(self) -> int:
        return self._tokens[self._at][1]

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][0]

    def _skip(self, token: str) -> bool:
        found = self._peek() == token
        self._at += found
        return found


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield tokens with their lines, without blanks and comments."""
    line = 1
    for match in _TOKEN.finditer(text):
        if match["blank"] is None:
            yield match[0], line
        line += match[0].count("\n")


def _plain(key: str) -> str:
    """Return a key without its quotes."""
    if key[0] not in "\"'":
        return key
    table: Mapping[str, str] = tomllib.loads(f"key = {key}")
    return table["key"]
