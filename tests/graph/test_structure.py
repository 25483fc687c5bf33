"""Features made of the graph alone."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pprop import Graph, GraphSource, InputError, MLPNodeClassifier, load, load_dataset, write_npz

STAR = sparse.csr_array(np.array([[0, 2, 3, 4], [2, 0, 0, 0], [3, 0, 0, 0], [4, 0, 0, 0]], dtype=float))


def dense(graph: Graph) -> Any:
    features: Any = graph.features
    return features.toarray() if isinstance(features, sparse.csr_array) else features


def test_identity_is_one_column_per_node() -> None:
    graph = Graph.from_scipy(STAR).with_structure("identity")
    assert sparse.issparse(graph.features)
    assert np.array_equal(dense(graph), np.eye(4))


def test_degrees_are_logarithms_of_weights_and_buckets_of_neighbours() -> None:
    graph = Graph.from_scipy(STAR).with_structure("degree")
    table, names = dense(graph), list(graph.feature_names or ())
    np.testing.assert_allclose(table[:, names.index("log degree")], np.log([10, 3, 4, 5]), rtol=1e-6)
    assert table[:, names.index("degree 2-3")].tolist() == [1, 0, 0, 0]
    assert table[:, names.index("degree 1")].tolist() == [0, 1, 1, 1]
    assert table[:, 1:].sum(axis=1).tolist() == [1, 1, 1, 1]


def test_a_directed_graph_has_degrees_in_both_directions() -> None:
    graph = Graph.from_scipy(sparse.csr_array([[0, 1, 1], [0, 0, 0], [0, 0, 0]]), directed=True).with_structure(
        "degree"
    )
    table, names = dense(graph), list(graph.feature_names or ())
    assert table[:, names.index("in-degree 2-3")].tolist() == [1, 0, 0]
    assert table[:, names.index("out-degree 1")].tolist() == [0, 1, 1]
    assert table.shape == (3, 2 + 2 * 17)


def test_the_last_bucket_has_no_end_and_an_isolated_node_has_the_first() -> None:
    hub = 40_000
    row = sparse.csr_array((np.ones(hub), (np.zeros(hub, dtype=int), np.arange(1, hub + 1))), shape=(hub + 2, hub + 2))
    graph = Graph.from_scipy(row + row.T).with_structure("degree")
    table, names = dense(graph), list(graph.feature_names or ())
    assert table[0, names.index("degree 32768+")] == 1
    assert table[hub + 1, names.index("degree 0")] == 1
    assert table[hub + 1, names.index("log degree")] == 0


def test_features_are_replaced_only_on_demand_and_never_silently() -> None:
    graph = Graph.from_scipy(STAR, features=np.ones((4, 2)), feature_names=["a", "b"])
    with pytest.raises(InputError, match=r"This graph has features already. Pass replace=True"):
        graph.with_structure("degree")
    changed = graph.scaled("standard").with_structure("identity", replace=True)
    assert (changed.recipe, changed.scaling, changed.feature_names) == (None, None, None)
    with pytest.raises(InputError, match=r"'kind' parameter of with_structure must be one of 'identity' or 'degree'"):
        graph.with_structure("motifs", replace=True)


@pytest.mark.parametrize("structure", ["identity", "degree"])
def test_a_saved_model_reads_its_graph_and_makes_the_same_features(structure: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    edges = np.triu(rng.random((30, 30)) < 0.2, 1)
    plain = Graph.from_scipy(sparse.csr_array((edges | edges.T).astype(float)), features=rng.random((30, 2)))
    write_npz(plain, tmp_path / "graph.npz")
    source = GraphSource("npz", {"path": tmp_path / "graph.npz"}, structure=structure)
    graph = source.read()
    assert graph == plain.with_structure(structure, replace=True)
    model = MLPNodeClassifier(graph, hidden=8, max_epochs=3, random_state=0, backend="reference")
    model.fit(range(20), [0, 1] * 10).save(tmp_path / "model", source=source)
    again = load(tmp_path / "model")
    assert np.array_equal(again.decision_function(), model.decision_function())
    assert again.source_ == source == pickle.loads(pickle.dumps(source)) == GraphSource.from_json(source.to_json())  # noqa: S301


def test_an_unknown_structure_in_a_source_is_refused() -> None:
    with pytest.raises(InputError, match="'structure' parameter of GraphSource must be one of 'identity' or 'degree'"):
        GraphSource("dataset", {"name": "citeseer"}, structure="motifs")
    assert GraphSource("dataset", {"name": "citeseer"}, "degree").read().features is not None
    assert load_dataset("citeseer").n_nodes == 2110
