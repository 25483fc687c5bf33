"""Every measure against scikit-learn's, with and without weights, ties and classes that do not occur."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import metrics

from pprop._errors import InputError
from pprop.scoring import METRICS, Forecast, Scoring, default_scoring, positive_class, resample
from pprop.settings import POSITIVE, SCORING, SCORINGS


def drawn(classes: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return classes, probabilities with many ties, and weights of which some are 0, of 200 nodes."""
    random = np.random.default_rng(seed)
    truth = random.integers(classes, size=200)
    scores = np.round(random.random((200, classes)) + 0.5 * np.eye(classes)[truth], 1) + 0.1
    return truth, scores / scores.sum(axis=1, keepdims=True), random.integers(3, size=200).astype(float)


def reference(
    name: str, truth: NDArray[Any], probabilities: NDArray[Any], weights: NDArray[Any], *, positive: int | None
) -> float:
    """Return what scikit-learn computes."""
    predicted = probabilities.argmax(axis=1)
    classes = probabilities.shape[1]
    options: dict[str, Any] = {"sample_weight": weights}
    one = {"average": "macro"} if positive is None else {"labels": [positive], "average": "macro"}
    asked = range(classes) if positive is None else [positive]
    match name:
        case "accuracy":
            return metrics.accuracy_score(truth, predicted, **options)
        case "balanced_accuracy":
            return metrics.balanced_accuracy_score(truth, predicted, **options)
        case "f1":
            return metrics.f1_score(truth, predicted, **one, **options)
        case "f1_macro":
            return metrics.f1_score(truth, predicted, average="macro", **options)
        case "precision":
            return metrics.precision_score(truth, predicted, **one, **options)
        case "recall":
            return metrics.recall_score(truth, predicted, **one, **options)
        case "matthews_corrcoef":
            return metrics.matthews_corrcoef(truth, predicted, **options)
        case "roc_auc":
            return float(
                np.mean([metrics.roc_auc_score(truth == code, probabilities[:, code], **options) for code in asked])
            )
        case "average_precision":
            return float(
                np.mean(
                    [
                        metrics.average_precision_score(truth == code, probabilities[:, code], **options)
                        for code in asked
                    ]
                )
            )
        case "neg_log_loss":
            return -metrics.log_loss(truth, probabilities, **options)
        case _:
            if classes == 2:
                return -metrics.brier_score_loss(truth, probabilities[:, 1], **options)
            return -float(np.average(np.sum((probabilities - np.eye(classes)[truth]) ** 2, axis=1), weights=weights))


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(("classes", "positive"), [(2, 1), (2, 0), (5, None), (5, 3)])
@pytest.mark.parametrize("seed", [0, 1])
def test_each_measure_is_scikit_learns(name: str, classes: int, positive: int | None, seed: int) -> None:
    truth, probabilities, weights = drawn(classes, seed)
    scoring = Scoring(name, np.arange(classes), positive)
    for each in (np.ones(200), weights):
        expected = reference(name, truth, probabilities, each, positive=positive)
        assert scoring(truth, probabilities, each) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_a_weight_counts_a_node_that_often(name: str) -> None:
    truth, probabilities, weights = drawn(3, seed=2)
    scoring = Scoring(name, np.arange(3))
    rows = np.repeat(np.arange(200), weights.astype(int))
    assert scoring(truth, probabilities, weights) == pytest.approx(scoring(truth[rows], probabilities[rows]), abs=1e-12)


def test_a_mean_over_classes_leaves_out_those_that_do_not_occur_and_names_the_worst() -> None:
    truth = np.array([0, 0, 2, 2])
    probabilities = np.array([[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.75, 0.05, 0.2]])
    judged = Scoring("average_precision", np.array(["a", "b", "c"])).judge(Forecast(truth, probabilities))
    assert judged.of_class == pytest.approx({"a": (1 + 2 / 3) / 2, "c": 1.0})
    assert judged.worst == ("a", pytest.approx(5 / 6))
    assert judged.value == pytest.approx(11 / 12)


