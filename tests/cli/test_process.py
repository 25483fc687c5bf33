"""What only a process of its own can show: streams, signals, pipes, tracebacks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pprop", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)


def test_json_is_the_only_thing_on_standard_output(pprop_process):
    answer = pprop_process("train", "citeseer", "--max-epochs", 2, "--json")
    assert answer.code == 0
    assert answer.out.count("\n") == 1
    record = json.loads(answer.out)
    needed = {
        "test_accuracy",
        "stopping_accuracy",
        "epochs",
        "seconds",
        "ms_per_epoch",
        "backend",
        "seed",
        "fingerprint",
    }
    assert needed <= set(record)
    assert "APPNP on citeseer" in answer.err


def test_ctrl_c_ends_a_training_with_one_line_and_leaves_nothing(tmp_path: Path):
    endless = ("--max-epochs", "1000000", "--patience", "1000000")
    process = start(tmp_path, "train", "citeseer", *endless, "--out", "model")
    assert process.stderr is not None
    assert "APPNP on citeseer" in process.stderr.readline()  # the next thing it does is train
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert err == "pprop train: Interrupted. Nothing was written.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_ends_the_command_silently(tmp_path: Path):
    np.save(tmp_path / "scores.npy", np.ones((2110, 30)))  # more text than a pipe holds
    process = start(tmp_path, "propagate", "citeseer", "scores.npy", "--steps", "1")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("column_0,")
    process.stdout.close()
    assert process.wait(timeout=300) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


def test_debug_shows_the_traceback_and_keeps_the_exit_code(pprop_process):
    plain, debug = (pprop_process("data", "info", "cora", *more) for more in ([], ["--debug"]))
    assert plain.code == debug.code == 3
    assert "Traceback" not in plain.err
    assert plain.err.count("\n") == 1
    assert debug.err.startswith("Traceback")
    assert debug.err.endswith(plain.err)


def test_the_installed_script_and_the_module_are_the_same_command():
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="pprop")
    assert script.value == "pprop.cli:main"


def test_a_pipe_gets_utf_8_whatever_the_locale(tmp_path: Path):
    (tmp_path / "edges.csv").write_text("source,target\nZoë,Łukasz\n", encoding="utf-8")
    (tmp_path / "scores.csv").write_text("id,größe\nZoë,1\nŁukasz,0\n", encoding="utf-8")
    command = [sys.executable, "-m", "pprop", "propagate", "edges.csv", "scores.csv", "--steps", "0"]
    plain = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, env=plain, timeout=300)
    assert done.returncode == 0
    assert done.stdout.decode("utf-8") == "id,größe\nZoë,1.0\nŁukasz,0.0\n"
