"""Self-training: which nodes teach, with which class, and what an ensemble may read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax, softmax

from pprop import APPNP, Graph, InputError, Split, Stopping, run_seed, train
from pprop.models.ensemble import Ensemble, mean_log_probabilities
from pprop.training import self_training
from pprop.training.self_training import SelfTraining, most_certain, self_train
from pprop.training.train import TrainOptions

FEW = Stopping(max_epochs=12)
TRAIN, WATCHED = np.array([0, 1, 20, 21]), np.array([2, 3, 22, 23])
SPLIT = Split(TRAIN, WATCHED, np.empty(0, dtype=np.int64))


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(4)
    side = np.repeat([0, 1], 20)
    upper = np.triu(rng.random((40, 40)) < np.where(side[:, None] == side, 0.3, 0.02), 1)
    words = rng.random((40, 12)) < np.where(side[:, None] == np.arange(12) % 2, 0.5, 0.2)
    return Graph.from_scipy(sparse.csr_array((upper | upper.T).astype(float)), features=words.astype(np.float32))


@pytest.fixture(scope="module")
def labels() -> NDArray[np.int64]:
    labels = np.full(40, -1)
    labels[[0, 1, 2, 3]], labels[[20, 21, 22, 23]] = 0, 1
    return labels


def test_the_second_round_is_a_training_on_the_certain_nodes_with_their_predicted_classes(graph: Graph, labels):
    model, teaching = Ensemble(APPNP(hidden=6), members=2), SelfTraining(rounds=1, share=0.4, emphasis=3)
    first, second = self_train(model, teaching, graph, SPLIT, labels=labels, seed=9, options=TrainOptions(FEW))
    shares = softmax(first.trained.logits.astype(float), axis=2).mean(axis=0)
    assert not np.isin(second.taught, np.concatenate([TRAIN, WATCHED])).any()
    predicted, sure = shares.argmax(axis=1), shares.max(axis=1)
    free = np.setdiff1d(np.arange(40), np.concatenate([TRAIN, WATCHED]))
    for code in (0, 1):
        mine, chosen = free[predicted[free] == code], second.taught[predicted[second.taught] == code]
        assert len(chosen) == round(0.4 * len(mine))
        if len(chosen):
            assert sure[chosen].min() >= sure[np.setdiff1d(mine, chosen)].max()
    known = labels.copy()
    known[second.taught] = predicted[second.taught]
    nodes = np.concatenate([np.tile(TRAIN, 3), second.taught])
    seeds = [run_seed(9, 2), run_seed(9, 3)]
    twin = train(APPNP(hidden=6), graph, Split(nodes, WATCHED, WATCHED[:0]), seeds=seeds, labels=known, stopping=FEW)
    assert (twin.logits == second.trained.logits).all()


def test_labels_of_stopping_nodes_change_nothing_but_the_stopping(graph: Graph, labels):
    """With the last epoch kept whatever it is, a run cannot depend on them at all."""
    last = Stopping(patience=50, max_epochs=12, criterion="window")
    turned = labels.copy()
    turned[WATCHED] = 1 - labels[WATCHED]
    model, teaching = Ensemble(APPNP(hidden=6), members=2), SelfTraining(rounds=1)
    here, there = (
        list(self_train(model, teaching, graph, SPLIT, labels=given, options=TrainOptions(last)))
        for given in (labels, turned)
    )
    assert (here[1].logits == there[1].logits).all()
    assert here[1].stopping_accuracy == pytest.approx(1 - there[1].stopping_accuracy)


def test_members_that_are_trained_already_are_not_trained_again(graph: Graph, labels, monkeypatch: pytest.MonkeyPatch):
    model, teaching = Ensemble(APPNP(hidden=6), members=2), SelfTraining(rounds=1, folds=2)
    alone = list(self_train(model, teaching, graph, SPLIT, labels=labels, seed=9, options=TrainOptions(FEW)))
    calls: list[int] = []

    def counted(*args: Any, **settings: Any) -> Any:
        calls.append(1)
        return train(*args, **settings)

    monkeypatch.setattr(self_training, "train", counted)
    given = alone[0].trained
    taught = list(
        self_train(model, teaching, graph, SPLIT, labels=labels, seed=9, first=given, options=TrainOptions(FEW))
    )
    assert len(calls) == 1
    assert taught[0].trained is given
    assert (taught[1].trained.logits == alone[1].trained.logits).all()
    assert taught[0].stopping_loss == alone[0].stopping_loss


def test_with_folds_each_member_of_each_round_trains_on_all_but_its_own_stopping_nodes(graph: Graph, labels):
    model, teaching = Ensemble(APPNP(hidden=6), members=3), SelfTraining(rounds=1, share=0.4, emphasis=2, folds=2)
    first, second = self_train(model, teaching, graph, SPLIT, labels=labels, seed=9, options=TrainOptions(FEW))
    halves = [WATCHED[[0, 2]], WATCHED[[1, 3]]]  # sorted by class, every other one
    known = labels.copy()
    known[second.taught] = first.logits[second.taught].argmax(axis=1)
    assert not np.isin(second.taught, np.concatenate([TRAIN, WATCHED])).any()
    for k in range(3):
        own, held = np.concatenate([TRAIN, halves[1 - k % 2]]), halves[k % 2]
        seed = run_seed(9, k) if k else 9
        twin = train(APPNP(hidden=6), graph, Split(own, held, held[:0]), seeds=seed, labels=labels, stopping=FEW)
        assert (twin.logits[0] == first.trained.logits[k]).all()
        taught = Split(np.concatenate([own, own, second.taught]), held, held[:0])
        twin = train(APPNP(hidden=6), graph, taught, seeds=run_seed(9, 3 + k), labels=known, stopping=FEW)
        assert (twin.logits[0] == second.trained.logits[k]).all()


def test_with_folds_only_members_that_did_not_train_on_a_stopping_node_are_asked_about_it(graph: Graph, labels):
    model, teaching = Ensemble(APPNP(hidden=6), members=2), SelfTraining(folds=2)
    (only,) = self_train(model, teaching, graph, SPLIT, labels=labels, options=TrainOptions(FEW))
    shares = softmax(only.trained.logits.astype(float), axis=2)
    asked = np.array([0, 1, 0, 1])  # nodes 2 and 22 are held out by the first member
    assert only.stopping_loss == pytest.approx(-np.log(shares[asked, WATCHED, labels[WATCHED]]).mean(), rel=1e-5)
    assert only.stopping_accuracy == (shares[asked, WATCHED].argmax(axis=1) == labels[WATCHED]).mean()


def test_the_scores_are_those_of_the_ensemble(graph: Graph, labels):
    model = Ensemble(APPNP(hidden=6), members=3)
    (only,) = self_train(model, SelfTraining(), graph, SPLIT, labels=labels, options=TrainOptions(FEW))
    shares = softmax(only.trained.logits.astype(float), axis=2).mean(axis=0)
    assert only.taught.size == 0
    assert only.stopping_loss == pytest.approx(-np.log(shares[WATCHED, labels[WATCHED]]).mean(), rel=1e-5)
    assert only.train_loss == pytest.approx(-np.log(shares[TRAIN, labels[TRAIN]]).mean(), rel=1e-5)
    assert only.stopping_accuracy == (shares[WATCHED].argmax(axis=1) == labels[WATCHED]).mean()


def test_nobody_is_certain_where_nobody_is_free():
    logits = np.random.default_rng(0).normal(size=(6, 3))
    assert most_certain(logits, np.zeros(6, dtype=np.bool_), 1.0).size == 0
    assert most_certain(logits, np.ones(6, dtype=np.bool_), 1.0).tolist() == list(range(6))


def test_one_member_keeps_its_logits_and_several_sum_to_one():
    logits = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(np.float32) * 30
    assert (mean_log_probabilities(logits[:1]) == logits[0]).all()
    voted = mean_log_probabilities(logits)
    np.testing.assert_allclose(np.exp(voted.astype(float)).sum(axis=1), 1, rtol=1e-6)
    expected = np.exp(log_softmax(logits.astype(float), axis=2)).mean(axis=0)
    np.testing.assert_allclose(np.exp(voted.astype(float)), expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"rounds": -1}, "rounds"), ({"share": 0}, "share"), ({"emphasis": 1.5}, "emphasis"), ({"folds": 1}, "folds")],
)
def test_impossible_teaching_is_refused(settings: dict[str, float], name: str):
    with pytest.raises(InputError, match=f"'{name}' parameter of SelfTraining"):
        SelfTraining(**settings)  # pyright: ignore[reportArgumentType]
