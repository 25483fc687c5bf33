"""The kind of a column, decided from its name and its cells alone: what its features are, or why it has none.

The first rule that holds decides. "Few" values are at most 50, with at least three cells for every two of them; "nearly
all distinct" means nine of ten.

1.  Lists of numbers, all of one length: embedding. Other lists, structures, binary cells, durations and other types without
    numbers, words or dates: unused.
2.  All cells missing, or all the same: unused. (One value and missing cells beside it do tell nodes apart.)
    A split, folds or a part of a split: unused (`pprop.graph.features.splits`).
3.  Truth values, or the words true/false, yes/no, t/f or y/n in any case: boolean.
4.  A column that arrived as categories whose values recur: category.
5.  Numbers, or cells of a CSV that all spell one:

    a.  codes, which are a category where the values are few and otherwise look like an identifier: padded with zeros
        (``00420``) or with a plus before seven digits or more; named as one (`CODE_NAMES`: zip, phone, ``..._id``) and
        whole; nearly all distinct, whole, and of the same nine digits or more, or named ``... number``;
    b.  a row number: named as one (``Unnamed: 0``) with distinct values, or each of 0 ... n-1 or 1 ... n once: unused;
    c.  a number that float32 cannot hold, or infinity: unused;
    d.  all else: number. A name that says so (`QUANTITY_NAMES`: age, income, hour, year, score) rules out a and b but
        for the names there.
6.  Dates and times, or text that is one in every cell (ISO 8601; 31.12.2024; 31/12/2024 or 12/31/2024 where some cell tells
    day from month): date. Unused where day and month cannot be told apart, or, unless few, where years have two digits.
7.  Cells of a CSV that are numbers with commas: number where these are decimal commas in one cell at least (``31,5``).
    Other numbers with commas, or with a sign for percent or money, are unused unless they are few. Where a column of the
    same CSV has decimal commas, numbers whose points all stand before three digits (``4.343``) are unused, too.
8.  Cells of a CSV of which half or more spell numbers, but not all: unused.
9.  Text of few distinct values: category.
10. Text in a typed table that spells numbers: unused, as an identifier where nearly all are distinct and digits only.
11. Single words or telephone numbers, nearly all distinct (e-mail addresses, URLs, UUIDs, user names), or named as a code:
    looks like an identifier, unused.
12. Single words with a digit (``mcc12``, ``A-7``), at most 500 and two cells or more for each, on average: category.
13. All else is text, of which at least one word must occur in two cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from pprop._validate import describe
from pprop.graph.features.columns import DAY_PATTERNS, FALSE_TRUE, LARGEST, THOUSANDS, Column, DayOrder, name_words
from pprop.graph.features.splits import split_reason

Kind = Literal["number", "boolean", "category", "date", "text", "embedding", "unused"]
KINDS: tuple[Kind, ...] = ("number", "boolean", "category", "date", "text", "embedding", "unused")

FEW_VALUES = 50
MOST_VALUES_A_CELL = 2 / 3
FEW_CODES = 500
CODE = r"^\S{0,15}\d\S{0,15}$"
NEARLY_ALL = 0.9
FEW_ROWS = 10  # in fewer rows it may be chance that numbers are 1 ... n, or of the same length
LONG_NUMBER = 1e8  # the smallest of nine digits
IDENTIFIER = "looks like an identifier"
SHORT_YEARS = r"^\d{1,2}[-./](?:0?[1-9]|[12]\d|3[01])[-./]\d{2}$"
ROW_NUMBER = "looks like the number of the row"

ROW_NAMES = re.compile(
    r"(|unnamed: \d+|__index_level_\d+__|level_\d+|index|idx|row|row_?(number|num|nr|no|id|index))", re.IGNORECASE
)
CODE_NAMES = re.compile(
    r"ids?|uuid|guid|(user|node|customer|client|item|product|order|session|device|account|row|person|member|record|group)id|"
    r"zip(code)?|postcode|postal(code)?|plz|(tele|cell)?phone|tel|mobile|msisdn|fax|ssn|iban|isbn|ean|upc|barcode"
)
CODE_ENDINGS = ("code", "number", "no", "nr", "num")  # zip code, phone number
QUANTITY_NAMES = re.compile(
    r"(age|hour|year|score|count|day|month|week|minute|second|price|cost|point|vote|view|click|visit|sale|value)s?|"
    r"income|amount|rank|salary|wage|revenue|total|sum|mean|average|min|max|size|weight|height|width|length|"
    r"duration|time|timestamp|ts|at|epoch|date|level|rate|ratio|percent|share|distance|balance|population|temperature|degree|"
    r"quantity|rating"
)


@final
@dataclass(frozen=True)
class DecidedKind:
    """The kind of a column; the reason where it is unused; how dates and numbers are written."""

    kind: Kind
    reason: str = ""
    order: DayOrder = "year first"
    comma: bool = False


def decide(column: Column, *, wanted: bool = False) -> DecidedKind:
    """Return the kind of a column by the rules above.

    A column that is `wanted` by name is not left out for being constant, a split, an identifier or a row number: it is a number if
    its cells spell numbers (in a typed table, too), else a category if constant, else text. It stays unused where there is
    no way to use it; the caller turns that into an error.

    >>> import pyarrow as pa
    >>> from pprop.graph.features.columns import read_column
    >>> column = read_column("zip", pa.array(["01067", "10115", "20095", "50667"]), typed=False)
    >>> decide(column).reason, decide(column, wanted=True).kind
    ('looks like an identifier', 'number')
    >>> decide(read_column("hour", pa.array(["07", "12", "23", "08"]), typed=False)).kind
    'number'
    """
    if column.form == "other":
        return DecidedKind("unused", column.type_problem)
    if not column.n_present:
        return DecidedKind("unused", "all values are missing" if len(column.cells) else "has no rows")
    if column.form == "vector":
        return _decide_vector(column)
    if not wanted and (split := split_reason(column)):
        return DecidedKind("unused", split)
    decision = _decide_values(column, wanted)
    if decision.kind == "unused" or wanted or column.n_missing:
        return decision
    match decision.kind:
        case "boolean":
            values = column.truths()[0]
        case "date":
            values = column.days(decision.order)[0]
        case "number":
            values = column.numbers(comma=decision.comma)[0]
        case _:
            return decision if column.n_distinct > 1 else _constant(column)
    return decision if (values != values[0]).any() else _constant(column)


def _constant(column: Column) -> DecidedKind:
    return DecidedKind("unused", f"every value is {describe(column.cells[0].as_py())}")


def _decide_vector(column: Column) -> DecidedKind:
    size = column.size
    if size is None:
        return DecidedKind("unused", column.type_problem)
    values = column.vectors(size)
    broken = unfit(values).any(axis=1)
    if broken.any():
        row = int(np.flatnonzero(broken)[0])
        number = values[row][unfit(values[row])][0]
        return DecidedKind("unused", f"has numbers that float32 cannot hold ({number:g} in row {row + 1})")
    if np.isnan(values).all():
        return DecidedKind("unused", "all values are missing")
    return DecidedKind("embedding")


def _decide_values(column: Column, wanted: bool) -> DecidedKind:
    """Decide by rules 3 and after."""
    if column.form == "boolean" or _says_truth(column):
        return DecidedKind("boolean")
    if column.categorical and column.form != "date" and column.n_distinct <= MOST_VALUES_A_CELL * column.n_present:
        return DecidedKind("category")
    values, wrong = column.numbers()
    spelled = not wrong.any() and not np.isnan(values[~column.missing]).any()
    if spelled and (column.form == "number" or not column.typed or wanted):
        return _decide_number(column, values[~column.missing], wanted)
    if (dates := decide_date(column)) is not None:
        return dates
    if not column.typed and (commas := _decide_commas(column, wanted)) is not None:
        return commas
    if not column.typed and 2 * int(wrong.sum()) <= column.n_present:
        return DecidedKind("unused", f"mixes numbers and text ({_cell(column, wrong)})")
    if _few(column.n_distinct, column.n_present) or column.n_distinct == 1:
        return DecidedKind("category")
    if column.form == "text" and column.share(SHORT_YEARS) == 1.0:
        reason = f"dates with years of two digits ({_cell(column, ~column.missing)}): write them with four"
        return DecidedKind("unused", reason)
    distinct = column.n_distinct >= NEARLY_ALL * column.n_present
    if spelled and not (distinct and column.share(r"^[+0-9][0-9]+$") == 1.0):
        return DecidedKind("unused", "text that spells numbers")
    single = column.share(r"^[^\s,;|]+$") >= NEARLY_ALL or column.share(r"^[+(]?\d[\d\s()./-]{4,}$") >= NEARLY_ALL
    if single and not wanted and (distinct or spelled or _named_as_code(column.name)):
        return DecidedKind("unused", IDENTIFIER)
    codes = column.n_distinct <= FEW_CODES and 2 * column.n_distinct <= column.n_present and column.share(CODE) == 1.0
    return DecidedKind("category" if codes and not spelled else "text")


def _decide_commas(column: Column, wanted: bool) -> DecidedKind | None:
    """Decide about numbers with decimal commas, commas of unclear meaning, or signs; None about all else."""
    if column.share(r"^[$€£]?[+-]?\d[\d.,']* ?[%$€£]?$") < 1.0 or not column.share(r"[,'%$€£]"):
        return None
    values, wrong = column.numbers(comma=True)
    if not wrong.any() and column.share(r"^[+-]?\d{1,3},\d{3}$") < column.share(","):
        return replace(_decide_number(column, values[~column.missing], wanted), comma=True)
    if _few(column.n_distinct, column.n_present):
        return None
    pointed = column.marks(THOUSANDS)
    cell = _cell(column, pointed if pointed.any() else column.numbers()[1])
    what = "points" if pointed.any() else "commas"
    return DecidedKind("unused", f"numbers that are written with signs, or with {what} of unclear meaning ({cell})")


def unclear_points(column: Column) -> str:
    """Return why numbers of a CSV that has decimal commas elsewhere cannot be read; empty if they can.

    >>> import pyarrow as pa
    >>> from pprop.graph.features.columns import read_column
    >>> unclear_points(read_column("pay", pa.array(["980", "4.343"]), typed=False))[:60]
    "points of unclear meaning ('4.343' in row 2) beside decimal "
    >>> unclear_points(read_column("pay", pa.array(["980.5", "4.343"]), typed=False))
    ''
    """
    if column.form != "text" or not column.share(THOUSANDS) or column.share(THOUSANDS) < column.share(r"\."):
        return ""
    remedy = "write thousands without points, or ask for a number where the points are decimal"
    return f"points of unclear meaning ({_cell(column, column.marks(THOUSANDS))}) beside decimal commas: {remedy}"


def _few(n_distinct: int, n_present: int) -> bool:
    return n_distinct <= FEW_VALUES and n_distinct <= MOST_VALUES_A_CELL * n_present


def unfit(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which numbers are infinite or beyond float32; missing ones are not.

    >>> unfit(np.array([1.0, np.nan, np.inf, 1e300])).tolist()
    [False, False, True, True]
    """
    return np.abs(values) > LARGEST


