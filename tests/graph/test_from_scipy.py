"""Arguments of from_scipy as people have them: dense matrices, names of classes, data frames and their index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from pprop import Graph
from pprop._errors import GraphError, InputError


def test_a_dense_adjacency_is_taken() -> None:
    graph = Graph.from_scipy(np.array([[0, 2], [0, 1]]), directed=True)
    assert graph.adjacency.toarray().tolist() == [[0, 2], [0, 1]]


@pytest.mark.parametrize(
    ("labels", "codes", "names"),
    [
        (["b", "a", None, "NA", "b"], [1, 0, -1, -1, 1], ("a", "b")),
        (np.array(["b", "a", "?", "-1", ""]), [1, 0, -1, -1, -1], ("a", "b")),
        (pd.Series(["b", "a", pd.NA, None, "b"]), [1, 0, -1, -1, 1], ("a", "b")),
        (pd.Categorical(["b", "a", None, "b", "b"]), [1, 0, -1, 1, 1], ("a", "b")),
        (["10", "9", "nan", "9", "10"], [1, 0, -1, 0, 1], ("9", "10")),
        (pd.Series([1, 0, None, 1, 1]), [1, 0, -1, 1, 1], None),
        (pd.Series([1, 0, None, 1, 1], dtype="Int64"), [1, 0, -1, 1, 1], None),
        ([None] * 5, [-1] * 5, None),
        ([2, None, 0, -1, 1], [2, -1, 0, -1, 1], None),
    ],
)
def test_labels_are_names_or_indices_with_gaps(labels: Any, codes: list[int], names: Any) -> None:
    graph = Graph.from_scipy(sparse.csr_array((5, 5)), labels=labels)
    assert graph.labels is not None
    assert (graph.labels.tolist(), graph.class_names) == (codes, names)


def test_given_class_names_order_the_classes_and_may_be_like_a_missing_label() -> None:
    graph = Graph.from_scipy(sparse.csr_array((3, 3)), labels=["x", "NA", "?"], class_names=["x", "NA", "y"])
    assert graph.labels is not None
    assert (graph.labels.tolist(), graph.class_names) == ([0, 1, -1], ("x", "NA", "y"))


def test_a_frame_of_features_goes_through_the_recipe() -> None:
    frame = pd.DataFrame({"age": [31.5, 27.0, 45.0, 38.0], "club": ["chess", "go", "go", "chess"]})
    expected = [[31.5, 1, 0], [27, 0, 1], [45, 0, 1], [38, 1, 0]]
    for features in (frame, pl.DataFrame(frame.to_dict("list")), pa.table(frame)):
        graph = Graph.from_scipy(sparse.csr_array((4, 4)), features=features)
        assert np.array_equal(graph.features, expected)  # type: ignore[reportArgumentType]
        assert graph.feature_names == ("age", "club=chess", "club=go")
        assert graph.recipe is not None
    with pytest.raises(GraphError, match=r"'features' .* with 3 rows"):
        Graph.from_scipy(sparse.csr_array((3, 3)), features=frame)


def test_rows_of_pandas_are_found_by_their_index_where_it_holds_the_ids() -> None:
    frame = pd.DataFrame({"age": [31.5, 27.0, 45.25]}, index=["c", "a", "b"])
    labels = pd.Series(["x", "y", "z"], index=["b", "c", "a"])
    graph = Graph.from_scipy(sparse.csr_array((3, 3)), features=frame, labels=labels, ids=["a", "b", "c"])
    assert np.array_equal(graph.features, [[27], [45.25], [31.5]])  # type: ignore[reportArgumentType]
    assert graph.labels is not None
    assert graph.labels.tolist() == [2, 0, 1]


def test_an_index_that_numbers_the_rows_keeps_the_order_of_the_nodes() -> None:
    frame = pd.DataFrame({"age": [31.5, 27.0, 45.25]})
    for ids in (["a", "b", "c"], [7, 8, 9], [0, 1, 2], None):
        graph = Graph.from_scipy(sparse.csr_array((3, 3)), features=frame, ids=ids)
        assert np.array_equal(graph.features, [[31.5], [27], [45.25]])  # type: ignore[reportArgumentType]


def test_an_index_of_the_positions_names_the_nodes_of_a_graph_without_ids() -> None:
    labels = pd.Series([0, 1, 2], index=[2, 0, 1])
    graph = Graph.from_scipy(sparse.csr_array((3, 3)), labels=labels)
    assert graph.labels is not None
    assert graph.labels.tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("index", "ids", "message"),
    [
        (
            "bcd",
            "abc",
            r"'labels' .* Got an index with 1 unknown id \('d'\) instead. Leave out the rows of other nodes, or correct",
        ),
        ("bcb", "abc", r"'labels' .* Got an index with 'b' more than once"),
        ([7, 8, 9], "abc", r"Got an index with 3 unknown ids \(7, 8, 9\)"),
        ("uvw", None, r"Got an index with 3 unknown positions .*This graph has no ids: its nodes are 0 to 2"),
        (["7", "8", "9"], [7, 8, 9], r"The ids of this graph are integers"),
        ([7, 8, 9], ["7", "8", "9"], r"The ids of this graph are text: .*\.rename\(str\)"),
        ([0, 1, 2], [2, 0, 1], r"0 to 2, which are rows, and also ids .*labels\.loc\[graph\.ids\].*set_axis"),
    ],
)
def test_any_other_index_is_refused(index: Any, ids: Any, message: str) -> None:
    labels = pd.Series(["x", "y", "z"], index=list(index))
    with pytest.raises(GraphError, match=message):
        Graph.from_scipy(sparse.csr_array((3, 3)), labels=labels, ids=None if ids is None else list(ids))


def test_an_index_without_one_of_the_nodes_is_refused() -> None:
    labels = pd.Series(["x", "y"], index=["c", "b"])
    with pytest.raises(GraphError, match=r"one row for each node. Got no row for 1 of 3 nodes \('a'\)"):
        Graph.from_scipy(sparse.csr_array((3, 3)), labels=labels, ids=["a", "b", "c"])


def test_features_and_labels_of_edges_are_found_by_id() -> None:
    frame = pd.DataFrame({"age": [31.5, 27.0, 45.25]}, index=["c", "a", "b"])
    labels = pd.Series(["x", "y", "z"], index=["b", "c", "a"])
    graph = Graph.from_edges(["a"], ["b"], nodes=["a", "b", "c"], features=frame, labels=labels)
    assert np.array_equal(graph.features, [[27], [45.25], [31.5]])  # type: ignore[reportArgumentType]
    assert graph.labels is not None
    assert graph.labels.tolist() == [2, 0, 1]
    replaced = graph.replace(features=frame.iloc[::-1], labels=labels.iloc[::-1])
    assert replaced == graph


def test_ends_of_edges_with_different_indices_are_refused() -> None:
    source, target = pd.Series(["a", "b"]), pd.Series(["b", "c"])
    assert Graph.from_edges(source[::-1], target[::-1]).n_edges == 2
    with pytest.raises(InputError, match=r"'target' parameter of Graph.from_edges must be indexed as 'source' is"):
        Graph.from_edges(source, target[::-1])
    with pytest.raises(InputError, match=r"'weight' parameter of Graph.from_edges must be indexed as 'source' is"):
        Graph.from_edges(source, target, pd.Series([1.0, 2.0], index=[4, 5]))
