"""One column of a table: its cells as numbers, truth values, days or text, whatever type they arrived in.

A column of a CSV file and the same column of a Parquet file or a data frame give the same values. Blanks around a cell do not
count, and a cell that says one of `MISSING_CELLS` is missing, as are nulls and NaN. Rows are numbered from 1 in messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import FormatError, Where
from pprop._validate import describe, reject

Form = Literal["number", "boolean", "date", "text", "vector", "other"]
DayOrder = Literal["year first", "day first", "month first"]
Parsed = tuple[NDArray[np.float64], NDArray[np.bool_]]  # values, NaN where missing or wrong; which cells are wrong

MISSING_CELLS = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "NAN", "NaT", "null", "NULL", "None", "?")
FALSE_TRUE = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"))  # in upper or lower case; one pair a column
ZERO_ONE = ("0", "1", "0.0", "1.0")  # truth values, too, where a column is said to hold them
LARGEST = float(np.finfo(np.float32).max)

NUMBER = r"^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf|infinity|nan))$"
DECIMAL_COMMA = r"^([+-]?\d*),(\d+)$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2}\.\d{3}$"  # where commas are decimal, points may part thousands
WHOLE = r"^([+-]?\d+)\.0+$"
CLOCK = (
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
    r" ?(?:Z|UTC|(?P<sign>[+-])(?P<zone>\d{2}):?(?P<half>\d{2})?)?)?$"
)
YEAR_FIRST = r"^(?P<year>\d{4})[-/](?P<month>\d{1,2})(?:[-/](?P<day>\d{1,2})" + CLOCK.removesuffix("$") + ")?$"
DOTTED = r"^(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})" + CLOCK  # the day comes first wherever dots are used
SLASHED = r"^(?P<first>\d{1,2})[/-](?P<second_part>\d{1,2})[/-](?P<year>\d{4})" + CLOCK
DAY_PATTERNS: dict[DayOrder, tuple[str, ...]] = {
    "year first": (YEAR_FIRST, DOTTED),
    "day first": (YEAR_FIRST, DOTTED, SLASHED.replace("first>", "day>").replace("second_part>", "month>")),
    "month first": (YEAR_FIRST, DOTTED, SLASHED.replace("first>", "month>").replace("second_part>", "day>")),
}
PADDED = r"^(0\d\d+|\+\d{7,})$"
FIRST = 1000  # cells that are tried before all others
DAY_NS = 86_400_000_000_000
UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


@final
@dataclass(frozen=True)
class Column:
    """A column whose missing cells are nulls; made by `read_column`."""

    name: str
    form: Form
    cells: Any  # a pyarrow.Array of one chunk
    typed: bool  # whether the table says what is text and what a number
    categorical: bool  # whether it arrived as a dictionary of values
    title: Path | str  # of the table, in messages
    function: str

    def complain(self, expected: str, row: int, *, got: str = "") -> NoReturn:
        """Raise the house sentence about a cell; `row` is an index from 0."""
        cell = got or describe(self.cells[row].as_py())
        where = Where(self.title, row + 1, self.name)
        reject("nodes", self.function, expected, cell, error=FormatError, where=where)

    @property
    def type_problem(self) -> str:
        """Why cells of the form "other" cannot be used, for people."""
        if self.form == "vector":
            lengths = self._lengths
            known = lengths[~self.missing]
            if not known.any():
                return "has lists without numbers"
            other = int(np.flatnonzero(~self.missing & (lengths != known[0]))[0])
            first = int(np.argmin(self.missing))
            return (
                f"has lists of different lengths ({known[0]} in row {first + 1}, {lengths[other]} in row {other + 1})"
            )
        return getattr(self.cells.type, "reason", f"has the type {self.cells.type}")

    @property
    def size(self) -> int | None:
        """How many numbers each list of a column of lists has; None where they differ, and for other columns."""
        if self.form != "vector" or not self.n_present:
            return None
        known = self._lengths[~self.missing]
        return int(known[0]) if (known == known[0]).all() and known[0] else None

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        """The number of items of each list, 0 where it is missing, shape (n,)."""
        from pprop.graph.tables.arrow import pc

        return pc.fill_null(pc.list_value_length(self.cells), 0).to_numpy(zero_copy_only=False).astype(np.int64)

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing, shape (n,)."""
        return np.asarray(self.cells.is_null().to_numpy(zero_copy_only=False), dtype=bool)

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        return int(self.cells.null_count)

    @property
    def n_present(self) -> int:
        """Number of cells that are not missing."""
        return len(self.cells) - self.n_missing

    @cached_property
    def _encoded(self) -> tuple[Any, NDArray[np.int64]]:
        """The distinct cells in the order of appearance, and the index of each cell among them, -1 where missing."""
        from pprop.graph.tables.arrow import pc

        encoded = self.cells.dictionary_encode()
        return encoded.dictionary, pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)

    def _spread(self, values: NDArray[Any], missing: float) -> NDArray[Any]:
        """Return what holds of the distinct cells for all cells."""
        return np.append(values, [missing])[self._encoded[1]]

    @property
    def n_distinct(self) -> int:
        """Number of distinct cells."""
        return len(self._encoded[0])

    def share(self, pattern: str) -> float:
        """Return the share of the cells of text, missing ones aside, that match."""
        return float(self.marks(pattern).sum() / self.n_present)

    def marks(self, pattern: str) -> NDArray[np.bool_]:
        """Return which cells of text match, shape (n,)."""
        from pprop.graph.tables.arrow import pc

        return self._spread(_flags(pc.match_substring_regex(self._encoded[0], pattern)), False)

    @property
    def is_padded(self) -> bool:
        """Whether a cell of text is of three or more digits of which the first is zero, or of seven and a plus before."""
        if self.form != "text":
            return False
        from pprop.graph.tables.arrow import pc

        starts = pc.or_(pc.starts_with(self.cells, "0"), pc.starts_with(self.cells, "+"))
        return bool(pc.any(pc.match_substring_regex(self.cells.filter(starts), PADDED)).as_py())

    def texts(self) -> Any:
        """Return the cells as text, an Arrow array with nulls where missing; a whole number has no decimal point."""
        from pprop.graph.tables.arrow import pa, pc

        if self.form == "number":
            values, _ = self.numbers()
            present = values[~np.isnan(values)]
            if (present == np.trunc(present)).all() and (np.abs(present) < 2**53).all():
                whole = pa.array(values, mask=np.isnan(values), type=pa.float64())
                return pc.cast(pc.cast(whole, pa.int64()), pa.large_string())
        texts = pc.cast(self.cells, pa.large_string())
        if self.typed or self.form != "text" or not self.n_present or not self.share(WHOLE):
            return texts
        return pc.replace_substring_regex(texts, WHOLE, r"\1")

    def counts(self) -> dict[str, int]:
        """Return the distinct values as text with the number of cells of each, the most frequent first, ties sorted."""
        from pprop.graph.tables.arrow import pc

        pairs = pc.value_counts(self.texts().drop_null())
        counts: dict[str, int] = dict(zip(pairs.field(0).to_pylist(), pairs.field(1).to_pylist(), strict=True))
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))

    def numbers(self, *, comma: bool = False) -> Parsed:
        """Return the cells as numbers, infinite ones included, each of shape (n,); text may have a decimal comma."""
        return self._parsed(DECIMAL_COMMA) if comma else self._numbers

    @cached_property
    def _numbers(self) -> Parsed:
        from pprop.graph.tables.arrow import pa, pc

        if self.form in ("number", "boolean"):
            return _floats(pc.cast(self.cells, pa.float64(), safe=False)), np.zeros(len(self.cells), dtype=bool)
        if self.form != "text":
            return np.full(len(self.cells), np.nan), ~self.missing
        try:
            pc.cast(self.cells[:FIRST], pa.float64())  # where text is no number, that takes pyarrow longer to see
            return _floats(pc.cast(self.cells, pa.float64())), np.zeros(len(self.cells), dtype=bool)
        except pa.ArrowInvalid:
            return self._parsed()

    def _parsed(self, comma: str = "") -> Parsed:
        """Return the numbers among the cells of text, of which some may be none."""
        from pprop.graph.tables.arrow import pa, pc

        if self.form != "text":
            return self._numbers
        given = self._encoded[0]
        values = pc.replace_substring_regex(given, comma, r"\1.\2") if comma else given
        spelled = pc.match_substring_regex(values, NUMBER)
        if comma:
            spelled = pc.and_not(spelled, pc.match_substring_regex(given, THOUSANDS))
        parsed = _floats(pc.cast(pc.if_else(spelled, values, None), pa.float64()))
        return self._spread(parsed, np.nan), self._spread(~_flags(spelled), False)

    def truths(self) -> Parsed:
        """Return the cells as 0 for false and 1 for true, each of shape (n,)."""
        from pprop.graph.tables.arrow import pa, pc

        if self.form == "text":
            words = pa.array([*(word for pair in FALSE_TRUE for word in pair), *ZERO_ONE], pa.large_string())
            found = _floats(pc.cast(pc.index_in(pc.utf8_lower(self._encoded[0]), value_set=words), pa.float64()))
            values = self._spread(found % 2, np.nan)  # a word of falsehood stands before each of truth
        else:
            values, _ = self.numbers()
            values = np.where((values == 0) | (values == 1), values, np.nan)
        return values, np.isnan(values) & ~self.missing

    def vectors(self, size: int) -> NDArray[Any]:
        """Return lists of `size` numbers as rows, shape (n, size), NaN where one is missing; or raise FormatError.

        Their type is float32 where the numbers are floats of at most 32 bits, else float64.
        """
        from pprop.graph.tables.arrow import pa, pc

        wrong = ~self.missing & (self._lengths != size if self.form == "vector" else True)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            got = f"a list of {self._lengths[row]}" if self.form == "vector" else f"the type {self.cells.type}"
            self.complain(f"a list of {size} numbers", row, got=got)
        if self.form != "vector":
            return np.full((len(self.cells), size), np.nan, dtype=np.float32)
        items = self.cells.flatten()
        narrow = pa.types.is_floating(items.type) and items.type.bit_width <= 32
        rows = pc.cast(items, pa.float32() if narrow else pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        rows = rows.reshape(-1, size)
        if not self.n_missing:
            return rows
        found = np.full((len(self.cells), size), np.nan, dtype=rows.dtype)
        found[~self.missing] = rows
        return found

    def days(self, order: DayOrder = "year first") -> Parsed:
        """Return the cells as days since 1970-01-01 (UTC where there is a time zone), each of shape (n,)."""
        if self.form == "date":
            return _typed_days(self.cells), np.zeros(len(self.cells), dtype=bool)
        if self.form != "text":
            return np.full(len(self.cells), np.nan), ~self.missing
        days = np.full(self.n_distinct, np.nan)
        for pattern in DAY_PATTERNS[order]:
            days = np.where(np.isnan(days), _spelled_days(self._encoded[0], pattern), days)
        values = self._spread(days, np.nan)
        return values, np.isnan(values) & ~self.missing


def read_column(
    name: str, cells: Any, *, typed: bool, title: Path | str = "the table", function: str = "Recipe.fit"
) -> Column:
    """Return a column of a table, `cells` being a pyarrow array, chunked or not.

    >>> import pyarrow as pa
    >>> column = read_column("age", pa.array(["31", "NA", " 27 "]), typed=False)
    >>> column.form, column.missing.tolist(), column.numbers()[0].tolist()
    ('text', [False, True, False], [31.0, nan, 27.0])
    """
    from pprop.graph.tables.arrow import pa, pc

    categorical = pa.types.is_dictionary(cells.type)
    kind = cells.type.value_type if categorical else cells.type
    form = _form(kind)
    kind = pa.large_string() if form == "text" else kind
    if categorical:
        chunks = cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]
        cells = pa.chunked_array([pc.cast(chunk.dictionary, kind).take(chunk.indices) for chunk in chunks], kind)
    if form == "text":
        cells = pc.utf8_trim_whitespace(pc.cast(cells, kind))
        absent = pc.is_in(cells, value_set=pa.array(MISSING_CELLS, pa.large_string()))
        cells = pc.if_else(absent, pa.scalar(None, pa.large_string()), cells)
    elif pa.types.is_floating(kind):
        cells = pc.cast(cells, pa.float64())
        cells = pc.if_else(pc.is_nan(cells), pa.scalar(None, pa.float64()), cells)
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    return Column(name, form, cells, typed, categorical, title, function)


