"""A table: columns, groups of rows, and values that know how they are shown; written as Markdown or HTML."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias, cast, final

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


def number(value: float | None, decimals: int = 2, signed: bool = False) -> Number | None:
    """Return a number, or None where there is none.

    >>> str(number(0.456, 1)), number(None)
    ('0.5', None)
    """
    return None if value is None else Number(value, decimals, signed)


@final
@dataclass(frozen=True)
class Measure:
    """A mean, the number behind its ±, if there is one, and the same over splits, in brackets.

    >>> str(Measure(75.731, 0.3)), str(Measure(75.731, 0.3, over_splits=0.5))
    ('75.73 ± 0.30', '75.73 ± 0.30 (0.50)')
    """

    mean: float
    half: float | None
    decimals: int = 2
    over_splits: float | None = None

    @property
    def halves(self) -> str:
        """What is behind the mean."""
        wider = "" if self.over_splits is None else f" ({self.over_splits:.{self.decimals}f})"
        return "" if self.half is None else f"± {self.half:.{self.decimals}f}{wider}"

    def __str__(self) -> str:
        return f"{Number(self.mean, self.decimals)} {self.halves}".strip()


# A p-value below this is printed as that: how far below depends on assumptions that no test checks.
LEAST_P = 1e-6


@final
@dataclass(frozen=True)
class PValue:
    """A p-value with as many digits as the paper has; below `LEAST_P` as that, unless it is quoted from the paper.

    >>> str(PValue(0.00102)), str(PValue(6.24e-16)), str(PValue(5.96e-14, quoted=True)), str(PValue(float("nan")))
    ('1.02e−03', '< 1e−6', '5.96e−14', '–')
    """

    value: float
    quoted: bool = False

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "–"
        return "< 1e−6" if self.value < LEAST_P and not self.quoted else f"{self.value:.2e}".replace("-", "\u2212")


def p_words(value: float) -> str:
    """Return a p-value as sentences have it, with two digits.

    >>> p_words(0.0321), p_words(4.9e-17)
    ('p = 0.032', 'p < 1e−6')
    """
    return "p < 1e−6" if value < LEAST_P else f"p = {value:.2g}".replace("-", "\u2212")


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
    """A value in bold: the best of its kind.

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


# In place of a number of ours that is missing; None where no number is expected.
NOT_RUN = _NotRun()

Value: TypeAlias = str | Number | Measure | PValue | Code | Strong | _NotRun | None


@final
@dataclass(frozen=True)
class TableColumn:
    """Title and kind of a column."""

    title: str
    kind: Kind = "number"


# One row of a table.
Cells: TypeAlias = tuple[Value, ...]


@final
@dataclass(frozen=True)
class Group:
    """Rows under one heading; None for a table without groups."""

    title: str | None
    rows: tuple[Cells, ...]


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
    >>> Table("Squares", (TableColumn("x"), TableColumn("x²")), (Group(None, ((Number(2, 0), Number(4, 0)),)),)).n_rows
    1
    """

    caption: str
    columns: tuple[TableColumn, ...]
    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Rows in all groups."""
        return sum(len(group.rows) for group in self.groups)

    @staticmethod
    def of(caption: str, titles: str, groups: Mapping[str | None, Iterable[Cells]], notes: Iterable[str] = ()) -> Table:
        """Return a table of the columns in `titles`, between bars, each with its kind after a colon unless "number".

        The groups are rows by heading; one without rows is left out.

        >>> Table.of("Runs", "Model:text | Runs", {None: [("GCN", "100")], "empty": []}).columns
        (TableColumn(title='Model', kind='text'), TableColumn(title='Runs', kind='number'))
        """
        parts = (title.strip().partition(":") for title in titles.split("|"))
        columns = tuple(TableColumn(title, cast("Kind", kind or "number")) for title, _, kind in parts)
        made = (Group(heading, tuple(rows)) for heading, rows in groups.items())
        return Table(caption, columns, tuple(group for group in made if group.rows), tuple(notes))

    def without(self, *titles: str) -> Table:
        """Return the table without some columns.

        >>> Table.of("Runs", "Model:text | Runs", {None: [("GCN", "100")]}).without("Model").groups[0].rows
        (('100',),)
        """
        kept = [at for at, column in enumerate(self.columns) if column.title not in titles]
        groups = (Group(each.title, tuple(tuple(row[at] for at in kept) for row in each.rows)) for each in self.groups)
        return Table(self.caption, tuple(self.columns[at] for at in kept), tuple(groups), self.notes)


