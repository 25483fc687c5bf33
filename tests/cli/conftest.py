"""Shared by the tests of the command line: the command in this process and in one of its own, and a small graph."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pprop.cli.app import run


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def record(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        return json.loads(self.out)


Command = Callable[..., Answer]


@pytest.fixture
def pprop_here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """The command in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Answer:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def pprop_process(tmp_path: Path) -> Command:
    """The command in a process of its own, in a folder of its own."""

    def call(*arguments: object) -> Answer:
        command = [sys.executable, "-m", "pprop", *(str(argument) for argument in arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
        return Answer(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def without_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty files in place of figures, which take longer to draw than a small model to train."""

    def write(figure: object, stem: Path) -> None:
        for kind in ("png", "svg"):
            stem.with_suffix(f".{kind}").touch()

    for module in ("models", "demo"):
        monkeypatch.setattr(f"pprop.cli.{module}.write_figure", write)
    for function in ("model.draw_curves", "model.draw_ranking", "accuracies.draw_distribution"):
        monkeypatch.setattr(f"pprop.study.figures.{function}", lambda *arguments: None)


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """Two communities of 20 people each, most of whose hobbies are known: edges.csv and nodes.csv."""
    random = np.random.default_rng(0)
    names = [f"person{k:02d}" for k in range(40)]
    edges = {
        tuple(sorted((a, b)))
        for side in (range(20), range(20, 40))
        for a in side
        for b in random.choice(list(side), 3)
        if a != b
    }
    edges.add((0, 20))
    edge_file, node_file = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    edge_file.write_text("source,target\n" + "".join(f"{names[a]},{names[b]}\n" for a, b in sorted(edges)))
    rows = ["id,hobby,reads,runs"]
    for k, name in enumerate(names):
        hobby = "" if k % 5 == 4 else ("chess" if k < 20 else "tennis")
        noise = random.random(2).round(3)
        rows.append(f"{name},{hobby},{noise[0] + (k < 20):.3f},{noise[1] + (k >= 20):.3f}")
    node_file.write_text("\n".join(rows) + "\n")
    return edge_file, node_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables as people have them."""
    from tests.cli.own_tables import write_tables  # which takes Answer from here

    made = tmp_path_factory.mktemp("own")
    write_tables(made)
    return made
