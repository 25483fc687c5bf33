"""`Statistics.error_bound` bounds the true error in the norm it names, and is no vacuous bound."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from pprop import Exact, Graph, PowerIteration, solve

NORMS = {
    "frobenius": np.linalg.norm,
    "max": lambda matrix: np.abs(matrix).max(),
    "column": lambda matrix: np.abs(matrix).sum(axis=0).max(),
}


@pytest.mark.parametrize("alpha", [0.05, 0.5])
@pytest.mark.parametrize("steps", [0, 1, 5, 30])
@pytest.mark.parametrize(("normalization", "norm"), [("sym", "frobenius"), ("row", "max"), ("col", "column")])
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("directed", [True, False])
def test_the_error_is_below_its_bound_and_the_bound_below_the_error_times_two_over_alpha(
    make_graph, dense_transition, exact_twin, backend, alpha, steps, normalization, norm, self_loops, directed
):
    """r = (I - (1 - a) T) e, and |T| <= 1 in the named norm, so |e| <= |r| / a <= (2 - a) / a |e|."""
    graph, A = make_graph(directed=directed, weighted=True)
    T = dense_transition(A, normalization, self_loops)
    H = np.random.default_rng(steps).standard_normal((9, 3))
    solution = solve(graph, H, alpha, PowerIteration(steps), normalization, self_loops, backend=backend)
    residual = alpha * H - (solution.value - (1 - alpha) * T @ solution.value)
    error = NORMS[norm](solution.value - exact_twin(T, H, alpha))
    statistics = solution.statistics
    assert statistics.norm == norm
    assert statistics.residual == pytest.approx(NORMS[norm](residual), rel=1e-9, abs=1e-14)
    assert statistics.error_bound == pytest.approx(statistics.residual / alpha, rel=1e-14)
    noise = 1e-14 / alpha
    assert error <= statistics.error_bound + noise
    assert statistics.error_bound <= (2 - alpha) / alpha * error + noise


@pytest.mark.parametrize("directed", [True, False])
def test_the_2_norm_of_the_symmetric_matrix_is_at_most_one_and_its_max_norm_is_not(
    make_random, dense_transition, directed
):
    """Why "sym" names the 2-norm: a hub's row of A_hat sums to more than one."""
    _, A = make_random(60, directed=directed)
    A[0, :] = 1.0
    if not directed:
        A[:, 0] = 1.0
    T = dense_transition(A)
    assert np.linalg.norm(T, 2) <= 1 + 1e-12
    assert np.abs(T).sum(axis=1).max() > 1.5


@pytest.mark.parametrize("directed", [True, False])
def test_the_max_norm_would_not_bound_the_error_of_the_symmetric_matrix(
    dense_transition, exact_twin, backend, directed
):
    """Two stars joined at their hubs, with H chosen so that the residual is +1 on one and -1 on the other."""
    n, alpha = 100, 0.1
    A = np.zeros((2 * n, 2 * n))
    for hub in (0, n):
        A[hub, hub + 1 : hub + n] = A[hub + 1 : hub + n, hub] = 1.0
    A[0, n] = A[n, 0] = 1.0
    T = dense_transition(A)
    wanted = np.repeat([1.0, -1.0], n)
    H = np.linalg.lstsq((1 - alpha) * (T - np.eye(2 * n)), wanted)[0]  # the residual of Z = H
    graph = Graph.from_scipy(sparse.csr_array(A), directed=directed)
    solution = solve(graph, H, alpha, PowerIteration(0), backend=backend)
    error = solution.value - exact_twin(T, H, alpha)
    residual = alpha * H - (solution.value - (1 - alpha) * T @ solution.value)
    np.testing.assert_allclose(residual, wanted, rtol=0, atol=1e-8)
    assert np.abs(error).max() > 3 * np.abs(residual).max() / alpha
    assert solution.statistics.error_bound is not None
    assert np.linalg.norm(error) <= solution.statistics.error_bound


def test_an_exact_solution_has_a_residual_of_rounding(make_graph, backend):
    graph, _ = make_graph(directed=True, weighted=True)
    H = np.random.default_rng(0).standard_normal((9, 3))
    for normalization in ("sym", "row", "col"):
        assert solve(graph, H, 0.1, Exact(), normalization, backend=backend).statistics.residual < 1e-14


def test_without_teleport_there_is_no_bound(make_graph, backend):
    graph, _ = make_graph(directed=True, weighted=True)
    statistics = solve(graph, np.ones(9), 0.0, backend=backend).statistics
    assert statistics.error_bound is None
    assert statistics.residual > 0


def test_predictions_without_columns_have_no_error(make_graph, backend):
    graph, _ = make_graph(directed=True, weighted=True)
    for normalization in ("sym", "row", "col"):
        solution = solve(graph, np.ones((9, 0)), normalization=normalization, backend=backend)
        assert solution.value.shape == (9, 0)
        assert solution.statistics.error_bound == 0
