"""A table before it is written: columns, groups of rows, and values that know how they are to be shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

__all__ = ["NOT_RUN", "Code", "Column", "Group", "Measure", "Number", "PValue", "Strong", "Table", "Value"]

Kind = Literal["text", "number", "measure", "code"]


@final
@dataclass(frozen=True)
class Number:
    """A number with a fixed count of decimals, so that a column is aligned at the point.

    >>> str(Number(0.456, 2, signed=True)), str(Number(12, 0)), str(Number(float("nan"), 2))
    ('+0.46', '12', '–')
    """

    value: float
    decimals: int = 2
    signed: bool = False

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "–"
        text = f"{self.value:{'+' if self.signed else ''}.{self.decimals}f}"
        return text.replace("-", "\u2212")  # a minus sign is as wide as a plus sign


@final
@dataclass(frozen=True)
class Measure:
    """A mean and the number behind its ±, if there is one.

    >>> str(Measure(75.731, 0.3))
    '75.73 ± 0.30'
    """

    mean: float
    half: float | None
    decimals: int = 2

    def __str__(self) -> str:
        half = "" if self.half is None else f" ± {self.half:.{self.decimals}f}"
        return f"{Number(self.mean, self.decimals)}{half}"


@final
@dataclass(frozen=True)
class PValue:
    """A p-value, as the paper prints it.

    >>> str(PValue(0.00102)), str(PValue(float("nan")))
    ('1.02e−03', '–')
    """

    value: float

    def __str__(self) -> str:
        return "–" if math.isnan(self.value) else f"{self.value:.2e}".replace("-", "\u2212")


@final
@dataclass(frozen=True)
class Code:
    """Text to be typed as it is.

    >>> str(Code("pprop study list"))
    'pprop study list'
    """

    text: str

    def __str__(self) -> str:
        return self.text


@final
@dataclass(frozen=True)
class Strong:
    """A value that stands out: the best of its kind.

    >>> str(Strong(Number(1.5, 1)))
    '1.5'
    """

    value: Number | Measure | PValue | str

    def __str__(self) -> str:
        return str(self.value)


@final
class _NotRun:
    def __str__(self) -> str:
        return "not run"


NOT_RUN = _NotRun()
"""Stands where a number of ours is missing; None where there is nothing to be expected."""

Value: TypeAlias = str | Number | Measure | PValue | Code | Strong | _NotRun | None


@final
@dataclass(frozen=True)
class Column:
    """Title and kind of a column."""

    title: str
    kind: Kind = "number"


@final
@dataclass(frozen=True)
class Group:
    """Rows under one heading; None for a table without groups."""

    title: str | None
    rows: tuple[tuple[Value, ...], ...]


@final
@dataclass(frozen=True)
class Table:
    """A table with a sentence above it and remarks below.

    Attributes
    ----------
    caption
        What it shows.
    columns
        Titles and kinds.
    groups
        The rows.
    notes
        Sentences for below the table.

    Examples
    --------
    >>> Table("Squares", (Column("x"), Column("x²")), (Group(None, ((Number(2, 0), Number(4, 0)),)),)).n_rows
    1
    """

    caption: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Rows in all groups."""
        return sum(len(group.rows) for group in self.groups)