def listed(names: Sequence[str]) -> str:
    """Return names in a row, as in a sentence.

    >>> listed(["GCN", "GAT", "JK"]), listed(["GCN"])
    ('GCN, GAT and JK', 'GCN')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def inline_markdown(text: str) -> str:
    r"""Return a sentence as Markdown: what is between backticks stays code, everything else is plain text.

    >>> inline_markdown("a_b is `x_1 | y`")
    'a\\_b is `x_1 \\| y`'
    """
    return _inline(text, _plain, lambda code: f"`{code.replace('|', chr(92) + '|')}`")


def inline_html(text: str) -> str:
    """Return a sentence as HTML: what is between backticks becomes code, everything is escaped.

    >>> inline_html("`a < b` & c")
    '<code>a &lt; b</code> &amp; c'
    """
    return _inline(text, escape, lambda code: f"<code>{escape(code)}</code>")


def _inline(text: str, plain: Callable[[str], str], code: Callable[[str], str]) -> str:
    parts = text.split("`")
    if len(parts) % 2 == 0:  # an odd number of backticks: they mean nothing
        return plain(text)
    return "".join(code(part) if index % 2 else plain(part) for index, part in enumerate(parts))


def table_markdown(table: Table) -> str:
    """Return a table with its caption above and its notes below; a group's heading is a row of its own.

    Examples
    --------
    >>> print(table_markdown(Table.of("Squares", "x | x²", {None: [(Number(2), Number(4))]})))
    **Squares**
    <BLANKLINE>
    | x | x² |
    |---:|---:|
    | 2.00 | 4.00 |
    <BLANKLINE>
    """

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    lines = [f"**{_plain(table.caption)}**", "", line(_plain(column.title) for column in table.columns)]
    rules = ("---" if column.kind in ("text", "code") else "---:" for column in table.columns)
    lines.append(f"|{'|'.join(rules)}|")
    for group in table.groups:
        if group.title is not None:
            lines.append(line([f"**{_plain(group.title)}**", *[""] * (len(table.columns) - 1)]))
        lines += [line(map(_markdown_cell, row)) for row in group.rows]
    lines += ["", *(f"- {inline_markdown(note)}" for note in table.notes)]
    return "\n".join([*lines, ""] if table.notes else lines)


def _markdown_cell(value: Value) -> str:
    match value:
        case None:
            return "–"
        case Code(text):
            return inline_markdown(f"`{text.replace('`', chr(39))}`")
        case Strong(inner):
            return f"**{_plain(str(inner))}**"
        case _:
            return _plain(str(value))


def _plain(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", text.replace("\n", " "))


def table_html(table: Table) -> str:
    """Return a table as a figure with a caption, and its notes as a list; everything is escaped.

    A mean and its ± are two cells, so that both are aligned at the decimal point.

    Examples
    --------
    >>> made = table_html(Table("A & B", (TableColumn("x"),), (Group("all", ((Number(2),), (None,))),)))
    >>> '<td class="number">2.00</td>' in made, '<td class="none">–</td>' in made, "A &amp; B" in made
    (True, True, True)
    """

    def head(column: TableColumn) -> str:
        span = ' colspan="2"' if column.kind == "measure" else ""
        return f'<th class="{column.kind}"{span}>{inline_html(column.title)}</th>'

    width = sum(2 if column.kind == "measure" else 1 for column in table.columns)
    lines = ['<figure class="table">', f"<figcaption>{inline_html(table.caption)}</figcaption>"]
    lines += ['<div class="scroll"><table>', f"<thead><tr>{''.join(map(head, table.columns))}</tr></thead>"]
    for group in table.groups:
        lines.append("<tbody>")
        if group.title is not None:
            lines.append(f'<tr class="group"><th colspan="{width}">{escape(group.title)}</th></tr>')
        for row in group.rows:
            cells = (_html_cell(value, column) for value, column in zip(row, table.columns, strict=True))
            lines.append(f"<tr>{''.join(cells)}</tr>")
        lines.append("</tbody>")
    lines.append("</table></div>")
    if table.notes:
        lines.append(f'<ul class="notes">{"".join(f"<li>{inline_html(note)}</li>" for note in table.notes)}</ul>')
    return "\n".join([*lines, "</figure>"])


def _html_cell(value: Value, column: TableColumn) -> str:
    inner, more = (value.value, " strong") if isinstance(value, Strong) else (value, "")
    match inner:
        case Measure() if column.kind == "measure":
            mean_cell = f'<td class="number{more}">{Number(inner.mean, inner.decimals)}</td>'
            return f'{mean_cell}<td class="half{more}">{inner.halves}</td>'
        case _ if column.kind == "measure":
            return f'<td class="none" colspan="2">{"–" if inner is None else escape(str(inner))}</td>'
        case None:
            return '<td class="none">–</td>'
        case Code(text):
            words = escape(text).split(" ")  # browsers would break an option after its first hyphen
            kept = (f"<span>{word}</span>" if word.startswith("--") else word for word in words)
            return f'<td class="code"><code>{" ".join(kept)}</code></td>'
        case Number() | PValue() | Measure():
            return f'<td class="number{more}">{inner}</td>'
        case str():
            return f'<td class="{column.kind}{more}">{escape(inner)}</td>'
        case _:
            return f'<td class="none">{NOT_RUN}</td>'
