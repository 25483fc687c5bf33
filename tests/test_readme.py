"""Every code block of the README runs, and the tables in it are those of the committed results."""

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

from pprop.study.archive import Packed
from pprop.study.bootstrap import bootstrap_interval
from pprop.study.cell import Cell
from pprop.study.experiment import load_experiments
from pprop.study.zoo import MODELS

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
            subprocess.run([*command.split(" #")[0].split(), "--dry-run"], cwd=ROOT, check=True, capture_output=True)
            continue
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_the_accuracy_table_is_that_of_the_committed_runs() -> None:
    runs: dict[tuple[str, str], list[float]] = {}
    rows = list(Packed(ROOT / "results" / "study.pack"))
    newest = {row.cell: row.key.code for row in sorted(rows, key=lambda row: row.created)}  # cells that were run again
    for row in rows:
        cell = Cell.parse(row.cell)
        assert (cell.splits, cell.per_class) == ("test", 20)
        if row.key.code == newest[row.cell]:
            runs.setdefault((cell.model, cell.dataset), []).append(100 * row.accuracy)
    published = {(e.points[0].cell.model, e.points[0].cell.dataset): e.published for e in load_experiments().values()
                 if e.shows == "accuracy"}  # fmt: skip
    for name, kind in MODELS.items():
        line = f"| {kind.title} |"
        for dataset in ("citeseer", "cora_ml"):
            ours, paper = runs[name, dataset], published[name, dataset]
            assert len(ours) == (20 if name == "bootstrapped_fp" else 100)
            low, high = bootstrap_interval(ours)
            mean = sum(ours) / len(ours)
            line += f" {mean:.2f} ± {max(mean - low, high - mean):.2f} |"
            line += " - |" if paper is None else f" {paper.accuracy:.2f} ± {paper.accuracy_interval:.2f} |"
        assert line in TEXT


def test_the_cpu_accuracies_are_those_of_the_committed_runs() -> None:
    cells = json.loads((ROOT / "results" / "core_accuracy.json").read_text())["cells"]
    means = {(cell["dataset"], cell["model"]): f"{np.mean(cell['accuracies']):.2f}" for cell in cells}
    for dataset, title in (("citeseer", "Citeseer"), ("cora_ml", "Cora-ML")):
        assert f"{means[dataset, 'PPNP']} and {means[dataset, 'APPNP']} ({title})" in TEXT
