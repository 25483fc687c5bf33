"""The ensemble of APPNP runs: what its members are, how it votes, what it is otherwise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import pprop
from pprop import APPNPClassifier, APPNPEnsembleClassifier, Graph, InputError, Split
from pprop.models.ensemble import Ensemble
from pprop.training.self_training import SelfTraining, self_train

SHORT: dict[str, Any] = {"hidden": 8, "steps": 4, "patience": 5, "max_epochs": 15, "random_state": 3}


def test_one_member_without_rounds_is_appnp_bit_for_bit(graph: Graph, nodes, animals):
    ensemble = APPNPEnsembleClassifier(graph, members=1, rounds=0, **SHORT).fit(nodes, animals)
    alone = APPNPClassifier(graph, **SHORT).fit(nodes, animals)
    assert (ensemble.logits_ == alone.logits_).all()
    assert (ensemble.stopping_nodes_ == alone.stopping_nodes_).all()
    assert (ensemble.weights_["member0.layer0"] == alone.weights_["layer0"]).all()


def test_the_probabilities_are_the_mean_over_runs_with_the_promised_seeds(graph: Graph, nodes, animals):
    train, stopping = (nodes[:24], animals[:24]), (nodes[24:], animals[24:])
    ensemble = APPNPEnsembleClassifier(graph, members=3, rounds=0, **SHORT).fit(*train, stopping=stopping)
    seeds = [3, *(pprop.run_seed(3, k) % 2**64 for k in (1, 2))]
    settings: list[dict[str, Any]] = [{**SHORT, "random_state": seed} for seed in seeds]
    alone = [APPNPClassifier(graph, **one) for one in settings]
    mean = np.mean([softmax(one.fit(*train, stopping=stopping).logits_, axis=1) for one in alone], axis=0)
    np.testing.assert_allclose(ensemble.predict_proba(range(90)), mean, rtol=1e-5)
    right = (ensemble.classes_[mean[nodes[24:]].argmax(axis=1)] == animals[24:]).mean()
    assert ensemble.record_.stopping_accuracy == pytest.approx(right)


def test_all_members_of_all_rounds_vote(graph: Graph, nodes, animals):
    model = APPNPEnsembleClassifier(graph, members=2, rounds=2, share=0.9, **SHORT).fit(nodes, animals)
    classes, codes = np.unique(animals, return_inverse=True)
    labels = np.full(90, -1)
    labels[nodes] = codes
    split = Split(model.train_nodes_, model.stopping_nodes_, np.empty(0, dtype=np.int64))
    member, rule = pprop.APPNP(hidden=8, steps=4), pprop.Stopping(patience=5, max_epochs=15)
    rounds = self_train(
        Ensemble(member, 2), SelfTraining(2, share=0.9), graph, split, labels=labels, seed=3, stopping=rule
    )
    every = np.concatenate([one.trained.logits for one in rounds])
    assert len(every) == 6
    mean = softmax(every.astype(float), axis=2).mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(range(90)), mean, rtol=1e-5)
    right = mean[split.stopping].argmax(axis=1) == labels[split.stopping]
    assert model.record_.stopping_accuracy == pytest.approx(right.mean())
    assert model.n_iter_ == len(model.history_.stopping_loss) == 3
    assert (model.classes_ == classes).all()


def test_with_folds_members_are_appnp_on_training_nodes_and_all_folds_but_one(graph: Graph, nodes, animals):
    train, stopping = (nodes[:24], animals[:24]), (nodes[24:], animals[24:])
    ensemble = APPNPEnsembleClassifier(graph, members=2, rounds=0, folds=2, **SHORT).fit(*train, stopping=stopping)
    order = 24 + np.argsort(animals[24:], kind="stable")
    seeds, shares, right = [3, pprop.run_seed(3, 1) % 2**64], [], 0
    for seed, held, rest in zip(seeds, (order[::2], order[1::2]), (order[1::2], order[::2]), strict=True):
        rest = np.sort(rest)
        own = np.concatenate([np.arange(24), rest])
        settings: dict[str, Any] = {**SHORT, "random_state": seed}
        alone = APPNPClassifier(graph, **settings)
        alone.fit(nodes[own], animals[own], stopping=(nodes[held], animals[held]))
        shares.append(softmax(alone.logits_, axis=1))
        right += (alone.predict(nodes[held]) == animals[held]).sum()
    np.testing.assert_allclose(ensemble.predict_proba(range(90)), np.mean(shares, axis=0), rtol=1e-5)
    assert ensemble.record_.stopping_accuracy == pytest.approx(right / len(order))
    assert ensemble.record_.stopping_nodes == len(order)


def test_more_folds_than_stopping_nodes_are_refused(graph: Graph, nodes, animals):
    model = APPNPEnsembleClassifier(graph, folds=3, **SHORT)
    with pytest.raises(InputError, match="'folds' parameter of APPNPEnsembleClassifier must be at most 2"):
        model.fit(nodes[:24], animals[:24], stopping=(nodes[24:26], animals[24:26]))


def test_rounds_before_the_first_that_differs_do_not_depend_on_later_ones(graph: Graph, nodes, animals):
    one, two = (
        APPNPEnsembleClassifier(graph, members=2, rounds=rounds, **SHORT).fit(nodes, animals).history_
        for rounds in (1, 2)
    )
    assert (one.stopping_loss == two.stopping_loss[:2]).all()


def test_a_saved_ensemble_predicts_the_same_bits(graph: Graph, nodes, animals, tmp_path: Path):
    model = APPNPEnsembleClassifier(graph, members=3, **SHORT).fit(nodes, animals)
    model.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert isinstance(loaded, APPNPEnsembleClassifier)
    assert (loaded.decision_function(range(90)) == model.decision_function(range(90))).all()
    assert sorted(loaded.weights_) == sorted(model.weights_)


def test_it_is_cloned_and_cross_validated_like_any_classifier(graph: Graph, nodes, animals):
    model = APPNPEnsembleClassifier(graph, members=2, **SHORT)
    copy: Any = clone(model)
    assert copy.graph is graph
    assert cross_val_score(model, nodes, animals, cv=3).shape == (3,)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"members": 0}, "members"),
        ({"rounds": -1}, "rounds"),
        ({"share": 0.0}, "share"),
        ({"share": 1.5}, "share"),
        ({"emphasis": 0}, "emphasis"),
        ({"folds": 1}, "folds"),
        ({"folds": -2}, "folds"),
        ({"alpha": 2.0}, "alpha"),
        ({"steps": 1.5}, "steps"),
        ({"patience": 0}, "patience"),
    ],
)
def test_impossible_settings_are_refused_by_name(graph: Graph, nodes, animals, settings: dict[str, Any], name: str):
    with pytest.raises(InputError, match=f"'{name}' parameter of APPNPEnsembleClassifier"):
        APPNPEnsembleClassifier(graph, **SHORT | settings).fit(nodes, animals)


def test_the_example_of_the_page_runs():
    page = Path(__file__).parents[2] / "docs" / "accuracy.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found: dict[str, Any] = {}
    exec(block, found)
    assert found["model"].predict(found["split"].evaluation).shape == (610,)
