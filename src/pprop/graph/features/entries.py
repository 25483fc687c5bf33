"""What a recipe says in JSON, read without trust: every member checked for its type, its range and its size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast, final

from pprop._errors import FormatError
from pprop._validate import describe
from pprop.graph.features.columns import DAY_PATTERNS, LARGEST
from pprop.graph.features.encoders import (
    BooleanEncoder,
    CategoryEncoder,
    DateEncoder,
    EmbeddingEncoder,
    Encoder,
    NumberEncoder,
    TextEncoder,
)
from pprop.graph.features.kinds import Kind

Choice = TypeVar("Choice", bound=str)


@final
@dataclass(frozen=True)
class Entry:
    """A value in a JSON document and where it stands there."""

    value: object
    place: str

    def complain(self, expected: str, got: str = "") -> NoReturn:
        """Raise FormatError with the place.

        >>> Entry("x", "columns[2].fill").complain("a finite number")
        Traceback (most recent call last):
            ...
        pprop._errors.FormatError: A recipe must have a finite number at columns[2].fill. Got 'x' instead.
        """
        raise FormatError(f"A recipe must have {expected} at {self.place}. Got {got or describe(self.value)} instead.")

    def member(self, name: str) -> Entry:
        """Return one member of an object."""
        if not isinstance(self.value, dict) or name not in self.value:
            self.complain(f"an object with the member {name!r}")
        return Entry(cast("dict[str, object]", self.value)[name], f"{self.place}.{name}")

    def fields(self, *names: str) -> dict[str, Entry]:
        """Return the members of an object that has these and no others."""
        if not isinstance(self.value, dict) or set(cast("dict[object, object]", self.value)) != set(names):
            self.complain(f"an object with the members {', '.join(names)}")
        return {name: self.member(name) for name in names}

    def items(self) -> list[Entry]:
        """Return the items of a list."""
        if not isinstance(self.value, list | tuple):
            self.complain("a list")
        return [Entry(item, f"{self.place}[{at}]") for at, item in enumerate(cast("Sequence[object]", self.value))]

    def text(self) -> str:
        """Return a text."""
        if not isinstance(self.value, str) or not _is_unicode(self.value):
            self.complain("a text")
        return self.value

    def number(self, low: float = -LARGEST, high: float = LARGEST) -> float:
        """Return a finite number from `low` to `high`."""
        if isinstance(self.value, int | float) and not isinstance(self.value, bool) and low <= self.value <= high:
            return float(self.value)
        self.complain("a finite number" if low < 0 else f"a number of at least {low:g}")

    def count(self) -> int:
        """Return a count."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not 0 <= self.value < 2**63:
            self.complain("an integer of at least 0")
        return self.value

    def flag(self) -> bool:
        """Return True or False."""
        if not isinstance(self.value, bool):
            self.complain("true or false")
        return self.value

    def texts(self) -> tuple[str, ...]:
        """Return a list of distinct texts."""
        found = tuple(item.text() for item in self.items())
        if len(set(found)) < len(found):
            self.complain("distinct texts", f"{len(found) - len(set(found))} repeated ones")
        return found

    def choice(self, choices: Sequence[Choice]) -> Choice:
        """Return one of `choices`."""
        for one in choices:
            if one == self.value:
                return one
        self.complain(f"one of {', '.join(choices)}")


def _is_unicode(text: str) -> bool:
    """Whether a text is one: JSON can spell half of a pair of surrogates, which no file or column holds."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_encoder(kind: Kind, entry: Entry) -> Encoder:
    """Return the encoder of a kind from its parameters.

    >>> read_encoder("boolean", Entry({"missing": 1}, "the recipe"))
    BooleanEncoder(missing=1)
    """
    match kind:
        case "number":
            return _read_number(entry)
        case "boolean":
            return BooleanEncoder(entry.fields("missing")["missing"].count())
        case "date":
            given = entry.fields("fill", "missing", "order")
            order = given["order"].choice(tuple(DAY_PATTERNS))
            return DateEncoder(given["fill"].number(), given["missing"].count(), order)
        case "category":
            given = entry.fields("values", "others", "missing")
            values = given["values"].texts()
            if not values:
                given["values"].complain("values")
            return CategoryEncoder(values, given["others"].count(), given["missing"].count())
        case "text":
            return _read_text(entry)
        case "embedding":
            given = entry.fields("fill", "missing")
            fill = tuple(item.number() for item in given["fill"].items())
            if not fill:
                given["fill"].complain("numbers")
            return EmbeddingEncoder(fill, given["missing"].count())
        case "unused":
            entry.complain("a kind that has parameters")


def _read_number(entry: Entry) -> NumberEncoder:
    names = ["fill", "missing", "comma", "flags"]
    earlier = isinstance(entry.value, dict) and "flags" not in entry.value  # which took truth values for numbers
    given = entry.fields(*names[:3] if earlier else names)
    fill, missing = given["fill"], given["missing"].count()
    if fill.value is None and missing:
        fill.complain("a number, as some were missing,")
    number = None if fill.value is None else fill.number()
    return NumberEncoder(number, missing, given["comma"].flag(), earlier or given["flags"].flag())


def _read_text(entry: Entry) -> TextEncoder:
    given = entry.fields("words", "idf", "missing")
    words = given["words"].texts()
    idf: list[Any] = [item.number(low=1.0) for item in given["idf"].items()]
    if len(idf) != len(words) or not words:
        given["idf"].complain(f"one number for each of {len(words)} words", f"{len(idf)}")
    assert all(math.isfinite(number) for number in idf)
    return TextEncoder(words, tuple(idf), given["missing"].count())
