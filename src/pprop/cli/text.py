"""Plain text for people: aligned columns, counted nouns."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["columns", "counted", "examples", "listed"]

KEEP_LINES = "\b"  # tells typer not to fill the paragraph


def columns(headings: Sequence[str], rows: Sequence[Sequence[object]], left: Sequence[int] = (0,)) -> str:
    """Return a table as text: a heading, a rule, the rows; columns in `left` are aligned left, the others right.

    >>> print(columns(["graph", "nodes"], [["citeseer", 2110], ["cora_ml", 2810]]))
    graph     nodes
    --------  -----
    citeseer   2110
    cora_ml    2810
    """
    table = [list(headings), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(headings))]
    table.insert(1, ["-" * width for width in widths])
    lines = [
        "  ".join(f"{cell:<{width}}" if k in left else f"{cell:>{width}}" for k, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in table)
    ]
    return "\n".join(line.rstrip() for line in lines)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, thousands apart.

    >>> counted(1, "node"), counted(12345, "edge"), counted(2, "class", "classes")
    ('1 node', '12,345 edges', '2 classes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(items: Sequence[object], most: int = 5) -> str:
    """Return the first items, and how many more there are.

    >>> listed(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(repr(item) for item in items[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


def examples(*commands: str) -> str:
    """Return the end of a verb's help, each command on its own line.

    >>> examples("pprop demo", "pprop doctor").splitlines()[2:]
    ['  pprop demo', '  pprop doctor']
    """
    heading = "Example:" if len(commands) == 1 else "Examples:"
    return "\n  ".join((f"{KEEP_LINES}\n{heading}", *commands))