def name_words(name: str) -> list[str]:
    """Return the words of a name in lower case.

    >>> name_words("homeZipCode"), name_words("user_ID 2")
    (['home', 'zip', 'code'], ['user', 'id', '2'])
    """
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+", name)]


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is one of lists.

    >>> import pyarrow as pa
    >>> is_list(pa.list_(pa.float32(), 3)), is_list(pa.float32())
    (True, False)
    """
    from pprop.graph.tables.arrow import pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _form(kind: Any) -> Form:
    from pprop.graph.tables.arrow import pa

    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    if str(kind) in ("string", "large_string", "string_view", "null"):
        return "text"
    if is_list(kind):
        return "vector" if _form(kind.value_type) == "number" else "other"
    return "other"


def _floats(cells: Any) -> NDArray[np.float64]:
    return np.asarray(cells.to_numpy(zero_copy_only=False), dtype=np.float64)  # NaN where null


def _flags(cells: Any) -> NDArray[np.bool_]:
    from pprop.graph.tables.arrow import pc

    return np.asarray(pc.fill_null(cells, fill_value=False).to_numpy(zero_copy_only=False), dtype=bool)


def _join(days: NDArray[np.int64], nanoseconds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return days with their fractions, rounded the same way for every source."""
    return days + nanoseconds / DAY_NS


