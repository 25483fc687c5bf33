"""Edge lists and node tables, CSV and Parquet: against matrices written out by hand."""

from __future__ import annotations

import unicodedata
import uuid
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import ArrayLike

from pprop._errors import FormatError
from pprop.graph import Graph, read_edges


def csv(folder: Path, name: str, *lines: str) -> Path:
    file = folder / name
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return file


def parquet(folder: Path, name: str, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), folder / name, **options)
    return folder / name


def assert_graph(graph: Graph, adjacency: ArrayLike, ids: list[object]) -> None:
    np.testing.assert_array_equal(graph.adjacency.toarray(), adjacency)
    assert graph.ids is not None
    assert graph.ids.tolist() == ids


def test_nodes_come_in_order_of_first_appearance(tmp_path: Path) -> None:
    graph = read_edges(csv(tmp_path, "friends.csv", "source,target", "dee,bob", "ann,dee", "bob,cem"))
    assert_graph(graph, [[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]], ["dee", "bob", "ann", "cem"])
    assert not graph.directed
    assert graph.name == "friends"
    assert graph.features is None
    assert graph.labels is None


def test_directed_edge_lets_the_target_receive_from_the_source(tmp_path: Path) -> None:
    edges = csv(tmp_path, "e.csv", "from,to,w", "1,2,0.5", "2,2,3", "2,3,1e1")
    graph = read_edges(edges, source="from", target="to", weight="w", directed=True)
    assert_graph(graph, [[0, 0, 0], [0.5, 3, 0], [0, 10, 0]], [1, 2, 3])
    assert graph.directed


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["a,b,2"], 2),
        (["a,b,2", "b,a,2"], 2),  # both directions count once
        (["a,b,2", "b,a,5"], 5),  # with the larger weight
        (["a,b,2", "a,b,5"], 7),  # parallel edges add up
        (["a,b,2", "b,a,4", "a,b,3"], 5),
    ],
)
def test_repeated_undirected_edges(rows: list[str], expected: float, tmp_path: Path) -> None:
    edges = csv(tmp_path, "e.csv", "source,target,w", *rows)
    assert_graph(read_edges(edges, weight="w"), [[0, expected], [expected, 0]], ["a", "b"])
    assert_graph(read_edges(edges), [[0, 1], [1, 0]], ["a", "b"])


def test_repeated_directed_edges(tmp_path: Path) -> None:
    edges = csv(tmp_path, "e.csv", "source,target,w", "a,b,2", "b,a,4", "a,b,3")
    assert_graph(read_edges(edges, weight="w", directed=True), [[0, 4], [5, 0]], ["a", "b"])
    assert_graph(read_edges(edges, directed=True), [[0, 1], [1, 0]], ["a", "b"])


def test_self_loops_are_kept_and_zero_weights_are_no_edges_and_counted(tmp_path: Path) -> None:
    edges = csv(tmp_path, "e.csv", "source,target,weight", "a,a,2", "a,b,0", "b,c,1", "c,a,0.0")
    with pytest.warns(UserWarning, match=r"^Left out 2 edges of .*e\.csv' of weight zero\.$"):
        graph = read_edges(edges, weight="weight")
    assert_graph(graph, [[2, 0, 0], [0, 0, 1], [0, 1, 0]], ["a", "b", "c"])


@pytest.mark.parametrize("name", ["weight", "Weights", "edge_weight"])
def test_weights_that_nobody_asks_for_are_cautioned_about(tmp_path: Path, name: str) -> None:
    edges = csv(tmp_path, "e.csv", f"source,target,since,{name}", "a,b,2020,2", "b,c,2021,3")
    with pytest.warns(UserWarning, match=rf"^'{name}' of .*e\.csv' is left out: .* Pass weight='{name}'\.$") as told:
        graph = read_edges(edges)
    assert len(told) == 1
    assert graph.weights is None
    assert read_edges(edges, weight=name).weights is not None
    assert read_edges(csv(tmp_path, "f.csv", "source,target,weightless", "a,b,2")).n_edges == 1


