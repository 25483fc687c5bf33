"""AutoClassifier: the choice is what choosing by hand gives, and everything else is the chosen classifier's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

from pprop import (
    APPNPClassifier,
    APPNPEnsembleClassifier,
    AutoClassifier,
    Graph,
    InputError,
    LabelPropagationClassifier,
    MLPNodeClassifier,
    load,
)
from pprop.estimators.targets import hold_out

QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 20, "backend": "numba"}
ALL = np.arange(90)
NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def chosen(graph: Graph, nodes: Any, animals: Any) -> AutoClassifier:
    return AutoClassifier(graph, random_state=3, **QUICK).fit(nodes, animals)


def by_hand(graph: Graph, seed: int) -> dict[str, Any]:
    return {
        "label_propagation": LabelPropagationClassifier(graph, backend="numba"),
        "network": MLPNodeClassifier(graph, random_state=seed, **QUICK),
        "appnp": APPNPClassifier(graph, random_state=seed, **QUICK),
        "appnp_label_reuse": APPNPEnsembleClassifier(
            graph, members=1, rounds=0, spread_errors=0.3, random_state=seed, **QUICK
        ),
    }


def test_scores_are_those_of_fits_by_hand_on_the_other_nodes(
    graph: Graph, nodes: Any, animals: Any, chosen: AutoClassifier
) -> None:
    judges = hold_out(nodes, np.searchsorted(NAMES, animals), 0.2, 4)[1]
    assert chosen.validation_nodes_.tolist() == sorted(judges)
    assert np.bincount(judges // 30).tolist() == [2, 2, 2]
    others = ~np.isin(nodes, judges)
    assert list(chosen.scores_) == ["label_propagation", "network", "appnp", "appnp_label_reuse"]
    for name, model in by_hand(graph, 3).items():
        model.fit(nodes[others], animals[others])
        assert chosen.scores_[name] == model.score(judges, NAMES[judges // 30])
    best = max(chosen.scores_.values())
    assert chosen.chosen_ == next(name for name, score in chosen.scores_.items() if score == best)


def test_the_chosen_one_is_fitted_to_all_nodes(graph: Graph, nodes: Any, animals: Any, chosen: AutoClassifier) -> None:
    model = by_hand(graph, 3)[chosen.chosen_].fit(nodes, animals)
    assert type(chosen.best_) is type(model)
    assert np.array_equal(chosen.logits_, model.logits_)
    assert np.array_equal(chosen.predict_proba(), model.predict_proba())
    assert chosen.known_nodes_.tolist() == sorted(nodes)


def test_without_an_edge_the_network_is_chosen_and_without_a_hint_in_the_features_the_labels(nodes: Any) -> None:
    truth = NAMES[ALL // 30]
    telling = np.eye(3)[ALL // 30] + np.random.default_rng(0).normal(0, 0.2, (90, 3))
    same = (ALL[:, None] // 30 == ALL // 30) & (ALL[:, None] != ALL)
    options: dict[str, Any] = {**QUICK, "max_epochs": 60, "random_state": 0}
    alone = Graph.from_scipy(sparse.csr_array((90, 90)), features=telling)
    model = AutoClassifier(alone, **options).fit(nodes, truth[nodes])
    assert model.chosen_ == "network"
    assert model.score(ALL, truth) > 0.9
    mute = Graph.from_scipy(
        sparse.csr_array(same.astype(float)), features=np.random.default_rng(1).normal(size=(90, 3))
    )
    model = AutoClassifier(mute, **options).fit(nodes, truth[nodes])
    assert (model.chosen_, model.score(ALL, truth)) == ("label_propagation", 1.0)


def test_without_features_label_propagation_is_the_only_one_and_a_warning_says_so(
    graph: Graph, nodes: Any, animals: Any
) -> None:
    bare = graph.replace(features=None)
    with pytest.warns(
        UserWarning, match=r"This graph has no features, so AutoClassifier tries label propagation alone"
    ):
        model = AutoClassifier(bare, **QUICK).fit(nodes, animals)
    assert list(model.scores_) == ["label_propagation"]
    assert np.array_equal(model.logits_, LabelPropagationClassifier(bare, backend="numba").fit(nodes, animals).logits_)


def test_one_node_in_every_class_leaves_none_to_choose_by(graph: Graph) -> None:
    with pytest.warns(UserWarning, match=r"Every class has one node only, so there is none for AutoClassifier"):
        model = AutoClassifier(graph, **QUICK).fit([3, 40, 70, 3], ["a", "b", "c", "a"])
    assert (model.chosen_, model.scores_, len(model.validation_nodes_)) == ("label_propagation", {}, 0)


def test_balanced_weights_compare_balanced_accuracies(graph: Graph) -> None:
    rare = np.where((ALL >= 60) & (ALL % 3 == 0), "rare", "usual")
    model = AutoClassifier(graph, class_weight="balanced", validation=0.4, random_state=1, **QUICK).fit(ALL, rare)
    judges = model.validation_nodes_
    others = np.setdiff1d(ALL, judges)
    for name, single in by_hand(graph, 1).items():
        single.set_params(class_weight="balanced").fit(others, rare[others])
        expected = balanced_accuracy_score(rare[judges], single.predict(judges))
        assert model.scores_[name] == pytest.approx(expected)


def test_stopping_nodes_of_ones_own_never_choose(graph: Graph, nodes: Any, animals: Any) -> None:
    pair = (nodes[24:], animals[24:])
    model = AutoClassifier(graph, random_state=0, **QUICK).fit(nodes[:24], animals[:24], stopping=pair)
    assert set(model.validation_nodes_) <= set(nodes[:24])
    assert model.known_nodes_.tolist() == sorted(nodes)


def test_it_is_saved_loaded_and_explained_as_the_chosen_one(nodes: Any, tmp_path: Path) -> None:
    same = (ALL[:, None] // 30 == ALL // 30) & (ALL[:, None] != ALL)
    graph = Graph.from_scipy(
        sparse.csr_array(same.astype(float)), features=np.ones((90, 1)), ids=[f"n{k}" for k in ALL]
    )
    model = AutoClassifier(graph, random_state=0, **QUICK).fit(nodes, NAMES[nodes // 30])
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", graph=graph)
    assert type(again) is type(model.best_) is LabelPropagationClassifier
    assert np.array_equal(again.logits_, model.logits_)
    assert model.explain("n3", k=3).names == model.best_.explain(3, k=3).names
    assert np.array_equal(model.on(graph).logits_, model.logits_)


def test_unknown_labels_are_left_out_and_text_are_ids(graph: Graph, nodes: Any, animals: Any) -> None:
    named = graph.replace(ids=[f"n{k}" for k in ALL])
    labels = np.full(90, None, dtype=object)
    labels[nodes] = animals
    order = np.argsort(nodes)
    first = AutoClassifier(named, random_state=0, **QUICK).fit(y=labels)
    second = AutoClassifier(named, random_state=0, **QUICK).fit([f"n{k}" for k in nodes[order]], animals[order])
    assert np.array_equal(first.logits_, second.logits_)
    assert (first.n_unlabelled_, first.best_.n_unlabelled_) == (54, 54)
    assert first.score(y=labels) == second.score(nodes, animals)


def test_settings_are_cloned_and_impossible_ones_named(graph: Graph, nodes: Any, animals: Any) -> None:
    model = AutoClassifier(graph, alpha=0.2, validation=0.3, **QUICK)
    twin: Any = clone(model)
    assert twin.get_params() == model.get_params()
    for settings, sentence in (
        ({"validation": 1.0}, r"'validation' parameter of AutoClassifier must be a float in \(0, 1\)"),
        ({"stopping": None}, r"'stopping' parameter of AutoClassifier must be a float in \(0, 1\)"),
        ({"hidden": 0}, "'hidden' parameter of AutoClassifier"),
    ):
        with pytest.raises(InputError, match=sentence):
            AutoClassifier(graph).set_params(**settings).fit(nodes, animals)
