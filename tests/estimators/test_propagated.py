"""PropagatedClassifier against doing the same by hand with dense matrices."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib  # pyright: ignore[reportMissingTypeStubs]
import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

import pprop
from pprop import Chebyshev, Exact, Graph, InputError, MLPNodeClassifier, PowerIteration, PropagatedClassifier
from pprop.graph import transition_matrix

ALL = np.arange(90)


def spread(graph: Graph, H: Any, alpha: float, normalization: str, steps: int | None = None) -> Any:
    """The dense twin: K power steps, or the solution of the linear system."""
    T = transition_matrix(graph, normalization).to_scipy().toarray()
    if steps is None:
        return np.linalg.solve(np.eye(len(T)) - (1 - alpha) * T, alpha * H)
    value = H
    for _ in range(steps):
        value = (1 - alpha) * T @ value + alpha * H
    return value


def propagated(estimator: Any, graph: Graph, **settings: Any) -> PropagatedClassifier:
    """The reference backend: it has nothing to compile, and the numbers of classes vary."""
    options: dict[str, Any] = {"backend": "reference", **settings}
    return PropagatedClassifier(estimator, graph, **options)


def twin(estimator: Any) -> Any:
    return clone(estimator)


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier by the sign of the first number of a row, which keeps what it was given."""

    def fit(self, X: Any, y: Any) -> Recorder:
        self.classes_, self.fitted_to_, self.predicted_ = np.unique(y), X, []
        return self

    def decision_function(self, X: Any) -> Any:
        self.predicted_.append(X)
        return np.asarray(X).reshape(len(X), -1)[:, 0]


def rows(graph: Graph) -> Any:
    return graph.features


def dense(graph: Graph) -> Any:
    return rows(graph).toarray().astype(np.float64)


@pytest.mark.parametrize(
    ("solver", "steps"), [(None, 3), (PowerIteration(3), 3), (Exact(), None), (Chebyshev(tol=1e-10), None)]
)
def test_logits_are_spread_by_the_symmetric_matrix(
    graph: Graph, nodes: Any, animals: Any, solver: Any, steps: int | None
) -> None:
    papers = graph.replace(recommended=pprop.Recommended(0.1, 50, "sym"))
    model = propagated(LogisticRegression(), papers, alpha=0.2, steps=3, solver=solver).fit(nodes, animals)
    alone: Any = LogisticRegression().fit(rows(graph)[nodes], animals)
    Z = spread(graph, alone.decision_function(rows(graph)), 0.2, "sym", steps)
    np.testing.assert_allclose(model.decision_function(ALL), Z, atol=1e-8)
    assert model.predict(ALL).tolist() == alone.classes_[Z.argmax(axis=1)].tolist()
    powers = np.exp(Z / spread(graph, np.ones((90, 1)), 0.2, "sym", steps))
    np.testing.assert_allclose(model.predict_proba(ALL), powers / powers.sum(axis=1, keepdims=True), atol=1e-8)
    assert (model.normalization_, model.response_) == ("sym", "logits")


def test_probabilities_are_averaged_by_the_row_stochastic_matrix_and_sum_to_one(
    graph: Graph, nodes: Any, animals: Any
) -> None:
    graph = graph.replace(features=dense(graph))  # in float64, for probabilities in float64
    model = propagated(LogisticRegression(), graph, alpha=0.2, response="probabilities").fit(nodes, animals)
    alone: Any = LogisticRegression().fit(rows(graph)[nodes], animals)
    Z = spread(graph, alone.predict_proba(rows(graph)), 0.2, "row", 10)
    np.testing.assert_allclose(Z.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(ALL), Z, rtol=1e-9)
    np.testing.assert_allclose(model.alone_, alone.predict_proba(rows(graph)), rtol=1e-7)
    assert model.normalization_ == "row"


@pytest.mark.parametrize("normalization", ["sym", "col"])
def test_probabilities_spread_by_another_matrix_are_divided_by_their_sum(
    graph: Graph, nodes: Any, animals: Any, normalization: str
) -> None:
    model = propagated(MultinomialNB(), graph, alpha=0.2, normalization=normalization).fit(nodes, animals)
    Z = spread(graph, model.alone_, 0.2, normalization, 10)
    assert abs(Z.sum(axis=1) - 1).max() > 0.01
    np.testing.assert_allclose(model.predict_proba(ALL), Z / Z.sum(axis=1, keepdims=True), rtol=1e-9)


