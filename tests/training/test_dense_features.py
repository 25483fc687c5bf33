"""Training on features that are not sparse: on all backends, in any batch, by any number of threads."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from scipy import sparse

import pprop
from pprop import Graph, Split, Stopping
from pprop.models.model import network_inputs

pytestmark = pytest.mark.usefixtures("every_kernel_threaded")

EPOCHS = Stopping(max_epochs=12, criterion="window", patience=12)
N, CLASSES = 300, 3


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, N)
    ends = rng.integers(0, N, (2, 900))
    matrix = sparse.coo_array((np.ones(900), ends), shape=(N, N)).tocsr()
    matrix = ((matrix + matrix.T) > 0).astype(np.float64)
    features = rng.standard_normal((N, 100)) + labels[:, None]
    return Graph.from_scipy(matrix, features=features.astype(np.float32), labels=labels)


@pytest.fixture(scope="module")
def split() -> Split:
    order = np.random.default_rng(1).permutation(N)
    return Split(order[:60], order[60:120], order[120:])


def trained(graph: Graph, split: Split, **how: Any) -> pprop.Trained:
    model = pprop.APPNP(hidden=how.pop("hidden", 8), dropout=how.pop("dropout", 0.5), bias=how.pop("bias", False))
    options: dict[str, Any] = {"seeds": [3, 4, 5], "stopping": EPOCHS, "backend": "numba", **how}
    return pprop.train(model, graph, split, **options)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("dropout", "hidden"), [(0.5, 8), (0.3, 70), (0.0, 8)])
def test_both_cpu_backends_have_the_same_curves(
    graph: Graph, split: Split, bias: bool, dropout: float, hidden: int
) -> None:
    how: dict[str, Any] = {"bias": bias, "dropout": dropout, "hidden": hidden, "seeds": [3, 4]}
    ours, plain = (trained(graph, split, backend=backend, **how) for backend in ("numba", "reference"))
    for run in range(2):
        np.testing.assert_allclose(ours.history[run].train_loss, plain.history[run].train_loss, rtol=1e-4)
        np.testing.assert_allclose(ours.history[run].stopping_loss, plain.history[run].stopping_loss, rtol=1e-4)


@pytest.mark.parametrize("bias", [False, True])
def test_a_run_has_the_same_bits_alone_and_in_a_batch(graph: Graph, split: Split, bias: bool) -> None:
    together, alone = trained(graph, split, bias=bias), trained(graph, split, bias=bias, seeds=4)
    for many, one in zip(together.weights, alone.weights, strict=True):
        assert np.array_equal(many[1], one[0])


def test_a_run_has_the_same_bits_with_any_number_of_threads(split: Split) -> None:
    rng = np.random.default_rng(5)
    many = 2100  # eight parts of the gradient, and more work than one thread gets alone
    features, labels = rng.standard_normal((many, 100), dtype=np.float32), rng.integers(0, CLASSES, many)
    large = Graph.from_scipy(sparse.diags_array(np.ones(many)), features=features, labels=labels)
    found: list[pprop.Trained] = []
    before = numba.get_num_threads()
    try:
        for threads in (1, before):
            numba.set_num_threads(threads)
            found.append(trained(large, split, seeds=4, bias=True))
    finally:
        numba.set_num_threads(before)
    for one, other in zip(found[0].weights, found[1].weights, strict=True):
        assert np.array_equal(one, other)


def test_sparse_or_dense_depends_on_the_numbers_and_not_on_how_they_are_stored() -> None:
    empty = sparse.csr_array((8, 8))
    few, many = np.eye(8, dtype=np.float32), np.triu(np.ones((8, 8), dtype=np.float32))
    for values, expected in ((few, True), (many, False)):
        for stored in (values, sparse.csr_array(values)):
            found = network_inputs(Graph.from_scipy(empty, features=stored).scaled("none"))
            assert sparse.issparse(found) == expected
            assert found.toarray().dtype == np.float32
