"""Labels as people write them: a column of cells to class codes and names, unknown ones told by their marks.

A column that holds no classes is refused, unless the caller asks for a category: numbers that measure something, nearly as
many values as labels, several tags in a cell. `pprop.graph.attributes` says which whole numbers are classes.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pprop._errors import Advice, FormatError, Remedy
from pprop._validate import describe, reject
from pprop.graph.attributes import (
    HANDFUL,
    MANY,
    MISSING_LABELS,
    LabelKind,
    alike_classes,
    doubt_of_numbers,
    nearly_distinct,
)
from pprop.graph.features.columns import is_list
from pprop.graph.tables.arrow import pa, pc
from pprop.graph.tables.table import DataTable, as_integers, is_text, spelled

# Names of classes, in lower case, that probably mean an unknown label.
DOUBTFUL = frozenset(
    {
        "-",
        "missing",
        "n.a.",
        "na",
        "nan",
        "none",
        "not available",
        "null",
        "undefined",
        "unknown",
        "unlabeled",
        "unlabelled",
    }
)
NAMES = 6  # in one warning
SEPARATORS = "|;,"
ONE_CLASS = "a column with one class for each node"

Labels = tuple[NDArray[np.int64], tuple[str, ...]]


def read_labels(
    table: DataTable, column: str, missing: Sequence[str] = MISSING_LABELS, kind: LabelKind = "auto"
) -> Labels:
    """Return the class of each row, -1 where unknown, and the names of the classes.

    Parameters
    ----------
    table, column
        Text; whole numbers; truth values. Null and NaN are unknown.
    missing
        Texts that stand for an unknown label; an empty cell always does. Where -1 and one other number are the only
        labels, -1 is a class, and a warning says so, unless `missing` is the user's own.
    kind
        "category": each distinct value is a class, whatever it looks like.

    Returns
    -------
    codes : array of shape (rows,)
        int64.
    names : tuple of str
        Sorted by value where all are numbers, else by name. Truth values are "false" and "true", whatever the table.

    Raises
    ------
    InputError
        These are no classes: numbers that are not whole, more than 50 different numbers, more than 20 of which most have
        fewer than five labels, nearly as many values as labels, several tags in a cell.

    Warns
    -----
    Advice
        Whole numbers that are classes, but may measure something: more than 20, or more than 10 with a few labels each.

    Examples
    --------
    >>> from pprop.graph.tables.frames import table_of
    >>> table = table_of({"kind": ["10", "9", "?", "9"]}, "nodes", "Graph.from_pandas")
    >>> read_labels(table, "kind")
    (array([ 1,  0, -1,  0]), ('9', '10'))
    """
    numbers, texts = distinct_labels(table, column, kind)
    codes, names = class_codes(texts, np.bincount(numbers, minlength=len(texts)), table, column, missing, kind)
    return codes[numbers], names


def distinct_labels(table: DataTable, column: str, kind: LabelKind) -> tuple[NDArray[np.int32], list[str]]:
    """Return the number of each cell, shape (rows,), and the distinct cells as text, "" where empty."""
    cells = _texts(table, column, kind).combine_chunks().dictionary_encode()
    if isinstance(cells, pa.ChunkedArray):  # which has no chunk where there are no rows
        cells = pa.array([], type=pa.string()).dictionary_encode()
    return cells.indices.to_numpy(), cells.dictionary.to_pylist()


def class_codes(
    texts: Sequence[str],
    counts: NDArray[np.int64],
    table: DataTable,
    column: str,
    missing: Sequence[str],
    kind: LabelKind,
) -> Labels:
    """Return the class of each distinct cell, -1 where unknown, and the names of the classes; see `read_labels`."""
    spellings: list[str] = [re.sub(r"^(-?\d+)\.0+$", r"\1", text) for text in texts]
    absent = {"", *missing}
    if not table.typed and {text.lower() for text in spellings if text not in absent} <= {"false", "true"}:
        spellings = [text if text in absent else text.lower() for text in spellings]  # as in tables that have types
    if _is_class(set(spellings), missing):
        absent.discard("-1")
        got = f"The labels under {column!r} of {table.title} are -1 and one other number"
        remedy = Remedy(
            "If it means unknown, pass missing_labels=['-1'].", shell="If it means unknown, add: --missing-labels -1"
        )
        warnings.warn(Advice(f"{got}: -1 is taken for a class.", remedy), stacklevel=5)
    names = sorted(set(spellings) - absent)
    if tuple(missing) == MISSING_LABELS and (strange := [name for name in names if name.lower() in DOUBTFUL]):
        got = f"{strange[0]!r} under {column!r} of {table.title} is taken for a class"
        remedy = Remedy("If it means unknown, name it among {}.", ("missing_labels",))
        warnings.warn(Advice(f"{got}.", remedy), stacklevel=5)
    if missing and (alike := alike_classes(names)):  # where nothing is a mark, names are meant as they are written
        got = f"{', '.join(map(repr, alike[:NAMES]))}{', ...' if len(alike) > NAMES else ''} under {column!r} of {table.title}"
        warnings.warn(
            f"{got} differ only in case or blanks: each is a class. If they are one, write it one way.", stacklevel=5
        )
    whole = bool(names) and as_integers(pa.chunked_array([names])) is not None
    if whole:
        names.sort(key=int)
    index = {name: code for code, name in enumerate(names)}
    codes = np.asarray([index.get(name, -1) for name in spellings], dtype=np.int64)
    if kind == "auto":
        of_class = np.bincount(codes[codes >= 0], counts[codes >= 0], minlength=len(names)).astype(np.int64)
        _check_numbers(table, column, names, of_class, whole)
        _refuse_tags(table, column, names)
    return codes, tuple(names)


def _texts(table: DataTable, name: str, wanted: LabelKind) -> Any:
    """Return the cells as text, "" where empty."""
    column = table.column(name, "label_column")
    kind = column.type
    if is_list(kind):
        row = next((row for row, cell in enumerate(column) if cell.is_valid), 0)
        _refuse(table, name, f"lists, such as {describe(column[row].as_py()) if len(column) else '[]'},", TAGS)
    if pa.types.is_boolean(kind):
        return pc.fill_null(pc.cast(column, pa.string()), "")
    if pa.types.is_floating(kind):
        values = column.to_numpy().astype(np.float64)
        broken = values[~np.isnan(values) & (values != np.floor(values))]
        if broken.size and wanted == "category":
            return pc.fill_null(pc.cast(pa.chunked_array([pa.array(values, from_pandas=True)]), pa.string()), "")
        if broken.size:
            _refuse(table, name, f"numbers that are not whole, such as {broken[0]:g},", QUANTITIES)
    elif not is_text(kind) and not pa.types.is_integer(kind) and not pa.types.is_null(kind):
        _refuse(table, name, f"{kind}", "Write the classes as text or integers.")
    return table.texts(name, "label_column")


def _is_class(spellings: set[str], missing: Sequence[str]) -> bool:
    """Whether -1 can only be a class: one of two numbers, with nobody saying otherwise."""
    rest = spellings - {"", *missing}
    return "-1" in spellings and tuple(missing) == MISSING_LABELS and len(rest) == 1 and spelled(*rest) is not None


INSIST: dict[str, object] = {"label_kind": "category"}
QUANTITIES = Remedy(
    "pprop predicts classes, not quantities: divide the numbers into a few ranges, or name another column. "
    "Each value is a class nevertheless if you say so.",
    settings=INSIST,
)
MEASURED = Remedy("If they measure something, divide them into a few ranges, or name another column.")
CODES = Remedy(
    "If they are codes of classes, pass label_kind='category'.",
    shell="If they are codes of classes, add: --label-kind category",
)
TAGS = "Keep one tag for each node, or make one column of each tag and train a model on each."


def _refuse(table: DataTable, column: str, got: str, remedy: str | Remedy) -> None:
    place = f"{got} under {column!r} of {table.title}"
    reject("label_column", table.function, ONE_CLASS, place, remedy=remedy, error=FormatError)


def _check_numbers(table: DataTable, column: str, names: list[str], counts: NDArray[np.int64], whole: bool) -> None:
    """Refuse numbers that are not whole, many numbers, and nearly as many values as rows; warn of numbers that may measure.

    `counts` are the labels of each name, and `whole` says that all names are integers as people count, ``7`` and not ``007``.
    """
    numbers = [spelled(name) for name in names]
    numeric = bool(names) and all(number is not None for number in numbers)
    if numeric:
        broken = [name for name, number in zip(names, numbers, strict=True) if number is None or number % 1 != 0]
        if broken:
            _refuse(table, column, f"numbers that are not whole, such as {broken[0]},", QUANTITIES)
    doubt, rows = doubt_of_numbers(counts, codes=False) if numeric else "none", int(counts.sum())
    if doubt == "surely" and (whole or len(names) > MANY):  # few labels of each mean nothing where numbers are padded
        _refuse(table, column, f"{len(names):,} different numbers for {rows:,} labels", QUANTITIES)
    if nearly_distinct(len(names), rows):
        remedy = Remedy("Name the column with the classes. Each value is a class if you say so.", settings=INSIST)
        _refuse(table, column, f"{len(names):,} different texts for {rows:,} labels", remedy)
    if doubt == "perhaps" and whole:
        few = f", and most have fewer than {HANDFUL} labels" if np.median(counts) < HANDFUL else ""
        got = f"The {len(names)} different numbers under {column!r} of {table.title} are read as classes{few}."
        warnings.warn(Advice(got, MEASURED, CODES), stacklevel=6)


def _refuse_tags(table: DataTable, column: str, names: list[str]) -> None:
    """Refuse cells with several parts that come back in other cells.

    A comma is common inside of the name of a class ("no, thanks"), so that with commas a part has to come back in
    another place of another list, as "a, b" and "b, c" do.
    """
    for separator in SEPARATORS:
        lists = {name: [part.strip() for part in name.split(separator)] for name in names}
        several = [name for name, parts in lists.items() if len(parts) > 1 and all(parts)]
        if separator == ",":
            lists = {name: lists[name] for name in several}
        places: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
        for name, parts in lists.items():
            for place, part in enumerate(parts):
                places[part].add((name, place if separator == "," else len(places[part])))
        for name in several:
            where = [places[part] for part in lists[name]]
            if any(all(len(set(both)) > 1 for both in zip(*one, strict=True)) for one in where):
                _refuse(table, column, f"several tags in a cell, such as {describe(name)},", TAGS)