def _cell(column: Column, marked: NDArray[np.bool_]) -> str:
    row = int(np.flatnonzero(marked)[0])
    return f"{describe(column.cells[row].as_py())} in row {row + 1}"


def _says_truth(column: Column) -> bool:
    first = column.cells[int(np.argmin(column.missing))].as_py()
    pairs = [pair for pair in FALSE_TRUE if column.form == "text" and first.lower() in pair]
    if not pairs:
        return False
    said = {word.lower() for word in column.counts()}
    # a single letter is a word of truth only beside its opposite: F may be a sex, a grade, a vitamin
    return said == set(pairs[0]) or (len(pairs[0][0]) > 1 and said <= set(pairs[0]))


def decide_date(column: Column) -> DecidedKind | None:
    """Return the decision about a column of dates; None if it is none, unused if days cannot be told from months."""
    if column.form == "date":
        return DecidedKind("date")
    if column.form != "text" or column.share(r"^\d{1,4}[-./]\d{1,2}[-./ T:0-9+ZUC]*$") < 1.0:
        return None
    fitting: list[DayOrder] = [order for order in DAY_PATTERNS if not column.days(order)[1].any()]
    if fitting == ["day first", "month first"]:
        reason = f"dates of which day and month cannot be told apart ({_cell(column, ~column.missing)})"
        return DecidedKind("unused", reason)
    return DecidedKind("date", order=fitting[0]) if fitting else None


