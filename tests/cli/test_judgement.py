"""What the report says of probabilities: of a rare class, of two classes and of more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pprop.cli.judgement import Judgement, Predicted
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
    assert [*judged["ranking"]] == ["top", "positives", "appnp", "label_propagation", "network_alone"]
    assert [*judged["ranking"]["appnp"]] == [
        *("roc_auc", "average_precision", "top_precision", "top_recall", "calibration_error", "brier_score"),
    ]
    assert (tmp_path / "model" / "ranking.png").stat().st_size > 10_000
    text = pprop_here(*TRAIN, "--out", "model", "--force").out
    assert "Judged by the average precision of 'bad', because 6 % of the training labels are of this class." in text
