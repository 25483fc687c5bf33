"""``pprop live``: edits of a graph from a file or standard input, and the predictions that follow them."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import pprop

pytestmark = pytest.mark.slow

NAMES = ["ann", "bob", "cid", "dan", "eva", "flo"]
GRAPH = pprop.Graph.from_scipy(
    sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(6, 6)),
    features=np.repeat(np.eye(2, dtype=np.float32), 3, axis=0) + np.float32(0.1),
    ids=NAMES,
    feature_names=["reads", "runs"],
)
FEATURES = np.asarray(GRAPH.features)
FOLDER = "model"


def save(graph: pprop.Graph, tmp_path: Path) -> pprop.APPNPClassifier:
    file = tmp_path / "friends.npz"
    pprop.write_npz(graph, file)
    model = pprop.APPNPClassifier(
        pprop.read_npz(file),
        alpha=0.2,
        steps=3,
        hidden=4,
        dropout=0.0,
        learning_rate=0.05,
        max_epochs=60,
        random_state=0,
        scaling="l1",
    )
    model.fit([0, 1, 4, 5], ["chess", "chess", "tennis", "tennis"], stopping=0.5)
    model.save(tmp_path / FOLDER, source=pprop.GraphSource("npz", {"path": str(file)}))
    return model


@pytest.fixture
def saved(tmp_path: Path) -> pprop.APPNPClassifier:
    """A model of a path of six friends, saved with its graph where the command runs."""
    return save(GRAPH, tmp_path)


def alone(model: Any, features: Any) -> Any:
    """The network by hand: two layers without biases on features whose rows sum to one."""
    X = np.asarray(features, float) / np.asarray(features, float).sum(axis=1, keepdims=True)
    first, second = model.weights_.values()
    return np.maximum(X @ first, 0) @ second


def exact(model: Any, A: Any, features: Any) -> Any:
    """The fixed point by a dense solve, with means over neighbours, as on a graph of one's own."""
    A_loop = np.asarray(A, float) + np.eye(len(A))
    T = A_loop / A_loop.sum(axis=1, keepdims=True)
    return 0.2 * np.linalg.solve(np.eye(len(A)) - 0.8 * T, alone(model, features))


def softmax(Z: Any) -> Any:
    powers = np.exp(Z - Z.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


EDITS = """# friends of today
+ ann flo 2
= ann flo 2.5
- cid dan

node 'gus gray' reads=0.25
+ "gus gray" eva
features bob 0.0 1.0
remove cid
"""


def test_the_predictions_are_those_of_the_edited_graph_solved_anew(pprop_here: Any, saved: Any, tmp_path: Path) -> None:
    (tmp_path / "edits.txt").write_text(EDITS)
    answer = pprop_here("live", FOLDER, "edits.txt", "--tol", "1e-6", "--out", "after.csv", "--json")
    assert (answer.code, answer.err) == (0, "")
    A = np.zeros((7, 7))
    for u, v, weight in [(0, 1, 1), (1, 2, 1), (3, 4, 1), (4, 5, 1), (0, 5, 2.5), (6, 4, 1)]:
        A[u, v] = A[v, u] = weight
    X = np.vstack([FEATURES, [[0.25, 0.0]]])
    X[1] = [0.0, 1.0]
    left = [0, 1, 3, 4, 5, 6]
    Z = exact(saved, A[np.ix_(left, left)], X[left])
    rows = list(csv.DictReader((tmp_path / "after.csv").read_text().splitlines()))
    assert [row["id"] for row in rows] == ["ann", "bob", "dan", "eva", "flo", "gus gray"]
    assert [row["class"] for row in rows] == saved.classes_[Z.argmax(axis=1)].tolist()
    found = np.array([[float(row["p_chess"]), float(row["p_tennis"])] for row in rows])
    np.testing.assert_allclose(found, softmax(Z), atol=1e-5)

    record = answer.record
    assert [(one["line"], one["edit"]) for one in record["edits"]] == [
        (number, line) for number, line in enumerate(EDITS.split("\n"), start=1) if line and number != 1
    ]
    assert record["entries"] > 0
    assert record["nodes"] == 6
    assert record["bound"] == pytest.approx(1e-6)
    start = exact(saved, GRAPH.adjacency.toarray(), FEATURES)
    assert record["difference"]["largest"] == pytest.approx(np.abs(start - saved.logits_).max(), abs=1e-5)
    before = saved.classes_[start.argmax(axis=1)].tolist()
    expected = {
        name: (before[at] if at < 6 else None, row["class"])
        for name, at, row in zip([*(NAMES[k] for k in left[:-1]), "gus gray"], left, rows, strict=True)
        if at == 6 or before[at] != row["class"]
    }
    assert {one["node"]: (one["before"], one["after"]) for one in record["changed"]} == expected
    assert "bob" in expected


@pytest.mark.parametrize(("factor", "certain"), [(0.9, True), (1.1, False)])
def test_a_class_is_certain_where_no_error_within_the_bound_could_change_it(
    pprop_here: Any, saved: Any, monkeypatch: pytest.MonkeyPatch, factor: float, certain: bool
) -> None:
    (logits,) = alone(saved, [[1.0, 0.0]])  # what a node without edges gets, of degree one
    tol = factor * abs(logits[0] - logits[1]) / 2
    monkeypatch.setattr("sys.stdin", io.StringIO("node gus 1 0\n"))
    (new,) = pprop_here("live", FOLDER, "--tol", tol, "--json").record["changed"]
    assert new == {"node": "gus", "before": None, "after": "chess", "bound": pytest.approx(tol), "certain": certain}


def test_people_get_the_nodes_of_another_class_and_the_bound(
    pprop_here: Any, saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("node gus 1 0\n"))
    answer = pprop_here("live", FOLDER)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0] == "1 edit: 0 entries of the adjacency read, 0 corrections."
    assert lines[1] == "Predictions are the fixed point at alpha 0.2, no logit further than 0.0001 from it."
    assert lines[2].startswith("At the start it differs from PowerIteration(steps=3) by at most ")
    assert lines[3] == "1 node new or of another class than at the start:"
    assert [line.split() for line in lines[5:]] == [
        ["node", "before", "after", "proven"],
        ["----", "------", "-----", "------"],
        ["gus", "chess", "yes"],
    ]


