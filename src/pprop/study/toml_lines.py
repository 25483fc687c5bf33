"""The line of a key in a TOML text, which tomllib does not report."""

from __future__ import annotations

import re
import tomllib
from collections import deque

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
        Valid TOML: what tomllib accepts.
    path
        Keys and positions in arrays, from the outside in.

    Examples
    --------
    >>> text = 'model = "appnp"\n\n[grid]\nalpha = [0.1,\n         0.2]\nsteps = [10]\n'
    >>> line_of(text, ("grid", "steps")), line_of(text, ("grid", "alpha", 1)), line_of(text, ("grid", "other"))
    (6, 5, 3)
    """
    lines = _lines(text)
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _lines(text: str) -> dict[KeyPath, int]:
    """Return the line of everything that has a path."""
    tokens, lines = _tokens(f"{text}\n"), dict[KeyPath, int]()

    def keys() -> list[str]:
        found: list[str] = []
        while (token := tokens[0][0]) not in "=]":
            tokens.popleft()
            if token[0] in "\"'":
                found.append(tomllib.loads(f"key = {token}")["key"])
            elif token != ".":
                found.append(token)
        return found

    def pair(path: KeyPath) -> None:
        line = tokens[0][1]
        for key in keys():
            path = (*path, key)
            lines.setdefault(path, line)
        tokens.popleft()  # the equals sign
        value(path)

    def value(path: KeyPath) -> None:
        token, _ = tokens.popleft()
        if token in "[{":
            position = 0
            while tokens[0][0] not in "]}":
                if tokens[0][0] in "\n,":
                    tokens.popleft()
                elif token == "{":
                    pair(path)
                else:
                    lines[*path, position] = tokens[0][1]
                    value((*path, position))
                    position += 1
            tokens.popleft()
        else:
            while tokens[0][0] not in "\n,]}":
                tokens.popleft()

    table: KeyPath = ()
    last: dict[KeyPath, int] = {}  # position of the last table of each array of tables
    while tokens:
        token, line = tokens[0]
        if token == "[":
            tokens.popleft()
            if many := tokens[0][0] == "[":
                tokens.popleft()
            table, (*outer, name) = (), keys()
            for key in outer:  # [points.at] belongs to the last of [[points]]
                table = _inside(last, (*table, key))
            table = (*table, name)
            if many:
                lines.setdefault(table, line)
                last[table] = last.get(table, -1) + 1
                table = _inside(last, table)
            lines.setdefault(table, line)
            while tokens.popleft()[0] != "\n":
                pass
        elif token == "\n":
            tokens.popleft()
        else:
            pair(table)
    return lines


def _inside(last: dict[KeyPath, int], table: KeyPath) -> KeyPath:
    """Return the last table of an array of tables, or the table itself."""
    return (*table, last[table]) if table in last else table


def _tokens(text: str) -> deque[tuple[str, int]]:
    """Return tokens with their lines, without blanks and comments."""
    found, line = deque[tuple[str, int]](), 1
    for match in _TOKEN.finditer(text):
        if match["blank"] is None:
            found.append((match[0], line))
        line += match[0].count("\n")
    return found