def _typed_days(cells: Any) -> NDArray[np.float64]:
    from pprop.graph.tables.arrow import pa, pc

    missing = np.asarray(cells.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    if pa.types.is_date32(cells.type):
        numbers, unit = pc.cast(cells, pa.int32()), DAY_NS
    else:
        unit = UNIT_NS["ms" if pa.types.is_date64(cells.type) else cells.type.unit]
        numbers = pc.cast(cells, pa.int64())
    values = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    whole, rest = np.divmod(values, DAY_NS // unit)
    return np.where(missing, np.nan, _join(whole, rest * unit))


def _spelled_days(texts: Any, pattern: str) -> NDArray[np.float64]:
    """Return the days that texts spell in one form, NaN where they do not, or where there is no such day."""
    from pprop.graph.tables.arrow import pa, pc

    parts: Any = pc.extract_regex(texts, pattern=pattern)
    found = ~np.asarray(parts.is_null().to_numpy(zero_copy_only=False), dtype=bool)

    def part(name: str, default: str = "0") -> Any:
        text = pc.fill_null(pc.struct_field(parts, name), "")
        return pc.if_else(pc.equal(text, ""), default, text)

    def number(name: str, default: str = "0") -> NDArray[np.int64]:
        return pc.cast(part(name, default), pa.int64()).to_numpy(zero_copy_only=False)

    year, month, day = number("year"), number("month"), number("day", "1")
    clock = [number(name) for name in ("hour", "minute", "second", "zone", "half")]
    fraction = pc.cast(pc.utf8_rpad(part("fraction"), width=9, padding="0"), pa.int64()).to_numpy(zero_copy_only=False)
    hour, minute, second, zone, half = clock
    sound = found & (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1)
    sound &= (hour < 24) & (minute < 60) & (second < 60) & (zone < 24) & (half < 60)
    months = np.where(sound, (year - 1970) * 12 + month - 1, 0)
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    length = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) - first
    sound &= day <= length
    east = np.where(np.asarray(pc.equal(part("sign"), "-").to_numpy(zero_copy_only=False), dtype=bool), -1, 1)
    minutes = 60 * hour + minute - east * (60 * zone + half)
    whole, rest = np.divmod((minutes * 60 + second) * 1_000_000_000 + fraction, DAY_NS)
    return np.where(sound, _join(first + day - 1 + whole, rest), np.nan)
