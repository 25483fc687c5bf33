"""APPNP that chooses its alpha: the choice, the model that it keeps, and what it is otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import pprop
from pprop import APPNPClassifier, APPNPClassifierCV, Graph, InputError
from pprop.training.self_training import best_of

SHORT: dict[str, Any] = {"hidden": 8, "steps": 4, "patience": 5, "max_epochs": 15, "random_state": 3}
ALPHAS = (0.05, 0.4, 1.0)


def test_every_alpha_scores_as_a_classifier_of_its_own_and_the_best_is_the_model(graph: Graph, nodes, animals):
    chosen = APPNPClassifierCV(graph, alphas=ALPHAS, **SHORT).fit(nodes, animals, stopping=0.4)
    alone = [APPNPClassifier(graph, alpha=alpha, **SHORT).fit(nodes, animals, stopping=0.4) for alpha in ALPHAS]
    assert chosen.scores_[:, 0].tolist() == [one.record_.stopping_accuracy for one in alone]
    assert chosen.losses_[:, 0].tolist() == [one.record_.stopping_loss for one in alone]
    order = sorted(alone, key=lambda one: (-one.record_.stopping_accuracy, one.record_.stopping_loss))
    twin = order[0]
    assert (chosen.alpha_, ALPHAS[chosen.best_index_]) == (twin.alpha_, twin.alpha_)
    assert chosen.model_ == twin.model_
    assert (chosen.decision_function(range(90)) == twin.decision_function(range(90))).all()
    assert (chosen.stopping_nodes_ == twin.stopping_nodes_).all()
    assert chosen.n_iter_ == twin.n_iter_
    assert (chosen.history_.train_loss == twin.history_.train_loss).all()


@pytest.mark.parametrize("settings", [{"hidden": (8, 8)}, {"backend": "reference"}])
def test_what_is_not_fused_agrees_with_a_classifier_of_its_own_within_rounding(
    graph: Graph, nodes, animals, settings: dict[str, Any]
):
    chosen = APPNPClassifierCV(graph, alphas=ALPHAS, **SHORT | settings).fit(nodes, animals)
    twin = APPNPClassifier(graph, alpha=chosen.alpha_, **SHORT | settings).fit(nodes, animals)
    assert chosen.losses_[chosen.best_index_, 0] == pytest.approx(twin.record_.stopping_loss, rel=1e-4)
    np.testing.assert_allclose(chosen.logits_, twin.logits_, atol=1e-4 * float(np.abs(twin.logits_).max()))


def test_of_several_runs_the_mean_chooses_the_alpha_and_the_best_is_kept(graph: Graph, nodes, animals):
    chosen = APPNPClassifierCV(graph, alphas=ALPHAS, n_runs=3, **SHORT).fit(nodes, animals)
    assert chosen.scores_.shape == chosen.losses_.shape == (3, 3)
    means = chosen.scores_.mean(axis=1)
    assert means[chosen.best_index_] == pytest.approx(means.max())
    assert chosen.record_.stopping_accuracy == chosen.scores_[chosen.best_index_].max()
    seed = 3 if chosen.best_run_ == 0 else pprop.run_seed(3, chosen.best_run_) % 2**64
    assert chosen.record_.seed == seed
    watched = (chosen.stopping_nodes_, animals[[int(np.flatnonzero(nodes == n)[0]) for n in chosen.stopping_nodes_]])
    train = chosen.train_nodes_
    settings: dict[str, Any] = {**SHORT, "random_state": seed}
    twin = APPNPClassifier(graph, alpha=chosen.alpha_, **settings)
    twin.fit(train, animals[[int(np.flatnonzero(nodes == n)[0]) for n in train]], stopping=watched)
    assert (twin.logits_ == chosen.logits_).all()


@pytest.mark.parametrize(
    ("scores", "losses", "best"),
    [
        ([0.5, 0.7, 0.6], [1.0, 2.0, 0.1], 1),
        ([0.7, 0.7, 0.6], [2.0, 1.0, 0.1], 1),
        ([0.7, 0.7, 0.6], [1.0, 1.0, 0.1], 0),
        ([0.1 + 0.2, 0.3], [2.0, 1.0], 1),
        ([0.7, 0.7], [np.nan, 1.0], 1),
        ([0.7, 0.6], [np.nan, 1.0], 0),
    ],
)
def test_accuracy_decides_then_loss_then_the_order(scores: list[float], losses: list[float], best: int):
    assert best_of(np.array(scores), np.array(losses)) == best


@pytest.mark.parametrize("alphas", [(0.2, 0.8), [0.2, 0.8], np.array([0.2, 0.8]), np.array([0.2, 0.8], np.float32)])
def test_a_saved_choice_predicts_the_same_bits(graph: Graph, nodes, animals, tmp_path: Path, alphas: Any):
    model = APPNPClassifierCV(graph, alphas=alphas, n_runs=2, **SHORT).fit(nodes, animals)
    model.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert isinstance(loaded, APPNPClassifierCV)
    assert loaded.alpha_ == model.alpha_
    assert loaded.alphas == pytest.approx([float(alpha) for alpha in alphas])
    assert (loaded.decision_function(range(90)) == model.decision_function(range(90))).all()
    assert (loaded.predict(range(90)) == model.predict(range(90))).all()


def test_it_is_cloned_and_cross_validated_like_any_classifier(graph: Graph, nodes, animals):
    model = APPNPClassifierCV(graph, alphas=[0.1, 0.5], **SHORT)
    copy: Any = clone(model)
    assert copy.graph is graph
    assert copy.get_params()["alphas"] == [0.1, 0.5]
    assert cross_val_score(model, nodes, animals, cv=3).shape == (3,)


def test_a_predictor_of_the_user_is_chosen_for_too(graph: Graph, nodes, animals):
    model = APPNPClassifierCV(graph, alphas=[0.1, 0.5], predictor=lambda: torch.nn.Linear(40, 3), **SHORT)
    model.fit(nodes, animals)
    alone = APPNPClassifier(graph, alpha=model.alpha_, predictor=lambda: torch.nn.Linear(40, 3), **SHORT)
    assert (model.logits_ == alone.fit(nodes, animals).logits_).all()


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"alphas": []}, "alphas"),
        ({"alphas": [0.1, 1.1]}, "alphas"),
        ({"alphas": [0.1, 0.1]}, "alphas"),
        ({"alphas": 0.1}, "alphas"),
        ({"n_runs": 0}, "n_runs"),
        ({"n_runs": 1.5}, "n_runs"),
        ({"steps": -1}, "steps"),
        ({"stopping": 1.0}, "stopping"),
    ],
)
def test_impossible_settings_are_refused_by_name(graph: Graph, nodes, animals, settings: dict[str, Any], name: str):
    with pytest.raises(InputError, match=f"'{name}' parameter of APPNPClassifierCV"):
        APPNPClassifierCV(graph, **SHORT | settings).fit(nodes, animals)
