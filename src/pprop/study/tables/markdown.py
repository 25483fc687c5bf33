"""Tables and sentences as Markdown."""

from __future__ import annotations

import re

from pprop.study.tables.grid import Code, Strong, Table, Value

__all__ = ["inline_markdown", "table_markdown"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")


def inline_markdown(text: str) -> str:
    r"""Return a sentence as Markdown: what is between backticks stays code, everything else is plain text.

    >>> inline_markdown("a_b is `x_1 | y`")
    'a\\_b is `x_1 \\| y`'
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:  # an odd number of backticks: they mean nothing
        return _plain(text)
    return "".join(
        f"`{part.replace('|', chr(92) + '|')}`" if index % 2 else _plain(part) for index, part in enumerate(parts)
    )


def table_markdown(table: Table) -> str:
    """Return a table with its caption above and its notes below; a group's heading is a row of its own.

    Examples
    --------
    >>> from pprop.study.tables.grid import Column, Group, Number
    >>> print(table_markdown(Table("Squares", (Column("x"), Column("x²")), (Group(None, ((Number(2), Number(4)),)),))))
    **Squares**
    <BLANKLINE>
    | x | x² |
    |---:|---:|
    | 2.00 | 4.00 |
    <BLANKLINE>
    """
    lines = [f"**{_plain(table.caption)}**", "", _row([_plain(column.title) for column in table.columns])]
    rules = ("---" if column.kind in ("text", "code") else "---:" for column in table.columns)
    lines.append(f"|{'|'.join(rules)}|")
    for group in table.groups:
        if group.title is not None:
            lines.append(_row([f"**{_plain(group.title)}**", *[""] * (len(table.columns) - 1)]))
        lines.extend(_row([_cell(value) for value in row]) for row in group.rows)
    lines.append("")
    lines.extend(f"- {inline_markdown(note)}" for note in table.notes)
    return "\n".join([*lines, ""] if table.notes else lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Value) -> str:
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
    return _SPECIAL.sub(r"\\\1", text.replace("\n", " "))
