"""What the paper proves about propagation, seen in the library's own results."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import sparse

import pprop
from pprop import Exact, PowerIteration, Propagation, propagate


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 10])
def test_k_steps_are_the_partial_sum_of_appendix_b(
    make_graph, dense_transition, library_matrix, backend, directed, steps
):
    """Z^(k) = ((1 - a)^k T^k + a sum_{i < k} (1 - a)^i T^i) H."""
    graph, A = make_graph(directed=directed, weighted=True)
    T, alpha = dense_transition(A), 0.17
    expected = (1 - alpha) ** steps * np.linalg.matrix_power(T, steps)
    for i in range(steps):
        expected = expected + alpha * (1 - alpha) ** i * np.linalg.matrix_power(T, i)
    matrix = library_matrix(graph, alpha=alpha, solver=PowerIteration(steps), backend=backend)
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_largest_eigenvalue_is_one_with_the_root_of_the_degrees_as_its_vector(
    make_random, library_matrix, backend, weighted
):
    """Appendix A: the spectrum of A_hat lies in (-1, 1], and sqrt(d) belongs to 1."""
    graph, A = make_random(35, weighted=weighted)
    degree = A.sum(axis=1) + 1
    A_hat = library_matrix(graph, alpha=0.0, solver=PowerIteration(1), backend=backend)
    np.testing.assert_allclose(A_hat, A_hat.T, rtol=0, atol=1e-15)
    values = np.linalg.eigvalsh(A_hat)
    assert values[-1] == pytest.approx(1.0, abs=1e-13)
    assert values[-2] < 1 - 1e-6  # connected: the eigenvalue is single
    assert values[0] > -1 + 1e-6
    root = np.sqrt(degree)
    np.testing.assert_allclose(propagate(graph, root, 0.0, PowerIteration(1), backend=backend), root, rtol=1e-14)
    # so sqrt(d) is also left alone by every propagation
    np.testing.assert_allclose(propagate(graph, root, 0.3, Exact(), backend=backend), root, rtol=1e-13)


def test_without_self_loops_a_bipartite_graph_has_the_eigenvalue_minus_one(library_matrix, backend):
    """The path of two nodes: self-loops are what keeps the spectrum off -1."""
    graph = pprop.Graph.from_scipy(sparse.csr_array([[0.0, 1.0], [1.0, 0.0]]))
    arguments = {"alpha": 0.0, "solver": PowerIteration(1), "backend": backend}
    np.testing.assert_allclose(np.linalg.eigvalsh(library_matrix(graph, **arguments)), [0, 1], atol=1e-15)
    without = library_matrix(graph, **arguments, self_loops=False)
    np.testing.assert_allclose(np.linalg.eigvalsh(without), [-1, 1], atol=1e-15)


@pytest.mark.parametrize("directed", [False, True])
def test_the_influence_of_x_on_y_is_the_entry_y_x_of_the_ppr_matrix(make_random, dense_transition, backend, directed):
    """dZ_y / dH_x = Pi[y, x] (the paper's equation for the influence score), by the gradient; symmetric if A is."""
    n, alpha = 14, 0.1
    graph, A = make_random(n, directed=directed, weighted=True)
    P = alpha * np.linalg.inv(np.eye(n) - (1 - alpha) * dense_transition(A))
    layer = Propagation(graph, alpha, Exact(), backend=backend)
    seen = np.empty((n, n))
    for y in range(n):
        H = torch.zeros(n, 1, dtype=torch.float64, requires_grad=True)
        layer(H)[y, 0].backward()
        assert H.grad is not None
        seen[y] = H.grad[:, 0].numpy()
    np.testing.assert_allclose(seen, P, rtol=0, atol=1e-14)
    assert np.allclose(seen, seen.T, rtol=0, atol=1e-14) == (not directed)


@pytest.mark.parametrize("normalization", ["row", "col"])
@pytest.mark.parametrize("directed", [False, True])
def test_stochastic_matrices_keep_sums(make_graph, library_matrix, backend, normalization, directed):
    """The rows of the PPR matrix sum to one for "row", the columns for "col"."""
    graph, _ = make_graph(directed=directed, weighted=True)
    P = library_matrix(graph, alpha=0.2, solver=Exact(), normalization=normalization, backend=backend)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1 if normalization == "row" else 0), np.ones(9), rtol=1e-14)


def test_the_random_walk_matrix_without_self_loops_is_another_propagation_matrix(make_random, backend):
    """Section 3: A D^-1 in place of A_hat, against the inverse matrix; every column's sum is kept."""
    graph, A = make_random(35, weighted=True)
    H, T = np.random.default_rng(0).standard_normal((35, 3)), A / A.sum(axis=0)
    Z = propagate(graph, H, 0.1, Exact(), "col", self_loops=False, backend=backend)
    np.testing.assert_allclose(Z, 0.1 * np.linalg.solve(np.eye(35) - 0.9 * T, H), rtol=0, atol=1e-13)
    np.testing.assert_allclose(Z.sum(axis=0), H.sum(axis=0), rtol=0, atol=1e-13)
    assert np.abs(Z - propagate(graph, H, 0.1, Exact(), backend=backend)).max() > 0.01


@pytest.fixture(scope="module")
def citeseer():
    return pprop.load_dataset("citeseer")


@pytest.fixture(scope="module")
def citeseer_exact(citeseer):
    H = np.random.default_rng(0).standard_normal((citeseer.n_nodes, 3)).astype(np.float32)
    return H, propagate(citeseer, H, 0.1, Exact())


def relative_error(Z, reference):
    difference = np.asarray(Z, dtype=np.float64) - np.asarray(reference, dtype=np.float64)
    return np.linalg.norm(difference) / np.linalg.norm(np.asarray(reference, dtype=np.float64))


def test_200_power_steps_reach_the_exact_solution_on_citeseer_in_float32(citeseer, citeseer_exact, backend):
    H, exact = citeseer_exact
    assert exact.dtype == np.float32
    assert relative_error(propagate(citeseer, H, 0.1, PowerIteration(200), backend=backend), exact) < 1e-6


@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize("directed", [False, True])
def test_200_power_steps_reach_the_exact_solution_of_a_random_graph_in_float32(
    make_random, dense_transition, exact_twin, backend, normalization, directed
):
    graph, A = make_random(150, directed=directed, weighted=True)
    H = np.random.default_rng(1).standard_normal((150, 3)).astype(np.float32)
    exact = propagate(graph, H, 0.1, Exact(), normalization, backend=backend)
    power = propagate(graph, H, 0.1, PowerIteration(200), normalization, backend=backend)
    assert relative_error(power, exact) < 1e-6
    assert relative_error(exact, exact_twin(dense_transition(A, normalization), H.astype(float), 0.1)) < 1e-6


def test_the_distance_to_the_exact_solution_shrinks_by_one_minus_alpha_a_step(make_random, backend):
    """In the 2-norm, "sym": Z^(k+1) - Z = (1 - alpha) T (Z^(k) - Z) with |T|_2 <= 1."""
    graph, _ = make_random(35, weighted=True)
    H = np.random.default_rng(2).standard_normal((35, 1))
    exact = propagate(graph, H, 0.2, Exact(), backend=backend)
    distance = [np.linalg.norm(propagate(graph, H, 0.2, PowerIteration(k), backend=backend) - exact) for k in range(12)]
    for before, after in pairwise(distance):
        assert 0 < after <= 0.8 * before * (1 + 1e-12)
