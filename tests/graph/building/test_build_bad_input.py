"""Bad edge files and arguments of `build_graph`: one sentence each, the row among all rows, and nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pprop
from pprop.graph.building import plan

TINY = 2e-4


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    file = tmp_path / "edges.parquet"
    pq.write_table(pa.table({"source": range(1000), "target": [7] * 1000, "w": [0.5] * 1000}), file, row_group_size=100)
    return file


def changed(file: Path, name: str, row: int, value: object) -> None:
    table = pq.read_table(file)
    cells = table.column(name).to_pylist()
    cells[row] = value
    pq.write_table(table.set_column(table.schema.names.index(name), name, pa.array(cells)), file, row_group_size=100)


def refused(file: Path, message: str, error: type[Exception] = pprop.InputError, **options: Any) -> None:
    options.setdefault("memory", TINY)
    with pytest.raises(error, match=message) as caught:
        pprop.build_graph(file, file.parent / "g", **options)
    assert "\n" not in str(caught.value)
    assert not list(file.parent.glob(".g*"))
    assert not (file.parent / "g").exists()


def test_a_missing_column_is_named(edges: Path):
    refused(edges, r"has no column 'from'\. Its columns: source, target, w\.", source="from")
    refused(edges, "has no column 'weight'", weight="weight")
    other = edges.with_name("other.csv")
    other.write_text("a,b\n1,2\n")
    with pytest.raises(pprop.InputError, match=r"other\.csv has no columns 'source' and 'target'"):
        pprop.build_graph([edges, other], edges.parent / "g")
    nodes = edges.with_name("nodes.csv")
    nodes.write_text("name\n1\n")
    refused(edges, r"nodes\.csv has no column 'id'", nodes=nodes)


@pytest.mark.parametrize("row", [3, 777])
def test_a_null_is_found_in_its_row(edges: Path, row: int):
    changed(edges, "target", row, None)
    refused(edges, f"an id in every row of 'target'. Got an empty cell in row {row + 1} of ", pprop.FormatError)


@pytest.mark.parametrize(
    ("value", "message"),
    [(-1.0, "non-negative weights. Got -1"), (float("nan"), "finite number"), (None, "finite number")],
)
def test_a_bad_weight_is_found_in_its_row(edges: Path, value: float | None, message: str):
    changed(edges, "w", 777, value)
    refused(edges, rf"{message}.* in row 778 of ", pprop.FormatError, weight="w")


def test_weights_beyond_the_largest_float_are_refused(edges: Path):
    pq.write_table(pa.table({"source": [1, 1], "target": [2, 2], "w": [1.7e308, 1.7e308]}), edges)
    refused(edges, "whose sum is beyond the largest float", pprop.GraphError, weight="w")


def test_ids_that_are_no_ids_are_refused(edges: Path):
    changed(edges, "source", 777, 0.5)
    refused(edges, "ids and labels are text or integers. Got 0.5 under 'source' in row 778", pprop.FormatError)


def test_an_unknown_id_is_named_with_its_row(edges: Path):
    nodes = edges.with_name("nodes.csv")
    nodes.write_text("id\n" + "\n".join(map(str, range(900))))
    refused(
        edges,
        r"row 901: node '900' is not in the node table .*unknown_nodes='drop' or 'add'",
        nodes=nodes,
    )
    refused(edges, r"positions from 0 to 899, as nodes=900 says. Got '900' in row 901", nodes=900)


def test_positions_must_be_integers(edges: Path):
    text = edges.with_name("text.csv")
    text.write_text("source,target\n1,b\n")
    refused(text, "edge lists of positions from 0 to 9, as nodes=10 says. Got other ids", nodes=10)


@pytest.mark.parametrize("ids", [[3, 1, 2, 1], ["x", "1", "2", "1"], [2**60, 1, 2, 1]])
def test_an_id_twice_in_the_node_table_is_found(edges: Path, ids: list[Any]):
    nodes = edges.with_name("nodes.parquet")
    pq.write_table(pa.table({"id": ids}), nodes)
    refused(
        edges, "a node table of distinct ids. Got the id '1' a second time in row 4 of ", pprop.FormatError, nodes=nodes
    )


def test_empty_tables_are_refused(edges: Path):
    empty = edges.with_name("empty.csv")
    empty.write_text("source,target\n")
    refused(empty, "an edge list with at least one edge, or come with a node table. Got no rows", pprop.FormatError)
    nodes = edges.with_name("nodes.csv")
    nodes.write_text("id\n")
    refused(edges, "a node table with at least one node. Got no rows", pprop.FormatError, nodes=nodes)
    nodes.write_text("id\n1\n2\n")
    assert pprop.build_graph(empty, edges.parent / "none", nodes=nodes).n_entries == 0


def test_damaged_files_are_refused(edges: Path):
    cut = edges.with_name("cut.parquet")
    cut.write_bytes(edges.read_bytes()[:-100])
    refused(cut, "a sound Parquet file, as its suffix says", pprop.FormatError)
    data = bytearray(edges.read_bytes())
    data[50:2000] = b"\xff" * 1950
    cut.write_bytes(bytes(data))
    refused(cut, "a sound Parquet file, as its suffix says", pprop.FormatError)
    packed = edges.with_name("edges.csv.gz")
    packed.write_bytes(b"\x1f\x8bnonsense")
    refused(packed, "a sound gzip file, as its suffix says", pprop.FormatError)
    named = edges.with_name("wrong.csv")
    named.write_bytes(edges.read_bytes())
    refused(named, "which is a Parquet file", pprop.FormatError)
    refused(edges.with_name("no.csv"), "an existing file")
    refused(edges.with_name("edges.txt"), "an existing file")


def test_a_quote_that_is_not_closed_does_not_fill_memory(edges: Path):
    file = edges.with_name("quote.csv")
    file.write_text("source,target\n" + '"a,b\n' + "c,d\n" * 1_500_000)
    refused(file, "a quote that is not closed", pprop.FormatError, memory=0.001)


def test_rows_without_a_known_order_are_refused(edges: Path):
    np.save(edges.with_name("x.npy"), np.ones((10, 2)))
    refused(
        edges, "'features' parameter of build_graph must be left out where the order", features=edges.with_name("x.npy")
    )
    refused(edges, "a matrix of real numbers with 1,000 rows.* of shape", nodes=1000, features=edges.with_name("x.npy"))
    np.save(edges.with_name("x.npy"), np.full((1000, 2), np.nan))
    refused(edges, "free of NaN and infinity", pprop.GraphError, nodes=1000, features=edges.with_name("x.npy"))
    refused(edges, "left out when there is no node table", label_column="topic")
    np.save(edges.with_name("y.npy"), np.full(1000, 2000))
    refused(edges, "class indices from 0 to 999", pprop.GraphError, nodes=1000, labels=edges.with_name("y.npy"))


def test_features_of_a_table_beyond_memory_name_the_remedy(edges: Path):
    nodes = edges.with_name("nodes.parquet")
    pq.write_table(pa.table({"id": range(1000), "team": [f"t{k}" for k in range(1000)]}), nodes)
    with pytest.raises(pprop.CapacityError, match=r"read some rows at a time\. Pass feature_columns='numbers'"):
        pprop.build_graph(edges, edges.parent / "g", nodes=nodes, memory=2e-5)


def test_a_missing_number_is_named_with_its_part_of_the_table(edges: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plan, "LEAST_ROWS", 16)
    nodes = edges.with_name("nodes.parquet")
    pq.write_table(pa.table({"id": range(1000), "x": [*np.ones(999), None]}), nodes, row_group_size=100)
    refused(edges, "from row", pprop.FormatError, nodes=nodes, feature_columns="numbers")


def test_memory_and_out_are_checked(edges: Path):
    refused(edges, r"'memory' parameter of build_graph must be a float in \(0, inf\)", memory=0)
    with pytest.raises(pprop.CapacityError, match="this process may use"):
        pprop.build_graph(edges, edges.parent / "g", memory=1e6)
    with pytest.raises(pprop.InputError, match="in an existing folder"):
        pprop.build_graph(edges, edges.parent / "no" / "g")
    (edges.parent / "file").write_text("mine")
    with pytest.raises(pprop.InputError, match="with other content"):
        pprop.build_graph(edges, edges.parent / "file", replace=True)
    with pytest.raises(pprop.InputError, match="at least one"):
        pprop.build_graph([], edges.parent / "g")
