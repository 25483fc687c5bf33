"""docs/your-data.md and examples/debian.py: the code runs, the options exist, and the builder reads an index."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pprop.cli.app import run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "your-data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)

INDEX = """Package: calc
Section: math
Depends: libnum1 (>= 2.0), libc6 | libc7, awk:any
Description: desktop calculator for large numbers
 A longer description that is not read: Section: none

Package: plotter
Section: contrib/math
Depends: calc, libc6, not-in-this-index
Recommends: libnum1
Description: plots functions and large numbers

Package: libnum1
Section: libs
Pre-Depends: libc6 (>= 2.36)
Description: library for large numbers

Package: libc6
Section: libs
Description: library that everything needs

Package: broken
Depends: libc6
"""


def test_the_code_runs_from_the_first_block_to_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in BLOCKS:
        exec(compile(block, "your-data.md", "exec"), names)
    assert names["model"].on(names["newer"]).predict().shape == (4,)


def test_every_option_on_the_page_exists(capsys: pytest.CaptureFixture[str]) -> None:
    texts = ""
    for verb in ("train", "predict"):
        assert run([verb, "--help"]) == 0
        texts += capsys.readouterr().out
    for option in set(re.findall(r"--[a-z][a-z-]+", PAGE)):
        assert re.search(rf"{option}\b", texts), option


@pytest.fixture
def debian() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / "debian.py"))


def test_an_index_becomes_a_graph_of_packages(debian: dict[str, Any]) -> None:
    graph = debian["debian_graph"](INDEX)
    assert graph.ids.tolist() == ["calc", "plotter", "libnum1", "libc6"]  # the broken one has no section
    assert [graph.class_names[code] for code in graph.labels] == ["math", "math", "libs", "libs"]
    names = graph.ids.tolist()
    pairs = {tuple(sorted((names[i], names[j]))) for i, j in np.argwhere(graph.adjacency.toarray())}
    assert pairs == {
        *[("calc", "libnum1"), ("calc", "libc6"), ("calc", "plotter"), ("libc6", "plotter")],
        *[("libnum1", "plotter"), ("libc6", "libnum1")],
    }
    assert graph.recipe.used == {"description": "text, 4 words"}  # for, large, library and numbers come twice


def test_the_example_runs_on_a_made_up_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(0)
    subjects = {"math": "numbers algebra plots", "games": "puzzle arcade cards", "libs": "library routines symbols"}
    paragraphs = ["Package: libc6\nSection: libs\nDescription: library routines"]
    for section, words in subjects.items():
        for k in range(12):
            depends = f"libc6, {section}{random.integers(12)}"
            told = " ".join(random.choice(words.split(), 3))
            paragraphs.append(f"Package: {section}{k}\nSection: {section}\nDepends: {depends}\nDescription: {told}")
    index = tmp_path / "Packages"
    index.write_text("\n\n".join(paragraphs))
    command = f"debian.py --index {index} --per-class 4 --stopping 9 --max-epochs 30 --package math3"
    monkeypatch.setattr(sys, "argv", command.split())
    runpy.run_path(str(ROOT / "examples" / "debian.py"), run_name="__main__")
    told = capsys.readouterr().out
    assert "hub: libc6 with 36 neighbours" in told
    assert re.search(r"words spread over dependencies +\d+\.\d% of 16 packages", told)
    assert "Sections that gain most:" in told
    assert "Explanation(node 'math3'" in told
