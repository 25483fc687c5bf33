"""Classifiers judged by a scoring, with a positive class and a threshold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import metrics

import pprop
from pprop import Graph, InputError
from pprop.cli.words import Shell
from pprop.serve.served import Served

NO_VALIDATION = "A threshold needs validation nodes, and there are none. Keep some nodes for validation."
SHELL = Shell({"positive": "--positive", "threshold": "--threshold"})
QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 20, "random_state": 0}
SCORED = [
    pprop.APPNPClassifier,
    pprop.PPNPClassifier,
    pprop.SolvedPPNPClassifier,
    pprop.MLPNodeClassifier,
    pprop.GCNClassifier,
    pprop.ResidualClassifier,
]


@pytest.fixture(scope="module")
def kinds(nodes: NDArray[np.int64]) -> NDArray[np.str_]:
    """Two classes of the labelled nodes, of which a third is rare."""
    return np.where(nodes // 30 == 2, "rare", "usual")


@pytest.fixture(scope="module")
def pair(nodes: NDArray[np.int64], kinds: NDArray[np.str_]) -> tuple[Any, ...]:
    """Training nodes and classes, and validation nodes and classes."""
    return nodes[:18], kinds[:18], nodes[18:], kinds[18:]


def fitted(kind: Any, graph: Graph, pair: tuple[Any, ...], **settings: Any) -> Any:
    """The classifier on the training nodes, ended by the validation nodes."""
    return kind(graph, **QUICK, **settings).fit(pair[0], pair[1], stopping=(pair[2], pair[3]))


@pytest.mark.parametrize("kind", SCORED, ids=lambda kind: kind.__name__)
def test_a_scoring_ends_the_training_and_is_the_score(graph: Graph, pair: tuple[Any, ...], kind: Any):
    model, (_, _, watched, truth) = fitted(kind, graph, pair, scoring="average_precision"), pair
    rare = model.predict_proba(watched)[:, 0]
    value = metrics.average_precision_score(truth == "rare", rare)
    assert model.score(watched, truth) == pytest.approx(value)
    assert model.record_.stopping_score == pytest.approx(value, abs=1e-6)
    assert model.record_.stopping_score == model.history_.stopping_score.max()
    assert model.history_.stopping_score[model.record_.best_epoch] == model.record_.stopping_score


@pytest.mark.parametrize("name", ["roc_auc", "f1", "recall", "balanced_accuracy", "neg_log_loss"])
def test_the_score_is_scikit_learns(graph: Graph, pair: tuple[Any, ...], name: str):
    model, (_, _, watched, truth) = fitted(pprop.MLPNodeClassifier, graph, pair, scoring=name, positive="usual"), pair
    predicted, usual = model.predict(watched), model.predict_proba(watched)[:, 1].astype(float)
    of_usual: Any = {"pos_label": "usual"}
    expected = {
        "roc_auc": lambda: metrics.roc_auc_score(truth == "usual", usual),
        "f1": lambda: metrics.f1_score(truth, predicted, **of_usual),
        "recall": lambda: metrics.recall_score(truth, predicted, **of_usual),
        "balanced_accuracy": lambda: metrics.balanced_accuracy_score(truth, predicted),
        "neg_log_loss": lambda: -metrics.log_loss(truth == "usual", usual),
    }
    assert model.score(watched, truth) == pytest.approx(expected[name](), abs=1e-5)


def test_without_a_scoring_the_score_is_the_accuracy_and_nothing_changes(graph: Graph, pair: tuple[Any, ...]):
    model, (_, _, watched, truth) = fitted(pprop.APPNPClassifier, graph, pair), pair
    named = fitted(pprop.APPNPClassifier, graph, pair, positive="usual")
    assert np.array_equal(model.logits_, named.logits_)
    assert model.score(watched, truth) == np.mean(model.predict(watched) == truth)
    assert model.record_.stopping_score is None
    assert np.isnan(model.history_.stopping_score).all()


def test_several_classes_are_judged_by_their_mean(graph: Graph, nodes: Any, animals: Any):
    pair = nodes[:18], animals[:18], nodes[18:], animals[18:]
    model = fitted(pprop.MLPNodeClassifier, graph, pair, scoring="roc_auc")
    shares = model.predict_proba(pair[2])
    each = [metrics.roc_auc_score(pair[3] == name, shares[:, k]) for k, name in enumerate(model.classes_)]
    assert model.score(pair[2], pair[3]) == pytest.approx(np.mean(each))


def test_the_alpha_with_the_best_score_is_chosen(graph: Graph, pair: tuple[Any, ...]):
    alphas = (0.05, 0.3, 0.9)
    chosen = fitted(pprop.APPNPClassifierCV, graph, pair, alphas=alphas, scoring="average_precision")
    apart = [fitted(pprop.APPNPClassifier, graph, pair, alpha=alpha, scoring="average_precision") for alpha in alphas]
    assert chosen.scores_[:, 0].tolist() == [one.record_.stopping_score for one in apart]
    best = max(apart, key=lambda one: (one.record_.stopping_score, -one.record_.stopping_loss))
    assert chosen.alpha_ == best.alpha_
    assert np.array_equal(chosen.logits_, best.logits_)


@pytest.mark.parametrize("threshold", ["f1", "recall=0.9", "cost=5:1", 0.3, "0.3"])
def test_a_threshold_decides_and_is_saved(graph: Graph, pair: tuple[Any, ...], tmp_path: Path, threshold: Any):
    model, (_, _, watched, truth) = fitted(pprop.APPNPClassifier, graph, pair, threshold=threshold), pair
    limit, of_rare = model.threshold_, dict[str, Any](pos_label="rare")
    assert limit.positive == "rare"
    assert np.array_equal(model.predict() == "rare", model.predict_proba()[:, 0] >= limit.probability)
    taken = model.predict(watched) == "rare"
    assert (limit.nodes, limit.taken, limit.hits) == (18, taken.sum(), (taken & (truth == "rare")).sum())
    if threshold == "recall=0.9":
        assert metrics.recall_score(truth, model.predict(watched), **of_rare) >= 0.9
    if threshold == "f1":
        shares = model.predict_proba(watched)[:, 0]
        best = max(metrics.f1_score(truth == "rare", shares >= share) for share in shares)
        assert metrics.f1_score(truth, model.predict(watched), **of_rare) == pytest.approx(best)
    model.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert loaded.threshold_ == limit
    assert np.array_equal(loaded.predict(), model.predict())
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text()
    assert limit.sentence() in card
    assert f"a precision of {100 * limit.precision:.1f} % and a recall of {100 * limit.recall:.1f} %." in card
    on_the_page = Served(loaded.fitted_, "a page").view
    assert [on_the_page.classes[code] for code in on_the_page.default.predicted] == model.predict().tolist()
    assert [model.explain(node).prediction for node in range(10)] == model.predict(range(10)).tolist()
    changing = pprop.live(loaded)
    shares = changing.predict_proba()[:, 0]
    assert np.array_equal(changing.predict() == "rare", shares >= limit.probability)


def test_a_threshold_of_one_of_several_classes_leaves_the_others_to_the_largest(graph: Graph, nodes: Any, animals: Any):
    pair = nodes[:18], animals[:18], nodes[18:], animals[18:]
    model = fitted(pprop.MLPNodeClassifier, graph, pair, threshold=0.3, positive="bee")
    shares, predicted = model.predict_proba(), model.predict()
    assert ((predicted == "bee") == (shares[:, 1] >= 0.3)).all()
    rest = predicted != "bee"
    assert (predicted[rest] == np.where(shares[rest, 0] >= shares[rest, 2], "ant", "cat")).all()


def test_the_scoring_is_saved_with_the_positive_class(graph: Graph, pair: tuple[Any, ...], tmp_path: Path):
    model = fitted(pprop.APPNPClassifier, graph, pair, scoring="average_precision")
    model.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert loaded.score(pair[2], pair[3]) == model.score(pair[2], pair[3])
    assert loaded.fitted_.scoring is not None
    assert loaded.fitted_.scoring.positive == "rare"
    assert np.array_equal(loaded.history_.stopping_score, model.history_.stopping_score)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"scoring": "auc"},
            "'scoring' parameter of APPNPClassifier must be one of 'accuracy', 'balanced_accuracy', 'f1'",
        ),
        (
            {"scoring": "f1", "positive": "fraud"},
            "'positive' .* must be one of the classes, 'rare', 'usual'. Got 'fraud'",
        ),
        ({"threshold": "f2"}, "must be a probability between 0 and 1, 'f1', 'precision=0.5'"),
        ({"scoring": "f1", "neighbours": 4}, "'scoring' parameter of APPNPClassifier must be None with neighbours"),
        ({"scoring": "f1", "criterion": "loss"}, "'criterion' parameter of train must be 'paper' or 'plateau' with a"),
    ],
)
def test_what_cannot_be_judged_is_one_sentence(
    graph: Graph, pair: tuple[Any, ...], settings: dict[str, Any], sentence: str
):
    train, known, watched, truth = pair
    made = pprop.APPNPClassifier(graph, **(QUICK | settings))
    with pytest.raises(InputError, match=sentence):
        made.fit(train, known, stopping=(watched, truth))


def test_a_precision_that_no_threshold_reaches_is_refused(graph: Graph, pair: tuple[Any, ...]):
    alike = graph.replace(features=np.ones((90, 2), dtype=np.float32))  # all nodes have the same probability
    with pytest.raises(
        InputError, match=r"No threshold takes nodes for 'rare' with a precision of at least 0\.9: the largest"
    ):
        fitted(pprop.MLPNodeClassifier, alike, pair, threshold="precision=0.9")


def test_a_threshold_needs_validation_nodes_and_one_class(graph: Graph, nodes: Any, kinds: Any, animals: Any):
    with pytest.raises(InputError, match=NO_VALIDATION):
        pprop.MLPNodeClassifier(graph, **QUICK, stopping=None, threshold="f1").fit(nodes, kinds)
    with pytest.raises(InputError) as refused:
        pprop.MLPNodeClassifier(graph, **QUICK, threshold="f1").fit(nodes, animals)
    sentence = "A threshold is for one class. There are 3 classes: 'ant', 'bee', 'cat'. Name the class: "
    assert str(refused.value) == f"{sentence}positive=..."
    assert refused.value.sentence(SHELL) == f"{sentence}--positive NAME"


def test_validation_nodes_of_one_class_are_refused(graph: Graph, pair: tuple[Any, ...]):
    train, known, watched, truth = pair
    usual = truth == "usual"
    model = pprop.MLPNodeClassifier(graph, **QUICK, scoring="average_precision")
    with pytest.raises(InputError, match=r"None of 1\d validation nodes is 'rare'"):
        model.fit(train, known, stopping=(watched[usual], truth[usual]))


def test_a_threshold_without_validation_nodes_of_the_class_must_be_given(graph: Graph, pair: tuple[Any, ...]):
    train, known, watched, truth = pair
    usual = truth == "usual"
    with pytest.raises(InputError) as refused:
        pprop.MLPNodeClassifier(graph, **QUICK, threshold="f1").fit(
            train, known, stopping=(watched[usual], truth[usual])
        )
    sentence = (
        f"No threshold can be chosen: none of {usual.sum()} validation nodes is 'rare'. "
        "Label more nodes of this class, use more nodes for validation, or give a probability: "
    )
    assert str(refused.value) == f"{sentence}threshold=0.5."
    assert refused.value.sentence(SHELL) == f"{sentence}--threshold 0.5"
    given = pprop.MLPNodeClassifier(graph, **QUICK, threshold=0.5)
    given.fit(train, known, stopping=(watched[usual], truth[usual]))
    assert given.threshold_ is not None
    assert (given.threshold_.probability, given.threshold_.positives) == (0.5, 0)


def test_score_refuses_nodes_for_which_the_scoring_has_no_value(graph: Graph, pair: tuple[Any, ...]):
    model = fitted(pprop.MLPNodeClassifier, graph, pair, scoring="average_precision")
    with pytest.raises(InputError, match="None of 3 nodes is 'rare': average precision of 'rare' has no value"):
        model.score([0, 1, 2], ["usual"] * 3)
    with pytest.raises(InputError, match="'y' parameter of score must be labels among the classes"):
        model.score([0, 1, 2], ["usual", "rare", "odd"])


@pytest.mark.parametrize("threshold", ["f1", "recall=0.9", "cost=5:1"])
def test_boosting_decides_by_a_threshold_of_nodes_that_it_did_not_learn(
    graph: Graph, pair: tuple[Any, ...], tmp_path: Path, threshold: str
):
    train, known, watched, truth = pair
    model = pprop.ColumnsClassifier(graph, scoring="average_precision", threshold=threshold, random_state=0)
    model.fit(train, known, stopping=(watched, truth))
    plain = pprop.ColumnsClassifier(graph, random_state=0).fit(train, known, stopping=(watched, truth))
    assert np.array_equal(model.logits_, plain.logits_)
    shares, limit = model.predict_proba()[:, 0], model.threshold_
    assert limit is not None
    assert np.array_equal(model.predict() == "rare", shares >= limit.probability)
    taken = model.predict(watched) == "rare"
    assert (limit.nodes, limit.taken, limit.hits) == (18, taken.sum(), (taken & (truth == "rare")).sum())
    value = metrics.average_precision_score(truth == "rare", shares[watched])
    assert model.score(watched, truth) == pytest.approx(value)
    assert model.record_.stopping_score == pytest.approx(value)
    model.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert loaded.threshold_ == limit
    assert np.array_equal(loaded.predict(), model.predict())
    assert loaded.score(watched, truth) == model.score(watched, truth)


def in_turn(nodes: NDArray[np.int64], kinds: NDArray[np.str_]) -> tuple[Any, ...]:
    """Every second labelled node trains, the others validate: both have rare nodes."""
    return nodes[::2], kinds[::2], nodes[1::2], kinds[1::2]


@pytest.mark.parametrize("threshold", ["f1", "recall=0.9", "cost=5:1", 0.3])
def test_label_propagation_does_not_spread_the_labels_that_choose_its_threshold(
    graph: Graph, nodes: Any, kinds: Any, tmp_path: Path, threshold: Any
):
    train, known, watched, truth = in_turn(nodes, kinds)
    model = pprop.LabelPropagationClassifier(graph, scoring="average_precision", threshold=threshold)
    model.fit(train, known, stopping=(watched, truth))
    plain = pprop.LabelPropagationClassifier(graph).fit(train, known)
    assert np.array_equal(model.logits_, plain.logits_)
    assert np.array_equal(model.known_nodes_, np.sort(nodes))
    assert np.array_equal(model.amounts_ > 0, np.isin(model.known_nodes_, train))
    shares, limit = model.predict_proba()[:, 0], model.threshold_
    assert limit is not None
    assert np.array_equal(model.predict() == "rare", shares >= limit.probability)
    taken = model.predict(watched) == "rare"
    assert (limit.nodes, limit.taken, limit.hits) == (len(watched), taken.sum(), (taken & (truth == "rare")).sum())
    value = metrics.average_precision_score(truth == "rare", shares[watched])
    assert model.score(watched, truth) == pytest.approx(value)
    record = model.record_
    assert (record.train_nodes, record.stopping_nodes) == (len(train), len(watched))
    assert record.stopping_score == pytest.approx(value)
    assert record.stopping_accuracy == plain.score(watched, truth)
    assert model.stopping_nodes_.tolist() == watched.tolist()
    model.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert loaded.threshold_ == limit
    assert np.array_equal(loaded.predict(), model.predict())
    assert loaded.score(watched, truth) == model.score(watched, truth)


def test_label_propagation_without_a_threshold_spreads_all_labels_whatever_judges_it(
    graph: Graph, nodes: Any, kinds: Any
):
    train, known, watched, truth = in_turn(nodes, kinds)
    plain, scored = (
        pprop.LabelPropagationClassifier(graph, scoring=scoring).fit(train, known, stopping=(watched, truth))
        for scoring in (None, "average_precision")
    )
    every = pprop.LabelPropagationClassifier(graph).fit(nodes, kinds)
    assert np.array_equal(plain.logits_, every.logits_)
    assert np.array_equal(scored.logits_, every.logits_)
    assert scored.record_.stopping_score is None
    rest = np.setdiff1d(np.arange(90), nodes)
    value = metrics.average_precision_score(rest // 30 == 2, scored.predict_proba(rest)[:, 0])
    assert scored.score(rest, np.where(rest // 30 == 2, "rare", "usual")) == pytest.approx(value)


def test_label_propagation_without_validation_nodes_chooses_no_threshold(graph: Graph, nodes: Any, kinds: Any):
    with pytest.raises(InputError, match=NO_VALIDATION):
        pprop.LabelPropagationClassifier(graph, threshold="f1").fit(nodes, kinds)


@pytest.mark.parametrize("normalization", ["row", "sym"])
def test_an_ensemble_decides_by_a_threshold_of_its_vote(
    graph: Graph, nodes: Any, kinds: Any, tmp_path: Path, normalization: str
):
    train, known, watched, truth = in_turn(nodes, kinds)
    how: dict[str, Any] = {"members": 3, "rounds": 1, "normalization": normalization, **QUICK}
    plain = pprop.APPNPEnsembleClassifier(graph, **how).fit(train, known, stopping=(watched, truth))
    decided = pprop.APPNPEnsembleClassifier(graph, threshold="f1", **how).fit(train, known, stopping=(watched, truth))
    assert np.array_equal(decided.logits_, plain.logits_)
    model = pprop.APPNPEnsembleClassifier(graph, scoring="average_precision", threshold="recall=0.9", **how)
    model.fit(train, known, stopping=(watched, truth))
    shares, limit = model.predict_proba()[:, 0], model.threshold_
    assert limit is not None
    assert np.array_equal(model.predict() == "rare", shares >= limit.probability)
    taken = model.predict(watched) == "rare"
    assert (limit.nodes, limit.taken, limit.hits) == (len(watched), taken.sum(), (taken & (truth == "rare")).sum())
    value = metrics.average_precision_score(truth == "rare", shares[watched])
    assert model.score(watched, truth) == pytest.approx(value)
    assert model.record_.stopping_score == pytest.approx(value, abs=1e-6)
    assert model.history_.stopping_score.shape == (2,)
    model.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert loaded.threshold_ == limit
    assert np.array_equal(loaded.predict(), model.predict())


def test_an_ensemble_of_one_is_appnp_with_the_same_scoring_and_threshold(graph: Graph, nodes: Any, kinds: Any):
    train, known, watched, truth = in_turn(nodes, kinds)
    judged: dict[str, Any] = {"scoring": "average_precision", "threshold": "f1", **QUICK}
    one = pprop.APPNPEnsembleClassifier(graph, members=1, rounds=0, **judged)
    one.fit(train, known, stopping=(watched, truth))
    appnp = pprop.APPNPClassifier(graph, **judged).fit(train, known, stopping=(watched, truth))
    assert np.array_equal(one.logits_, appnp.logits_)
    assert one.threshold_ == appnp.threshold_
    assert one.record_.stopping_score == pytest.approx(appnp.record_.stopping_score, abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"threshold": "f1", "folds": 2}, "threshold"),
        ({"threshold": 0.3, "spread_errors": 0.1}, "threshold"),
        ({"scoring": "f1", "folds": 2}, "scoring"),
        ({"scoring": "f1", "alpha": (0.1, 0.3)}, "scoring"),
    ],
)
def test_an_ensemble_is_not_judged_by_nodes_that_its_members_learn(
    graph: Graph, nodes: Any, kinds: Any, settings: dict[str, Any], name: str
):
    train, known, watched, truth = in_turn(nodes, kinds)
    with pytest.raises(InputError, match=f"The '{name}' parameter of APPNPEnsembleClassifier must be None with "):
        pprop.APPNPEnsembleClassifier(graph, **QUICK, **settings).fit(train, known, stopping=(watched, truth))


def test_boosting_without_validation_nodes_chooses_no_threshold(graph: Graph, nodes: Any, kinds: Any):
    with pytest.raises(InputError, match=NO_VALIDATION):
        pprop.ColumnsClassifier(graph, threshold="f1").fit(nodes, kinds)
