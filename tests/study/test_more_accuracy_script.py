"""The script that measures ensembles: its rows are the classifier's, and nothing is trained twice."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pprop import TEST_SEEDS, VALIDATION_SEEDS, APPNPEnsembleClassifier, Graph, Split, run_seed
from pprop.study.run.recipe import Datasets
from pprop.study.store.row import Row
from pprop.study.tables.entries import DATASET_TITLES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ALPHAS, STRENGTH = (0.1, 0.2, 0.3), 0.1
FEW = ("--only", "citeseer", "--members", "2", "--max-epochs", "3")


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of runs of the calls of `train` that the script makes; what is done after it is, for folds alone."""
    monkeypatch.syspath_prepend(ROOT / "experiments")
    members: Any = importlib.import_module("ensemble_members")
    script: Any = importlib.import_module("more_accuracy")
    treatments = script.treatments

    def for_folds(graph: Graph, split: Split, own: list[Split], *more: Any) -> dict[str, Any]:
        return treatments(graph, split, own, *more) if (own[0].stopping != own[-1].stopping).any() else {}

    monkeypatch.setattr(script, "treatments", for_folds)
    calls: list[int] = []
    train = members.train

    def counted(*args: Any, **settings: Any) -> Any:
        calls.append(len(settings["seeds"]))
        return train(*args, **settings | {"verbose": False})

    monkeypatch.setattr(members, "train", counted)
    return calls


def run(out: Path, *options: str) -> list[dict[str, Any]]:
    script: Any = importlib.import_module("more_accuracy")
    script.main([*FEW, "--out", str(out), *options])
    return json.loads(out.read_text(encoding="utf-8"))


def classifier_accuracy(seed: int, **settings: Any) -> tuple[float, APPNPEnsembleClassifier]:
    prepared = Datasets().prepare("citeseer", "validation")
    split, labels = prepared.split(seed, 20), prepared.graph.labels
    assert labels is not None
    model = APPNPEnsembleClassifier(
        prepared.graph, members=2, max_epochs=3, random_state=run_seed(seed, 0) % 2**64, **settings
    )
    model.fit(split.train, labels[split.train], stopping=(split.stopping, labels[split.stopping]))
    found = model.predict(np.arange(len(labels))).astype(np.uint8)
    return prepared.scores(found, split)["accuracy"], model


def test_rows_are_the_classifiers_and_members_are_trained_once(trainings, tmp_path: Path, capsys):
    options = ("plain", "folds", "folds_spread", "folds_alphas")
    rows = run(tmp_path / "rows.json", "--splits", "2", "--option", *options)
    # runs of APPNP, of "plain" and of "folds" together; then the alphas that none of them has
    assert trainings == [2 * (5 + 2 + 2), 2 * 2, 2 * 2]
    assert len(rows) == 2 * 5
    assert "citeseer | 2 validation | folds_spread, 3 epochs | 2 | errors spread |" in capsys.readouterr().out
    seed = VALIDATION_SEEDS[1]
    found = {row["option"]: row for row in rows if row["split"] == seed}
    folds: dict[str, Any] = {"rounds": 0, "folds": 5}
    for label, result, settings in (
        ("plain", "all rounds", {"rounds": 0}),
        ("folds", "all rounds", folds),
        ("folds_spread", "errors spread", {**folds, "spread_errors": STRENGTH}),
        ("folds_alphas", "all rounds", {**folds, "alpha": ALPHAS}),
    ):
        accuracy, model = classifier_accuracy(seed, **settings)
        assert found[label][result] == accuracy
        assert found[label]["stopping"] == [model.record_.stopping_accuracy]
        if label == "folds_alphas":
            assert found[label]["alpha"] == model.alpha_
            assert found[label]["alpha stopping"] == model.scores_.tolist()
    assert (
        found["folds"]["after"][f"errors spread, strength {STRENGTH} (stopping)"]
        == (found["folds_spread"]["errors spread"])
    )


def test_rows_that_are_there_are_not_computed_again(trainings, tmp_path: Path):
    out = tmp_path / "rows.json"
    first = run(out, "--splits", "1", "--option", "plain")
    more = run(out, "--splits", "2", "--option", "plain")
    assert trainings == [5 + 2, 5 + 2]
    assert [row for row in more if row["split"] == VALIDATION_SEEDS[0]] == first
    assert run(out, "--splits", "2", "--option", "plain") == more
    assert len(trainings) == 2


