"""`PropagatedFeatures`: columns for scikit-learn's estimators, by name, in which no node sees its own label."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pprop
from pprop import Graph, InputError, PropagatedFeatures
from pprop.estimators import propagated_features

N = 120


def graph_and_labels(*, directed: bool = False, words: bool = False) -> tuple[Graph, np.ndarray]:
    """Return a graph whose nodes are connected to the *other* class, with a column that tells nothing."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    A = np.triu(rng.random((N, N)) < np.where(y[:, None] != y, 0.1, 0.01), 1).astype(float)
    features: Any = rng.normal(size=(N, 2))
    if words:
        features = sp.csr_array((rng.random((N, 200)) < 0.03).astype(np.float32))
    ids = [f"n{k}" for k in range(N)]
    return Graph.from_scipy(sp.csr_array(A if directed else A + A.T), directed, features=features, ids=ids), y


def test_labels_nearby_tell_the_class_where_neighbours_differ() -> None:
    graph, y = graph_and_labels()
    model = make_pipeline(PropagatedFeatures(graph), StandardScaler(), LogisticRegression(C=0.1))
    assert cross_val_score(model, np.arange(N), y, cv=4).mean() > 0.95
    blind = make_pipeline(PropagatedFeatures(graph, labels=False), StandardScaler(), LogisticRegression(C=0.1))
    assert cross_val_score(blind, np.arange(N), y, cv=4).mean() < 0.75


def test_a_node_never_sees_its_own_label() -> None:
    graph, y = graph_and_labels(directed=True)
    nodes = np.arange(0, N, 2) + (np.arange(60) % 2)
    before = PropagatedFeatures(graph).fit(nodes, y[nodes])
    assert np.array_equal(before.transform(nodes), PropagatedFeatures(graph).fit_transform(nodes, y[nodes]))
    for one in range(0, 60, 7):
        flipped = y[nodes].copy()
        flipped[one] = 1 - flipped[one]
        after = PropagatedFeatures(graph).fit(nodes, flipped)
        assert np.array_equal(before.transform([nodes[one]]), after.transform([nodes[one]]))
        assert not np.array_equal(before.columns_, after.columns_)


def test_labels_of_other_nodes_are_not_read() -> None:
    graph, y = graph_and_labels()
    nodes = np.arange(60)
    first = PropagatedFeatures(graph.replace(labels=y)).fit(nodes, y[nodes]).columns_
    second = PropagatedFeatures(graph.replace(labels=np.roll(y, 1))).fit(nodes, y[nodes]).columns_
    assert np.array_equal(first, second)


def test_names_and_frames() -> None:
    graph, y = graph_and_labels()
    columns = PropagatedFeatures(graph, alphas=(0.3,), hops=2).set_output(transform="pandas")
    frame = columns.fit_transform(np.arange(N), np.where(y == 0, "art", "law"))
    assert list(frame.columns) == list(columns.get_feature_names_out())
    assert frame.columns.is_unique
    assert {"0", "1: mean 1 away", "1: deviation 1 away", "0: mean 2 away", "1: by PPR 0.3", "log degree"} <= set(frame)
    assert {"label law 1 away", "label law 2 away", "label law by PPR", "known by PPR"} <= set(frame)
    A = graph.adjacency.toarray()
    expected = A @ np.asarray(graph.features) / A.sum(axis=1, keepdims=True)
    assert np.allclose(frame[["0: mean 1 away", "1: mean 1 away"]], expected, atol=1e-6)


def test_it_fits_into_a_column_transformer_beside_a_table() -> None:
    graph, y = graph_and_labels()
    people = pd.DataFrame({"who": [f"n{k}" for k in range(N)], "age": np.arange(N) % 7})
    both = ColumnTransformer([("graph", PropagatedFeatures(graph), ["who"]), ("own", "passthrough", ["age"])])
    model = make_pipeline(both, HistGradientBoostingClassifier(max_iter=20)).fit(people[:80], y[:80])
    assert model.score(people[80:], y[80:]) > 0.9


def test_words_become_components_and_directions_are_apart() -> None:
    graph, _ = graph_and_labels(directed=True, words=True)
    names = PropagatedFeatures(graph, components=5, labels=False, spread=0).fit().get_feature_names_out()
    assert [name for name in names if ":" not in name and "component" in name] == [
        f"component {k}" for k in range(1, 6)
    ]
    assert {"component 1: mean 1 away", "component 1: mean 1 away against edges", "log in-degree"} <= set(names)


