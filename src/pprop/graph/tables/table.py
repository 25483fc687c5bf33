"""Tables as named Arrow columns, with every complaint naming the table and the row.

Rows are numbered from 1; a CSV's header and blank lines are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import ColumnError, FormatError, Remedy, Where
from pprop._validate import describe, nearest, reject
from pprop.graph.tables.arrow import Column, Unreadable, pa, pc

SLICE = 2**15  # rows
ONE_TYPE = "a table whose columns each have one type"
HEADLESS = "The first line looks like data: write the names of the columns above it."


@final
@dataclass(frozen=True)
class DataTable:
    """The columns of one table; `parameter` is the argument of `function` that brought it.

    Attributes
    ----------
    title
        What sentences call it: its path in quotes, or "the DataFrame".
    columns
        Arrow columns by name, in the order of the table.
    typed
        Whether the columns have types of their own (Parquet, data frames). In a CSV file all are text, "" where
        empty; in a typed table a column of text is text, even where every cell spells a number, and null where empty.
    n_rows
        Number of rows.
    name
        Of the file, without folder and suffixes; None for other tables.
    names
        Of all columns of the table in their order, also of those that nobody asked for and which were not read.
    headless
        Whether the first line looks like data.
    first
        Rows of the file that come before those of this part of it.
    path
        The file as it was named; None for other tables.

    Examples
    --------
    >>> table = DataTable("'n.csv'", "nodes", "read_edges", {"age": pa.chunked_array([["31", "45"]])}, 2)
    >>> table.n_rows, table.column("age", "feature_columns").to_pylist(), table.is_numeric("age")
    (2, ['31', '45'], True)
    """

    title: str
    parameter: str
    function: str
    columns: Mapping[str, Column]
    n_rows: int
    typed: bool = False
    name: str | None = None
    names: tuple[str, ...] = ()
    headless: bool = False
    first: int = 0
    path: Path | None = None

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the columns that were not asked for."""
        return tuple(name for name in self.names if name not in self.columns)

    def complain(
        self, expected: str, got: str, row: int | None = None, *, column: object = None, remedy: str | Remedy = ""
    ) -> NoReturn:
        """Raise an error about this table; `row` is an index from 0.

        With a column, `expected` is what each of its cells must be, and otherwise what the table must be.
        """
        where = self.where(row, None if column is None else str(column))
        reject(self.parameter, self.function, expected, got, remedy=remedy, error=FormatError, where=where)

    def where(self, row: int | None = None, column: str | None = None) -> Where:
        """Return a place in this table; `row` is an index from 0."""
        return Where(self.path or self.title, None if row is None else self.first + row + 1, column)

    def column(self, name: object, parameter: str) -> Column:
        """Return the column that the argument `parameter` names, its values in place; or list the ones there are."""
        if isinstance(name, str) and name in self.columns:
            kind = self.columns[name].type
            if isinstance(kind, Unreadable):
                self.complain(ONE_TYPE, f"{kind.got} under {name!r}", kind.row, remedy="Make it one type.")
            return plain(self.columns[name])
        self.check_columns({parameter: name})
        raise AssertionError(name)  # which is there, and was not read

    def check_columns(self, wanted: Mapping[str, object]) -> None:
        """Refuse columns that this table does not have, all at once, by the arguments that name them."""
        error = self.lacks(wanted)
        if error is not None:
            raise error

    def lacks(self, wanted: Mapping[str, object]) -> ColumnError | None:
        """Return the error about columns that this table does not have; None where it has all."""
        names = self.names or tuple(self.columns)
        missing: dict[str, str] = {}
        for parameter, name in wanted.items():
            if not isinstance(name, str):
                reject(parameter, self.function, f"the name of a column of {self.title}", describe(name))
            if name not in names:
                missing[parameter] = name
        if not missing:
            return None
        given = [name for parameter, name in missing.items() if name != parameter]  # not the name that is the default
        remedies = [Remedy(hint) for hint in dict.fromkeys(nearest(name, names) for name in given) if hint]
        if len(names) == 1 and not self.typed:
            remedies = [Remedy("Separate columns by a comma, a semicolon, a tab or |.")]
        elif not remedies and self.headless:
            remedies = [Remedy(HEADLESS)]
        first = next(iter(missing))
        fields: dict[str, Any] = {"parameter": first, "function": self.function, "where": self.where()}
        return ColumnError(missing=missing, columns=names, remedies=remedies, **fields)

    def texts(self, name: object, parameter: str) -> Column:
        """Return a column of ids or classes as text, numbers as Python prints whole ones, "" where empty."""
        column = self.column(name, parameter)
        if not is_text(column.type):
            numbers = self._whole(column, name)
            return pc.fill_null(pc.cast(numbers, pa.string()), "")
        column = pc.fill_null(column, "")
        ended = first_row(pc.ends_with(column, "\0")) if self.typed else None  # a CSV file has no such character
        if ended is not None:
            expected = "a table whose ids and labels do not end in a null character"
            self.complain(expected, f"{describe(column[ended].as_py())} under {name!r}", ended)
        return column

    def keys(self, name: object, parameter: str) -> Column:
        """Return a column of ids, one in every row: int64 where all are integers as Python prints them, else text."""
        column = self.column(name, parameter)
        cells = pc.fill_null(column, "") if is_text(column.type) else self._whole(column, name)
        if is_text(cells.type):
            integers = as_integers(cells)
            if integers is not None:
                return pa.chunked_array([pa.array(integers)])
            cells = self.texts(name, parameter)
        empty = None
        if is_text(cells.type):
            empty = first_row(pc.equal(cells, ""))
        elif cells.null_count:
            empty = first_row(pc.is_null(cells))
        if empty is not None:
            self.complain("an id", "an empty cell", empty, column=name)
        return cells

    def _whole(self, column: Column, name: object) -> Column:
        """Return a typed column of whole numbers as int64, or as uint64 or text where they are too large for it."""
        kind, expected = column.type, "a table whose ids and labels are text or integers"
        if pa.types.is_null(kind):
            return column.cast(pa.int64())
        if pa.types.is_floating(kind):
            values = column.to_numpy().astype(np.float64)  # nulls become NaN
            known = ~np.isnan(values)
            broken = np.flatnonzero(known & (np.isinf(values) | (values != np.floor(values))))
            if broken.size:
                self.complain(expected, f"{values[broken[0]]} under {name!r}", int(broken[0]))
            exact = 2.0 ** (np.finfo(kind.to_pandas_dtype()).nmant + 1)
            broken = np.flatnonzero(known & (np.abs(values) >= exact))  # the next one may have become this one
            if broken.size:
                got = f"{values[broken[0]]:.0f} under {name!r}, a {kind} that may have lost digits,"
                self.complain(expected, got, int(broken[0]))
            whole = np.where(known, values, 0).astype(np.int64)
            return pa.chunked_array([pa.array(whole, mask=~known)])
        if not pa.types.is_integer(kind) and not pa.types.is_decimal(kind):
            self.complain(expected, f"{kind} under {name!r}")
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            if pa.types.is_integer(kind):
                return column.cast(pa.string())
            self.complain(expected, f"{kind} with other values under {name!r}")

    def numbers(self, name: object, parameter: str) -> NDArray[np.float64]:
        """Return a column as finite numbers, shape (rows,)."""
        column = self.column(name, parameter)
        expected = "a finite number"
        if is_text(column.type):
            values = as_numbers(column)
            if values is None and not self.typed:
                values = with_commas(column)
            if values is None:
                cells: list[str | None] = column.to_pylist()
                row = next(row for row, cell in enumerate(cells) if spelled(cell) is None)
                got = f"the text {describe(cells[row])}" if cells[row] else "an empty cell"
                self.complain(expected, got, row, column=name)
        elif is_number(column.type) or pa.types.is_null(column.type):
            values = column.cast(pa.float64(), safe=False).to_numpy()  # the nearest one of a large integer
        else:
            self.complain(expected, f"{column.type}", column=name)
        broken = np.flatnonzero(~np.isfinite(values))
        if broken.size:
            self.complain(expected, f"{values[broken[0]]}", int(broken[0]), column=name)
        return values

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers. A column of text among which there are numbers is neither: an error."""
        column = plain(self.columns[name])
        if self.typed or not is_text(column.type):
            return is_number(column.type)
        if as_numbers(column) is not None:
            return self.n_rows > 0
        cells: list[str] = column.to_pylist()
        values = [spelled(cell) for cell in cells]
        numeric = any(value is not None and np.isfinite(value) for value in values)  # "nan" may be a word
        text = [row for row, value in enumerate(values) if value is None and cells[row]]
        if numeric and text:
            expected = f"a table whose column {name!r} is all numbers or all text (feature_columns can leave it out)"
            self.complain(expected, f"the text {describe(cells[text[0]])} among numbers", text[0])
        return numeric


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is a number or a truth value."""
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)


