"""Files with a table: CSV of several kinds, compressed or not, and Parquet."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, final

from pprop._errors import FormatError, PpropError
from pprop._validate import reject
from pprop.graph.files import check_memory, existing_file, open_regular, read_stream
from pprop.graph.tables.arrow import Column, pa, parquet
from pprop.graph.tables.csv_text import parse_csv, read_header
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
HEADER = 2**17  # bytes that are read for a header: more than one and the comments above it


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

    Each must be what its suffix says. Of the columns only those in `wanted` are read, where they exist; None is all. A
    table that was read already is returned as it is.
    """
    if isinstance(path, DataTable):
        return path
    with TableFile(path, parameter, function) as file:
        return file.read(wanted)


@final
class TableFile:
    r"""A file with a table that is opened once, for its header and then for its rows; `parameter` brought it.

    It is closed when the rows are read, and at the latest when nothing refers to it any more.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "edges.csv")
    >>> _ = path.write_text("source,target\na,b\n")
    >>> with TableFile(path, "path", "read_edges") as file:
    ...     print(file.header().names, file.read(["target"]).others)
    ('source', 'target') ('source',)
    >>> folder.cleanup()
    """

    def __init__(self, path: object, parameter: str, function: str) -> None:
        self.path = existing_file(path, parameter, function)
        self._argument = (parameter, function)
        suffix = table_suffix(self.path)
        if suffix is None:
            expected = "a .csv, .tsv or .parquet file (.csv.gz and .csv.zst are fine)"
            reject(parameter, function, expected, repr(str(path)), error=FormatError)
        if self.path.stat().st_size == 0:
            reject(parameter, function, "a table with a header", f"the empty file {str(path)!r}", error=FormatError)
        self._suffix, self._typed = suffix, suffix == ".parquet"
        self._stream = open_regular(self.path)
        self._close = weakref.finalize(self, self._stream.close)
        self._parquet: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._parquet = None
        self._close()

    def header(self) -> DataTable:
        """Return the names of the columns, as a table without rows."""
        if self._typed:
            return self._made({}, 0, names=self._parquet_names())
        self._stream.seek(0)
        block = self._stream.read(HEADER) if self._codec is None else self._decompressed(self._stream, HEADER)
        self._check_start(block)
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        _, _, names, headless = read_header(block[:end] or block, DELIMITERS[self._suffix], self._complain)
        return self._made({}, 0, names=tuple(names), headless=headless)

    def read(self, wanted: Collection[object] | None = None) -> DataTable:
        """Return the columns in `wanted`, where they exist; None is all."""
        names = None if wanted is None else {name for name in wanted if isinstance(name, str)}
        return self._read_parquet(names) if self._typed else self._read_csv(names)

    @property
    def _codec(self) -> str | None:
        return CODECS.get(self.path.suffix.lower())

    def _made(self, columns: Mapping[str, Column], n_rows: int, **more: Any) -> DataTable:
        title, name = repr(str(self.path)), table_name(self.path)
        return DataTable(title, *self._argument, columns, n_rows, typed=self._typed, name=name, path=self.path, **more)

    @property
    def _complain(self) -> Any:
        return self._made({}, 0).complain

    def _reject(self, expected: str, got: str) -> NoReturn:
        reject(*self._argument, expected, f"{str(self.path)!r}{got}", error=FormatError)

    def _check_start(self, content: bytes) -> None:
        for start, kind in BINARY_STARTS.items():
            if content.startswith(start):
                self._reject("a CSV file, as its suffix says", f", which is a {kind} file,")

    def _read_csv(self, wanted: set[str] | None) -> DataTable:
        content = read_stream(self.path, self._stream)
        if self._codec is not None:
            content = self._decompressed(pa.BufferReader(content))
        self._check_start(content)
        columns, header, headless = parse_csv(content, DELIMITERS[self._suffix], wanted, self._complain)
        n_rows = len(next(iter(columns.values()), ()))
        return self._made(columns, n_rows, names=tuple(header), headless=headless)

    def _decompressed(self, packed: Any, most: int | None = None) -> bytes:
        """Return the content, or at least its first `most` bytes."""
        blocks: list[bytes] = []
        size, source = 0, packed if most is None else pa.PythonFile(_Open(packed), mode="r")
        try:
            stream = pa.CompressedInputStream(source, self._codec)
            while block := stream.read(BLOCK if most is None else most):
                size += len(block)
                blocks.append(block)
                if most is not None and size >= most:
                    break
                check_memory(self.path, size)  # a few bytes can become gigabytes
        except (pa.ArrowException, OSError, ValueError):
            self._reject(f"a sound {self._codec} file, as its suffix says", " with damaged or other content")
        return b"".join(blocks)

    def _opened(self) -> Any:
        if self._parquet is None:  # of an open file, so that pyarrow takes the path for nothing else
            self._parquet = parquet.ParquetFile(self._stream)
        return self._parquet

    def _parquet_names(self) -> tuple[str, ...]:
        with self._sound_parquet():
            return tuple(self._opened().schema_arrow.names)

    def _read_parquet(self, wanted: set[str] | None) -> DataTable:
        names = list(self._parquet_names())
        check_names(names, self._complain)
        chosen = [name for name in names if wanted is None or name in wanted]
        with self._sound_parquet():
            # the same number a billion times takes a few bytes in the file
            check_memory(self.path, 8 * self._opened().metadata.num_rows * len(chosen))
            content = self._opened().read(columns=chosen)
        columns = columns_of_arrow({name: content.column(name) for name in chosen}, self._complain)
        return self._made(columns, content.num_rows, names=tuple(names))

    @contextmanager
    def _sound_parquet(self) -> Generator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, PpropError):
                raise
            self._reject("a sound Parquet file, as its suffix says", " with damaged or other content")


@final
class _Open:
    """A stream that stays open when its reader, pyarrow, is done with it."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self.read = stream.read

    def close(self) -> None:
        """Leave it open."""


def table_name(file: Path) -> str:
    """Return the name of a file without its suffixes.

    >>> table_name(Path("a/edges.csv.gz"))
    'edges'
    """
    return Path(file.stem).stem if file.suffix.lower() in CODECS else file.stem
