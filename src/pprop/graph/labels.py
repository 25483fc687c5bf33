"""Names of classes: which stand for an unknown label, which may be one class, and which numbers seem to measure something.

`pprop.graph.tables.classes` reads a column of a table; arrays of Python are read where they come in.

Whole numbers as labels
-----------------------
The cells of a column may be codes of classes or measurements, such as scores and ages, and nothing but their number tells
these apart: both may begin at 0 or 1 and leave no number out. Most codes are fewer than twenty, such as 0 and 1 or 1 to 7,
and have several labels each. So with more than `MANY` different numbers, or with more than `FEW` of which most have fewer than
`HANDFUL` labels, a column is refused. With more than `FEW`, or with more than `SOME` of which most have fewer than `HANDFUL`
labels, it is read as classes, with a warning.

An array of integers is one of class codes by the contract of the functions that take it, and graphs of 40 or 70 classes are
common. So it takes both signs: an array is refused with more than `MANY` that have fewer than two labels each, and read with
a warning with more than `FEW` of which most have fewer than `HANDFUL` labels.
"""

from __future__ import annotations

import numbers
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pprop._errors import Advice, InputError, Remedy
from pprop._validate import check_sequence, describe, reject

LabelKind = Literal["auto", "category"]
LABEL_KINDS: tuple[LabelKind, ...] = ("auto", "category")

# Texts that stand for an unknown label.
MISSING_LABELS = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "null", "NULL", "None", "?", "-1")


MANY = 50  # different numbers
FEW = 20
SOME = 10
HANDFUL = 5  # labels of one number

Doubt = Literal["none", "perhaps", "surely"]


def nearly_distinct(n_values: int, n_labels: int) -> bool:
    """Whether labels have nearly as many values as there are labels: more than `FEW`, each for fewer than two on average.

    >>> nearly_distinct(30, 59), nearly_distinct(30, 60), nearly_distinct(3, 3)
    (True, False, False)
    """
    return n_values > FEW and 2 * n_values > n_labels


def doubt_of_numbers(counts: NDArray[np.int64], *, codes: bool) -> Doubt:
    """Return whether whole numbers, given as labels, seem to measure something; "surely" is no class at all.

    Parameters
    ----------
    counts
        The labels of each number that occurs, shape (k,).
    codes
        Whether whoever gives numbers here means codes of classes by contract, as in an array; a column may hold anything.

    Examples
    --------
    >>> seven, months, scores, ages = np.full(7, 3), np.full(12, 3), np.full(47, 3), np.full(80, 40)
    >>> [doubt_of_numbers(counts, codes=False) for counts in (seven, months, scores, ages)]
    ['none', 'perhaps', 'surely', 'surely']
    >>> [doubt_of_numbers(counts, codes=True) for counts in (seven, months, scores, ages)]
    ['none', 'none', 'perhaps', 'none']
    """
    n, distinct = len(counts), nearly_distinct(len(counts), int(counts.sum()))
    rare = bool(n) and float(np.median(counts)) < HANDFUL
    if codes:
        return "surely" if n > MANY and distinct else "perhaps" if n > FEW and rare else "none"
    return "surely" if n > MANY or (n > FEW and rare) else "perhaps" if n > FEW or (n > SOME and rare) else "none"


def check_codes(
    labels: NDArray[Any], parameter: str, function: str, *, error: Any = InputError, remedy: str = ""
) -> Advice | None:
    """Refuse integers with nearly as many values as labels; return what to warn of where they may be a quantity.

    Parameters
    ----------
    labels
        Integers, shape (m,), all of them known; of any other type is nothing to check.
    parameter, function, error
        For an error.
    remedy
        How to say that they are classes, where `parameter` cannot be text.

    Examples
    --------
    >>> check_codes(np.arange(2002), "y", "fit")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'y' parameter of fit must be one class per node. Got 2,002 different numbers for 2,002 labels ...
    >>> print(check_codes(np.arange(90) % 30, "y", "fit"))
    The 30 different numbers among 90 labels are read as classes, and most have fewer than 5 labels. ...
    """
    if labels.dtype.kind not in "iu":
        return None
    counts = np.unique(labels, return_counts=True)[1]
    insist = remedy or f"If they are codes of classes, pass {parameter}.astype(str)."
    match doubt_of_numbers(counts, codes=True):
        case "surely":
            got = f"{len(counts):,} different numbers for {len(labels):,} labels"
            ranges = "pprop predicts classes, not quantities: divide the numbers into a few ranges."
            advice = Remedy(f"{ranges} {insist}", shell=ranges)
            reject(parameter, function, "one class per node", got, remedy=advice, error=error)
        case "perhaps":
            told = f"The {len(counts)} different numbers among {len(labels):,} labels are read as classes"
            ranges = "If they measure something, divide them into a few ranges."
            rare = f"{told}, and most have fewer than {HANDFUL} labels."
            return Advice(rare, Remedy(f"{ranges} {insist}", shell=ranges))
        case "none":
            return None


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
