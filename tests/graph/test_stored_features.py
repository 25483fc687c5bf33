"""Dense features are kept in the type and at the place in which they are given, and scaled as they are read."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pprop import Graph, GraphError, read_npz, transition_matrix, write_npz
from pprop.graph import Scaling
from pprop.graph.features.scaling import DenseRows

N, F = 60, 70
EDGES = sparse.csr_array((N, N))


def numbers(dtype: str = "float32") -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 100, (N, F)).astype(dtype) if "int" in dtype else rng.normal(3, 9, (N, F)).astype(dtype)


def mapped(folder: Path, array: np.ndarray[Any, Any], mode: Any = "r") -> Any:
    file = folder / f"{array.dtype}.npy"
    np.save(file, array)
    return np.load(file, mmap_mode=mode)


def copy_by_pickle(graph: Graph) -> Graph:
    return pickle.loads(pickle.dumps(graph))  # noqa: S301  our own


def test_a_file_that_is_mapped_to_be_read_is_used_where_it_lies(tmp_path: Path) -> None:
    X = mapped(tmp_path, numbers())
    graph = Graph.from_scipy(EDGES, features=X)
    assert type(graph.features) is np.ndarray
    assert np.shares_memory(graph.features, X)
    for one in (graph.replace(labels=np.zeros(N, dtype=int)), graph.scaled("none"), graph.scaled("none").undirected()):
        assert np.shares_memory(one.features, X)
    rows = graph.scaled("standard").network_rows()
    assert isinstance(rows, DenseRows)
    assert np.shares_memory(rows.matrix, X)
    assert graph == Graph.from_scipy(EDGES, features=numbers())
    assert copy_by_pickle(graph) == graph


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_a_map_that_can_be_written_to_is_copied(tmp_path: Path, mode: str) -> None:
    X = mapped(tmp_path, numbers(), mode)
    graph = Graph.from_scipy(EDGES, features=X)
    X[0, 0] = 77
    assert graph.features is not None
    assert graph.features[0, 0] == numbers()[0, 0]


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "float64"])
def test_types_are_kept_and_come_back_from_a_file(tmp_path: Path, dtype: str) -> None:
    graph = Graph.from_scipy(EDGES, features=numbers(dtype))
    write_npz(graph, tmp_path / "graph.npz")
    again = read_npz(tmp_path / "graph.npz")
    for one in (graph, again, copy_by_pickle(graph), Graph.from_scipy(**graph.to_scipy())):
        assert one.features is not None
        assert one.features.dtype == dtype
        assert one == graph
        np.testing.assert_array_equal(one.features, numbers(dtype))


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8"])
def test_a_small_type_has_the_fingerprint_of_the_same_numbers_in_float32(dtype: str) -> None:
    X = numbers(dtype)
    small, plain = (Graph.from_scipy(EDGES, features=values) for values in (X, X.astype(np.float32)))
    assert small == plain
    assert small.scaled("standard") == plain.scaled("standard")
    assert small != Graph.from_scipy(EDGES, features=X.astype(np.float64))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
@pytest.mark.parametrize("kind", ["standard", "l1", "none"])
def test_numbers_scaled_as_they_are_read_are_those_of_a_scaled_copy(dtype: str, kind: str) -> None:
    X = numbers(dtype)
    graph = Graph.from_scipy(EDGES, features=X)
    scaled, wide = graph.scaled(kind), X.astype(np.float64)
    if kind == "l1":
        wide = wide / abs(wide).max(axis=1, keepdims=True)
        wide = wide / abs(wide).sum(axis=1, keepdims=True)
    elif kind == "standard":
        fitted = Scaling.fit(X, "standard")
        assert fitted.scale is not None
        assert fitted.center is not None
        wide = wide / fitted.scale - fitted.center / fitted.scale
    expected = X if kind == "none" else wide.astype(np.float32)
    rows: Any = scaled.network_rows()
    np.testing.assert_array_equal(rows.toarray(), expected.astype(np.float32), strict=True)
    np.testing.assert_array_equal(scaled.features, expected, strict=True)
    assert scaled.feature_shape == X.shape
    for other in (scaled.replace(labels=np.zeros(N, dtype=int)), scaled.replace(name="x"), scaled.undirected()):
        np.testing.assert_array_equal(other.features, expected)
        assert other.scaling is scaled.scaling
    bare = scaled.replace(scaling=None)
    np.testing.assert_array_equal(bare.features, expected)
    assert bare.scaling is None
    np.testing.assert_array_equal(scaled.subgraph([3, 1]).features, expected[[3, 1]])
    assert graph.replace(features=expected, scaling=scaled.scaling) == scaled


def test_what_was_made_of_a_graph_is_used_again() -> None:
    graph: Any = Graph.from_scipy(EDGES, features=numbers())
    other = graph.replace(labels=np.zeros(N, dtype=int))
    assert graph.scaled("standard").network_rows() is other.scaled("standard").network_rows()
    assert transition_matrix(graph) is transition_matrix(other)
    assert transition_matrix(graph) is not transition_matrix(graph, "row")
    changed = graph.replace(adjacency=sparse.eye_array(N))
    assert transition_matrix(changed).to_scipy().nnz == N
    assert transition_matrix(changed) is not transition_matrix(graph)
    twice = graph.replace(features=2 * numbers())
    np.testing.assert_allclose(twice.scaled("standard").scaling.scale, 2 * graph.scaled("standard").scaling.scale)
    kept = [graph.scaled(Scaling("standard", np.zeros(F), np.full(F, 1.0 + k))) for k in range(9)]
    assert [float(one.features[0, 0]) for one in kept] == [np.float32(numbers()[0, 0] / (1.0 + k)) for k in range(9)]


def test_order_in_memory_does_not_matter() -> None:
    plain, turned = (Graph.from_scipy(EDGES, features=order(numbers())) for order in (np.array, np.asfortranarray))
    assert plain == turned
    np.testing.assert_array_equal(plain.scaled().features, turned.scaled().features)
    rows: Any = turned.scaled("none").network_rows()
    assert rows.matrix.flags.c_contiguous


def test_broken_numbers_are_counted_and_the_first_is_shown(tmp_path: Path) -> None:
    cases: list[tuple[Any, str]] = []
    for dtype in ("float16", "float32", "float64"):
        one, many = numbers(dtype), numbers(dtype)
        one[40, 3] = np.nan
        many[40, 3], many[41, 0] = -np.inf, np.nan
        cases += [(one, "nan in row 40, column 3 instead. Fill"), (mapped(tmp_path, one), "nan in row 40, column 3")]
        cases += [(many, "2 such values, the first of them -inf in row 40, column 3 instead")]
    values = np.where(numbers() > 9, 1.0, 0.0)
    values[40, 3] = np.inf
    words = sparse.csr_array(values)
    cases += [(words, "inf in row 40, column 3"), (np.full((N, 2, 2), np.inf), f"{4 * N} such .* inf at index")]
    for features, sentence in cases:
        with pytest.raises(GraphError, match=f"must be free of NaN and infinity. Got {sentence}"):
            Graph.from_scipy(EDGES, features=features)


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (numbers().astype(object), "an array of finite numbers with 60 rows. Got ndarray of shape .* and dtype object"),
        (numbers().astype(str), "an array of finite numbers with 60 rows. Got ndarray of shape .* and dtype <U"),
        (
            numbers().astype(complex),
            "an array of finite numbers with 60 rows. Got ndarray of shape .* dtype complex128",
        ),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(features: Any, sentence: str) -> None:
    with pytest.raises(GraphError, match=f"'features' parameter of Graph.from_scipy must be {sentence}"):
        Graph.from_scipy(EDGES, features=features)
