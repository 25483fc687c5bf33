"""What the edges between labelled nodes show: in 'data check' of all labels, in 'train' of training labels alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

TABLES = ("edges.csv", "--nodes", "nodes.csv", "--label-column", "topic")
TRAIN = ("train", *TABLES, "--model", "label-propagation", "--no-baselines", "--split-column", "part", "--json")


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """A ring of 200 people in two halves of one class each; every tenth is for testing."""
    k = np.arange(200)
    pd.DataFrame({"source": k, "target": (k + 1) % 200}).to_csv(tmp_path / "edges.csv", index=False)
    part = np.where(k % 10 == 9, "test", np.where(k % 10 == 4, "val", "train"))
    table = pd.DataFrame({"id": k, "age": k % 7, "topic": np.where(k < 100, "a", "b"), "part": part})
    table.to_csv(tmp_path / "nodes.csv", index=False)
    return tmp_path / "nodes.csv"


def test_check_uses_all_labels_and_says_so(pprop_here, ring: Path):
    answer = pprop_here("data", "check", *TABLES)
    assert (
        "Homophily of all labels in the file: 99.0% of 200 edges between labelled nodes are within a class (adjusted homophily "
        "0.98, label informativeness 0.92). Neighbours share the class far more often than by chance: expect the graph to help."
    ) in answer.out
    assert pprop_here("data", "check", *TABLES, "--json").record["homophily"]["edges"] == 200


def test_train_uses_training_labels_alone_whatever_the_others_are(pprop_here, ring: Path):
    first = pprop_here(*TRAIN)
    assert first.code == 0, first.err
    assert first.record["homophily"]["edges"] == 120
    table = pd.read_csv(ring)
    other = (table["part"] != "train") & (table["topic"] == "a")
    table.loc[other, "topic"] = "b"
    table.to_csv(ring, index=False)
    assert pprop_here(*TRAIN).record["homophily"] == first.record["homophily"]
    said = [line for line in first.err.splitlines() if line.startswith("Training labels: ")]
    assert said[0].startswith(
        "Training labels: 100.0% of 120 edges between training nodes are within a class (adjusted "
    )
    assert said[0].endswith("Neighbours share the class far more often than by chance: expect the graph to help.")


def test_a_graph_without_edges_between_labels_says_nothing_of_them(pprop_here, ring: Path):
    table = pd.read_csv(ring)
    table["topic"] = table["topic"].where(np.arange(200) % 3 == 0)
    table.to_csv(ring, index=False)
    out = pprop_here("data", "check", *TABLES).out
    assert "Homophily of all labels in the file: 0 edges between labelled nodes. These are too few edges to say" in out
