"""Regressors, and classifiers of several labels: scikit-learn's conventions, units, what is unknown, what is refused."""

from __future__ import annotations

import pickle
import warnings
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score

import pprop
from pprop import (
    APPNPClassifier,
    APPNPRegressor,
    ColumnsRegressor,
    Graph,
    InputError,
    MLPNodeRegressor,
    PropagatedFeatures,
    PropagatedRegressor,
)

QUICK: dict[str, Any] = {"hidden": 16, "max_epochs": 300, "random_state": 0}


@pytest.fixture(scope="module")
def world() -> tuple[Graph, NDArray[np.float64]]:
    """A ring of 200 nodes whose number changes slowly along it; features tell it with much noise."""
    rng = np.random.default_rng(0)
    n = 200
    angle = 2 * np.pi * np.arange(n) / n
    numbers = 1000 + 300 * np.sin(angle)
    ring = sparse.diags_array([1.0, 1.0, 1.0, 1.0], offsets=[-1, 1, n - 1, 1 - n], shape=(n, n))
    features = np.stack([np.sin(angle), np.cos(angle), np.ones(n)], axis=1) + rng.normal(scale=0.8, size=(n, 3))
    graph = Graph.from_scipy(sparse.csr_array(ring), features=features, ids=[f"n{k}" for k in range(n)])
    return graph, numbers


def test_a_regressor_predicts_in_the_unit_of_the_labels_and_the_graph_helps(world: tuple[Graph, NDArray[np.float64]]):
    graph, numbers = world
    train, test = np.arange(0, 200, 2), np.arange(1, 200, 2)
    model = APPNPRegressor(graph, **QUICK).fit(train, numbers[train])
    alone = MLPNodeRegressor(graph, **QUICK).fit(train, numbers[train])
    found = model.predict(test)
    assert found.shape == (100,)
    assert model.score(test, numbers[test]) == pytest.approx(r2_score(numbers[test], found))
    assert model.score(test, numbers[test]) > alone.score(test, numbers[test]) + 0.1
    assert is_regressor(model)
    assert model.outputs_.shape == (200, 1)
    np.testing.assert_allclose(model.known_labels_, numbers[train])


def test_labels_times_ten_plus_three_give_predictions_times_ten_plus_three(world: tuple[Graph, NDArray[np.float64]]):
    graph, numbers = world
    nodes = range(0, 200, 3)
    one = APPNPRegressor(graph, **QUICK).fit(nodes, numbers[::3]).predict()
    other = APPNPRegressor(graph, **QUICK).fit(nodes, 10 * numbers[::3] + 3).predict()
    np.testing.assert_allclose(other, 10 * one + 3, rtol=1e-4)


def test_several_numbers_have_a_column_each_and_unknown_ones_are_left_out(world: tuple[Graph, NDArray[np.float64]]):
    graph, numbers = world
    both = np.stack([numbers, -numbers], axis=1)
    both[::4, 1] = np.nan
    both[5] = np.nan
    model = APPNPRegressor(graph, **QUICK).fit(range(100), both[:100])
    assert model.predict([0]).shape == (1, 2)
    assert model.n_unlabelled_ == 1
    whole = ~np.isnan(both[100:]).any(axis=1)
    assert model.score(range(100, 200), both[100:]) == pytest.approx(
        r2_score(both[100:][whole], model.predict(range(100, 200))[whole])
    )


def test_a_series_is_matched_by_its_ids(world: tuple[Graph, NDArray[np.float64]]):
    graph, numbers = world
    some = np.random.default_rng(1).permutation(200)[:90]
    series = pd.Series(numbers[some], index=[f"n{k}" for k in some])
    named = APPNPRegressor(graph, **QUICK).fit(y=series)
    placed = APPNPRegressor(graph, **QUICK).fit(np.sort(some), numbers[np.sort(some)])
    assert np.array_equal(named.predict(), placed.predict())


def test_weights_and_huber_let_outliers_count_less(world: tuple[Graph, NDArray[np.float64]]):
    graph, numbers = world
    train, spoiled = np.arange(0, 200, 2), numbers.copy()
    spoiled[[20, 60, 100]] = 20_000
    test = np.arange(1, 200, 2)

    def error(**how: Any) -> float:
        settings, weight = {k: v for k, v in how.items() if k != "weight"}, how.get("weight")
        model = APPNPRegressor(graph, **QUICK, **settings).fit(train, spoiled[train], sample_weight=weight)
        return float(np.abs(model.predict(test) - numbers[test]).mean())

    plain = error()
    assert error(loss="huber") < plain
    assert error(weight=np.where(spoiled[train] > 10_000, 0.0, 1.0)) < 0.5 * plain


def test_scikit_learns_tools_take_regressors(world: tuple[Graph, NDArray[np.float64]]):
    graph, numbers = world
    model = APPNPRegressor(graph, **QUICK)
    X = np.arange(200)[:, None]
    assert cross_val_score(clone(model), X, numbers, cv=2, scoring="neg_mean_absolute_error").shape == (2,)
    search = GridSearchCV(model, {"alpha": [0.1, 0.9]}, cv=2).fit(X, numbers)
    assert search.best_params_["alpha"] in (0.1, 0.9)
    fitted = model.fit(X, numbers)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301  of this test
    assert np.array_equal(again.predict(), fitted.predict())
    assert fitted.__sklearn_tags__().target_tags.multi_output


