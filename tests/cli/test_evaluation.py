"""What the report says of a model beside its baselines: the paired interval, and the sentences drawn from it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pprop.cli.report import BASELINES, Evaluation, Lead, baseline_table, cautions, comparison


def judged(right: np.ndarray, truth: np.ndarray | None = None) -> Evaluation:
    """Return the evaluation of predictions that are right at some nodes; of two classes in turn unless they are given."""
    truth = np.array(["a", "b"])[np.arange(len(right)) % 2] if truth is None else truth
    wrong = np.where(truth == "a", "b", "a")
    return Evaluation.of(truth, np.where(right, truth, wrong))


def test_the_interval_of_a_lead_is_that_of_bonett_and_price():
    """Of 50 nodes 10 are right in ours alone and 4 in theirs alone."""
    nodes = np.arange(50)
    found = Lead.of(judged(nodes < 40), judged((nodes < 30) | (nodes >= 46)))
    p, q = 11 / 52, 5 / 52
    half = 1.959964 * math.sqrt((p + q - (p - q) ** 2) / 52)
    assert found.lead == pytest.approx(6 / 50)
    assert found.interval == pytest.approx((p - q - half, p - q + half), abs=1e-6)
    assert found.points == f"+12.0 ({100 * (p - q - half):.1f} to {100 * (p - q + half):.1f})"


def test_a_lead_in_balanced_accuracy_counts_every_class_alike():
    """Ours has 5 of 10 nodes of the rare class right that theirs has not, and 9 of 90 others wrong that theirs has right."""
    truth = np.array(["a"] * 90 + ["b"] * 10)
    ours = judged(np.arange(100) >= 9, truth)
    theirs = judged(np.arange(100) < 95, truth)
    assert Lead.of(ours, theirs).lead == pytest.approx(-0.04)
    found = Lead.of(ours, theirs, balanced=True)
    assert found.lead == pytest.approx((0.5 - 0.1) / 2)
    assert found.lead == pytest.approx(ours.balanced_accuracy - theirs.balanced_accuracy)
    shares = np.array([[1 / 92, 10 / 92], [6 / 12, 1 / 12]])  # of wins and of losses, class by class
    variance = ((shares.sum(1) - (shares[:, 0] - shares[:, 1]) ** 2) / [92, 12]).sum() / 4
    width = found.interval[1] - found.interval[0]
    assert width == pytest.approx(2 * 1.959964 * math.sqrt(variance), abs=1e-6)


def test_the_interval_holds_the_true_lead_about_as_often_as_it_says():
    """1,000 drawings of 60 nodes, of which 25 % are right in ours alone and 10 % in theirs alone."""
    drawn = np.random.default_rng(0).random((1000, 60))
    hits = 0
    for row in drawn:
        low, high = Lead.of(judged(row < 0.75), judged((row < 0.5) | (row >= 0.9))).interval
        hits += low <= 0.15 <= high
    assert 0.935 <= hits / 1000 <= 0.98


def test_what_twenty_nodes_cannot_show_is_called_no_difference():
    nodes = np.arange(20)
    told = comparison("appnp", "label_propagation", judged(nodes < 15), judged(nodes < 17), balanced=False)
    assert told.startswith(
        "appnp and label propagation: no difference that 20 test nodes can show (lead in accuracy -10.0"
    )
    assert "--model" not in told
    told = comparison("appnp", "network", judged(nodes < 17), judged(nodes < 15), balanced=False)
    assert "no difference" in told
    assert told.endswith("They do not show that the graph helps.")


def test_a_baseline_that_is_better_is_told_with_its_interval_and_without_choosing_by_the_test_nodes():
    nodes = np.arange(400)
    ours, better = judged(nodes < 300), judged(nodes < 350)
    told = comparison("appnp", "label_propagation", ours, better, balanced=False)
    assert "Label propagation has a better accuracy than appnp on these 400 test nodes, by 12.5 points" in told
    assert told.endswith("--model auto compares the models on labels outside the test nodes.")
    told = comparison("auto", "network", ours, better, balanced=False)
    assert told.endswith("Averaging over neighbours does not help here.")
    assert comparison("appnp", "network", better, ours, balanced=False) == ""


@pytest.mark.parametrize("balanced", [False, True])
def test_no_caution_names_a_model_to_choose_or_a_weight_to_set(balanced: bool):
    """Also where a rare class is never found: weights that find it can lower its precision to a few per cent."""
    truth = np.array(["a"] * 95 + ["fraud"] * 5)
    ours = Evaluation.of(truth, np.full(100, "a"))
    found = Evaluation.of(truth, truth)
    told = cautions("appnp", ours, dict.fromkeys(BASELINES, found), balanced=balanced)
    assert any("1 class of test nodes is never predicted: 'fraud'." in sentence for sentence in told)
    text = " ".join(told)
    assert "--class-weight" not in text
    assert "--model label-propagation" not in text
    assert "--model mlp" not in text


def test_the_table_has_the_lead_over_each_baseline():
    nodes = np.arange(200)
    ours, theirs = judged(nodes < 180), judged(nodes < 120)
    table = baseline_table("appnp", ours, {"majority": theirs, "network": None}, balanced=False).splitlines()
    assert table[0].endswith("appnp's lead in accuracy")
    assert table[3].endswith(Lead.of(ours, theirs).points)
    assert "network alone" not in " ".join(table)
