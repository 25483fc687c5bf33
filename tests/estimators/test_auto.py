"""AutoClassifier: the choice is what choosing by hand gives, and everything else is the chosen classifier's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import average_precision_score, balanced_accuracy_score

from pprop import (
    APPNPClassifier,
    APPNPClassifierCV,
    APPNPEnsembleClassifier,
    AutoClassifier,
    ColumnsClassifier,
    Graph,
    InputError,
    LabelPropagationClassifier,
    MLPNodeClassifier,
    load,
)
from pprop.estimators import auto
from pprop.estimators.blend import BlendClassifier
from pprop.estimators.targets import hold_out

QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 20, "backend": "numba"}
ALL = np.arange(90)
NAMES = np.array(["ant", "bee", "cat"])
SAME = (ALL[:, None] // 30 == ALL // 30) & (ALL[:, None] != ALL)  # all pairs within a community


@pytest.fixture(scope="module")
def chosen(graph: Graph, nodes: Any, animals: Any) -> AutoClassifier:
    return AutoClassifier(graph, random_state=3, **QUICK).fit(nodes, animals)


def by_hand(graph: Graph, seed: int) -> dict[str, Any]:
    return {
        "majority": LabelPropagationClassifier(graph, alpha=1.0, backend="numba"),
        "label_propagation": LabelPropagationClassifier(graph, backend="numba"),
        "network": MLPNodeClassifier(graph, random_state=seed, **QUICK),
        "appnp": APPNPClassifier(graph, normalization="sym", random_state=seed, **QUICK),
        "appnp_row": APPNPClassifierCV(graph, alphas=(0.1, 0.3, 0.5), normalization="row", random_state=seed, **QUICK),
        "appnp_label_reuse": APPNPEnsembleClassifier(
            graph, members=1, rounds=0, spread_errors=0.3, random_state=seed, **QUICK
        ),
    }


def test_the_docstring_names_all_candidates_that_use_validation_labels_for_more_than_stopping(
    graph: Graph, nodes: Any, animals: Any
) -> None:
    """They are those that stop nothing, and the one that spreads its errors; what is kept is fitted accordingly."""
    doc = " ".join((AutoClassifier.__doc__ or "").split())
    _, _, told = doc.partition("Labels of validation nodes are used for more than early stopping. ")
    told = told.partition("State this beside the accuracy.")[0]
    learn = {name for name, way in auto.CANDIDATES.items() if not way.make.stops_early}
    assert {"linear", "boosting", "forest"} < learn
    reuse = {name for name, way in auto.CANDIDATES.items() if way.own.get("spread_errors")}
    assert {name for name in auto.CANDIDATES if f'``"{name}"``' in told} == learn | reuse
    part = np.arange(len(nodes)) % 2 == 0
    model = AutoClassifier(graph, random_state=3, **QUICK).fit(
        nodes[part], animals[part], stopping=(nodes[~part], animals[~part])
    )
    judges = set(model.validation_nodes_.tolist())
    assert judges < set(nodes[~part].tolist())
    assert set(model.known_nodes_.tolist()) == set(nodes.tolist())
    best: Any = model.best_
    for member in [best] if len(model.chosen_) == 1 else best.members_:
        trained = set(member.train_nodes_.tolist())
        assert trained == set(nodes.tolist() if not member.stops_early else nodes[part].tolist())


def test_scores_are_those_of_fits_by_hand_on_the_other_nodes(
    graph: Graph, nodes: Any, animals: Any, chosen: AutoClassifier
) -> None:
    judges = hold_out(nodes, np.searchsorted(NAMES, animals), 0.2, 4)[1]
    assert chosen.validation_nodes_.tolist() == sorted(judges)
    assert np.bincount(judges // 30).tolist() == [2, 2, 2]
    others = ~np.isin(nodes, judges)
    models = by_hand(graph, 3)
    assert set(models) <= set(chosen.scores_)
    for name, model in models.items():
        model.fit(nodes[others], animals[others])
        assert chosen.scores_[name] == model.score(judges, NAMES[judges // 30])
    rows = {row.name: row for row in chosen.candidates_}
    assert list(rows) == list(auto.CANDIDATES)
    assert all(row.low <= row.score <= row.high and row.seconds > 0 for row in rows.values() if not row.left_out)
    assert chosen.scores_[chosen.chosen_[0]] == max(chosen.scores_.values())
    assert "majority" not in chosen.chosen_
    assert 1 <= len(chosen.chosen_) <= 4
    assert chosen.why_ == "Judged by accuracy: no class that is looked for is rare."


def test_what_is_chosen_is_fitted_to_all_nodes(graph: Graph, nodes: Any, animals: Any, chosen: AutoClassifier) -> None:
    members = getattr(chosen.best_, "members_", [chosen.best_])
    assert len(members) == len(chosen.chosen_)
    for name, member in zip(chosen.chosen_, members, strict=True):
        if name in by_hand(graph, 3):
            alone = by_hand(graph, 3)[name].fit(nodes, animals)
            assert np.array_equal(member.logits_, alone.logits_)
    assert np.array_equal(chosen.predict_proba(), chosen.best_.predict_proba())
    assert chosen.known_nodes_.tolist() == sorted(nodes)


def test_equal_candidates_are_averaged_saved_and_loaded_with_equal_bits(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    # the same classifier four times over: all score the same
    ways = {
        name: auto.Way(LabelPropagationClassifier, {"alpha": alpha}, features=False)
        for name, alpha in (("a", 0.1), ("b", 0.1), ("c", 0.1), ("d", 0.1), ("e", 0.1))
    }
    monkeypatch.setattr(auto, "CANDIDATES", ways)
    named = graph.replace(ids=[f"n{k}" for k in ALL])
    model = AutoClassifier(named, random_state=0).fit(nodes, animals)
    assert model.chosen_ == ("a", "b", "c", "d")
    assert type(model.best_) is BlendClassifier
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", graph=named)
    assert np.array_equal(again.logits_, model.logits_)
    np.testing.assert_allclose(
        model.predict_proba(), LabelPropagationClassifier(named).fit(nodes, animals).predict_proba(), atol=1e-5
    )
    with pytest.raises(InputError, match="averages the probabilities of several classifiers"):
        model.explain("n3")


def test_without_an_edge_the_network_is_chosen_and_without_a_hint_in_the_features_the_labels(nodes: Any) -> None:
    truth = NAMES[ALL // 30]
    telling = np.eye(3)[ALL // 30] + np.random.default_rng(0).normal(0, 0.2, (90, 3))
    options: dict[str, Any] = {**QUICK, "max_epochs": 60, "random_state": 0}
    alone = Graph.from_scipy(sparse.csr_array((90, 90)), features=telling)
    model = AutoClassifier(alone, **options).fit(nodes, truth[nodes])
    assert "network" in model.chosen_
    assert model.score(ALL, truth) > 0.9
    mute = Graph.from_scipy(
        sparse.csr_array(SAME.astype(float)), features=np.random.default_rng(1).normal(size=(90, 3))
    )
    model = AutoClassifier(mute, **options).fit(nodes, truth[nodes])
    assert model.chosen_[0] == "label_propagation"
    assert model.score(ALL, truth) == 1.0


def test_nothing_beats_the_majority_on_noise(graph: Graph) -> None:
    random = np.random.default_rng(2)
    labels = np.where(random.random(90) < 0.7, "usual", "other")
    noise = Graph.from_scipy(sparse.csr_array((90, 90)), features=random.normal(size=(90, 3)))
    model = AutoClassifier(noise, random_state=0, **QUICK).fit(ALL, labels)
    assert model.chosen_ == ("majority",)
    assert set(model.predict(ALL[:0])) == set()
    assert model.scores_["majority"] == pytest.approx(np.mean(labels[model.validation_nodes_] == "usual"))


def test_without_features_only_what_reads_none_is_tried(graph: Graph, nodes: Any, animals: Any) -> None:
    bare = graph.replace(features=None)
    model = AutoClassifier(bare, **QUICK, random_state=0).fit(nodes, animals)
    left_out = {row.name: row.left_out for row in model.candidates_ if row.left_out}
    assert {"network", "appnp", "appnp_row", "appnp_label_reuse"} <= set(left_out)
    assert left_out["network"] == "the graph has no features"
    assert {"majority", "label_propagation"} <= set(model.scores_)


def test_boosting_is_chosen_where_neighbours_differ() -> None:
    ring = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(400, 400))
    truth = np.where(np.arange(400) % 2, "odd", "even")
    nodes = np.random.default_rng(0).permutation(400)[:300]
    model = AutoClassifier(Graph.from_scipy(ring), random_state=0).fit(nodes, truth[nodes])
    assert set(model.chosen_) <= {"boosting", "linear", "forest"}
    rest = np.setdiff1d(np.arange(400), nodes)
    assert model.score(rest, truth[rest]) > 0.85
    assert (
        model.score(rest, truth[rest])
        > LabelPropagationClassifier(model.graph).fit(nodes, truth[nodes]).score(rest, truth[rest]) + 0.2
    )


def test_one_node_in_every_class_leaves_none_to_choose_by(graph: Graph) -> None:
    with pytest.warns(UserWarning, match=r"Every class has one node only, so there is none for AutoClassifier"):
        model = AutoClassifier(graph, **QUICK).fit([3, 40, 70, 3], ["a", "b", "c", "a"])
    assert (model.chosen_, model.scores_, len(model.validation_nodes_)) == (("label_propagation",), {}, 0)


def test_balanced_weights_compare_balanced_accuracies(graph: Graph) -> None:
    rare = np.where((ALL >= 60) & (ALL % 3 == 0), "rare", "usual")
    options: dict[str, Any] = {"class_weight": "balanced", "validation": 0.4, "random_state": 1, "scoring": "accuracy"}
    model = AutoClassifier(graph, **options, **QUICK).fit(ALL, rare)
    judges = model.validation_nodes_
    others = np.setdiff1d(ALL, judges)
    for name, single in by_hand(graph, 1).items():
        if name != "majority":
            single.set_params(class_weight="balanced")
        single.fit(others, rare[others])
        expected = balanced_accuracy_score(rare[judges], single.predict(judges))
        assert model.scores_[name] == pytest.approx(expected)


def test_a_rare_class_is_judged_by_its_average_precision_or_by_what_is_wanted(graph: Graph) -> None:
    rare = np.where((ALL >= 60) & (ALL % 3 == 0), "rare", "usual")
    model = AutoClassifier(graph, random_state=1, time=1e-9, **QUICK).fit(ALL, rare)
    assert model.why_.startswith("Judged by the average precision of 'rare', because 11 % of the training labels")
    judges = model.validation_nodes_
    others = np.setdiff1d(ALL, judges)
    alone = LabelPropagationClassifier(graph, alpha=1.0).fit(others, rare[others])
    expected = average_precision_score(rare[judges] == "rare", alone.predict_proba(judges)[:, 0])
    assert model.scores_["majority"] == pytest.approx(expected)
    other = AutoClassifier(graph, random_state=1, time=1e-9, scoring="roc_auc", positive="usual", **QUICK).fit(
        ALL, rare
    )
    assert other.why_ == f"Judged by the {other.scoring_.words}."
    assert (other.scoring_.name, other.scoring_.positive) == ("roc_auc", "usual")
    with pytest.raises(InputError, match=r"'scoring' parameter of AutoClassifier must be one of .*'accuracy'"):
        AutoClassifier(graph, scoring="acuracy").fit(ALL, rare)
    with pytest.raises(InputError, match="'positive' parameter"):
        AutoClassifier(graph, positive="absent").fit(ALL, rare)


def test_no_node_of_the_rare_class_to_judge_by_is_refused(graph: Graph) -> None:
    labels = np.where(ALL == 7, "rare", "usual")
    with pytest.raises(InputError, match=r"None of \d+ validation nodes is 'rare'"):
        AutoClassifier(graph, random_state=0, **QUICK).fit(ALL, labels)


def test_half_of_the_stopping_nodes_judge_and_in_the_end_all_are_used(graph: Graph, nodes: Any, animals: Any) -> None:
    pair = (nodes[24:], animals[24:])
    model = AutoClassifier(graph, random_state=0, time=1e-9, **QUICK).fit(nodes[:24], animals[:24], stopping=pair)
    assert set(model.validation_nodes_) < set(nodes[24:])
    assert len(model.validation_nodes_) == 6
    rest = np.setdiff1d(nodes, model.validation_nodes_)
    alone = LabelPropagationClassifier(graph, alpha=1.0).fit(rest, NAMES[rest // 30])
    judges = model.validation_nodes_
    assert model.scores_["majority"] == alone.score(judges, NAMES[judges // 30])
    assert model.known_nodes_.tolist() == sorted(nodes)
    single = (nodes[33:], np.array(["ant", "bee", "cat"]))  # one of each class: none to judge by
    first = nodes[:24]
    model = AutoClassifier(graph, random_state=0, time=1e-9, **QUICK).fit(
        np.setdiff1d(first, single[0]), NAMES[np.setdiff1d(first, single[0]) // 30], stopping=single
    )
    assert set(model.validation_nodes_) <= set(nodes[:24])


def test_when_the_time_has_run_out_it_says_what_was_not_tried(graph: Graph, nodes: Any, animals: Any) -> None:
    model = AutoClassifier(graph, time=1e-6, random_state=0, **QUICK).fit(nodes, animals)
    assert list(model.scores_) == ["majority"]
    found = {row.name: row.left_out for row in model.candidates_[1:]}
    few = {name: found.pop(name) for name in ("residual", "gprgnn")}
    assert set(found.values()) == {"the time of 1e-06 s was used up"}
    assert set(few.values()) == {"it needs 1,000 labelled nodes, and there are 36"}
    assert model.chosen_ == ("majority",)
    with pytest.raises(InputError, match=r"'time' parameter of AutoClassifier must be a float in \(0, inf\)"):
        AutoClassifier(graph, time=0).fit(nodes, animals)


def test_a_candidate_that_cannot_be_fitted_is_left_out_with_its_reason(
    graph: Graph, nodes: Any, animals: Any, monkeypatch: Any
) -> None:
    ways = {
        "majority": auto.CANDIDATES["majority"],
        "ensemble": auto.Way(APPNPEnsembleClassifier, {"members": 1, "rounds": 0, "folds": 10_000}),
    }
    monkeypatch.setattr(auto, "CANDIDATES", ways)
    model = AutoClassifier(graph, random_state=0, **QUICK).fit(nodes, animals)
    assert "'folds' parameter" in model.candidates_[1].left_out
    monkeypatch.setattr(auto, "CANDIDATES", {"ensemble": ways["ensemble"]})
    with pytest.raises(InputError, match="'folds' parameter"):
        AutoClassifier(graph, random_state=0, **QUICK).fit(nodes, animals)


def test_it_is_saved_loaded_and_explained_as_the_chosen_one(nodes: Any, tmp_path: Path) -> None:
    graph = Graph.from_scipy(sparse.csr_array(SAME.astype(float)), ids=[f"n{k}" for k in ALL])
    model = AutoClassifier(graph, random_state=0, time=1e-9, **QUICK)
    model = model.fit(nodes, NAMES[nodes // 30])  # the majority, which spreads nothing
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


def test_labels_that_the_graph_has_are_never_read(graph: Graph, nodes: Any, animals: Any) -> None:
    logits = []
    for turn in (0, 1):
        labels = np.roll(ALL // 30, turn)
        model = AutoClassifier(graph.replace(labels=labels), random_state=0, **QUICK).fit(nodes, animals)
        logits.append(model.logits_)
    assert np.array_equal(*logits)


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
    with pytest.raises(InputError, match="nodes that are not in X"):
        AutoClassifier(graph, **QUICK).fit(nodes, animals, stopping=(nodes[:3], animals[:3]))
    with pytest.raises(InputError, match=r"a pair \(nodes, y\) or a float in \(0, 1\)"):
        AutoClassifier(graph, **QUICK).fit(nodes, animals, stopping=1.5)


RARE = np.where(NAMES[ALL // 30] == "cat", "rare", "usual")


@pytest.mark.parametrize("most", [1, 4])
def test_a_threshold_is_chosen_by_the_nodes_that_judge_and_is_saved(
    graph: Graph, nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(auto, "MOST", most)
    settings: dict[str, Any] = {"scoring": "average_precision", "random_state": 3, **QUICK}
    model = AutoClassifier(graph, threshold="recall=0.9", **settings).fit(nodes, RARE[nodes])
    plain = AutoClassifier(graph, **settings).fit(nodes, RARE[nodes])
    limit = model.best_.threshold_
    assert limit is not None
    assert limit.positive == "rare"
    assert limit.nodes == len(model.validation_nodes_)
    assert limit.recall >= 0.9
    assert np.array_equal(model.predict_proba(), plain.predict_proba())
    assert np.array_equal(model.predict() == "rare", model.predict_proba()[:, 0] >= limit.probability)
    value = average_precision_score(RARE == "rare", model.predict_proba()[:, 0])
    assert model.score(ALL, RARE) == pytest.approx(value)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", graph=graph)
    assert loaded.fitted_.threshold == limit
    assert np.array_equal(loaded.predict(), model.predict())
    assert loaded.score(ALL, RARE) == model.score(ALL, RARE)


def test_without_labels_as_inputs_no_candidate_reads_labels(graph: Graph, nodes: Any, animals: Any) -> None:
    model = AutoClassifier(graph, label_inputs=False, random_state=3, **QUICK).fit(nodes, animals)
    rows = {row.name: row.left_out for row in model.candidates_}
    blind = {name for name, reason in rows.items() if reason == "it reads labels of training nodes"}
    assert blind == {"label_propagation", "appnp_label_reuse"}
    assert not blind & set(model.chosen_)
    without = ColumnsClassifier(graph, label_inputs=False, random_state=3)
    others = ~np.isin(nodes, model.validation_nodes_)
    without.fit(nodes[others], animals[others])
    judges = model.validation_nodes_
    assert model.scores_["boosting"] == without.score(judges, NAMES[judges // 30])


def test_one_class_only_without_nodes_to_judge_takes_no_threshold(graph: Graph) -> None:
    with pytest.raises(InputError, match="A threshold needs validation nodes, and there are none"):
        AutoClassifier(graph, threshold="f1", **QUICK).fit([0, 89], ["usual", "rare"])