def test_a_propagated_regressor_is_the_propagation_of_the_estimators_predictions(
    world: tuple[Graph, NDArray[np.float64]],
):
    graph, numbers = world
    model = PropagatedRegressor(Ridge(), graph, alpha=0.2, solver=pprop.Exact()).fit(range(0, 200, 2), numbers[::2])
    features: Any = graph.features
    alone = Ridge().fit(features[::2], numbers[::2]).predict(features)
    looped = graph.adjacency.toarray() + np.eye(200)
    means = looped / looped.sum(axis=1, keepdims=True)
    exact = 0.2 * np.linalg.solve(np.eye(200) - 0.8 * means, alone)
    np.testing.assert_allclose(model.predict(), exact, rtol=1e-6)
    np.testing.assert_allclose(model.alone_[:, 0], alone)
    test = np.arange(1, 200, 2)
    assert model.score(test, numbers[test]) > r2_score(numbers[test], alone[test])
    small = PropagatedRegressor(Ridge(), graph, alpha=0.2, solver=pprop.Exact(), batch_size=7)
    np.testing.assert_allclose(small.fit(range(0, 200, 2), numbers[::2]).predict(), model.predict())


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, np.inf, 2.0, 3.0], "an infinite one at index 1"),
        (["a", "b", "c", "d"], "numbers of shape"),
        ([5.0, 5.0, 5.0, 5.0], "the same, 5, for all"),
        ([np.nan] * 4, "all unknown"),
        ([True, False, True, True], "numbers of shape"),
    ],
)
def test_targets_that_are_no_numbers_are_refused_in_one_sentence(
    world: tuple[Graph, NDArray[np.float64]], y: Any, message: str
):
    with pytest.raises(InputError, match=message):
        APPNPRegressor(world[0], **QUICK).fit([0, 1, 2, 3], y)


def test_two_numbers_for_one_node_are_refused(world: tuple[Graph, NDArray[np.float64]]):
    with pytest.raises(InputError, match="two for node 3"):
        APPNPRegressor(world[0], **QUICK).fit([3, 1, 3], [1.0, 2.0, 4.0])
    with pytest.raises(InputError, match="two for node 3"):  # nothing of a row is lost where another follows
        APPNPRegressor(world[0], **QUICK).fit([3, 1, 3], [[1.0, np.nan], [2.0, 0.0], [np.nan, 4.0]])
    with pytest.raises(InputError, match="two for node 3"):
        PropagatedFeatures(world[0], task="numbers", folds=2).fit([3, 1, 3], [1.0, 2.0, 4.0])


def test_what_a_regressor_cannot_do_is_refused(world: tuple[Graph, NDArray[np.float64]], tmp_path: Any):
    graph, numbers = world
    model, live = APPNPRegressor(graph, **QUICK).fit(range(50), numbers[:50]), cast("Any", pprop.live)
    for call in (lambda: model.save(tmp_path / "model"), lambda: model.explain(3), lambda: live(model)):
        with pytest.raises(InputError, match="one of several classes"):
            call()
    assert not (tmp_path / "model").exists()


# -- several labels ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tagged(world: tuple[Graph, NDArray[np.float64]]) -> NDArray[np.int64]:
    """Labels in overlapping arcs of the ring."""
    place = np.arange(200)
    return np.stack([(place < 120), (place >= 80), (place % 200 < 40) | (place > 150)], axis=1).astype(np.int64)


def test_an_indicator_matrix_makes_several_labels(world: tuple[Graph, NDArray[np.float64]], tagged: NDArray[np.int64]):
    graph, _ = world
    train, test = np.arange(0, 200, 2), np.arange(1, 200, 2)
    model = APPNPClassifier(graph, **QUICK).fit(train, tagged[train])
    odds, shares = model.decision_function(test), model.predict_proba(test)
    assert odds.shape == shares.shape == (100, 3)
    np.testing.assert_allclose(shares, 1 / (1 + np.exp(-odds)), rtol=1e-5)
    assert np.array_equal(model.predict(test), (odds > 0).astype(int))
    assert model.score(test, tagged[test]) == pytest.approx((model.predict(test) == tagged[test]).all(axis=1).mean())
    assert (model.predict(test) == tagged[test]).mean() > 0.8
    assert np.array_equal(model.classes_, [0, 1, 2])
    assert np.array_equal(model.known_labels_, tagged[train])


def test_forms_of_an_indicator_matrix_give_the_same_bits(
    world: tuple[Graph, NDArray[np.float64]], tagged: NDArray[np.int64]
):
    graph, _ = world
    nodes = np.arange(0, 200, 2)
    some = tagged[nodes]
    plain = APPNPClassifier(graph, **QUICK).fit(nodes, some).logits_
    frame = pd.DataFrame(some, columns=["x", "y", "z"], index=[f"n{k}" for k in nodes])
    forms: list[Any] = [some.astype(bool), some.tolist(), sparse.csr_array(some), frame]
    for given in forms:
        assert np.array_equal(APPNPClassifier(graph, **QUICK).fit(nodes, given).logits_, plain)
    shuffled = frame.sample(frac=1.0, random_state=0)
    assert np.array_equal(APPNPClassifier(graph, **QUICK).fit(y=shuffled).logits_, plain)


