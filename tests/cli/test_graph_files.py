"""Graphs in files of their own (GraphML, matrices, folders): the options that they take, in the words of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from scipy import io, sparse
from tests.cli.conftest import Command

GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '<key id="t" for="node" attr.name="team" attr.type="string"/><graph edgedefault="undirected">'
    '<node id="ann"><data key="t">red</data></node><node id="bob"><data key="t">blue</data></node>'
    '<edge source="ann" target="bob"/></graph></graphml>'
)
TABLE_OPTIONS = {
    "--source": ("from", "'from'"),
    "--target": ("to", "'to'"),
    "--id-column": ("name", "'name'"),
    "--unknown-nodes": ("drop", "'drop'"),
    "--missing-labels": ("x,y", "'x,y'"),
    "--nodes": ("nodes.csv", "'nodes.csv'"),
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    """A GraphML file, a matrix, and a node table of the two."""
    (tmp_path / "graph.graphml").write_text(GRAPHML)
    io.mmwrite(tmp_path / "graph.mtx", sparse.coo_array(([1, 1], ([0, 1], [1, 0])), shape=(2, 2)))
    (tmp_path / "nodes.csv").write_text("id,team\nann,red\nbob,blue\n")


def problems(out: str) -> list[str]:
    return [line.split(maxsplit=1)[1] for line in out.splitlines() if line.startswith("  problem ")]


@pytest.mark.parametrize("call", [["data", "check"], ["train"]])
def test_all_options_that_a_graph_file_has_no_use_for_are_listed_with_those_that_it_has(
    pprop_here: Command, call: list[str]
):
    given = [word for name, (value, _) in TABLE_OPTIONS.items() for word in (name, value)]
    answer = pprop_here(*call, "graph.graphml", *given)
    told = problems(answer.out) if call[0] == "data" else [line.strip() for line in answer.err.splitlines()]
    assert answer.code == 3
    text = "\n".join(told)
    for name, (_, found) in TABLE_OPTIONS.items():
        assert f"{name} must be left out for a GraphML file. Got {found}." in text
    assert "Its options are: --weight, --directed, --label-column, --label-kind, --features." in text
    assert "attributes of their own, which are named by: --label-column, --features." in text
    assert "feature_columns" not in text


def test_a_verb_names_the_options_that_it_has(pprop_here: Command):
    answer = pprop_here("ppr", "graph.graphml", "ann", "--source", "from", "--alpha", "2", "--nodes", "nodes.csv")
    assert answer.code == 3
    assert [line.strip() for line in answer.err.splitlines()] == [
        "pprop ppr: --alpha must be a number in (0, 1]. Got 2.0.",
        "--source must be left out for a GraphML file. Got 'from'.",
        "--nodes must be left out for a GraphML file. Got 'nodes.csv'.",
        "Its options are: --weight, --directed.",
    ]


def test_a_matrix_takes_a_node_table_and_its_options(pprop_here: Command):
    answer = pprop_here("data", "check", "graph.mtx", "--label-column", "team")
    assert problems(answer.out) == [
        "--label-column must be left out for a Matrix Market file without a node table. Got 'team'. "
        "Its options are: --directed."
    ]
    answer = pprop_here("data", "check", "graph.mtx", "--nodes", "nodes.csv", "--label-column", "team")
    assert answer.code == 0
    assert "2 classes" in answer.out


def test_attributes_that_are_left_out_are_named_with_the_option_that_takes_them(pprop_here: Command):
    answer = pprop_here("data", "check", "graph.graphml")
    assert answer.code == 0
    told = "warning  The node attributes 'team' are left out. Those that are features are named by --features.\n"
    assert told in answer.out
    assert "No labels: training needs some (--label-column);" in answer.out
    assert "2 features" in pprop_here("data", "check", "graph.graphml", "--features", "team").out


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("graph.graphml", "Its nodes may have an attribute that holds them. Name it: --label-column COLUMN"),
        ("graph.mtx", "Add: --nodes FILE --label-column COLUMN"),
        ("built", "A folder has them if 'pprop build' is given --label-column or --label-file."),
    ],
)
def test_a_graph_without_labels_is_refused_with_the_way_to_give_them(
    pprop_here: Command, tmp_path: Path, name: str, remedy: str
):
    (tmp_path / "edges.csv").write_text("source,target\nann,bob\n")
    assert pprop_here("build", "edges.csv", "--out", "built").code == 0
    answer = pprop_here("train", name)
    assert answer.code == 3
    told = f"pprop train: Training needs the classes of some nodes, and this graph has none. {remedy}\n"
    assert answer.err.endswith(told)
