"""Datasets by name: Table 1, the bundled copy, and where files are looked for."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pprop._errors import DatasetError, FormatError
from pprop.datasets import DATASETS, dataset_info, files, load_dataset, standardize
from pprop.datasets.files import bundled_folder, git_blob_id
from pprop.graph import Graph, read_npz, write_npz


def assert_same_graph(left: Graph, right: Graph) -> None:
    np.testing.assert_array_equal(left.adjacency.toarray(), right.adjacency.toarray())
    assert isinstance(left.features, sparse.csr_array)
    assert isinstance(right.features, sparse.csr_array)
    np.testing.assert_array_equal(left.features.toarray(), right.features.toarray())
    np.testing.assert_array_equal(left.labels, right.labels)
    assert left.class_names == right.class_names
    assert left.fingerprint == right.fingerprint


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes", "alpha", "known"),
    [
        ("citeseer", 2110, 3668, 3703, 6, 0.1, 1500),
        ("cora_ml", 2810, 7981, 2879, 7, 0.1, 1500),
        ("pubmed", 19717, 44324, 500, 3, 0.1, 1500),
        ("ms_academic", 18333, 81894, 6805, 15, 0.2, 5000),
    ],
)
def test_graphs_have_the_sizes_of_table_1(
    name: str, nodes: int, edges: int, features: int, classes: int, alpha: float, known: int
) -> None:
    graph = load_dataset(name)
    assert (graph.n_nodes, graph.n_edges, graph.n_classes) == (nodes, edges, classes)
    assert isinstance(graph.features, sparse.csr_array)
    assert graph.features.shape == (nodes, features)
    assert graph.features.dtype == np.float32
    assert graph.weights is None
    assert not graph.directed
    assert not graph.adjacency.diagonal().any()
    assert sparse.csgraph.connected_components(graph.adjacency)[0] == 1
    assert graph.labels is not None
    np.testing.assert_array_equal(np.unique(graph.labels), np.arange(classes))
    assert graph.recommended is not None
    assert (graph.name, graph.recommended.alpha, graph.recommended.known) == (name, alpha, known)


@pytest.mark.data
def test_loading_keeps_features_as_stored_in_file_order(data_folder: Path) -> None:
    """Against arrays cut out of the file by hand: component by breadth-first search, no code of the library."""
    with np.load(data_folder / "cora_ml.npz", allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}

    def matrix(key: str) -> Any:
        parts = tuple(arrays[f"{key}.{part}"] for part in ("data", "indices", "indptr"))
        return sparse.csr_matrix(parts, shape=tuple(arrays[f"{key}.shape"]))

    links = matrix("adj_matrix").tolil()
    both = [set(out) | set(back) for out, back in zip(links.rows, links.T.tolil().rows, strict=True)]
    component = {0}
    frontier = {0}
    while frontier:
        frontier = set().union(*(both[node] for node in frontier)) - component
        component |= frontier
    nodes = sorted(component)
    assert len(nodes) > len(both) / 2

    graph = load_dataset("cora_ml")
    np.testing.assert_array_equal(graph.labels, arrays["labels"][nodes])
    assert isinstance(graph.features, sparse.csr_array)
    assert (graph.features != matrix("attr_matrix")[nodes]).nnz == 0
    assert graph.ids is not None
    assert graph.ids.tolist() == [name.strip() for name in arrays["node_names"][nodes].tolist()]
    position = {node: index for index, node in enumerate(nodes)}
    for node in nodes[::50]:
        row = graph.indices[graph.indptr[position[node]] : graph.indptr[position[node] + 1]]
        assert row.tolist() == sorted(position[other] for other in both[node] - {node})


@pytest.mark.data
def test_bundled_citeseer_equals_the_authors(data_folder: Path, request: pytest.FixtureRequest) -> None:
    authors = standardize(read_npz(data_folder / "citeseer.npz")).replace(ids=None)
    request.getfixturevalue("only_bundled")
    assert_same_graph(load_dataset("citeseer"), authors)


@pytest.mark.usefixtures("only_bundled")
def test_bundled_citeseer_loads_with_nothing_else_on_the_machine() -> None:
    found = files.locate(dataset_info("citeseer"))
    assert found.origin == "bundled"
    graph = load_dataset("citeseer")
    assert graph.class_names == ("AI", "Agents", "DB", "HCI", "IR", "ML")
    assert graph.labels is not None
    assert graph.features is not None
    assert np.bincount(graph.labels).tolist() == [115, 463, 388, 304, 532, 308]
    assert set(np.unique(graph.features.data)) == {1.0}  # words present or not
    assert (bundled_folder() / "LICENSE-APACHE-2.0.txt").is_file()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "citeseerx",
            r"one of 'citeseer', 'cora_ml', 'pubmed' or 'ms_academic'\. Got 'citeseerx' .* mean 'citeseer'\?",
        ),
        ("Cora-ML", r"Got 'Cora-ML' instead\. Did you mean 'cora_ml'\?"),
        ("../citeseer", r"Got '../citeseer' instead"),
        (3, r"Got 3 instead\."),
    ],
)
def test_unknown_names_get_one_sentence(name: Any, sentence: str) -> None:
    with pytest.raises(DatasetError, match=sentence):
        load_dataset(name)


def test_folder_of_the_user_wins_over_cache_and_package(
    only_bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    shutil.copy(bundled_folder() / "citeseer.npz", own / "citeseer.npz")
    monkeypatch.setenv("PPROP_DATA", str(own))
    info = dataset_info("citeseer")
    assert files.locate(info) == files.Located(own / "citeseer.npz", "PPROP_DATA")
    (own / "citeseer.npz").unlink()
    assert files.locate(info).origin == "bundled"


def test_cached_file_is_taken_only_if_it_is_the_authors(only_bundled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_bundled.mkdir(parents=True)
    cached = only_bundled / "citeseer.npz"
    cached.write_bytes(b"not the file")
    info = dataset_info("citeseer")
    assert files.locate(info).origin == "bundled"
    monkeypatch.setattr(files, "git_blob_id", lambda path: info.git_blob)
    assert files.locate(info) == files.Located(cached, "cache")


def test_missing_folder_of_the_user_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PPROP_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError, match=r"PPROP_DATA must name an existing folder\. Got '.*nowhere' instead"):
        load_dataset("citeseer")


def small(graph: Graph) -> Graph:
    return graph.subgraph(np.arange(100))


def fewer_classes(graph: Graph) -> Graph:
    return graph.replace(labels=np.minimum(graph.labels, 4), class_names=None)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (small, r"'citeseer': it gives \d+ nodes instead of 2110, \d+ edges instead of 3668\. Remove it"),
        (fewer_classes, r"it gives 5 classes instead of 6\. Remove it"),
        (lambda graph: graph.replace(features=None), r"it gives 0 features instead of 3703\. Remove it"),
    ],
)
def test_other_graph_under_the_name_of_a_dataset_is_refused(
    change: Callable[[Graph], Graph], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_npz(change(read_npz(bundled_folder() / "citeseer.npz")), tmp_path / "citeseer.npz")
    monkeypatch.setenv("PPROP_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=sentence):
        load_dataset("citeseer")


def test_damaged_file_in_the_users_folder_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "citeseer.npz").write_bytes((bundled_folder() / "citeseer.npz").read_bytes()[:50_000])
    monkeypatch.setenv("PPROP_DATA", str(tmp_path))
    with pytest.raises(FormatError, match="cut short"):
        load_dataset("citeseer")


def test_standardising_twice_changes_nothing_more() -> None:
    arcs = sparse.csr_array(([2.0, 3.0, 1.0, 1.0], ([0, 2, 3, 1], [2, 0, 3, 4])), shape=(6, 6))
    graph = Graph.from_scipy(arcs, directed=True, features=np.eye(6), labels=[0, 1, 2, 0, 1, 2])
    once = standardize(graph)
    # two components of two nodes each: the first one counts
    np.testing.assert_array_equal(once.adjacency.toarray(), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(once.labels, [0, 2])
    assert isinstance(once.features, np.ndarray)
    np.testing.assert_array_equal(once.features, np.eye(6, dtype=np.float32)[[0, 2]])
    assert once.features.dtype == np.float32
    assert standardize(once) == once


def test_registry_names_the_authors_files() -> None:
    for name, info in DATASETS.items():
        assert info.url == f"https://raw.githubusercontent.com/gasteigerjo/ppnp/master/ppnp/data/{name}.npz"
        assert len(info.git_blob) == 40
        assert info.sha256 is None or len(info.sha256) == 64
    with pytest.raises(TypeError):
        DATASETS["mine"] = info  # type: ignore[index]


def test_git_blob_id_is_gits(tmp_path: Path) -> None:
    file = tmp_path / "hello"
    file.write_bytes(b"hello\n")
    assert git_blob_id(file) == "ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object
