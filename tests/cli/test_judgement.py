"""What the report says of probabilities: of a rare class, of two classes and of more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pprop.cli.judgement import Judgement, Predicted
from pprop.cli.report import Evaluation, cautions
from pprop.scoring import Scoring, default_scoring

TRAIN = ("train", "edges.csv", "--nodes", "nodes.csv", "--label-column", "kind", "--max-epochs", 3, "--hidden", 4)


def predicted(names: list[str], probabilities: list[list[float]]) -> Predicted:
    classes = np.array(names)
    found = np.array(probabilities)
    return Predicted(classes[found.argmax(axis=1)], found, classes)


@pytest.fixture
def rare() -> Judgement:
    truth = np.array(["bad", "bad", *["ok"] * 38])
    scores = np.linspace(0.9, 0.1, 40)
    good = predicted(["bad", "ok"], np.column_stack([scores, 1 - scores]).tolist())
    inverted = predicted(["bad", "ok"], np.column_stack([1 - scores, scores]).tolist())
    scoring, why = default_scoring(np.array(["bad", "ok"]), np.array([5, 95]))
    return Judgement(scoring, why, truth, {"appnp": inverted, "network alone": good})


def test_a_rare_class_is_judged_by_its_ranking(rare: Judgement):
    record = rare.record()
    assert (record["scoring"], record["positive"]) == ("average_precision", "bad")
    assert record["ranking"]["top"] == 10
    assert record["ranking"]["positives"] == 2
    assert record["ranking"]["network_alone"]["roc_auc"]["value"] == 1.0
    assert record["ranking"]["appnp"]["roc_auc"]["value"] == 0.0
    assert record["leads"]["network_alone"]["value"] == pytest.approx(
        record["values"]["average_precision"]["appnp"]["value"] - 1
    )
    lines = rare.lines()
    assert lines[0] == "Judged by the average precision of 'bad', because 5 % of the training labels are of this class."
    assert lines[2].splitlines()[0].split("  ")[0] == "'bad' (2 test nodes of 40)"


def scores(first: np.ndarray) -> Predicted:
    """Probabilities of 'bad' by which no node is predicted as bad, so that the accuracy of all of them is the same."""
    return predicted(["bad", "ok"], np.column_stack([first / 3, 1 - first / 3]).tolist())


@pytest.fixture
def by_ranking() -> tuple[np.ndarray, dict[str, Predicted], Predicted]:
    """Of 200 test nodes the first 20 are bad. One ranking is right, one is right by half, one is inverted."""
    truth = np.array(["bad"] * 20 + ["ok"] * 180)
    falling = np.linspace(1, 0, 200)
    half = np.where(np.arange(200) % 2 == 0, falling, falling[::-1])
    models = {"right": scores(falling), "half": scores(half), "inverted": scores(1 - falling)}
    return truth, models, Predicted.majority(np.array(["bad"] * 10 + ["ok"] * 90), 200)


def told(
    by_ranking: tuple[np.ndarray, dict[str, Predicted], Predicted], own: str, other: str, name: str = "appnp"
) -> list[str]:
    """The cautions of one ranking beside another as the network alone, judged by average precision."""
    truth, models, majority = by_ranking
    scoring, why = default_scoring(np.array(["bad", "ok"]), np.array([10, 90]))
    judgement = Judgement(scoring, why, truth, {name: models[own], "network alone": models[other]}, majority)
    mine, network, most = (Evaluation.of(truth, one.predicted) for one in (models[own], models[other], majority))
    assert mine.accuracy == network.accuracy == most.accuracy
    found = {"majority": most, "label_propagation": None, "network": network}
    return cautions(name, mine, found, balanced=False, judgement=judgement)


def test_cautions_compare_models_by_the_scoring_and_name_it(by_ranking):
    """By accuracy there is no difference between any two of these models."""
    better = told(by_ranking, "right", "half")
    assert not any("no difference" in sentence or "has a better" in sentence for sentence in better)
    worse = told(by_ranking, "half", "right")
    assert len([sentence for sentence in worse if "has a better" in sentence]) == 1
    assert any(
        sentence.startswith(
            "The network alone has a better average precision of 'bad' than appnp on these 200 test nodes, by 0."
        )
        and sentence.endswith(
            "Averaging over neighbours does not help here. --model auto compares the models on labels outside the test nodes."
        )
        for sentence in worse
    )
    same = told(by_ranking, "right", "right")
    assert (
        "appnp and the network alone: no difference that 200 test nodes can show (lead in average precision of 'bad' "
        "+0.000, 95 % interval 0.000 to 0.000). They do not show that the graph helps."
    ) in same
    inverted = told(by_ranking, "inverted", "inverted")
    assert any(
        sentence.startswith("The majority class has a better average precision of 'bad'") for sentence in inverted
    )
    text = " ".join([*better, *worse, *same, *inverted])
    assert "in accuracy" not in text
    assert (
        "90% of the test nodes are of one class, 'ok': look at the average precision of 'bad', not at the accuracy."
        in text
    )


def test_the_lead_over_the_majority_is_over_the_share_of_the_class(by_ranking):
    truth, models, majority = by_ranking
    scoring, why = default_scoring(np.array(["bad", "ok"]), np.array([10, 90]))
    judgement = Judgement(scoring, why, truth, {"appnp": models["right"]}, majority)
    assert judgement.leads["majority class"].value == pytest.approx(1 - 0.1)
    assert [*judgement.record()["values"]["average_precision"]] == ["appnp"]


def test_of_few_test_nodes_the_interval_of_the_scoring_is_stated():
    truth = np.array(["bad", "ok", "bad", "ok", "ok"] * 2)
    found = scores(np.linspace(1, 0, 10))
    scoring = Scoring("average_precision", np.array(["bad", "ok"]), "bad")
    judgement = Judgement(scoring, "Why.", truth, {"appnp": found})
    said = cautions("appnp", Evaluation.of(truth, found.predicted), {}, balanced=False, judgement=judgement)
    low, high = judgement.figure.interval
    assert high - low > 0.3
    assert (
        f"Only 10 test nodes: the 95 % interval of the average precision of 'bad' is {low:.3f} to {high:.3f}." in said
    )


def test_without_test_nodes_of_the_class_models_are_not_compared():
    truth = np.array(["ok"] * 40)
    found = scores(np.linspace(1, 0, 40))
    scoring = Scoring("average_precision", np.array(["bad", "ok"]), "bad")
    judgement = Judgement(scoring, "Why.", truth, {"appnp": found, "network alone": found})
    one = Evaluation.of(truth, found.predicted, found.classes)
    said = cautions("appnp", one, {"network": one}, balanced=False, judgement=judgement)
    assert said == ["No test node is of the class 'bad'. The figures say nothing about it."]


def test_a_ranking_worse_than_chance_is_a_caution(rare: Judgement):
    assert rare.cautions() == [
        "appnp ranks 'bad' worse than chance does: its ROC AUC is 0.000, below 0.5. Do not use the order of its probabilities."
    ]


def test_the_picture_has_a_curve_of_each_model(rare: Judgement):
    picture = rare.picture()
    assert picture is not None
    assert [*picture.curves] == ["appnp", "network alone"]
    assert picture.share == 0.05


def test_of_more_classes_the_worst_is_named_and_unknown_ones_count():
    truth = np.array(["a", "a", "b", "b", "c", "new"])
    found = predicted(
        ["a", "b", "c"],
        [[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.7, 0.1], [0.2, 0.3, 0.5], [0, 0, 1]],
    )
    scoring = Scoring("accuracy", np.array(["a", "b", "c"]))
    judgement = Judgement(scoring, "Judged by accuracy.", truth, {"appnp": found})
    record = judgement.record()
    assert record["values"]["accuracy"]["appnp"]["value"] == pytest.approx(5 / 6)
    assert record["values"]["balanced_accuracy"]["appnp"]["value"] == pytest.approx(0.75)
    assert record["worst_classes"]["average_precision"]["class"] == "new"
    assert "ranking" not in record
    assert judgement.picture() is None
    assert any(
        line.startswith("The worst class of appnp by average precision is 'new': ") for line in judgement.lines()
    )


@pytest.fixture
def three() -> dict[str, Predicted]:
    names, shares = ["a", "b", "c"], np.linspace(0.1, 0.6, 9)
    own = np.column_stack([shares, np.roll(shares, 3), np.roll(shares, 6)])
    return {"appnp": predicted(names, own.tolist()), "network alone": predicted(names, own[:, ::-1].tolist())}


@pytest.mark.parametrize(
    ("scoring", "compared", "rows", "leads"),
    [
        ("accuracy", "accuracy", ["macro average precision"], False),
        ("accuracy", "balanced_accuracy", ["macro average precision"], True),
        ("balanced_accuracy", "balanced_accuracy", ["macro average precision"], False),
        ("balanced_accuracy", "accuracy", ["balanced accuracy", "macro average precision"], True),
        ("average_precision", "accuracy", ["macro average precision"], True),
    ],
)
def test_models_are_compared_once_by_each_measure(
    three: dict[str, Predicted], scoring: str, compared: str, rows: list[str], leads: bool
):
    judgement = Judgement(Scoring(scoring, np.array(["a", "b", "c"])), "Why.", np.array(["c", "b", "a"] * 3), three)
    lines = judgement.lines(compared)
    assert [line.split("  ")[0] for line in lines[2].splitlines()[2:]] == rows
    assert any(" lead in " in line for line in lines) == leads
    record = judgement.record()
    assert "network_alone" in record["leads"]
    assert {"balanced_accuracy", "average_precision"} <= {*record["values"]}


def test_without_test_nodes_of_the_class_nothing_is_ranked():
    found = predicted(["bad", "ok"], [[0.2, 0.8], [0.1, 0.9]])
    scoring, why = default_scoring(np.array(["bad", "ok"]), np.array([5, 95]))
    judgement = Judgement(scoring, why, np.array(["ok", "ok"]), {"appnp": found})
    assert "ranking" not in judgement.record()
    assert judgement.picture() is None
    assert judgement.cautions() == []
    assert not any("nan" in line for line in judgement.lines())


def test_train_reports_and_draws_the_ranking(pprop_here, tmp_path: Path):
    k = np.arange(400)
    pd.DataFrame({"source": k, "target": (k + 1) % 400}).to_csv(tmp_path / "edges.csv", index=False)
    table = {"id": k, "age": k * 7 % 41, "kind": np.where(k % 16 == 0, "bad", "ok")}
    pd.DataFrame(table).to_csv(tmp_path / "nodes.csv", index=False)
    answer = pprop_here(*TRAIN, "--out", "model", "--json")
    assert answer.code == 0, answer.err
    judged = answer.record["judgement"]
    compared = [one for one in answer.record["cautions"] if "no difference" in one or "has a better" in one]
    assert compared
    assert all(" average precision of 'bad' " in one for one in compared)
    assert [*judged["leads"]] == ["majority_class", "label_propagation", "network_alone"]
    assert [*judged["ranking"]] == ["top", "positives", "appnp", "label_propagation", "network_alone"]
    assert [*judged["ranking"]["appnp"]] == [
        *("roc_auc", "average_precision", "top_precision", "top_recall", "calibration_error", "brier_score"),
    ]
    assert (tmp_path / "model" / "ranking.png").stat().st_size > 10_000
    text = pprop_here(*TRAIN, "--out", "model", "--force").out
    assert "Judged by the average precision of 'bad', because 6 % of the training labels are of this class." in text
