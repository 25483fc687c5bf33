"""Thresholds against a search through all of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pprop._errors import InputError
from pprop.scoring import Threshold, ThresholdRule


def drawn(seed: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    random = np.random.default_rng(seed)
    of_class = random.random(80) < 0.3
    return of_class, np.round(np.clip(random.normal(0.4 + 0.2 * of_class, 0.2), 0.01, 0.99), 2)


def worth(rule: ThresholdRule, taken: NDArray[np.bool_], of_class: NDArray[np.bool_]) -> float:
    """Return how good it is to take some nodes, by the words of the issue."""
    hits, positives = int(np.count_nonzero(taken & of_class)), int(np.count_nonzero(of_class))
    precision = hits / taken.sum() if taken.any() else 0.0
    recall = hits / positives
    match rule.kind, rule.values:
        case "f1", _:
            return 2 * hits / (taken.sum() + positives)
        case "precision", (least,):
            return recall if precision >= least else -1.0
        case "recall", (least,):
            return precision if recall >= least else -1.0
        case _, (miss, alarm):
            return -float(miss * (positives - hits) + alarm * (taken.sum() - hits))
        case _:
            raise AssertionError(rule)


@pytest.mark.parametrize(
    "text", ["f1", "precision=0.4", "recall=0.8", "recall=1", "cost=10:1", "cost=1:3", "cost=1:99"]
)
@pytest.mark.parametrize("seed", range(5))
def test_no_other_threshold_is_better(text: str, seed: int) -> None:
    of_class, scores = drawn(seed)
    rule = ThresholdRule.read(text)
    found = Threshold.choose(rule, "yes", of_class, scores)
    taken = found.takes(scores)
    tried = [worth(rule, scores >= at, of_class) for at in np.append(np.unique(scores), 2.0)]
    assert worth(rule, taken, of_class) == pytest.approx(max(tried))
    assert (found.nodes, found.positives) == (80, of_class.sum())
    assert (found.taken, found.hits) == (taken.sum(), (taken & of_class).sum())


def test_false_alarms_that_cost_everything_take_no_node() -> None:
    of_class = np.array([False, True, True])
    found = Threshold.choose(ThresholdRule.read("cost=1:99"), "yes", of_class, np.array([1.0, 0.5, 0.2]))
    assert not found.takes(np.array([1.0, 0.5, 0.2])).any()
    assert (found.taken, found.precision, found.recall) == (0, 0.0, 0.0)


def test_a_threshold_lies_half_way_between_two_scores() -> None:
    found = Threshold.choose(ThresholdRule("f1"), "yes", np.array([True, False]), np.array([0.8, 0.2]))
    assert found.probability == 0.5


def test_a_probability_that_is_given_stays() -> None:
    found = Threshold.choose(ThresholdRule.read("0.3"), "yes", np.array([False, False]), np.array([0.8, 0.2]))
    assert (found.probability, found.taken, found.recall) == (0.3, 1, 0.0)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "f2",
        "precision",
        "precision=2",
        "precision=0",
        "recall=x",
        "cost=1",
        "cost=0:1",
        "cost=nan:1",
        "1",
        0,
        1.5,
        None,
        True,
    ],
)
def test_what_is_no_rule_is_refused(given: object) -> None:
    with pytest.raises(
        InputError, match=r"The 'threshold' parameter of fit must be a probability between 0 and 1, 'f1'"
    ):
        ThresholdRule.read(given)


def test_a_precision_that_cannot_be_met_says_what_can() -> None:
    of_class, scores = np.array([False, True, False]), np.array([0.9, 0.8, 0.1])
    with pytest.raises(
        InputError, match=r"No threshold takes nodes for 'yes' with a precision of at least 0.9: .* is 0.500"
    ):
        Threshold.choose(ThresholdRule.read("precision=0.9"), "yes", of_class, scores)


def test_without_positives_there_is_nothing_to_choose_by() -> None:
    with pytest.raises(InputError, match=r"No threshold can be chosen: none of 3 validation nodes is 'yes'"):
        Threshold.choose(ThresholdRule("f1"), "yes", np.zeros(3, dtype=bool), np.array([0.9, 0.8, 0.1]))