def plain(column: Column) -> Column:
    """Return a column with its values in place, not as a dictionary, a view or an extension.

    >>> plain(pa.chunked_array([pa.array(["a", "a"]).dictionary_encode()])).type
    DataType(string)
    """
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, Unreadable):
        column = column.cast(kind.storage_type)
        kind = column.type
    if pa.types.is_dictionary(kind):
        view = pa.types.is_string_view(kind.value_type)  # which no cast unpacks
        values = pa.large_string() if view else kind.value_type
        chunks = [chunk.dictionary.cast(values).take(chunk.indices) for chunk in column.chunks]
        return plain(pa.chunked_array(chunks, type=values))
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(column))
    return column.cast(pa.large_string()) if pa.types.is_string_view(kind) else column


def first_row(found: Column) -> int | None:
    """Return the first row of a column of truth values that is true.

    >>> first_row(pa.chunked_array([[False, True]]))
    1
    """
    row = pc.index(found, True).as_py()
    return None if row < 0 else row


def as_integers(column: Column) -> NDArray[np.int64] | None:
    """Return int64 where each text is an integer as Python prints it, so that ``7`` and ``007`` stay apart; else None.

    >>> as_integers(pa.chunked_array([["7", "-12"]])), as_integers(pa.chunked_array([["7", "007"]]))
    (array([  7, -12]), None)
    """
    found = np.empty(len(column), dtype=np.int64)
    start = 0
    slices = (chunk.slice(at, SLICE) for chunk in column.chunks for at in range(0, len(chunk), SLICE))
    for chunk in slices:  # Arrow reads a slice to its end where the first text is no number
        try:
            values = chunk.cast(pa.int64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            return None
        if not _printed(chunk, values):
            return None
        found[start : start + len(chunk)] = values
        start += len(chunk)
    return found


def _printed(chunk: Any, values: NDArray[np.int64]) -> bool:
    """Whether all the numbers that Arrow read in texts are spelled as Python prints them."""
    _, offsets, data = chunk.buffers()
    if data is None:
        return len(values) == 0
    places = np.frombuffer(offsets, dtype=np.int64 if pa.types.is_large_string(chunk.type) else np.int32)
    start, stop = int(places[chunk.offset]), int(places[chunk.offset + len(chunk)])
    text = bytes(data[start:stop])
    if b"x" in text or b"X" in text:  # Arrow reads hexadecimal numbers, too
        return pc.all(pc.equal(pa.array(values).cast(chunk.type), chunk)).as_py()
    return len(text) == _digits(values)  # of the decimal spellings of a number Python's is the shortest


def _digits(values: NDArray[np.int64]) -> int:
    """Return how many characters Python prints for all of `values`."""
    negative = int(np.count_nonzero(values < 0))
    sizes = np.abs(values).view(np.uint64) if negative else values.view(np.uint64)  # the smallest int64 included
    largest = int(sizes.max(initial=0))
    longer = (int(np.count_nonzero(sizes >= np.uint64(10**power))) for power in range(1, len(str(largest))))
    return len(values) + negative + sum(longer)


def as_numbers(column: Column) -> NDArray[np.float64] | None:
    """Return the numbers that all the texts spell, or None. Python's ``1_000`` is not one.

    >>> [as_numbers(pa.chunked_array([cells])) for cells in (["2.5e1", "+1"], ["1_000"], ["five", "1"])]
    [array([25.,  1.]), None, None]
    """
    if column.null_count:
        return None
    try:
        return column.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:  # which knows fewer spellings than Python does
        found = np.empty(len(column), dtype=np.float64)
        cells = chain.from_iterable(chunk.to_pylist() for chunk in column.chunks)
        for row, cell in enumerate(cells):
            number = spelled(cell)
            if number is None:
                return None
            found[row] = number
        return found


def with_commas(column: Column) -> NDArray[np.float64] | None:
    """Return the numbers that texts spell with decimal commas; None where one is none, or commas may part thousands.

    >>> [with_commas(pa.chunked_array([cells])) for cells in (["2,5", "1"], ["1,250", "2,000"], ["2,5", ""])]
    [array([2.5, 1. ]), None, None]
    """
    from pprop.graph.features.columns import read_column
    from pprop.graph.features.kinds import decide

    read = read_column("", column, typed=False)
    if read.n_missing or not decide(read, wanted=True).comma:
        return None
    return read.numbers(comma=True)[0]


def spelled(cell: str | None) -> float | None:
    """Return the number that a text spells, or None.

    >>> spelled("-.5"), spelled("1_000"), spelled(None)
    (-0.5, None, None)
    """
    try:
        return None if cell is None or "_" in cell else float(cell)
    except ValueError:
        return None
