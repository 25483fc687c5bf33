"""`propagate` and `solve` against numpy.linalg.solve twins that share no code with the library."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from pprop import Exact, Graph, PowerIteration, propagate, solve
from pprop.propagation import Outcome

SOLVERS = [PowerIteration(4), Exact()]


def twin_of(solver, T, H, alpha, exact_twin, power_twin):
    return exact_twin(T, H, alpha) if isinstance(solver, Exact) else power_twin(T, H, alpha, solver.steps)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_propagation_is_that_of_the_dense_matrix(
    make_graph,
    dense_transition,
    exact_twin,
    power_twin,
    rounding,
    backend,
    solver,
    normalization,
    self_loops,
    directed,
    weighted,
):
    """For numpy and torch, float32 and float64: same kind, type and shape back, and the input as it was."""
    graph, A = make_graph(directed=directed, weighted=weighted)
    T = dense_transition(A, normalization, self_loops)
    for dtype in (np.float32, np.float64):
        H = np.random.default_rng(0).standard_normal((9, 3)).astype(dtype)
        expected = twin_of(solver, T, H.astype(np.float64), 0.15, exact_twin, power_twin)
        for given in (H.copy(), torch.from_numpy(H.copy())):
            arguments = (graph, given, 0.15, solver, normalization, self_loops)
            Z = propagate(*arguments, backend=backend)
            solution = solve(*arguments, backend=backend)
            assert type(Z) is type(given)
            assert Z.dtype == given.dtype
            assert np.array_equal(np.asarray(given), H)
            np.testing.assert_allclose(np.asarray(Z), expected, rtol=0, atol=rounding(dtype))
            assert np.array_equal(np.asarray(solution.value), np.asarray(Z))


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("directed", [True, False])
def test_one_dimensional_predictions_come_back_one_dimensional(
    make_graph, dense_transition, exact_twin, power_twin, rounding, backend, solver, directed
):
    graph, A = make_graph(directed=directed, weighted=True)
    H = np.random.default_rng(1).standard_normal(9)
    expected = twin_of(solver, dense_transition(A), H, 0.3, exact_twin, power_twin)
    for given in (H, torch.from_numpy(H)):
        Z = propagate(graph, given, 0.3, solver, backend=backend)
        assert type(Z) is type(given)
        assert tuple(Z.shape) == (9,)
        np.testing.assert_allclose(np.asarray(Z), expected, rtol=0, atol=rounding(np.float64))


@pytest.mark.parametrize("given", [[1, 0, 0, 0, 0, 0, 0, 0, 2], np.arange(9) > 4, np.arange(9, dtype=np.uint8)])
def test_integers_lists_and_booleans_are_computed_in_float64(make_graph, dense_transition, exact_twin, given):
    graph, A = make_graph(directed=False, weighted=False)
    Z = propagate(graph, given, 0.2, Exact())
    assert Z.dtype == np.float64
    np.testing.assert_allclose(Z, exact_twin(dense_transition(A), np.array(given, dtype=float), 0.2), atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32_and_rounded_once(make_graph, backend, dtype):
    graph, _ = make_graph(directed=True, weighted=True)
    H = torch.randn(9, 3, generator=torch.Generator().manual_seed(0)).to(dtype)
    Z = propagate(graph, H, backend=backend)
    assert Z.dtype == dtype
    assert torch.equal(Z, propagate(graph, H.float(), backend=backend).to(dtype))


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", np.longdouble])
def test_byte_swapped_and_long_numbers_are_read(make_graph, dtype):
    graph, _ = make_graph(directed=False, weighted=False)
    H = np.arange(27).reshape(9, 3).astype(dtype)
    assert np.array_equal(propagate(graph, H), propagate(graph, H.astype("f4" if dtype == ">f4" else "f8")))


def test_arrays_in_any_memory_order_are_read(make_graph, backend):
    graph, _ = make_graph(directed=True, weighted=True)
    H = np.random.default_rng(2).standard_normal((9, 3))
    expected = propagate(graph, H, backend=backend)
    read_only = H.copy()
    read_only.setflags(write=False)
    for given in (np.asfortranarray(H), H[:, ::-1][:, ::-1], read_only, torch.from_numpy(H.T.copy()).T):
        assert np.array_equal(np.asarray(propagate(graph, given, backend=backend)), expected)


def test_results_share_no_memory_with_the_predictions(make_graph, backend):
    graph, _ = make_graph(directed=False, weighted=False)
    for solver in (PowerIteration(0), PowerIteration(1), Exact()):
        H = torch.ones(9, 3)
        propagate(graph, H, 1.0, solver, backend=backend).zero_()
        assert torch.equal(H, torch.ones(9, 3))


# -- particular nodes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [PowerIteration(10), Exact()], ids=str)
@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize("self_loops", [True, False])
def test_an_isolated_node_keeps_its_own_prediction(make_graph, backend, solver, normalization, self_loops):
    graph, _ = make_graph(directed=True, weighted=True)
    H = np.random.default_rng(3).standard_normal((9, 3))
    Z = propagate(graph, H, 0.1, solver, normalization, self_loops, backend=backend)
    np.testing.assert_allclose(Z[8], H[8], rtol=0, atol=1e-14)


def test_a_graph_without_edges_returns_the_predictions(backend):
    graph = Graph.from_scipy(sparse.csr_array((257, 257)))
    H = np.random.default_rng(4).standard_normal((257, 3))
    for solver in (PowerIteration(3), Exact()):
        np.testing.assert_allclose(propagate(graph, H, 0.1, solver, backend=backend), H, rtol=0, atol=1e-14)


def test_a_single_node_returns_its_prediction(backend):
    for directed in (True, False):
        graph = Graph.from_scipy(sparse.csr_array((1, 1)), directed=directed)
        for solver in (PowerIteration(3), Exact()):
            for normalization in ("sym", "row", "col"):
                Z = propagate(graph, np.array([3.0]), 0.1, solver, normalization, backend=backend)
                np.testing.assert_allclose(Z, [3.0], rtol=1e-15)


def test_an_existing_self_loop_keeps_its_weight_and_a_missing_one_gets_weight_one(library_matrix, backend):
    """Two nodes, edge of weight 2, loop of weight 3 at the first: rows (3, 2) and (2, 1) before normalisation."""
    graph = Graph.from_scipy(sparse.csr_array([[3.0, 2.0], [2.0, 0.0]]))
    arguments = {"alpha": 0.0, "solver": PowerIteration(1), "normalization": "row", "backend": backend}
    np.testing.assert_allclose(library_matrix(graph, **arguments), [[3 / 5, 2 / 5], [2 / 3, 1 / 3]], rtol=1e-15)
    without = library_matrix(graph, **arguments, self_loops=False)
    np.testing.assert_allclose(without, [[3 / 5, 2 / 5], [1, 0]], rtol=1e-15)


def test_entry_i_j_is_what_i_receives_from_j(library_matrix, backend):
    """Node 1 receives from node 0, which receives from nobody: what is put on node 0 reaches node 1, not back."""
    graph = Graph.from_scipy(sparse.csr_array([[0.0, 0.0], [1.0, 0.0]]), directed=True)
    arguments = {"alpha": 0.5, "solver": Exact(), "backend": backend}
    P = library_matrix(graph, **arguments, normalization="row")
    # node 1: z = (h_1 + z_0 / 2 + z / 2) / 2, with z_0 = h_0
    np.testing.assert_allclose(P, [[1.0, 0.0], [1 / 3, 2 / 3]], rtol=1e-14)


@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
def test_a_dangling_node_receives_and_passes_nothing_on(
    make_graph, dense_transition, library_matrix, backend, normalization
):
    """Without self-loops node 7 sends to nobody: the column of T is empty, so only its own teleport is left of it."""
    graph, A = make_graph(directed=True, weighted=True)
    assert not A[:, 7].any()
    P = library_matrix(graph, alpha=0.2, solver=Exact(), normalization=normalization, self_loops=False, backend=backend)
    expected = np.zeros(9)
    expected[7] = 0.2
    np.testing.assert_allclose(P[:, 7], expected, rtol=0, atol=1e-15)
    T = dense_transition(A, normalization, self_loops=False)
    np.testing.assert_allclose(P, 0.2 * np.linalg.inv(np.eye(9) - 0.8 * T), rtol=0, atol=1e-14)


# -- alpha --------------------------------------------------------------------------------------------------------


def test_without_teleport_power_iteration_applies_the_transition_matrix(
    make_graph, dense_transition, library_matrix, backend
):
    graph, A = make_graph(directed=True, weighted=True)
    T = dense_transition(A)
    for steps in (1, 3):
        power = library_matrix(graph, alpha=0.0, solver=PowerIteration(steps), backend=backend)
        np.testing.assert_allclose(power, np.linalg.matrix_power(T, steps), rtol=0, atol=1e-14)


def test_with_certain_teleport_the_predictions_come_back(make_graph, backend):
    graph, _ = make_graph(directed=True, weighted=True)
    H = np.random.default_rng(5).standard_normal((9, 3))
    for solver in (PowerIteration(3), Exact()):
        np.testing.assert_array_equal(propagate(graph, H, 1.0, solver, backend=backend), H)


def test_the_solution_says_how_it_was_made(make_graph, backend):
    graph, _ = make_graph(directed=False, weighted=False)
    H = np.ones((9, 3))
    power = solve(graph, H, solver=PowerIteration(6), backend=backend)
    exact = solve(graph, H, solver=Exact(), backend=backend)
    assert (power.outcome, power.statistics.matrix_products) == (Outcome.FIXED_STEPS, 6)
    assert (exact.outcome, exact.statistics.matrix_products) == (Outcome.EXACT, 0)
    assert power.statistics.backend == exact.statistics.backend == backend
    assert power.statistics.seconds > 0