def test_later_rounds_go_on_from_members_trained_with_those_of_other_splits(trainings, tmp_path: Path):
    rows = run(tmp_path / "rows.json", "--splits", "2", "--rounds", "1", "--option", "plain")
    assert trainings == [2 * (5 + 2)]
    (row,) = (row for row in rows if (row["split"], row["option"]) == (VALIDATION_SEEDS[1], "plain"))
    accuracy, model = classifier_accuracy(VALIDATION_SEEDS[1], rounds=1)
    assert row["all rounds"] == accuracy
    assert row["stopping"] == model.history_.stopping_accuracy.tolist()


def test_when_the_time_is_over_the_rows_so_far_are_kept(trainings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = tmp_path / "rows.json"
    members: Any = importlib.import_module("ensemble_members")
    script: Any = importlib.import_module("more_accuracy")
    train = members.train

    def stopped(*args: Any, **settings: Any) -> Any:
        if len(trainings) == 1:
            raise script.TimeUp
        return train(*args, **settings)

    monkeypatch.setattr(members, "train", stopped)
    rows = run(out, "--splits", "1", "--minutes", "60", "--option", "folds_high", "folds")
    assert {row["option"] for row in rows} == {"appnp", "folds"}
    monkeypatch.setattr(members, "train", train)
    assert {row["option"] for row in run(out, "--splits", "1", "--option", "folds_high", "folds")} > {"folds_high"}
    assert trainings == [7, 2]


def test_test_splits_are_for_one_option(trainings, tmp_path: Path):
    with pytest.raises(SystemExit):
        run(tmp_path / "rows.json", "--test", "--option", "plain", "folds")
    assert not trainings


def test_appnp_on_test_splits_is_that_of_the_results_page(
    trainings, published: tuple[Row, ...], monkeypatch: pytest.MonkeyPatch
):
    script: Any = importlib.import_module("more_accuracy")
    monkeypatch.setattr(script, "Packed", {script.STUDY: published}.__getitem__)
    found = {seeds: one for seeds, one in script.published_runs("citeseer").items() if seeds.split in TEST_SEEDS}
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    (mean,) = re.findall(r"\n\| APPNP \| \**([\d.]+) ±", page)[:1]
    assert len(found) == 100
    assert f"{100 * np.mean(list(found.values())):.2f}" == mean


def test_runs_of_another_revision_are_not_taken_for_appnp_on_test_splits(
    trainings, published: tuple[Row, ...], monkeypatch: pytest.MonkeyPatch
):
    """Citeseer's pack has rows of an earlier revision as well, of some of the same runs."""
    script: Any = importlib.import_module("more_accuracy")
    monkeypatch.setattr(script, "Packed", {script.STUDY: published}.__getitem__)

    def other(*_: object) -> str:
        return "numba-0"

    monkeypatch.setattr(script, "revision_of", other)
    assert script.published_runs.__wrapped__("citeseer") == {}


def test_the_page_has_the_rows_of_the_test_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.syspath_prepend(str(root / "experiments"))
    rows = json.loads((root / "results" / "more_accuracy.json").read_text(encoding="utf-8"))
    lines = importlib.import_module("accuracy_rows").on_test(rows)
    page = (root / "docs" / "accuracy.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 8
    assert [line for line in lines if line not in page] == []
    table = (root / "results" / "gat_rare_class.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in table if line not in page] == []


def test_the_page_has_the_rows_of_the_validation_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    rows = json.loads((ROOT / "results" / "more_accuracy.json").read_text(encoding="utf-8"))
    titles = {title: name for name, title in DATASET_TITLES.items()}
    found = set[tuple[str, ...]]()
    for line in importlib.import_module("accuracy_rows").table(rows).splitlines()[2:]:
        dataset, splits, _, _, _, *numbers = line.strip("| ").split(" | ")
        found.add((dataset, splits, *numbers))
    page = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    cells = [
        line.strip("| ").split(" | ") for line in page.splitlines() if re.match(r"\| [A-Z][\w -]+ \| \d+ \|", line)
    ]
    shown = [(titles[one[0]], f"{one[1]} validation", *one[-4:]) for one in cells if "the trial below" not in one[3]]
    assert len(shown) == 27
    assert [line for line in shown if line not in found] == []