def test_shares_of_zero_and_one_stay_so(graph: Graph, nodes: Any, animals: Any) -> None:
    """Nearest neighbours vote with certainty, and without teleport nothing is added: logarithms of zero."""
    model = propagated(KNeighborsClassifier(1), graph, steps=0).fit(nodes, animals)
    assert set(np.unique(model.alone_)) == {0.0, 1.0}
    np.testing.assert_allclose(model.predict_proba(ALL), model.alone_, atol=1e-300)
    assert np.isfinite(model.decision_function(ALL)).all()


def test_a_node_that_receives_nothing_counts_every_class_alike(nodes: Any) -> None:
    """By columns and without self-loops or teleport, what reaches node 0 comes from a node that nobody reaches."""
    graph = Graph.from_scipy(sparse.csr_array([[0, 1.0, 0], [0, 0, 1.0], [0, 0, 0]]), directed=True, features=np.eye(3))
    model = propagated(KNeighborsClassifier(1), graph, alpha=0.0, steps=2, normalization="col", self_loops=False)
    probabilities = model.fit([0, 2], [0, 1]).predict_proba([0, 1, 2])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)


def test_two_classes_have_one_score_whose_sign_decides(graph: Graph) -> None:
    y = np.where(ALL < 45, "no", "yes")
    model = propagated(LogisticRegression(), graph, alpha=0.2, response="logits").fit(ALL[::3], y[::3])
    alone: Any = LogisticRegression().fit(rows(graph)[ALL[::3]], y[::3])
    Z = spread(graph, alone.decision_function(rows(graph)), 0.2, "row", 10)
    np.testing.assert_allclose(model.decision_function(ALL), Z, atol=1e-6)
    assert model.predict(ALL).tolist() == np.where(Z > 0, "yes", "no").tolist()
    np.testing.assert_allclose(model.predict_proba(ALL)[:, 1], 1 / (1 + np.exp(-Z)), rtol=1e-5)


def test_auto_takes_probabilities_on_an_own_graph_and_logits_where_a_matrix_is_chosen(
    graph: Graph, nodes: Any, animals: Any
) -> None:
    papers = graph.replace(recommended=pprop.Recommended(0.1, 50, "sym"))
    cases: list[tuple[Any, Graph, dict[str, Any], tuple[str, str]]] = [
        (LogisticRegression(), graph, {}, ("probabilities", "row")),
        (RidgeClassifier(), graph, {}, ("logits", "row")),
        (LogisticRegression(), graph, {"normalization": "sym"}, ("logits", "sym")),
        (LogisticRegression(), graph, {"normalization": "row"}, ("logits", "row")),
        (LogisticRegression(), papers, {}, ("logits", "sym")),
        (MultinomialNB(), papers, {}, ("probabilities", "row")),
    ]
    for estimator, where, settings, expected in cases:
        model = propagated(estimator, where, **settings).fit(nodes, animals)
        assert (model.response_, model.normalization_) == expected
        assert model.fitted_.settings["normalization"] == settings.get("normalization")


