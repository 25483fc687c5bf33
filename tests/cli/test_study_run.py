"""Study run: its options, kept experiments by name, and what a model of one's own is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from pprop.study import experiment

pytestmark = pytest.mark.slow

assert experiment  # loaded before the fixture below replaces it: it binds make_cell

MINE = """
title = "Mine"
shows = "accuracy"
model = "mlp"
dataset = "citeseer"
n_splits = 2
n_inits = 1
[settings]
max_epochs = 3
"""
OWN = """
import pprop, torch

def build(graph):
    return pprop.MLP()

def wrong(graph):
    return torch.nn.Linear(graph.features.shape[1], 2)
"""


@pytest.fixture
def quick_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make APPNP and GCN end after a few epochs, and the user's model as well."""
    from pprop.study import cell
    from pprop.study.run import user_model

    make, own = cell.make_cell, user_model.user_cell
    monkeypatch.setattr(cell, "make_cell", lambda name, settings, dataset: make(name, {"max_epochs": 5}, dataset))
    monkeypatch.setattr(user_model, "user_cell", lambda name, dataset: own(name, dataset, max_epochs=5))


def own_module(folder: Path) -> str:
    name = f"mine_{folder.name}"
    (folder / f"{name}.py").write_text(OWN)
    return name


@pytest.mark.usefixtures("quick_rivals")
def test_a_model_of_the_user_needs_no_folder_to_be_named(pprop_here, tmp_path: Path):
    answer = pprop_here(
        "study", "run", "--model", f"{own_module(tmp_path)}:build", "--dataset", "citeseer", "--runs", 1
    )
    assert answer.code == 0
    assert "3 cells, 3 runs, into study" in answer.err
    assert "3 runs computed, 0 there before, of 3." in answer.out
    assert (tmp_path / "study" / "rows.sqlite").exists()


@pytest.mark.usefixtures("quick_rivals")
def test_a_single_run_has_no_interval_and_no_p_value(pprop_here, tmp_path: Path):
    command = ("study", "run", "--model", f"{own_module(tmp_path)}:build", "--dataset", "citeseer", "--runs", 1)
    assert "±" not in pprop_here(*command).out
    for each in pprop_here(*command, "--json").record["models"]:
        assert each["accuracy_interval"] is each["f1_interval"] is each["p_runs_holm"] is None


@pytest.mark.usefixtures("quick_rivals")
def test_p_values_of_a_model_of_the_user_are_corrected_for_two_rivals(pprop_here, tmp_path: Path):
    from pprop.study.stats.paired import holm

    command = ("study", "run", "--model", f"{own_module(tmp_path)}:build", "--dataset", "citeseer", "--runs", 4)
    _, *rivals = pprop_here(*command, "--json").record["models"]
    for name in ("p_runs", "p_splits"):
        assert [each[f"{name}_holm"] for each in rivals] == holm([each[name] for each in rivals]).tolist()
    assert f"{rivals[0]['p_runs_holm']:.2g}" in (text := pprop_here(*command).out)
    assert "against each of the others, with Holm's correction" in text


def test_a_model_that_cannot_be_built_is_told_before_anything_is_made(pprop_here, tmp_path: Path):
    answer = pprop_here("study", "run", "--model", "nomod:build", "--dataset", "citeseer", "--runs", 1)
    assert (answer.code, answer.out) == (3, "")
    assert "The module of the model 'nomod:build' cannot be imported: No module named 'nomod'" in answer.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("quick_rivals")
def test_a_refused_model_does_not_train_its_rivals(pprop_here, tmp_path: Path):
    answer = pprop_here(
        "study", "run", "--model", f"{own_module(tmp_path)}:wrong", "--dataset", "citeseer", "--runs", 1
    )
    assert answer.code == 3
    assert "0 runs computed, 0 there before, of 1." in answer.out
    assert "p: paired" not in answer.out


def test_an_experiment_kept_with_the_study_is_run_by_its_name(pprop_here, tmp_path: Path):
    (tmp_path / "mine.toml").write_text(MINE)
    assert pprop_here("study", "run", "mine.toml", "--out", "there", "--runs", 1).code == 0
    (tmp_path / "mine.toml").unlink()
    answer = pprop_here("study", "run", "mine", "--out", "there")
    assert "1 run computed, 1 there before, of 2." in answer.out
    elsewhere = pprop_here("study", "run", "mine")
    assert elsewhere.code == 3
    assert "unknown experiment or group 'mine'." in elsewhere.err


def test_an_unknown_name_is_answered_with_the_groups_alone(pprop_here):
    answer = pprop_here("study", "run", "zzzzzz")
    assert "Groups are: " in answer.err
    assert "All names: pprop study list." in answer.err
    assert "gasteiger_2019_appnp_cora_ml" not in answer.err


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--time-limit", 0), 3, "--time-limit must be a number in (0, inf). Got 0.0."),
        (("--time-limit", "nan"), 3, "--time-limit must be a number in (0, inf). Got nan."),
        (("--device", "tpu"), 3, "--device must be one of 'cpu' or 'cuda'. Got 'tpu'."),
        (("--out", "afile"), 4, "--out must be a folder, and 'afile' is a file."),
    ],
)
def test_an_option_is_checked_by_its_name_before_there_is_a_folder(
    pprop_here, tmp_path: Path, options, code: int, sentence: str
):
    (tmp_path / "afile").touch()
    answer = pprop_here("study", "run", "quick", *options)
    assert (answer.code, answer.out) == (code, "")
    assert sentence in answer.err
    assert answer.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["afile"]
