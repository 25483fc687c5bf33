"""PPNP without the dense matrix: the same numbers, to an error known beforehand, with the same bits in any company."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import torch
from scipy import sparse

import pprop.propagation.operator as operator_module
from pprop import CapacityError, Exact, Graph, Propagation, load_dataset, propagate, solve
from pprop.graph import transition_matrix
from pprop.kernels import choose_backend
from pprop.propagation import PPROperator
from pprop.propagation.operator import FixedPoint, count_products, dense_ppr

pytestmark = pytest.mark.usefixtures("every_kernel_threaded")

KINDS = [
    (directed, weighted, normalization, self_loops)
    for directed in (False, True)
    for weighted in (False, True)
    for normalization in ("sym", "row", "col")
    for self_loops in (True, False)
]


@pytest.fixture
def no_dense(monkeypatch):
    """Every graph counts as large, and the dense matrix is not to be had."""

    def refuse(transition, alpha):
        raise AssertionError("the dense matrix was asked for")

    monkeypatch.setattr(operator_module, "DENSE_NODES", 0)
    monkeypatch.setattr(operator_module, "dense_ppr", refuse)


@pytest.mark.parametrize(("directed", "weighted", "normalization", "self_loops"), KINDS)
def test_rows_are_those_of_the_inverse(
    no_dense, make_graph, dense_transition, directed, weighted, normalization, self_loops
):
    """Nine nodes, one of them alone, one that only sends, one that only receives."""
    graph, A = make_graph(directed=directed, weighted=weighted)
    T = dense_transition(A, normalization, self_loops)
    nodes = np.array([8, 0, 3, 3, 6])
    expected = 0.15 * np.linalg.inv(np.eye(9) - 0.85 * T)[nodes]
    operator = PPROperator(graph, 0.15, normalization, self_loops)
    np.testing.assert_allclose(operator.rows(nodes, np.float64), expected, rtol=0, atol=1e-13)
    single = operator.rows(nodes, np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize(("directed", "weighted", "normalization", "self_loops"), KINDS)
def test_propagation_is_that_of_the_inverse(
    no_dense, make_graph, dense_transition, exact_twin, backend, directed, weighted, normalization, self_loops
):
    graph, A = make_graph(directed=directed, weighted=weighted)
    T = dense_transition(A, normalization, self_loops)
    H = np.random.default_rng(0).standard_normal((9, 3))
    Z = propagate(graph, H, 0.15, Exact(), normalization, self_loops, backend=backend)
    np.testing.assert_allclose(Z, exact_twin(T, H, 0.15), rtol=0, atol=1e-13)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("normalization", ["sym", "row"])
def test_gradients_are_those_of_the_transposed_inverse(
    no_dense, make_graph, dense_transition, backend, directed, normalization
):
    graph, A = make_graph(directed=directed, weighted=True)
    P = 0.2 * np.linalg.inv(np.eye(9) - 0.8 * dense_transition(A, normalization))
    H = torch.randn(3, 9, 3, dtype=torch.float64, requires_grad=True)
    G = np.random.default_rng(1).standard_normal((3, 9, 3))
    Propagation(graph, 0.2, Exact(), normalization, backend=backend)(H).backward(torch.from_numpy(G))
    assert H.grad is not None
    np.testing.assert_allclose(H.grad, P.T @ G, rtol=0, atol=1e-13)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-8])
def test_the_error_of_every_column_stays_below_the_tolerance(make_random, directed, normalization, tolerance):
    graph, _ = make_random(120, directed=directed, weighted=True)
    transition = transition_matrix(graph, normalization)
    kernels = choose_backend("auto", "cpu", "test").kernels
    P = dense_ppr(transition, 0.1)[:, :64]
    some = torch.eye(120, 64, dtype=torch.float64)[None]  # as many columns as rows are solved for together
    found = FixedPoint(transition, 0.1, kernels, tolerance).forward(some)[0].numpy()
    order = {"sym": 2, "row": np.inf, "col": 1}[normalization] if directed else 2
    error = np.linalg.norm(found - P, ord=order, axis=0) / np.linalg.norm(P, ord=order, axis=0)
    assert error.max() <= tolerance


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-8])
def test_no_product_is_made_that_the_worst_graph_does_not_need(tolerance):
    """A bipartite graph has the eigenvalue -1, where the error is 1 / cosh(k arccosh(1 / (1 - alpha))) to the letter."""
    star = np.zeros((9, 9))
    star[0, 1:] = star[1:, 0] = 1.0
    transition = transition_matrix(Graph.from_scipy(sparse.csr_array(star)), self_loops=False)
    v = np.sqrt(star.sum(axis=0)) * np.array([-1.0] + 8 * [1.0])  # A_hat v = -v, so Pi v = alpha / (2 - alpha) v
    solver = FixedPoint(transition, 0.1, choose_backend("auto", "cpu", "test").kernels, tolerance)
    share = 0.1 / 1.9 * v
    error = np.linalg.norm(solver.forward(torch.from_numpy(v)[None, :, None]).numpy().ravel() - share)
    left, before = (1 / np.cosh(k * np.arccosh(1 / 0.9)) for k in (solver.matrix_products + 1, solver.matrix_products))
    assert left <= tolerance < before
    np.testing.assert_allclose(error / np.linalg.norm(share), left, rtol=1e-6)


def test_a_row_has_the_same_bits_in_any_company_and_with_any_number_of_threads(no_dense, make_random):
    graph, _ = make_random(300, weighted=True)
    operator = PPROperator(graph, 0.1)
    every = operator.rows(np.arange(300), np.float64)
    assert np.array_equal(operator.rows(np.array([299, 7]), np.float64), every[[299, 7]])
    threads, torch_threads = numba.get_num_threads(), torch.get_num_threads()
    try:
        numba.set_num_threads(1)
        torch.set_num_threads(1)
        assert np.array_equal(operator.rows(np.arange(300), np.float64), every)
    finally:
        numba.set_num_threads(threads)
        torch.set_num_threads(torch_threads)


def test_a_run_has_the_same_bits_in_any_company(no_dense, make_random, backend):
    graph, _ = make_random(50)
    H = torch.randn(4, 50, 3, generator=torch.Generator().manual_seed(0))
    layer = Propagation(graph, 0.1, Exact(), backend=backend)
    assert torch.equal(layer(H)[2], layer(H[2]))


def test_small_graphs_keep_the_dense_matrix(make_graph):
    graph, _ = make_graph(directed=False, weighted=False)
    operator = PPROperator(graph, 0.1)
    assert not operator.iterated
    rows = operator.rows(np.array([1, 4]), np.float64)
    assert np.array_equal(rows, dense_ppr(operator.transition, 0.1)[[1, 4]])


def test_the_products_are_counted_and_the_residual_is_rounding(no_dense, make_random, backend):
    graph, _ = make_random(40)
    solution = solve(graph, np.eye(40, 3), 0.1, Exact(), backend=backend)
    assert solution.statistics.matrix_products == count_products(transition_matrix(graph), 0.1, 1e-15) == 75
    assert solution.statistics.residual < 1e-14


def test_without_teleport_probability_to_spare_the_prediction_stays(no_dense, make_graph):
    graph, _ = make_graph(directed=True, weighted=True)
    H = np.random.default_rng(0).standard_normal((9, 3))
    assert np.array_equal(propagate(graph, H, 1.0, Exact()), H)


def test_dropout_on_all_rows_still_masks_the_dense_matrix(monkeypatch, make_graph):
    graph, _ = make_graph(directed=False, weighted=True)
    H = torch.eye(9, 3, dtype=torch.float64)
    expected = Propagation(graph, 0.2, Exact(), dropout=0.5, seed=3)(H)
    monkeypatch.setattr(operator_module, "DENSE_NODES", 0)
    assert torch.equal(Propagation(graph, 0.2, Exact(), dropout=0.5, seed=3)(H), expected)


def test_rows_larger_than_memory_are_refused_in_one_sentence_that_names_the_remedy(monkeypatch, no_dense, make_random):
    graph, _ = make_random(50)
    monkeypatch.setattr(operator_module, "usable_memory", lambda: 2**12)
    sentence = r"^Exact needs 40 rows of the matrix of 50 nodes, 0\.0 GiB, .* Use PowerIteration\(steps=10\), or fewer"
    with pytest.raises(CapacityError, match=sentence):
        PPROperator(graph, 0.1).rows(np.arange(40), np.float32)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("alpha", [1e-20, 1e-320])
def test_an_alpha_lost_in_rounding_takes_more_products_than_are_made(make_graph, directed, alpha):
    graph, _ = make_graph(directed=directed, weighted=False)
    assert count_products(transition_matrix(graph), alpha, 1e-15) > operator_module.MOST_PRODUCTS


@pytest.mark.data
@pytest.mark.slow
def test_on_pubmed_rows_and_propagation_agree_and_keep_the_root_of_the_degrees():
    """Pi sqrt(d) = sqrt(d) to rounding: 19717 nodes, with no matrix of 3 GB."""
    graph = load_dataset("pubmed")
    operator, nodes = PPROperator(graph, 0.1), np.array([0, 19716, 1234])
    rows = operator.rows(nodes, np.float64)
    root = np.sqrt(np.asarray(graph.adjacency.sum(axis=1)) + 1)
    np.testing.assert_allclose(rows @ root, root[nodes], rtol=1e-13)
    H = np.random.default_rng(0).standard_normal((graph.n_nodes, 3))
    Z = propagate(graph, H, 0.1, Exact())
    np.testing.assert_allclose(Z[nodes], rows @ H, rtol=0, atol=1e-14)
    T = operator.transition.to_scipy()
    np.testing.assert_allclose(Z - 0.9 * (T @ Z), 0.1 * H, rtol=0, atol=1e-13)
