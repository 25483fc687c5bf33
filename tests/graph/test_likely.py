from __future__ import annotations

import pytest

from pprop.graph.tables.frames import table_of
from pprop.graph.tables.likely import likely_columns

N = 12
EDGES = {"source": [f"n{k}" for k in range(N)], "target": [f"n{(k + 1) % N}" for k in range(N)]}


def label_of(**columns: list[str]) -> str | None:
    nodes = {"id": [f"n{k}" for k in range(N)], **columns}
    found = likely_columns(table_of(EDGES, "edges", "f"), table_of(nodes, "nodes", "f"), {})
    assert {**found, "label_column": ""} == {
        "source": "source",
        "target": "target",
        "id_column": "id",
        "label_column": "",
    }
    return found.get("label_column")


def repeated(*cells: str) -> list[str]:
    return [cells[k % len(cells)] for k in range(N)]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("part", ("train", "val", "test")),
        ("label_split", ("train", "unused", "test")),
        ("split_type", ("tr", "va", "te")),
        ("kind_is_train", ("True", "False")),
        ("train_mask", ("1", "0")),
        ("partition", ("0", "1", "2", "3")),
        ("target_fold", ("fold1", "fold2", "fold3")),
    ],
)
def test_a_column_that_holds_a_split_is_not_proposed_for_the_labels(name, cells):
    assert label_of(colour=repeated("red", "blue"), **{name: repeated(*cells)}) == "colour"
    assert label_of(**{name: repeated(*cells)}) is None


@pytest.mark.parametrize("name", ["cls", "CLS", "node_cls", "lbl", "clazz", "dept", "is_fraud", "y", "groundTruth"])
def test_a_column_called_like_a_class_is_proposed_before_others(name):
    assert label_of(**{name: repeated("1", "2", "3"), "colour": repeated("red", "blue")}) == name
