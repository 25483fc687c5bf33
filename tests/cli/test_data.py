"""The paper's graphs from the shell, and what check finds in one's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import pprop


def levels(answer) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"problem": [], "warning": [], "note": []}
    for finding in answer.record["findings"]:
        found[finding["level"]].append(finding["what"])
    return found


def test_list_says_which_graphs_are_here(pprop_here, only_bundled: Path):
    where = {row["name"]: row["where"] for row in pprop_here("data", "list", "--json").record["datasets"]}
    assert where == {
        "citeseer": "bundled",
        "cora_ml": "to be downloaded",
        "pubmed": "to be downloaded",
        "ms_academic": "to be downloaded",
    }
    assert "2110" in pprop_here("data", "list").out


def test_info_describes_without_downloading(pprop_here, only_bundled: Path):
    here, elsewhere = (pprop_here("data", "info", name, "--json").record for name in ("citeseer", "pubmed"))
    graph = pprop.load_dataset("citeseer")
    assert here["fingerprint"] == graph.fingerprint
    assert sum(here["class_sizes"].values()) == graph.n_nodes
    assert here["test_seeds"] == list(pprop.TEST_SEEDS)
    assert "fingerprint" not in elsewhere
    assert "pprop data get pubmed" in pprop_here("data", "info", "pubmed").out
    assert not only_bundled.exists()


def test_get_says_where_the_file_is(pprop_here, only_bundled: Path):
    record = pprop_here("data", "get", "citeseer", "--json").record
    assert Path(record["path"]).is_file()
    assert record["origin"] == "bundled"


def test_check_counts_what_is_worth_knowing(pprop_here, tmp_path: Path):
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,a\na,b\na,c\nd,d\ne,f\n")
    (tmp_path / "nodes.csv").write_text(
        "id,topic,x,y\na,red,1,0\nb,red,0,1\nc,blue,0,0\nd,,5,4\ne,,1,1\nf,blue,1,2\ng,red,1,1\n"
    )
    command = "data check edges.csv --nodes nodes.csv --label-column topic --json"
    answer = pprop_here(*command.split())
    assert answer.code == 0
    assert answer.record["usable"] is True
    found = levels(answer)
    assert found["problem"] == []
    assert found["note"] == [
        "1 row of edges.csv repeats an earlier one; each edge counts once.",
        "2 edges listed in one direction and 1 in both; all are read as undirected.",
        "1 self-loop; it keeps its weight, and a node without one gets one of weight 1.",
        "4 components; the largest has 3 of 7 nodes, and nothing spreads from one to another.",
        "Scaling: 2 of 2 feature columns are centred and divided by their standard deviation.",
        "2 of 7 nodes have no label.",
    ]
    assert found["warning"] == [
        "2 nodes without edges: their predictions stay as the network makes them.",
        "1 of 7 nodes has no features (all zero).",
        "2 of 2 classes have fewer than 5 labelled nodes ('blue': 2, 'red': 3).",
    ]


def test_check_counts_what_keeps_a_table_from_being_read(pprop_here, tmp_path: Path):
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,x\ny,x\na,\n")
    (tmp_path / "nodes.csv").write_text("id,v\na,1\nb,2\nb,3\n,4\n")
    answer = pprop_here("data", "check", "edges.csv", "--nodes", "nodes.csv", "--json")
    assert answer.code == 3
    assert answer.record["usable"] is False
    assert levels(answer)["problem"] == [
        "1 row of nodes.csv (first: row 4) without an id under 'id'.",
        "1 id of nodes.csv in more than one row ('b').",
        "1 row of edges.csv (first: row 4) without an id at an end.",
        "2 rows of edges.csv (first: row 2) with 2 ids that the node table does not have ('y', 'x').",
    ]


@pytest.mark.parametrize(
    ("choice", "done"), [("drop", "are left out"), ("add", "add nodes without features and label")]
)
def test_check_warns_of_unknown_nodes_that_are_dropped_or_added(pprop_here, tmp_path: Path, choice: str, done: str):
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,x\n")
    (tmp_path / "nodes.csv").write_text("id,v\na,1\nb,2\n")
    answer = pprop_here("data", "check", "edges.csv", "--nodes", "nodes.csv", "--unknown-nodes", choice, "--json")
    assert answer.record["usable"] is True
    rows = "1 row of edges.csv (first: row 2) with 1 id that the node table does not have ('x')"
    assert f"{rows}; they {done}." in levels(answer)["warning"]


def test_check_names_the_columns_of_the_edge_list_that_are_not_used(pprop_here, tmp_path: Path):
    (tmp_path / "edges.csv").write_text("source,target,weight,since\na,b,2,2020\n")
    unused = "Columns of edges.csv that are not used: "
    notes = levels(pprop_here("data", "check", "edges.csv", "--json"))["note"]
    assert f"{unused}'weight', 'since'; --weight COLUMN reads one as weights." in notes
    notes = levels(pprop_here("data", "check", "edges.csv", "--weight", "weight", "--json"))["note"]
    assert f"{unused}'since'." in notes


@pytest.mark.parametrize("columns", [("age",), ("age", "income")])
def test_check_says_how_the_features_will_be_scaled(pprop_here, tmp_path: Path, columns: tuple[str, ...]):
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    rows = zip("abc", (31, 27, 45), (52000, 61000, 48000), strict=True)
    text = "\n".join(",".join(map(str, row[: 1 + len(columns)])) for row in rows)
    (tmp_path / "nodes.csv").write_text(",".join(("id", *columns)) + f"\n{text}\n")
    found = levels(pprop_here("data", "check", "edges.csv", "--nodes", "nodes.csv", "--json"))
    assert [note for note in found["note"] if note.startswith("Scaling: ") and "standard deviation" in note]
    assert not [warning for warning in found["warning"] if "feature" in warning]


def test_check_tells_a_directed_file_from_an_undirected_one(pprop_here, tmp_path: Path):
    arcs = sp.csr_array(([1.0, 1.0, 1.0], ([0, 1, 2], [1, 0, 1])), shape=(3, 3))
    pprop.write_npz(pprop.Graph.from_scipy(arcs, directed=True, features=np.eye(3)), tmp_path / "arcs.npz")
    notes = levels(pprop_here("data", "check", "arcs.npz", "--json"))["note"]
    assert "Directed: 1 edge of 3 without the edge back." in notes


def test_check_of_a_column_that_is_not_there_names_the_columns(pprop_here, tables):
    answer = pprop_here("data", "check", "edges.csv", "--source", "from", "--json")
    assert answer.code == 3
    assert "'source', 'target'" in levels(answer)["problem"][0]


@pytest.mark.parametrize("text", ["source,target\n", "source,target\na,a\n"])
def test_check_of_a_graph_with_hardly_an_edge_is_an_answer_not_a_crash(pprop_here, tmp_path: Path, text: str):
    (tmp_path / "edges.csv").write_text(text)
    assert pprop_here("data", "check", "edges.csv").code in (0, 3)
