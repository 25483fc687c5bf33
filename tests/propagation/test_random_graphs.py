"""Explanations, certain entries and gradients on random graphs: directed or not, weighted or not, with isolated nodes."""

from __future__ import annotations

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
    ToleranceError,
    ppr,
    propagate,
)
from pprop.propagation.attribution import Attributor
from pprop.propagation.operator import PPROperator

pytestmark = pytest.mark.slow

CASES = 40
SINGLE = 1e-8  # of rows of Pi that are summed up whole


@pytest.fixture
def random_case(dense_transition):
    """A random graph with its normalisation, self-loops, alpha and dense T."""

    def make(rng):
        n, directed, weighted = int(rng.integers(1, 25)), rng.random() < 0.5, rng.random() < 0.5
        A = np.zeros((n, n))
        linked = rng.random((n, n)) < rng.uniform(0.02, 0.6)
        A[linked] = 10.0 ** rng.uniform(-2.0, 2.0, int(linked.sum())) if weighted else 1.0
        if rng.random() < 0.6:
            np.fill_diagonal(A, 0.0)
        if rng.random() < 0.4:
            alone = int(rng.integers(n))
            A[alone] = A[:, alone] = 0.0
        whole = A if directed else np.triu(A) + np.triu(A, 1).T
        graph = Graph.from_scipy(sparse.csr_array(whole), directed=directed)
        normalization, self_loops = str(rng.choice(["sym", "row", "col"])), bool(rng.random() < 0.7)
        alpha = float(rng.uniform(0.02, 0.95))
        return graph, normalization, self_loops, alpha, dense_transition(whole, normalization, self_loops)

    return make


def ppr_matrix(T, alpha):
    return alpha * np.linalg.inv(np.eye(len(T)) - (1 - alpha) * T)


def test_single_contributions_are_those_of_a_dense_row_and_the_fast_ones_miss_no_more_than_they_say(
    random_case, power_twin
):
    rng = np.random.default_rng(0)
    for case in range(CASES):
        graph, normalization, self_loops, alpha, T = random_case(rng)
        n = len(T)
        H = rng.standard_normal((n, 2)) * 10.0 ** rng.uniform(-3, 3, (n, 1)) * (rng.random((n, 1)) < 0.8)
        solver = PowerIteration(int(rng.integers(0, 12))) if case % 2 else Exact()
        P = (
            power_twin(T, np.eye(n), alpha, solver.steps)
            if isinstance(solver, PowerIteration)
            else ppr_matrix(T, alpha)
        )
        attributor = Attributor(H, PPROperator(graph, alpha, normalization, self_loops), solver)
        size = np.abs(H).sum(axis=1)
        for one in attributor.exact(np.arange(n), 5):
            row, scale = P[one.node], np.linalg.norm(P[one.node]) * np.linalg.norm(size) + 1e-300
            assert np.abs(one.contributions - row[one.nodes, None] * H[one.nodes]).max(initial=0.0) <= SINGLE * scale
            assert np.abs(one.contributions.sum(axis=0) + one.others - row @ H).max() <= SINGLE * scale
            rest = np.setdiff1d(np.arange(n), one.nodes)
            named = row[one.nodes] * size[one.nodes]
            assert (np.diff(named) <= SINGLE * scale).all()
            assert (row * size)[rest].max(initial=0.0) <= named.min(initial=np.inf) + SINGLE * scale or len(named) < 5
        for one in attributor.fast(np.arange(n), n, float(10.0 ** rng.uniform(-8, -1))):
            row, found = P[one.node], np.zeros(n)
            found[one.nodes] = one.weights
            assert (found <= row + 1e-12 / alpha * row.max()).all()
            missing = (np.abs(row - found) * size).sum()
            assert missing <= one.error <= missing + 1e-8 * size.max()


