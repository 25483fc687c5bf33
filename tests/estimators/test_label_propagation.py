"""LabelPropagationClassifier against dense matrices and scikit-learn's LabelSpreading."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.semi_supervised import LabelSpreading

from pprop import FormatError, Graph, InputError, LabelPropagationClassifier, live, load, transition_matrix

ALL = np.arange(90)


def spreading(graph: Graph, **settings: Any) -> LabelPropagationClassifier:
    options: dict[str, Any] = {"backend": "reference", **settings}
    return LabelPropagationClassifier(graph, **options)


def one_hot(nodes: Any, animals: Any, n: int = 90) -> Any:
    Y = np.zeros((n, 3))
    Y[nodes, np.searchsorted(["ant", "bee", "cat"], animals)] = 1
    return Y


def exact(graph: Graph, Y: Any, alpha: float, normalization: str = "row", self_loops: bool = True) -> Any:
    T = transition_matrix(graph, normalization, self_loops).to_scipy().toarray()
    return alpha * np.linalg.solve(np.eye(len(T)) - (1 - alpha) * T, Y)


def shares(Z: Any, Y: Any) -> Any:
    """Divided by their sums; the shares of the labels where nothing arrives."""
    Z = np.where(Z.any(axis=1, keepdims=True), Z, Y.sum(axis=0))  # pyright: ignore[reportConstantRedefinition]
    return Z / Z.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def bare(graph: Graph) -> Graph:
    return graph.replace(features=None)


@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize("self_loops", [True, False])
def test_many_steps_are_the_dense_solution(
    bare: Graph, nodes: Any, animals: Any, normalization: str, self_loops: bool
) -> None:
    model = spreading(bare, alpha=0.2, steps=200, normalization=normalization, self_loops=self_loops)
    Y = one_hot(nodes, animals)
    expected = shares(exact(bare, Y, 0.2, normalization, self_loops), Y)
    np.testing.assert_allclose(model.fit(nodes, animals).predict_proba(), expected, atol=1e-9)
    assert model.predict().tolist() == np.array(["ant", "bee", "cat"])[expected.argmax(axis=1)].tolist()
    assert (model.alpha_, model.n_features_in_, model.record_.train_nodes) == (0.2, 1, 36)


def test_it_is_label_spreading_where_the_conventions_agree(bare: Graph, nodes: Any, animals: Any) -> None:
    W = bare.adjacency.toarray()
    labels = np.full(90, -1)
    labels[nodes] = np.searchsorted(["ant", "bee", "cat"], animals)
    kind: Any = LabelSpreading
    linked = W.any(axis=1)
    theirs = kind(kernel=lambda a, b: W[np.ix_(linked, linked)], alpha=0.8, max_iter=1000, tol=1e-12)
    theirs.fit(ALL[linked][:, None], labels[linked])
    model = spreading(bare, alpha=0.2, steps=300, normalization="sym", self_loops=False).fit(ALL, labels)
    np.testing.assert_allclose(model.predict_proba(linked), theirs.label_distributions_, atol=1e-8)
    assert model.predict(linked).tolist() == theirs.transduction_.tolist()


def test_it_finds_the_communities_without_a_feature(bare: Graph, nodes: Any, animals: Any) -> None:
    others = np.setdiff1d(ALL, nodes)
    truth = np.array(["ant", "bee", "cat"])[others // 30]
    assert spreading(bare).fit(nodes, animals).score(others, truth) > 0.9


@pytest.mark.parametrize("steps", [2, 50])
def test_a_node_that_no_label_reaches_has_the_shares_of_the_labels(steps: int) -> None:
    """A path of six nodes, the first two labelled, and an isolated pair; two steps do not reach the end of the path."""
    edges = np.zeros((9, 9))
    for k in (0, 1, 2, 3, 4, 7):
        edges[k, k + 1] = edges[k + 1, k] = 1
    graph = Graph.from_scipy(sparse.csr_array(edges))
    model = spreading(graph, steps=steps).fit([0, 1, 1], ["a", "b", "b"])
    np.testing.assert_allclose(model.predict_proba([6, 7, 8]), [[1 / 3, 2 / 3]] * 3, rtol=1e-12)
    T = transition_matrix(graph, "row").to_scipy().toarray()
    Y = np.zeros((9, 2))
    Y[0, 0], Y[1, 1] = 1, 2
    last = np.linalg.matrix_power(0.9 * T, steps) @ Y
    Z = last + 0.1 * sum(np.linalg.matrix_power(0.9 * T, k) @ Y for k in range(steps))
    reached = Z.any(axis=1)
    assert reached.sum() == (4 if steps == 2 else 6)
    np.testing.assert_allclose(model.predict_proba(reached), shares(Z, Y)[reached], rtol=1e-12, atol=1e-90)
    np.testing.assert_allclose(model.predict_proba(~reached), [[1 / 3, 2 / 3]] * (9 - reached.sum()), rtol=1e-12)
    for node in (0, 3, 5, 7, 8):
        assert model.explain(node).prediction == model.predict([node])[0]


def test_weights_of_nodes_and_classes_multiply_their_labels(bare: Graph, nodes: Any, animals: Any) -> None:
    weights = np.linspace(0, 2, 36)
    Y = one_hot(nodes, animals)
    Y[nodes] *= weights[:, None]
    model = spreading(bare, alpha=0.2, steps=200).fit(nodes, animals, sample_weight=weights)
    np.testing.assert_allclose(model.predict_proba(), shares(exact(bare, Y, 0.2), Y), atol=1e-9)
    assert nodes[0] not in model.known_nodes_  # its weight is 0
    few = nodes[np.r_[0:36][(animals != "cat") | (np.arange(36) < 12)]]
    names = np.array(["ant", "bee", "cat"])[few // 30]
    plain = one_hot(few, names)
    even, odd = plain / plain.sum(axis=0), plain * [1, 1, 3]
    balanced = spreading(bare, alpha=0.2, steps=200, class_weight="balanced").fit(few, names)
    np.testing.assert_allclose(balanced.predict_proba(), shares(exact(bare, even, 0.2), even), atol=1e-9)
    named = spreading(bare, alpha=0.2, steps=200, class_weight={"cat": 3}).fit(few, names)
    np.testing.assert_allclose(named.predict_proba(), shares(exact(bare, odd, 0.2), odd), atol=1e-9)


def test_labels_of_stopping_nodes_are_labels_too(bare: Graph, nodes: Any, animals: Any) -> None:
    together = spreading(bare).fit(nodes, animals)
    apart = spreading(bare).fit(nodes[:20], animals[:20], stopping=(nodes[20:], animals[20:]))
    assert np.array_equal(together.logits_, apart.logits_)
    with pytest.raises(InputError, match=r"must be None, or a pair \(nodes, y\) of more labels to spread"):
        spreading(bare).fit(nodes, animals, stopping=0.2)


def test_a_label_given_twice_counts_twice(bare: Graph, nodes: Any, animals: Any) -> None:
    twice = spreading(bare).fit([*nodes, *nodes[:5]], [*animals, *animals[:5]])
    weighted = spreading(bare).fit(nodes, animals, sample_weight=[2.0] * 5 + [1.0] * 31)
    np.testing.assert_allclose(twice.logits_, weighted.logits_, rtol=1e-12)


def test_contributions_add_up_to_what_was_spread(bare: Graph, nodes: Any, animals: Any) -> None:
    model = spreading(bare, alpha=0.2, steps=100).fit(nodes, animals)
    Z = exact(bare, one_hot(nodes, animals), 0.2)
    for explanation in model.explain([3, 50], k=100):
        np.testing.assert_allclose(
            explanation.contributions.sum(axis=0) + explanation.others, Z[explanation.node], atol=1e-6
        )
        assert explanation.quantity == "probability"
        assert explanation.prediction == model.predict([explanation.node])[0]
        assert set(explanation.nodes[explanation.shares > 0]) <= set(nodes)  # only labels contribute
        assert None not in explanation.labels[: np.count_nonzero(explanation.shares)]


def test_a_saved_model_has_the_same_bits_on_its_graph_and_no_other(
    bare: Graph, nodes: Any, animals: Any, tmp_path: Path
) -> None:
    model = LabelPropagationClassifier(bare, class_weight="balanced")
    model.fit(nodes, animals, sample_weight=np.linspace(1, 2, 36)).save(tmp_path / "model", accuracy=0.9)
    again = load(tmp_path / "model", graph=bare)
    assert isinstance(again, LabelPropagationClassifier)
    assert np.array_equal(again.logits_, model.logits_)
    assert again.explain(4).names == model.explain(4).names
    assert again.accuracy_ == 0.9
    assert again.get_params() == model.get_params()
    other = bare.replace(ids=[f"n{k}" for k in range(90)])
    for use in (lambda: load(tmp_path / "model", graph=other), lambda: model.on(other)):
        with pytest.raises(
            InputError, match=r"The labels that a LabelPropagationClassifier spreads belong to .* Fit one"
        ):
            use()
    assert np.array_equal(model.on(bare).logits_, model.logits_)
    with pytest.raises(NotFittedError):
        spreading(bare).on(other)


def test_amounts_of_a_damaged_file_are_refused(bare: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    model: Any = spreading(bare).fit(nodes, animals)
    for amounts in (-np.ones(36), np.zeros(36), np.ones(35), np.full(36, np.nan), np.ones(36, dtype=np.float32)):
        model.fitted_ = replace(model.fitted_, extras={"amounts": amounts})
        model.save(tmp_path / "model", overwrite=True)
        with pytest.raises(FormatError, match=r"is damaged: .* given the amounts of 36 labels"):
            load(tmp_path / "model", graph=bare)


def test_the_manifest_states_labels_and_no_epochs(bare: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    spreading(bare).fit(nodes, animals).save(tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    training = manifest["training"]
    assert (training["epochs"], training["stopping_accuracy"], training["train_nodes"]) == (0, None, 36)
    assert manifest["model"]["parameters"] == 0


def test_scikit_learns_tools_and_pickle_work(bare: Graph, nodes: Any, animals: Any) -> None:
    model = spreading(bare)
    twin: Any = clone(model)
    assert twin.get_params() == model.get_params()
    options: dict[str, Any] = {"cv": 2, "error_score": "raise"}
    search = GridSearchCV(model, {"alpha": [0.05, 0.5]}, **options).fit(nodes, animals)
    assert search.best_estimator_.graph is bare
    assert cross_val_score(model, nodes, animals, cv=3).mean() > 0.8
    fitted = model.fit(nodes, animals)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).logits_, fitted.logits_)  # noqa: S301


def test_a_live_graph_says_that_there_is_no_network(bare: Graph, nodes: Any, animals: Any) -> None:
    with pytest.raises(InputError, match=r"Got LabelPropagationClassifier, which spreads labels, instead"):
        live(spreading(bare).fit(nodes, animals))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"alpha": 2.0}, "'alpha' parameter of LabelPropagationClassifier must be"),
        ({"steps": -1}, "'steps' parameter of LabelPropagationClassifier must be"),
        ({"class_weight": "even"}, "'class_weight' parameter of LabelPropagationClassifier must be"),
        ({"graph": 3}, "'graph' parameter of LabelPropagationClassifier must be a Graph"),
    ],
)
def test_impossible_settings_are_named(bare: Graph, settings: dict[str, Any], sentence: str) -> None:
    options: dict[str, Any] = {"graph": bare, **settings}
    with pytest.raises(InputError, match=sentence):
        LabelPropagationClassifier(**options).fit([0, 1], [0, 1])
