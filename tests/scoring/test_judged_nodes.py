"""Rankings of one class, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from pprop.scoring.judged_nodes import JudgedNodes


@pytest.fixture
def nodes() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    of_class = random.random(500) < 0.1
    scores = np.round(np.clip(0.1 + 0.3 * of_class + random.normal(0, 0.15, 500), 0, 1), 2)  # some are the same
    return of_class, scores


def test_figures_are_those_of_scikit_learn(nodes):
    of_class, scores = nodes
    found = JudgedNodes(of_class, scores).measure(np.ones(500), top=50)
    assert found["roc_auc"] == pytest.approx(roc_auc_score(of_class, scores))
    assert found["average_precision"] == pytest.approx(average_precision_score(of_class, scores))
    assert found["brier_score"] == pytest.approx(brier_score_loss(of_class, scores))


def test_the_top_is_a_mean_over_the_orders_of_equal_probabilities(nodes):
    of_class, scores = nodes
    random, shares = np.random.default_rng(1), []
    for _ in range(400):
        order = np.lexsort((random.random(500), -scores))
        shares.append(of_class[order[:50]].mean())
    found = JudgedNodes(of_class, scores).measure(np.ones(500), top=50)
    assert found["top_precision"] == pytest.approx(np.mean(shares), abs=0.005)
    assert found["top_recall"] == pytest.approx(found["top_precision"] * 50 / of_class.sum())


def test_probabilities_that_are_right_have_next_to_no_calibration_error():
    random = np.random.default_rng(2)
    scores = random.random(100_000)
    right = JudgedNodes(random.random(100_000) < scores, scores).measure(np.ones(100_000), top=100)
    assert right["calibration_error"] < 0.01
    wrong = JudgedNodes(random.random(1000) < 0.02, np.full(1000, 0.52)).measure(np.ones(1000), top=100)
    assert wrong["calibration_error"] == pytest.approx(0.5, abs=0.02)


def test_intervals_hold_the_value_and_shrink_with_the_nodes(nodes):
    of_class, scores = nodes
    few = JudgedNodes(of_class, scores).figures(top=50, resamples=200)
    many = JudgedNodes(np.tile(of_class, 9), np.tile(scores, 9)).figures(top=50, resamples=200)
    for name in ("roc_auc", "average_precision", "brier_score"):
        (low, high), (lower, higher) = few[name].interval, many[name].interval
        assert low <= few[name].value <= high
        assert 0.2 < (higher - lower) / (high - low) < 0.5


def test_curves_end_where_all_of_the_class_are_found(nodes):
    of_class, scores = nodes
    curves = JudgedNodes(of_class, scores).curves()
    assert curves.recall[-1] == 1.0
    assert (np.diff(curves.recall) >= 0).all()
    assert curves.recall[-2] < 1.0
    assert curves.nodes.sum() == 500
    assert curves.share @ curves.nodes == pytest.approx(of_class.sum())
