"""Each table that a command is given is opened once: counted by what the interpreter opens."""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.own_tables import QUICK

from pprop.cli.graphs import GraphInput, TableOptions

TABLES = ("edges", "nodes", "scores")


class Opens:
    """Counts the files with tables that are opened while it is on; an audit hook cannot be taken away again."""

    def __init__(self) -> None:
        self.counted: Counter[str] | None = None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.counted is None or event != "open" or not isinstance(arguments[0], str | Path):
            return
        name, mode = Path(arguments[0]).name, arguments[1]
        if (
            name.partition(".")[0] in TABLES and ".py" not in name and mode is not None
        ):  # None: os.open, which open calls with a mode
            self.counted[name] += 1

    @contextmanager
    def on(self) -> Generator[Counter[str]]:
        self.counted = Counter()
        try:
            yield self.counted
        finally:
            self.counted = None


OPENS = Opens()


@pytest.fixture(params=[".csv", ".csv.gz", ".parquet"])
def suffix(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Sixty people in a ring, a column of a split and their scores, as tables of one kind."""
    import pandas as pd

    ids, k = [f"n{k}" for k in range(60)], np.arange(60)
    tables = {
        "edges": {"source": ids, "target": [*ids[1:], ids[0]], "when": k},
        "nodes": {
            "id": ids,
            "age": 20 + k * 7 % 41,
            "colour": [*"rgb"] * 20,
            "topic": np.where(k < 30, "a", "b"),
            "part": [*["train"] * 3, "val", "test", "test"] * 10,
        },
        "scores": {"id": ids, "score": k / 60},
    }
    kind = request.param
    for name, columns in tables.items():
        frame, path = pd.DataFrame(columns), tmp_path / f"{name}{kind}"
        frame.to_parquet(path) if kind == ".parquet" else frame.to_csv(path, index=False)
    return kind


@pytest.mark.parametrize(
    "words",
    [
        ("train", *QUICK),
        ("train", *QUICK, "--split-column", "part"),
        ("train", *QUICK, "--structure", "degree", "--split-column", "part"),
        ("data", "check"),
    ],
    ids=["train", "with a split", "with a structure", "check"],
)
def test_a_command_opens_each_table_once(pprop_here, suffix: str, words: tuple[Any, ...]):
    verb = words[:2] if words[0] == "data" else words[:1]
    graph = (f"edges{suffix}", "--nodes", f"nodes{suffix}", "--label-column", "topic")
    with OPENS.on() as counted:
        answer = pprop_here(*verb, *graph, *words[len(verb) :])
    assert answer.code == 0, answer.err
    assert counted == {f"edges{suffix}": 1, f"nodes{suffix}": 1}


def test_propagate_opens_each_of_its_three_tables_once(pprop_here, suffix: str):
    if suffix == ".csv.gz":
        pytest.skip("predictions are read from plain files")
    with OPENS.on() as counted:
        answer = pprop_here("propagate", f"edges{suffix}", f"scores{suffix}", "--nodes", f"nodes{suffix}")
    assert answer.code == 0, answer.err
    assert counted == {f"{name}{suffix}": 1 for name in TABLES}


def test_tune_opens_each_table_once(pprop_here, suffix: str):
    pytest.importorskip("optuna")
    graph = (f"edges{suffix}", "--nodes", f"nodes{suffix}", "--label-column", "topic", "--split-column", "part")
    with OPENS.on() as counted:
        answer = pprop_here(
            "tune",
            *graph,
            "--trials",
            1,
            "--holdouts",
            1,
            "--model",
            "mlp",
            "--space",
            "dropout=0.2:0.5",
            "--out",
            "search",
        )
    assert answer.code == 0, answer.err
    assert counted == {f"edges{suffix}": 1, f"nodes{suffix}": 1}


@pytest.mark.filterwarnings("ignore:The column 'part'")  # a split, which the command line speaks of in its own words
def test_the_rows_are_let_go_when_the_graph_is_read(suffix: str, tmp_path: Path):
    nodes = str(tmp_path / f"nodes{suffix}")
    origin = GraphInput(str(tmp_path / f"edges{suffix}"), TableOptions(nodes=nodes, label_column="topic"))
    kept = weakref.ref(origin.edge_table()), weakref.ref(origin.node_table())
    assert all(one() is not None for one in kept)
    origin.read()
    assert all(one() is None for one in kept)
    assert origin.unused_edge_columns().keys() == {"when"}