def test_unknown_labels_are_left_out_of_the_loss(world: tuple[Graph, NDArray[np.float64]], tagged: NDArray[np.int64]):
    graph, _ = world
    some = tagged.astype(float)
    some[np.random.default_rng(0).random(some.shape) < 0.3] = np.nan
    some[0] = np.nan
    model = APPNPClassifier(graph, **QUICK).fit(range(0, 200, 2), some[::2])
    assert model.n_unlabelled_ == np.isnan(some[::2]).all(axis=1).sum()
    assert (model.predict(range(1, 200, 2)) == tagged[1::2]).mean() > 0.7


def test_labels_that_nothing_can_be_learned_from_are_refused(
    world: tuple[Graph, NDArray[np.float64]], tagged: NDArray[np.int64]
):
    graph, _ = world
    none, every, strange = tagged.copy(), tagged.copy(), tagged.copy()
    none[:, 1], every[:, 2], strange[7, 0] = 0, 1, 2
    for labels, message in ((none, "no node has, column 1"), (every, "every node has, column 2"), (strange, "Got 2")):
        with pytest.raises(InputError, match=message):
            APPNPClassifier(graph, **QUICK).fit(range(200), labels)
    with pytest.raises(InputError, match=r"'scoring'.*other than one class"):
        APPNPClassifier(graph, scoring="accuracy", **QUICK).fit(range(200), tagged)
    with pytest.raises(InputError, match="several labels of a node are not supported"):
        pprop.ResidualClassifier(graph, max_epochs=3).fit(range(200), tagged)


def test_the_index_of_labels_with_warnings_as_errors(world: tuple[Graph, NDArray[np.float64]], tagged: Any):
    with warnings.catch_warnings(action="error"):
        APPNPClassifier(world[0], **QUICK).fit(range(0, 200, 2), tagged[::2])


# -- columns of the surroundings --------------------------------------------------------------------------------------


def test_columns_find_what_neighbours_say_of_a_number(world: tuple[Graph, NDArray[np.float64]]):
    """The number of a node is the sum of its neighbours' first column, and five times its own second."""
    graph, _ = world
    features: Any = graph.features
    sums = graph.adjacency @ features
    numbers = sums[:, 0] + 5 * features[:, 1]
    train, test = np.arange(150), np.arange(150, 200)
    model = ColumnsRegressor(graph, estimator=Ridge(), random_state=0).fit(train, numbers[train])
    assert model.score(test, numbers[test]) > 0.99
    assert model.record_.train_nodes == 150
    assert model.features_.get_feature_names_out()[-2].startswith("number 0")
    boosted = ColumnsRegressor(graph, random_state=0).fit(train, np.stack([numbers, -numbers], axis=1)[train])
    assert boosted.predict(test).shape == (50, 2)
    assert len(boosted.estimators_) == 2


def test_no_column_of_a_node_depends_on_its_own_number(world: tuple[Graph, NDArray[np.float64]]):
    graph, numbers = world
    other = numbers.copy()
    other[7] = -1e6
    columns = [PropagatedFeatures(graph, task="numbers").fit(range(100), y[:100]) for y in (numbers, other)]
    one, two = (each.transform([7]) for each in columns)
    assert np.array_equal(one, two)
    assert not np.array_equal(columns[0].transform([6]), columns[1].transform([6]))


def test_measured_nodes_are_neither_learned_nor_in_a_column(world: tuple[Graph, NDArray[np.float64]]):
    graph, numbers = world
    watched = np.arange(100, 150)
    found = [
        ColumnsRegressor(graph, random_state=0).fit(range(100), numbers[:100], stopping=(watched, y))
        for y in (numbers[watched], numbers[watched] + 40)
    ]
    assert found[0].record_.stopping_loss != found[1].record_.stopping_loss
    # what is standardised by all known numbers differs by rounding alone
    np.testing.assert_allclose(found[0].predict(), found[1].predict(), rtol=1e-5)


def test_boosting_takes_several_labels(world: tuple[Graph, NDArray[np.float64]], tagged: NDArray[np.int64]):
    graph, _ = world
    train, test = np.arange(0, 200, 2), np.arange(1, 200, 2)
    model = pprop.ColumnsClassifier(graph, random_state=0).fit(train, tagged[train])
    assert (model.predict(test) == tagged[test]).mean() > 0.9
    assert model.predict_proba(test).shape == (100, 3)
    assert len(model.estimator_) == 3
    assert any(name.startswith("label 2 1 away") for name in model.features_.get_feature_names_out())
    some = tagged.astype(float)
    some[::5, 1] = np.nan
    assert (
        pprop.ColumnsClassifier(graph, random_state=0).fit(train, some[train]).predict(test) == tagged[test]
    ).mean() > 0.9
