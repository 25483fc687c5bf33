"""Tables in memory: data frames of pandas, polars, DuckDB and pyarrow, by the Arrow interface; columns in a dict."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pprop._validate import describe, reject
from pprop.graph.rows import check_same_index
from pprop.graph.tables.arrow import Column, Unreadable, interchange, pa
from pprop.graph.tables.csv_text import Complaint
from pprop.graph.tables.table import ONE_TYPE, DataTable, is_text, plain

UUID = "extension<arrow.uuid>"  # of pyarrow, from version 18 on
EXPECTED = "a table: a data frame of pandas, polars, DuckDB or pyarrow, or a dict of columns"


def table_of(
    data: object, parameter: str, function: str, wanted: Collection[object] | None = None, title: str | None = None
) -> DataTable:
    """Return a table in memory as Arrow columns; of these only the ones in `wanted`, where they exist. None is all.

    Parameters
    ----------
    data
        A pandas DataFrame; any object with ``__arrow_c_stream__`` or ``__dataframe__``; a mapping of names to
        one-dimensional arrays. The index of a DataFrame is a column where it has a name or is text.
    parameter, function
        The argument that brought it, for messages.
    title
        What messages call it; None for its type.

    Examples
    --------
    >>> table = table_of({"source": [1, 2], "target": ["a", None]}, "edges", "Graph.from_pandas")
    >>> {name: column.to_pylist() for name, column in table.columns.items()}
    {'source': [1, 2], 'target': ['a', None]}
    """
    make = partial(DataTable, title or f"the {type(data).__name__}", parameter, function)
    complain = make({}, 0).complain
    if isinstance(data, str | bytes):
        reject(parameter, function, EXPECTED, describe(data), remedy="For a file use pprop.read_edges.")
    given = _pandas_columns(data) or _arrow_columns(data, parameter, function)
    if given is None:
        reject(parameter, function, EXPECTED, describe(data))
    names, values = given
    check_names(names, complain)
    chosen = {name: value for name, value in zip(names, values, strict=True) if wanted is None or name in wanted}
    columns = columns_of_arrow({name: _column(name, value, complain) for name, value in chosen.items()}, complain)
    lengths = [len(column) for column in columns.values()]
    if len(set(lengths)) > 1:
        complain("a table with columns of one length", f"lengths {min(lengths)} and {max(lengths)}")
    return make(columns, lengths[0] if lengths else 0, typed=True, names=tuple(names))


def columns_of_arrow(columns: Mapping[str, Column], complain: Complaint) -> dict[str, Column]:
    """Return Arrow columns; text must be UTF-8, which no library promises. Dictionaries, which tell a category, stay."""
    found: dict[str, Column] = {}
    for name, given in columns.items():
        column = _uuid_texts(given) if str(given.type) == UUID else plain(given)
        if is_text(column.type):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                row, broken = _undecodable(column)
                got = f"the bytes {describe(broken[:20])} under {name!r}"
                complain("a table whose text is UTF-8", got, row, remedy="Write that column again as UTF-8.")
        found[name] = given if pa.types.is_dictionary(given.type) else column
    return found


def _uuid_texts(column: Column) -> Column:
    """Return UUIDs as text, as Python prints them."""
    texts = [None if cell is None else str(cell) for cell in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def check_names(names: Sequence[str], complain: Complaint) -> None:
    """Complain about a table without columns, and one that has a name twice."""
    if not names:
        complain("a table with columns", "none")
    if len(set(names)) < len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        complain("a table with distinct column names", f"the column {twice!r} twice")


def _pandas_columns(data: object) -> tuple[list[str], list[object]] | None:
    """Return the columns of a pandas DataFrame, the levels of an index with meaning first; None for anything else."""
    pandas: Any = sys.modules.get("pandas")  # whose objects do not exist where it was not imported
    if pandas is None or not isinstance(data, pandas.DataFrame):
        return None
    frame: Any = data
    index = frame.index
    named = any(name is not None for name in index.names)
    if named or isinstance(index, pandas.MultiIndex) or (index.inferred_type == "string"):
        levels = [index.get_level_values(level) for level in range(index.nlevels)]
        spare = ["index"] if len(levels) == 1 else [f"level_{level}" for level in range(len(levels))]
        titles = [str(instead if name is None else name) for name, instead in zip(index.names, spare, strict=True)]
    else:
        levels, titles = [], []
    return [*titles, *map(str, frame.columns)], [
        *levels,
        *(_dense(frame.iloc[:, at], pandas) for at in range(frame.shape[1])),
    ]


def _dense(series: Any, pandas: Any) -> Any:
    return series.sparse.to_dense() if isinstance(series.dtype, pandas.SparseDtype) else series


def _arrow_columns(data: object, parameter: str, function: str) -> tuple[list[str], list[object]] | None:
    value: Any = data
    if isinstance(data, Mapping):
        columns = cast("Mapping[object, object]", data)
        check_same_index({str(name): column for name, column in columns.items()}, function)
        return [str(name) for name in columns], list(columns.values())
    try:
        if hasattr(value, "__arrow_c_stream__"):
            table = value if isinstance(value, pa.Table) else pa.RecordBatchReader.from_stream(value).read_all()
        elif hasattr(value, "__dataframe__"):
            table = interchange.from_dataframe(value)
        else:
            return None
        return table.column_names, table.columns
    except (pa.ArrowException, TypeError, ValueError, UnicodeDecodeError) as error:
        reject(parameter, function, EXPECTED, f"{describe(data)}, whose Arrow interface says: {describe(str(error))},")


def is_matrix(values: Any) -> bool:
    """Whether values are a matrix of numbers.

    >>> is_matrix(np.ones((2, 2))), is_matrix(np.ones(2)), is_matrix([[1, 2]])
    (True, False, False)
    """
    array = cast("NDArray[Any]", values)
    return isinstance(values, np.ndarray) and array.ndim == 2 and array.shape[1] > 0 and array.dtype.kind in "buif"


def list_column(rows: NDArray[Any]) -> Column:
    """Return a matrix as a column of lists, a row a cell; the numbers stay where they are if their type allows it.

    >>> list_column(np.array([[1, 2], [3, 4]])).to_pylist()
    [[1, 2], [3, 4]]
    """
    narrow = {"b": np.uint8, "f": np.float64}
    native = rows.dtype.newbyteorder("=")
    kept = native if native.kind in "iu" or native in (np.float32, np.float64) else np.dtype(narrow[native.kind])
    kept = np.dtype(np.float32) if native == np.float16 else kept
    items = pa.array(np.ascontiguousarray(rows, dtype=kept).ravel())
    return pa.chunked_array([pa.FixedSizeListArray.from_arrays(items, rows.shape[1])])


def _column(name: str, values: Any, complain: Complaint) -> Column:
    """Return the values of one column as Arrow has them; of several types, a column that can only be left out."""
    if isinstance(values, pa.ChunkedArray):
        return values
    if is_matrix(values):
        return list_column(values)
    try:
        array = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)
        return pa.chunked_array([array]) if isinstance(array, pa.Array) else array
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    try:
        cells = list(values)
    except TypeError:
        complain(ONE_TYPE, f"{describe(values)} under {name!r}")
    kinds = [type(cell).__name__ for cell in cells]
    known = [
        row for row, cell in enumerate(cells) if cell is not None and not (isinstance(cell, float) and cell != cell)
    ]
    other = next((row for row in known if kinds[row] != kinds[known[0]]), None)
    if other is None:
        kind = Unreadable(f"values of type {kinds[known[0]] if known else 'None'}", None)
    else:
        after = f"{describe(cells[known[0]])} ({kinds[known[0]]})"
        kind = Unreadable(f"{describe(cells[other])} ({kinds[other]}) after {after}", other)
    return pa.chunked_array([pa.ExtensionArray.from_storage(kind, pa.nulls(len(cells)))])


def _undecodable(column: Column) -> tuple[int, bytes]:
    """Return the first row of a column of text whose bytes are not UTF-8, and the bytes."""
    for row, cell in enumerate(column):
        try:
            cell.as_py()
        except UnicodeDecodeError as error:
            return row, error.object
    raise AssertionError("every row is UTF-8")
