"""Predictions near the largest number of their type: the same digits as those of ordinary size, or an error."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import pprop
from pprop import Graph, InputError
from pprop.propagation.attribution import Attributor
from pprop.propagation.operator import PPROperator
from pprop.propagation.solvers import Solver

SOLVERS = [
    pprop.PowerIteration(10),
    pprop.Exact(),
    pprop.Chebyshev(1e-4),
    pprop.ConjugateGradient(1e-4),
    pprop.Contraction(1e-4),
]
EACH_SOLVER = pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
LARGEST_POWER = {np.float64: 2.0**1023, np.float32: 2.0**127}
"""By type, the largest power of two."""


def wheel() -> Graph:
    """A hub and eight nodes around it: degrees 9 and 4, self-loops counted."""
    rim = np.arange(1, 9)
    u, v = np.r_[np.zeros(8, int), rim], np.r_[rim, np.roll(rim, 1)]
    return Graph.from_scipy(sp.coo_array((np.ones(32), (np.r_[u, v], np.r_[v, u])), shape=(9, 9)))


@EACH_SOLVER
@pytest.mark.parametrize("dtype", LARGEST_POWER)
def test_a_mean_of_the_largest_numbers_has_the_digits_of_the_same_mean_of_small_ones(
    solver: Solver, dtype: type
) -> None:
    power = LARGEST_POWER[dtype]
    small = np.array([[1.5, 0.0, 1.0]] * 9, dtype=dtype)
    small[::4, 0] = -1.9
    small[3, 1] = 2.0**-80  # a column of ordinary size keeps its own
    large = small * np.array([power, 1.0, 1.0], dtype=dtype)
    expected = pprop.propagate(wheel(), small, 0.1, solver, "row")
    actual = pprop.propagate(wheel(), large, 0.1, solver, "row")
    np.testing.assert_array_equal(actual, expected * np.array([power, 1.0, 1.0], dtype=dtype))


def test_a_constant_near_the_limit_stays_what_it_is_in_a_row_stochastic_graph() -> None:
    Z = pprop.propagate(wheel(), np.full((9, 3), 1.7e308), normalization="row")
    np.testing.assert_allclose(Z, 1.7e308, rtol=1e-14)


@EACH_SOLVER
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_result_beyond_the_type_is_an_error(solver: Solver, dtype: type) -> None:
    H = np.full((9, 3), np.finfo(dtype).max * 0.99, dtype=dtype)  # the hub of A_hat gets up to 1.4 times as much
    with pytest.raises((InputError, pprop.ToleranceError)):
        pprop.propagate(wheel(), H, 0.1, solver if dtype != np.float16 else pprop.PowerIteration(10), "sym")


def test_the_error_names_the_type_and_the_remedy() -> None:
    with pytest.raises(
        InputError, match=r"finite in float32. Got values up to 3.*Divide H by a constant, or use float64"
    ):
        pprop.propagate(wheel(), np.full((9, 3), 3e38, dtype=np.float32))


def test_the_residual_of_large_numbers_is_that_of_small_ones() -> None:
    H = np.random.default_rng(0).normal(size=(9, 3))
    small, large = (pprop.solve(wheel(), H * unit).statistics for unit in (1.0, 2.0**1000))
    assert large.residual == small.residual * 2.0**1000
    assert small.residual > 0


def test_gradients_flow_through_large_predictions() -> None:
    H = torch.full((9, 3), 1.7e308, dtype=torch.float64, requires_grad=True)
    (pprop.propagate(wheel(), H, 0.1, normalization="row") / 2.0**1000).sum().backward()
    ones = torch.ones(9, 3, dtype=torch.float64, requires_grad=True)
    pprop.propagate(wheel(), ones, 0.1, normalization="row").sum().backward()
    assert H.grad is not None
    assert ones.grad is not None
    torch.testing.assert_close(H.grad * 2.0**1000, ones.grad, rtol=1e-15, atol=0.0)


def test_an_explanation_of_sums_beyond_float64_is_refused() -> None:
    with pytest.raises(InputError, match="predictions have finite sums in float64"):
        Attributor(np.full((9, 3), 1.7e308), PPROperator(wheel(), 0.1, "row"), pprop.Exact())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("solver", SOLVERS[:2])
def test_a_module_lets_nan_and_infinity_through_as_torch_does(bad: float, solver: Solver) -> None:
    H = torch.ones(9, 3)
    H[3, 1] = bad
    Z = pprop.Propagation(wheel(), 0.1, solver)(H)
    assert not torch.isfinite(Z[:, 1]).any()
    assert torch.isfinite(Z[:, [0, 2]]).all()