def test_a_positive_class_that_does_not_occur_is_refused() -> None:
    scoring = Scoring("average_precision", np.array(["no", "yes"]), "yes")
    with pytest.raises(
        InputError, match=r"None of 40 validation nodes is 'yes': average precision of 'yes' has no value"
    ):
        scoring.check(np.zeros(40, dtype=np.int64), "validation nodes")
    with pytest.raises(InputError, match=r"All 40 validation nodes are 'yes': ROC AUC of 'yes' has no value"):
        Scoring("roc_auc", scoring.classes, "yes").check(np.ones(40, dtype=np.int64), "validation nodes")
    Scoring("accuracy", scoring.classes, "yes").check(np.zeros(40, dtype=np.int64), "validation nodes")


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(InputError, match=r"must be one of 'accuracy', .* Got 'roc' instead\. Did you mean 'roc_auc'\?"):
        Scoring.read("roc", np.array([0, 1]), np.array([5, 5]))


def test_the_positive_class_is_the_rarer_one_or_the_one_given() -> None:
    classes = np.array(["good", "bad"])
    assert positive_class(classes, np.array([1, 9])) == "good"
    assert positive_class(classes, np.array([5, 5])) == "bad"
    assert positive_class(classes, np.array([1, 9]), "bad") == "bad"
    assert positive_class(np.array([0, 1, 2]), np.array([1, 9, 9])) is None
    assert positive_class(np.array([0, 1, 2]), np.array([1, 9, 9]), "2") == 2
    with pytest.raises(
        InputError, match=r"must be one of the classes, 'good', 'bad'\. Got 'god' instead\. Did you mean 'good'"
    ):
        positive_class(classes, np.array([1, 9]), "god")


def test_the_default_looks_at_the_labels() -> None:
    two, three = np.array([0, 1]), np.array([0, 1, 2])
    assert default_scoring(two, np.array([75, 25]))[0].name == "average_precision"
    assert default_scoring(two, np.array([74, 26]))[0].name == "accuracy"
    assert default_scoring(three, np.array([98, 1, 1]))[0].name == "accuracy"
    assert default_scoring(two, np.array([50, 50]), positive=0)[0].name == "average_precision"
    assert "0.2 % of the training labels" in default_scoring(two, np.array([998, 2]))[1]


def test_an_interval_covers_the_value_of_all_nodes() -> None:
    """Of 100 samples of a population about 95 % have an interval that covers the population's value."""
    random = np.random.default_rng(0)
    population = random.random(200_000) < 0.3
    scores = random.normal(size=200_000) + population
    shares = 1 / (1 + np.exp(-scores))
    scoring = Scoring("roc_auc", np.array([0, 1]), 1)
    truth = scoring(population.astype(np.int64), np.column_stack([1 - shares, shares]))
    covered = 0
    for _ in range(100):
        rows = random.integers(len(population), size=150)
        outcome = Forecast(population[rows].astype(np.int64), np.column_stack([1 - shares, shares])[rows])
        low, high = scoring.interval(outcome, resamples=200)
        covered += low <= truth <= high
    assert 0.88 <= covered / 100 <= 0.99


def test_resamples_are_the_same_for_every_outcome_and_fewer_for_very_many_nodes() -> None:
    first, again = list(resample(10, 3, seed=4)), list(resample(10, 3, seed=4))
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    assert sum(1 for _ in resample(400_000, 1000)) == 125


def test_the_setting_takes_the_measures_there_are():
    assert tuple(METRICS) == SCORINGS
    with pytest.raises(
        InputError, match=r"one of 'accuracy', .*'neg_brier_score'\. Got 'average_precison' instead\. Did you"
    ):
        SCORING.check("average_precison", "fit")


def test_a_positive_class_is_one_name():
    assert [POSITIVE.check(name, "fit") for name in ("fraud", 1, True, None)] == ["fraud", 1, True, None]
    with pytest.raises(InputError, match="must be the name of a class, or None"):
        POSITIVE.check(["fraud"], "fit")
