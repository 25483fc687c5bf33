"""Nodes and labels as people have them give the fit that the plain form gives: positions and known labels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd  # pyright: ignore[reportMissingTypeStubs]
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from pprop import Graph, InputError, MLPNodeClassifier, PropagatedClassifier, load
from pprop.estimators.reading import node_positions
from pprop.estimators.targets import class_labels

QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 3, "random_state": 0, "backend": "reference"}
ALL = np.arange(90)
NAMES = np.array([f"node-{k}" for k in range(90)])


@pytest.fixture(scope="module")
def named(graph: Graph) -> Graph:
    return graph.replace(ids=NAMES)


@pytest.fixture(scope="module")
def plain(graph: Graph, nodes: Any, animals: Any) -> MLPNodeClassifier:
    return MLPNodeClassifier(graph, **QUICK).fit(np.sort(nodes), animals[np.argsort(nodes)])


FORMS = {
    "positions": lambda at: at.tolist(),
    "a column": lambda at: at[:, None],
    "a mask": lambda at: np.isin(ALL, at),
    "a list of truth values": lambda at: np.isin(ALL, at).tolist(),
    "a pandas mask": lambda at: pd.Series(np.isin(ALL, at)),
    "a nullable pandas mask": lambda at: pd.Series(np.isin(ALL, at), dtype="boolean"),
    "a tensor of positions": lambda at: torch.from_numpy(at),
    "a torch mask": lambda at: torch.from_numpy(np.isin(ALL, at)),
    "ids": lambda at: NAMES[at].tolist(),
    "an array of ids": lambda at: NAMES[at],
    "objects": lambda at: NAMES[at].astype(object),
    "a Series": lambda at: pd.Series(NAMES[at]),
    "an Index": lambda at: pd.Index(NAMES[at]),
    "a categorical": lambda at: pd.Series(NAMES[at], dtype="category"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_nodes_is_the_same_nodes(named: Graph, nodes: Any, form: str) -> None:
    at = np.sort(nodes)
    assert node_positions(FORMS[form](at), "X", "fit", named).tolist() == at.tolist()


@pytest.mark.parametrize("form", ["a mask", "ids", "a Series", "a torch mask"])
def test_every_method_takes_every_form(
    named: Graph, plain: MLPNodeClassifier, nodes: Any, animals: Any, form: str
) -> None:
    at, y = np.sort(nodes), animals[np.argsort(nodes)]
    model = MLPNodeClassifier(named, **QUICK).fit(FORMS[form](at), y)
    assert np.array_equal(model.logits_, plain.logits_)
    assert model.predict(FORMS[form](at)).tolist() == plain.predict(at).tolist()
    assert np.array_equal(model.predict_proba(FORMS[form](at)), plain.predict_proba(at))
    assert np.array_equal(model.decision_function(FORMS[form](at)), plain.decision_function(at))
    assert model.score(FORMS[form](at), y) == plain.score(at, y)
    explain: Any = model.explain
    explained = explain(FORMS[form](at), k=1)
    assert [one.node for one in explained] == at.tolist()


def test_no_nodes_mean_all_of_them(plain: MLPNodeClassifier) -> None:
    assert plain.predict().tolist() == plain.predict(ALL).tolist()
    assert np.array_equal(plain.predict_proba(), plain.predict_proba(ALL))
    assert np.array_equal(plain.decision_function(), plain.decision_function(ALL))


def test_integer_ids_go_through_ids_and_integers_stay_positions(
    graph: Graph, plain: MLPNodeClassifier, nodes: Any, animals: Any
) -> None:
    numbers = 1000 + ALL[::-1]
    numbered = graph.replace(ids=numbers)
    at, y = np.sort(nodes), animals[np.argsort(nodes)]
    model = MLPNodeClassifier(numbered, **QUICK).fit(ids=numbers[at], y=y)
    assert np.array_equal(model.logits_, plain.logits_)
    assert model.predict(ids=[1089, 1000]).tolist() == model.predict([0, 89]).tolist()
    assert model.score(ids=numbers[at], y=y) == plain.score(at, y)
    assert model.explain(ids=1089, k=1).node == 0
    assert [one.name for one in model.explain(ids=[1000, 1001], k=1)] == [1000, 1001]
    with pytest.raises(InputError, match=r"Got 1001 at index 0 instead. Integers are positions; pass ids as ids="):
        model.predict([1001])


def test_a_node_is_explained_by_its_id(named: Graph, nodes: Any, animals: Any) -> None:
    model = MLPNodeClassifier(named, **QUICK).fit(nodes, animals)
    assert model.explain("node-7").name == "node-7"
    assert model.explain(7).node == model.explain("node-7").node == 7


def test_stopping_nodes_come_in_any_form(named: Graph, nodes: Any, animals: Any) -> None:
    train, watched = nodes[:24], nodes[24:]
    expected = MLPNodeClassifier(named, **QUICK).fit(train, animals[:24], stopping=(watched, animals[24:]))
    order = np.argsort(watched)
    whole = np.full(90, "?", dtype=object)
    whole[watched] = animals[24:]
    for pair in (
        (NAMES[watched], animals[24:]),
        (np.isin(ALL, watched), animals[24:][order]),
        (np.isin(ALL, watched), whole),
        (np.setdiff1d(ALL, train), whole[np.setdiff1d(ALL, train)]),
    ):
        found = MLPNodeClassifier(named, **QUICK).fit(train, animals[:24], stopping=pair)
        assert sorted(found.stopping_nodes_) == sorted(expected.stopping_nodes_)
        np.testing.assert_allclose(found.logits_, expected.logits_, atol=1e-5)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (
            ["node-700"],
            "must be an array of ids of this graph. Got the unknown id 'node-700' at index 0 .* Did you mean",
        ),
        (["node-1", 3], "must be a one-dimensional array of node ids, all integers or all strings"),
        (np.ones(89, dtype=bool), "must be a mask of 90 truth values, one per node, where it is one. Got 89 truth"),
        ([1.0, 2.0], "dtype float64"),
        (np.array([True, None] * 45, dtype=object), "truth values, none missing, .* Fill the missing ones"),
        (pd.array([True, False, None] * 30, dtype="boolean"), "truth values, none missing, .* Fill the missing ones"),
        (torch.ones(90, 10, dtype=torch.bool), r"Got ndarray of shape \(90, 10\) .* choose one, such as mask\[:, 0\]"),
        (5, "Got 5 instead. Put a single node into a list"),
    ],
)
def test_wrong_nodes_are_named(named: Graph, X: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=f"The 'X' parameter of predict .*{sentence}"):
        node_positions(X, "X", "predict", named)


def test_the_nearest_ids_are_named_among_many() -> None:
    import scipy.sparse as sp

    many = Graph.from_scipy(sp.csr_array((20_000, 20_000)), ids=[f"paper/{k}" for k in range(20_000)])
    with pytest.raises(InputError, match=r"unknown id 'paper/40x' at index 0 .* Did you mean 'paper/40'"):
        many.positions(["paper/40x"])
    with pytest.raises(InputError, match=r"unknown id 3 at index 0 instead. The ids of this graph are text."):
        many.positions([3])


def test_text_and_ids_need_a_graph_with_ids(graph: Graph, plain: MLPNodeClassifier) -> None:
    with pytest.raises(InputError, match=r"since this graph has no ids. Got text, which would be ids, instead"):
        plain.predict(["a"])
    with pytest.raises(InputError, match=r"The 'ids' parameter of predict .* since this graph has no ids."):
        plain.predict(ids=[3])
    with pytest.raises(InputError, match=r"The 'ids' parameter of predict must be None where X is given"):
        plain.predict([3], ids=[3])


UNKNOWN = {
    "-1 among integers": [2, -1, 5, -1, 2],
    "-1 among floats": np.array([2.0, -1.0, 5.0, -1.0, 2.0]),
    "None": [2, None, 5, None, 2],
    "NaN": [2.0, np.nan, 5, np.nan, 2],
    "pd.NA": pd.Series([2, None, 5, None, 2], dtype="Int64"),
    "objects": np.array([2, pd.NA, 5, pd.NaT, 2], dtype=object),
    "masked": np.ma.MaskedArray([2, 7, 5, 7, 2], mask=np.array([False, True, False, True, False])),
    "categories": pd.Series([2, None, 5, None, 2], dtype="category"),
    "texts among integers": [2, "?", 5, "NA", 2],
    "a tensor": torch.tensor([2, -1, 5, -1, 2]),
}


@pytest.mark.parametrize("form", UNKNOWN)
def test_unknown_integer_labels_are_left_out(form: str) -> None:
    found = class_labels(UNKNOWN[form], "y", "fit", 5)
    assert found.known.tolist() == [True, False, True, False, True]
    assert found.values[found.known].tolist() == [2, 5, 2]
    assert found.values.dtype == np.int64


@pytest.mark.parametrize("mark", ["", " ", "NA", "nan", "None", "?", "-1", None, np.nan, pd.NA])
def test_unknown_text_labels_are_left_out(mark: Any) -> None:
    for y in (["a", mark, "b"], np.array(["a", mark, "b"], dtype=object), pd.Series(["a", mark, "b"])):
        found = class_labels(y, "y", "fit", 3)
        assert found.values[found.known].tolist() == ["a", "b"]
        assert found.known.tolist() == [True, False, True]


def test_the_list_of_markers_can_be_changed() -> None:
    found = class_labels(["NA", "unknown", "b"], "y", "fit", 3, missing=("unknown",))
    assert found.values[found.known].tolist() == ["NA", "b"]
    found = class_labels([-1, -999, 4], "y", "fit", 3, missing=("-999",))
    assert found.values[found.known].tolist() == [-1, 4]


def test_minus_one_and_one_other_are_two_classes_and_a_warning_says_so(graph: Graph) -> None:
    y = np.where(ALL < 45, -1, 1)
    with pytest.warns(UserWarning, match=r"are -1 and one other, so -1 is taken for a class") as told:
        model = MLPNodeClassifier(graph, **QUICK).fit(ALL[::3], y[::3])
    assert told[0].filename == __file__
    assert model.classes_.tolist() == [-1, 1]
    assert model.score(ALL, y) == np.mean(model.predict() == y)  # where it is a class, it is one here, too
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MLPNodeClassifier(graph, **QUICK).fit(ALL[::3], y[::3], missing_labels=())
        found = class_labels(y, "y", "fit", 90, missing=("-1",))
    assert found.values[found.known].tolist() == [1] * 45
    for way in ("leave these nodes out or pass missing_labels=['-1']", "pass missing_labels=()"):
        assert way in str(told[0].message)


def test_all_nodes_and_labels_with_unknown_ones_are_the_known_nodes(graph: Graph, nodes: Any) -> None:
    labels = np.full(90, -1)
    labels[nodes] = nodes // 30
    labelled = graph.replace(labels=labels)
    at = np.sort(nodes)
    expected = MLPNodeClassifier(labelled, **QUICK).fit(at, at // 30)
    for X, y in ((ALL, labelled.labels), (None, labelled.labels), (labels >= 0, labels), (labels >= 0, at // 30)):
        model = MLPNodeClassifier(labelled, **QUICK).fit(X, y)
        assert model.classes_.tolist() == [0, 1, 2]
        assert np.array_equal(model.logits_, expected.logits_)
        assert model.known_nodes_.tolist() == at.tolist()
    assert model.n_unlabelled_ == 0
    assert MLPNodeClassifier(labelled, **QUICK).fit(ALL, labels).n_unlabelled_ == 54


def test_a_propagated_classifier_treats_nodes_and_labels_alike(named: Graph, nodes: Any, animals: Any) -> None:
    expected = PropagatedClassifier(LogisticRegression(), named, backend="reference").fit(nodes, animals)
    whole = np.full(90, None, dtype=object)
    whole[nodes] = animals
    for X, y in ((NAMES[nodes], animals), (ALL, whole), (np.isin(ALL, nodes), whole)):
        model = PropagatedClassifier(LogisticRegression(), named, backend="reference").fit(X, y)
        np.testing.assert_allclose(model.logits_, expected.logits_, atol=1e-4)  # the order of the nodes is another
    assert PropagatedClassifier(LogisticRegression(), named).fit(ALL, whole).n_unlabelled_ == 54


def test_score_leaves_unknown_labels_out_with_their_weights(plain: MLPNodeClassifier, nodes: Any, animals: Any) -> None:
    whole = np.full(90, "", dtype=object)
    whole[nodes] = animals
    weights = np.linspace(1, 2, 90)
    assert plain.score(ALL, whole) == plain.score(nodes, animals)
    right = plain.predict(np.sort(nodes)) == whole[np.sort(nodes)]
    weighted = np.average(right, weights=weights[np.sort(nodes)])
    assert plain.score(ALL, whole, weights) == pytest.approx(weighted)
    assert plain.score(np.isin(ALL, nodes), whole, weights) == pytest.approx(weighted)
    with pytest.raises(InputError, match=r"of score must be labels of which some are known. Got 2 labels, all unknown"):
        plain.score([1, 2], [None, "NA"])
    with pytest.raises(InputError, match=r"of score must be labels like the classes, 'ant' and so on. Got 3 instead"):
        plain.score([1, 2], [3, 4])
    with pytest.raises(InputError, match=r"of score must be an array of 2 weights, one per label"):
        plain.score([1, 2], ["ant", "bee"], [1.0])
    with pytest.raises(InputError, match=r"of score must be an array of at least one node. Got none"):
        plain.score([], [])


def test_score_remembers_what_stood_for_an_unknown_label(graph: Graph, nodes: Any, animals: Any) -> None:
    y = animals.astype(object)
    y[:6] = "not known"
    model = MLPNodeClassifier(graph, **QUICK).fit(nodes, y, missing_labels=["not known"])
    assert model.n_unlabelled_ == 6
    assert model.score(nodes, y) == model.score(nodes[6:], animals[6:])


def test_truth_values_are_classes_and_are_saved(graph: Graph, tmp_path: Any) -> None:
    y = ALL < 45
    model = MLPNodeClassifier(graph, **QUICK).fit(ALL[::3], y[::3])
    assert model.classes_.tolist() == [False, True]
    expected = MLPNodeClassifier(graph, **QUICK).fit(ALL[::3], y[::3].astype(int))
    assert np.array_equal(model.logits_, expected.logits_)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", graph=graph)
    assert again.predict().dtype == np.bool_
    assert again.predict().tolist() == model.predict().tolist()
    assert MLPNodeClassifier(graph, **QUICK).fit(ALL[:60:3], [True, None, *y[6:60:3]]).n_unlabelled_ == 1


def test_an_impossible_list_of_markers_is_refused(graph: Graph) -> None:
    with pytest.raises(InputError, match=r"The 'missing_labels' parameter of fit must be a sequence of texts"):
        MLPNodeClassifier(graph).fit([0, 1], [0, 1], missing_labels="?")
    with pytest.raises(InputError, match=r"'missing_labels' parameter .* Got None among them instead"):
        MLPNodeClassifier(graph).fit([0, 1], [0, 1], missing_labels=[None])  # pyright: ignore[reportArgumentType]
