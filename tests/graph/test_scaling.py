"""How features are scaled before a network reads them: by closed forms, by choice and on other graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import Normalizer, StandardScaler

from pprop import Graph, GraphError, InputError
from pprop._errors import FormatError
from pprop.graph import Scaling


def made(features: Any, **fields: Any) -> Any:
    n = features.shape[0]
    return Graph.from_scipy(sparse.csr_array((n, n)), features=features, **fields)


@pytest.fixture
def table() -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    return np.column_stack([rng.normal(40, 10, 50), rng.lognormal(10, 1, 50), np.full(50, 3.0)]).astype(np.float32)


def words(rows: int = 20, columns: int = 60) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(1).random((rows, columns)) < 0.1).astype(np.float32)


def test_standard_is_scikit_learns(table: np.ndarray[Any, Any]) -> None:
    expected = StandardScaler().fit_transform(table.astype(np.float64))
    found = made(table).scaled("standard")
    np.testing.assert_allclose(found.features, expected, atol=1e-6)
    assert found.scaling is not None
    assert found.features.dtype == np.float32
    np.testing.assert_allclose(found.scaling.center[:2], table[:, :2].mean(axis=0), rtol=1e-6)


def test_a_sparse_matrix_is_divided_and_never_centred() -> None:
    X = sparse.csr_array(np.random.default_rng(2).normal(size=(30, 8)) * (words(30, 8) + 0.0))
    found = made(X).scaled("standard").features
    expected: Any = StandardScaler(with_mean=False).fit_transform(X)
    np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-6)
    np.testing.assert_array_equal(found.indices, X.indices)


def test_l1_is_scikit_learns() -> None:
    X = words()
    np.testing.assert_allclose(made(X).scaled("l1").features.toarray(), Normalizer("l1").fit_transform(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("features", "kind"),
    [
        (sparse.csr_array(words()), "l1"),
        (sparse.csr_array(np.ones((4, 2))), "l1"),
        (sparse.csr_array(words() - 0.5), "standard"),
        (words(), "l1"),  # dense, and a bag of words all the same
        (words(columns=49), "standard"),
        (-words(), "standard"),
        (np.random.default_rng(0).random((20, 60)), "standard"),
        (np.zeros((3, 4, 4)), "none"),
    ],
)
def test_auto_depends_on_the_matrix_alone(features: Any, kind: str) -> None:
    graph = made(features)
    assert graph.scaled().scaling.kind == kind
    if kind != "none":
        np.testing.assert_array_equal(_dense(graph.scaled().features), _dense(graph.scaled(kind).features))


def test_numbers_among_other_columns_are_centred_where_zeros_are_not_stored(table: np.ndarray[Any, Any]) -> None:
    table[:5, 0] = 0.0
    flags = (np.arange(50) % 3 == 0).astype(np.float32)[:, None]
    numbers = np.array([True, False, True])
    X = np.column_stack([table[:, :1], flags, table[:, 1:2]])
    fitted = Scaling.fit(sparse.csr_array(X), "auto", numbers)
    expected = X.astype(np.float64)
    expected[:, numbers] = StandardScaler().fit_transform(expected[:, numbers])
    np.testing.assert_allclose(_dense(fitted.apply(sparse.csr_array(X))), expected, atol=1e-5)
    np.testing.assert_allclose(_dense(Scaling.fit(X, "auto", numbers).apply(X)), expected, atol=1e-5)
    assert str(fitted) == "2 of 3 feature columns are centred and divided by their standard deviation"


def test_another_graph_is_scaled_as_the_first(table: np.ndarray[Any, Any]) -> None:
    first = made(table).scaled("standard")
    row = made(table[:1]).scaled(first.scaling)
    np.testing.assert_array_equal(row.features, first.features[:1])
    with pytest.raises(GraphError, match="a matrix of 3 columns, as in the training"):
        made(table[:, :2]).scaled(first.scaling)


def test_scaling_is_done_once_and_forgotten_with_the_features(table: np.ndarray[Any, Any]) -> None:
    graph = made(table)
    scaled = graph.scaled("standard")
    assert scaled.scaled("l1") is scaled
    assert scaled.replace(features=table).scaling is None
    assert scaled.subgraph([1, 2]).scaling is scaled.scaling
    assert graph.scaling is None
    assert graph.replace(features=None).scaled().scaling is None


def test_large_and_constant_columns_stay_finite() -> None:
    X = np.array([[1e308, 7.0, 1e-300], [-1e308, 7.0, 0.0]])
    np.testing.assert_allclose(made(X).scaled("standard").features, [[1, 0, 1], [-1, 0, -1]], atol=1e-6)


def test_blocks_of_rows_do_not_change_the_result() -> None:
    X = np.random.default_rng(0).normal(5, 2, (70_000, 64)).astype(np.float32)
    np.testing.assert_allclose(
        made(X).scaled("standard").features[::1000],
        ((X - X.mean(0, dtype=float)) / X.std(0, dtype=float))[::1000],
        atol=1e-5,
    )


@pytest.mark.parametrize("bad", ["max", None, 3])
def test_an_unknown_scaling_is_refused(bad: Any, table: np.ndarray[Any, Any]) -> None:
    with pytest.raises(InputError, match=r"'scaling' parameter of Graph.scaled must be"):
        made(table).scaled(bad)


@pytest.mark.parametrize(
    ("kind", "arrays"),
    [
        ("l2", {}),
        ("l1", {"center": np.zeros(2)}),
        ("standard", {}),
        ("standard", {"center": np.zeros(2), "scale": np.zeros(2)}),
        ("standard", {"center": np.zeros(3), "scale": np.ones(3)}),
        ("standard", {"center": np.array([0, np.nan]), "scale": np.ones(2)}),
        ("standard", {"center": np.zeros(2), "scale": np.ones(2, dtype=np.float32)}),
    ],
)
def test_a_damaged_scaling_is_refused(kind: str, arrays: Any) -> None:
    with pytest.raises(FormatError, match="does not fit 2 features"):
        Scaling.restored(kind, arrays, 2)


def _dense(features: Any) -> Any:
    return features.toarray() if hasattr(features, "toarray") else features


def test_a_large_sparse_matrix_is_scaled_in_parts_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    random: Any = sparse.random_array(
        (40, 30), density=0.2, rng=np.random.default_rng(3), format="csr", dtype=np.float32
    )
    random.data[::7] = 0.0  # stored zeros are dropped
    X = sparse.csr_array(sparse.vstack([random, sparse.csr_array((3, 30), dtype=np.float32)]))
    whole = Scaling("l1").apply(X)
    for entries in (1, 10, 100):
        monkeypatch.setattr("pprop.graph.features.scaling._AT_ONCE", entries)
        parts = Scaling("l1").apply(X)
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
