"""The demo, cut short, and the doctor."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pprop
from pprop.kernels import Backend

pytestmark = pytest.mark.slow


def test_the_demo_writes_figure_model_and_numbers_and_may_be_repeated(
    pprop_here, tmp_path: Path, only_bundled: Path, request: pytest.FixtureRequest
):
    record = pprop_here("demo", "--splits", 2, "--max-epochs", 3, "--json").record
    assert [row["model"] for row in record["models"]] == ["network alone", "label propagation", "APPNP"]
    for row in record["models"]:
        assert row["accuracy"] == pytest.approx(np.mean(row["accuracies"]))
        assert row["interval"][0] <= row["accuracy"] <= row["interval"][1]
    network, spread, appnp = record["models"]
    assert network["parameters"] == appnp["parameters"] == 168 * 64 + 64 + 64 * 6 + 6
    assert spread["accuracy"] > 60  # nothing of it is trained, so nothing was cut short
    folder = tmp_path / "demo-output"
    assert {file.name for file in folder.iterdir()} == {"demo.json", "accuracy.png", "accuracy.svg", "model"}
    assert json.loads((folder / "demo.json").read_text())["models"] == record["models"]
    model = pprop.load(folder / "model")
    assert model.accuracy_ is not None
    assert 100 * model.accuracy_ == pytest.approx(appnp["accuracies"][0])  # the first run, bit for bit
    assert network["device"] == appnp["device"] == "cpu"
    figures = (
        folder / "accuracy.png",
        folder / "accuracy.svg",
        folder / "model/curves.png",
        folder / "model/curves.svg",
    )
    assert all(figure.stat().st_size > 1000 for figure in figures)
    request.getfixturevalue("without_drawing")
    again = pprop_here("demo", "--splits", 1, "--max-epochs", 2, "--verbose")
    assert again.code == 0
    assert again.err.count("plan: 1 run on cpu; at most ") == 2
    assert again.out.splitlines()[0].split()[:2] == ["model", "accuracy"]
    assert "Try next: pprop predict demo-output/model" in again.out


def test_the_doctor_finds_nothing_wrong_here(pprop_here, only_bundled: Path):
    answer = pprop_here("doctor", "--json")
    assert answer.code == 0
    record = answer.record
    assert record["healthy"] is True
    assert {"backend numba", "backend reference", "training"} <= {test["name"] for test in record["tests"]}
    assert record["backends"]["numba"] == "usable on cpu"
    assert record["packages"]["numpy"] == np.__version__
    assert record["datasets"]["citeseer"] == "bundled"


def leave_tests_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pprop.cli.doctor._compare_with_dense", lambda backend, device: (True, "not run"))
    monkeypatch.setattr("pprop.cli.doctor._train_briefly", lambda device: (True, "not run"))


def test_without_a_gpu_the_doctor_says_so_and_leaves_its_backend_alone(pprop_here, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    leave_tests_out(monkeypatch)
    monkeypatch.setattr(Backend, "available", property(lambda backend: True))
    lines = pprop_here("doctor").out.splitlines()
    assert "gpu           none that torch can use" in lines
    assert "backends      numba (usable on cpu), triton (needs cuda), reference (usable on cpu)" in lines
    assert [line.split(":")[0].split(maxsplit=1)[1] for line in lines if line.endswith("not run (0.0 s)")] == [
        "backend numba",
        "backend reference",
        "training",
    ]
    monkeypatch.setattr(Backend, "available", property(lambda backend: backend.name != "triton"))
    record = pprop_here("doctor", "--json").record
    assert record["machine"]["gpu"] is None
    for policy, told in {
        "PASSIVE": "sleep while they wait (OMP_WAIT_POLICY=PASSIVE); in Python, import pprop before torch",
        "active": "spin while they wait (OMP_WAIT_POLICY=active), which is slow beside busy processes",
    }.items():
        monkeypatch.setenv("OMP_WAIT_POLICY", policy)
        assert f"threads       {told}" in pprop_here("doctor").out
    assert record["backends"]["triton"] == "not installed: pip install triton"


def test_with_a_gpu_the_doctor_names_it_and_tests_on_it(pprop_here, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "Abacus 9000")
    leave_tests_out(monkeypatch)
    monkeypatch.setattr(Backend, "available", property(lambda backend: True))
    record = pprop_here("doctor", "--json").record
    assert record["machine"]["gpu"] == "Abacus 9000"
    assert record["backends"]["triton"] == "usable on cuda"
    assert [test["name"] for test in record["tests"]] == [
        "backend numba",
        "backend triton on cuda",
        "backend reference",
        "backend reference on cuda",
        "training",
        "training on cuda",
    ]


def test_the_doctor_reports_what_is_broken_and_goes_on(pprop_here, monkeypatch: pytest.MonkeyPatch):
    def broken(*arguments, **options):
        raise RuntimeError("no such instruction")

    monkeypatch.setattr("pprop.propagation.propagate", broken)
    answer = pprop_here("doctor")
    assert answer.code == 1
    assert "FAILED backend numba: RuntimeError: no such instruction" in answer.out
    assert "ok     training" in answer.out
