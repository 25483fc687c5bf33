"""Training on features as they are stored, and the choice between their nonzeros and whole rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import pprop
from pprop import Graph, InputError, Split, Stopping
from pprop.graph.features.scaling import DenseRows
from pprop.models.model import FeatureNetwork, network_inputs
from pprop.study.cell import make_cell

N, F, CLASSES = 200, 70, 3
EPOCHS = Stopping(max_epochs=6, criterion="window", patience=6)


def numbers() -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 60, (N, F)) + 9 * rng.integers(0, CLASSES, N)[:, None]


def graph_of(features: Any) -> Any:
    rng = np.random.default_rng(1)
    ends = rng.integers(0, N, (2, 600))
    matrix = sparse.coo_array((np.ones(600), ends), shape=(N, N)).tocsr()
    matrix = ((matrix + matrix.T) > 0).astype(np.float64)
    return Graph.from_scipy(matrix, features=features, labels=rng.integers(0, CLASSES, N))


def trained(graph: Graph, **how: Any) -> pprop.Trained:
    order = np.random.default_rng(2).permutation(N)
    split = Split(order[:60], order[60:120], order[120:])
    model = pprop.APPNP(hidden=8, dropout=how.pop("dropout", 0.5), first_layer=how.pop("first_layer", "auto"))
    return pprop.train(model, graph, split, seeds=[3, 4], stopping=EPOCHS, backend=how.pop("backend", "numba"), **how)


def same(one: pprop.Trained, other: pprop.Trained) -> bool:
    weights = all(np.array_equal(*pair) for pair in zip(one.weights, other.weights, strict=True))
    return weights and np.array_equal(one.logits, other.logits)


@pytest.mark.parametrize("scaling", ["standard", "none"])
@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "float64"])
def test_a_stored_type_is_trained_to_the_bits_of_float32(dtype: str, scaling: str) -> None:
    stored, plain = (graph_of(numbers().astype(kind)).scaled(scaling) for kind in (dtype, "float32"))
    assert same(trained(stored), trained(plain))


def test_a_map_is_trained_to_the_bits_of_the_array_and_never_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", numbers().astype(np.float32))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    there, here = graph_of(X), graph_of(numbers().astype(np.float32))
    rows = network_inputs(there)
    assert isinstance(rows, DenseRows)
    assert np.shares_memory(rows.matrix, X)
    assert same(trained(there), trained(here))


def test_a_second_training_reuses_and_repeats_the_first() -> None:
    graph = graph_of(numbers().astype(np.float32))
    assert same(trained(graph), trained(graph))


@pytest.mark.parametrize("backend", ["numba", "reference"])
def test_sparse_or_dense_can_be_chosen(backend: str) -> None:
    values = np.where(numbers() % 5 == 0, numbers(), 0).astype(np.float32)  # a fifth is not zero
    for stored in (values, sparse.csr_array(values)):
        graph = graph_of(stored).scaled("none")
        kinds = {name: isinstance(network_inputs(graph, name), DenseRows) for name in ("auto", "sparse", "dense")}
        assert kinds == {"auto": False, "sparse": False, "dense": True}
        few, whole = (trained(graph, first_layer=name, dropout=0.0, backend=backend) for name in ("sparse", "dense"))
        np.testing.assert_allclose(few.logits, whole.logits, rtol=1e-3, atol=1e-3)
        auto = trained(graph, backend=backend)
        assert same(auto, trained(graph, first_layer="sparse", backend=backend))
        assert not same(auto, trained(graph, first_layer="dense", backend=backend))  # other masks


def test_the_choice_is_saved_with_a_model_and_read_again(tmp_path: Path) -> None:
    values = np.where(numbers() % 5 == 0, numbers(), 0).astype(np.float32)
    graph = graph_of(values)
    model = pprop.APPNPClassifier(graph, first_layer="dense", hidden=8, max_epochs=6, random_state=0)
    model.fit(np.arange(100), graph.labels[:100], stopping=0.5)
    model.save(tmp_path / "model")
    again: Any = pprop.load(tmp_path / "model", graph)
    assert again.first_layer == "dense"
    np.testing.assert_array_equal(again.predict_proba(np.arange(N)), model.predict_proba(np.arange(N)))


def test_a_cell_of_a_study_has_the_choice_where_it_is_not_the_default() -> None:
    plain, chosen = make_cell("appnp", {}, "citeseer"), make_cell("appnp", {"first_layer": "dense"}, "citeseer")
    assert make_cell("appnp", {"first_layer": "auto"}, "citeseer") == plain
    assert "first_layer" not in plain.settings
    assert chosen.settings["first_layer"] == "dense"
    assert chosen.config != plain.config


def test_an_unknown_choice_and_a_matrix_without_columns_are_refused() -> None:
    with pytest.raises(InputError, match="'first_layer' parameter of FeatureNetwork must be"):
        FeatureNetwork(first_layer="both")
    with pytest.raises(InputError, match=r"needs at least one feature, .* have the shape \(200, 0\)"):
        trained(graph_of(np.empty((N, 0))))
