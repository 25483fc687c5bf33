"""The index of a series or frame is never ignored: labels, nodes, weights and features land on the nodes that it names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score

import pprop
from pprop import APPNPClassifier, AutoClassifier, Graph, InputError, LabelPropagationClassifier, PropagatedClassifier

N = 24
IDS = np.array([f"n{k}" for k in range(N)])
CLASSES = np.where(np.arange(N) < N // 2, "left", "right")
MIXED = np.random.default_rng(3).permutation(N)
LABELS = pd.Series(CLASSES, index=IDS)
SHUFFLED = LABELS.iloc[MIXED]
X = np.random.default_rng(5).normal(size=(N, 3)) + (CLASSES == "left")[:, None]


def _ring() -> Graph:
    ring = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(N, N))
    return Graph.from_scipy(ring, features=X, ids=IDS)


GRAPH = _ring()
QUICK: dict[str, Any] = {"hidden": 4, "max_epochs": 2, "random_state": 0, "stopping": 0.3}


def _spread(**given: Any) -> Any:
    return LabelPropagationClassifier(GRAPH).fit(**given).logits_


def test_labels_by_id_land_on_their_nodes() -> None:
    """As reported: edges decide the order of the nodes, the table of the nodes that of the labels."""
    edges = pd.DataFrame({"source": list("cba"), "target": list("bad")})
    nodes = pd.DataFrame({"id": list("abcd"), "topic": list("xxyy")})
    graph = Graph.from_pandas(edges)
    assert graph.ids is not None
    assert graph.ids.tolist() != nodes["id"].tolist()
    model = LabelPropagationClassifier(graph, alpha=0.9).fit(y=nodes.set_index("id")["topic"])
    assert model.predict(list("abcd")).tolist() == list("xxyy")


@pytest.mark.parametrize("kind", [APPNPClassifier, AutoClassifier])
def test_training_on_shuffled_labels_by_id_is_training_on_labels_in_order(kind: Any) -> None:
    expected = kind(GRAPH, **QUICK).fit(y=CLASSES)
    assert np.array_equal(kind(GRAPH, **QUICK).fit(y=SHUFFLED).logits_, expected.logits_)


def test_labels_by_id_name_the_nodes_that_have_one() -> None:
    some = np.sort(MIXED[:9])
    expected = _spread(X=some, y=CLASSES[some])
    assert np.array_equal(_spread(y=SHUFFLED.iloc[np.isin(MIXED, some)]), expected)
    assert np.array_equal(_spread(y=SHUFFLED.where(np.isin(MIXED, some))), expected)  # the others NaN


def test_nodes_and_labels_with_indices_are_matched() -> None:
    some = MIXED[:9]
    expected = _spread(X=some, y=CLASSES[some])
    nodes = pd.Series(IDS[some], index=range(100, 109))
    labels = pd.Series(CLASSES[some], index=range(100, 109))
    for y in (labels, labels.iloc[::-1], labels.set_axis(IDS[some]), labels.set_axis(IDS[some])[::-1], SHUFFLED):
        for given in ({"X": nodes}, {"ids": nodes}, {"X": nodes.to_frame()}):
            assert np.array_equal(_spread(**given, y=y), expected)
    for y in (SHUFFLED, LABELS, LABELS.iloc[some], LABELS.iloc[some].to_numpy()):
        assert np.array_equal(_spread(X=IDS[some], y=y), expected)
        assert np.array_equal(_spread(X=some, y=y), expected)
    with pytest.raises(InputError, match=r"'y' parameter of fit must be indexed as what was given with it \(100, "):
        _spread(X=nodes, y=labels.set_axis(range(50, 59)))


@pytest.mark.parametrize(("ids", "alike"), [(list("cbad"), 1), ([30, 20, 10, 40], 1), ([3, 2, 1, 0], 4), (None, 4)])
def test_positions_whose_index_names_other_nodes_are_refused(ids: Any, alike: int) -> None:
    """The index of integers that may as well number the rows of another table is left alone."""
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], nodes=range(4))
    graph = graph.replace(ids=ids)
    model = LabelPropagationClassifier(graph).fit(np.arange(4), ["x", "x", "y", "y"])
    keys = sorted(ids or range(10, 14))
    nodes = pd.Series(np.arange(4), index=keys)
    expected = model.predict_proba(np.arange(4))
    calls: dict[str, Any] = {
        "fit": lambda X: LabelPropagationClassifier(graph).fit(X, ["x", "x", "y", "y"]),
        "predict_proba": model.predict_proba,
        "score": lambda X: model.score(X, ["x", "x", "y", "y"]),
        "ppr": lambda X: pprop.ppr(graph, X if isinstance(X, pd.Series) else X.iloc[:, 0], topk=2),
    }
    for name, call in calls.items():
        call(nodes.set_axis(range(4)))
        call(nodes.set_axis(range(50, 54)))
        call(nodes if ids is None else nodes.set_axis(ids))
        for given in (nodes, nodes.to_frame()):
            if alike == 4 or ids is None:
                call(given)
                continue
            with pytest.raises(
                InputError, match=r"(X|nodes)' parameter of .* of the nodes that its index names"
            ) as error:
                call(given)
            assert f"Got position 0, which is node {ids[0]!r}, in the row of {keys[0]!r} instead" in str(error.value), (
                name
            )
    assert np.array_equal(model.predict_proba(nodes.set_axis(range(9, 13))), expected)


def test_a_mask_with_an_index_marks_the_nodes_that_it_names() -> None:
    marked = np.isin(np.arange(N), MIXED[:9])
    expected = _spread(X=marked, y=CLASSES)
    mask = pd.Series(marked, index=IDS).iloc[MIXED[::-1]]
    for y in (SHUFFLED, CLASSES, LABELS[marked], SHUFFLED[SHUFFLED.index.isin(IDS[marked])]):
        assert np.array_equal(_spread(X=mask, y=y), expected)
    model = LabelPropagationClassifier(GRAPH).fit(y=CLASSES)
    assert model.predict(mask).tolist() == CLASSES[marked].tolist()
    with pytest.raises(InputError, match=r"'X' parameter of predict .* unknown ids \('x0', 'x1', 'x2' and 21 more\)"):
        model.predict(mask.set_axis([f"x{k}" for k in range(N)]))


def test_weights_are_found_by_the_index_of_the_labels() -> None:
    weights = pd.Series(np.arange(1.0, N + 1), index=IDS)
    expected = _spread(y=CLASSES, sample_weight=weights.to_numpy())
    for given in (weights, weights.iloc[MIXED], weights[::-1]):
        for y in (CLASSES, SHUFFLED):
            assert np.array_equal(_spread(y=y, sample_weight=given), expected)
    with pytest.raises(
        InputError, match=r"'sample_weight' .*index of the labels.*pd\.Series\(values, index=y\.index\)"
    ):
        _spread(y=SHUFFLED, sample_weight=weights.to_numpy())
    with pytest.raises(InputError, match=r"'sample_weight' .*1 unknown id \('?x"):
        _spread(y=CLASSES, sample_weight=weights.rename({"n0": "x"}))
    nodes = pd.Series(IDS, index=range(100, 100 + N))
    rows = weights.set_axis(nodes.index)
    assert np.array_equal(_spread(X=nodes, y=SHUFFLED, sample_weight=rows.iloc[MIXED]), expected)


def test_stopping_and_scores_are_found_by_id() -> None:
    train, watched = np.arange(0, N, 2), np.arange(1, N, 2)
    pair = (IDS[watched], SHUFFLED)
    expected = APPNPClassifier(GRAPH, **QUICK).fit(train, CLASSES[train], stopping=(watched, CLASSES[watched]))
    model = APPNPClassifier(GRAPH, **QUICK).fit(IDS[train], SHUFFLED, stopping=pair)
    assert np.array_equal(model.logits_, expected.logits_)
    with pytest.raises(InputError, match=r"'stopping' parameter of fit .* without 12 of these 12 nodes \('n1', "):
        APPNPClassifier(GRAPH, **QUICK).fit(train, CLASSES[train], stopping=(watched, LABELS.iloc[train]))
    answers = pd.Series(model.predict(), index=IDS)
    answers.iloc[:5] = "left"
    weights = pd.Series(np.arange(1.0, N + 1), index=IDS)
    by_hand = np.average(model.predict() == answers.to_numpy(), weights=weights)
    assert model.score(y=answers.iloc[MIXED], sample_weight=weights[::-1]) == pytest.approx(by_hand, abs=1e-12)
    assert model.score(IDS[:5], answers.iloc[MIXED]) == np.mean(model.predict(range(5)) == "left")


def test_tuning_finds_labels_by_id() -> None:
    space = {"alpha": [0.1, 0.5], "hidden": 4, "max_epochs": 2}
    how: dict[str, Any] = {"stopping": 0.5, "space": space, "trials": 1, "holdouts": 1}
    assert (
        pprop.tune(GRAPH, None, y=SHUFFLED, **how).trials[0].scores
        == pprop.tune(GRAPH, None, y=CLASSES, **how).trials[0].scores
    )
    with pytest.raises(InputError, match=r"'y' parameter of tune .*unknown id"):
        pprop.tune(GRAPH, None, y=SHUFFLED.rename({"n3": "x"}), **how)


def test_features_of_an_estimator_are_found_by_id() -> None:
    frame = pd.DataFrame(X, index=IDS, columns=["x", "y", "z"])
    expected = PropagatedClassifier(LogisticRegression(), GRAPH, features=frame).fit(y=CLASSES)
    model = PropagatedClassifier(LogisticRegression(), GRAPH, features=frame.iloc[MIXED]).fit(y=SHUFFLED)
    assert np.array_equal(model.logits_, expected.logits_)
    with pytest.raises(InputError, match=r"'features' parameter of PropagatedClassifier .* no row for 1 of 24 nodes"):
        PropagatedClassifier(LogisticRegression(), GRAPH, features=frame.iloc[1:]).fit(y=CLASSES)


def test_training_by_hand_finds_labels_and_weights_by_id() -> None:
    codes = pd.Series((CLASSES == "right").astype(int), index=IDS)
    weights = pd.Series(np.arange(1.0, N + 1), index=IDS)
    split = pprop.Split(np.arange(0, N, 2), np.arange(1, N, 2), np.array([0]))
    how: dict[str, Any] = {"stopping": pprop.Stopping(None, 2)}
    expected = pprop.train(
        pprop.MLP(hidden=4), GRAPH, split, labels=codes.to_numpy(), weights=weights.to_numpy(), **how
    )
    found = pprop.train(pprop.MLP(hidden=4), GRAPH, split, labels=codes.iloc[MIXED], weights=weights[::-1], **how)
    assert np.array_equal(found.logits, expected.logits)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (SHUFFLED.set_axis(range(1, N + 1)), r"24 unknown ids \(1, 2, 3 and 21 more\).*reset_index\(drop=True\)"),
        (SHUFFLED.rename({"n4": "n5"}), r"'n5' more than once"),
        (LABELS.reset_index(drop=True)[MIXED], r"unknown ids"),
    ],
)
def test_labels_with_any_other_index_are_refused(labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _spread(y=labels)


def test_integer_ids_that_could_be_rows_are_refused() -> None:
    graph = GRAPH.replace(ids=MIXED)
    model = LabelPropagationClassifier(graph)
    rows = pd.Series(CLASSES)
    with pytest.raises(InputError, match=r"0 to 23, which are rows, and also ids .* y\.loc\[graph\.ids\] .*set_axis"):
        model.fit(y=rows)
    by_rows = LabelPropagationClassifier(GRAPH).fit(y=CLASSES)
    assert np.array_equal(model.fit(y=rows.set_axis(graph.ids)).logits_, by_rows.logits_)
    by_ids = LabelPropagationClassifier(GRAPH).fit(y=CLASSES[MIXED])
    assert np.array_equal(model.fit(y=rows.loc[graph.ids]).logits_, by_ids.logits_)


def test_cross_validation_takes_rows_of_a_series_and_of_an_array() -> None:
    model = LabelPropagationClassifier(GRAPH)
    folds = KFold(4, shuffle=True, random_state=0)
    expected = cross_val_score(model, MIXED, CLASSES[MIXED], cv=folds)
    y = pd.Series(CLASSES[MIXED])
    for nodes in (MIXED, IDS[MIXED], pd.Series(IDS[MIXED])):
        assert cross_val_score(model, nodes, y, cv=folds).tolist() == expected.tolist()


def test_cross_validation_of_labels_by_id_in_another_order_is_refused_with_what_to_do() -> None:
    """Each fold has nodes by position and labels of other nodes: scikit-learn prints one error for all of them."""
    model, folds = LabelPropagationClassifier(GRAPH), KFold(3)
    with pytest.raises(ValueError, match="3 fits failed with the following error") as failed:
        cross_val_score(model, np.arange(N), SHUFFLED, cv=folds)
    said = str(failed.value)
    assert said.count("Got an index of other nodes instead. Pass graph.positions(y.index) as the nodes") == 1
    found = cross_val_score(model, GRAPH.positions(SHUFFLED.index), SHUFFLED, cv=folds)
    assert found.tolist() == cross_val_score(model, MIXED, CLASSES[MIXED], cv=folds).tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda model: model.fit(y=CLASSES, epochs=3),
        lambda model: model.predict(1, 2, 3),
        lambda model: model.predict_proba(node=1),
        lambda model: model.explain(1, wrong=2),
        lambda model: model.save(),
        lambda model: model.on(),
    ],
)
def test_a_wrong_argument_of_a_method_names_no_class_that_users_do_not_know(call: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^(LabelPropagationClassifier\.)?(fit|predict|predict_proba|explain|save|on)\(\) "
    ):
        call(LabelPropagationClassifier(GRAPH))


def test_an_explanation_is_a_frame_whose_contributions_add_up() -> None:
    model = LabelPropagationClassifier(GRAPH).fit(y=CLASSES)
    explanation = model.explain("n3", k=4)
    frame = explanation.to_frame()
    assert frame["node"].tolist()[:4] == explanation.names
    assert frame["label"].tolist()[:4] == explanation.labels
    assert frame["node"].isna().tolist() == [False] * 4 + [True]
    assert frame["share"].sum() == pytest.approx(1)
    sums = frame[["contribution_left", "contribution_right"]].sum()
    np.testing.assert_allclose(sums, explanation.value, atol=1e-12)


def test_features_in_place_of_nodes_and_labels_that_are_missing_are_refused() -> None:
    given: list[Any] = [X, pd.DataFrame(X), sparse.csr_array(X)]
    for wrong in given:
        with pytest.raises(
            InputError, match=r"'X' .*features belong into the graph, graph\.replace\(features=\.\.\.\)"
        ):
            LabelPropagationClassifier(GRAPH).fit(wrong, CLASSES)
    with pytest.raises(InputError, match=r"target y is None. Pass one class label per node\.$"):
        LabelPropagationClassifier(GRAPH).fit()
    labelled = GRAPH.replace(labels=CLASSES)
    with pytest.raises(InputError, match=r"Those of the graph are not read: y=graph\.labels passes them"):
        LabelPropagationClassifier(labelled).fit()
