"""The study from the shell: run, status, merge, verify, and a model of one's own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pprop.cli.app import run
from pprop.study import experiment
from pprop.study.store.store import FILE, Store

pytestmark = pytest.mark.slow

assert experiment  # loaded before a test replaces it: it binds make_cell

TINY = """
title = "Tiny"
shows = "accuracy"
dataset = "citeseer"
n_splits = 3
n_inits = 1
[settings]
max_epochs = 4
[grid]
model = ["mlp", "appnp"]
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def test_list_names_experiments_groups_and_what_was_published(pprop_here):
    record = pprop_here("study", "list", "--json").record
    by_name = {each["name"]: each for each in record["experiments"]}
    appnp = by_name["gasteiger_2019_appnp_cora_ml"]
    assert appnp["runs"] == 100
    assert appnp["published"]["accuracy"] == 85.09
    assert record["groups"]["accuracy"] >= 34
    assert "gasteiger_2019_appnp_cora_ml" in pprop_here("study", "list").out


def test_run_computes_what_is_missing_and_says_so(pprop_here, tiny: Path):
    first = pprop_here("study", "run", tiny, "--out", "study", "--runs", 2, "--json")
    assert first.code == 0
    assert (first.record["computed"], first.record["found"], first.record["left"]) == (4, 0, 0)
    assert "MLP on citeseer: 2 runs computed." in first.err
    second = pprop_here("study", "run", "tiny.toml", "--out", "study")
    assert "2 runs computed, 4 there before, of 6." in second.out
    status = pprop_here("study", "status", "study", "--json").record
    assert (status["rows"], status["computing"], status["other_cells"]) == (6, 0, [])
    assert [(each["name"], each["done"], each["wanted"]) for each in status["experiments"]] == [("tiny", 6, 6)]
    merged = pprop_here("study", "merge", "study", "--out", "merged", "--json")
    assert merged.code == 0
    assert [each["name"] for each in pprop_here("study", "status", "merged", "--json").record["experiments"]] == [
        "tiny"
    ]
    verified = pprop_here("study", "verify", "study", "--sample", 4, "--json")
    assert verified.code == 0
    assert (verified.record["checked"], verified.record["exact"], verified.record["differences"]) == (4, 4, [])


def test_a_file_of_the_user_never_takes_the_name_of_another(pprop_here, tiny: Path):
    assert pprop_here("study", "run", tiny, "--out", "study", "--runs", 1).code == 0
    tiny.write_text(TINY.replace("max_epochs = 4", "max_epochs = 5"))
    answer = pprop_here("study", "run", tiny, "--out", "study", "--runs", 1)
    assert answer.code == 3
    assert "this study has another experiment 'tiny'. Rename the file." in answer.err
    ours = tiny.with_name("quick.toml")
    ours.write_text(TINY)
    assert "pprop has another experiment 'quick'" in pprop_here("study", "run", ours, "--out", "study").err


