"""Matrix Market files: a banner, the sizes, and a number after another.

scipy's reader crashes the process on some files that are cut short, so these are read here, and every index is checked.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop.graph.files import check_memory

BANNER = re.compile(rb"%%MatrixMarket\s+(\w+)\s+(\w+)\s+([\w-]+)\s+([\w-]+)\s*$", re.IGNORECASE)
LONGEST_LINE = 1024  # of the banner and the sizes
KNOWN = (("matrix",), ("coordinate", "array"), ("real", "double", "integer", "unsigned-integer", "pattern"))
SYMMETRIES = ("general", "symmetric")
ENTRY_BYTES = 64  # of memory for an entry: a line of three numbers, two places and a value, twice if symmetric


class _Header(NamedTuple):
    form: str
    field: str
    symmetry: str
    sizes: tuple[int, ...]
    start: int  # of the numbers


def parse_matrix_market(content: bytes, path: Path) -> sparse.coo_array:
    r"""Return the square matrix in a file, shape (n, n), float64; `path` names it where it needs too much memory.

    Entries that a symmetric file leaves out are there, and those that a file lists twice are listed twice.

    Raises
    ------
    ValueError
        It is something else, and the message says what.

    Examples
    --------
    >>> text = b"%%MatrixMarket matrix coordinate pattern symmetric\n% a path\n3 3 2\n2 1\n3 2\n"
    >>> parse_matrix_market(text, Path("path.mtx")).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    header = _header(content)
    rows, columns, *count = header.sizes
    if rows != columns or rows == 0:
        raise ValueError(f"a matrix of {rows} rows and {columns} columns, not square or empty")
    if rows > np.iinfo(np.int32).max:
        raise ValueError(f"{rows} rows, more than {np.iinfo(np.int32).max}")
    lower = rows * (rows + 1) // 2 if header.symmetry == "symmetric" else rows * rows
    entries = count[0] if count else lower
    if 2 * entries > len(content):  # a digit and the end of the line
        raise ValueError(f"a header that claims {entries} entries in {len(content)} bytes")
    check_memory(path, ENTRY_BYTES * entries + 16 * rows)
    if header.form == "array":
        values = _numbers(content[header.start :], entries, 1)[:, 0]
        column, row = (
            np.triu_indices(rows) if header.symmetry == "symmetric" else np.indices((rows, rows)).reshape(2, -1)
        )
    else:
        numbers = _numbers(content[header.start :], entries, 2 if header.field == "pattern" else 3)
        row, column = (_indices(numbers[:, at], rows) for at in (0, 1))
        values = np.ones(entries) if header.field == "pattern" else numbers[:, 2]
    if header.symmetry == "symmetric":
        mirrored = row != column
        _check_triangles(row[mirrored], column[mirrored], rows)
        row, column = np.concatenate([row, column[mirrored]]), np.concatenate([column, row[mirrored]])
        values = np.concatenate([values, values[mirrored]])
    return sparse.coo_array((values, (row, column)), shape=(rows, rows))


def _header(content: bytes) -> _Header:
    end = content.find(b"\n", 0, LONGEST_LINE)
    found = BANNER.match(content[: max(end, 0)].rstrip())
    if found is None:
        raise ValueError("no Matrix Market banner in the first line")
    kind, form, field, symmetry = (word.decode("ascii").lower() for word in found.groups())
    for word, known in zip((kind, form, field), KNOWN, strict=True):
        if word not in known:
            raise ValueError(f"a banner that says {word!r} where {' or '.join(known)} is read")
    if symmetry not in SYMMETRIES:
        raise ValueError(f"a {symmetry} matrix where a general or symmetric one is read")
    start = end + 1
    while True:  # comments and empty lines
        end = content.find(b"\n", start)
        line = content[start : end if end >= 0 else len(content)]
        if end < 0 or (line.strip() and not line.lstrip().startswith(b"%")):
            break
        start = end + 1
    sizes = line.split() if len(line) <= LONGEST_LINE else []
    wanted = 3 if form == "coordinate" else 2
    if len(sizes) != wanted or not all(size.isdigit() and len(size) < 19 for size in sizes):
        raise ValueError(f"no line of {wanted} sizes after the banner")
    return _Header(form, field, symmetry, tuple(int(size) for size in sizes), start + len(line))


def _numbers(body: bytes, rows: int, columns: int) -> NDArray[np.float64]:
    """Return the numbers in a text, shape (rows, columns), a row a line."""
    text = body.strip()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of text that is no number
        try:
            numbers = np.fromstring(text, dtype=np.float64, sep=" ") if text else np.empty(0)
        except (DeprecationWarning, ValueError):
            raise ValueError("something that is no number") from None
    if numbers.size != rows * columns:
        raise ValueError(f"{numbers.size} numbers where {rows * columns} belong")
    letters = np.frombuffer(text, dtype=np.uint8)
    blank = letters <= ord(" ")
    starts = np.flatnonzero(~blank[1:] & blank[:-1]) + 1  # of all numbers but the first
    before = np.searchsorted(starts, np.flatnonzero(letters == ord("\n"))) + 1
    if (before % columns).any():
        raise ValueError(f"a line of other than {columns} numbers")
    return numbers.reshape(rows, columns)


def _check_triangles(row: NDArray[Any], column: NDArray[Any], n: int) -> None:
    """Raise ValueError if a pair of places is listed in both triangles: the format has room for one, and both add up."""
    lower = row > column
    one, other = (
        np.minimum(row[part], column[part]).astype(np.int64) * n + np.maximum(row[part], column[part])
        for part in (lower, ~lower)
    )
    both = np.intersect1d(one, other)
    if both.size:
        first, second = divmod(int(both[0]), n)
        raise ValueError(
            f"a symmetric matrix that lists the entries {first + 1} {second + 1} and {second + 1} {first + 1}; "
            "write it as general, or with one of the two"
        )


def _indices(numbers: NDArray[np.float64], n: int) -> NDArray[np.int32]:
    outside = ~((numbers >= 1) & (numbers <= n) & (numbers == np.floor(numbers)))
    if outside.any():
        raise ValueError(f"the index {numbers[outside][0]:g}, which is none from 1 to {n}")
    return (numbers - 1).astype(np.int32)