def test_relations_are_hops_of_their_own() -> None:
    graph, _ = graph_and_labels()
    A = graph.adjacency.toarray() * np.random.default_rng(1).integers(1, 5, (N, N))
    amounts = Graph.from_scipy(sp.csr_array(A), directed=True, ids=graph.ids)
    columns = PropagatedFeatures(graph, labels=False, relations={"amount": amounts}, alphas=(), spread=0, hops=1).fit()
    frame = pd.DataFrame(columns.columns_, columns=columns.get_feature_names_out())
    assert np.allclose(
        frame["0: mean amount 1 away"], (A @ np.asarray(graph.features)[:, 0]) / A.sum(axis=1), atol=1e-6
    )


def test_copies_share_the_graph_and_pickles_transform_alike() -> None:
    graph, y = graph_and_labels()
    fitted = PropagatedFeatures(graph).fit(np.arange(N), y)
    assert cast("PropagatedFeatures", clone(fitted)).graph is graph
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert np.array_equal(again.transform([3, 5]), fitted.transform([3, 5]))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"hops": -1}, "'hops'"),
        ({"spread": 3}, "'spread'"),
        ({"alphas": (1.5,)}, "alpha"),
        ({"folds": 1}, "'folds'"),
        ({"relations": {"other": 3}}, "graphs of the same 120 nodes"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], sentence: str) -> None:
    graph, y = graph_and_labels()
    with pytest.raises(InputError, match=sentence):
        PropagatedFeatures(graph, **settings).fit(np.arange(N), y)


def test_what_cannot_be_made_is_refused_in_a_sentence() -> None:
    graph, y = graph_and_labels()
    with pytest.raises(InputError, match="PropagatedFeatures requires y"):
        PropagatedFeatures(graph).fit([0, 1])
    with pytest.raises(InputError, match="at most the number of labelled nodes, 2"):
        PropagatedFeatures(graph).fit([0, 1], y[:2])
    bare = graph.replace(features=None)
    with pytest.raises(InputError, match="no columns"):
        PropagatedFeatures(bare, structure=False, labels=False).fit()
    other = PropagatedFeatures(graph).fit(np.arange(N), y).set_params(graph=bare)
    with pytest.raises(InputError, match="another one than it was fitted with"):
        other.transform([0])
    huge = graph.replace(features=np.full((N, 1), 1e300))
    with pytest.raises(InputError, match="too large"):
        PropagatedFeatures(huge).fit(np.arange(N), y)


def test_it_is_public() -> None:
    assert pprop.PropagatedFeatures is PropagatedFeatures


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("words", [False, True])
def test_columns_in_a_file_are_those_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directed: bool, words: bool
) -> None:
    graph, y = graph_and_labels(directed=directed, words=words)
    stored = pprop.write_folder(graph, tmp_path / "graph").graph()
    nodes = np.arange(0, N, 2)
    memory = PropagatedFeatures(graph, hops=3, spread=2, components=5).fit(nodes, y[nodes])
    monkeypatch.setattr(propagated_features, "usable_memory", lambda: 2 * 12 * 4 * N)  # one column after another
    file = PropagatedFeatures(stored, hops=3, spread=2, components=5, file=tmp_path / "columns.npy").fit(
        nodes, y[nodes]
    )
    assert isinstance(file.columns_, np.memmap)
    names, here = list(memory.get_feature_names_out()), list(file.get_feature_names_out())
    assert sorted(here) == sorted(names)
    order = [here.index(name) for name in names]
    np.testing.assert_allclose(file.columns_[:, order], memory.columns_, rtol=2e-5, atol=1e-5)
    assert np.array_equal(np.load(tmp_path / "columns.npy")[nodes], file.transform(nodes))


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    graph, y = graph_and_labels()
    with pytest.raises(InputError, match="'file' parameter of PropagatedFeatures must be a file in an existing folder"):
        PropagatedFeatures(graph, file=tmp_path / "nowhere" / "columns.npy").fit(np.arange(N), y)
    assert not list(tmp_path.iterdir())
