"""CSV: the bytes of a file to columns of text, by pyarrow; and slowly by Python where pyarrow stumbles, to say where.

Python's reader sets the dialect: a header, blank lines do not count, blanks around a cell do not count, quotes are
doubled inside quotes, every row has as many cells as the header. Above the header there may be a line ``sep=;`` and comments
that begin with ``#``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterator
from itertools import islice, takewhile
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pprop.graph.tables.arrow import Column, arrow_csv, pa, pc
from pprop.graph.tables.table import HEADLESS, spelled

Complaint: TypeAlias = Callable[..., NoReturn]  # complain(expected, got, row=None)

DELIMITERS = ",;\t|"
QUOTE, BOM = b'"', b"\xef\xbb\xbf"
SEPARATOR = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=([,;\t|])"?[ \t]*(?:\r\n|\r|\n)', re.IGNORECASE)  # a line for Excel
SAMPLE = 2**16  # bytes that are looked at to understand the header
BLOCK = 2**17  # bytes that a processor keeps at hand, a multiple of 64
LAST = np.uint64(63)  # of the bits of a number
CHUNK = 500  # rows: too few for the garbage collector to wake up and walk all the columns again and again
BLANKS = "".join(chr(code) for code in range(2**16) if chr(code).isspace())  # what str.strip takes away
ASCII_BLANKS = tuple(blank.encode() for blank in BLANKS if blank.isascii() and blank not in "\r\n")


def parse_csv(
    content: bytes, delimiter: str | None, wanted: Collection[str] | None, complain: Complaint
) -> tuple[dict[str, Column], list[str], bool]:
    r"""Return the wanted columns (None: all), the names of all columns, and whether the header looks like data.

    Parameters
    ----------
    content
        The file, decompressed.
    delimiter
        None for the one of ``,``, ``;``, ``|`` and tab that is most frequent in the header.
    wanted
        Names of columns; those that are not there are left out.
    complain
        Called with what the file must be, what it is, and the row where one is known.

    Examples
    --------
    >>> columns, names, headless = parse_csv(b"a;b\n1; x\n", None, {"b"}, print)
    >>> columns["b"].to_pylist(), names, headless
    (['x'], ['a', 'b'], False)
    """
    if b"\0" in content and not content.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16 is another complaint
        _decode(content, complain)
        complain("a CSV file of text", "null characters")
    whole = content
    above, delimiter, header, headless = read_header(content, delimiter, complain)
    content = content[above:]
    chosen = [name for name in header if wanted is None or name in wanted]
    found = _fast(content, delimiter, header, chosen)
    if found is None:
        found = _slow(_decode(whole, complain, above), delimiter, chosen, complain)
    return found, header, headless


def read_header(content: bytes, delimiter: str | None, complain: Complaint) -> tuple[int, str, list[str], bool]:
    r"""Return the bytes above the header, the delimiter, the names of the columns, and whether they look like data.

    >>> read_header(b"# today\na;b\n1;2\n", None, print)
    (8, ';', ['a', 'b'], False)
    """
    whole = content
    if named := SEPARATOR.match(content[:SAMPLE]):
        content, delimiter = content[named.end() :], named[1].decode()
    content = content[_comments(content[:SAMPLE], delimiter) :]
    above = len(whole) - len(content)
    sample = content[:SAMPLE].decode("utf-8-sig", "replace")
    delimiter = delimiter or _delimiter(sample)
    header = _check_header(next(_rows(sample, delimiter, strict=False), list[str]()), complain)
    if any("\ufffd" in name for name in header):
        _decode(whole, complain, above)
    return above, delimiter, header, _looks_like_data(header, sample, delimiter)


def _fast(content: bytes, delimiter: str, header: list[str], chosen: list[str]) -> dict[str, Column] | None:
    """Return the chosen columns, or None where pyarrow complains or might read otherwise than Python."""
    quoted = QUOTE in content
    odd, folded = _quoting(content, delimiter) if quoted else (False, False)
    if odd:
        return None
    generated = [f"f{index}" for index in range(len(header))]  # so that the header is a row like the others
    places = [generated[header.index(name)] for name in chosen]
    buffer = pa.py_buffer(content)
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(buffer.slice(3) if content.startswith(BOM) else buffer),
            read_options=arrow_csv.ReadOptions(autogenerate_column_names=True),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=folded),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(generated, pa.string()),
                include_columns=places or generated[:1],  # none would mean all
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None
    blanks = (
        folded
        or not content.isascii()
        or any(blank in content for blank in ASCII_BLANKS if quoted or blank.decode() != delimiter)
    )
    columns: dict[str, Column] = {}
    for name, place in zip(chosen, places, strict=True):
        column = table.column(place)
        column = pc.utf8_trim(column, characters=BLANKS) if blanks else column
        if column[0].as_py() != name:
            return None
        columns[name] = column.slice(1)
    return columns


def _quoting(content: bytes, delimiter: str) -> tuple[bool, bool]:
    r"""Return whether quotes stand where only a strict reader says what they mean, and whether a line ends inside of quotes.

    A run of quotes that begins outside of quotes follows a delimiter, and one that ends there precedes a delimiter.

    >>> _quoting(b'"a",b\n', ","), _quoting(b'a"b,c\n', ","), _quoting(b'"a\n",b\n', ",")
    ((False, False), (True, False), (False, True))
    """
    text = np.frombuffer(content, dtype=np.uint8)[len(BOM) if content.startswith(BOM) else 0 :]
    folded, inside, last_quote, last_other = False, 0, 0, 0
    for start in range(0, len(text), BLOCK):
        block = text[start : start + BLOCK]
        block = np.pad(block, (0, -len(block) % 64), constant_values=ord("\n"))
        quote, delimiters = _bits(block == QUOTE[0]), _bits(block == ord(delimiter))
        line = _bits((block == ord("\n")) | (block == ord("\r")))
        other = ~(quote | delimiters | line)
        after = _parity(quote, inside)  # whether what follows is inside of quotes
        # outside of quotes, a quote stands beside a character that is no delimiter
        beside = (quote & _moved(other, last_other)) | (other & _moved(quote, last_quote))
        if (beside & ~(after ^ quote)).any():
            return True, False
        folded = folded or bool((line & after).any())
        inside, last_quote, last_other = (int(bits[-1] >> LAST) for bits in (after, quote, other))
    return bool(inside), folded


def _bits(marks: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return marks, a multiple of 64 of them, as the bits of numbers, the first one the lowest."""
    return np.packbits(marks, bitorder="little").view("<u8")


