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
from tests.estimators.folders import put_tensors

import pprop
from pprop import APPNPClassifier, APPNPEnsembleClassifier, FormatError, Graph, InputError, Split, transition_matrix
from pprop.models.ensemble import Ensemble
from pprop.training.self_training import SelfTraining, self_train
from pprop.training.train import TrainOptions

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
    member, rule = pprop.APPNP(hidden=8, steps=4, normalization="row"), pprop.Stopping(patience=5, max_epochs=15)
    rounds = self_train(
        Ensemble(member, 2), SelfTraining(2, share=0.9), graph, split, labels=labels, seed=3, options=TrainOptions(rule)
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


def corrected(graph: Graph, shares: Any, held: Any, nodes: Any, codes: Any, heat: float, strength: float) -> Any:
    """The definition in dense matrices: `shares` (n, c) of the vote, `held` (k, c) of those asked about known nodes."""
    T = transition_matrix(graph, "row").to_scipy().toarray()
    powers = [np.linalg.matrix_power(0.9 * T, k) for k in range(11)]
    P, own, wrong = shares ** (1 / heat), held ** (1 / heat), np.zeros_like(shares)
    wrong[nodes] = np.eye(shares.shape[1])[codes] - own / own.sum(axis=1, keepdims=True)
    found = P / P.sum(axis=1, keepdims=True) + strength * (sum(powers[:10]) + powers[10] / 0.1) @ wrong
    found = np.maximum(found, 1e-6)
    return found / found.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("folds", [0, 2])
def test_spread_errors_correct_the_vote_around_training_and_stopping_nodes(graph: Graph, nodes, animals, folds: int):
    how: dict[str, Any] = {"members": 2, "rounds": 0, "folds": folds, **SHORT}
    given: Any = (nodes[:24], animals[:24]), {"stopping": (nodes[24:], animals[24:])}
    plain = APPNPEnsembleClassifier(graph, **how).fit(*given[0], **given[1])
    spread = APPNPEnsembleClassifier(graph, spread_errors=0.2, **how).fit(*given[0], **given[1])
    members = [
        [
            spread.weights_[f"member{k}.{layer}"] == plain.weights_[f"member{k}.{layer}"]
            for layer in ("layer0", "layer1")
        ]
        for k in range(2)
    ]
    assert all(same.all() for layers in members for same in layers)

    codes = np.searchsorted(spread.classes_, animals)
    labels = np.full(90, -1)
    labels[nodes] = codes
    split = Split(nodes[:24], nodes[24:], np.empty(0, dtype=np.int64))
    rule = pprop.Stopping(patience=5, max_epochs=15)
    (only,) = self_train(
        Ensemble(pprop.APPNP(hidden=8, steps=4, normalization="row"), 2),
        SelfTraining(folds=folds),
        graph,
        split,
        labels=labels,
        seed=3,
        options=TrainOptions(rule),
    )
    each = softmax(only.trained.logits.astype(float), axis=2)
    order = np.sort(nodes)
    held = each.mean(axis=0)[order]
    for row, node in enumerate(order):
        asked = [k for k in range(2) if node in only.trained.splits[k].stopping]
        held[row] = each[asked or [0, 1], node].mean(axis=0)
    assert spread.errors_ is not None
    wanted = corrected(graph, each.mean(axis=0), held, order, labels[order], spread.errors_.temperature, 0.2)
    found = spread.predict_proba(range(90))
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-6)
    assert abs(found - plain.predict_proba(range(90))).max() > 0.01


@pytest.mark.parametrize("folds", [0, 3])
def test_the_stopping_accuracy_is_that_before_any_label_is_reused(graph: Graph, nodes, animals, folds: int):
    """With labels that mean nothing, a node that was told its own class would be right all the same."""
    wrong = np.random.default_rng(8).permutation(animals[24:])
    how: dict[str, Any] = {"members": 3, "rounds": 0, "folds": folds, "normalization": "sym", **SHORT}
    plain, spread = (
        APPNPEnsembleClassifier(graph, spread_errors=strength, **how).fit(
            nodes[:24], animals[:24], stopping=(nodes[24:], wrong)
        )
        for strength in (0.0, 50.0)
    )
    assert (spread.predict(nodes[24:]) == wrong).mean() > 0.9
    assert spread.record_.stopping_accuracy == plain.record_.stopping_accuracy < 0.8
    assert spread.record_.stopping_loss == plain.record_.stopping_loss
    assert (spread.history_.stopping_accuracy == plain.history_.stopping_accuracy).all()


