"""docs/does-the-graph-help.md: its figures are those of the committed rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "does-the-graph-help.md").read_text(encoding="utf-8")
ROWS: list[dict[str, Any]] = json.loads((ROOT / "results" / "normalization.json").read_text())


def chosen(rows: list[dict[str, Any]], measure: str) -> float:
    """The test score in percent, of the row with the best validation score of each seed."""
    seeds = {row["seed"] for row in rows}
    best = [max((row for row in rows if row["seed"] == s), key=lambda row: row["validation"][measure]) for s in seeds]
    return 100 * float(np.mean([row["test"][measure] for row in best]))


def test_the_table_is_that_of_the_committed_rows():
    graphs = dict.fromkeys(row["graph"] for row in ROWS)
    assert len(graphs) == 12
    for graph in graphs:
        rows = [row for row in ROWS if row["graph"] == graph]
        alone = [row for row in rows if row["way"] == "network alone"]
        averaged = [row for row in rows if row["way"] == "APPNP" and row["normalization"] == "row"]
        scores = [chosen(some, measure) for measure in ("accuracy", "average_precision") for some in (alone, averaged)]
        (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {graph} |")]
        assert line.endswith(f"| {' | '.join(f'{score:.1f}' for score in scores)} |")


def test_the_figures_of_rings_are_those_of_the_committed_row():
    lines = (ROOT / "results" / "any_graph.jsonl").read_text().splitlines()
    (row,) = [row for row in map(json.loads, lines) if row.get("graph") == "rings busy3_seed101" and "auto" in row]
    auto, spread, alone = (row[model]["average_precision"] for model in ("auto", "label_propagation", "network"))
    told = (
        f"average precision is {auto:.2f}\nwith `--model auto`, which keeps the mean of boosting and of a linear model"
    )
    assert (
        f"{told} on these columns. It is {spread:.2f} with label propagation\nand {alone:.2f} with the network alone."
        in PAGE
    )
    assert row["chosen"] == ["boosting", "linear"]