def _moved(bits: NDArray[np.uint64], before: int) -> NDArray[np.uint64]:
    """Return bits in the next place each; the first one is that of the place before."""
    moved = bits << np.uint64(1)
    moved[1:] |= bits[:-1] >> LAST
    moved[0] |= np.uint64(before)
    return moved


def _parity(bits: NDArray[np.uint64], before: int) -> NDArray[np.uint64]:
    """Return whether the number of bits up to each place, and of those `before`, is odd.

    >>> [hex(number) for number in _parity(np.array([0b10010, 0], dtype=np.uint64), 0)]
    ['0xe', '0x0']
    """
    parity = bits.copy()
    for step in (1, 2, 4, 8, 16, 32):
        parity ^= parity << np.uint64(step)
    ends = np.bitwise_xor.accumulate(np.concatenate([[np.uint64(before)], parity >> LAST]))
    return parity ^ -ends[:-1]  # all 64 bits, where it is odd so far


def _slow(text: str, delimiter: str, chosen: list[str], complain: Complaint) -> dict[str, Column]:
    columns: dict[str, list[str]] = {name: [] for name in chosen}
    n_rows = 0
    limit = csv.field_size_limit(max(len(text), csv.field_size_limit()))  # a cell may be as long as the file
    rows = _rows(text, delimiter, strict=True)
    try:
        header = _check_header(next(rows, list[str]()), complain)
        places = [header.index(name) for name in chosen]
        while chunk := list(islice(rows, CHUNK)):
            if set(map(len, chunk)) != {len(header)}:
                index = next(index for index, row in enumerate(chunk) if len(row) != len(header))
                cells = len(chunk[index])
                got = f"{cells} cell{'s' * (cells != 1)}"
                complain(f"a table with {len(header)} cells in every row", got, n_rows + index)
            for place, cells in zip(places, columns.values(), strict=True):
                cells.extend(row[place].strip() for row in chunk)  # blanks around a comma are layout, not content
            n_rows += len(chunk)
    except csv.Error as error:
        complain("a well-formed CSV file", f"an error ({error})")
    finally:
        csv.field_size_limit(limit)
    return {name: pa.chunked_array([pa.array(cells, type=pa.string())]) for name, cells in columns.items()}