def _decide_number(column: Column, values: NDArray[np.float64], wanted: bool) -> DecidedKind:
    """Decide about numbers, of which `values` are those present."""
    quantity = any(QUANTITY_NAMES.fullmatch(word) for word in name_words(column.name))
    whole = bool(np.isfinite(values).all()) and bool((values == np.trunc(values)).all())
    n_distinct = len(np.unique(values))
    distinct = n_distinct >= NEARLY_ALL * len(values)
    rules: list[Callable[[], bool]] = [
        lambda: whole and _named_as_code(column.name),
        lambda: not quantity and column.is_padded,
        lambda: (
            not quantity and whole and distinct and len(values) >= FEW_ROWS and _numbers_things(column.name, values)
        ),
    ]
    if not wanted and n_distinct > 1 and any(rule() for rule in rules):
        return DecidedKind("category") if _few(n_distinct, len(values)) else DecidedKind("unused", IDENTIFIER)
    if whole and not wanted and n_distinct == len(column.cells) and _counts_rows(column.name, values, quantity):
        return DecidedKind("unused", ROW_NUMBER)
    broken = unfit(values)
    if broken.any():
        everywhere = np.zeros(len(column.cells), dtype=bool)
        everywhere[~column.missing] = broken
        return DecidedKind("unused", f"has numbers that float32 cannot hold ({_cell(column, everywhere)})")
    return DecidedKind("number")


def _numbers_things(name: str, values: NDArray[np.float64]) -> bool:
    """Whether distinct whole numbers are named as numbers of things, or are long and all of the same length."""
    low, high = float(values.min()), float(values.max())
    same_length = low >= LONG_NUMBER and np.floor(np.log10(low)) == np.floor(np.log10(high))
    return same_length or (name_words(name) or [""])[-1] in CODE_ENDINGS


def _counts_rows(name: str, values: NDArray[np.float64], quantity: bool) -> bool:
    """Whether distinct whole numbers count the rows of a table."""
    if ROW_NAMES.fullmatch(name.strip()):
        return True
    low, high = float(values.min()), float(values.max())
    return not quantity and len(values) >= FEW_ROWS and low in (0.0, 1.0) and high == low + len(values) - 1


def _named_as_code(name: str) -> bool:
    words = name_words(name)
    while words and (words[-1] in CODE_ENDINGS or words[-1].isdigit()):
        words.pop()
    return bool(words) and CODE_NAMES.fullmatch(words[-1]) is not None