def test_a_graph_read_by_the_recipe_of_another_is_not_cautioned_about_again(tmp_path: Path) -> None:
    edges = csv(tmp_path, "e.csv", "source,target,weight", "a,b,2")
    nodes = csv(tmp_path, "n.csv", "id,age", "a,3", "b,4")
    with pytest.warns(UserWarning, match="'weight' of .* is left out"):
        recipe = read_edges(edges, nodes).recipe
    assert recipe is not None
    assert read_edges(edges, nodes, feature_columns=recipe).weights is None


@pytest.mark.parametrize(
    ("texts", "ids"),
    [
        (["10", "9", "-3"], [10, 9, -3]),
        (["10", "9", "x"], ["10", "9", "x"]),
        (["7", "007", "8"], ["7", "007", "8"]),  # not the same node
        (["1_0", "10", "2"], ["1_0", "10", "2"]),
        (["+1", "1", "2"], ["+1", "1", "2"]),
        (["1.0", "1", "2"], ["1.0", "1", "2"]),
        (["٣", "3", "2"], ["٣", "3", "2"]),
        (["9223372036854775807", "1", "2"], [2**63 - 1, 1, 2]),
        (["9223372036854775808", "1", "2"], ["9223372036854775808", "1", "2"]),
        (["NaN", "nan", "None"], ["NaN", "nan", "None"]),
    ],
)
def test_ids_are_integers_only_if_all_are(texts: list[str], ids: list[object], tmp_path: Path) -> None:
    edges = csv(tmp_path, "e.csv", "source,target", f"{texts[0]},{texts[1]}", f"{texts[1]},{texts[2]}")
    graph = read_edges(edges)
    assert_graph(graph, [[0, 1, 0], [1, 0, 1], [0, 1, 0]], ids)
    assert graph.positions(np.asarray(ids)).tolist() == [0, 1, 2]


def test_node_table_fixes_order_and_brings_labels_features_and_lonely_nodes(tmp_path: Path) -> None:
    edges = csv(tmp_path, "e.csv", "source,target", "b,a", "a,d")
    nodes = csv(tmp_path, "n.csv", "id,x,kind,note,y", "a,1,red,p,-0.5", "b,2.5,,q,1e3", "c,3,blue,,0", "d,4,red,,7")
    graph = read_edges(edges, nodes, label_column="kind")
    assert_graph(graph, [[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]], list("abcd"))
    assert graph.class_names == ("blue", "red")
    np.testing.assert_array_equal(graph.labels, [1, -1, 0, 1])  # type: ignore[arg-type]
    assert graph.feature_names == ("x", "y")
    assert isinstance(graph.features, np.ndarray)
    assert graph.features.dtype == np.float32
    np.testing.assert_array_equal(graph.features, np.array([[1, -0.5], [2.5, 1e3], [3, 0], [4, 7]], dtype=np.float32))


def test_words_that_spell_no_finite_number_are_words(tmp_path: Path) -> None:
    edges = csv(tmp_path, "e.csv", "source,target", "1,2")
    nodes = csv(tmp_path, "n.csv", "id,name,empty,x", "1,Nan,,5", "2,Bob,,6", "3,,,7", "4,Infinity,,8")
    assert read_edges(edges, nodes).feature_names == ("x",)


def test_named_feature_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    edges = csv(tmp_path, "e.csv", "source,target", "1,2")
    nodes = csv(tmp_path, "n.csv", "x,key,y,z", "1,1,2,a", "3,2,4,5")  # z is mixed, and not asked for
    graph = read_edges(edges, nodes, id_column="key", feature_columns=["y", "x"])
    assert graph.feature_names == ("y", "x")
    np.testing.assert_array_equal(graph.features, [[2, 1], [4, 3]])  # type: ignore[arg-type]
    assert read_edges(edges, nodes, id_column="key", feature_columns=[]).features is None


