"""scikit-learn's own tools work on the classifiers, and agree with doing the same by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from pprop import APPNPClassifier, Graph, MLPNodeClassifier, PPNPClassifier

pytestmark = pytest.mark.slow

QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 10, "random_state": 0}


@pytest.mark.parametrize("kind", [APPNPClassifier, PPNPClassifier, MLPNodeClassifier])
def test_cross_validation_equals_fitting_every_fold_by_hand(graph: Graph, nodes: Any, animals: Any, kind: Any) -> None:
    folds = StratifiedKFold(3)
    scores = cross_val_score(kind(graph, **QUICK), nodes, animals, cv=folds)
    by_hand = [
        kind(graph, **QUICK).fit(nodes[train], animals[train]).score(nodes[test], animals[test])
        for train, test in folds.split(nodes, animals)
    ]
    assert scores.tolist() == by_hand


def test_cross_validation_passes_stopping_nodes_on(graph: Graph, nodes: Any, animals: Any) -> None:
    stopping = (nodes[24:], animals[24:])
    folds = StratifiedKFold(2)
    scores = cross_val_score(
        APPNPClassifier(graph, **QUICK), nodes[:24], animals[:24], cv=folds, params={"stopping": stopping}
    )
    by_hand = [
        APPNPClassifier(graph, **QUICK)
        .fit(nodes[train], animals[train], stopping=stopping)
        .score(nodes[test], animals[test])
        for train, test in folds.split(nodes[:24], animals[:24])
    ]
    assert scores.tolist() == by_hand


@pytest.mark.slow
def test_a_grid_search_in_two_processes_equals_one_in_this_process(graph: Graph, nodes: Any, animals: Any) -> None:
    grid = {"alpha": [0.1, 0.9], "steps": np.array([2, 4])}
    options: dict[str, Any] = {"cv": 2, "error_score": "raise"}
    searches = [
        GridSearchCV(APPNPClassifier(graph, **QUICK), grid, n_jobs=jobs, **options).fit(nodes, animals)
        for jobs in (1, 2)
    ]
    first, second = ([search.cv_results_[f"split{k}_test_score"].tolist() for k in range(2)] for search in searches)
    assert first == second
    assert searches[1].best_params_ == searches[0].best_params_
    assert searches[1].best_estimator_.graph is graph
    assert np.array_equal(searches[0].predict_proba(nodes), searches[1].predict_proba(nodes))


def test_a_learning_curve_grows_with_the_nodes(graph: Graph, nodes: Any, animals: Any) -> None:
    model = APPNPClassifier(graph, **QUICK)
    curve: Any = learning_curve(
        model, nodes, animals, train_sizes=np.array([6, 24]), cv=3, shuffle=True, random_state=0
    )
    sizes, _, scores = curve
    assert sizes.tolist() == [6, 24]
    assert scores.shape == (2, 3)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities_can_be_calibrated(graph: Graph, nodes: Any, animals: Any, method: Any) -> None:
    calibrated: Any = CalibratedClassifierCV(APPNPClassifier(graph, **QUICK), method=method, cv=2).fit(nodes, animals)
    probabilities = calibrated.predict_proba(np.arange(90))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-6)
    assert calibrated.classes_.tolist() == ["ant", "bee", "cat"]


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_a_pipeline_from_ids_to_classes_equals_positions(
    graph: Graph, nodes: Any, animals: Any, shape: tuple[int, ...]
) -> None:
    ids = np.array([f"node-{k}" for k in range(90)])
    named = graph.replace(ids=ids)
    positions = FunctionTransformer(lambda given: named.positions(np.ravel(given)))
    pipeline = make_pipeline(positions, APPNPClassifier(named, **QUICK))
    pipeline.fit(ids[nodes].reshape(shape), animals)
    direct = APPNPClassifier(graph, **QUICK).fit(nodes, animals)
    assert np.array_equal(pipeline.predict_proba(ids.reshape(shape)), direct.predict_proba(np.arange(90)))
    assert pipeline.score(ids[nodes].reshape(shape), animals) == direct.score(nodes, animals)


def test_bagging_fits_nodes_listed_more_than_once(graph: Graph, nodes: Any, animals: Any) -> None:
    bagging = BaggingClassifier(MLPNodeClassifier(graph, **QUICK), n_estimators=2, random_state=0)
    assert bagging.fit(nodes[:, None], animals).predict(nodes[:, None]).shape == (36,)
