"""The dense PPR matrix: made once, in one buffer, and refused in a sentence when it cannot fit."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from scipy import sparse

import pprop.propagation.operator as operator_module
from pprop import CapacityError, Exact, Graph, InputError, Propagation, propagate, solve
from pprop.graph import transition_matrix
from pprop.propagation.operator import dense_ppr


@pytest.fixture
def calls(monkeypatch):
    """How often the dense matrix was computed."""
    seen = []

    def counting(transition, alpha):
        seen.append(alpha)
        return dense_ppr(transition, alpha)

    monkeypatch.setattr(operator_module, "dense_ppr", counting)
    return seen


def test_a_layer_computes_its_matrix_once_for_all_passes(make_graph, backend, calls):
    graph, _ = make_graph(directed=True, weighted=True)
    layer = Propagation(graph, 0.2, Exact(), dropout=0.5, backend=backend)
    H = torch.ones(9, 3, requires_grad=True)
    for _ in range(3):
        layer.train()(H).sum().backward()
        layer.eval()(H)
    assert calls == [0.2]


def test_solving_computes_the_matrix_once(make_graph, backend, calls):
    graph, _ = make_graph(directed=True, weighted=True)
    solve(graph, np.ones((9, 3)), 0.3, Exact(), backend=backend)
    assert calls == [0.3]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("normalization", ["sym", "row"])
def test_the_matrix_is_made_in_one_buffer(backend, directed, normalization):
    """The peak of all allocations stays below one and a half buffers of 8 n^2 bytes, the result included."""
    n = 1200
    A = sparse.random_array((n, n), density=0.003, rng=0)
    graph = Graph.from_scipy(A if directed else A + A.T, directed=directed)
    H = np.random.default_rng(0).standard_normal((n, 3))
    propagate(Graph.from_scipy(sparse.csr_array((2, 2))), np.ones((2, 3)), 0.1, Exact(), backend=backend)  # compiled
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        Z = propagate(graph, H, 0.1, Exact(), normalization, backend=backend)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    buffer = 8 * n * n
    assert buffer <= peak - before < 1.5 * buffer
    T = transition_matrix(graph, normalization).to_scipy()
    np.testing.assert_allclose(Z - 0.9 * (T @ Z), 0.1 * H, rtol=0, atol=1e-12)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
def test_the_matrix_is_the_dense_inverse_and_rows_are_contiguous(
    make_random, dense_transition, directed, normalization
):
    graph, A = make_random(60, directed=directed, weighted=True)
    P = dense_ppr(transition_matrix(graph, normalization), 0.1)
    expected = 0.1 * np.linalg.inv(np.eye(60) - 0.9 * dense_transition(A, normalization))
    np.testing.assert_allclose(P, expected, rtol=0, atol=1e-13)
    assert P.flags.c_contiguous


def test_the_matrix_of_an_undirected_weighted_graph_is_symmetric_to_the_last_bit(make_random):
    """The degrees are summed once, so A_hat is symmetric and the inverse of a definite matrix is mirrored."""
    graph, _ = make_random(200, weighted=True)
    transition = transition_matrix(graph)
    assert np.array_equal(transition.row_scale, transition.column_scale)
    P = dense_ppr(transition, 0.1)
    assert np.array_equal(P, P.T)


def test_a_matrix_larger_than_memory_is_refused_in_one_sentence_that_names_the_remedy():
    """Dropout on all rows needs all of them; so does an alpha that products would take too long for."""
    graph = Graph.from_scipy(sparse.csr_array((10**6, 10**6)))
    sentence = (
        r"^Exact needs the dense matrix of 1000000 nodes, 7450\.6 GiB, and this process may use [\d.]+ GiB\. "
        r"Use PowerIteration\(steps=10\)\.$"
    )
    with pytest.raises(CapacityError, match=sentence):
        propagate(graph, np.ones(10**6), 1e-9, Exact())
    with pytest.raises(MemoryError):
        Propagation(graph, solver=Exact(), dropout=0.5)(torch.ones(10**6, 1))


def test_an_alpha_lost_in_rounding_is_refused(make_random):
    graph, _ = make_random(5)
    with pytest.raises(
        InputError, match=r"^The 'alpha' parameter of Exact must be large enough .* Got 1e-20 instead\.$"
    ):
        propagate(graph, np.ones(5), 1e-20, Exact())
