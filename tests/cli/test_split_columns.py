"""--split-time and --split-group: what divides the nodes, what is printed, and cautions beside a random split."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

QUICK = ("--model", "label-propagation", "--no-baselines")
TRAIN = ("train", "edges.csv", "--nodes", "nodes.csv", "--label-column", "topic", *QUICK)
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a ring of 60 people and their table, with further columns."""
    k = np.arange(60)
    pd.DataFrame({"source": k, "target": (k + 1) % 60}).to_csv(tmp_path / "edges.csv", index=False)

    def nodes(**columns: Any) -> None:
        table = {"id": k, "age": 20 + k * 7 % 41, "topic": np.where(k % 3 == 0, "a", "b"), **columns}
        pd.DataFrame(table).to_csv(tmp_path / "nodes.csv", index=False)

    return nodes


def days(step: int = 1) -> list[str]:
    return [str(np.datetime64("2023-01-01") + step * int(k * 7 % 60)) for k in range(60)]


def test_the_model_is_trained_on_the_past_and_tested_on_the_future(pprop_here, write: Write):
    write(seen=days())
    answer = pprop_here(*TRAIN, "--split-time", "seen", "--json")
    assert answer.code == 0, answer.err
    assert answer.err.splitlines()[-2] == (
        "Split by 'seen': the model is trained on nodes up to 2023-02-05, validated on nodes from 2023-02-06 to 2023-02-17 "
        "and tested on nodes from 2023-02-18 to 2023-03-01."
    )
    assert answer.record["split"] == {
        "kind": "time",
        "column": "seen",
        "training_times": ["2023-01-01", "2023-02-05"],
        "validation_times": ["2023-02-06", "2023-02-17"],
        "test_times": ["2023-02-18", "2023-03-01"],
    }
    assert "seen" not in answer.record["columns"]["used"]
    assert answer.record["test_nodes"] == 12


@pytest.mark.parametrize(
    ("column", "first", "last"),
    [
        ([2000 + k for k in range(60)], "2000", "2059"),
        (
            [f"{1 + k % 28:02d}.{1 + k // 28:02d}.2023 10:30" for k in range(60)],
            "2023-01-01T10:30:00",
            "2023-03-04T10:30:00",
        ),
    ],
    ids=["years", "moments"],
)
def test_times_are_printed_as_the_column_has_them(pprop_here, write: Write, column: list[Any], first: str, last: str):
    write(seen=column)
    found = pprop_here(*TRAIN, "--split-time", "seen", "--json").record["split"]
    assert (found["training_times"][0], found["test_times"][1]) == (first, last)


def test_each_group_is_in_one_set(pprop_here, write: Write):
    write(home=[f"h{k // 3}" if k < 57 else None for k in range(60)])
    answer = pprop_here(*TRAIN, "--split-group", "home", "--json")
    assert answer.code == 0, answer.err
    found = answer.record["split"]
    assert found["kind"] == "group"
    assert found["training_groups"] + found["validation_groups"] + found["test_groups"] == 19
    said = answer.err.splitlines()[-2]
    assert said.startswith("Split by 'home': each group is in one set. Of the groups, training nodes have ")
    assert said.endswith(" 3 labelled nodes without a group were divided one by one.")


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        (
            {"seen": [None if k in (4, 9) else f"2023-01-{1 + k % 28:02d}" for k in range(60)]},
            ("--split-time", "seen"),
            "--split-time needs a time of every labelled node, and 2 labelled nodes have none under 'seen' (first: row 5). "
            "Fill in the cell, or leave the label of the node empty.",
        ),
        (
            {"seen": ["soon" if k == 6 else "2023-01-05" for k in range(60)]},
            ("--split-time", "seen"),
            "--split-time takes a column of dates such as 2023-05-01, or of numbers. 'seen' has 'soon' in row 7.",
        ),
        (
            {"seen": [f"0{1 + k % 9}/0{1 + k % 7}/2023" for k in range(60)]},
            ("--split-time", "seen"),
            "--split-time: 'seen' has dates of which day and month cannot be told apart ('01/01/2023' in row 1). "
            "Write them as 2023-05-01.",
        ),
        (
            {"seen": [None] * 60},
            ("--split-time", "seen"),
            "--split-time takes a column of dates or numbers, and every cell of 'seen' is empty.",
        ),
        (
            {"seen": ["2023-01-05"] * 60},
            ("--split-time", "seen"),
            "No validation node is left of 60 labelled nodes divided by times: a time that many nodes share is not divided. "
            "Ask for larger shares.",
        ),
        (
            {"home": ["one"] * 60},
            ("--split-group", "home"),
            "No validation node is left of 60 labelled nodes divided by groups: there are too few, or one is too large. "
            "Ask for other shares.",
        ),
        ({}, ("--split-time", "seen"), "nodes.csv has no column 'seen'. Its columns: id, age, topic."),
    ],
)
def test_a_column_that_cannot_divide_the_nodes_is_refused(
    pprop_here, write: Write, columns: dict[str, Any], options: tuple[str, ...], sentence: str
):
    write(**columns)
    answer = pprop_here(*TRAIN, *options)
    assert (answer.code, answer.err.splitlines()[-1]) == (3, f"pprop train: {sentence}")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ((*TRAIN, "--split-time", "age", "--split-group", "age"), "Give one of --split-time and --split-group."),
        (("train", "citeseer", "--split-time", "age"), "--split-time is for a graph of your own"),
        (
            ("train", "edges.csv", "--split-group", "age"),
            "--split-group names a column of a node table: add --nodes FILE.",
        ),
        (
            (*TRAIN, "--split-time", "age", "--test-fold", "1"),
            "--test-fold is a value of the column that --split-column",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(pprop_here, write: Write, call: tuple[str, ...], sentence: str):
    write()
    answer = pprop_here(*call)
    assert (answer.code, sentence in answer.err) == (2, True), answer.err


def test_a_caution_stands_beside_a_random_split_where_columns_have_dates_or_groups(pprop_here, write: Write):
    write(seen=days(), birthday=days(30), household=[f"h{k // 3}" for k in range(60)], age_group=["young", "old"] * 30)
    cautions = pprop_here(*TRAIN, "--json").record["cautions"]
    assert [each for each in cautions if "The split is random" in each] == [
        "The split is random, and 'seen' has dates. For predictions of later nodes these figures may be too good: "
        "--split-time seen tests on the latest nodes.",
        "The split is random, and 'household' seems to name groups. For predictions of new groups these figures may be too good: "
        "--split-group household keeps each group in one set.",
    ]
    divided = pprop_here(*TRAIN, "--split-time", "seen", "--json").record
    assert not any("The split is random" in each for each in divided["cautions"])


def test_tune_divides_as_train_does(pprop_here, write: Write):
    pytest.importorskip("optuna")
    write(seen=days())
    call = ("tune", "edges.csv", "--nodes", "nodes.csv", "--label-column", "topic", "--trials", 1, "--holdouts", 1)
    answer = pprop_here(
        *call, "--split-time", "seen", "--space", "alpha=0.1,0.2", "--space", "max_epochs=2", "--out", "t"
    )
    assert answer.code == 0, answer.err
    assert "Split by 'seen': the model is trained on nodes up to 2023-02-05" in answer.err
    assert "--split-time seen" in answer.out
