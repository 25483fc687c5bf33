"""Tables and sentences as HTML, everything escaped."""

from __future__ import annotations

from html import escape

from pprop.study.tables.grid import NOT_RUN, Code, Column, Measure, Number, PValue, Strong, Table, Value

__all__ = ["inline_html", "table_html"]


def inline_html(text: str) -> str:
    """Return a sentence as HTML: what is between backticks becomes code, everything is escaped.

    >>> inline_html("`a < b` & c")
    '<code>a &lt; b</code> &amp; c'
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:  # an odd number of backticks: they mean nothing
        return escape(text)
    return "".join(f"<code>{escape(part)}</code>" if index % 2 else escape(part) for index, part in enumerate(parts))


def table_html(table: Table) -> str:
    """Return a table as a figure with a caption, and its notes as a list.

    A mean and its ± are two cells, so that both are aligned at the decimal point.

    Examples
    --------
    >>> from pprop.study.tables.grid import Group
    >>> made = table_html(Table("A & B", (Column("x"),), (Group("all", ((Number(2),), (None,))),)))
    >>> '<td class="number">2.00</td>' in made, '<td class="none">–</td>' in made, "A &amp; B" in made
    (True, True, True)
    """
    width = sum(2 if column.kind == "measure" else 1 for column in table.columns)
    lines = ['<figure class="table">', f"<figcaption>{inline_html(table.caption)}</figcaption>"]
    lines += ['<div class="scroll"><table>', f"<thead><tr>{''.join(map(_head, table.columns))}</tr></thead>"]
    for group in table.groups:
        lines.append("<tbody>")
        if group.title is not None:
            lines.append(f'<tr class="group"><th colspan="{width}">{escape(group.title)}</th></tr>')
        for row in group.rows:
            cells = (_cell(value, column) for value, column in zip(row, table.columns, strict=True))
            lines.append(f"<tr>{''.join(cells)}</tr>")
        lines.append("</tbody>")
    lines.append("</table></div>")
    if table.notes:
        lines.append(f'<ul class="notes">{"".join(f"<li>{inline_html(note)}</li>" for note in table.notes)}</ul>')
    return "\n".join([*lines, "</figure>"])


def _head(column: Column) -> str:
    span = ' colspan="2"' if column.kind == "measure" else ""
    return f'<th class="{column.kind}"{span}>{inline_html(column.title)}</th>'


def _cell(value: Value, column: Column) -> str:
    strong = isinstance(value, Strong)
    inner: Value = value.value if isinstance(value, Strong) else value
    more = " strong" if strong else ""
    if column.kind == "measure":
        if isinstance(inner, Measure):
            half = "" if inner.half is None else f"± {inner.half:.{inner.decimals}f}"
            mean = Number(inner.mean, inner.decimals)
            return f'<td class="number{more}">{mean}</td><td class="half{more}">{half}</td>'
        return f'<td class="none" colspan="2">{"–" if inner is None else escape(str(inner))}</td>'
    match inner:
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