@pytest.mark.parametrize(
    ("cells", "names", "labels"),
    [
        (["10", "9", "", "-2", "9"], ("-2", "9", "10"), [2, 1, -1, 0, 1]),  # by value
        (["10", "9", "x", "", "9"], ("10", "9", "x"), [0, 1, 2, -1, 1]),  # by name
        (["", "", "", "", ""], (), [-1, -1, -1, -1, -1]),
    ],
)
def test_classes_are_sorted_by_value_or_by_name(
    cells: list[str], names: tuple[str, ...], labels: list[int], tmp_path: Path
) -> None:
    edges = csv(tmp_path, "e.csv", "source,target", "0,1")
    nodes = csv(tmp_path, "n.csv", "id,class", *(f"{row},{cell}" for row, cell in enumerate(cells)))
    graph = read_edges(edges, nodes, label_column="class")
    assert graph.class_names == names
    np.testing.assert_array_equal(graph.labels, labels)  # type: ignore[arg-type]


def test_edge_list_without_rows_is_a_graph_when_there_is_a_node_table(tmp_path: Path) -> None:
    graph = read_edges(csv(tmp_path, "e.csv", "source,target"), csv(tmp_path, "n.csv", "id", "a", "b"))
    assert_graph(graph, np.zeros((2, 2)), ["a", "b"])


def test_csv_dialects_that_mean_the_same(tmp_path: Path) -> None:
    plain = read_edges(csv(tmp_path, "plain.csv", "source,target", 'ann,"bob, jr"', "ann,cem"))
    texts = {
        "bom": '\ufeffsource,target\nann,"bob, jr"\nann,cem\n',
        "windows": 'source,target\r\nann,"bob, jr"\r\nann,cem\r\n',
        "blanks": '\nsource, target\n\nann, "bob, jr"\n\n\nann, cem',
        "columns": 'note,target,source\n1,"bob, jr",ann\nx,cem,ann\n',
    }
    for name, text in texts.items():
        file = tmp_path / f"{name}.CSV"
        file.write_bytes(text.encode("utf-8"))
        assert read_edges(file) == plain, name


def test_blanks_around_cells_do_not_count(tmp_path: Path) -> None:
    edges = csv(tmp_path, "e.csv", "source , target , weight ", "1 ,2, 0.5 ", "2\t, 3 ,1.5")
    nodes = csv(tmp_path, "n.csv", "id , x , class ", "1 , 7 , a b ", "2, 8 ,  ", "3 ,9 ,a b")
    graph = read_edges(edges, nodes, weight="weight", label_column="class")
    assert_graph(graph, [[0, 0.5, 0], [0.5, 0, 1.5], [0, 1.5, 0]], [1, 2, 3])
    assert (graph.class_names, graph.feature_names) == (("a b",), ("x",))
    np.testing.assert_array_equal(graph.labels, [0, -1, 0])  # type: ignore[arg-type]
    np.testing.assert_array_equal(graph.features, [[7], [8], [9]])  # type: ignore[arg-type]
    words = read_edges(csv(tmp_path, "w.csv", "source,target", "a , b", "b,a ", "b,c"))
    assert_graph(words, [[0, 1, 0], [1, 0, 1], [0, 1, 0]], ["a", "b", "c"])


def test_line_break_inside_quotes_belongs_to_the_id(tmp_path: Path) -> None:
    edges = csv(tmp_path, "e.csv", "source,target", '"a\nb",é')
    assert_graph(read_edges(edges), [[0, 1], [1, 0]], ["a\nb", "é"])


def test_parquet_equals_csv(tmp_path: Path) -> None:
    lines = ["1,2,0.5", "2,3,1.5", "3,1,2.5"]
    table = ["3,30.5,7,b,t", "1,10.5,8,,u", "2,20.5,9,a,v"]
    expected = read_edges(
        csv(tmp_path, "e.csv", "source,target,weight", *lines),
        csv(tmp_path, "n.csv", "id,x,y,class,text", *table),
        weight="weight",
        label_column="class",
    )
    edges = parquet(tmp_path, "e.parquet", {"source": [1, 2, 3], "target": [2, 3, 1], "weight": [0.5, 1.5, 2.5]})
    nodes = parquet(
        tmp_path,
        "n.parquet",
        {"id": [3, 1, 2], "x": [30.5, 10.5, 20.5], "y": [7, 8, 9], "class": ["b", None, "a"], "text": ["1", "u", "2"]},
        row_group_size=2,
    )
    graph = read_edges(edges, nodes, weight="weight", label_column="class")
    assert graph == expected
    assert (graph.class_names, graph.feature_names) == (expected.class_names, expected.feature_names)


