"""The authors' npz layout: what is written comes back, and plain numpy agrees with both directions."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pprop._errors import InputError
from pprop.graph import Graph, read_npz, write_npz

PATH = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
ARCS = sparse.csr_array(([1.0, 2.5, 0.5], ([0, 3, 4], [1, 0, 4])), shape=(5, 5))
SPARSE_FEATURES = sparse.csr_array(np.arange(15, dtype=np.float32).reshape(5, 3))


@pytest.mark.parametrize(
    "graph",
    [
        Graph.from_scipy(PATH),
        Graph.from_scipy(ARCS, directed=True),
        Graph.from_scipy(ARCS + ARCS.T),
        Graph.from_scipy(sparse.csr_array((5, 5))),
        Graph.from_scipy(PATH, features=SPARSE_FEATURES, feature_names=list("xyz"), labels=[0, 1, 1, -1, 0]),
        Graph.from_scipy(PATH, features=np.linspace(0, 1, 10).reshape(5, 2)),
        Graph.from_scipy(PATH, features=np.asfortranarray(np.arange(10.0).reshape(5, 2))),
        Graph.from_scipy(PATH, features=np.arange(30.0).reshape(5, 3, 2)),
        Graph.from_scipy(PATH, features=sparse.csr_array((5, 0), dtype=np.float64)),
        Graph.from_scipy(PATH, labels=[0, 1, 2, 0, 1], class_names=["é", "b\n", ""], ids=list("pqrst")),
        Graph.from_scipy(PATH, ids=[2**62, -1, 0, 7, 8]),
        Graph.from_scipy(sparse.csr_array([[3.0]])),
    ],
    ids=repr,
)
def test_written_graph_comes_back(graph: Graph, tmp_path: Path) -> None:
    write_npz(graph, tmp_path / "graph.npz")
    back = read_npz(tmp_path / "graph.npz")
    assert back.fingerprint == graph.fingerprint
    assert (back.class_names, back.feature_names) == (graph.class_names, graph.feature_names)
    assert back.name == "graph"
    assert back.features is None or graph.features is None or back.features.dtype == graph.features.dtype
    assert [file.name for file in tmp_path.iterdir()] == ["graph.npz"]


def test_written_file_is_the_authors_layout_without_pickles(tmp_path: Path) -> None:
    graph = Graph.from_scipy(ARCS, directed=True, features=SPARSE_FEATURES, labels=[0, 1, 1, 0, 0], ids=list("abcde"))
    write_npz(graph, tmp_path / "graph.npz")
    with np.load(tmp_path / "graph.npz", allow_pickle=False) as arrays:
        assert set(arrays.files) == {
            *(
                f"{key}.{part}"
                for key in ("adj_matrix", "attr_matrix")
                for part in ("data", "indices", "indptr", "shape")
            ),
            *("labels", "node_names"),
        }
        parts = tuple(arrays[f"adj_matrix.{part}"] for part in ("data", "indices", "indptr"))
        matrix = sparse.csr_matrix(parts, shape=tuple(arrays["adj_matrix.shape"]))
        np.testing.assert_array_equal(matrix.toarray(), ARCS.toarray())
        assert arrays["node_names"].tolist() == list("abcde")


def test_same_graph_gives_the_same_bytes(tmp_path: Path) -> None:
    graph = Graph.from_scipy(PATH, features=SPARSE_FEATURES)
    write_npz(graph, tmp_path / "one.npz")
    os.utime(tmp_path / "one.npz", (0, 0))
    write_npz(graph, tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def arrays_of(**changes: Any) -> dict[str, Any]:
    """The arrays of the path on five nodes, made by hand."""
    arrays: dict[str, Any] = {
        "adj_matrix.data": np.ones(8, dtype=np.float32),
        "adj_matrix.indices": np.array([1, 0, 2, 1, 3, 2, 4, 3], dtype=np.int32),
        "adj_matrix.indptr": np.array([0, 1, 3, 5, 7, 8], dtype=np.int32),
        "adj_matrix.shape": np.array([5, 5]),
        "labels": np.array([0, 1, 2, 0, 1]),
    }
    arrays |= {key.replace("__", "."): value for key, value in changes.items()}
    return {key: value for key, value in arrays.items() if value is not None}


@pytest.mark.parametrize("dtype", ["i1", "u1", "<i2", ">i4", "<u8", "<i8"])
def test_labels_may_be_of_any_integer_type(dtype: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "graph.npz", **arrays_of(labels=np.array([0, 1, 2, 0, 1], dtype=dtype)))
    graph = read_npz(tmp_path / "graph.npz")
    assert graph.labels is not None
    assert graph.labels.dtype == np.int64
    np.testing.assert_array_equal(graph.labels, [0, 1, 2, 0, 1])
    assert graph == Graph.from_scipy(PATH, labels=[0, 1, 2, 0, 1])


@pytest.mark.parametrize("dtype", ["?", "u1", "<i8", ">f4", "<f8", "<f2"])
def test_weights_may_be_of_any_real_type(dtype: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "graph.npz", **arrays_of(adj_matrix__data=np.ones(8, dtype=dtype), labels=None))
    assert read_npz(tmp_path / "graph.npz") == Graph.from_scipy(PATH)


def test_unsorted_and_repeated_entries_are_put_in_order(tmp_path: Path) -> None:
    arrays = arrays_of(
        adj_matrix__data=np.array([1.0, 2.0, 3.0]),
        adj_matrix__indices=np.array([1, 0, 1]),
        adj_matrix__indptr=np.array([0, 3, 3]),
        adj_matrix__shape=np.array([2, 2]),
        labels=None,
    )
    np.savez(tmp_path / "graph.npz", **arrays)
    graph = read_npz(tmp_path / "graph.npz")
    np.testing.assert_array_equal(graph.adjacency.toarray(), [[2, 4], [0, 0]])
    assert graph.directed


def test_direction_is_read_off_the_matrix_unless_told(tmp_path: Path) -> None:
    write_npz(Graph.from_scipy(PATH), tmp_path / "path.npz")
    write_npz(Graph.from_scipy(ARCS, directed=True), tmp_path / "arcs.npz")
    assert not read_npz(tmp_path / "path.npz").directed
    assert read_npz(tmp_path / "path.npz", directed=True).directed
    assert not read_npz(tmp_path / "path.npz", directed=False).directed
    assert read_npz(tmp_path / "arcs.npz").directed
    with pytest.raises(InputError, match=r"'directed' parameter of read_npz must be True or None .* Got False"):
        read_npz(tmp_path / "arcs.npz", directed=False)
    with pytest.raises(InputError, match=r"'directed' .* True, False or None\. Got 'no'"):
        read_npz(tmp_path / "arcs.npz", directed="no")  # type: ignore[arg-type]


def test_lone_pickled_none_counts_as_absent_and_other_keys_are_not_touched(tmp_path: Path) -> None:
    nothing = np.array(None, dtype=object)
    file = tmp_path / "graph.npz"
    np.savez(
        file,
        **arrays_of(labels=nothing, attr_matrix=nothing, node_names=nothing, metadata=nothing, whatever=np.ones(3)),
    )
    assert read_npz(file) == Graph.from_scipy(PATH)


def test_pickled_names_are_left_out(tmp_path: Path) -> None:
    names = np.array(["a", "b", "c"], dtype=object)
    np.savez(tmp_path / "graph.npz", **arrays_of(class_names=names))
    assert read_npz(tmp_path / "graph.npz").class_names is None


def test_interrupted_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "graph.npz"
    write_npz(Graph.from_scipy(PATH), file)
    before = file.read_bytes()

    def out_of_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", out_of_space)
    with pytest.raises(OSError, match="No space left"):
        write_npz(Graph.from_scipy(ARCS, directed=True), file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(os.name != "posix", reason="permission bits are a matter of POSIX")
def test_written_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_npz(Graph.from_scipy(PATH), tmp_path / "graph.npz")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "graph.npz")]
    assert modes[0] == modes[1]


def test_bad_arguments_of_writing_get_one_sentence_and_create_nothing(tmp_path: Path) -> None:
    graph = Graph.from_scipy(PATH)
    with pytest.raises(InputError, match=r"'path' parameter of write_npz must be a file in an existing folder"):
        write_npz(graph, tmp_path / "no" / "graph.npz")
    with pytest.raises(InputError, match=r"must be the path of a file\. Got the folder"):
        write_npz(graph, tmp_path)
    with pytest.raises(InputError, match=r"must be a path\. Got 3 instead"):
        write_npz(graph, 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"'graph' parameter of write_npz must be a Graph\. Got 'graph'"):
        write_npz("graph", tmp_path / "graph.npz")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
