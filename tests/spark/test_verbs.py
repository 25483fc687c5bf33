"""``pprop spark``: from Parquet files to Parquet files, against the library on one machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pprop
from pprop import GraphFolder
from pprop.cli.app import run

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
N, CLASSES = 80, ("art", "law")


@pytest.fixture
def tables(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Edges, scores and nodes of a small graph with two classes, written to the working folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    label = np.arange(N) % 2
    source, target = rng.integers(0, N - 2, 500), rng.integers(0, N - 2, 500)
    keep = (label[source] == label[target]) | (rng.random(500) < 0.1)
    names = [f"p{k}" for k in range(N)]
    edges = {"from": [names[k] for k in source[keep]], "to": [names[k] for k in target[keep]]}
    pq.write_table(pa.table(edges), "edges.parquet")
    scores = rng.standard_normal((N, 2))
    pq.write_table(pa.table({"id": names, "a": scores[:, 0], "b": scores[:, 1]}), "scores.parquet")
    x = rng.standard_normal(N) + 2 * label
    topic = [CLASSES[one] if k < 50 else None for k, one in enumerate(label)]
    pq.write_table(pa.table({"id": names, "x": x, "topic": topic}), "nodes.parquet")
    return {"names": names, "scores": scores, "label": label}


FILES = (
    "edges.parquet",
    "scores.parquet",
    "nodes.parquet",
    "few.parquet",
    "graph",
    "spread",
    "rows",
    "model",
    "classes",
    "other",
)


def spark_verb(*arguments: str) -> int:
    """Run a verb. Spark's own folder is that in which the session began, so files are given with theirs."""
    return run(["spark", *(str(Path(one).absolute()) if one in FILES else one for one in arguments)])


def call(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run a verb that ends well, and return its record."""
    capfd.readouterr()
    code = spark_verb(*arguments, "--json")
    out, err = capfd.readouterr()
    assert code == 0, err
    return json.loads(out)


def rows(folder: str) -> dict[Any, dict[str, Any]]:
    """Return the rows of a folder of Parquet by id."""
    return {row["id"]: row for row in pq.read_table(folder).to_pylist()}


@pytest.mark.slow
def test_verbs_from_parquet_to_parquet(tables: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    ends = ("--source", "from", "--target", "to")
    packed = call(capfd, "pack", "edges.parquet", "--nodes", "nodes.parquet", *ends, "--out", "graph")
    graph = GraphFolder.open("graph").graph()
    assert packed["nodes"] == N == graph.n_nodes
    assert packed["entries"] == graph.adjacency.nnz
    ids: Any = graph.ids
    at = [tables["names"].index(one) for one in ids.tolist()]

    spread = call(capfd, "propagate", "graph", "scores.parquet", "--alpha", "0.2", "--out", "spread")
    assert spread["columns"] == ["id", "a", "b"]
    expected = pprop.propagate(graph, tables["scores"][at].astype(np.float32), alpha=0.2)
    found = rows("spread")
    ours = np.array([[found[one]["a"], found[one]["b"]] for one in ids.tolist()])
    assert np.abs(ours - np.asarray(expected)).max() < 1e-5 * np.abs(ours).max()

    pq.write_table(pq.read_table("nodes.parquet").slice(0, 3), "few.parquet")
    call(capfd, "ppr", "graph", "few.parquet", "--alpha", "0.2", "--topk", "4", "--out", "rows")
    found = pq.read_table("rows").to_pylist()
    push = pprop.LocalPush(graph, 0.2).rows(
        np.array([ids.tolist().index(f"p{k}") for k in range(3)]), 1e-5, 4, to_eps=True
    )
    assert len(found) == push.matrix.nnz
    assert abs(sum(row["value"] for row in found) - push.matrix.data.sum()) < 1e-9

    trained = call(capfd, "train", "nodes.parquet", "graph", "--label-column", "topic", "--out", "model")
    assert trained["epochs"] > 0
    call(capfd, "predict", "model", "nodes.parquet", "graph", "--out", "classes")
    classes = rows("classes")
    right = [classes[f"p{k}"]["class"] == CLASSES[tables["label"][k]] for k in range(50, N)]
    assert np.mean(right) > 0.8


def test_a_verb_replaces_nothing_and_names_what_is_wrong(
    tables: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    Path("spread").mkdir()
    assert spark_verb("propagate", "edges.parquet", "scores.parquet", "--out", "spread") == 4
    assert "is already there" in capfd.readouterr().err
    assert spark_verb("propagate", "edges.parquet", "scores.parquet", "--out", "other") != 0
    assert "'source'" in capfd.readouterr().err
    assert not Path("other").exists()


def test_columns_that_several_tables_lack_are_named_together_with_the_likely_ends(
    tables: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert spark_verb("propagate", "edges.parquet", "scores.parquet", "--columns", "a,c", "--out", "other") == 3
    told = capfd.readouterr().err
    assert "The table of edges has no columns 'source' and 'target'. Its columns: from, to. " in told
    assert "Name them: --source from --target to" in told
    assert "The table of predictions has no column 'c'. Its columns: id, a, b." in told
    assert not Path("other").exists()
