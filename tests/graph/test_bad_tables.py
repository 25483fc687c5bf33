"""Tables that are wrong: one sentence that names the parameter, the row and the remedy, and no file touched."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from pprop._errors import CapacityError, FormatError, InputError
from pprop.graph import Graph, files, read_edges, read_npz

EDGES = "source,target,weight\na,b,1\nb,c,2\n"
NODES = "id,x,class\na,1,p\nb,2,q\nc,3,p\n"


def snapshot(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def refuse(
    folder: Path, sentence: str, *, edges: str | bytes = EDGES, nodes: str | bytes | None = None, **options: Any
) -> None:
    """Write the files, and check the sentence and that the folder stays as it was."""
    files: list[Path] = []
    for name, content in (("edges.csv", edges), ("nodes.csv", nodes)):
        if content is not None:
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
            files.append(folder / name)
    before = snapshot(folder)
    with pytest.raises(InputError, match=sentence) as caught:
        read_edges(*files, **options)
    assert "\n" not in str(caught.value)
    assert snapshot(folder) == before


def test_good_files_are_good(tmp_path: Path) -> None:
    """Else every refusal below would prove nothing."""
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text(NODES)
    graph = read_edges(tmp_path / "edges.csv", tmp_path / "nodes.csv", weight="weight", label_column="class")
    assert repr(graph) == "Graph(3 nodes, 2 edges, undirected, weighted, 1 features, 2 classes)"


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        ("rank,person,class\n1,a,p\n2,b,q\n3,c,p\n", r"rank, person, class\. Pass id_column='person'\.$"),  # the values
        ("rank,key,class\n1,d,p\n2,e,q\n3,f,p\n", r"rank, key, class\. Pass id_column='key'\.$"),  # the name
        ("rank,class\n1,p\n2,q\n3,p\n", r"rank, class\.$"),
    ],
)
def test_the_column_of_the_ids_is_proposed_where_nobody_named_it(tmp_path: Path, nodes: str, told: str) -> None:
    refuse(tmp_path, rf"nodes\.csv has no column 'id'\. Its columns: {told}", nodes=nodes)
    edges, people = (pd.read_csv(tmp_path / name) for name in ("edges.csv", "nodes.csv"))
    with pytest.raises(InputError, match=rf"^The DataFrame has no column 'id'\. Its columns: {told}"):
        Graph.from_pandas(edges, people, weight="weight")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"source": "sorce"}, r"edges\.csv has no column 'sorce'\. .* target, weight\. Did you mean 'source'\?"),
        ({"target": "end"}, r"edges\.csv has no column 'end'\. Its columns: source, target, weight\.$"),
        ({"weight": "Weight"}, r"no column 'Weight'\. .* Did you mean 'weight'\?"),
        ({"target": "source"}, r"'target' .* must be another column than source\. Got 'source' for both"),
        ({"source": 0}, r"'source' .* Got 0 instead"),
        ({"id_column": "ids"}, r"nodes\.csv has no column 'ids'\. Its columns: id, x, class\. Did you mean 'id'\?$"),
        ({"id_column": "was", "label_column": "wer"}, r"nodes\.csv has no columns 'was' and 'wer'\. .* x, class\.$"),
        ({"label_column": "klass"}, r"no column 'klass'\. .* Did you mean 'class'\?"),
        ({"feature_columns": ["x", "z"]}, r"nodes\.csv has no column 'z'"),
        ({"feature_columns": "x"}, r"'feature_columns' .* a sequence of column names, a mapping .*\. Got 'x'"),
        ({"feature_columns": {"class": "number"}}, r"a number in every row of 'class'\. Got 'p' in row 1 of .*nodes"),
        ({"feature_columns": {"class": "numbre"}}, r"kinds of columns .* Got 'numbre' for 'class'"),
        ({"directed": "no"}, r"'directed' .* must be True or False\. Got 'no'"),
        ({"feature_columns": 3}, r"'feature_columns' .* a sequence of column names, a mapping .*\. Got 3"),
        ({"feature_columns": {"x"}}, r"'feature_columns' .* a sequence of column names, a mapping .*\. Got {'x'}"),
        ({"feature_columns": ["x", "x"]}, r"'feature_columns' .* distinct column names\. Got 'x' more than once"),
        ({"feature_columns": ["id"]}, r"'feature_columns' .* that are features\. Got 'id', which holds ids"),
        ({"unknown_nodes": "keep"}, r"'unknown_nodes' .* one of 'error', 'drop' or 'add'\. Got 'keep'"),
        ({"missing_labels": "NA"}, r"'missing_labels' .* must be a sequence of texts or integers, .* Got 'NA'"),
        ({"feature_columns": [["x"]]}, r"'feature_columns' .* Got \['x'\] instead"),
        ({"label_column": ["class"]}, r"'label_column' .* Got \['class'\] instead"),
        ({"label_column": "id"}, r"'label_column' .* must be another column than that of the ids\. Got 'id' for both"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    refuse(tmp_path, sentence, nodes=NODES, **options)


def test_node_columns_without_a_node_table(tmp_path: Path) -> None:
    refuse(tmp_path, r"'label_column' .* left out when there is no node table\. .* Pass nodes=", label_column="class")
    refuse(tmp_path, r"'feature_columns' .* left out when there is no node table", feature_columns=["x"])


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            "b,c,two",
            r"'path' parameter of read_edges must be .* every row of 'weight'\. Got the text 'two' in row 2 of",
        ),
        ("b,c,", r"every row of 'weight'\. Got an empty cell in row 2 of .*edges\.csv' instead"),
        ("b,c,nan", r"finite number in every row of 'weight'\. Got nan in row 2 of"),
        ("b,c,inf", r"finite number in every row of 'weight'\. Got inf in row 2 of"),
        ("b,c,1_000", r"Got the text '1_000' in row 2 of"),
        ("b,c,-2", r"non-negative weights\. Got -2 in row 2 of"),
        (",c,2", r"an id in every row of 'source'\. Got an empty cell in row 2 of"),
        ("b,,2", r"an id in every row of 'target'\. Got an empty cell in row 2 of"),
        ("b,c", r"3 cells in every row\. Got 2 cells in row 2 of"),
        ("b,c,2,3", r"3 cells in every row\. Got 4 cells in row 2 of"),
        ('b,"c,2', r"well-formed CSV file\. Got an error \(unexpected end of data\) in .*edges\.csv'"),
    ],
)
def test_wrong_edge(row: str, sentence: str, tmp_path: Path) -> None:
    refuse(tmp_path, sentence, edges=f"source,target,weight\na,b,1\n{row}\n", weight="weight")


def test_long_list_of_columns_is_cut(tmp_path: Path) -> None:
    header = ",".join(f"c{number}" for number in range(1000))
    refuse(tmp_path, r"no columns 'source' and 'target'\. Its columns: c0, .* c19 and 980 more\.", edges=f"{header}\n")


def test_row_numbers_go_on_across_chunks(tmp_path: Path) -> None:
    rows = "".join(f"{number},{number + 1}\n" for number in range(1234))
    refuse(tmp_path, r"2 cells in every row\. Got 3 cells in row 1235 of", edges=f"source,target\n{rows}1,2,3\n")


def test_edge_to_an_id_that_the_node_table_does_not_have(tmp_path: Path) -> None:
    sentence = r"edges\.csv, row 2: node 'z' is not in .*nodes\.csv \(1 of 2 rows has an unknown node\)"
    refuse(tmp_path, sentence, edges="source,target\na,b\nz,c\n", nodes=NODES)
    refuse(tmp_path, sentence, edges="source,target\na,b\nc,z\n", nodes=NODES)
    refuse(
        tmp_path,
        r"row 1: node '01' is not in .* The node table has '1': ids must be written alike",
        edges="source,target\n1,01\n",
        nodes="id\n1\n2\n",
    )


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("a,3,p", r"'nodes' parameter .* distinct ids\. Got the id 'a' a second time in row 3 of .*nodes\.csv'"),
        (",3,p", r"an id in every row of 'id'\. Got an empty cell in row 3"),
        ("c,three,p", r"a number in every row of 'x'\. Got 'three' in row 3 of"),
        ("c,,p", r"a number in every row of 'x'\. Got a missing value in row 3 of"),
        ("c,NaN,p", r"a number in every row of 'x'\. Got a missing value in row 3 of"),
        ("c,-inf,p", r"float32 can hold, in every row of 'x'\. Got '-inf' in row 3 of"),
        ("c,1e39,p", r"float32 can hold, in every row of 'x'\. Got '1e39' in row 3 of"),
    ],
)
def test_wrong_node(row: str, sentence: str, tmp_path: Path) -> None:
    nodes = f"id,x,class\na,1,p\nb,2,q\n{row}\n"
    refuse(tmp_path, sentence, nodes=nodes, label_column="class", feature_columns="numbers")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", r"'path' .* a table with a header\. Got the empty file"),
        ("\n\n \n", r"has no columns 'source' and 'target'"),
        ("\n\n", r"a table with a header\. Got no columns in"),
        ("\ufeff", r"a table with a header\. Got no columns in"),
        ("source,target\n", r"an edge list with at least one edge, or come with a node table\. Got no rows in"),
        ("source,target,source\na,b,c\n", r"distinct column names\. Got the column 'source' twice in"),
        ("source:target\na:b\n", r"Its columns: source:target\."),
        ("source,target\na,\0\n", r"a CSV file of text\. Got null characters in"),
        (
            "source,target\nä,b\n".encode("latin-1"),
            r"a CSV file in UTF-8\. Got a byte at position 14 that is not UTF-8",
        ),
        ("source,target\na,b\n".encode("utf-16"), r"a CSV file in UTF-8\. Got UTF-16"),
        (
            gzip.compress(EDGES.encode(), mtime=0),
            r"a CSV file, as its suffix says\. Got .*edges\.csv', which is a gzip file",
        ),
        (b"PAR1" + bytes(50), r"a CSV file, as its suffix says\. Got .* which is a Parquet file"),
        (b"PK\x03\x04" + bytes(50), r"which is a zip file"),
        ('source,target\n"a"b,' + "x" * 200_000, r"a well-formed CSV file\. Got an error"),
    ],
)
def test_files_that_are_no_edge_list(content: str | bytes, sentence: str, tmp_path: Path) -> None:
    refuse(tmp_path, sentence, edges=content)


def test_empty_node_tables(tmp_path: Path) -> None:
    refuse(tmp_path, r"'nodes' parameter .* a table with a header\. Got the empty file", nodes="")
    refuse(tmp_path, r"'nodes' parameter .* a node table with at least one node\. Got no rows in", nodes="id,x\n")


def test_missing_files_and_other_suffixes(tmp_path: Path) -> None:
    for name in ("edges.xlsx", "edges.gz", "edges.parquet.gz"):
        (tmp_path / name).write_text("source,target\n")
        with pytest.raises(FormatError, match=rf"must be a \.csv, \.tsv or \.parquet file .*\. Got '.*{name}'"):
            read_edges(tmp_path / name)
    with pytest.raises(InputError, match=r"'path' parameter of read_edges must be an existing file"):
        read_edges(tmp_path / "none.csv")
    (tmp_path / "edges.csv").write_text(EDGES)
    with pytest.raises(InputError, match=r"'nodes' parameter of read_edges must be an existing file"):
        read_edges(tmp_path / "edges.csv", tmp_path / "none.csv")
    with pytest.raises(InputError, match=r"'path' parameter of read_edges must be a path\. Got 5"):
        read_edges(5)  # type: ignore[arg-type]


def test_parquet_that_is_something_else_or_cut_short(tmp_path: Path) -> None:
    file = tmp_path / "edges.parquet"
    parquet.write_table(pa.table({"source": ["a"] * 100, "target": ["b"] * 100}), file)
    content = file.read_bytes()
    damaged = [EDGES.encode(), gzip.compress(EDGES.encode()), *(content[:size] for size in range(1, len(content), 61))]
    for other in damaged:
        file.write_bytes(other)
        with pytest.raises(
            FormatError, match=r"a sound Parquet file, as its suffix says\. Got '.*edges\.parquet' with"
        ):
            read_edges(file)
    file.write_bytes(b"")
    with pytest.raises(FormatError, match="the empty file"):
        read_edges(file)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"source": [1, 2], "target": [2, None]}, r"an id in every row of 'target'\. Got an empty cell in row 2"),
        ({"source": [1.5, 2.0], "target": [2, 1]}, r"text or integers\. Got 1\.5 under 'source' in row 1"),
        (
            {"source": [1, 2], "target": [2, 1], "w": [1.0, None]},
            r"finite number in every row of 'w'\. Got nan in row 2",
        ),
        ({"source": [1, 2], "target": [2, 1], "w": ["1", "x"]}, r"every row of 'w'\. Got the text 'x' in row 2"),
        (
            {"source": [1, 2], "target": [2, 1], "w": [[1], [2]]},
            r"a finite number in every row of 'w'\. Got list<.*> in '.*e\.parquet' instead",
        ),
        # 2^24 + 1 as float32 and 2^53 + 1 as float64 are these
        (
            {"source": np.array([2**24, 1], np.float32), "target": [2, 1]},
            r"16777216 under 'source', a float that may have lost digits",
        ),
        (
            {"source": [2.0**53, 1], "target": [2, 1]},
            r"9007199254740992 under 'source', a double that may have lost digits",
        ),
        ({"source": [], "target": [], "w": []}, r"an edge list with at least one edge, .* Got no rows in"),
    ],
)
def test_wrong_parquet_cells(columns: dict[str, list[Any]], sentence: str, tmp_path: Path) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "e.parquet")
    with pytest.raises(InputError, match=sentence):
        read_edges(tmp_path / "e.parquet", weight="w" if "w" in columns else None)


def test_parquet_text_that_is_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "e.parquet"
    text = pa.array([b"a", b"b", b"caf\xe9"]).view(pa.string())  # Latin-1
    for column in (text, text.dictionary_encode()):
        parquet.write_table(pa.table({"source": ["x", "y", "z"], "target": column}), file)
        sentence = r"UTF-8\. Got the bytes b'caf\\xe9' under 'target' in row 3 of '.*e\.parquet' instead"
        with pytest.raises(FormatError, match=sentence):
            read_edges(file)
    parquet.write_table(pa.table({"source": ["x"], "target": ["y"]}), file)
    file.write_bytes(file.read_bytes().replace(b"target", b"t\xe9rget"))
    with pytest.raises(FormatError, match=r"a sound Parquet file, as its suffix says\. Got '.*e\.parquet' with"):
        read_edges(file)


def test_parquet_ids_and_labels_that_end_in_a_null_character(tmp_path: Path) -> None:
    edges, nodes = tmp_path / "e.parquet", tmp_path / "n.parquet"
    parquet.write_table(pa.table({"source": ["x", "x"], "target": ["y", "y\0"]}), edges)
    with pytest.raises(FormatError, match=r"not end in a null character\. Got 'y.x00' under 'target' in row 2 of"):
        read_edges(edges)
    parquet.write_table(pa.table({"source": ["x"], "target": ["y"]}), edges)
    parquet.write_table(pa.table({"id": ["x", "y"], "kind": ["a\0", "a"]}), nodes)
    with pytest.raises(FormatError, match=r"not end in a null character\. Got 'a.x00' under 'kind' in row 1 of"):
        read_edges(edges, nodes=nodes, label_column="kind")


def test_tables_beyond_memory_are_refused_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "e.parquet"
    parquet.write_table(pa.table({"source": [1] * 100_000, "target": [2] * 100_000}), file)
    assert file.stat().st_size < 3_000
    monkeypatch.setattr(files, "usable_memory", lambda: 1_000_000)
    with pytest.raises(CapacityError, match=r"Loading '.*e\.parquet' takes 0\.0 GB, and this process may use"):
        read_edges(file)
    monkeypatch.undo()
    with (tmp_path / "e.csv").open("wb") as stream:
        stream.truncate(2**43)  # a hole, which takes no room on the disk
    with pytest.raises(CapacityError, match=r"Loading '.*e\.csv' takes 17592\.2 GB"):
        read_edges(tmp_path / "e.csv")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_pipes_and_devices_are_no_files(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"graph{suffix}"
    os.mkfifo(file)
    link = tmp_path / f"link{suffix}"
    link.symlink_to("/dev/zero")
    for path in (file, link):
        with pytest.raises(InputError, match=r"The 'path' parameter of read_\w+ must be an existing file\. Got '"):
            (read_npz if suffix == ".npz" else read_edges)(path)
