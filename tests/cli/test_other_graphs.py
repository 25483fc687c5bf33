"""Models and other graphs than their own, through the command line: new nodes, other tables, and models that take none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.own_tables import NUMBERS, PEOPLE, QUICK, command, on, project, read_rows, sentence, write_rows

pytestmark = pytest.mark.usefixtures("without_drawing")


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    """A model of the numbers, hardly trained, with its predictions."""
    assert command(*on(folder, "numbers.csv"), *QUICK, "--out", folder / "model").code == 0
    return folder / "model"


@pytest.fixture(scope="module")
def mixed(folder: Path) -> Path:
    """The same of all columns."""
    assert command(*on(folder, "people.csv"), *QUICK, "--out", folder / "mixed").code == 0
    return folder / "mixed"


def test_the_order_of_the_columns_does_not_matter(pprop_here, folder: Path, model: Path):
    options = ("--graph", folder / "edges.csv", "--nodes", folder / "reversed.csv", *PEOPLE)
    assert pprop_here("predict", model, *options).out == (model / "predictions.csv").read_text()


def test_a_renamed_a_new_and_an_absent_table_of_columns_are_errors_that_name_them(
    pprop_here, folder: Path, model: Path
):
    def refused(nodes: str) -> str:
        return sentence(
            pprop_here("predict", model, "--graph", folder / "edges.csv", "--nodes", folder / nodes, *PEOPLE)
        )

    assert "the column 'age'" in refused("renamed.csv")
    assert "'country', 'premium', 'signup', 'bio', 'phone'" in refused("people.csv")
    bare = pprop_here("predict", model, "--graph", folder / "edges.csv")
    assert (bare.code, bare.out) == (2, "")
    assert "'age', 'income' of a node table: add --nodes FILE" in bare.err


def test_nodes_that_came_after_the_training_are_predicted(pprop_here, folder: Path, tmp_path: Path, model: Path):
    edges = project(read_rows(folder / "edges.csv"), ("source", "target"))
    people = project(read_rows(folder / "numbers.csv"), NUMBERS)
    write_rows(tmp_path / "edges.csv", ("source", "target"), [*edges, ("new", "p0"), ("new", "p3"), ("new", "p6")])
    write_rows(tmp_path / "nodes.csv", NUMBERS, [*people, ("new", "", 41, 30000)])
    options = ("--graph", "edges.csv", "--nodes", "nodes.csv", *PEOPLE, "--out", "later.csv")
    answer = pprop_here("predict", model, *options)
    assert answer.code == 0
    assert "is not the graph of the training" in answer.err
    later, before = read_rows(tmp_path / "later.csv"), read_rows(model / "predictions.csv")
    assert [row["id"] for row in later] == [*(row["id"] for row in before), "new"]
    same = [a["class"] == b["class"] for a, b in zip(later, before, strict=False)]
    assert np.mean(same) > 0.95


def test_a_new_category_is_counted_in_a_caution(pprop_here, folder: Path, tmp_path: Path, mixed: Path):
    rows = read_rows(folder / "people.csv")
    for row in rows[:3]:
        row["country"] = "IT"
    write_rows(tmp_path / "nodes.csv", list(rows[0]), project(rows, list(rows[0])))
    answer = pprop_here("predict", mixed, "--graph", folder / "edges.csv", "--nodes", "nodes.csv", *PEOPLE)
    assert answer.code == 0
    (caution,) = [line for line in answer.err.splitlines() if "'country'" in line]
    assert caution.startswith("Caution: 3 ")


@pytest.mark.parametrize("choice", ["drop", "add"])
def test_edges_to_unknown_nodes_are_dropped_or_add_nodes(pprop_here, folder: Path, tmp_path: Path, choice: str):
    write_rows(tmp_path / "nodes.csv", NUMBERS, project(read_rows(folder / "numbers.csv")[:500], NUMBERS))
    command = (*on(folder, tmp_path / "nodes.csv"), *QUICK, "--out", "model")
    assert "--unknown-nodes" in sentence(pprop_here(*command))
    answer = pprop_here(*command, "--unknown-nodes", choice)
    assert answer.code == 0
    done = "Left out 7" if choice == "drop" else "Added 100 nodes"
    assert f"Warning: {done}" in answer.err
    n_nodes = len(read_rows(tmp_path / "model" / "predictions.csv"))
    assert n_nodes == 500 if choice == "drop" else n_nodes > 500


def test_weights_for_each_node_are_refused_on_another_graph(pprop_here, folder: Path, tmp_path: Path):
    assert pprop_here(*on(folder, "numbers.csv"), *QUICK, "--structure", "identity", "--out", "model").code == 0
    edges = project(read_rows(folder / "edges.csv"), ("source", "target"))
    for others in (edges[:2000], [(b, a) for a, b in edges[5:]]):  # fewer nodes, and as many with other edges
        write_rows(tmp_path / "edges.csv", ("source", "target"), others)
        nodes = () if len(others) == 2000 else ("--nodes", folder / "numbers.csv", *PEOPLE)
        refused = sentence(pprop_here("predict", "model", "--graph", "edges.csv", *nodes))
        assert "has weights for each node of its own graph (--structure identity)" in refused
    same = pprop_here("predict", "model", "--graph", folder / "edges.csv", "--nodes", folder / "numbers.csv", *PEOPLE)
    assert same.out == (tmp_path / "model" / "predictions.csv").read_text()


def test_label_propagation_that_auto_chose_says_that_it_takes_no_new_nodes(pprop_here, folder: Path, tmp_path: Path):
    trained = pprop_here(*on(folder, "numbers.csv"), *QUICK, "--model", "auto", "--out", "model")
    assert "This model cannot take new nodes" in trained.out
    edges = project(read_rows(folder / "edges.csv"), ("source", "target"))
    write_rows(tmp_path / "edges.csv", ("source", "target"), edges[1:])
    options = ("--graph", "edges.csv", "--nodes", folder / "numbers.csv", *PEOPLE)
    assert "belong to the nodes of the graph" in sentence(pprop_here("predict", "model", *options))


def test_a_changed_node_table_is_refused_with_the_option_that_takes_it(pprop_here, folder: Path, tmp_path: Path):
    rows = project(read_rows(folder / "numbers.csv"), NUMBERS)
    write_rows(tmp_path / "nodes.csv", NUMBERS, rows)
    assert pprop_here(*on(folder, tmp_path / "nodes.csv"), *QUICK, "--out", "model").code == 0
    write_rows(tmp_path / "nodes.csv", NUMBERS, [*rows, ("new", "", 41, 30000)])
    assert "Add: --graph GRAPH --nodes FILE" in sentence(pprop_here("predict", "model"))


def test_a_warning_names_options_and_not_parameters(pprop_here, folder: Path, tmp_path: Path):
    (tmp_path / "w.csv").write_text("source,target,weight\na,b,2\nb,c,3\n")
    (told,) = [line for line in pprop_here("data", "check", "w.csv").out.splitlines() if "count alike" in line]
    assert told.endswith("is left out: all edges count alike. Name it: --weight weight")
