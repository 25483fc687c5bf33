"""Files as programs write them: delimiters, compression, quotes, blanks; fast and slow reading agree."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pprop._errors import CapacityError, FormatError, InputError
from pprop.graph import files, read_edges
from pprop.graph.tables import csv_text
from pprop.graph.tables.readers import read_table

ROWS = [("ann", "bob, jr"), ("bob, jr", "cem;\tdee"), ('"x"', "a\nb"), ("7", "é")]


def table(delimiter: str) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerows([("source", "target"), *ROWS])
    return text.getvalue().encode()


def ids(file: Path) -> list[object]:
    graph = read_edges(file)
    assert graph.ids is not None
    assert graph.name == "edges"
    return graph.ids.tolist()


@pytest.mark.parametrize(
    ("suffix", "delimiter"), [("csv", ","), ("csv", ";"), ("csv", "|"), ("CSV", "\t"), ("tsv", "\t"), ("tab", "\t")]
)
@pytest.mark.parametrize(
    ("codec", "compress"),
    [("", bytes), (".gz", gzip.compress), (".zst", lambda text: pa.compress(text, codec="zstd", asbytes=True))],
)
def test_every_delimiter_and_compression_gives_the_same_ids(
    suffix: str, delimiter: str, codec: str, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    file = tmp_path / f"edges.{suffix}{codec}"
    file.write_bytes(compress(table(delimiter)))
    assert ids(file) == ["ann", "bob, jr", "cem;\tdee", '"x"', "a\nb", "7", "é"]


def test_parts_of_gzip_one_after_another_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "edges.csv.gz").write_bytes(gzip.compress(b"source,target\na,b\n") + gzip.compress(b"b,c\n"))
    assert ids(tmp_path / "edges.csv.gz") == ["a", "b", "c"]


@pytest.mark.parametrize(
    "content", [b"source,target\na,b\n", gzip.compress(b"source,target\na,b\n" * 1000, mtime=0)[:-20]]
)
def test_compression_that_is_damaged_or_something_else(content: bytes, tmp_path: Path) -> None:
    for suffix, kind in ((".gz", "gzip"), (".zst", "zstd")):
        (tmp_path / f"e.csv{suffix}").write_bytes(content)
        with pytest.raises(FormatError, match=rf"a sound {kind} file, as its suffix says\. Got '.*' with damaged"):
            read_edges(tmp_path / f"e.csv{suffix}")


def test_a_small_file_that_unpacks_to_more_than_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(b"source,target\n" + b"a,b\n" * 10**6))
    monkeypatch.setattr(files, "usable_memory", lambda: 2_000_000)
    with pytest.raises(CapacityError, match=r"Loading '.*e\.csv\.gz' takes 0\.0 GB"):
        read_edges(tmp_path / "e.csv.gz")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "source target\na b\n",
            r"Its columns: source target\. Separate columns by a comma, a semicolon, a tab or \|\.$",
        ),
        (
            "1,2\n2,3\n",
            r"Its columns: 1, 2\. The first line looks like data: write the names of the columns above",
        ),
        ("ann,bob\nbob,cem\n", r"Its columns: ann, bob\. The first line looks like data"),
        ("1,1\n2,3\n", r"the column '1' twice .* The first line looks like data"),
        ("from,to\n1,2\n", r"Its columns: from, to\. Pass source='from', target='to'\.$"),
    ],
)
def test_a_missing_header_is_named_where_a_column_is_missed(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_edges(tmp_path / "e.csv")


def test_a_header_of_numbers_is_a_header_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("0,1\n7,8\n")
    graph = read_edges(tmp_path / "edges.csv", source="0", target="1")
    assert graph.ids is not None
    assert graph.ids.tolist() == [7, 8]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('source,target\n"a"b,c\n', r"well-formed CSV file\. Got an error"),
        ('source,target\n"a"",c\n', r"well-formed CSV file"),
        ("source,target\na,b\nc\n", r"2 cells in every row\. Got 1 cell in row 2"),
        (
            "source,tärget\na,b\n".encode("latin-1"),
            r"a CSV file in UTF-8\. Got a byte at position 8 that is not UTF-8, in line 1, in '.*' instead\. Convert it, for .* iconv",
        ),
        (
            "# x\nsource,target\na,b\nö,c\n".encode("latin-1"),
            r"at position 22 .*, in line 4, in '.*' .* iconv -f latin1 -t utf-8",
        ),
        ("source,target\na,b\n".encode("utf-16"), r"Got UTF-16 in '.*' instead\. .* iconv -f utf-16 -t utf-8"),
        ('source,target\n"a\n\nb",c\n\nd,e,f\n', r"Got 3 cells in row 2"),  # a blank line inside quotes and one outside
    ],
)
def test_the_slow_reader_says_what_is_wrong(content: str | bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FormatError, match=sentence):
        read_edges(tmp_path / "e.csv")


@pytest.mark.parametrize(
    "above",
    [
        "sep=;\n",
        '"sep=;"\r\n',
        "\ufeffSEP=;\r\n",
        "# made by hand\n",
        "# sources; targets; dates\n#\n",
        "\ufeff# made\n",
        "sep=;\n# made\n",
    ],
)
def test_lines_above_the_header_name_the_delimiter_or_are_comments(above: str, tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_bytes(f"{above}source;target\na,x;b\n#c;b\n".encode())
    assert ids(tmp_path / "edges.csv") == ["a,x", "b", "#c"]


@pytest.mark.parametrize("above", ["# x,y\n", "# hi\n# x,y\n", "# of all, since 2020\n# names\n", "# x,y\n#\n"])
def test_comments_may_have_as_many_cells_as_the_header(above: str, tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text(f"{above}source,target\na,b\n")
    assert ids(tmp_path / "edges.csv") == ["a", "b"]


@pytest.mark.parametrize("header", ["#source,target", "# made today\n#source,target", "# a,b\n#source,target"])
def test_a_header_may_follow_the_sign_of_comments_without_a_blank(header: str, tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text(f"{header}\na,b\n")
    graph = read_edges(tmp_path / "edges.csv", source="#source")
    assert graph.ids.tolist() == ["a", "b"]  # type: ignore[union-attr]


def test_a_cell_may_be_longer_than_the_csv_module_reads_by_default(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    (tmp_path / "nodes.csv").write_text(f'id,bio\na,{"x " * before}\nb, "quoted after a blank"\n')
    graph = read_edges(tmp_path / "edges.csv", tmp_path / "nodes.csv", feature_columns={"bio": "text"})
    assert graph.feature_names == ("bio: a", "bio: after", "bio: blank", "bio: quoted", "bio: x")
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("cells", "weights"), [(("1,5", "2,25", "3"), [1.5, 2.25, 3.0]), (("1,250", "0,5", "-0"), [1.25, 0.5])]
)
@pytest.mark.filterwarnings("ignore:Left out 1 edge")
def test_weights_may_have_decimal_commas(cells: tuple[str, ...], weights: list[float], tmp_path: Path) -> None:
    rows = "".join(f"{s};{t};{cell}\n" for (s, t), cell in zip(("ab", "bc", "cd"), cells, strict=True))
    (tmp_path / "edges.csv").write_text(f"source;target;w\n{rows}")
    graph = read_edges(tmp_path / "edges.csv", weight="w", directed=True)
    assert sorted(graph.weights.tolist()) == sorted(weights)  # type: ignore[union-attr]


@pytest.mark.parametrize("cells", [("1,250", "2,000"), ("1,5", "1.000"), ("1,5", "")])
def test_weights_whose_commas_may_part_thousands_are_refused(cells: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text(f"source;target;w\na;b;{cells[0]}\nb;c;{cells[1]}\n")
    with pytest.raises(FormatError, match="'w'"):
        read_edges(tmp_path / "edges.csv", weight="w")


def test_a_header_may_begin_with_the_sign_of_comments(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("# of cats,source,target\n3,a,b\n")
    assert ids(tmp_path / "edges.csv") == ["a", "b"]


@pytest.mark.parametrize("text", ['a, "b, c"\n', 'a, "b"\n', '5" pipe,"say ""hi"""\n', "\u00a0a\u2003,b\x1f\n"])
def test_odd_quotes_and_blanks_are_read_as_python_reads_them(text: str, tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text(f"source,target\n{text}", newline="")
    (row,) = csv.reader([text], skipinitialspace=True)
    assert ids(tmp_path / "edges.csv") == [cell.strip() for cell in row]


def test_columns_that_nobody_asked_for_are_named_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("when,source,target,weight\nnow,a,b,2\n")
    found = read_table(tmp_path / "e.csv", "path", "read_edges", ["source", "target"])
    assert (list(found.columns), found.others) == (["source", "target"], ("when", "weight"))


CELLS = st.text(st.sampled_from('ab7 ,;"\n\r\té_\u2003'), max_size=5)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from('ab,; "\n\r"'), max_size=40), st.integers(1, 60))
def test_fast_and_slow_reading_agree_on_any_text(body: str, filling: int) -> None:
    """Whatever pyarrow accepts, it reads as Python's strict reader does."""

    def complain(expected: str, got: str, row: int | None = None, **_: Any) -> Any:
        raise FormatError(f"{expected} {got} {row}")

    content = f"x,y\n{'c' * filling},d\n{body}".encode()
    with mock.patch.object(csv_text, "BLOCK", 64):  # so that runs of quotes cross the borders
        fast = csv_text._fast(content, ",", ["x", "y"], ["x", "y"])
    if fast is not None:
        slow = csv_text._slow(content.decode(), ",", ["x", "y"], complain)
        assert {name: cells.to_pylist() for name, cells in fast.items()} == {
            name: cells.to_pylist() for name, cells in slow.items()
        }


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from('a,"\n\r'), max_size=200))
def test_quotes_are_understood_as_by_reading_one_character_after_another(text: str) -> None:
    last, inside, odd, folded = "\n", False, False, False
    for character in text:
        odd |= not inside and {character, last} == {"a", '"'}
        inside ^= character == '"'
        folded |= inside and character in "\r\n"
        last = character
    odd |= inside
    with mock.patch.object(csv_text, "BLOCK", 64):
        assert csv_text._quoting(text.encode(), ",") in ([(True, False), (True, True)] if odd else [(False, folded)])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), max_size=8), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_what_python_writes_is_read_fast(rows: list[tuple[str, str]], quoting: Any) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting).writerows([("x", "y"), *rows])
    fast = csv_text._fast(text.getvalue().encode(), ",", ["x", "y"], ["x", "y"])
    if fast is not None:  # a cell that ends in quotes after a blank is read slowly
        assert list(zip(*(cells.to_pylist() for cells in fast.values()), strict=True)) == [
            (x.strip(), y.strip()) for x, y in rows
        ]
