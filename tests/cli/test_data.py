"""The paper's graphs from the shell, and what check finds in one's own."""

from __future__ import annotations

from collections.abc import Callable
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
        "2 of 7 nodes have no label.",
        "Scaling: 2 of 2 feature columns are centred and divided by their standard deviation.",
        "Homophily of all labels in the file: 50.0% of 2 edges between labelled nodes are within a class. "
        "These are too few edges to say whether the graph helps.",
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


def test_a_training_without_any_known_edge_is_refused_even_where_unknown_nodes_are_dropped(pprop_here, tmp_path: Path):
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,3\n")
    (tmp_path / "nodes.csv").write_text("id,size,label\n" + "".join(f"n{i},{i % 7},{i % 2}\n" for i in range(40)))
    tables = ("edges.csv", "--nodes", "nodes.csv", "--label-column", "label", "--unknown-nodes", "drop")
    answer = pprop_here("train", *tables)
    assert answer.code != 0
    assert "No id of edges.csv is in the node table: are these the right columns?" in answer.err


@pytest.mark.parametrize(
    ("choice", "done"), [("drop", "Left out 1 edge of {} to nodes"), ("add", "Added 1 node of {}")]
)
def test_check_warns_of_unknown_nodes_that_are_dropped_or_added(pprop_here, tmp_path: Path, choice: str, done: str):
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,x\n")
    (tmp_path / "nodes.csv").write_text("id,v\na,1\nb,2\n")
    answer = pprop_here("data", "check", "edges.csv", "--nodes", "nodes.csv", "--unknown-nodes", choice, "--json")
    assert answer.record["usable"] is True
    (told,) = [what for what in levels(answer)["warning"] if "that the node table does not have" in what]
    assert told.startswith(done.format("'edges.csv'"))
    assert answer.err == ""


def test_check_and_train_warn_of_weights_that_are_not_used_and_count_those_that_are_zero(pprop_here, tables):
    edges, nodes = tables
    lines = edges.read_text().splitlines()
    edges.write_text(
        "\n".join([f"{lines[0]},since,weight", *(f"{line},2020,{k % 9}" for k, line in enumerate(lines[1:]))])
    )
    zeros = len(range(0, len(lines) - 1, 9))
    given = (edges, "--nodes", nodes, "--label-column", "hobby", "--json")
    for command in (("data", "check", *given), ("train", *given, "--max-epochs", 2, "--no-baselines")):
        plain, weighted = pprop_here(*command), pprop_here(*command, "--weight", "weight")
        assert list(plain.record["columns"]["unused"]) == ["since", "weight"]
        assert list(weighted.record["columns"]["unused"]) == ["since"]
        (told,) = [what for what in levels(plain)["warning"] if "weight" in what]
        assert "'weight' of" in told
        assert "--weight weight" in told
        assert f"Left out {zeros} edges of '{edges}' of weight zero." in levels(weighted)["warning"]


def test_train_tells_what_check_finds(pprop_here, tables):
    given = (*tables[:1], "--nodes", tables[1], "--label-column", "hobby", "--json")
    checked, trained = pprop_here("data", "check", *given), pprop_here("train", *given, "--max-epochs", 2)
    found = checked.record["findings"]
    # the report has the scaling of the model, and the neighbourhood of training labels
    assert found.pop()["what"].startswith("Homophily of all labels in the file: ")
    assert found.pop()["what"].startswith("Scaling")
    assert found
    assert trained.record["findings"] == found
    for finding in found:
        assert f"{finding['level'].capitalize()}: {finding['what']}\n" in trained.err


def people(path: Path, n: int, **columns: Callable[[int], object]) -> Path:
    """A node table of n people, two thirds of whom stay, one third of whom leave, and every fifth of whom is unknown."""
    rows = [["id", "label", *columns]]
    for k in range(n):
        label = "" if k % 5 == 4 else "leaves" if k % 3 == 0 else "stays"
        rows.append([str(k), label, *(str(cell(k)) for cell in columns.values())])
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    return path


def leaks(answer) -> list[str]:
    return [what for what in levels(answer)["warning"] if "determines the label" in what]


def test_columns_that_determine_the_label_are_cautioned_about_and_stay(pprop_here, tmp_path: Path):
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{k},{k + 1}\n" for k in range(59)))
    people(
        tmp_path / "nodes.csv",
        60,
        code=lambda k: 7 if k % 3 == 0 else 9,
        status=lambda k: "gone" if k % 3 == 0 else "active" if k % 2 else "asleep",
        left_on=lambda k: f"2020-01-{10 + k // 3}" if k % 3 == 0 else "",
        age=lambda k: 20 + k % 30 + k / 7,
        nearly=lambda k: k % 3 == 0 and k != 30,
        team=lambda k: "red" if k % 2 else "blue",
    )
    given = ("edges.csv", "--nodes", "nodes.csv", "--label-column", "label", "--json")
    checked, trained = pprop_here("data", "check", *given), pprop_here("train", *given, "--max-epochs", 2)
    remedy = "of all 48 labelled nodes. If it is not known when you predict, leave it out: --column"
    assert (
        leaks(checked)
        == leaks(trained)
        == [
            f"Column 'code' alone determines the label {remedy} code=unused.",
            f"Column 'status' alone determines the label {remedy} status=unused.",
            f"Whether 'left_on' is missing determines the label {remedy} left_on=unused.",
        ]
    )
    assert {"code", "status", "left_on"} < set(trained.record["columns"]["used"])
    assert leaks(pprop_here("data", "check", *given, "--features", "age,nearly,team")) == []


def test_what_may_determine_the_label_by_chance_is_not_cautioned_about(pprop_here, tmp_path: Path):
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    given = ("data", "check", "edges.csv", "--nodes", "nodes.csv", "--label-column", "label", "--json")
    people(tmp_path / "nodes.csv", 11, code=lambda k: 7 if k % 3 == 0 else 9)  # four of nine: one of 126 ways
    assert leaks(pprop_here(*given)) == []
    people(tmp_path / "nodes.csv", 60, code=lambda k: 3 * (k % 9) + 1 + 30 * (k % 3 == 0))  # nine values
    assert leaks(pprop_here(*given)) == []


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
    assert "Its columns: source, target." in levels(answer)["problem"][0]


@pytest.mark.parametrize("text", ["source,target\n", "source,target\na,a\n"])
def test_check_of_a_graph_with_hardly_an_edge_is_an_answer_not_a_crash(pprop_here, tmp_path: Path, text: str):
    (tmp_path / "edges.csv").write_text(text)
    assert pprop_here("data", "check", "edges.csv").code in (0, 3)
