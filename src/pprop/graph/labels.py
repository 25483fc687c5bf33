"""Names of classes: which stand for an unknown label, and which may be one class. `pprop.graph.tables.classes` reads a column."""

from __future__ import annotations

import numbers
from collections import defaultdict
from collections.abc import Iterable
from typing import Literal

from pprop._validate import check_sequence, describe, reject

LabelKind = Literal["auto", "category"]
LABEL_KINDS: tuple[LabelKind, ...] = ("auto", "category")

# Texts that stand for an unknown label.
MISSING_LABELS = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "null", "NULL", "None", "?", "-1")


def check_missing(missing: object, function: str) -> tuple[str, ...]:
    """Return the texts that stand for an unknown label, integers as texts; an empty cell always is one besides.

    >>> check_missing(["unknown", -9], "read_edges")
    ('unknown', '-9')
    """
    expected = "a sequence of texts or integers, such as ('?', 'unknown')"
    found = check_sequence(missing, "missing_labels", function, expected)
    for item in found:
        if not isinstance(item, str | numbers.Integral) or isinstance(item, bool):
            reject("missing_labels", function, expected, f"{describe(item)} among them")
    return tuple(str(item).strip() for item in found)


def alike_classes(names: Iterable[str]) -> list[str]:
    """Return the classes that differ from another only in case or blanks, those that are alike side by side.

    >>> alike_classes(["Red", "blue", "red ", "red"])
    ['Red', 'red ', 'red']
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[" ".join(name.casefold().split())].append(name)
    return [name for group in groups.values() if len(group) > 1 for name in group]
