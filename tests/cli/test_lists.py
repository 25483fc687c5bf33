"""Roles and known labels beside predictions, and lists of the most probable nodes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import pprop
from pprop.cli import models

TRAIN = ("train", "edges.csv", "--nodes", "nodes.csv", "--label-column", "hobby", "--max-epochs", 3, "--no-baselines")


@pytest.fixture
def model(pprop_here, tables, without_drawing: None) -> None:
    assert pprop_here(*TRAIN, "--out", "model").code == 0


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.usefixtures("model")
def test_each_node_has_its_role_and_its_known_label(pprop_here, tmp_path: Path):
    rows = rows_of((tmp_path / "model" / "predictions.csv").read_text())
    loaded = pprop.load(tmp_path / "model")
    split = loaded.fitted_.split
    assert split is not None
    for role, nodes in (("training", split.train), ("validation", split.stopping), ("test", split.evaluation)):
        assert [k for k, row in enumerate(rows) if row["role"] == role] == np.sort(nodes).tolist()
        assert len(nodes)
    known = {row["id"]: row["hobby"] for row in rows_of((tmp_path / "nodes.csv").read_text())}
    assert {row["id"]: row["label"] for row in rows} == known
    assert all((row["role"] == "unlabelled") == (row["label"] == "") for row in rows)


@pytest.mark.usefixtures("model")
def test_a_model_without_test_nodes_is_read_as_before(pprop_here, tmp_path: Path):
    loaded = pprop.load(tmp_path / "model")
    assert loaded.fitted_.split is not None
    models.keep_test_nodes(loaded, np.empty(0, dtype=np.int64))
    loaded.save(tmp_path / "older")
    roles = {row["role"] for row in rows_of(pprop_here("predict", "older").out)}
    assert roles == {"training", "validation", "labelled", "unlabelled"}


@pytest.mark.usefixtures("model")
def test_the_list_has_the_most_probable_nodes_without_a_label(pprop_here, tmp_path: Path):
    answer = pprop_here("predict", "model", "--unlabelled", "--top", 5)
    assert answer.code == 0, answer.err
    assert answer.err.splitlines()[-1].startswith("Ranked by the probability of '")
    name = answer.err.split("'")[1]
    rows, every = rows_of(answer.out), rows_of((tmp_path / "model" / "predictions.csv").read_text())
    best = sorted((row for row in every if row["role"] == "unlabelled"), key=lambda row: -float(row[f"p_{name}"]))
    assert rows == best[:5]
    assert pprop_here("predict", "model", "--unlabelled", "--top", 5, "--out", "list.csv").out == "5 nodes: list.csv\n"
    assert (tmp_path / "list.csv").read_text() == answer.out
    assert json.loads(pprop_here("predict", "model", "--top", 3, "--json").out)["rows"] == 3


@pytest.mark.usefixtures("tables", "without_drawing")
def test_predictions_by_a_threshold_come_with_its_sentence(pprop_here, tmp_path: Path):
    assert pprop_here(*TRAIN, "--threshold", "f1", "--positive", "chess", "--out", "model").code == 0
    limit = pprop.load(tmp_path / "model").fitted_.threshold
    assert limit is not None
    answer = pprop_here("predict", "model", "--json")
    assert limit.sentence() in answer.err.splitlines()
    found = answer.record["threshold"]
    assert found == limit.described()
    assert (found["positive"], found["probability"], found["nodes"]) == ("chess", limit.probability, limit.nodes)
    assert (found["precision"], found["recall"]) == (limit.precision, limit.recall)
    assert limit.sentence() in (tmp_path / "model" / "MODEL_CARD.md").read_text()


@pytest.mark.usefixtures("model")
def test_predictions_without_a_threshold_have_no_remark(pprop_here):
    answer = pprop_here("predict", "model", "--json")
    assert (answer.code, answer.err, "threshold" in answer.record) == (0, "", False)


@pytest.mark.usefixtures("model")
def test_a_parquet_file_may_begin_with_nodes_without_labels(
    pprop_here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(models, "ROWS", 1)
    assert pprop_here("predict", "model", "--top", 40, "--out", "p.parquet").code == 0
    found = pq.read_table(tmp_path / "p.parquet").to_pydict()
    assert set(found["label"]) == {"chess", "tennis", None}


@pytest.mark.usefixtures("model")
def test_another_graph_has_no_roles(pprop_here, tmp_path: Path):
    with (tmp_path / "edges.csv").open("a") as stream:
        stream.write("person00,person39\n")
    answer = pprop_here("predict", "model", "--graph", "edges.csv", "--nodes", "nodes.csv", "--unlabelled", "--top", 4)
    assert answer.code == 0, answer.err
    assert [*rows_of(answer.out)[0]] == ["id", "class", "p_chess", "p_tennis"]
