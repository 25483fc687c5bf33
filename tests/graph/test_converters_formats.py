"""Files of every format through one reader, and hostile ones."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import io as sio
from scipy import sparse

from pprop import Graph, read_graph, write_npz
from pprop._errors import CapacityError, FormatError, InputError, MissingDependencyError

HEAD = "%%MatrixMarket matrix"
GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected"><node id="a"/>{}</graph></graphml>'
MATRIX = sparse.csr_array(np.array([[0, 2.0, 0], [0, 0, 1.0], [0, 0, 3.0]]))


def dense(graph: Graph) -> list[list[float]]:
    return graph.adjacency.toarray().tolist()


def write(path: Path, text: str | bytes) -> Path:
    content = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


# Matrix Market


@pytest.mark.parametrize("name", ["g.mtx", "g.mtx.gz", "G.MTX"])
@pytest.mark.parametrize(
    ("text", "matrix", "directed"),
    [
        ("coordinate real general\n3 3 3\n1 2 2\n2 3 1\n3 3 3\n", [[0, 2, 0], [0, 0, 1], [0, 0, 3]], True),
        ("coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n", [[0, 1, 0], [1, 0, 0], [0, 0, 1]], False),
        ("coordinate integer general\n2 2 2\n1 2 4\n2 1 4\n", [[0, 4], [4, 0]], False),
        ("array real general\n2 2\n0\n2\n1\n0\n", [[0, 1], [2, 0]], True),
        ("array integer symmetric\n2 2\n0\n2\n0\n", [[0, 2], [2, 0]], False),
        ("coordinate real general\n% a comment\n2 2 0\n", [[0, 0], [0, 0]], False),
    ],
)
def test_matrix_market(tmp_path: Path, name: str, text: str, matrix: Any, directed: bool) -> None:
    graph = read_graph(write(tmp_path / name, f"{HEAD} {text}"))
    assert (dense(graph), graph.directed, graph.name) == (matrix, directed, name[0])


def test_what_scipy_writes_comes_back(tmp_path: Path) -> None:
    sio.mmwrite(tmp_path / "g.mtx", MATRIX)
    for form in (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix):
        sparse.save_npz(tmp_path / "g.npz", form(MATRIX))
        for name in ("g.mtx", "g.npz"):
            assert dense(read_graph(tmp_path / name)) == MATRIX.toarray().tolist()


def test_a_wish_for_directions_counts(tmp_path: Path) -> None:
    file = write(tmp_path / "g.mtx", f"{HEAD} coordinate pattern symmetric\n2 2 1\n2 1\n")
    assert read_graph(file, directed=True, name="mine").directed
    sparse.save_npz(tmp_path / "g.npz", MATRIX)
    sio.mmwrite(tmp_path / "g.mtx", MATRIX)
    for name in ("g.mtx", "g.npz"):
        with pytest.raises(InputError, match="differs from its transpose"):
            read_graph(tmp_path / name, directed=False)
    with pytest.raises(InputError, match=r"'directed' .* True or False"):
        read_graph(file, directed="no")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hello", "no Matrix Market banner"),
        (f"{HEAD} coordinate real general\n3 3 1\n9 9 1\n", "the index 9, which is none from 1 to 3"),
        (f"{HEAD} coordinate real general\n3 3 1\n0 1 1\n", "the index 0,"),
        (f"{HEAD} coordinate real general\n3 3 1\n1.5 1 1\n", "the index 1.5,"),
        (f"{HEAD} coordinate real general\n3 3 1\nnan 1 1\n", "the index nan,"),
        (f"{HEAD} coordinate real general\n3 3 2\n1 2 1\n", "3 numbers where 6 belong"),
        (f"{HEAD} coordinate real general\n3 3 2\n1 2 1 2\n1 3\n", "a line of other than 3 numbers"),
        (f"{HEAD} coordinate real general\n3 3 1\n1 2 1 3\n", "4 numbers where 3 belong"),
        (f"{HEAD} coordinate real general\n3 3 1\n1 2 5E-", "something that is no number"),
        (f"{HEAD} coordinate real general\n3 3\n1 2 5", "no line of 3 sizes"),
        (f"{HEAD} coordinate real general\n-3 3 1\n1 2 5", "no line of 3 sizes"),
        (f"{HEAD} coordinate real general\n% only comments", "no line of 3 sizes"),
        (f"{HEAD} coordinate real", "no Matrix Market banner"),
        ("%%MatrixMarket vector coordinate real general\n3 1\n1 1\n", "says 'vector'"),
        (f"{HEAD} coordinate real general\n3 4 1\n1 2 1\n", "3 rows and 4 columns, not square"),
        (f"{HEAD} coordinate real general\n0 0 0\n", "not square or empty"),
        (f"{HEAD} coordinate real general\n3 3 999999999999\n1 2 1\n", "claims 999999999999 entries"),
        (f"{HEAD} array real general\n1000000 1000000\n1\n", "claims 1000000000000 entries"),
        (f"{HEAD} coordinate real general\n99999999999999999999999 3 1\n1 2 1\n", "no line of 3 sizes"),
        (f"{HEAD} coordinate real general\n2 2 1\n1 2 -4\n", "non-negative weights. Got a weight of -4"),
        (f"{HEAD} coordinate real general\n2 2 1\n1 2 nan\n", "finite weights"),
        (f"{HEAD} coordinate pattern symmetric\n2 2 2\n1 2\n2 1\n", "lists the entries 1 2 and 2 1"),
        (f"{HEAD} coordinate real symmetric\n3 3 3\n3 3 1\n2 3 1\n3 2 4\n", "lists the entries 2 3 and 3 2"),
        (f"{HEAD} coordinate complex general\n2 2 1\n1 2 4 1\n", "says 'complex'"),
        (f"{HEAD} coordinate integer skew-symmetric\n2 2 1\n2 1 4\n", "a skew-symmetric matrix"),
        (f"{HEAD} coordinate real general\n4000000000 4000000000 1\n1 2 1\n", "4000000000 rows, more than 2147483647"),
    ],
)
def test_a_hostile_matrix_market_file_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises((FormatError, CapacityError), match=sentence) as caught:
        read_graph(write(tmp_path / "g.mtx", text))
    assert "\n" not in str(caught.value)


def test_a_header_does_not_take_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pprop.graph.files.usable_memory", lambda: 10**8)
    with pytest.raises(CapacityError, match="GB"):
        read_graph(write(tmp_path / "g.mtx", f"{HEAD} coordinate real general\n2000000000 2000000000 1\n1 2 1\n"))
    with pytest.raises(CapacityError, match="GB"):  # 100 MB of nothing in 100 kB
        read_graph(write(tmp_path / "g.mtx.gz", bytes(10**8)))
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        for key, array in {"data": [1.0], "row": [0], "col": [1], "shape": [2**31 - 1] * 2, "format": b"coo"}.items():
            stream = io.BytesIO()
            np.save(stream, np.array(array))
            archive.writestr(f"{key}.npy", stream.getvalue())
    with pytest.raises(CapacityError, match="GB"):
        read_graph(tmp_path / "g.npz")


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08\x00", b"no gzip", gzip.compress(b"x" * 100, mtime=0)[:-9]])
def test_a_damaged_gzip_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "g.mtx.gz").write_bytes(content)
    with pytest.raises(FormatError, match="a sound gzip file"):
        read_graph(tmp_path / "g.mtx.gz")


# scipy's npz


def save(path: Path, **changes: Any) -> Path:
    arrays: dict[str, Any] = {
        "format": b"csr",
        "data": np.ones(2),
        "indices": np.array([1, 0]),
        "indptr": np.array([0, 1, 2]),
        "shape": np.array([2, 2]),
    }
    np.savez(path, **{key: value for key, value in (arrays | changes).items() if value is not None})
    return path


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"indices": np.array([1, 9])}, "the index 9 in 'indices', outside 0 to 1"),
        ({"indices": np.array([1, -1])}, "the index -1 in 'indices'"),
        ({"indptr": np.array([0, 2, 1])}, "an inconsistent 'indptr'"),
        ({"indptr": np.array([0, 2])}, "2 pointers in 'indptr' for 2 rows"),
        ({"indptr": np.array([0, 2]), "format": b"csc"}, "2 pointers in 'indptr' for 2 columns"),
        ({"indices": np.array([1])}, "1 indices but 2 values"),
        ({"indices": None}, "no array under 'indices'"),
        ({"format": b"bsr"}, r"the form 'bsr' \(scipy.sparse.save_npz\(path, matrix.tocsr\(\)\)"),
        ({"format": b"coo", "row": np.array([0]), "col": np.array([0, 1])}, "1 rows and 2 columns for 2 values"),
        ({"format": b"coo", "row": np.array([0, 5]), "col": np.array([0, 1])}, "the index 5 in 'row'"),
        ({"shape": np.array([2, 3])}, "not square"),
        ({"shape": np.array([2])}, "'shape' of length 1"),
        ({"data": np.array([object(), None])}, "pickled objects under 'data'"),
        ({"data": np.array([-1.0, 1.0])}, "holds no valid graph. .* non-negative"),
    ],
)
def test_a_hostile_saved_matrix_is_refused(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        read_graph(save(tmp_path / "g.npz", **changes))


def test_the_good_saved_matrix_is_good(tmp_path: Path) -> None:
    assert dense(read_graph(save(tmp_path / "g.npz"))) == [[0, 1], [1, 0]]


def test_the_layout_of_write_npz_is_read_too(tmp_path: Path) -> None:
    graph = Graph.from_scipy(MATRIX, directed=True, labels=["a", "b", "a"], ids=["x", "y", "z"])
    write_npz(graph, tmp_path / "g.npz")
    assert read_graph(tmp_path / "g.npz") == graph


# node tables beside a matrix

NODES = "id,team,age\nann,red,31\nbob,blue,27\ncem,,45\n"


@pytest.mark.parametrize("name", ["g.mtx", "g.npz"])
def test_a_node_table_describes_the_rows_of_a_matrix(tmp_path: Path, name: str) -> None:
    sio.mmwrite(tmp_path / "g.mtx", MATRIX)
    sparse.save_npz(tmp_path / "g.npz", MATRIX)
    graph = read_graph(tmp_path / name, write(tmp_path / "n.csv", NODES), label_column="team", feature_columns=["age"])
    assert dense(graph) == MATRIX.toarray().tolist()
    assert graph.ids is not None
    assert graph.labels is not None
    assert (graph.ids.tolist(), graph.labels.tolist()) == (["ann", "bob", "cem"], [1, 0, -1])
    assert np.array_equal(graph.features, [[31], [27], [45]])  # type: ignore[reportArgumentType]
    assert graph.recipe is not None
    assert (graph.name, graph.feature_names, graph.class_names) == ("g", ("age",), ("blue", "red"))


def test_a_node_table_without_ids_describes_rows_by_position(tmp_path: Path) -> None:
    sio.mmwrite(tmp_path / "g.mtx", MATRIX)
    table = write(tmp_path / "n.csv", "team\nred\nblue\nred\n")
    graph = read_graph(tmp_path / "g.mtx", table, label_column="team")
    assert graph.ids is None
    assert graph.labels is not None
    assert graph.labels.tolist() == [1, 0, 1]
    with pytest.raises(InputError, match=r"no column 'key'"):
        read_graph(tmp_path / "g.mtx", table, id_column="key")


def test_a_node_table_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    sio.mmwrite(tmp_path / "g.mtx", MATRIX)
    with pytest.raises(FormatError, match=r"a row for each of the 3 nodes .* Got 1 row"):
        read_graph(tmp_path / "g.mtx", write(tmp_path / "n.csv", "team\nred\n"), label_column="team")
    write_npz(Graph.from_scipy(MATRIX, directed=True, labels=[0, 1, 0]), tmp_path / "g.npz")
    with pytest.raises(InputError, match=r"'nodes' .* of its own"):
        read_graph(tmp_path / "g.npz", write(tmp_path / "n.csv", NODES))


# tables


def test_edge_tables_are_read_with_their_options(tmp_path: Path) -> None:
    edges = write(tmp_path / "e.csv.gz", "a,b\nann,bob\nbob,cem\n")
    graph = read_graph(edges, write(tmp_path / "n.csv", NODES), source="a", target="b", directed=True, name="mine")
    assert (graph.n_edges, graph.directed, graph.name) == (2, True, "mine")


# GraphML


def test_graphml_with_attributes(tmp_path: Path) -> None:
    g = nx.DiGraph()
    g.add_node("n0", team="red", age=31.5)
    g.add_node("n1", team="blue", age=27.0)
    g.add_node("n2", age=45.0)
    g.add_edge("n0", "n1", weight=2.0)
    for name in ("g.graphml", "g.graphml.gz"):
        nx.write_graphml(g, tmp_path / name)
        graph = read_graph(tmp_path / name, label_column="team", feature_columns=["age"])
        assert graph.ids is not None
        assert graph.labels is not None
        assert (graph.ids.tolist(), graph.labels.tolist(), graph.name) == (["n0", "n1", "n2"], [1, 0, -1], "g")
        assert dense(graph) == [[0, 0, 0], [2, 0, 0], [0, 0, 0]]
        assert np.array_equal(graph.features, [[31.5], [27], [45]])  # type: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"'label_column' parameter of read_graph .* Did you mean 'team'"):
        read_graph(tmp_path / "g.graphml", label_column="teams")


def test_graphml_of_a_graph_comes_back_without_its_features(tmp_path: Path) -> None:
    for ids in (None, [30, 10, 20], ["a", "b", "c"]):
        graph = Graph.from_scipy(MATRIX, directed=True, ids=ids, labels=["b", None, "a"], class_names=["b", "a", "c"])
        nx.write_graphml(graph.to_networkx(), tmp_path / "g.graphml")
        back = read_graph(tmp_path / "g.graphml")
        assert back == graph
        assert back.class_names == graph.class_names


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<graphml>", "a sound GraphML file, as its suffix says"),
        ("nothing", "a sound GraphML file"),
        ("<html></html>", "a sound GraphML file"),
        ('<!DOCTYPE g [<!ENTITY a "aaaa">]><graphml>&a;</graphml>', "a plain GraphML file"),
        (
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed"></graph></graphml>',
            "at least one node",
        ),
        (
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="k" for="node" attr.name="a" attr.type="int"/>'
            '<graph edgedefault="directed"><node id="x"><data key="k">many</data></node></graph></graphml>',
            "a sound GraphML file",
        ),
        (GRAPHML.format('<edge source="a"/>'), r"a sound GraphML file, .* \(edge 1 has no target\)"),
        (GRAPHML.format('<edge source="a" target="a"/><edge target="a"/>'), r"\(edge 2 has no source\)"),
        (GRAPHML.format('<edge source="a" target="b"/>'), r"the target of edge 1 is 'b', which is no node of the file"),
    ],
)
def test_damaged_graphml_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        read_graph(write(tmp_path / "g.graphml", text))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "facts", ["[]", "{", '{"ids": false, "label": 3}', '{"ids": true, "class_names": 7}', "[" * 100_000]
)
def test_facts_that_someone_else_wrote_do_not_count(tmp_path: Path, facts: str) -> None:
    g = nx.path_graph(2)
    g.graph["pprop"] = facts
    nx.write_graphml(g, tmp_path / "g.graphml")
    graph = read_graph(tmp_path / "g.graphml")
    assert graph.ids is not None
    assert graph.ids.tolist() == [0, 1]


def test_graphml_without_networkx_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingDependencyError, match=r"GraphML files needs .networkx.*pip install networkx"):
        read_graph(write(tmp_path / "g.graphml", "<graphml/>"))


# which format


@pytest.mark.parametrize("name", ["g.txt", "g", "g.npz.gz", "g.xlsx", "g.gz"])
def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match=r"'path' parameter of read_graph .* \.csv, .*\.mtx or \.graphml"):
        read_graph(write(tmp_path / name, "x"))


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        (
            "g.mtx",
            {"weight": "w"},
            r"'weight' .* left out for a Matrix Market file\. Got 'w' .* options are: directed, name\.",
        ),
        ("g.mtx", {"label_column": "team"}, "left out for a Matrix Market file without a node table"),
        ("g.npz", {"source": "a"}, "'source' .* left out for an npz file"),
        ("g.graphml", {"source": "a"}, "'source' .* left out for a GraphML file"),
        ("g.graphml", {"nodes": "n.csv"}, "'nodes' .* left out for a GraphML file.* attributes of their own"),
        ("g.csv", {"wieght": "w"}, "'wieght' .* left out for a table.* options are: source"),
    ],
)
def test_an_option_that_a_format_has_no_use_for_is_refused(
    tmp_path: Path, name: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        read_graph(write(tmp_path / name, "x"), **options)


@pytest.mark.parametrize("entries", ["2 1\n3 2\n", "1 2\n2 3\n", "1 2\n3 2\n"])
def test_either_triangle_of_a_symmetric_matrix_is_its_graph(tmp_path: Path, entries: str) -> None:
    file = write(tmp_path / "g.mtx", f"{HEAD} coordinate pattern symmetric\n3 3 2\n{entries}")
    assert read_graph(file) == Graph.from_edges([0, 1], [1, 2]).replace(ids=None, name="g")