def test_status_counts_the_runs_of_an_experiment_and_other_versions(pprop_here, tmp_path: Path):
    from dataclasses import replace

    from pprop.study.experiment_folder import load_experiments
    from pprop.study.revisions import current_data, current_revision
    from pprop.study.store.row import example_row

    quick = load_experiments()["quick"]
    cell = quick.points[0].cell
    with Store.open(tmp_path / "study", create=True) as store:
        for number, seeds in enumerate(quick.seeds()[:5]):
            row = example_row()
            revision = current_revision(cell, "numba") if number < 3 else "old"
            data = current_data(cell.dataset) or ""
            key = replace(row.key, config=cell.config, revision=revision, data=data, seeds=seeds)
            store.add(replace(row, key=key, cell=cell.text, seconds=2.0))
    status = pprop_here("study", "status", "study", "--json").record
    (found,) = (each for each in status["experiments"] if each["name"] == "quick")
    assert (found["done"], found["wanted"], found["other_versions"], found["seconds"]) == (3, 60, 2, 6.0)
    assert status["other_cells"] == []
    assert "quick" in pprop_here("study", "status", "study").out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("run", "quik", "--out", "study"), 3, "unknown experiment or group 'quik'. Did you mean 'quick'?"),
        (("run", "absent.toml", "--out", "study"), 3, "absent.toml cannot be read"),
        (
            ("run", "--out", "study"),
            2,
            "Give names of experiments, or --model together with either --dataset or --graph.",
        ),
        (("run", "--model", "json:dumps", "--out", "study"), 2, "Give names of experiments, or --model"),
        (("run", "--model", "m", "--dataset", "citeseer", "--out", "study"), 3, "--model takes module:function"),
        (
            ("run", "--model", "json:dumps", "--dataset", "core", "--out", "study"),
            3,
            "--dataset must be one of 'citeseer'",
        ),
        (("status", "nowhere"), 4, "There is no study in 'nowhere': it has no file 'rows.sqlite'."),
        (("report", "nowhere"), 4, "There is no study in 'nowhere'"),
        (("verify", "nowhere"), 4, "There is no study in 'nowhere'"),
        (("merge", "nowhere", "--out", "study"), 4, "There is no study in 'nowhere'"),
    ],
)
def test_wrong_usage_is_one_line_and_makes_nothing(pprop_here, tmp_path: Path, arguments, code: int, sentence: str):
    answer = pprop_here("study", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert sentence in answer.err
    assert answer.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_experiment_file_is_refused_with_its_line_before_anything_runs(pprop_here, tiny: Path, tmp_path: Path):
    tiny.write_text(TINY.replace("max_epochs", "max_epoch"))
    answer = pprop_here("study", "run", tiny, "--out", "study")
    assert answer.code == 3
    assert "tiny.toml, line 8: unknown setting 'max_epoch'" in answer.err
    assert not (tmp_path / "study").exists()


def test_a_refused_cell_ends_with_exit_code_3_and_the_rest_is_there(pprop_here, tmp_path: Path):
    grid = TINY.replace('model = ["mlp", "appnp"]', 'model = ["mlp"]\nper_class = [2000, 5]')
    (tmp_path / "labels.toml").write_text(grid)
    answer = pprop_here("study", "run", "labels.toml", "--out", "study")
    assert answer.code == 3
    assert "Refused: MLP on citeseer, 2000 labels per class. The 'per_class' parameter" in answer.err
    assert "3 runs computed, 0 there before, of 6." in answer.out


def test_a_time_limit_ends_with_exit_code_5_and_says_what_is_left(pprop_here, tmp_path: Path):
    (tmp_path / "long.toml").write_text(TINY.replace("max_epochs = 4", "max_epochs = 1000000\npatience = 1000000"))
    answer = pprop_here("study", "run", "long.toml", "--out", "study", "--time-limit", 0.02)
    assert answer.code == 5
    assert "The time limit has come. 6 runs left: run the same command again to go on." in answer.out


def test_ctrl_c_ends_a_study_with_one_line_and_keeps_its_rows(tmp_path: Path):
    slow = TINY.replace('model = ["mlp", "appnp"]', 'model = ["mlp"]\nmax_epochs = [2, 1000000]')
    (tmp_path / "study.toml").write_text(slow.replace("max_epochs = 4", "patience = 1000000"))
    command = [sys.executable, "-m", "pprop", "study", "run", "study.toml", "--out", "study"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stderr is not None
    while "3 runs computed" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(0.3)  # somewhere in the endless cell
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err == "pprop study run: Interrupted. Kept: 'study'.\n"
    with Store.open(tmp_path / "study") as store:
        assert len(store.rows()) == 3


def test_merge_of_two_halves_is_the_study_of_one_and_conflicts_are_named(pprop_here, tiny: Path, tmp_path: Path):
    from dataclasses import replace

    pprop_here("study", "run", tiny, "--out", "whole")
    pprop_here("study", "run", tiny, "--out", "half", "--runs", 1)
    with (
        Store.open(tmp_path / "whole") as store,
        Store.open(tmp_path / "half") as half,
        Store.open(tmp_path / "rest", create=True) as rest,
    ):
        rows = store.rows()
        there = half.keys()
        rest.add_all(row for row in rows if row.key not in there)
    answer = pprop_here("study", "merge", "half", "rest", "--out", "both")
    assert answer.code == 0
    assert answer.out == "half: 2 rows, 2 of them new\nrest: 4 rows, 4 of them new\n6 rows in both\n"
    with Store.open(tmp_path / "both") as store:
        both = store.rows()
    assert [(row.key, row.accuracy, row.predictions.tolist()) for row in both] == [
        (row.key, row.accuracy, row.predictions.tolist()) for row in rows
    ]
    with Store.open(tmp_path / "wrong", create=True) as store:
        store.add(replace(rows[0], epochs=99))
    answer = pprop_here("study", "merge", "wrong", "--out", "both", "--json")
    assert answer.code == 3
    assert len(answer.record["sources"][0]["conflicts"]) == 1
    answer = pprop_here("study", "verify", "wrong")
    assert answer.code == 1
    assert "epochs is 99 in the store, and 4 computed anew." in answer.out


def test_report_writes_its_pages_into_the_study_or_elsewhere(pprop_here, tiny: Path, tmp_path: Path):
    pprop_here("study", "run", tiny, "--out", "study", "--runs", 1)
    here = pprop_here("study", "report", "study", "--json")
    there = pprop_here("study", "report", "study", "--out", "pages")
    assert (here.code, there.code) == (0, 0)
    for name in ("report.html", "report.md"):
        assert f"study/{name}" in here.record["written"]
        assert f"wrote pages/{name}" in there.out
        assert (tmp_path / "study" / name).stat().st_size > 0
        assert (tmp_path / "pages" / name).exists()


def test_a_damaged_study_is_told_and_its_sound_rows_are_saved(pprop_here, tiny: Path, tmp_path: Path):
    pprop_here("study", "run", tiny, "--out", "old")
    file = tmp_path / "old" / FILE
    whole = file.read_bytes()
    file.write_bytes(whole[:-4096])
    for verb in (("run", tiny, "--out", "old"), ("status", "old"), ("verify", "old"), ("report", "old")):
        answer = pprop_here("study", *verb)
        assert answer.code == 3
        assert "is damaged" in answer.err
        assert "pprop study merge old --out NEW" in answer.err
    assert file.read_bytes() == whole[:-4096]
    answer = pprop_here("study", "merge", "old", "--out", "new", "--json")
    assert answer.code == 3
    (source,) = answer.record["sources"]
    assert source["rows"] + source["lost"] == 6 or not source["certain"]
    again = pprop_here("study", "run", tiny, "--out", "new")
    assert again.code == 0
    assert f"{6 - source['rows']} runs computed, {source['rows']} there before, of 6." in again.out.replace(
        "1 run ", "1 runs "
    )


def test_a_model_of_the_user_is_compared_with_appnp_and_gcn(pprop_here, tmp_path: Path, monkeypatch):
    from pprop.cli import study_jobs
    from pprop.study import cell

    real = cell.make_cell
    monkeypatch.setattr(cell, "make_cell", lambda name, settings, dataset: real(name, {"max_epochs": 30}, dataset))
    assert study_jobs.RIVALS == ("appnp", "gcn")
    (tmp_path / "mymodule.py").write_text(
        "import numpy as np\n"
        "class Constant:\n"
        "    def fit(self, nodes, y, stopping):\n        self.best = np.bincount(stopping[1]).argmax()\n"
        "    def predict(self, nodes):\n        return np.full(len(nodes), self.best)\n"
        "def build(graph):\n    return Constant()\n"
        "def wrong(graph):\n    from torch import nn\n    return nn.Linear(graph.features.shape[1], 2)\n"
    )
    command = ("study", "run", "--model", "mymodule:build", "--dataset", "citeseer", "--out", "study", "--runs", 3)
    answer = pprop_here(*command, "--json")
    assert answer.code == 0
    own, appnp, gcn = answer.record["models"]
    assert [each["model"] for each in (own, appnp, gcn)] == ["mymodule:build", "appnp", "gcn"]
    assert own["accuracy"] < 0.3 < appnp["accuracy"]
    assert own["p_runs"] is None
    assert 0 < appnp["p_runs"] < 0.01
    assert 0 < gcn["p_splits"] < 0.01
    assert own["accuracy_interval"][0] <= own["accuracy"] <= own["accuracy_interval"][1]
    text = pprop_here(*command).out
    assert "0 runs computed, 9 there before, of 9." in text
    assert "p: paired t-tests of mymodule:build against each of the others" in text
    wrong = pprop_here(*command[:3], "mymodule:wrong", *command[4:])
    assert wrong.code == 3
    assert "The predictor must return a tensor of shape (2110, 6), (n, classes). Got (2110, 2) instead." in wrong.err


def test_json_of_a_run_is_one_object_on_standard_output(
    tiny: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Of the process, also of what does not go through Python."""
    monkeypatch.chdir(tiny.parent)
    tiny.write_text(TINY.replace('["mlp", "appnp"]', '["mlp"]'))
    assert run(["study", "run", str(tiny), "--out", "study", "--runs", "1", "--json"]) == 0
    out = capfd.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out)["computed"] == 1
