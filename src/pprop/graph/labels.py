"""Which texts stand for an unknown label; `pprop.graph.tables.classes` reads a column of labels."""

from __future__ import annotations

from pprop._validate import check_sequence

# Texts that stand for an unknown label.
MISSING_LABELS = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "null", "NULL", "None", "?", "-1")


def check_missing(missing: object, function: str) -> tuple[str, ...]:
    """Return the texts that stand for an unknown label, numbers as texts; an empty cell always is one besides.

    >>> check_missing(["unknown", -9], "read_edges")
    ('unknown', '-9')
    """
    return tuple(str(mark) for mark in check_sequence(missing, "missing_labels", function, "a sequence of texts"))
