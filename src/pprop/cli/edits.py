"""Edits of a graph as lines of text: all of them are read and checked, then made one by one, each error with its line."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from pprop._errors import FormatError, InputError
from pprop.cli.graphs import node_keys

if TYPE_CHECKING:
    from pprop.graph import Graph
    from pprop.propagation import LiveGraph, LiveUpdate

__all__ = ["FORMS", "STANDARD_INPUT", "Edit", "make_edits", "parse_edit", "read_edits"]

FORMS = {
    "+": "+ A B [WEIGHT]",
    "-": "- A B",
    "node": "node NAME FEATURES...",
    "features": "features NAME FEATURES...",
    "remove": "remove NAME",
}
_WORDS = {"+": (2, 3), "-": (2, 2), "node": (2, math.inf), "features": (2, math.inf), "remove": (1, 1)}
"""How many words follow the first one, at least and at most."""
STANDARD_INPUT = "-"


@final
@dataclass(frozen=True)
class Edit:
    """One line: where it stands, what it says, and its words.

    Attributes
    ----------
    place
        File and number of the line, for errors.
    line, text
        The number, from 1 on, and the line.
    verb
        A key of `FORMS`.
    words
        What follows it.
    weight
        Of a new edge.
    features
        Numbers by the name of their column; None as a name: in the order of all columns.
    """

    place: str
    line: int
    text: str
    verb: str
    words: tuple[str, ...]
    weight: float = 1.0
    features: tuple[tuple[str | None, float], ...] = ()


def read_edits(source: str) -> list[Edit]:
    """Read all edits of a file, or with ``-`` of standard input; empty lines and those that begin with # say nothing."""
    title = "standard input" if source == STANDARD_INPUT else repr(source)
    try:
        content = sys.stdin.read() if source == STANDARD_INPUT else Path(source).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"EDITS must be text in UTF-8. Got {title} with other bytes instead.") from error
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {title}.") from error
    lines = ((number, line.strip()) for number, line in enumerate(content.split("\n"), start=1))
    return [parse_edit(line, number, title) for number, line in lines if line and not line.startswith("#")]


def parse_edit(text: str, line: int = 1, title: str = "standard input") -> Edit:
    """Return what a line says.

    >>> edit = parse_edit("+ anna 'van Dyk' 2.5")
    >>> edit.verb, edit.words, edit.weight
    ('+', ('anna', 'van Dyk'), 2.5)
    >>> parse_edit("- anna", line=7)
    Traceback (most recent call last):
        ...
    pprop._errors.FormatError: Line 7 of standard input, '- anna': An edit '-' is written: - A B.
    """
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    place = f"Line {line} of {title}, {shown!r}"
    with _at(place):
        try:
            verb, *words = shlex.split(text)
        except ValueError as error:
            raise FormatError(f"A quotation is not closed ({error}).") from error
        if verb not in FORMS:
            raise FormatError(f"An edit begins with {', '.join(FORMS)}. Got {verb!r} instead.")
        least, most = _WORDS[verb]
        if not least <= len(words) <= most:
            raise FormatError(f"An edit {verb!r} is written: {FORMS[verb]}.")
        if verb == "+":
            weight = _number(words[2], "weight") if len(words) == 3 else 1.0
            if weight <= 0:
                raise FormatError(f"A weight is a positive number. Got {words[2]!r} instead.")
            return Edit(place, line, text, verb, tuple(words[:2]), weight=weight)
        if verb in ("node", "features"):
            return Edit(place, line, text, verb, (words[0],), features=_features(words[1:]))
        return Edit(place, line, text, verb, tuple(words))


def make_edits(live: LiveGraph, graph: Graph, edits: Sequence[Edit]) -> list[LiveUpdate]:
    """Make edits one by one and return what they cost; `graph` is the one that was made live."""
    done: list[LiveUpdate] = []
    free = graph.n_nodes  # the position that the next new node gets
    for edit in edits:
        with _at(edit.place):
            done.append(_make(live, graph, edit, free))
        free += edit.verb == "node"
    return done


def _make(live: LiveGraph, graph: Graph, edit: Edit, free: int) -> LiveUpdate:
    if edit.verb == "node":
        return _add_node(live, graph, edit, free)
    at = [_position(live, graph, name) for name in edit.words]
    match edit.verb:
        case "+":
            return live.add_edge(at[0], at[1], edit.weight)
        case "-":
            return live.remove_edge(at[0], at[1])
        case "features":
            return live.set_features(at[0], _row(graph, edit.features))
        case _:
            return live.remove_node(at[0])


def _add_node(live: LiveGraph, graph: Graph, edit: Edit, free: int) -> LiveUpdate:
    (key,) = node_keys(graph.ids, edit.words)
    row = _row(graph, edit.features)
    if graph.ids is not None:
        return live.add_node(row, id=key)
    if key != free:
        raise InputError(f"The nodes of this graph have positions, and the next new one is {free}. Got {key} instead.")
    return live.add_node(row)


def _position(live: LiveGraph, graph: Graph, name: str) -> int:
    (key,) = node_keys(graph.ids, [name])
    if graph.ids is None:
        return key
    try:
        return int(live.positions([key])[0])
    except InputError:
        raise InputError(f"There is no node {name!r} in the graph.") from None


def _row(graph: Graph, given: Sequence[tuple[str | None, float]]) -> Any:
    """Return the features of one node, sparse where those of the graph are."""
    import numpy as np
    from scipy import sparse

    known = graph.features
    if known is None or known.ndim != 2:
        has = "none" if known is None else f"arrays of shape {known.shape[1:]}, which no line can hold"
        raise InputError(f"Features are columns of numbers, and the nodes of this graph have {has}.")
    row, width = np.zeros(known.shape[1], known.dtype), known.shape[1]
    if given[0][0] is None:
        if len(given) != width:
            raise InputError(f"A node has {width} features. Got {len(given)} instead; or write COLUMN=VALUE.")
        row[:] = [value for _, value in given]
    else:
        names = graph.feature_names or [str(column) for column in range(width)]
        place = {name: column for column, name in enumerate(names)}
        for name, value in given:
            if name not in place:
                what = "the columns are" if graph.feature_names else "they have no names, so columns are"
                raise InputError(f"There is no feature {name!r}: {what} {names[0]!r} to {names[-1]!r}.")
            row[place[str(name)]] = value
    return sparse.csr_array(row[None]) if sparse.issparse(known) else row


def _features(words: Sequence[str]) -> tuple[tuple[str | None, float], ...]:
    """Return numbers with their columns: all of them named, or none."""
    named = ["=" in word for word in words]
    if not any(named):
        return tuple((None, _number(word, "feature")) for word in words)
    if not all(named):
        raise FormatError("Features are all written COLUMN=VALUE, or all as numbers.")
    pairs = [word.rpartition("=") for word in words]
    columns = [name for name, _, _ in pairs]
    twice = [name for name in columns if columns.count(name) > 1] if len(set(columns)) < len(columns) else []
    if twice:
        raise FormatError(f"The feature {twice[0]!r} is given more than once.")
    return tuple((name, _number(value, "feature")) for name, _, value in pairs)


def _number(word: str, what: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(f"A {what} is a finite number. Got {word!r} instead.")
    return value


@contextmanager
def _at(place: str) -> Generator[None]:
    """Put the place before the sentence of an error."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{place}: {error}") from error
