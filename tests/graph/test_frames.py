"""Tables in memory: pandas, polars, anything with the Arrow interface, and columns in a dict."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pprop import Graph, LabelPropagationClassifier, read_edges
from pprop._errors import InputError

EDGES = {"source": ["dee", "ann", "bob"], "target": ["bob", "dee", "cem"], "strength": [2.0, 3.0, 4.0]}
NODES = {"id": ["ann", "bob", "cem", "dee"], "x": [1.5, 2.5, 3.5, 4.5], "team": ["red", None, "blue", "red"]}
ADJACENCY = [[0, 0, 0, 3], [0, 0, 4, 2], [0, 4, 0, 0], [3, 2, 0, 0]]


class Relation:
    """What DuckDB and others give: a stream of Arrow batches and nothing else."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class Exchanged:
    """What offers the older interface only."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._table = pa.table(columns)

    def __dataframe__(self, **options: Any) -> object:
        return self._table.__dataframe__(**options)


@pytest.mark.parametrize(
    "make", [dict, pd.DataFrame, pl.DataFrame, pa.table, Relation, Exchanged], ids=lambda make: make.__name__
)
def test_every_kind_of_frame_gives_the_same_graph(make: Any) -> None:
    graph = Graph.from_pandas(make(EDGES), make(NODES), weight="strength", label_column="team", name="friends")
    np.testing.assert_array_equal(graph.adjacency.toarray(), ADJACENCY)
    assert graph.ids is not None
    assert graph.ids.tolist() == NODES["id"]
    assert (graph.class_names, graph.feature_names, graph.name) == (("blue", "red"), ("x",), "friends")
    np.testing.assert_array_equal(graph.labels, [1, -1, 0, 1])  # type: ignore[arg-type]
    np.testing.assert_array_equal(graph.features, np.array(NODES["x"])[:, None])  # type: ignore[arg-type]


def test_without_nodes_the_order_is_that_of_first_appearance() -> None:
    graph = Graph.from_pandas(pd.DataFrame(EDGES))
    assert graph.ids is not None
    assert graph.ids.tolist() == ["dee", "bob", "ann", "cem"]


@pytest.mark.parametrize("nodes", [pd.Categorical(["b", "a"]), pl.Series(["b", "a"], dtype=pl.Categorical)])
def test_categories_are_ids(nodes: Any) -> None:
    make = pl.DataFrame if isinstance(nodes, pl.Series) else pd.DataFrame
    graph = Graph.from_pandas(make({"source": nodes, "target": ["a", "c"]}))
    assert graph.ids is not None
    assert graph.ids.tolist() == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("index", "id_column"),
    [
        (pd.Index(NODES["id"], name="id"), "id"),
        (pd.Index(NODES["id"]), "index"),
        (pd.MultiIndex.from_arrays([NODES["id"], [1, 2, 3, 4]], names=["id", None]), "id"),
    ],
)
def test_an_index_with_a_name_or_of_text_is_a_column(index: Any, id_column: str) -> None:
    nodes = pd.DataFrame({"x": NODES["x"]}, index=index)
    graph = Graph.from_pandas(pd.DataFrame(EDGES), nodes, id_column=id_column)
    assert graph.ids is not None
    assert graph.ids.tolist() == NODES["id"]


def test_numbers_of_rows_are_no_column() -> None:
    nodes = pd.DataFrame(NODES)[["id", "x"]]
    for table in (nodes, nodes.iloc[::-1]):  # the second with an index of 3, 2, 1, 0
        graph = Graph.from_pandas(pd.DataFrame(EDGES), table)
        assert graph.feature_names == ("x",)
        assert graph.recipe is not None
        assert [column.name for column in graph.recipe.columns] == ["x"]


@pytest.mark.parametrize(
    ("edges", "ids"),
    [
        ({"source": [7, 8], "target": ["8", "9"]}, [7, 8, 9]),  # by their printed form
        ({"source": [7, 8], "target": ["8", "09"]}, ["7", "8", "09"]),
        ({"source": [7.0, 8.0], "target": [8, 9]}, [7, 8, 9]),  # as pandas has integers with gaps
        ({"source": np.array([7, 8], dtype=np.uint8), "target": np.array([8, 9], dtype=np.int32)}, [7, 8, 9]),
        ({"source": np.array([2**63 + 7], dtype=np.uint64), "target": [1]}, [str(2**63 + 7), "1"]),
        ({"source": pd.Series([7, 8], dtype="Int64"), "target": pd.Series(["8", "9"], dtype="string")}, [7, 8, 9]),
    ],
)
def test_ids_of_several_types_match_by_what_they_print(edges: Any, ids: list[object]) -> None:
    graph = Graph.from_pandas(edges)
    assert graph.ids is not None
    assert graph.ids.tolist() == ids
    assert Graph.from_pandas(edges, {"id": ids}).fingerprint == graph.fingerprint
    assert Graph.from_pandas(edges, {"id": list(map(str, ids))}).fingerprint == graph.fingerprint


@pytest.mark.parametrize(
    ("edges", "sentence"),
    [
        (None, r"'edges' parameter of Graph\.from_pandas must be a table: a data frame .*\. Got None instead"),
        ("edges.csv", r"Got 'edges\.csv' instead\. For a file use pprop\.read_edges"),
        ([(1, 2)], r"must be a table: .* Got \[\(1, 2\)\] instead"),
        ({"source": [1], "target": [1, 2]}, r"columns of one length\. Got lengths 1 and 2 in the dict"),
        ({}, r"a table with columns\. Got none in the dict"),
        ({"source": np.zeros((2, 2)), "target": [1, 2]}, r"under 'source' in the dict"),
        (
            pd.DataFrame([[1, 2]], columns=["source", "source"]),
            r"distinct column names\. Got the column 'source' twice",
        ),
        (
            pd.DataFrame({"source": ["a", 1], "target": [1, 2]}),
            r"one type\. Got 1 \(int\) after 'a' \(str\) under 'source' in row 2 of the DataFrame",
        ),
        (
            pd.DataFrame({"source": ["a", None], "target": [1, 2]}),
            r"an id in every row of 'source'\. Got an empty cell in row 2 of the DataFrame",
        ),
        ({"source": [1.5], "target": [1]}, r"text or integers\. Got 1\.5 under 'source' in row 1"),
        (
            {"source": [2.0**60], "target": [1]},
            r"Got 1152921504606846976 under 'source', a double that may have lost digits",
        ),
        ({"source": [True], "target": [1]}, r"text or integers\. Got bool under 'source'"),
        (
            {"source": pd.to_datetime(["2020-01-01"]), "target": [1]},
            r"text or integers\. Got timestamp.* under 'source'",
        ),
        ({"from": [1], "target": [1]}, r"The dict has no column 'source'\. Its columns: from, target\."),
        (
            {"source": pa.array([b"\xff"]).view(pa.string()), "target": [1]},
            r"is UTF-8\. Got the bytes b'.xff' under 'source' in row 1",
        ),
    ],
)
def test_wrong_frames(edges: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        Graph.from_pandas(edges)
    assert "\n" not in str(caught.value)


def test_an_edge_column_that_nobody_asks_for_may_hold_anything() -> None:
    graph = Graph.from_pandas(pd.DataFrame({"source": ["a"], "target": ["b"], "thing": [object()]}))
    assert graph.n_edges == 1


def test_unknown_nodes_are_counted_dropped_or_added() -> None:
    edges = {"source": ["a", "a", "z"], "target": ["b", "y", "x"], "w": [1.0, 2.0, 3.0]}
    nodes = {"id": ["b", "a"], "x": [1.0, 3.0], "team": ["red", "blue"]}
    with pytest.raises(InputError, match=r"The dict, row 2: node 'y' is not in the dict \(2 of 3 rows have"):
        Graph.from_pandas(edges, nodes)
    with pytest.warns(UserWarning, match="Left out 2 edges of the dict to nodes that the node table does not have"):
        dropped = Graph.from_pandas(edges, nodes, weight="w", label_column="team", unknown_nodes="drop")
    assert dropped == Graph.from_pandas({"source": ["a"], "target": ["b"]}, nodes, label_column="team")
    with pytest.warns(UserWarning, match="Added 3 nodes of the dict that the node table does not have"):
        added = Graph.from_pandas(edges, nodes, weight="w", label_column="team", unknown_nodes="add")
    assert added.ids is not None
    assert added.ids.tolist() == ["b", "a", "y", "z", "x"]
    np.testing.assert_array_equal(added.labels, [1, 0, -1, -1, -1])  # type: ignore[arg-type]
    expected = np.zeros((5, 5))
    expected[[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]] = [1, 1, 2, 2, 3, 3]
    np.testing.assert_array_equal(added.adjacency.toarray(), expected)
    assert added.feature_names == ("x", "x is missing")
    np.testing.assert_array_equal(added.features, [[1, 0], [3, 0], [2, 1], [2, 1], [2, 1]])  # type: ignore[arg-type]


def test_ids_stay_integers_where_the_text_among_the_edges_is_dropped() -> None:
    with pytest.warns(UserWarning, match="Left out 1 edge "):
        graph = Graph.from_pandas({"source": ["1", "x"], "target": ["2", "1"]}, {"id": [1, 2]}, unknown_nodes="drop")
    assert graph.ids is not None
    assert graph.ids.tolist() == [1, 2]


def test_from_edges_is_from_pandas_for_arrays() -> None:
    source, target, weight = EDGES.values()
    graph = Graph.from_edges(source, target, weight)
    assert graph == Graph.from_pandas(EDGES, weight="strength")
    features = np.arange(8.0).reshape(4, 2)
    graph = Graph.from_edges(
        np.array([1, 2]), [2, 3], directed=True, nodes=[3, 2, 1, 9], features=features, labels=["b", None, "a", "b"]
    )
    np.testing.assert_array_equal(graph.adjacency.toarray(), [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(graph.features, features)  # type: ignore[arg-type]
    np.testing.assert_array_equal(graph.labels, [1, -1, 0, 1])  # type: ignore[arg-type]
    assert graph.class_names == ("a", "b")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"features": np.eye(3)}, r"'features' parameter of Graph\.from_edges must be left out .* Pass nodes="),
        ({"nodes": [1, 2]}, r"The edges, row 2: node '3' is not in the nodes \(1 of 2 rows has an unknown node\)"),
        ({"nodes": [1, 2, 3, 3]}, r"'nodes' .* distinct ids\. Got the id '3' a second time in row 4 of the nodes"),
        ({"nodes": [1, 2, 3], "features": np.eye(2)}, r"'features' parameter of Graph\.from_edges .* 3 rows"),
        ({"weight": [1.0, -1.0]}, r"non-negative weights\. Got -1 in row 2 of the edges"),
        ({"weight": [1.0]}, r"columns of one length"),
        ({"directed": "yes"}, r"'directed' parameter of Graph\.from_edges"),
    ],
)
def test_wrong_arrays(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Graph.from_edges([1, 2], [2, 3], **arguments)


def test_no_library_is_needed_or_imported_for_the_tables_of_another() -> None:
    """pyarrow imports pandas by itself wherever it is installed, so that here it is made absent."""
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'pandas':\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import pyarrow as pa\n"
        "from pprop import Graph\n"
        "nodes = {'id': ['a', 'b'], 'x': [1, None], 'day': ['2020-01-01', '2021-01-01'], 'team': ['red', 'blue']}\n"
        "Graph.from_pandas(pa.table({'source': ['a'], 'target': ['b']}), nodes, label_column='team')\n"
        "print([name for name in ('polars', 'networkx', 'igraph', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


MIXED = pd.DataFrame({"id": [0, 1, 2], "x": [1.0, 2.0, 4.0], "odd": pd.Series([1, "a", 2.5], dtype=object)})
CHAIN = {"source": [0, 1], "target": [1, 2]}


def test_a_column_of_several_types_is_left_out_unless_it_is_asked_for() -> None:
    graph = Graph.from_pandas(CHAIN, MIXED)
    assert graph.recipe is not None
    assert graph.recipe.unused == {"odd": "left out: cannot be read as one type ('a' (str) after 1 (int) in row 2)"}
    assert Graph.from_pandas(CHAIN, MIXED, feature_columns=["x"]).feature_names == ("x",)
    with pytest.warns(UserWarning, match="Added 1 node"):
        added = Graph.from_pandas({"source": [0], "target": [7]}, MIXED, unknown_nodes="add")
    assert added.n_nodes == 4
    with pytest.raises(
        InputError, match=r"'odd', a column of the DataFrame that cannot be used \(cannot be read as one"
    ):
        Graph.from_pandas(CHAIN, MIXED, feature_columns=["odd"])
    column: Any
    for column in ("label_column", "id_column"):
        with pytest.raises(InputError, match=r"one type\. Got 'a' \(str\) after 1 \(int\) under 'odd' in row 2"):
            Graph.from_pandas(CHAIN, MIXED, **dict[str, Any]({column: "odd"}))
    recipe: Any = Graph.from_pandas(CHAIN, MIXED.assign(odd=[1, 2, 4])).recipe
    with pytest.raises(InputError, match=r"number in every row of 'odd'\. Got 'a' \(str\) after 1 \(int\) in row 1"):
        Graph.from_pandas(CHAIN, MIXED, feature_columns=recipe)


def test_sparse_columns_of_pandas_are_numbers_and_truth_values() -> None:
    nodes = pd.DataFrame(
        {"id": [0, 1, 2], "n": pd.arrays.SparseArray([0, 0, 3]), "b": pd.arrays.SparseArray([True, False, False])}
    )
    graph = Graph.from_pandas(CHAIN, nodes)
    np.testing.assert_array_equal(np.asarray(graph.features), [[0, 1], [0, 0], [3, 0]])


def test_a_matrix_in_a_data_frame_goes_by_its_ids() -> None:
    ids: Any = NODES["id"]
    frame = pd.DataFrame(ADJACENCY, index=ids, columns=ids)
    shuffled = frame[["dee", "ann", "cem", "bob"]]
    assert Graph.from_scipy(shuffled) == Graph.from_scipy(np.array(ADJACENCY), ids=ids)
    assert Graph.from_scipy(pd.DataFrame(ADJACENCY)) == Graph.from_scipy(np.array(ADJACENCY))
    for table in (frame.reset_index(drop=True), pd.DataFrame(EDGES)):
        with pytest.raises(
            InputError, match=r"same distinct ids as index and as columns\. Got DataFrame of .*from_pandas"
        ):
            Graph.from_scipy(table)
    with pytest.raises(InputError, match=r"a scipy sparse matrix or a square array of numbers\. Got \[\["):
        Graph.from_scipy(ADJACENCY)


def test_a_relation_of_duckdb_is_a_table() -> None:
    duckdb: Any = pytest.importorskip("duckdb", reason="duckdb is not among the dependencies")
    connection = duckdb.connect()
    people = connection.sql("select * from (values ('ann', 31, 'red'), ('bob', 27, null)) as people(id, age, team)")
    knows = connection.sql("select 'ann' as source, 'bob' as target")
    graph = Graph.from_pandas(knows, people, label_column="team")
    assert graph.ids is not None
    assert graph.labels is not None
    assert (graph.ids.tolist(), graph.labels.tolist(), graph.feature_names) == (["ann", "bob"], [0, -1], ("age",))


IDS = [f"n{row}" for row in range(40)]
RING = {"source": IDS, "target": [*IDS[1:], IDS[0]]}
SPLITS: dict[str, tuple[dict[str, Any], str]] = {
    "words": (
        {"split": ["train", "val", "train", "test"] * 10},
        "fit(nodes['split'] == 'train', y, stopping=(nodes['split'] == 'val', y))",
    ),
    "several words": (
        {"split": ["tr1", "tr2", "test", "unused"] * 10},
        "fit(np.isin(nodes['split'], ['tr1', 'tr2']), y)",
    ),
    "masks": (
        {
            "train_mask": [True, False, False, True] * 10,
            "val_mask": [False, True, False, False] * 10,
            "is_test": [0, 0, 1, 0] * 10,
        },
        "fit(nodes['train_mask'], y, stopping=(nodes['val_mask'], y))",
    ),
    "folds": ({"fold": [1, 2, 3, 4] * 10}, "fit(~(nodes['fold'] == 1), y)"),
    "a flag": ({"is_train": ["yes", "no"] * 20}, "fit(nodes['is_train'] == 'yes', y)"),
}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(("columns", "call"), SPLITS.values(), ids=SPLITS)
def test_columns_of_a_split_are_warned_of_once_with_a_call_that_uses_them(
    kind: Any, columns: dict[str, Any], call: str
) -> None:
    nodes = kind({"id": IDS, "x": [row % 7 for row in range(40)], **columns})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        graph = Graph.from_pandas(kind(RING), nodes)
    (sentence,) = [str(one.message) for one in told]
    assert told[0].filename == __file__
    assert all(repr(name) in sentence for name in columns)
    assert "of the DataFrame" in sentence
    assert f": {call}," in sentence
    y = np.arange(40) // 20
    model = LabelPropagationClassifier(graph)
    eval(f"model.{call}", {"model": model, "nodes": nodes, "y": y, "np": np})
    assert 0 < len(model.known_nodes_) < 40
    assert graph.feature_names == ("x",)


def test_a_column_of_a_split_that_is_named_or_refused_is_not_warned_of() -> None:
    nodes = pd.DataFrame({"id": IDS, "x": [row % 7 for row in range(40)], "split": ["train", "test"] * 20})
    Graph.from_pandas(RING, nodes, feature_columns=["x"])
    Graph.from_pandas(RING, nodes, feature_columns={"split": "unused"})
    with pytest.warns(UserWarning, match="'split' of the DataFrame is left out") as told:
        Graph.from_pandas(RING, nodes, features=np.ones((40, 3)) * np.arange(40)[:, None])
    assert len(told) == 1


@pytest.mark.parametrize(
    ("name", "cells", "use"),
    [
        ("is_train", ["1", "0"] * 20, "fit(nodes['is_train'] == 1, y)"),
        ("is_train", ["True", "False"] * 20, "fit(nodes['is_train'], y)"),
        ("cv_fold", ["2", "1"] * 20, "fit(~(nodes['cv_fold'] == 1), y)"),
    ],
)
def test_the_call_for_a_split_in_a_file_compares_cells_as_pandas_reads_them(
    tmp_path: Any, name: str, cells: list[str], use: str
) -> None:
    pd.DataFrame(RING).to_csv(tmp_path / "edges.csv", index=False)
    pd.DataFrame({"id": IDS, "x": range(100, 180, 2), name: cells}).to_csv(tmp_path / "nodes.csv", index=False)
    with pytest.warns(UserWarning, match="left out of the features") as told:
        graph = read_edges(tmp_path / "edges.csv", nodes=tmp_path / "nodes.csv")
    assert len(told) == 1
    assert f": {use}," in str(told[0].message)
    nodes, model = pd.read_csv(tmp_path / "nodes.csv"), LabelPropagationClassifier(graph)
    eval(f"model.{use}", {"model": model, "nodes": nodes, "y": np.arange(40) // 20})
    assert len(model.known_nodes_) == 20
