"""The baselines as classifiers: what they say equals `train`, and a saved one comes back bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import pprop
from pprop import (
    GATClassifier,
    GCNClassifier,
    Graph,
    InputError,
    JKClassifier,
    NGCNClassifier,
    Split,
    Stopping,
)

pytestmark = pytest.mark.slow

SETTINGS: dict[Any, dict[str, Any]] = {
    GCNClassifier: {"hidden": 8, "matrix_dropout": 0.25},
    NGCNClassifier: {"hidden": 8, "powers": 3, "replicas": 2},
    GATClassifier: {"heads": 2, "units": 8},
    JKClassifier: {"hidden": 8, "layers": 2},
}
MODELS: dict[Any, Any] = {
    GCNClassifier: pprop.GCN,
    NGCNClassifier: pprop.NGCN,
    GATClassifier: pprop.GAT,
    JKClassifier: pprop.JK,
}
EVERYWHERE = np.arange(90)


@pytest.mark.parametrize("kind", SETTINGS)
def test_fit_equals_train_with_the_same_seed_bit_for_bit(graph: Graph, nodes: Any, animals: Any, kind: Any) -> None:
    common = {"penalty": 0.01, "dropout": 0.4, **SETTINGS[kind]}
    fitted = kind(graph, learning_rate=0.02, max_epochs=5, random_state=5, **common)
    fitted.fit(nodes[:20], animals[:20], stopping=(nodes[20:], animals[20:]))
    trained = pprop.train(
        MODELS[kind](**common),
        graph,
        Split(nodes[:20], nodes[20:], np.empty(0, dtype=np.int64)),
        seeds=5,
        labels=np.arange(90) // 30,
        stopping=Stopping(max_epochs=5),
        learning_rate=0.02,
        progress=False,
    )
    assert np.array_equal(fitted.logits_, trained.logits[0])
    assert np.array_equal(fitted.predict(EVERYWHERE), np.array(["ant", "bee", "cat"])[trained.predict()[0]])
    assert all(np.array_equal(a, b[0]) for a, b in zip(fitted.weights_.values(), trained.weights, strict=True))
    assert fitted.model_ == trained.model


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_loaded_baseline_predicts_as_the_saved_one_bit_for_bit(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path, kind: Any
) -> None:
    saved = kind(graph, max_epochs=4, random_state=0, **SETTINGS[kind]).fit(nodes, animals)
    saved.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert type(loaded) is kind
    assert np.array_equal(loaded.decision_function(EVERYWHERE), saved.decision_function(EVERYWHERE))
    assert loaded.get_params() == saved.get_params()
    assert loaded.record_ == saved.record_
    assert list(loaded.weights_) == list(saved.weights_)


@pytest.mark.parametrize("kind", SETTINGS)
def test_every_baseline_learns_the_communities(graph: Graph, nodes: Any, animals: Any, kind: Any) -> None:
    others = np.setdiff1d(EVERYWHERE, nodes)
    truth = np.array(["ant", "bee", "cat"])[others // 30]
    fitted = kind(graph, max_epochs=150, penalty=1e-4, random_state=0, **SETTINGS[kind]).fit(nodes, animals)
    assert fitted.score(others, truth) > 0.9  # chance is one third


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_clone_fits_alike_and_shares_the_graph(graph: Graph, nodes: Any, animals: Any, kind: Any) -> None:
    fitted = kind(graph, max_epochs=3, random_state=1, **SETTINGS[kind]).fit(nodes, animals)
    twin: Any = clone(fitted)
    assert twin.graph is graph
    assert np.array_equal(twin.fit(nodes, animals).logits_, fitted.logits_)


def test_the_stopping_rule_of_the_first_gcn_keeps_the_last_weights(graph: Graph, nodes: Any, animals: Any) -> None:
    fitted = GCNClassifier(graph, hidden=8, patience=3, max_epochs=6, criterion="window", random_state=0)
    fitted.fit(nodes, animals)
    assert fitted.record_.best_epoch == fitted.n_iter_ - 1


def test_cross_validation_takes_a_baseline_as_it_is(graph: Graph, nodes: Any, animals: Any) -> None:
    model = GCNClassifier(graph, hidden=8, max_epochs=30, penalty=1e-4, random_state=0)
    assert np.mean(cross_val_score(model, nodes, animals, cv=3)) > 0.6


@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        (GCNClassifier, {"hidden": 0}, "The 'hidden' parameter of GCNClassifier must be"),
        (GCNClassifier, {"criterion": "best"}, "The 'criterion' parameter of GCNClassifier must be"),
        (GCNClassifier, {"matrix_dropout": 1.0}, "The 'matrix_dropout' parameter of GCNClassifier must be"),
        (NGCNClassifier, {"powers": 0}, "The 'powers' parameter of NGCNClassifier must be"),
        (GATClassifier, {"heads": 2.5}, "The 'heads' parameter of GATClassifier must be"),
        (JKClassifier, {"layers": 0}, "The 'layers' parameter of JKClassifier must be"),
        (JKClassifier, {"patience": 0}, "The 'patience' parameter of JKClassifier must be"),
    ],
)
def test_impossible_settings_are_refused_in_fit(
    graph: Graph, nodes: Any, animals: Any, kind: Any, settings: Any, sentence: str
) -> None:
    model = kind(graph, **settings)
    with pytest.raises(InputError, match=sentence):
        model.fit(nodes, animals)


def test_a_predictor_is_refused_for_a_model_that_has_none(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path
) -> None:
    GCNClassifier(graph, hidden=8, max_epochs=2, random_state=0).fit(nodes, animals).save(tmp_path / "model")
    with pytest.raises(InputError, match="The 'predictor' parameter of load must be None"):
        pprop.load(tmp_path / "model", graph=graph, predictor=lambda: None)  # type: ignore[arg-type]
