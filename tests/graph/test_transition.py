"""The transition matrix against the definition, written out densely."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from pprop import Graph, transition_matrix


@pytest.mark.parametrize("unit", [1e-300, 1e-40, 1.0, 3.0, 1e39, 1e300])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
def test_the_unit_of_the_weights_does_not_matter(unit: float, directed: bool, normalization: str) -> None:
    rng = np.random.default_rng(0)
    weights = np.where(rng.random((12, 12)) < 0.4, rng.random((12, 12)) + 0.1, 0.0)
    if not directed:
        weights = np.maximum(weights, weights.T)
    np.fill_diagonal(weights, 1.0)  # every row has an entry, so that no self-loop of weight 1 is added
    graph = Graph.from_scipy(sparse.csr_array(unit * weights), directed=directed)
    transition = transition_matrix(graph, normalization, self_loops=False)
    row, column = weights.sum(axis=1, keepdims=True), weights.sum(axis=0, keepdims=True)
    expected = {"sym": weights / np.sqrt(row * column), "row": weights / row, "col": weights / column}[normalization]
    np.testing.assert_allclose(transition.to_scipy().toarray(), expected, rtol=1e-13)
    assert transition.weights is not None
    assert np.isfinite(transition.weights.astype(np.float32)).all()
    assert np.isfinite(transition.row_scale.astype(np.float32)).all()


def test_columns_sum_to_one_but_for_nodes_that_send_to_nobody() -> None:
    arrow = Graph.from_scipy(
        sparse.csr_array([[0, 0, 0], [2.0, 0, 0], [1.0, 3.0, 0]]), directed=True
    )  # 2 only receives
    bare = transition_matrix(arrow, "col", self_loops=False).to_scipy().toarray()
    np.testing.assert_allclose(bare, [[1 / 4, 0, 0], [2 / 4, 0, 0], [1 / 4, 1, 0]], rtol=1e-15)
    looped = transition_matrix(arrow, "col").to_scipy().toarray()
    np.testing.assert_allclose(looped.sum(axis=0), 1.0, rtol=1e-15)


def test_unweighted_graphs_store_no_values() -> None:
    ring = sparse.csr_array(np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1))
    assert transition_matrix(Graph.from_scipy(ring)).weights is None


def test_a_scipy_matrix_that_is_changed_leaves_the_kept_transition_as_it_was() -> None:
    graph = Graph.from_scipy(sparse.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    expected = transition_matrix(graph).to_scipy().toarray()
    changed = transition_matrix(graph).to_scipy()
    changed.setdiag(0.0)
    changed.eliminate_zeros()
    assert transition_matrix(graph) is transition_matrix(graph)
    np.testing.assert_array_equal(transition_matrix(graph).to_scipy().toarray(), expected)
