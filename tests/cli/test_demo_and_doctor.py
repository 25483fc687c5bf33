"""The demo, cut short, and the doctor."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pprop


def test_the_demo_writes_figure_model_and_numbers_and_may_be_repeated(pprop_here, tmp_path: Path, only_bundled: Path):
    command = ("demo", "--splits", 2, "--max-epochs", 3)
    record = pprop_here(*command, "--json").record
    assert [row["model"] for row in record["models"]] == ["MLP", "APPNP", "PPNP"]
    for row in record["models"]:
        assert row["accuracy"] == pytest.approx(np.mean(row["accuracies"]))
        assert row["interval"][0] <= row["accuracy"] <= row["interval"][1]
        assert row["parameters"] == 3703 * 64 + 64 * 6
    folder = tmp_path / "demo-output"
    assert {file.name for file in folder.iterdir()} == {"demo.json", "accuracy.png", "accuracy.svg", "model"}
    assert json.loads((folder / "demo.json").read_text())["models"] == record["models"]
    model = pprop.load(folder / "model")
    assert model.accuracy_ is not None
    assert 100 * model.accuracy_ == pytest.approx(record["models"][1]["accuracies"][0])  # the first run, bit for bit
    again = pprop_here(*command)
    assert again.code == 0
    assert again.out.splitlines()[0].split()[:2] == ["model", "accuracy"]
    assert "Try next: pprop predict demo-output/model" in again.out


def test_the_doctor_finds_nothing_wrong_here(pprop_here, only_bundled: Path):
    answer = pprop_here("doctor", "--json")
    assert answer.code == 0
    record = answer.record
    assert record["healthy"] is True
    assert [test["name"] for test in record["tests"]] == ["backend numba", "backend reference", "training"]
    assert record["packages"]["numpy"] == np.__version__
    assert record["datasets"]["citeseer"] == "bundled"


def test_the_doctor_reports_what_is_broken_and_goes_on(pprop_here, monkeypatch: pytest.MonkeyPatch):
    def broken(*arguments, **options):
        raise RuntimeError("no such instruction")

    monkeypatch.setattr("pprop.cli.selftest.propagate", broken)
    answer = pprop_here("doctor")
    assert answer.code == 1
    assert "FAILED backend numba: RuntimeError: no such instruction" in answer.out
    assert "ok     training" in answer.out
