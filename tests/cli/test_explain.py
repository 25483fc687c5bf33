"""``pprop explain``: a table with names, one JSON object, a picture, and clear refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import pprop

GRAPH = pprop.Graph.from_scipy(
    sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(6, 6)),
    features=np.eye(6),
    ids=["ann", "bob", "cid", "dan", "eva", "flo"],
)
FOLDER = "model"


@pytest.fixture
def saved(tmp_path: Path) -> pprop.APPNPClassifier:
    """A model of a path of six friends, saved with its graph where the command runs."""
    file = tmp_path / "friends.npz"
    pprop.write_npz(GRAPH, file)
    model = pprop.APPNPClassifier(pprop.read_npz(file), hidden=4, max_epochs=10, random_state=0)
    model.fit([0, 1, 4, 5], ["chess", "chess", "tennis", "tennis"])
    model.save(tmp_path / FOLDER, source=pprop.GraphSource("npz", {"path": str(file)}))
    return model


def test_the_table_names_nodes_and_labels_and_ends_with_the_logits(pprop_here: Any, saved: Any) -> None:
    answer = pprop_here("explain", FOLDER, "bob", "--top", 4)
    assert (answer.code, answer.err) == (0, "")
    explanation = saved.explain(1, k=4)
    lines = answer.out.splitlines()
    assert lines[0] == f"Node bob is {explanation.prediction}."
    first, second = (classes for classes in lines[2].split()[3:])
    assert {first, second} == {"chess", "tennis"}
    rows = [line.split() for line in lines[4:]]
    given = {"ann": ["chess"], "bob": ["chess"], "eva": ["tennis"], "flo": ["tennis"]}  # two of four rows, at least
    pairs = zip(explanation.names, explanation.shares, strict=True)
    assert [row[:-2] for row in rows[:4]] == [[name, *given.get(name, []), f"{share:.1%}"] for name, share in pairs]
    assert rows[4][:3] == ["2", "other", "nodes"]
    assert rows[5][0] == "logit"
    columns = [list(saved.classes_).index(name) for name in (first, second)]
    assert [float(cell) for cell in rows[5][1:]] == pytest.approx(saved.logits_[1][columns], abs=6e-5)
    added = np.array([[float(cell) for cell in row[-2:]] for row in rows[:5]]).sum(axis=0)
    assert added == pytest.approx(saved.logits_[1][columns], abs=3e-4)


def test_json_has_one_record_per_node_and_contributor(pprop_here: Any, saved: Any) -> None:
    answer = pprop_here("explain", FOLDER, "flo", "cid", "--json")
    found = answer.record["explanations"]
    assert [one["name"] for one in found] == ["flo", "cid"]
    assert found[0]["contributors"] == saved.explain(5).to_json()["contributors"]
    labels = {one["name"]: one["label"] for one in found[0]["contributors"]}
    assert labels == {"ann": "chess", "bob": "chess", "cid": None, "dan": None, "eva": "tennis", "flo": "tennis"}


def test_the_fast_mode_says_how_much_it_may_miss(pprop_here: Any, saved: Any) -> None:
    answer = pprop_here("explain", FOLDER, "ann", "--mode", "fast", "--eps", "0.05")
    expected = saved.explain(0, mode="fast", eps=0.05)
    brief = pprop_here("explain", FOLDER, "ann", "--mode", "fast", "--eps", "0.05", "--top", "1")
    assert f"all other nodes, {len(expected.nodes) + expected.other_count - 1} of them reached" in brief.out
    assert answer.out.splitlines()[-1] == (
        f"All contributions together are at most {expected.error:.3g} too small in absolute values."
    )


def test_the_picture_is_written_once(pprop_here: Any, saved: Any, tmp_path: Path) -> None:
    assert pprop_here("explain", FOLDER, "ann", "--plot", "ann.svg").code == 0
    drawn = (tmp_path / "ann.svg").read_bytes()
    assert drawn.startswith(b"<?xml")
    again = pprop_here("explain", FOLDER, "ann", "--plot", "ann.svg")
    assert (again.code, "Choose another --plot" in again.err) == (4, True)
    assert pprop_here("explain", FOLDER, "ann", "--plot", "ann.svg", "--force").code == 0
    assert (tmp_path / "ann.svg").read_bytes() == drawn


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["zoe"], 3, "'zoe'"),
        (["ann", "--eps", "0.1"], 2, "--eps belongs to --mode fast: add it, or leave --eps out."),
        (["ann", "--top", "0"], 3, "--top must be"),
        (["ann", "--mode", "fast", "--eps", "2"], 3, "--eps must be"),
        (["ann", "--mode", "best"], 3, "best"),
        (["ann", "--plot", "ann.pdf"], 3, "--plot must end in .png or .svg"),
        (["ann", "bob", "--plot", "ann.png"], 2, "--plot draws one node, and 2 are given"),
        ([], 2, "NODE"),
    ],
)
def test_wrong_arguments_end_in_one_line(
    pprop_here: Any, saved: Any, arguments: list[str], code: int, sentence: str
) -> None:
    answer = pprop_here("explain", FOLDER, *arguments)
    assert (answer.code, answer.out, len(answer.err.splitlines())) == (code, "", 1)
    assert sentence in answer.err


def test_a_missing_model_is_named(pprop_here: Any) -> None:
    answer = pprop_here("explain", "nowhere", "3")
    assert (answer.code, answer.err) == (4, "pprop explain: There is no folder 'nowhere'.\n")


def test_positions_are_taken_where_a_graph_has_no_ids(pprop_here: Any, saved: Any, tmp_path: Path) -> None:
    pprop.write_npz(GRAPH.replace(ids=None), tmp_path / "bare.npz")
    answer = pprop_here("explain", FOLDER, "5", "--graph", "bare.npz", "--json")
    assert answer.record["explanations"][0]["name"] == 5
    assert answer.record["graph_changed"]
    assert "is not the graph of the training" in answer.err
    named = pprop_here("explain", FOLDER, "flo", "--graph", "bare.npz")
    assert (named.code, named.err.splitlines()[-1]) == (
        3,
        "pprop explain: NODE must be a position from 0 to 5, since the graph has no ids. Got 'flo'.",
    )
