"""`pprop tune`: a search from the shell, its folder, and the command that it prints."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import pprop
import pprop.tuning

pytestmark = pytest.mark.slow

OWN = "edges.csv --nodes nodes.csv --label-column hobby"
QUICK = "--space alpha=0.05:0.9:log --space hidden=8,4 --space max_epochs=5 --holdouts 1"


def test_a_search_prints_settings_and_a_command_that_works(pprop_here, tables, tmp_path: Path):
    answer = pprop_here(*f"tune {OWN} --out tuned {QUICK} --trials 3 --fit --json".split())
    assert answer.code == 0, answer.err
    record = answer.record
    assert set(record["settings"]) == {"alpha", "hidden", "max_epochs"}
    assert record["trials"] == 3
    assert record["score"] >= record["default_score"]
    assert {file.name for file in (tmp_path / "tuned").iterdir()} == {
        *("tuning.json", "trials.sqlite3", "best.json", ".lock", "model"),
        *("history.png", "history.svg", "slices.png", "slices.svg"),
    }
    best = json.loads((tmp_path / "tuned" / "best.json").read_text())
    assert (best["settings"], best["command"]) == (record["settings"], record["command"])
    words = shlex.split(record["command"])
    assert words[:2] == ["pprop", "train"]
    trained = pprop_here(*words[1:], "--out", "model", "--json")
    assert trained.code == 0, trained.err
    assert trained.record["alpha"] == record["settings"]["alpha"]
    # --fit has trained the very same model: the same split, seed and settings
    fitted, again = (pprop.load(tmp_path / folder) for folder in ("tuned/model", "model"))
    assert (fitted.decision_function(range(40)) == again.decision_function(range(40))).all()


@pytest.fixture
def without_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No figures, which take longer to draw than a small search."""
    monkeypatch.setattr(pprop.tuning, "save_figures", lambda *_: None)


@pytest.mark.usefixtures("without_drawing")
def test_the_same_command_goes_on_and_the_text_says_what_was_found(pprop_here, tables):
    first = pprop_here(*f"tune {OWN} --out tuned {QUICK} --trials 1".split())
    assert first.code == 0, first.err
    more = pprop_here(*f"tune {OWN} --out tuned {QUICK} --trials 3".split())
    assert "best of 3 trials" in more.out
    assert "Try: pprop train edges.csv --nodes nodes.csv" in more.out
    whole = pprop_here(*f"tune {OWN} --out other {QUICK} --trials 3 --json".split()).record
    assert f"{whole['score']:.1%} (defaults: {whole['default_score']:.1%})" in more.out


@pytest.mark.usefixtures("without_drawing")
def test_test_nodes_play_no_part(pprop_here, tables, monkeypatch: pytest.MonkeyPatch):
    seen: list[np.ndarray] = []
    search = pprop.tuning.tune

    def watched(graph, X, y, *, stopping, **options):
        seen.extend([np.asarray(X), np.asarray(stopping[0])])
        return search(graph, X, y, stopping=stopping, **options)

    monkeypatch.setattr(pprop.tuning, "tune", watched)
    assert pprop_here(*f"tune {OWN} --out tuned {QUICK} --trials 1 --test 0.5 --seed 3".split()).code == 0
    from pprop.cli.graphs import GraphInput, TableOptions
    from pprop.cli.splits import own_split

    graph = GraphInput("edges.csv", TableOptions(nodes="nodes.csv", label_column="hobby")).read()
    split = own_split(graph, 0.5, 0.2, 3)
    assert len(split.evaluation) > 0
    assert sorted(seen[0].tolist()) == sorted(split.train.tolist())
    assert sorted(seen[1].tolist()) == sorted(split.stopping.tolist())


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ("--space alpha", 3, "SETTING=VALUES"),
        ("--space depth=1,2", 3, "SETTING one of alpha"),
        ("--space alpha=a:b", 3, "--space takes numbers"),
        ("--space alpha=0.1:0.5:lin", 3, "--space takes numbers"),
        ("--space alpha=0.5:0.1", 3, "LOW below HIGH"),
        ("--space alpha=0.5:1.5", 3, "--space alpha must be a number in [0, 1]. Got 1.5."),
        ("--space alpha=0.5", 3, "several values to search"),
        ("--trials 0", 3, "--trials must be"),
        ("--time-limit 0", 3, "--time-limit must be a number in (0, inf)"),
        ("--split-seed 3", 2, "--split-seed belongs to a dataset"),
        ("--model gcn", 3, "gcn"),
    ],
)
def test_wrong_words_are_refused_in_one_line(
    pprop_here, tables, tmp_path: Path, options: str, code: int, sentence: str
):
    answer = pprop_here(*f"tune {OWN} --out tuned {options}".split())
    assert answer.code == code
    assert sentence in answer.err.splitlines()[-1]
    assert not (tmp_path / "tuned").exists()


def test_a_folder_of_something_else_and_a_missing_optuna_are_refused(
    pprop_here, tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    here = pprop_here(*f"tune {OWN} --out . {QUICK} --trials 1".split())
    assert here.code == 3
    assert "no tuning" in here.err
    monkeypatch.setitem(sys.modules, "optuna", None)
    without = pprop_here(*f"tune {OWN} --out tuned {QUICK} --trials 1".split())
    assert without.code == 3
    assert "pip install optuna" in without.err


@pytest.mark.usefixtures("without_drawing")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_process_leaves_a_search_that_goes_on(pprop_here, tables, tmp_path: Path, number: signal.Signals):
    command = f"tune {OWN} --out tuned {QUICK} --trials 100000"
    process = subprocess.Popen(
        [sys.executable, "-m", "pprop", *command.split()],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    best = tmp_path / "tuned" / "best.json"
    give_up = time.monotonic() + 240
    while not best.exists() and process.poll() is None and time.monotonic() < give_up:
        time.sleep(0.05)
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert out == ""
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert err.endswith("pprop tune: Interrupted. Kept: 'tuned'.\n")
    done = json.loads(best.read_text())["trials"]
    record = pprop_here(*f"tune {OWN} --out tuned {QUICK} --trials {done + 2} --json".split()).record
    assert record["trials"] in (done + 2, done + 3)  # one may have ended between its record and the best settings
