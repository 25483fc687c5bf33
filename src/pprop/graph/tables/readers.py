"""Files with a table: CSV of several kinds, compressed or not, and Parquet."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

from pprop._errors import FormatError
from pprop._validate import reject
from pprop.graph.files import check_memory, existing_file, read_file
from pprop.graph.tables.arrow import pa, parquet
from pprop.graph.tables.csv_text import parse_csv
from pprop.graph.tables.frames import check_names, columns_of_arrow
from pprop.graph.tables.table import DataTable

DELIMITERS = {".csv": None, ".tsv": "\t", ".tab": "\t"}  # None: found out from the header
CODECS = {".gz": "gzip", ".zst": "zstd"}
BINARY_STARTS = {
    b"PAR1": "Parquet",
    b"PK\x03\x04": "zip",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x93NUMPY": "npy",
}
BLOCK = 2**24


def table_suffix(path: str | Path) -> str | None:
    """Return the suffix of a file that `read_table` reads, without that of its compression; None for another file.

    >>> table_suffix("edges.CSV.gz"), table_suffix("edges.parquet"), table_suffix("graph.npz")
    ('.csv', '.parquet', None)
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix == ".parquet":
        return suffix
    inner = Path(file.stem).suffix.lower() if suffix in CODECS else suffix
    return inner if inner in DELIMITERS else None


def read_table(path: object, parameter: str, function: str, wanted: Collection[object] | None = None) -> DataTable:
    """Read a table from a ``.csv``, ``.tsv`` or ``.tab`` file, also with ``.gz`` or ``.zst``, or a ``.parquet`` file.

    Each must be what its suffix says. Of the columns only those in `wanted` are read, where they exist; None is all.
    """
    file = existing_file(path, parameter, function)
    suffix = table_suffix(file)
    if suffix is None:
        expected = "a .csv, .tsv or .parquet file (.csv.gz and .csv.zst are fine)"
        reject(parameter, function, expected, repr(str(path)), error=FormatError)
    if file.stat().st_size == 0:
        reject(parameter, function, "a table with a header", f"the empty file {str(path)!r}", error=FormatError)
    names = None if wanted is None else {name for name in wanted if isinstance(name, str)}
    return (_read_parquet if suffix == ".parquet" else _read_csv)(file, parameter, function, names)


def _read_csv(file: Path, parameter: str, function: str, wanted: set[str] | None) -> DataTable:
    make = partial(DataTable, repr(str(file)), parameter, function, path=file)
    complain = make({}, 0).complain
    codec = CODECS.get(file.suffix.lower())
    content = read_file(file)
    if codec is not None:
        content = _decompress(file, content, codec, parameter, function)
    for start, kind in BINARY_STARTS.items():
        if content.startswith(start):
            got = f"{str(file)!r}, which is a {kind} file,"
            reject(parameter, function, "a CSV file, as its suffix says", got, error=FormatError)
    suffix = table_suffix(file)
    assert suffix is not None
    columns, header, headless = parse_csv(content, DELIMITERS[suffix], wanted, complain)
    n_rows = len(next(iter(columns.values()), ()))
    return make(columns, n_rows, name=table_name(file), names=tuple(header), headless=headless)


def _decompress(file: Path, content: bytes, codec: str, parameter: str, function: str) -> bytes:
    blocks: list[bytes] = []
    size = 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(content), codec) as stream:
            while block := stream.read(BLOCK):
                size += len(block)
                check_memory(file, size)  # a few bytes can become gigabytes
                blocks.append(block)
    except (pa.ArrowException, OSError, ValueError):
        got = f"{str(file)!r} with damaged or other content"
        reject(parameter, function, f"a sound {codec} file, as its suffix says", got, error=FormatError)
    return b"".join(blocks)


def _read_parquet(file: Path, parameter: str, function: str, wanted: set[str] | None) -> DataTable:
    make = partial(DataTable, repr(str(file)), parameter, function, typed=True, name=table_name(file), path=file)
    complain = make({}, 0).complain
    try:
        with file.open("rb") as stream:  # an open file, so that pyarrow takes the path for nothing else
            opened: Any = parquet.ParquetFile(stream)
            names: list[str] = opened.schema_arrow.names
            check_names(names, complain)
            chosen = [name for name in names if wanted is None or name in wanted]
            # the same number a billion times takes a few bytes in the file
            check_memory(file, 8 * opened.metadata.num_rows * len(chosen))
            content = opened.read(columns=chosen)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        got = f"{str(file)!r} with damaged or other content"
        reject(parameter, function, "a sound Parquet file, as its suffix says", got, error=FormatError)
    columns = columns_of_arrow({name: content.column(name) for name in chosen}, complain)
    return make(columns, content.num_rows, names=tuple(names))


def table_name(file: Path) -> str:
    """Return the name of a file without its suffixes.

    >>> table_name(Path("a/edges.csv.gz"))
    'edges'
    """
    return Path(file.stem).stem if file.suffix.lower() in CODECS else file.stem
