"""The bundled example: the script makes the committed tables, pprop finds nothing odd in them, and the pairs help."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pprop
from pprop.cli.app import run
from pprop.cli.graphs import example_input
from pprop.cli.splits import class_names, own_split
from pprop.datasets.files import example_tables

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "recipes"
TABLES = ("nodes.csv", "edges.csv")


def test_the_script_makes_the_tables_to_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["make.py", str(tmp_path)])
    runpy.run_path(str(FOLDER / "make.py"), run_name="__main__")
    assert {name: (tmp_path / name).read_bytes() for name in TABLES} == {
        name: (FOLDER / name).read_bytes() for name in TABLES
    }
    assert sum((FOLDER / name).stat().st_size for name in TABLES) < 300_000


def test_the_package_has_the_same_tables() -> None:
    assert [path.read_bytes() for path in example_tables()] == [
        (FOLDER / name).read_bytes() for name in ("edges.csv", "nodes.csv")
    ]


def test_every_column_is_used_as_what_it_is() -> None:
    graph = example_input().read()
    assert graph.recipe is not None
    kinds = {column.name: column.kind for column in graph.recipe.columns}
    assert kinds == {
        "name": "text",
        "course": "category",
        "published": "date",
        "minutes": "number",
        "description": "text",
    }
    assert "missing filled" in graph.recipe.used["minutes"]
    assert len(own_split(graph, 0.5, 0.2, 0).evaluation) == 300


def test_nothing_is_odd_about_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    edges, nodes = map(str, example_tables())
    assert run(["data", "check", edges, "--nodes", nodes, "--label-column", "cuisine"]) == 0
    shown = "".join(capsys.readouterr())
    assert not [word for word in ("Caution", "Warning", "left out") if word in shown], shown


@pytest.mark.slow
def test_columns_and_pairs_together_are_better_than_either_alone() -> None:
    graph = example_input().read()
    names, split = class_names(graph), own_split(graph, 0.5, 0.2, 0)
    stopping = (split.stopping, names[split.stopping])
    given = np.concatenate([split.train, split.stopping])
    fitted: dict[Any, Any] = {
        kind: kind(graph, random_state=0, criterion="plateau").fit(split.train, names[split.train], stopping=stopping)
        for kind in (pprop.APPNPClassifier, pprop.MLPNodeClassifier)
    }
    fitted[pprop.LabelPropagationClassifier] = pprop.LabelPropagationClassifier(graph).fit(given, names[given])
    right = {kind: model.predict(split.evaluation) == names[split.evaluation] for kind, model in fitted.items()}
    ours = right.pop(pprop.APPNPClassifier)
    assert ours.mean() > 0.75
    for other in right.values():
        lead = ours.astype(float) - other
        assert lead.mean() - 1.96 * lead.std(ddof=1) / np.sqrt(len(lead)) > 0.0  # paired, on the same test nodes