def test_parquet_types_become_ids_labels_and_features(tmp_path: Path) -> None:
    edges = parquet(
        tmp_path,
        "e.parquet",
        {
            "source": pa.array(["a", "b"]).dictionary_encode(),
            "target": pa.array(["b", "c"], type=pa.large_string()),
        },
    )
    nodes = parquet(
        tmp_path,
        "n.parquet",
        {
            "id": ["a", "b", "c"],
            "class": pa.array([10, None, 9], type=pa.int32()),
            "flag": [True, False, True],
            "small": pa.array([1, 2, 3], type=pa.uint8()),
            "when": pa.array([1, 2, 3], type=pa.timestamp("s")),
        },
    )
    graph = read_edges(edges, nodes, label_column="class", feature_columns="numbers")
    assert_graph(graph, [[0, 1, 0], [1, 0, 1], [0, 1, 0]], ["a", "b", "c"])
    assert graph.class_names == ("9", "10")
    np.testing.assert_array_equal(graph.labels, [1, -1, 0])  # type: ignore[arg-type]
    assert graph.feature_names == ("flag", "small")
    np.testing.assert_array_equal(graph.features, [[1, 1], [0, 2], [1, 3]])  # type: ignore[arg-type]


def test_large_parquet_integers_keep_all_their_digits(tmp_path: Path) -> None:
    big = 2**53 + 1
    graph = read_edges(parquet(tmp_path, "e.parquet", {"source": [big], "target": [big - 1]}))
    assert_graph(graph, [[0, 1], [1, 0]], [big, big - 1])


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_integer_weights_beyond_the_exact_floats_are_the_nearest_floats(tmp_path: Path, kind: str) -> None:
    numbers = np.array([2**62, 2**53 + 1, 7], dtype=kind)
    table = pa.table({"source": ["a", "b", "c"], "target": ["b", "c", "d"], "w": numbers})
    pq.write_table(table, tmp_path / "e.parquet")
    for graph in (read_edges(tmp_path / "e.parquet", weight="w"), Graph.from_pandas(table.to_pandas(), weight="w")):
        assert set(graph.weights.tolist()) == set(numbers.astype(float).tolist())  # type: ignore[union-attr]


def test_uuids_are_ids_in_frames_and_in_parquet_files(tmp_path: Path) -> None:
    keys = [uuid.UUID(int=k) for k in (7, 8, 9)]
    edges = pd.DataFrame({"source": keys[:2], "target": keys[1:]})
    nodes = pd.DataFrame({"id": keys, "x": [1.0, 2.0, 3.5]})
    graph = Graph.from_pandas(edges, nodes)
    assert graph.ids.tolist() == [str(key) for key in keys]  # type: ignore[union-attr]
    pq.write_table(pa.table({name: pa.array(edges[name], pa.uuid()) for name in edges}), tmp_path / "e.parquet")
    assert read_edges(tmp_path / "e.parquet").ids.tolist() == graph.ids.tolist()  # type: ignore[union-attr]


def test_ids_of_the_same_letters_in_two_unicode_forms_are_told() -> None:
    composed, apart = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))
    told = r"the same letters as another one in another Unicode form \(such as 'é'\): each is a node of its own"
    with pytest.warns(UserWarning, match=f"^1 id of the DataFrame is {told}"):
        assert Graph.from_pandas(pd.DataFrame({"source": [composed, apart], "target": ["b", "c"]})).n_nodes == 4
    with pytest.warns(UserWarning, match=told):
        Graph.from_edges(["b"], ["b"], nodes=[composed, apart, "b"])
    nodes = pd.DataFrame({"id": [composed, "b"]})
    with pytest.raises(
        FormatError, match=r"The node table has 'é', the same letters in another Unicode form: write all"
    ):
        Graph.from_pandas(pd.DataFrame({"source": [apart], "target": ["b"]}), nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Graph.from_pandas(pd.DataFrame({"source": [composed], "target": ["ö"]}))