def test_of_several_alphas_the_one_with_the_best_stopping_accuracy_is_chosen(graph: Graph, nodes, animals):
    alphas = [0.9, 0.4, 0.05]
    how: dict[str, Any] = {"members": 2, "folds": 2, **SHORT}
    train, stopping = (nodes[:24], animals[:24]), (nodes[24:], animals[24:])
    apart = [
        APPNPEnsembleClassifier(graph, rounds=0, alpha=one, **how).fit(*train, stopping=stopping) for one in alphas
    ]
    model = APPNPEnsembleClassifier(graph, rounds=1, alpha=np.array(alphas), **how).fit(*train, stopping=stopping)
    found = [(one.record_.stopping_accuracy, -one.record_.stopping_loss) for one in apart]
    best = found.index(max(found))
    assert len(set(found)) == 3
    assert model.alpha_ == alphas[best]
    assert model.best_index_ == best
    np.testing.assert_allclose(model.scores_, [accuracy for accuracy, _ in found])
    twin = APPNPEnsembleClassifier(graph, rounds=1, alpha=alphas[best], **how).fit(*train, stopping=stopping)
    assert (model.logits_ == twin.logits_).all()  # the later round, too, goes on with it
    assert model.model_ == twin.model_
    assert twin.alphas_.tolist() == [alphas[best]]
    assert twin.scores_.shape == (1,)


def test_one_alpha_in_a_list_is_that_alpha(graph: Graph, nodes, animals):
    one, listed = (
        APPNPEnsembleClassifier(graph, members=2, rounds=0, alpha=alpha, **SHORT).fit(nodes, animals)
        for alpha in (0.3, [0.3])
    )
    assert (one.logits_ == listed.logits_).all()
    assert one.alpha_ == listed.alpha_ == 0.3


@pytest.fixture
def saved(graph: Graph, nodes, animals, tmp_path: Path) -> tuple[APPNPEnsembleClassifier, Path]:
    model = APPNPEnsembleClassifier(
        graph, members=2, rounds=1, folds=2, spread_errors=0.3, alpha=np.array([0.1, 0.6]), **SHORT
    )
    model.fit(nodes, animals).save(tmp_path / "model")
    return model, tmp_path / "model"


def test_a_saved_ensemble_spreads_the_same_errors_with_the_alpha_that_was_chosen(graph: Graph, saved, tmp_path: Path):
    model, folder = saved
    loaded = pprop.load(folder, graph=graph)
    assert isinstance(loaded, APPNPEnsembleClassifier)
    assert (loaded.logits_ == model.logits_).all()
    assert loaded.alpha_ == model.alpha_
    assert loaded.alpha == [0.1, 0.6]
    loaded.save(tmp_path / "again")
    assert (pprop.load(tmp_path / "again", graph=graph).logits_ == model.logits_).all()  # pyright: ignore[reportAttributeAccessIssue]


def test_on_another_graph_no_errors_are_spread(graph: Graph, saved, nodes, animals):
    _, folder = saved
    other = graph.replace(name="another", features=graph.features * 2.0)  # pyright: ignore[reportOperatorIssue, reportOptionalOperand]
    assert other.fingerprint != graph.fingerprint
    loaded = pprop.load(folder, graph=other)
    assert isinstance(loaded, APPNPEnsembleClassifier)
    assert loaded.errors_ is None
    twin = APPNPEnsembleClassifier(graph, members=2, rounds=1, folds=2, alpha=[0.1, 0.6], **SHORT).fit(nodes, animals)
    np.testing.assert_allclose(loaded.predict_proba(range(90)), twin.predict_proba(range(90)), rtol=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: tensors.pop("extra.errors"),
        lambda tensors: tensors.pop("extra.temperature"),
        lambda tensors: tensors.update({"extra.errors": tensors["extra.errors"][:-1]}),
        lambda tensors: tensors.update({"extra.temperature": np.array([np.nan])}),
        lambda tensors: tensors.update({"extra.temperature": np.array([0.0])}),
        lambda tensors: tensors.update({"extra.more": np.zeros(2)}),
    ],
)
def test_damaged_errors_are_refused(graph: Graph, saved, change: Any):
    _, folder = saved
    put_tensors(folder, change)
    with pytest.raises(FormatError, match="besides the weights that does not fit"):
        pprop.load(folder, graph=graph)


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
        ({"spread_errors": -0.1}, "spread_errors"),
        ({"spread_errors": float("inf")}, "spread_errors"),
        ({"alpha": 2.0}, "alpha"),
        ({"alpha": []}, "alpha"),
        ({"alpha": [0.1, 0.1]}, "alpha"),
        ({"alpha": [0.1, 2.0]}, "alpha"),
        ({"alpha": "0.1"}, "alpha"),
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
