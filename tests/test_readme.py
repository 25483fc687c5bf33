"""Every code block of the README runs; `make results CHECK=1` compares what it says of the rows with them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]
SHELL = [code for language, code in BLOCKS if language == "console"]


def commands(block: str) -> list[str]:
    """Return what a person types: the lines after the prompt."""
    return [line[2:] for line in block.splitlines() if line.startswith("$ ")]


def test_every_block_is_of_a_kind_that_is_run_here() -> None:
    assert {language for language, _ in BLOCKS} <= {"python", "console"}
    assert PYTHON
    assert SHELL


@pytest.mark.parametrize("code", PYTHON)
def test_python_blocks_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("block", SHELL)
def test_shell_blocks_run(block: str, tmp_path: Path) -> None:
    """`make` would run this very test again, so that of `make` only the existence of the target is checked."""
    assert commands(block)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in commands(block):
        if command.startswith("make "):
            target = command.split(" #")[0].split(" && ")[0]
            subprocess.run([*target.split(), "--dry-run"], cwd=ROOT, check=True, capture_output=True)
            continue
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_a_clone_becomes_predictions_in_three_commands_on_the_first_screen() -> None:
    install, train, predict = commands(SHELL[0])
    assert install.startswith("make venv && . .venv/bin/activate")
    assert (train.split()[:2], predict.split()[:2]) == (["pprop", "train"], ["pprop", "predict"])
    assert TEXT[: TEXT.index(predict)].count("\n") < 25


def test_the_cpu_accuracies_are_those_of_the_committed_runs() -> None:
    cells = json.loads((ROOT / "results" / "core_accuracy.json").read_text())["cells"]
    means = {(cell["dataset"], cell["model"]): f"{np.mean(cell['accuracies']):.2f}" for cell in cells}
    for dataset, title in (("citeseer", "Citeseer"), ("cora_ml", "Cora-ML")):
        assert f"{means[dataset, 'PPNP']} and {means[dataset, 'APPNP']} ({title})" in TEXT
