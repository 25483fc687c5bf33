"""Solves to a tolerance, on every backend, against dense fixed points and the recurrences in torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pprop.kernels.solves import Limits

ALPHA, N = 0.5, 23
NORMS = {
    "euclidean": lambda mass, Z: np.sqrt((mass[:, None] * Z**2).sum(axis=0)),
    "max": lambda mass, Z: (mass[:, None] * np.abs(Z)).max(axis=0),
    "sum": lambda mass, Z: (mass[:, None] * np.abs(Z)).sum(axis=0),
}


def plain(result):
    """How a solve ended, also that of a backend which computes elsewhere."""
    return getattr(result, "_inner", result)


@pytest.mark.parametrize("weighted", [False, True])
def test_solves_are_as_near_to_the_dense_fixed_point_as_their_residual_proves(
    kernels, dtype, normal, make_graph, weighted, system_of, all_three
):
    system, dense = system_of(make_graph(N, directed=False, weighted=weighted)[0])
    b, b64 = normal(N, 3, dtype=dtype)
    exact = np.linalg.solve(dense, b64)
    solves, limits = kernels.solves(system), Limits(1e-4, 0, 100)
    for solved in all_three(solves, b, limits):
        value = solved.value.cpu()
        error = NORMS["euclidean"](system.measure, value.numpy() - exact)
        rounding = 100 * torch.finfo(dtype).eps * solved.size
        assert value.dtype == dtype
        assert 1 < solved.products < limits.most
        assert (solved.residual <= limits.stop * solved.size).all()
        assert (error <= solved.residual / ALPHA + rounding).all()
        residual = solves.residual(b.double(), value.double())
        np.testing.assert_allclose(residual.numpy(), b64 - dense @ value.double().numpy(), rtol=0, atol=1e-13)


@pytest.mark.parametrize("norm", list(NORMS))
def test_the_contraction_of_a_directed_graph_ends_by_the_norm_it_is_told(kernels, normal, make_graph, norm, system_of):
    measure = np.random.default_rng(3).uniform(0.5, 2.0, N)
    system, dense = system_of(make_graph(N, directed=True, weighted=True)[0], norm=norm, measure=measure)
    b, b64 = normal(N, 3, dtype=torch.float64)
    solved = plain(kernels.solves(system).contraction(b, b, Limits(1e-5, 3, 100)))
    before, state, made = b64, b64 - (dense - np.eye(N)) @ b64, 1
    while True:  # u_(k+1) = u_k + (b - dense u_k)
        size = NORMS[norm](measure, state)
        residual = NORMS[norm](measure, state - before)
        if made >= 3 and (residual <= 1e-5 * size).all():
            break
        before, state, made = state, state + b64 - dense @ state, made + 1
    assert solved.products == made
    np.testing.assert_allclose(solved.value.cpu().numpy(), state, rtol=0, atol=1e-12)
    np.testing.assert_allclose(solved.size, size, rtol=1e-10)
    np.testing.assert_allclose(solved.residual, residual, rtol=1e-6)


def test_products_and_norms_are_those_of_the_recurrences_in_torch(
    kernels, reference, normal, make_graph, system_of, all_three
):
    """Looks every eighth product until 11, then at all."""
    system, _ = system_of(make_graph(N, directed=False, weighted=True)[0], alpha=0.2)
    b, _ = normal(N, 3, dtype=torch.float64)
    limits = Limits(1e-7, 11, 200)
    twins = all_three(reference.solves(system), b, limits)
    assert len({twin.products for twin in twins}) == 3
    for solved, twin in zip(all_three(kernels.solves(system), b, limits), twins, strict=True):
        assert solved.products == twin.products
        np.testing.assert_allclose(solved.value.cpu().numpy(), twin.value.numpy(), rtol=0, atol=1e-12)
        np.testing.assert_allclose(solved.size, twin.size, rtol=1e-10)
        np.testing.assert_allclose(solved.residual, twin.residual, rtol=1e-5)


def test_solves_again_with_the_same_solver_give_the_same_bits(kernels, dtype, normal, make_graph, system_of, all_three):
    solves = kernels.solves(system_of(make_graph(N, directed=False, weighted=False)[0])[0])
    limits, b, other = Limits(1e-4, 9, 100), normal(N, 3, dtype=dtype)[0], normal(N, 3, dtype=dtype)[0]
    first = all_three(solves, b, limits)
    all_three(solves, other, Limits(1e-3, 2, 7))  # leaves nothing behind
    for again, before in zip(all_three(solves, b, limits), first, strict=True):
        assert again.products == before.products
        assert torch.equal(again.value, before.value)
        assert np.array_equal(again.residual, before.residual)
        assert np.array_equal(again.size, before.size)


@pytest.mark.parametrize("most", [1, 9])
def test_a_solve_ends_at_the_most_products(kernels, normal, make_graph, most, system_of, all_three):
    system, dense = system_of(make_graph(N, directed=False, weighted=False)[0], alpha=0.1)
    b, b64 = normal(N, 3, dtype=torch.float64)
    chebyshev, gradients, contraction = all_three(kernels.solves(system), b, Limits(1e-14, 4, most))
    for solved in (chebyshev, gradients):
        assert solved.products == most
        residual = NORMS["euclidean"](system.measure, b64 - dense @ solved.value.cpu().numpy())
        np.testing.assert_allclose(solved.residual, residual, rtol=1e-6)
    assert contraction.products == most
    steps = np.linalg.matrix_power(np.eye(N) - dense, most) @ b64
    steps += sum(np.linalg.matrix_power(np.eye(N) - dense, k) @ b64 for k in range(most))
    np.testing.assert_allclose(contraction.value.cpu().numpy(), steps, rtol=0, atol=1e-12)


def test_columns_of_zeros_stay_zero_and_one_that_is_solved_exactly_stays(
    kernels, dtype, normal, make_graph, system_of, all_three
):
    """A node alone: conjugate gradients have its column after one product, with a residual of zero."""
    system, dense = system_of(make_graph(N, directed=False, weighted=False)[0])
    b, b64 = normal(N, 3, dtype=dtype)
    b[:, 0] = 0.0
    b[:, 2] = 0.0
    b[N // 2, 2] = 3.0
    b64 = b.double().numpy()
    for solved in all_three(kernels.solves(system), b, Limits(1e-4, 0, 100)):
        value = solved.value.cpu()
        assert not value[:, 0].any()
        assert solved.residual[0] == solved.size[0] == 0.0
        assert value[N // 2, 2] == pytest.approx(6.0, rel=2e-4)
        assert (value[:, 2] != 0).sum() == 1
        np.testing.assert_allclose(value.double().numpy(), np.linalg.solve(dense, b64), rtol=0, atol=1e-2)
    exact = plain(kernels.solves(system).conjugate_gradient(b, None, Limits(1e-4, 0, 100)))
    assert exact.value[N // 2, 2] == 6.0
    assert exact.residual[2] == 0.0


def test_conjugate_gradients_go_on_from_a_start(kernels, normal, make_graph, system_of):
    system, dense = system_of(make_graph(N, directed=False, weighted=True)[0])
    b, b64 = normal(N, 3, dtype=torch.float64)
    exact = np.linalg.solve(dense, b64)
    start = exact + 1e-3 * normal(N, 3, dtype=torch.float64)[1]
    rest = torch.from_numpy(b64 - dense @ start)
    limits, solves = Limits(1e-9, 0, 100), kernels.solves(system)
    solved = plain(solves.conjugate_gradient(rest, torch.from_numpy(start), limits))
    assert solved.products < plain(solves.conjugate_gradient(b, None, limits)).products
    np.testing.assert_allclose(solved.value.cpu().numpy(), exact, rtol=0, atol=1e-7)
    np.testing.assert_allclose(solved.size, NORMS["euclidean"](system.measure, exact), rtol=1e-8)


def test_what_is_given_is_left_as_it_is_and_need_not_be_contiguous(kernels, normal, make_graph, system_of, all_three):
    system, dense = system_of(make_graph(N, directed=False, weighted=False)[0])
    b, b64 = normal(3, N, dtype=torch.float64)
    exact = np.linalg.solve(dense, b64.T)
    for solved in all_three(kernels.solves(system), b.mT, Limits(1e-9, 0, 100)):
        np.testing.assert_allclose(solved.value.cpu().numpy(), exact, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(b.numpy(), b64)