def test_spreading_helps_where_neighbours_are_alike(graph: Graph, nodes: Any, animals: Any) -> None:
    truth = np.array(["ant", "bee", "cat"])[ALL // 30]
    alone: Any = LogisticRegression().fit(dense(graph)[nodes], animals)
    others = np.setdiff1d(ALL, nodes)
    model = propagated(LogisticRegression(), graph).fit(nodes, animals)
    assert model.score(others, truth[others]) > alone.score(dense(graph)[others], truth[others]) + 0.05


def test_a_fitted_estimator_is_used_as_it_is(graph: Graph, nodes: Any, animals: Any) -> None:
    fitted: Any = LogisticRegression().fit(rows(graph)[nodes], animals)
    before = fitted.coef_.copy()
    expected = propagated(LogisticRegression(), graph).fit(nodes, animals).decision_function(ALL)
    prefit = propagated(fitted, graph, prefit=True).fit()
    assert prefit.estimator_ is fitted
    assert np.array_equal(prefit.decision_function(ALL), expected)
    frozen = propagated(FrozenEstimator(fitted), graph).fit(nodes[:6], animals[:6])
    assert np.array_equal(frozen.decision_function(ALL), expected)
    assert np.array_equal(fitted.coef_, before)


def test_an_estimator_given_to_be_fitted_stays_untouched(graph: Graph, nodes: Any, animals: Any) -> None:
    given = LogisticRegression()
    propagated(given, graph).fit(nodes, animals)
    assert not hasattr(given, "coef_")


def test_settings_of_the_inner_estimator_are_searched(graph: Graph, nodes: Any, animals: Any) -> None:
    model = propagated(LogisticRegression(), graph)
    grid = {"estimator__C": [1e-4, 1.0], "alpha": [0.1, 1.0], "solver": [None, Exact()]}
    folds = StratifiedKFold(2)
    options: dict[str, Any] = {"cv": folds, "error_score": "raise"}
    search = GridSearchCV(model, grid, **options).fit(nodes, animals)
    scores = cross_val_score(twin(model).set_params(**search.best_params_), nodes, animals, cv=folds)
    assert search.best_score_ == scores.mean() == max(search.cv_results_["mean_test_score"])
    by_hand = [
        propagated(LogisticRegression(C=1e-4), graph, alpha=1.0)
        .fit(nodes[train], animals[train])
        .score(nodes[test], animals[test])
        for train, test in folds.split(nodes, animals)
    ]
    wanted = {"estimator__C": 1e-4, "alpha": 1.0, "solver": None}
    assert search.cv_results_["mean_test_score"][search.cv_results_["params"].index(wanted)] == np.mean(by_hand)


def test_a_pickled_model_predicts_the_same(graph: Graph, nodes: Any, animals: Any) -> None:
    model = propagated(LogisticRegression(), graph).fit(nodes, animals)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert np.array_equal(again.predict_proba(ALL), model.predict_proba(ALL))


@pytest.mark.parametrize("given", ["the graph's", "dense", "texts"])
def test_a_model_in_a_joblib_file_predicts_and_explains_the_same(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path, given: str
) -> None:
    features = {"the graph's": None, "dense": dense(graph), "texts": [f"word{k % 7} word{k // 30}" for k in range(90)]}
    inner = make_pipeline(CountVectorizer(), LogisticRegression()) if given == "texts" else LogisticRegression()
    model = propagated(inner, graph, features=features[given], solver=Exact()).fit(nodes, animals)
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    assert np.array_equal(again.predict_proba(ALL), model.predict_proba(ALL))
    assert again.explain(5).names == model.explain(5).names
    assert np.array_equal(again.fit(nodes, animals).predict(ALL), model.predict(ALL))


def test_save_says_that_joblib_does_it(graph: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    for model in (propagated(LogisticRegression(), graph), propagated(LogisticRegression(), graph).fit(nodes, animals)):
        with pytest.raises(InputError, match=r"its LogisticRegression can only be pickled\. Call joblib\.dump\(model"):
            model.save(tmp_path / "model", overwrite=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", ["dense", "coo", "csc", "tensor", "batches"])
def test_every_kind_of_rows_gives_the_same_predictions(graph: Graph, nodes: Any, animals: Any, shape: str) -> None:
    table = dense(graph)
    features: Any = {
        "dense": table,
        "coo": sparse.coo_array(table),
        "csc": sparse.csc_array(table),
        "tensor": torch.from_numpy(table),
        "batches": table,
    }[shape]
    bare = graph.replace(features=None)
    batch = 7 if shape == "batches" else None
    model = propagated(LogisticRegression(), bare, features=features, batch_size=batch).fit(nodes, animals)
    expected = propagated(LogisticRegression(), graph).fit(nodes, animals)
    np.testing.assert_allclose(model.decision_function(ALL), expected.decision_function(ALL), atol=1e-4)


def test_images_reach_the_estimator_with_all_their_axes(graph: Graph) -> None:
    images = np.random.default_rng(0).normal(size=(90, 1, 4, 5))
    model = propagated(Recorder(), graph.replace(features=images), alpha=1.0).fit([3, 5], [0, 1])
    assert model.estimator_.fitted_to_.shape == (2, 1, 4, 5)
    np.testing.assert_allclose(model.decision_function(ALL), images[:, 0, 0, 0])
    flat = make_pipeline(FunctionTransformer(lambda X: X.reshape(len(X), -1)), LogisticRegression())
    model = propagated(flat, graph.replace(features=images)).fit([3, 5], [0, 1])
    assert model.predict_proba(ALL).shape == (90, 2)


def test_texts_are_features_too(graph: Graph) -> None:
    texts = [f"{'left' if k < 45 else 'right'} word{k % 7}" for k in range(90)]
    model = propagated(make_pipeline(CountVectorizer(), LogisticRegression()), graph, features=texts)
    assert model.fit([0, 10, 60, 70], [0, 0, 1, 1]).score(ALL, ALL >= 45) > 0.9


def test_a_file_mapped_into_memory_is_neither_copied_nor_read_as_a_whole(graph: Graph, tmp_path: Path) -> None:
    table = np.random.default_rng(0).normal(size=(90, 3))
    np.save(tmp_path / "features.npy", table)
    mapped: Any = np.load(tmp_path / "features.npy", mmap_mode="r")
    bare = graph.replace(features=None)
    model = propagated(Recorder(), bare, features=mapped, alpha=1.0)
    assert twin(model).features is mapped  # so that a search does not copy it either
    model.fit([3, 5], [0, 1])
    assert len(model.estimator_.fitted_to_) == 2
    assert [given is mapped for given in model.estimator_.predicted_] == [True]
    np.testing.assert_allclose(model.decision_function(ALL), table[:, 0])
    batches = propagated(Recorder(), bare, features=mapped, batch_size=40).fit([3, 5], [0, 1])
    assert [len(given) for given in batches.estimator_.predicted_] == [40, 40, 10]


def test_positions_as_features_let_a_node_classifier_be_spread(graph: Graph, nodes: Any, animals: Any) -> None:
    inner = MLPNodeClassifier(graph, hidden=8, max_epochs=10, random_state=0, backend="reference")
    model = propagated(inner, graph, alpha=0.2, normalization="sym", features=ALL).fit(nodes, animals)
    Z = pprop.propagate(graph, twin(inner).fit(nodes, animals).decision_function(ALL), alpha=0.2, backend="reference")
    np.testing.assert_allclose(model.decision_function(ALL), Z, atol=1e-5)


def test_the_graphs_recommendation_is_the_default_alpha(graph: Graph, nodes: Any, animals: Any) -> None:
    advised = graph.replace(recommended=pprop.Recommended(alpha=0.35, known=10))
    assert propagated(LogisticRegression(), advised).fit(nodes, animals).alpha_ == 0.35
    assert propagated(LogisticRegression(), graph).fit(nodes, animals).alpha_ == 0.1


def test_another_graph_under_a_fitted_model_is_refused(graph: Graph, nodes: Any, animals: Any) -> None:
    model = propagated(LogisticRegression(), graph).fit(nodes, animals)
    before = model.predict(ALL)
    model.graph = graph.replace(name="the same content")
    assert model.predict(ALL).tolist() == before.tolist()
    changed = graph.adjacency.tolil()
    changed[0, 89] = changed[89, 0] = 1.0
    model.set_params(graph=graph.replace(adjacency=changed.tocsr()))
    for method in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(
            InputError, match=r"not the one that it was fitted on: its fingerprint is .* Call fit again"
        ):
            method(ALL)
    assert model.fit(nodes, animals).predict(ALL).shape == (90,)


class Silent(ClassifierMixin, BaseEstimator):
    """A classifier that says its class and nothing else."""

    def fit(self, X: Any, y: Any) -> Silent:
        return self


class Odd(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are whatever it was told."""

    def __init__(self, said: Any = None) -> None:
        self.said = said

    def fit(self, X: Any, y: Any) -> Odd:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.said


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"estimator": LogisticRegression},
            r"'estimator' .* such as LogisticRegression\(\). Got the class LogisticRegression",
        ),
        ({"estimator": Silent()}, "must be a classifier with predict_proba or decision_function. Got Silent, which"),
        ({"response": "labels"}, "'response' parameter of PropagatedClassifier must be one of 'auto', 'logits' or"),
        (
            {"estimator": MultinomialNB(), "response": "logits"},
            "must be 'probabilities' for MultinomialNB, which has no",
        ),
        ({"estimator": RidgeClassifier(), "response": "probabilities"}, "which has no predict_proba. Got 'prob"),
        ({"graph": "citeseer"}, "'graph' parameter of PropagatedClassifier must be a Graph"),
        ({"alpha": 1.5}, r"'alpha' parameter of PropagatedClassifier must be a float in \[0, 1\]"),
        ({"alpha": 0.0, "solver": Exact()}, r"'alpha' parameter of PropagatedClassifier must be a float in \(0, 1\]"),
        ({"steps": -1}, "'steps' parameter of PropagatedClassifier must be an integer from 0 to 10000"),
        ({"solver": "exact"}, "'solver' parameter of PropagatedClassifier must be a solver, such as Exact"),
        ({"normalization": "both"}, "'normalization' parameter of PropagatedClassifier must be one of"),
        ({"self_loops": 1}, "'self_loops' parameter"),
        ({"prefit": "yes"}, "'prefit' parameter"),
        ({"batch_size": 0}, "'batch_size' parameter of PropagatedClassifier must be an integer of at least 1"),
        ({"features": np.ones((89, 2))}, "with 90 rows, one per node. Got ndarray of shape"),
        ({"features": ["a"]}, "with 90 rows, one per node. Got"),
        ({"features": 3.0}, "with 90 rows, one per node. Got 3.0"),
        (
            {"estimator": SVC(decision_function_shape="ovo"), "y": ALL[:36] % 4},
            r"shape \(90, 4\). Got SVC, whose .* 6\)",
        ),
        ({"estimator": Odd(np.full((90, 3), np.nan))}, "must be a classifier with finite outputs. Got Odd, whose"),
        ({"estimator": Odd(np.full((90, 3), 0.5))}, "not negative and sum to one. Got Odd"),
        ({"estimator": Odd(np.full((90, 2), 0.5))}, r"one column per class, shape \(90, 3\). Got Odd"),
        ({"y": ["ant"] * 36}, "'y' parameter of fit must be labels of at least two classes. Got 1 class, 'ant'"),
        ({"X": np.zeros(36, dtype=int)}, "one class per node. Got two classes for node 0"),
        ({"X": []}, "at least one node. Got none"),
        ({"X": [90] * 36}, "integers from 0 to 89"),
    ],
)
def test_bad_input_is_named(graph: Graph, nodes: Any, animals: Any, settings: dict[str, Any], message: str) -> None:
    X, y = settings.pop("X", nodes), settings.pop("y", animals)
    options: dict[str, Any] = {"estimator": LogisticRegression(), "graph": graph, **settings}
    model = PropagatedClassifier(**options)
    with pytest.raises(InputError, match=message):
        model.fit(X, y)


def test_a_graph_without_features_asks_for_them(graph: Graph, nodes: Any, animals: Any) -> None:
    with pytest.raises(InputError, match=r"needs features, and this graph has none. Pass features="):
        propagated(LogisticRegression(), graph.replace(features=None)).fit(nodes, animals)


def test_an_estimator_that_should_be_fitted_and_is_not_is_named(graph: Graph) -> None:
    with pytest.raises(
        NotFittedError, match=r"LogisticRegression has no classes_. Fit it first, or leave prefit=False"
    ):
        propagated(LogisticRegression(), graph, prefit=True).fit()


def test_several_targets_are_refused(graph: Graph, nodes: Any) -> None:
    two = KNeighborsClassifier().fit(dense(graph)[nodes], np.stack([nodes // 30, nodes % 2], axis=1))
    with pytest.raises(
        InputError, match=r"one target with at least two classes. Got KNeighborsClassifier with several"
    ):
        propagated(two, graph, prefit=True).fit()