def test_entries_that_are_certain_are_among_the_largest_and_ties_are_not(random_case):
    rng, certain = np.random.default_rng(1), 0
    for case in range(CASES):
        graph, normalization, self_loops, alpha, dense = random_case(rng)
        if case % 4 == 0:  # a ring, whose entries are equal in pairs
            n = int(rng.integers(3, 12))
            ring = np.roll(np.eye(n), 1, axis=0) + np.roll(np.eye(n), -1, axis=0)
            graph, normalization, self_loops = Graph.from_scipy(sparse.csr_array(ring)), "row", False
            dense = ring / 2
        n, P = len(dense), ppr_matrix(dense, alpha)
        k, eps = int(rng.integers(1, n + 2)), float(10.0 ** rng.uniform(-8, -1))
        rows = ppr(graph, np.arange(n), alpha, eps, k, normalization, self_loops)
        assert rows.certified is not None
        assert rows.certain_entries is not None
        for i in range(n):
            one, noise = rows.matrix[[i]], 1e-13 / alpha * P[i].max()
            sure = one.indices[np.argsort(-one.data)[: rows.certain_entries[i]]]
            for j in sure:
                assert (P[i] > P[i, j] - noise).sum() <= k  # those that are as large, itself and ties with it
            certain += len(sure)
            if rows.certified[i]:
                left_out = np.setdiff1d(np.arange(n), one.indices)
                assert P[i, left_out].max(initial=0.0) <= P[i, one.indices].min() + noise
    assert certain > 1000


def test_a_gradient_is_within_the_tolerance_of_the_dense_adjoint(random_case):
    """In the norm of the transpose: the 1-norm for "row" by contraction, and so on."""
    rng = np.random.default_rng(2)
    for case in range(CASES):
        graph, normalization, self_loops, alpha, T = random_case(rng)
        n, weights = len(T), np.ones(len(T))
        solver = Contraction if graph.directed else (Chebyshev, ConjugateGradient, Contraction)[case % 3]
        order = {"sym": 2, "row": 1, "col": np.inf}[normalization] if solver is Contraction else 2
        if solver is not Contraction and normalization != "sym":
            row_stochastic = PPROperator(graph, alpha, "row", self_loops).transition
            weights = row_stochastic.row_scale ** (0.5 if normalization == "row" else -0.5)
        dtype, tol = (torch.float32, 3e-3) if case % 4 == 0 else (torch.float64, float(10.0 ** rng.uniform(-11, -2)))
        H = torch.zeros(n, 3, dtype=dtype, requires_grad=True)
        G = torch.from_numpy(rng.standard_normal((n, 3)) * 10.0 ** rng.uniform(-6, 6, 3)).to(dtype)
        propagate(graph, H, alpha, solver(tol), normalization, self_loops).backward(G)
        assert H.grad is not None
        exact = ppr_matrix(T, alpha).T @ G.double().numpy()
        error = weights[:, None] * (H.grad.double().numpy() - exact)
        sizes = [np.linalg.norm(one, order, axis=0) for one in (error, weights[:, None] * exact)]
        assert (sizes[0] <= tol * sizes[1]).all()


@pytest.mark.parametrize("solver", [ConjugateGradient, Contraction])
def test_a_backward_pass_that_misses_the_tolerance_says_so(make_random, solver):
    graph, _ = make_random(60)
    H = torch.ones(60, 3, dtype=torch.float64, requires_grad=True)
    Z = propagate(graph, H, 0.1, solver(1e-9, max_products=5), "row")  # ones stay what they are
    with pytest.raises(ToleranceError, match=r"relative error of 1e-09 .* in 5 products"):
        Z.backward(torch.eye(60, 3, dtype=torch.float64))


@pytest.mark.parametrize("solver", [Chebyshev, ConjugateGradient, Contraction])
def test_a_gradient_that_is_not_finite_is_refused_by_its_name(make_random, solver):
    graph, _ = make_random(60)
    H = torch.ones(60, 3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(InputError, match=f"The 'gradient' parameter of {solver.__name__} must be free of NaN"):
        propagate(graph, H, 0.1, solver()).backward(torch.full((60, 3), float("nan"), dtype=torch.float64))
