"""Solvers to a tolerance against dense solves: the certificate holds in its norm, with gradients, in few products."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from scipy import sparse

from pprop import (
    Chebyshev,
    ConjugateGradient,
    Contraction,
    Exact,
    Graph,
    InputError,
    PowerIteration,
    Propagation,
    PropagationSettings,
    ToleranceError,
    load_dataset,
    propagate,
    solve,
)
from pprop.propagation import Solver

SYMMETRIC = [Chebyshev, ConjugateGradient]
ALL = [*SYMMETRIC, Contraction]


def column_norms(words, degrees):
    """The norm that a certificate names, written out."""
    weighted = {"2-norm": np.ones_like(degrees), "2-norm weighted by the degrees": degrees}
    weighted["2-norm weighted by the inverse degrees"] = 1 / degrees
    if words in weighted:
        return lambda Z: np.sqrt((weighted[words][:, None] * Z**2).sum(axis=0))
    return (lambda Z: np.abs(Z).max(axis=0)) if words == "max-norm" else (lambda Z: np.abs(Z).sum(axis=0))


defaults = {np.float64: 1e-6, np.float32: 160 * 2.0**-23, np.float16: 2 * (80 * 2.0**-23 * (1 + 2.0**-11) + 2.0**-11)}
"""At alpha 0.1: 1e-6, or twice 8 units of rounding over alpha and half a unit of float16."""


def degrees_of(A, self_loops):
    """Row sums with the loops of `transition_matrix`."""
    missing = (np.diag(A) == 0) if self_loops else ~A.any(axis=1)
    return (A + np.diag(missing.astype(float))).sum(axis=1)


@pytest.mark.parametrize("solver", ALL)
@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize(
    ("dtype", "tol"),
    [
        (np.float64, 1e-2),
        (np.float64, None),
        (np.float64, 1e-12),
        (np.float32, 1e-2),
        (np.float32, None),
        (np.float16, None),
    ],
)
def test_every_column_is_within_the_certified_error_and_that_within_the_tolerance(
    make_graph, dense_transition, exact_twin, backend, solver, normalization, dtype, tol
):
    graph, A = make_graph(directed=False, weighted=True)
    H = (np.random.default_rng(1).standard_normal((9, 3)) * 10.0 ** np.array([-3, 0, 3])).astype(dtype)
    for self_loops in (True, False):
        twin = exact_twin(dense_transition(A, normalization, self_loops), H.astype(np.float64), 0.1)
        solution = solve(graph, H, 0.1, solver(tol), normalization, self_loops, backend=backend)
        assert solution.value.dtype == dtype
        norm = column_norms(solution.certificate.norm, degrees_of(A, self_loops))
        error = (norm(solution.value.astype(np.float64) - twin) / norm(twin)).max()
        assert error <= solution.certificate.relative_error * (1 + 1e-6) + 1e-15
        assert solution.certificate.relative_error <= solution.certificate.tol
        assert solution.certificate.tol == (defaults[dtype] if tol is None else tol)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(("normalization", "words"), [("sym", "2-norm"), ("row", "max-norm"), ("col", "1-norm")])
@pytest.mark.parametrize("self_loops", [True, False])
def test_a_directed_graph_is_solved_by_the_contraction(
    make_graph, dense_transition, exact_twin, backend, weighted, normalization, words, self_loops
):
    graph, A = make_graph(directed=True, weighted=weighted)
    H = np.random.default_rng(2).standard_normal((9, 3))
    twin = exact_twin(dense_transition(A, normalization, self_loops), H, 0.3)
    solution = solve(graph, H, 0.3, Contraction(1e-7), normalization, self_loops, backend=backend)
    assert solution.certificate.norm == words
    norm = column_norms(words, np.ones(9))
    assert (norm(solution.value - twin) / norm(twin)).max() <= solution.certificate.relative_error <= 1e-7


@pytest.mark.parametrize("solver", SYMMETRIC)
def test_a_directed_graph_is_refused_by_what_needs_symmetry(make_graph, solver):
    graph, _ = make_graph(directed=True, weighted=False)
    with pytest.raises(
        InputError, match=r"must be undirected\. Got a directed graph instead\. Use Contraction\(tol=1e-06\)"
    ):
        propagate(graph, np.ones(9), solver=solver(1e-6))
    with pytest.raises(InputError, match=r"Use Contraction\(\)\.$"):
        propagate(graph, np.ones(9), solver=solver())


@pytest.mark.parametrize(("directed", "solver"), [(False, Chebyshev), (False, ConjugateGradient), (True, Contraction)])
@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
def test_derivatives_with_dropped_edges_are_those_of_finite_differences(make_graph, directed, solver, normalization):
    graph, _ = make_graph(directed=directed, weighted=True)
    layer = Propagation(graph, 0.3, solver(1e-12), normalization, dropout=0.5, seed=[3, 8])

    def apply(predictions):
        layer.passes = 5
        return layer(predictions)

    H = torch.randn(2, 9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(apply, (H,))


@pytest.mark.parametrize("solver", [Chebyshev(), ConjugateGradient(0.5), Contraction()])
@pytest.mark.parametrize("alpha", [1e-300, 1e-15])
def test_an_alpha_at_which_nothing_can_be_proven_is_refused_by_name(make_graph, solver, alpha):
    sentence = rf"'alpha' parameter of {type(solver).__name__} must be at least 7.1e-15, .* Got {alpha!r} instead"
    with pytest.raises(InputError, match=sentence):
        propagate(make_graph(directed=False, weighted=True)[0], np.eye(9), alpha, solver)


@pytest.mark.parametrize(("directed", "solver"), [(False, Chebyshev), (False, ConjugateGradient), (True, Contraction)])
def test_the_gradient_is_the_transposed_matrix(make_graph, dense_transition, backend, directed, solver):
    graph, A = make_graph(directed=directed, weighted=True)
    weight = np.random.default_rng(0).standard_normal((9, 3))
    for normalization in ("sym", "row", "col"):
        P = 0.2 * np.linalg.inv(np.eye(9) - 0.8 * dense_transition(A, normalization))
        H = torch.zeros(9, 3, dtype=torch.float64, requires_grad=True)
        (
            propagate(graph, H, 0.2, solver(1e-12), normalization, backend=backend) * torch.from_numpy(weight)
        ).sum().backward()
        assert H.grad is not None
        np.testing.assert_allclose(H.grad.numpy(), P.T @ weight, rtol=0, atol=1e-10)


@pytest.mark.parametrize("solver", ALL)
def test_what_is_kept_for_the_backward_pass_does_not_grow_with_the_steps(make_random, solver):
    graph, _ = make_random(40)

    def kept(tol):
        saved: list[torch.Tensor] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
            layer = Propagation(graph, 0.01, solver(tol))
            layer(torch.ones(40, 3, dtype=torch.float64, requires_grad=True)).square().sum()
        return sum(tensor.numel() for tensor in saved)

    assert kept(1e-2) == kept(1e-9) == 40 * 3  # what the square keeps


@pytest.mark.parametrize(("solver", "true", "certified"), [(Chebyshev, 32, 40), (ConjugateGradient, 28, 30)])
def test_few_products_reach_a_millionth_on_citeseer(solver, true, certified):
    graph = load_dataset("citeseer")
    H = np.random.default_rng(0).standard_normal((graph.n_nodes, 3))
    exact = propagate(graph, H, 0.1, Exact())
    solution = solve(graph, H, 0.1, solver(1e-6))
    error = np.linalg.norm(solution.value - exact, axis=0) / np.linalg.norm(exact, axis=0)
    assert solution.statistics.matrix_products <= certified
    assert error.max() <= 1e-6
    best = next(k for k in range(1, 60) if solve_by(graph, H, solver, k, exact) <= 1e-6)
    assert best <= true
    assert 2 * solution.statistics.matrix_products < solve(graph, H, 0.1, Contraction(1e-6)).statistics.matrix_products


def solve_by(graph, H, solver, products, exact):
    """The largest relative error after so many products, from the loops below the certificate."""
    from pprop.kernels import choose_backend
    from pprop.kernels.solves import Limits
    from pprop.propagation import PPROperator
    from pprop.propagation.tolerance import ToleranceMap

    class Capped(solver):  # pyright: ignore[reportUntypedBaseClass]
        def limits(self, alpha):
            return Limits(0.0, 10**6, products)

    operator = PPROperator(graph, 0.1)
    kernels = choose_backend("auto", "cpu", "test").kernels
    side = ToleranceMap(Chebyshev(), operator, kernels)._side(None, 0, transposed=False)
    value, _ = side.solve(torch.from_numpy(H), Capped(1e-6))
    return (np.linalg.norm(value.numpy() - exact, axis=0) / np.linalg.norm(exact, axis=0)).max()


@pytest.mark.parametrize("solver", ALL)
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.9])
def test_a_tolerance_that_a_float_type_allows_is_reached(make_random, dense_transition, exact_twin, solver, alpha):
    graph, A = make_random(60, weighted=True)
    for dtype, units in ((np.float32, 8), (np.float64, 16)):
        least = units * float(np.finfo(dtype).eps) / alpha
        H = np.random.default_rng(0).standard_normal((60, 3)).astype(dtype)
        twin = exact_twin(dense_transition(A), H.astype(np.float64), alpha)
        value = propagate(graph, H, alpha, solver(1.01 * least)).astype(np.float64)
        assert (np.linalg.norm(value - twin, axis=0) / np.linalg.norm(twin, axis=0)).max() <= 1.01 * least
        name = np.dtype(dtype).name
        with pytest.raises(
            InputError, match=rf"The 'tol' parameter of {solver.__name__} must be at least .* what {name}"
        ):
            propagate(graph, H, alpha, solver(0.9 * least))


@pytest.mark.parametrize("solver", ALL)
def test_a_missed_tolerance_says_what_was_reached(make_random, backend, solver):
    graph, _ = make_random(60)
    H = np.random.default_rng(0).standard_normal((60, 3))
    with pytest.raises(
        ToleranceError, match=r"relative error of 1e-09 at alpha 0.1 and reached .* in 9 products. Raise max"
    ):
        propagate(graph, H, 0.1, solver(1e-9, max_products=9), backend=backend)


def test_a_missed_tolerance_of_which_nothing_is_proven_says_so(make_random):
    graph, _ = make_random(60)
    H = np.random.default_rng(0).standard_normal((60, 3))
    with pytest.raises(ToleranceError, match=r"reached no error that can be proven in 3 products. Raise max_products"):
        propagate(graph, H, 0.001, Contraction(1e-9, max_products=3))


@pytest.mark.parametrize("solver", ALL)
def test_columns_of_any_size_are_certified_each_by_itself(make_random, dense_transition, exact_twin, backend, solver):
    graph, A = make_random(60)
    H = np.random.default_rng(0).standard_normal((60, 3))
    twin = exact_twin(dense_transition(A), H, 0.1)
    for sizes in np.array([[1e-300, 1.0, 1e300], [1e-160, 0.0, 1e160], [1e-8, 1e8, 0.0]]):
        value = propagate(graph, H * sizes, 0.1, solver(1e-8), backend=backend)
        assert not value[:, sizes == 0].any()
        some = sizes > 0
        error = np.linalg.norm(value[:, some] / sizes[some] - twin[:, some], axis=0)
        assert (error <= 1.0001e-8 * np.linalg.norm(twin[:, some], axis=0)).all()


@pytest.mark.parametrize("solver", ALL)
def test_bits_and_products_depend_neither_on_other_runs_nor_on_the_kind_of_array(make_random, solver):
    graph, _ = make_random(300)
    H = torch.randn(3, 300, 3, generator=torch.Generator().manual_seed(0))
    layer = Propagation(graph, 0.1, solver(1e-4))
    together = layer(H)
    assert all(torch.equal(together[run], layer(H[run])) for run in range(3))
    assert np.array_equal(propagate(graph, H[0].numpy(), 0.1, solver(1e-4)), together[0].numpy())


@pytest.mark.parametrize("solver", ALL)
def test_with_alpha_one_or_nothing_to_solve_there_is_no_product(make_graph, backend, solver):
    graph, _ = make_graph(directed=False, weighted=False)
    H = np.random.default_rng(0).standard_normal((9, 3))
    solution = solve(graph, H, 1.0, solver(), backend=backend)
    assert np.array_equal(solution.value, H)
    assert solution.statistics.matrix_products == 0
    assert solve(graph, np.ones((9, 0)), 0.1, solver(), backend=backend).value.shape == (9, 0)


def test_a_large_graph_takes_the_kernels_of_large_graphs(large_kernels, make_random, dense_transition, exact_twin):
    graph, A = make_random(60)
    H = np.random.default_rng(0).standard_normal((60, 3))
    twin = exact_twin(dense_transition(A), H, 0.1)
    for solver in ALL:
        before = large_kernels()
        solution = solve(graph, H, 0.1, solver(1e-8))
        assert large_kernels() - before >= solution.statistics.matrix_products  # and one for the statistics
        assert (np.linalg.norm(solution.value - twin, axis=0) / np.linalg.norm(twin, axis=0)).max() <= 1e-8


@pytest.mark.parametrize("solver", ALL)
@pytest.mark.parametrize("tol", [0.0, 1.0, -1e-3, float("nan"), "x", True])
def test_a_tolerance_is_a_number_between_zero_and_one(solver, tol):
    sentence = f"The 'tol' parameter of {solver.__name__} must be a float in (0, 1). Got {tol!r} instead."
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        solver(tol)


def test_the_other_arguments_are_checked_too(make_graph):
    graph, _ = make_graph(directed=False, weighted=False)
    with pytest.raises(InputError, match="'max_products' parameter of Chebyshev must be an integer of at least 1"):
        Chebyshev(max_products=0)
    with pytest.raises(InputError, match=r"'alpha' parameter of propagate must be a float in \(0, 1\]. Got 0 instead"):
        propagate(graph, np.ones(9), 0, Chebyshev())
    with pytest.raises(InputError, match="free of NaN and infinity"):
        Propagation(graph, 0.1, Chebyshev())(torch.full((9, 3), float("nan"), dtype=torch.float64))
    with pytest.raises(InputError, match=r"Use SolvedPPNP\(solver=...\) or a module with a Propagation"):
        PropagationSettings(solver=Contraction())
    with pytest.raises(
        InputError, match=r"'solver' parameter of PropagationSettings must be PowerIteration\(steps\), Exact"
    ):
        PropagationSettings(solver=type("Own", (Solver,), {"bind": None})())


def test_dropout_removes_whole_edges_and_normalises_what_is_left(make_random, dense_transition, exact_twin):
    """The twin is the dense solve on one of the graphs that dropping can leave, and the scale of kept edges is one."""
    from pprop.kernels import Draw
    from pprop.propagation import PPROperator

    graph, A = make_random(60, weighted=True)
    draw = Draw(torch.tensor([11, 12]), 4, 0.5)
    left = [PPROperator(graph, 0.1).dropped(draw, run).to_scipy().toarray() for run in range(2)]
    pattern = [(matrix != 0) & ~np.eye(60, dtype=bool) for matrix in left]
    assert not np.array_equal(pattern[0], pattern[1])
    edges = (A != 0).sum() / 2
    for matrix, kept in zip(left, pattern, strict=True):
        assert np.array_equal(kept, kept.T)
        assert not (kept & (A == 0)).any()
        assert abs(kept.sum() / 2 - edges / 2) < 4 * np.sqrt(edges / 4)
        np.testing.assert_allclose(matrix, dense_transition(A * kept), rtol=1e-12)
    layer = Propagation(graph, 0.1, Chebyshev(1e-10), dropout=0.5, seed=11)
    layer.passes = 4
    H = np.random.default_rng(0).standard_normal((60, 3))
    np.testing.assert_allclose(layer(torch.from_numpy(H)).numpy(), exact_twin(left[0], H, 0.1), atol=1e-8)


def test_an_edge_that_is_the_last_of_a_node_may_be_dropped_without_self_loops():
    from pprop.kernels import Draw
    from pprop.propagation import PPROperator

    pair = Graph.from_scipy(sparse.csr_array([[0, 1], [1, 0]]))
    operator = PPROperator(pair, 0.1, "row", self_loops=False)
    seen = {
        tuple(operator.dropped(Draw(torch.tensor([seed]), 0, 0.5), 0).to_scipy().toarray().ravel())
        for seed in range(20)
    }
    assert seen == {(0.0, 1.0, 1.0, 0.0), (1.0, 0.0, 0.0, 1.0)}


def test_power_steps_are_what_they_were(make_random, dense_transition, power_twin):
    graph, A = make_random(60)
    H = np.random.default_rng(0).standard_normal((60, 3))
    solution = solve(graph, H, 0.1, PowerIteration(5))
    np.testing.assert_allclose(solution.value, power_twin(dense_transition(A), H, 0.1, 5), rtol=0, atol=1e-14)
    assert solution.outcome.value == "fixed steps"
    assert not hasattr(solution, "certificate")
