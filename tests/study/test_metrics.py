"""Accuracy and the two macro F1: hand-computed values, scikit-learn, and a plain loop over classes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score

from pprop._errors import InputError
from pprop.study.stats.estimate import accuracy, f1_macro, f1_paper


def paper_by_loops(predicted: NDArray[np.int64], labels: NDArray[np.int64], n_classes: int) -> float:
    """The definition, one class and one node at a time."""
    precisions: list[float] = []
    recalls: list[float] = []
    for k in range(n_classes):
        hits = sum(1 for p, y in zip(predicted, labels, strict=True) if p == k and y == k)
        false_positives = sum(1 for p, y in zip(predicted, labels, strict=True) if p == k and y != k)
        false_negatives = sum(1 for p, y in zip(predicted, labels, strict=True) if p != k and y == k)
        precisions.append(1.0 if false_positives == 0 else hits / (hits + false_positives))
        recalls.append(1.0 if false_negatives == 0 else hits / (hits + false_negatives))
    precision, recall = sum(precisions) / n_classes, sum(recalls) / n_classes
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("seed", range(5))
def test_the_metrics_agree_with_independent_code(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 6, 80)
    predicted = np.where(random.random(80) < 0.6, labels, random.integers(0, 6, 80))
    assert accuracy(predicted, labels) == pytest.approx(accuracy_score(labels, predicted), rel=1e-14)
    usual = f1_score(labels, predicted, average="macro")  # all six classes occur
    assert set(labels) == set(range(6))
    assert f1_macro(predicted, labels, 6) == pytest.approx(usual, rel=1e-14)
    assert f1_paper(predicted, labels, 6) == pytest.approx(paper_by_loops(predicted, labels, 6), rel=1e-14)


def test_a_class_that_is_never_predicted_has_precision_one_in_the_papers_f1() -> None:
    # Precisions 1/2, 1 (never predicted); recalls 1, 0: the averages are 3/4 and 1/2.
    assert f1_paper([0, 0], [0, 1], 2) == pytest.approx(2 * 0.75 * 0.5 / 1.25)
    assert f1_macro([0, 0], [0, 1], 2) == pytest.approx((2 / 3 + 0) / 2)


def test_a_class_that_is_absent_altogether_counts_one_in_the_paper_and_zero_in_the_usual_f1() -> None:
    assert f1_paper([0, 1], [0, 1], 3) == 1.0
    assert f1_macro([0, 1], [0, 1], 3) == pytest.approx(2 / 3)


def test_nothing_right_gives_zero_without_a_warning() -> None:
    assert f1_paper([1, 0], [0, 1], 2) == 0.0
    assert f1_macro([1, 0], [0, 1], 2) == 0.0


def test_predictions_as_small_unsigned_integers_do_not_wrap() -> None:
    predicted = np.array([255, 0, 255], dtype=np.uint8)
    assert f1_paper(predicted, np.array([255, 0, 0]), 256) == pytest.approx(
        paper_by_loops(predicted.astype(np.int64), np.array([255, 0, 0]), 256)
    )


@pytest.mark.parametrize(
    ("predicted", "labels", "said"),
    [
        ([0, 1], [0], "'predicted' parameter of f1_paper must be of the shape of 'labels'"),
        ([], [], "at least one"),
        ([0.5], [0], "array of classes"),
        ([0, 3], [0, 1], "classes from 0 to 2. Got classes from 0 to 3 instead"),
        ([0, 1], [0, -1], "'labels' parameter of f1_paper"),
    ],
)
def test_what_cannot_be_compared_is_refused(predicted: list[int], labels: list[int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        f1_paper(predicted, labels, 3)
