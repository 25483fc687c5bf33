"""Tables in files that are read some rows at a time, each part as a table of its own; what `read_table` reads at once."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

from pprop._errors import FormatError, PpropError
from pprop._validate import reject
from pprop.graph.files import existing_file
from pprop.graph.tables.arrow import pa, parquet
from pprop.graph.tables.csv_text import parse_csv, read_header
from pprop.graph.tables.frames import check_names, columns_of_arrow
from pprop.graph.tables.readers import BINARY_STARTS, CODECS, DELIMITERS, TableFile, table_name, table_suffix
from pprop.graph.tables.table import DataTable

CSV_BYTES = 16  # of a row with two ids
PACKED = 4  # bytes that a byte of a compressed file may become
LEAST = 2**17  # bytes of a block: more than a header and the comments above it
LONGEST = 16  # blocks that a quoted cell may be long


@final
@dataclass(frozen=True)
class ReadPosition:
    """Where to go on reading: at a part (row group or block) of a file, before which there were some rows."""

    file: int = 0
    part: int = 0
    row: int = 0


@final
@dataclass(frozen=True)
class TableStream:
    r"""The tables of one or several files, one below the other.

    Parameters
    ----------
    files
        Of the formats of `read_table`, each with a header of its own.
    parameter, function
        The argument that brought them, for messages.
    wanted
        The columns to be read, where they exist; None is all.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "edges.csv")
    >>> _ = file.write_text("source,target\na,b\nb,c\n")
    >>> stream = TableStream.of([file], "edges", "build_graph", ("source",))
    >>> [(place.file, table.columns["source"].to_pylist()) for table, place in stream.tables(1000)]
    [(0, ['a', 'b'])]
    >>> folder.cleanup()
    """

    files: tuple[Path, ...]
    parameter: str
    function: str
    wanted: frozenset[str] | None = None

    @classmethod
    def of(
        cls, paths: Collection[object], parameter: str, function: str, wanted: Collection[object] | None = None
    ) -> TableStream:
        """Return the stream of files that exist and are of a known format."""
        files: list[Path] = []
        for path in paths:
            file = existing_file(path, parameter, function)
            if table_suffix(file) is None:
                expected = "a .csv, .tsv or .parquet file (.csv.gz and .csv.zst are fine)"
                reject(parameter, function, expected, repr(str(path)), error=FormatError)
            if file.stat().st_size == 0:
                reject(parameter, function, "a table with a header", f"the empty file {str(path)!r}", error=FormatError)
            files.append(file)
        names = None if wanted is None else frozenset(name for name in wanted if isinstance(name, str))
        return cls(tuple(files), parameter, function, names)

    @property
    def title(self) -> str:
        """What sentences call all the files together."""
        more = len(self.files) - 1
        return repr(str(self.files[0])) + (f" and {more} more file{'s' * (more > 1)}" if more else "")

    def rows(self) -> int:
        """Return how many rows there are: as Parquet files say, and a guess from the size of others."""
        found = 0
        for file in self.files:
            if table_suffix(file) == ".parquet":
                with self._opened(file) as opened:
                    found += opened.metadata.num_rows
            else:
                block = next(self._blocks(file, LEAST), b"")
                lines = max(block.count(b"\n"), block.count(b"\r"), 1)
                packed = PACKED if file.suffix.lower() in CODECS else 1
                found += packed * file.stat().st_size * lines // max(len(block), 1) + 1
        return found

    def unused_columns(self) -> tuple[str, ...]:
        """Return the columns of the first file that are not wanted."""
        return next(self.tables(1))[0].others

    def check_columns(self, names: Mapping[str, object]) -> None:
        """Refuse a file without columns that are named by arguments, before any row is read."""
        for file in self.files:
            self.header(file).check_columns({parameter: name for parameter, name in names.items() if name is not None})

    def header(self, file: Path) -> DataTable:
        """Return the names of the columns of a file, as a table without rows."""
        with TableFile(file, self.parameter, self.function) as opened:
            return opened.header()

    def tables(self, rows: int, start: ReadPosition | None = None) -> Iterator[tuple[DataTable, ReadPosition | None]]:
        """Give tables of about so many rows, and where to go on after each; None where that is within a part."""
        start = start or ReadPosition()
        for at in range(start.file, len(self.files)):
            file = self.files[at]
            begin = start if at == start.file else ReadPosition(at)
            read = self._parquet if table_suffix(file) == ".parquet" else self._csv
            for table, part in read(file, rows, begin.part, begin.row):
                yield table, None if part is None else ReadPosition(at, part, table.first + table.n_rows)

    def _parquet(self, file: Path, rows: int, part: int, row: int) -> Iterator[tuple[DataTable, int | None]]:
        with self._opened(file) as opened:
            names: list[str] = opened.schema_arrow.names
            make = partial(DataTable, repr(str(file)), self.parameter, self.function, path=file)
            make = partial(make, typed=True, name=table_name(file), names=tuple(names))
            check_names(names, make({}, 0).complain)
            chosen = [name for name in names if self.wanted is None or name in self.wanted]
            sizes = [opened.metadata.row_group(index).num_rows for index in range(opened.metadata.num_row_groups)]
            if not sum(sizes):
                empty = opened.schema_arrow.empty_table()
                yield make({name: empty.column(name) for name in chosen}, 0), len(sizes)
            while part < len(sizes):
                end = part + 1
                while end < len(sizes) and sum(sizes[part : end + 1]) <= rows:
                    end += 1
                left = sum(sizes[part:end])
                for batch in opened.iter_batches(rows, row_groups=range(part, end), columns=chosen):
                    found = {name: pa.chunked_array([batch.column(name)]) for name in chosen}
                    columns = columns_of_arrow(found, make({}, 0, first=row).complain)
                    left -= batch.num_rows
                    yield make(columns, batch.num_rows, first=row), end if left == 0 else None
                    row += batch.num_rows
                part = end

    @contextmanager
    def _opened(self, file: Path) -> Generator[Any]:
        """Open a Parquet file, without reading more of it ahead than is asked for."""
        try:
            with file.open("rb") as stream:  # an open file, so that pyarrow takes the path for nothing else
                yield parquet.ParquetFile(stream, pre_buffer=False)
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, PpropError):
                raise
            got = f"{str(file)!r} with damaged or other content"
            reject(self.parameter, self.function, "a sound Parquet file, as its suffix says", got, error=FormatError)

    def _csv(self, file: Path, rows: int, part: int, row: int) -> Iterator[tuple[DataTable, int]]:
        suffix = table_suffix(file)
        assert suffix is not None
        make = partial(DataTable, repr(str(file)), self.parameter, self.function, name=table_name(file), path=file)
        delimiter, prefix, names, headless = DELIMITERS[suffix], b"", list[str](), False
        for index, block in enumerate(self._blocks(file, max(CSV_BYTES * rows, LEAST))):
            complain = make({}, 0, first=row).complain
            if index == 0:
                _, delimiter, names, headless = read_header(block, delimiter, complain)
            if index < part:
                prefix = _line(names, delimiter)
                continue
            content = prefix + block
            columns, names, _ = parse_csv(content, delimiter if index else DELIMITERS[suffix], self.wanted, complain)
            n_rows = len(next(iter(columns.values()), ()))
            yield make(columns, n_rows, names=tuple(names), headless=headless, first=row), index + 1
            row += n_rows
            prefix = _line(names, delimiter)

    def _blocks(self, file: Path, size: int) -> Iterator[bytes]:
        """Give the content of a text file, decompressed, in blocks that end where a line does, outside of quotes."""
        codec = CODECS.get(file.suffix.lower())
        complain = DataTable(repr(str(file)), self.parameter, self.function, {}, 0, path=file).complain
        rest = b""
        with file.open("rb") as raw:
            stream: Any = raw if codec is None else pa.CompressedInputStream(pa.PythonFile(raw), codec)
            first = True
            while True:
                try:
                    block: bytes = stream.read(size)
                except (pa.ArrowException, OSError, ValueError):
                    got = f"{str(file)!r} with damaged or other content"
                    expected = f"a sound {codec or 'CSV'} file, as its suffix says"
                    reject(self.parameter, self.function, expected, got, error=FormatError)
                if first:
                    for start, kind in BINARY_STARTS.items():
                        if block.startswith(start):
                            got = f"{str(file)!r}, which is a {kind} file,"
                            reject(
                                self.parameter, self.function, "a CSV file, as its suffix says", got, error=FormatError
                            )
                first = False
                rest += block
                if not block:
                    break
                end = _line_end(rest)
                if end:
                    yield rest[:end]
                    rest = rest[end:]
                elif len(rest) > LONGEST * size:
                    complain("a well-formed CSV file", "a quote that is not closed")
        if rest:
            yield rest


def _line(names: list[str], delimiter: str | None) -> bytes:
    r"""Return a header, to be set above the rows of another block.

    >>> _line(["a", 'b"c'], ";")
    b'"a";"b""c"\n'
    """
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter or ",", quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(names)
    return text.getvalue().encode()


def _line_end(content: bytes) -> int:
    r"""Return where the last line ends that does so outside of quotes; 0 where there is none.

    >>> _line_end(b'a,b\n"c\n'), _line_end(b"ab")
    (4, 0)
    """
    end = max(content.rfind(b"\n"), content.rfind(b"\r")) + 1
    quotes = content.count(b'"', 0, end)
    while quotes % 2:  # all ends of lines after the last quote are inside of quotes, too
        last = content.rfind(b'"', 0, end)
        before = max(content.rfind(b"\n", 0, last), content.rfind(b"\r", 0, last)) + 1
        quotes -= content.count(b'"', before, end)
        end = before
    return end
