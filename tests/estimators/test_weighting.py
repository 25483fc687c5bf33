"""Class weights, sample weights, biases and training without early stopping, as settings of the classifiers."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight

import pprop
from pprop import Graph, InputError, Split
from pprop.estimators.reading import Given, class_weights, node_weights
from pprop.estimators.targets import Classes
from pprop.settings import MAX_EPOCHS

Nodes = NDArray[np.int64]
QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 15, "random_state": 3, "backend": "reference"}
TRAINED = {
    pprop.APPNPClassifier: {"hidden": 8, "steps": 2},
    pprop.APPNPClassifierCV: {"hidden": 8, "steps": 2, "alphas": (0.1, 0.5)},
    pprop.APPNPEnsembleClassifier: {"hidden": 8, "steps": 2, "members": 2, "rounds": 1},
    pprop.PPNPClassifier: {"hidden": 8},
    pprop.SolvedPPNPClassifier: {"hidden": 8},
    pprop.MLPNodeClassifier: {"hidden": 8},
    pprop.GCNClassifier: {"hidden": 8},
    pprop.NGCNClassifier: {"hidden": 8, "powers": 2, "replicas": 1},
    pprop.GATClassifier: {"heads": 2, "units": 4},
    pprop.JKClassifier: {"hidden": 8},
}
SHORT: dict[str, Any] = {"max_epochs": 3, "random_state": 3, "backend": "reference"}


def rare(animals: NDArray[np.str_], nodes: Nodes) -> tuple[Nodes, NDArray[np.str_]]:
    """Nodes of which few are cats."""
    keep = np.concatenate([np.flatnonzero(animals != "cat"), np.flatnonzero(animals == "cat")[:3]])
    return nodes[keep], animals[keep]


@pytest.mark.parametrize("sample", [False, True])
def test_balanced_weights_are_those_of_scikit_learn(sample: bool) -> None:
    rng = np.random.default_rng(0)
    codes = rng.choice(3, 50, p=[0.7, 0.2, 0.1])
    times = rng.integers(1, 5, 50) if sample else np.ones(50, dtype=np.int64)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=np.repeat(codes, times))
    found = class_weights("balanced", codes, times.astype(np.float64), np.array(["a", "b", "c"]))
    np.testing.assert_allclose(found, expected)
    among_two = class_weights("balanced", np.array([0, 0, 2]), np.ones(3), np.array(["a", "b", "c"]))
    np.testing.assert_allclose(among_two, [0.75, 1.0, 1.5])  # a class without nodes is not counted


def test_balanced_means_the_training_and_the_stopping_nodes_each() -> None:
    labels, classes = np.array([0, 0, 0, 1, 0, 1, 1, 1, 1]), np.array(["no", "yes"])
    split = Split(np.arange(4), np.arange(4, 9), np.empty(0, dtype=np.int64))
    given = Given(np.arange(4), classes[labels[:4]], None, None, 0, ())
    weights = node_weights(given, split, labels, Classes(classes), "balanced")
    assert weights is not None
    found = weights.nodes
    np.testing.assert_allclose(found, [4 / 6] * 3 + [2] + [2.5] + [0.625] * 4)
    right = np.array([1, 0, 0, 0, 1])
    assert np.average(right, weights=found[4:]) == pytest.approx((1 / 1 + 1 / 4) / 2)  # balanced accuracy


def test_copies_of_a_node_with_several_weights_count_their_sum() -> None:
    split = Split(np.array([0, 0, 1]), np.array([2]), np.empty(0, dtype=np.int64))
    labels, classes = np.array([0, 1, 1]), np.array([0, 1])
    nodes, weights = np.array([0, 0, 1, 2]), np.array([1.0, 3.0, 0.5, 2.0])
    given = Given(nodes, classes[labels[nodes]], weights, None, 0, ())
    found = node_weights(given, split, labels, Classes(classes), None)
    assert found is not None
    assert found.nodes.tolist() == [2.0, 0.5, 2.0]


@pytest.mark.parametrize("kind", TRAINED)
def test_every_trained_classifier_takes_class_and_sample_weights(
    kind: Any, graph: Graph, nodes: Nodes, animals: NDArray[np.str_]
) -> None:
    some, names = rare(animals, nodes)
    plain, balanced, heavy = (
        kind(graph, **TRAINED[kind], **SHORT, class_weight=weight).fit(some, names)
        for weight in (None, "balanced", {"cat": 50})
    )
    cat = plain.classes_.tolist().index("cat")
    share = [model.predict_proba(nodes)[:, cat].mean() for model in (plain, balanced, heavy)]
    assert share[0] < share[1] < share[2]
    ones = kind(graph, **TRAINED[kind], **SHORT).fit(some, names, sample_weight=np.ones(len(some)))
    np.testing.assert_allclose(ones.logits_, plain.logits_, rtol=1e-5, atol=1e-6)
    as_sample = kind(graph, **TRAINED[kind], **SHORT).fit(
        some, names, sample_weight=np.where(names == "cat", 50.0, 1.0)
    )
    if kind is not pprop.APPNPEnsembleClassifier:  # whose taught nodes count by their class alone
        np.testing.assert_allclose(as_sample.logits_, heavy.logits_, rtol=1e-4, atol=1e-5)


def test_weight_k_is_k_copies_and_weight_zero_none(graph: Graph, nodes: Nodes, animals: NDArray[np.str_]) -> None:
    times = np.random.default_rng(2).integers(0, 4, len(nodes))
    weighted = pprop.APPNPClassifier(graph, **QUICK).fit(nodes, animals, sample_weight=times)
    listed = pprop.APPNPClassifier(graph, **QUICK).fit(np.repeat(nodes, times), np.repeat(animals, times))
    np.testing.assert_allclose(weighted.logits_, listed.logits_, rtol=1e-4, atol=1e-5)
    assert np.unique(listed.stopping_nodes_).tolist() == np.unique(weighted.stopping_nodes_).tolist()
    assert not set(nodes[times == 0]) & set(weighted.known_nodes_.tolist())


def test_weights_go_with_the_labels_that_are_known(graph: Graph, nodes: Nodes, animals: NDArray[np.str_]) -> None:
    everything = np.full(graph.n_nodes, "?", dtype=animals.dtype)
    everything[nodes] = animals
    weights, some = np.full(graph.n_nodes, np.nan), np.random.default_rng(0).gamma(1.0, size=len(nodes))
    weights[nodes] = some
    order = np.argsort(nodes)
    all_nodes = pprop.MLPNodeClassifier(graph, **QUICK).fit(None, everything, sample_weight=weights)
    known = pprop.MLPNodeClassifier(graph, **QUICK).fit(nodes[order], animals[order], sample_weight=some[order])
    assert np.array_equal(all_nodes.logits_, known.logits_)


@pytest.mark.parametrize(
    "weights", [np.ones(3), np.ones((36, 1)), np.full(36, np.inf), -np.ones(36), np.zeros(36), ["a"] * 36, 2.0]
)
def test_impossible_sample_weights_are_refused(
    graph: Graph, nodes: Nodes, animals: NDArray[np.str_], weights: Any
) -> None:
    with pytest.raises(InputError, match="The 'sample_weight' parameter of fit must be an array of 36 weights"):
        pprop.APPNPClassifier(graph, **QUICK).fit(nodes, animals, sample_weight=weights)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("uniform", "must be None, 'balanced', or a dict from classes to numbers above 0. Got 'uniform'"),
        ({"cat": 0}, "Got 0 for 'cat'"),
        ({"cat": -1.0}, "Got -1.0 for 'cat'"),
        ({"cat": True}, "Got True for 'cat'"),
        ({"dog": 2.0}, "a dict of classes among .*'ant', 'bee', 'cat'.* Got 'dog'"),
    ],
)
def test_impossible_class_weights_are_refused(
    graph: Graph, nodes: Nodes, animals: NDArray[np.str_], weight: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        pprop.APPNPClassifier(graph, **QUICK, class_weight=weight).fit(nodes, animals)


def test_a_class_that_is_missing_among_the_nodes_may_have_a_weight() -> None:
    weights: dict[Any, float] = {"a": 1.0, "b": 2.0, "c": 3.0}
    assert class_weights(weights, np.array([0, 1]), np.ones(2), np.array(["a", "b"])).tolist() == [1.0, 2.0]


def test_bootstrapped_feature_propagation_counts_all_nodes_the_same(
    graph: Graph, nodes: Nodes, animals: NDArray[np.str_]
) -> None:
    with pytest.raises(InputError, match="'sample_weight' parameter of BootstrappedFPClassifier must be None"):
        pprop.BootstrappedFPClassifier(graph, rounds=0).fit(nodes, animals, sample_weight=np.ones(len(nodes)))


@pytest.mark.parametrize(
    "kind", [kind for kind in TRAINED if kind.__name__[-2:] != "CV" and "Ens" not in kind.__name__]
)
def test_without_early_stopping_all_nodes_train_to_the_last_epoch(
    kind: Any, graph: Graph, nodes: Nodes, animals: NDArray[np.str_]
) -> None:
    model = kind(graph, **TRAINED[kind], **SHORT, stopping=None).fit(nodes, animals)
    assert (model.n_iter_, model.record_.best_epoch) == (3, 2)
    assert len(model.train_nodes_) == len(nodes)
    assert len(model.stopping_nodes_) == 0
    assert np.isnan(model.record_.stopping_accuracy)
    assert np.isnan(model.history_.stopping_loss).all()
    with_nodes = kind(graph, **TRAINED[kind], **SHORT, stopping=None).fit(nodes, animals, stopping=0.5)
    assert len(with_nodes.stopping_nodes_) > 0  # what fit is given counts


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (pprop.APPNPClassifierCV, "stopping nodes choose alpha"),
        (pprop.APPNPEnsembleClassifier, "stopping nodes judge the members"),
        (pprop.BootstrappedFPClassifier, "stopping nodes choose the round"),
    ],
)
def test_where_stopping_nodes_do_more_they_are_needed(
    kind: Any, why: str, graph: Graph, nodes: Nodes, animals: NDArray[np.str_]
) -> None:
    with pytest.raises(InputError, match=f"'stopping' parameter of {kind.__name__} must be a float in .*: {why}"):
        kind(graph, stopping=None).fit(nodes, animals)


@pytest.mark.parametrize(
    "settings",
    [
        {"class_weight": {"cat": 2.0, "ant": 0.5}},
        {"class_weight": "balanced", "stopping": None},
        {"bias": True},
        {"bias": True, "scaling": "l1"},
        {"scaling": "standard"},
    ],
)
def test_a_saved_model_keeps_what_it_was_told(
    graph: Graph, nodes: Nodes, animals: NDArray[np.str_], tmp_path: Path, settings: dict[str, Any]
) -> None:
    saved = pprop.APPNPClassifier(graph, **QUICK, **settings).fit(nodes, animals)
    saved.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert np.array_equal(loaded.logits_, saved.logits_)
    assert list(loaded.weights_) == list(saved.weights_)
    assert {name: getattr(loaded, name) for name in settings} == settings
    assert json.loads((tmp_path / "model" / "manifest.json").read_text())["format_version"] == 3


def test_integer_classes_keep_their_weights(graph: Graph, nodes: Nodes, tmp_path: Path) -> None:
    y = np.arange(len(nodes)) % 3 + 5
    saved = pprop.MLPNodeClassifier(graph, **QUICK, class_weight={np.int64(5): 3}).fit(nodes, y)
    saved.save(tmp_path / "model")
    assert pprop.load(tmp_path / "model", graph=graph).class_weight == {5: 3}  # pyright: ignore[reportAttributeAccessIssue]


def test_biases_are_on_where_columns_are_standardised(graph: Graph, nodes: Nodes, animals: NDArray[np.str_]) -> None:
    found = {
        (scaling, bias): "bias0"
        in pprop.MLPNodeClassifier(graph, **QUICK, scaling=scaling, bias=bias).fit(nodes, animals).weights_
        for scaling in ("l1", "standard", "none")
        for bias in ("auto", True, False)
    }
    auto = {"l1": False, "standard": True, "none": False}
    assert found == {(s, b): auto[s] if b == "auto" else b for s, b in found}
    assert "bias0" not in pprop.APPNPClassifier(graph, **QUICK).fit(nodes, animals).weights_  # words, as in the paper
    with pytest.raises(InputError, match="'bias' parameter of APPNPClassifier must be True, False or 'auto'"):
        pprop.APPNPClassifier(graph, bias="yes").fit(nodes, animals)


def test_a_network_with_biases_is_explained_and_lives(graph: Graph, nodes: Nodes, animals: NDArray[np.str_]) -> None:
    model = pprop.PPNPClassifier(graph, **QUICK, bias=True).fit(nodes, animals)
    explained = model.explain(int(nodes[0]))  # which compares its sum with the logits
    assert explained.prediction == model.predict([nodes[0]])[0]
    np.testing.assert_allclose(pprop.live(model).predict_proba(nodes), model.predict_proba(nodes), atol=1e-3)


def test_only_an_early_stopping_that_never_came_warns(
    graph: Graph, nodes: Nodes, animals: NDArray[np.str_], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pprop.estimators.node.MAX_EPOCHS", MAX_EPOCHS.but(5))
    quick: dict[str, Any] = QUICK | {"max_epochs": 5}
    shorter: dict[str, Any] = QUICK | {"max_epochs": 4}
    with pytest.warns(ConvergenceWarning, match="Training made all 5 epochs"):
        pprop.APPNPClassifier(graph, **quick).fit(nodes, animals)
    with pytest.warns(ConvergenceWarning, match="Training made all 5 epochs"):
        pprop.APPNPClassifierCV(graph, **quick, alphas=[0.1]).fit(nodes, animals)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pprop.APPNPClassifier(graph, **quick, stopping=None).fit(nodes, animals)
        pprop.APPNPClassifier(graph, **shorter).fit(nodes, animals)
