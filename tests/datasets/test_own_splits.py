"""Splits by time and by group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from pprop import Graph, InputError
from pprop.datasets.own_splits import group_split, time_split


def graph_with(labels: Any, **how: Any) -> Graph:
    return Graph.from_scipy(sparse.csr_array((len(labels), len(labels))), labels=labels, **how)


@pytest.mark.parametrize("seed", range(5))
def test_no_test_node_is_earlier_than_a_training_node(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels, times = random.integers(-1, 3, size=300), random.integers(60, size=300)
    split = time_split(graph_with(labels), times)
    train, stopping, test = times[split.train], times[split.stopping], times[split.evaluation]
    assert train.max() < stopping.min()
    assert stopping.max() < test.min()
    parts = np.concatenate([split.train, split.stopping, split.evaluation])
    assert sorted(parts.tolist()) == np.flatnonzero(labels >= 0).tolist()
    share = len(test) / len(parts)
    assert 0.2 - 0.05 <= share <= 0.2


@pytest.mark.parametrize(
    "times",
    [
        np.array(["2024-01-03", "2024-01-01", "NaT", "2024-01-02", "2023-12-31", "2024-02-01"], dtype="datetime64[D]"),
        ["2024-01-03", "2024-01-01", "", "2024-01-02", "2023-12-31", "2024-02-01"],
        np.array([3.0, 1.0, np.nan, 2.0, 0.0, 9.0]),
        pd.to_datetime(pd.Series(["2024-01-03", "2024-01-01", None, "2024-01-02", "2023-12-31", "2024-02-01"])),
        [3, 1, None, 2, 0, 9],
    ],
)
def test_dates_texts_and_numbers_sort_by_time_and_a_missing_one_takes_no_part(times: Any) -> None:
    split = time_split(graph_with([0, 1, 0, 1, 0, 1]), times, test=0.2, stopping=0.2)
    assert [part.tolist() for part in (split.train, split.stopping, split.evaluation)] == [[1, 3, 4], [0], [5]]


def test_a_series_is_read_by_its_index() -> None:
    graph = graph_with([0, 1, 0, 1], ids=["a", "b", "c", "d"])
    times = pd.Series([4, 3, 2, 1], index=["d", "c", "b", "a"])
    assert time_split(graph, times, test=0.25, stopping=0.25).evaluation.tolist() == [3]


def test_a_time_that_most_nodes_share_leaves_no_test_nodes() -> None:
    with pytest.raises(InputError, match=r"No test node is left of 5 labelled nodes divided by times"):
        time_split(graph_with([0, 1, 0, 1, 0]), [1, 1, 1, 1, 1], stopping=0.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_group_is_in_one_set_and_classes_have_their_shares(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups = random.integers(120, size=600)
    labels = np.where(groups % 10 == 0, 1, 0)  # all of a group are of one class
    split = group_split(graph_with(labels), groups, seed=seed)
    parts = [split.train, split.stopping, split.evaluation]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not set(groups[parts[one]]) & set(groups[parts[other]])
    assert sum(map(len, parts)) == 600
    for part, share in zip(parts, (0.6, 0.2, 0.2), strict=True):
        assert len(part) / 600 == pytest.approx(share, abs=0.03)
        assert labels[part].sum() / labels.sum() == pytest.approx(share, abs=0.12)


def test_nodes_without_a_group_go_alone() -> None:
    split = group_split(graph_with([0, 1] * 20), ["x"] * 4 + [""] * 36, test=0.25, stopping=0.25)
    assert (len(split.train), len(split.stopping), len(split.evaluation)) == (20, 10, 10)


def test_without_a_share_a_set_is_empty() -> None:
    split = group_split(graph_with([0, 1] * 10), np.arange(20), test=0.5, stopping=0.0)
    assert (len(split.train), len(split.stopping), len(split.evaluation)) == (10, 0, 10)


def test_one_group_cannot_be_divided() -> None:
    with pytest.raises(InputError, match=r"divided by groups: there are too few, or one is too large"):
        group_split(graph_with([0, 1, 0, 1]), ["x"] * 4)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"test": 1.0}, "The 'test' parameter of time_split must be a float in"),
        ({"test": 0.5, "stopping": 0.5}, "The 'stopping' parameter of time_split must be less than 0.5"),
        ({"times": [1, 2]}, r"The 'times' parameter of time_split must be one value per node, shape \(4,\)"),
        ({"times": [1, "a", 2, "b"]}, "The 'times' parameter of time_split must be of one type. Got int and str"),
        ({"labels": ["a", "b", "a", "b"]}, "The 'labels' parameter of time_split must be class indices"),
    ],
)
def test_what_cannot_be_divided_is_refused(how: Any, sentence: str) -> None:
    arguments: dict[str, Any] = {"times": [1, 2, 3, 4], **how}
    with pytest.raises(InputError, match=sentence):
        time_split(graph_with([0, 1, 0, 1]), **arguments)


def test_labels_may_be_given_beside_the_graph() -> None:
    bare = Graph.from_scipy(sparse.csr_array((4, 4)))
    assert len(time_split(bare, [1, 2, 3, 4], labels=[0, 1, 0, -1], test=0.34, stopping=0.0).evaluation) == 1
    with pytest.raises(InputError, match="time_split needs labels, and this graph has none"):
        time_split(bare, [1, 2, 3, 4])
