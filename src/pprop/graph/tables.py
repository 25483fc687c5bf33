"""Tables as named columns, from CSV or Parquet, with every complaint naming file and row.

Rows are numbered from 1; a CSV's header and blank lines are not counted.
"""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, cast, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import FormatError
from pprop._optional import require
from pprop._validate import describe, reject
from pprop.graph.files import check_memory, existing_file, read_file

Column = list[str] | NDArray[Any]  # text cells ("" where empty), or the numbers of a typed column (NaN where empty)

MOST_NAMES = 20  # in one sentence
CHUNK = 500  # rows: too few for the garbage collector to wake up and walk all the columns again and again
BINARY_STARTS = {b"PAR1": "Parquet", b"PK\x03\x04": "zip", b"\x1f\x8b": "gzip", b"\x93NUMPY": "npy"}


@final
@dataclass(frozen=True)
class DataTable:
    """The columns of one file; `parameter` is the argument of `function` that named it.

    In a typed file (Parquet) a column of text is text, even where every cell spells a number.
    """

    path: Path
    parameter: str
    function: str
    columns: dict[str, Column]
    typed: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def complain(self, expected: str, got: str, row: int | None = None) -> NoReturn:
        """Raise the house sentence about this file; `row` is an index from 0."""
        place = f" in row {row + 1} of {str(self.path)!r}" if row is not None else f" in {str(self.path)!r}"
        reject(self.parameter, self.function, expected, got + place, error=FormatError)

    def column(self, name: object, parameter: str) -> Column:
        """Return the column that the argument `parameter` names, or list the ones there are."""
        if isinstance(name, str) and name in self.columns:
            return self.columns[name]
        near = difflib.get_close_matches(str(name), self.columns, n=1, cutoff=0.6)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        present = ", ".join(repr(column) for column in islice(self.columns, MOST_NAMES))
        more = f" and {len(self.columns) - MOST_NAMES} more" if len(self.columns) > MOST_NAMES else ""
        remedy = f"Its columns of numbers or text are: {present}{more}.{hint}"
        reject(parameter, self.function, f"the name of a column of {str(self.path)!r}", describe(name), remedy=remedy)

    def texts(self, name: object, parameter: str) -> list[str]:
        """Return a column as text, integers in decimal, "" where empty. Other numbers must be whole."""
        cells = self.column(name, parameter)
        if isinstance(cells, list):
            ended = next((row for row, cell in enumerate(cells) if cell.endswith("\0")), None)
            if ended is not None:
                expected = "a table whose ids and labels do not end in a null character"
                self.complain(expected, f"{describe(cells[ended])} under {name!r}", ended)
            return cells
        if cells.dtype.kind in "iu":
            return [str(number) for number in cells.tolist()]
        broken = np.flatnonzero(~np.isnan(cells) & (cells != np.floor(cells)) | np.isinf(cells))
        if broken.size:
            value = f"{cells[broken[0]]} under {name!r}"
            self.complain("a table whose ids and labels are text or integers", value, int(broken[0]))
        return ["" if number != number else str(int(number)) for number in cells.tolist()]

    def numbers(self, name: object, parameter: str) -> NDArray[np.float64]:
        """Return a column as finite numbers, shape (rows,)."""
        cells = self.column(name, parameter)
        expected = f"a table with a finite number in every row of {name!r}"
        if isinstance(cells, list):
            values = as_numbers(cells)
            if values is None:
                row = next(row for row, cell in enumerate(cells) if as_numbers([cell]) is None)
                self.complain(expected, f"the text {describe(cells[row])}" if cells[row] else "an empty cell", row)
        else:
            values = cells.astype(np.float64)
        broken = np.flatnonzero(~np.isfinite(values))
        if broken.size:
            self.complain(expected, f"{values[broken[0]]}", int(broken[0]))
        return values

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers. A column of text among which there are numbers is neither: an error."""
        cells = self.columns[name]
        if self.typed or not isinstance(cells, list):
            return not isinstance(cells, list)
        if as_numbers(cells) is not None:
            return bool(cells)
        values = [as_numbers([cell]) for cell in cells]
        numeric = any(value is not None and np.isfinite(value[0]) for value in values)  # "nan" may be a word
        text = [row for row, value in enumerate(values) if value is None and cells[row]]
        if numeric and text:
            expected = f"a table whose column {name!r} is all numbers or all text (feature_columns can leave it out)"
            self.complain(expected, f"the text {describe(cells[text[0]])} among numbers", text[0])
        return numeric


def as_numbers(cells: list[str]) -> NDArray[np.float64] | None:
    """Return the numbers that all the cells spell, or None. Python's ``1_000`` is not one.

    >>> as_numbers(["2.5e1", "-1"]), as_numbers(["1_000"]), as_numbers(["five", "1"])
    (array([25., -1.]), None, None)
    """
    try:
        numbers = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
    except ValueError:
        return None
    return None if any("_" in cell for cell in cells) else numbers


def read_table(path: object, parameter: str, function: str) -> DataTable:
    """Read a whole ``.csv`` or ``.parquet`` file; each must be what its suffix says."""
    file = existing_file(path, parameter, function)
    readers = {".csv": _read_csv, ".parquet": _read_parquet}
    reader = readers.get(file.suffix.lower())
    if reader is None:
        reject(parameter, function, "a .csv or .parquet file", repr(str(path)), error=FormatError)
    if file.stat().st_size == 0:
        reject(parameter, function, "a table with a header", f"the empty file {str(path)!r}", error=FormatError)
    return reader(file, parameter, function)


def _read_csv(file: Path, parameter: str, function: str) -> DataTable:
    content = read_file(file)
    for start, kind in BINARY_STARTS.items():
        if content.startswith(start):
            got = f"{str(file)!r}, which is a {kind} file,"
            reject(parameter, function, "a CSV file, as its suffix says", got, error=FormatError)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        got = f"a byte at position {error.start} that is not UTF-8 in {str(file)!r}"
        reject(parameter, function, "a CSV file in UTF-8", got, error=FormatError)
    if "\0" in text:
        reject(parameter, function, "a CSV file of text", f"null characters in {str(file)!r}", error=FormatError)
    rows = filter(None, csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True))
    try:
        header = [name.strip() for name in next(rows, list[str]())]
        table = DataTable(file, parameter, function, {name: [] for name in header})
        _check_header(table, header)
        while chunk := list(islice(rows, CHUNK)):
            if set(map(len, chunk)) != {len(header)}:
                index = next(index for index, row in enumerate(chunk) if len(row) != len(header))
                got = f"{len(chunk[index])} cells"
                table.complain(f"a table with {len(header)} cells in every row", got, table.n_rows + index)
            for column, cells in zip(table.columns.values(), zip(*chunk, strict=True), strict=True):
                cast("list[str]", column).extend(map(str.strip, cells))  # blanks around a comma are layout, not content
    except csv.Error as error:
        reject(parameter, function, "a well-formed CSV file", f"{str(file)!r} ({error})", error=FormatError)
    return table


def _read_parquet(file: Path, parameter: str, function: str) -> DataTable:
    parquet: Any = require("pyarrow.parquet", extra="parquet", purpose="Reading Parquet files")
    arrow: Any = require("pyarrow", extra="parquet", purpose="Reading Parquet files")
    try:
        with file.open("rb") as stream:  # an open file, so that pyarrow takes the path for nothing else
            opened = parquet.ParquetFile(stream)
            # the same number a billion times takes a few bytes in the file
            check_memory(file, 8 * opened.metadata.num_rows * opened.metadata.num_columns)
            content = opened.read()
        names: list[str] = content.column_names
    except (arrow.ArrowException, OSError, ValueError):
        got = f"{str(file)!r} with damaged or other content"
        reject(parameter, function, "a sound Parquet file, as its suffix says", got, error=FormatError)
    table = DataTable(file, parameter, function, {}, typed=True)
    _check_header(table, names)
    for name, column in zip(names, content.columns, strict=True):
        try:
            cells = _parquet_cells(column, arrow.types)
        except UnicodeDecodeError as error:
            got = f"the bytes {describe(error.object[:20])} under {name!r}"
            table.complain("a Parquet file whose text is UTF-8", got, _undecodable(column))
        if cells is not None:
            table.columns[name] = cells
    return table


def _parquet_cells(column: Any, types: Any) -> Column | None:
    """Return numbers as an array and text as a list; None for what is neither (dates, lists, structures)."""
    kind = column.type
    if types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if types.is_integer(kind) or types.is_floating(kind):
        return np.asarray(column.to_numpy())
    if types.is_boolean(kind):
        return np.asarray([np.nan if cell is None else float(cell) for cell in column.to_pylist()])
    if types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind):
        return ["" if cell is None else cell for cell in column.to_pylist()]
    return None


def _undecodable(column: Any) -> int:
    """Return the first row of a column of text whose bytes are not UTF-8."""
    for row, cell in enumerate(column):
        try:
            cell.as_py()
        except UnicodeDecodeError:
            return row
    raise AssertionError("every row is UTF-8")


def _check_header(table: DataTable, header: Sequence[str]) -> None:
    if not header:
        table.complain("a table with a header", "no columns")
    for name in header:
        if header.count(name) > 1:
            table.complain("a table with distinct column names", f"the column {name!r} twice")