def _decode(content: bytes, complain: Complaint, start: int = 0) -> str:
    """Return the text from the byte `start` on."""
    try:
        return content[start:].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        place = start + error.start
        line = len(content[: place + 1].splitlines())
        complain(
            "a CSV file in UTF-8",
            f"a byte at position {place} that is not UTF-8, in line {line}," if not wide else "UTF-16",
            remedy=f"Convert it, for example by iconv -f {'utf-16' if wide else 'latin1'} -t utf-8.",
        )


def _rows(text: str, delimiter: str, *, strict: bool) -> Iterator[list[str]]:
    lines = io.StringIO(text, newline="")
    reader: Any = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=strict)
    return filter(None, reader)


def _comments(sample: bytes, delimiter: str | None) -> int:
    r"""Return how many bytes the comments above the header take: lines that begin with #.

    The last one is the header itself if it has as many cells as the line below it, and that line looks like data, or no blank
    follows the #.

    >>> _comments(b"# made today, by me\nid,x\n", None), _comments(b"# of cats,id\n3,7\n", None)
    (20, 0)
    """
    lines = sample.removeprefix(BOM).splitlines(keepends=True)
    others = [line for line in lines if line.strip() and not line.startswith(b"#")]
    if not others or not lines[0].startswith(b"#"):
        return 0
    first = others[0].decode(errors="replace")
    delimiter = delimiter or _delimiter(first)

    def cells(line: str) -> int:
        return len(next(_rows(line, delimiter, strict=False), list[str]()))

    above = list(takewhile(lambda line: line.startswith(b"#"), lines))
    last = above[-1].decode(errors="replace")
    if cells(last) == cells(first):
        below = b"".join(lines[len(above) :]).decode(errors="replace")
        names = [name.strip() for name in next(_rows(first, delimiter, strict=False), list[str]())]
        if not last[1:2].isspace() or _looks_like_data(names, below, delimiter):
            above.pop()
    end = sum(map(len, above))
    return end + (len(sample) - sum(map(len, lines))) if end else 0  # and the mark of UTF-8


def _delimiter(sample: str) -> str:
    r"""Return the delimiter that divides the header into most parts; a comma where none does.

    >>> _delimiter('"a,b,c";d\n1,2,3,4'), _delimiter("id\n")
    (';', ',')
    """
    parts = {one: len(next(_rows(sample, one, strict=False), list[str]())) for one in DELIMITERS}
    return max(parts, key=lambda one: parts[one])  # the first of several


def _check_header(cells: list[str], complain: Complaint) -> list[str]:
    header = [name.strip() for name in cells]
    if not header:
        complain("a table with a header", "no columns")
    for name in header:
        if header.count(name) > 1:
            remedy = "" if spelled(name) is None else HEADLESS
            complain("a table with distinct column names", f"the column {name!r} twice", remedy=remedy)
    return header


def _looks_like_data(header: list[str], sample: str, delimiter: str) -> bool:
    """Whether a name is a number or none, or is found again among the cells below it."""
    if any(not name or spelled(name) is not None for name in header):
        return True
    cells = {cell.strip() for row in islice(_rows(sample, delimiter, strict=False), 1, None) for cell in row}
    return not cells.isdisjoint(header)
