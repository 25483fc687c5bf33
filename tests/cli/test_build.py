"""``pprop build``: the folder, its summary, and one line where it cannot be made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pprop

EDGES = "source,target,w\nann,bob,2\nbob,cem,1\ncem,dee,1\ndee,ann,1\n"
NODES = "id,team,age\nann,red,31\nbob,blue,27\ncem,,45\ndee,red,38\neve,blue,29\n"


def test_a_folder_is_built_and_read_by_other_verbs(pprop_here: Any, tmp_path: Path):
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text(NODES)
    words = ["--nodes", "nodes.csv", "--label-column", "team", "--weight", "w"]
    answer = pprop_here("build", "edges.csv", *words, "--out", "made/graph", "--json")
    assert answer.code == 0
    assert "Building" in answer.err
    assert "of memory" in answer.err
    expected = pprop.read_edges(tmp_path / "edges.csv", tmp_path / "nodes.csv", label_column="team", weight="w")
    folder = pprop.GraphFolder.open(tmp_path / "made" / "graph")
    assert folder.graph() == expected
    record = answer.record
    assert (record["nodes"], record["edges"], record["entries"], record["features"]) == (5, 4, 8, 1)
    assert record["classes"] == ["blue", "red"]
    assert record["fingerprint"] == folder.fingerprint
    checked = pprop_here("data", "check", "made/graph", "--json")
    assert checked.code == 0
    assert checked.record["fingerprint"] == expected.fingerprint
    pushed = pprop_here("ppr", "made/graph", "ann", "--topk", "2")
    assert pushed.code == 0


def test_positions_and_files_of_rows(pprop_here: Any, tmp_path: Path):
    import numpy as np

    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,3\n")
    np.save(tmp_path / "x.npy", np.eye(4, dtype=np.float32))
    np.save(tmp_path / "y.npy", np.array([0, 1, -1, 1]))
    answer = pprop_here(
        "build",
        "edges.csv",
        "--nodes",
        4,
        "--feature-file",
        "x.npy",
        "--label-file",
        "y.npy",
        "--out",
        "g",
        "--directed",
    )
    assert answer.code == 0
    assert answer.out.startswith("g: GraphFolder(4 nodes, 2 edges, directed, 4 features")
    labels: Any = pprop.read_graph(tmp_path / "g").labels
    assert labels.tolist() == [0, 1, -1, 1]


def test_files_of_features_are_used_beside_columns(pprop_here: Any, tmp_path: Path):
    import numpy as np

    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text(NODES)
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    np.save(tmp_path / "x.npy", rows)
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    about: dict[str, Any] = {"label_column": "team", "features": tmp_path / "x.npy"}
    build = ("build", "edges.csv", "--nodes", "nodes.csv", "--label-column", "team", "--force", "--out", "g")
    for given, columns in (("x.npy", "auto"), ("age,x.npy", ["age"])):
        assert pprop_here(*build, "--features", given).code == 0
        graph = pprop.read_graph(tmp_path / "g")
        assert graph == pprop.read_edges(edges, nodes, feature_columns=columns, **about)
        assert graph.feature_names == ("age", "x.npy[0]", "x.npy[1]")
    assert pprop_here("build", "edges.csv", "--out", "h", "--features", "x.npy", "--nodes", "nodes.csv").code == 0
    np.save(tmp_path / "x.npy", rows[:4])
    refused = pprop_here(*build, "--features", "x.npy").err.splitlines()[-1]
    assert "--features must be a matrix of numbers with 5 rows, one for each of 'nodes.csv'" in refused
    both = pprop_here(*build, "--features", "x.npy", "--feature-file", "x.npy")
    assert "leave one of them out" in both.err
    (tmp_path / "positions.csv").write_text("source,target\n0,1\n1,3\n")
    assert pprop_here("build", "positions.csv", "--nodes", 4, "--features", "x.npy", "--out", "n").code == 0
    assert np.array_equal(pprop.read_graph(tmp_path / "n").features, rows[:4])  # type: ignore[arg-type]


def test_what_cannot_be_built_is_one_line(pprop_here: Any, tmp_path: Path):
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text("id\nann\n")
    answer = pprop_here("build", "edges.csv", "--source", "from", "--out", "g")
    assert (answer.code, answer.out) == (3, "")
    assert "edges.csv has no column 'from'. Its columns: source, target, w." in answer.err
    answer = pprop_here("build", "edges.csv", "--nodes", "nodes.csv", "--weight", "w", "--out", "g")
    assert answer.code == 3
    assert "Add: --unknown-nodes drop (or add)" in answer.err.splitlines()[-1]
    assert not (tmp_path / "g").exists()
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "mine.txt").write_text("mine")
    answer = pprop_here("build", "edges.csv", "--out", "g", "--force")
    assert answer.code == 4
    assert "not pprop's to replace" in answer.err
