"""``pprop train --model auto``: the table of candidates, the time, and what becomes of a mean of several models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.own_tables import QUICK, on, sentence

import pprop
from pprop import LabelPropagationClassifier
from pprop.estimators import auto
from pprop.estimators.blend import BlendClassifier

ALIKE = {
    "majority": auto.CANDIDATES["majority"],
    "one": auto.Way(LabelPropagationClassifier, features=False),
    "other": auto.Way(LabelPropagationClassifier, features=False),
    "rich": auto.Way(LabelPropagationClassifier, labels=10**9),
}


@pytest.fixture
def alike(monkeypatch: Any) -> None:
    """Two candidates that are equally good, so that their mean is kept."""
    monkeypatch.setattr(auto, "CANDIDATES", ALIKE)


def test_the_report_has_a_table_of_candidates_and_the_record_too(pprop_here, folder: Path, alike: None):
    command = (*on(folder, "numbers.csv"), *QUICK, "--model", "auto")
    printed, record = pprop_here(*command).out, pprop_here(*command, "--json").record
    assert record["chosen"] == ["one", "other"]
    assert [row["name"] for row in record["candidates"]] == list(ALIKE)
    assert record["candidates"][3]["left_out"].startswith("it needs 1,000,000,000 labelled nodes")
    assert record["candidates"][3]["score"] is None
    assert record["scores"].keys() == {"majority", "one", "other"}
    assert (record["scoring"], record["positive"]) == ("accuracy", None)
    assert "chosen             one and other, the geometric mean of their probabilities: " in printed
    assert any(line.split()[:2] == ["candidate", "accuracy"] for line in printed.splitlines())
    assert "Not tried: rich: it needs 1,000,000,000 labelled nodes" in printed
    assert "Judged by accuracy" in printed


def test_a_mean_of_models_is_saved_predicted_replaced_and_not_explained(
    pprop_here, folder: Path, tmp_path: Path, alike: None
):
    command = (*on(folder, "numbers.csv"), *QUICK, "--model", "auto", "--out", "model")
    trained = pprop_here(*command)
    assert trained.code == 0
    assert "This model cannot take new nodes" in trained.out
    model = pprop.load(tmp_path / "model")
    assert type(model) is BlendClassifier
    alone = pprop.load(tmp_path / "model" / "member0")
    np.testing.assert_allclose(model.predict_proba(), alone.predict_proba(), atol=1e-5)
    assert pprop_here("predict", "model").out == (tmp_path / "model" / "predictions.csv").read_text()
    node = str(model.graph_.ids[0])  # pyright: ignore[reportOptionalSubscript]
    assert "averages the probabilities of several classifiers" in sentence(pprop_here("explain", "model", node))
    assert pprop_here(*command, "--force").code == 0


def test_time_ends_the_trials_and_belongs_to_auto(pprop_here, folder: Path, alike: None):
    command = (*on(folder, "numbers.csv"), *QUICK, "--model", "auto", "--time")
    printed = pprop_here(*command, "1e-6").out
    assert "chosen             majority: " in printed
    assert "Not tried: one: the time of 1e-06 s was used up" in printed
    assert "--time must be a number in (0, inf)" in sentence(pprop_here(*command, "0"))
    refused = pprop_here(*on(folder, "numbers.csv"), "--time", 3)
    assert "--time belongs to auto; appnp has none." in refused.err