def test_no_edits_change_nothing(pprop_here: Any, saved: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("# nothing yet\n\n"))
    record = pprop_here("live", FOLDER, "-", "--json").record
    assert (record["edits"], record["changed"], record["entries"]) == ([], [], 0)
    assert record["fingerprint"] == saved.graph_.fingerprint


def test_nodes_without_ids_are_positions_and_columns_without_names_too(
    pprop_here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = sparse.csr_array(FEATURES)
    model = save(GRAPH.replace(ids=None, feature_names=None, features=features), tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("remove 0\nnode 6 1=3\nnode 7 0=1 1=1\n+ 6 5\n"))
    answer = pprop_here("live", FOLDER, "--tol", "1e-6", "--json", "--out", "after.csv")
    assert [one["node"] for one in answer.record["changed"] if one["before"] is None] == [6, 7]
    rows = list(csv.DictReader((tmp_path / "after.csv").read_text().splitlines()))
    assert [row["node"] for row in rows] == ["1", "2", "3", "4", "5", "6", "7"]
    A = np.zeros((8, 8))
    A[:6, :6] = GRAPH.adjacency.toarray()
    A[6, 5] = A[5, 6] = 1
    Z = exact(model, A[1:, 1:], np.vstack([features.toarray(), [[0, 3], [1, 1]]])[1:])
    np.testing.assert_allclose([float(row["p_chess"]) for row in rows], softmax(Z)[:, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("+ ann zoe", "There is no node 'zoe' in the graph."),
        ("remove zoe", "There is no node 'zoe' in the graph."),
        ("+ ann bob", "There is already an edge between ann and bob."),
        ("+ bob ann", "There is already an edge between bob and ann."),
        ("- ann cid", "There is no edge between ann and cid."),
        ("+ ann cid nan", "A weight is a finite number. Got 'nan' instead."),
        ("+ ann cid inf", "A weight is a finite number. Got 'inf' instead."),
        ("+ ann cid heavy", "A weight is a finite number. Got 'heavy' instead."),
        ("+ ann cid 0", "A weight is a positive number. Got '0' instead."),
        ("+ ann", "An edit '+' is written: + A B [WEIGHT]."),
        ("= ann bob", "An edit '=' is written: = A B WEIGHT."),
        ("= ann bob 0", "A weight is a positive number. Got '0' instead."),
        ("= ann dan 2", "There is no edge between ann and dan."),
        ("- ann bob 2", "An edit '-' is written: - A B."),
        ("remove ann bob", "An edit 'remove' is written: remove NAME."),
        ("link ann cid", "An edit begins with +, -, =, node, features, remove. Got 'link' instead."),
        ("+ ann 'cid", "A quotation is not closed"),
        ("node gus", "An edit 'node' is written: node NAME FEATURES..."),
        ("node ann 0 1", "'ann', which is in use"),
        ("node gus 1", "A node has 2 features. Got 1 instead; or write COLUMN=VALUE."),
        ("node gus 1 nan", "A feature is a finite number. Got 'nan' instead."),
        ("node gus reads=1 2", "all written COLUMN=VALUE, or all as numbers"),
        ("node gus reads=1 reads=2", "The feature 'reads' is given more than once."),
        ("features ann sings=1", "There is no feature 'sings': the columns are 'reads' to 'runs'."),
        ("features zoe 0 1", "There is no node 'zoe' in the graph."),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_printed_or_written(
    pprop_here: Any, saved: Any, tmp_path: Path, line: str, sentence: str
) -> None:
    (tmp_path / "edits.txt").write_text(f"+ ann flo\n\n{line}\n- ann flo\n")
    answer = pprop_here("live", FOLDER, "edits.txt", "--out", "after.csv")
    assert (answer.code, answer.out, len(answer.err.splitlines())) == (3, "", 1)
    assert answer.err.startswith(f"pprop live: Line 3 of 'edits.txt', {line!r}: ")
    assert sentence in answer.err
    assert not (tmp_path / "after.csv").exists()


def test_a_name_is_that_of_the_node_that_has_it_at_that_line(
    pprop_here: Any, saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("remove ann\nnode ann 0 1\n+ ann cid\nremove ann\n+ ann cid\n"))
    answer = pprop_here("live", FOLDER)
    assert answer.err == "pprop live: Line 5 of standard input, '+ ann cid': There is no node 'ann' in the graph.\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("remove ann\nnode ann 0 1\n+ ann cid\n"))
    record = pprop_here("live", FOLDER, "--json").record
    assert (record["nodes"], [one["before"] for one in record["changed"] if one["node"] == "ann"]) == (6, [None])


def test_wrong_positions_are_named(pprop_here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(GRAPH.replace(ids=None, feature_names=None), tmp_path)
    for edits, sentence in {
        "+ 0 6": "Line 1 of standard input, '+ 0 6': The 'v' parameter of add_edge must be an integer from 0 to 5. Got 6",
        "remove 3\n+ 0 3": "Line 2 of standard input, '+ 0 3': The 'v' parameter of add_edge must be the position of a "
        "node of the graph. Got 3, which was removed",
        "+ 0 ann": "The nodes of this graph have positions. Got 'ann' instead.",
        "node 9 0 1": "and the next new one is 6. Got 9 instead.",
        "node 6 2=1": "There is no feature '2': they have no names, so columns are '0' to '1'.",
    }.items():
        monkeypatch.setattr("sys.stdin", io.StringIO(edits))
        answer = pprop_here("live", FOLDER)
        assert (answer.code, answer.out) == (3, "")
        assert sentence in answer.err


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["absent.txt"], 4, "There is no file 'absent.txt'."),
        (["latin.txt"], 3, "EDITS must be text in UTF-8. Got 'latin.txt' with other bytes instead."),
        (["empty.txt", "--tol", "0"], 3, "--tol must be"),
        (["empty.txt", "--tol", "1e-18"], 3, "--tol must be a float of at least"),
        (["empty.txt", "--out", "after.txt"], 3, "--out must end in .csv or .parquet"),
        (["empty.txt", "--out", "empty.txt.csv"], 4, "is already there"),
    ],
)
def test_wrong_arguments_end_in_one_line(
    pprop_here: Any, saved: Any, tmp_path: Path, arguments: list[str], code: int, sentence: str
) -> None:
    (tmp_path / "latin.txt").write_bytes("+ ann J\xfcrgen\n".encode("latin-1"))
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "empty.txt.csv").write_text("")
    answer = pprop_here("live", FOLDER, *arguments)
    assert (answer.code, answer.out, len(answer.err.splitlines())) == (code, "", 1)
    assert sentence in answer.err


def test_a_model_that_does_not_propagate_is_refused(pprop_here: Any, tmp_path: Path) -> None:
    (tmp_path / "edits.txt").write_text("+ ann flo\n")
    pprop.write_npz(GRAPH, tmp_path / "friends.npz")
    graph = pprop.read_npz(tmp_path / "friends.npz")
    model = pprop.MLPNodeClassifier(graph, hidden=4, max_epochs=3, random_state=0)
    model.fit([0, 1, 4, 5], [0, 0, 1, 1], stopping=0.5).save(
        tmp_path / FOLDER, source=pprop.GraphSource("npz", {"path": "friends.npz"})
    )
    answer = pprop_here("live", FOLDER, "edits.txt")
    assert (answer.code, "live needs a model that propagates" in answer.err) == (3, True)
