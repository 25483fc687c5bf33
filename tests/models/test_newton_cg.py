"""The optimiser alone, against a general one from scipy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
import pytest
import torch
from scipy import optimize, special

from pprop.models.feature_rows import Design
from pprop.models.one_vs_rest import Fit, minimise

M, F, PENALTY, TIGHT = 80, 6, 0.01, 1e-10


@final
class Plain(Design):
    """A matrix, of which nothing is known."""

    def __init__(self, matrix: Any) -> None:
        self._matrix, self.products = matrix, 0

    def times(self, coefficients: Any) -> Any:
        self.products += 1
        return self._matrix @ coefficients.T

    def under(self, left: Any) -> Any:
        return left.T @ self._matrix

    def inverse(self, curvature: Any, penalty: float) -> Callable[[Any], Any]:
        return lambda gradient: gradient


@pytest.fixture
def problem() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, F)) * [1.0, 1.0, 1.0, 3.0, 3.0, 0.1]
    odds = X @ rng.standard_normal((F, 3)) + [0.0, 2.0, -1.0]
    return X, np.where(odds + rng.logistic(size=odds.shape) > 0, 1.0, -1.0)


def expected(X: Any, signs: Any, offset: Any = 0.0) -> Any:
    def loss(point: Any) -> float:
        return -special.log_expit(signs * (X @ point[:F] + point[F] + offset)).mean() + PENALTY / 2 * (
            point[:F] @ point[:F]
        )

    return optimize.minimize(loss, np.zeros(F + 1), tol=1e-12).x


def at(X: Any, W: Any, b: Any, offset: Any = 0.0) -> Fit:
    return Fit(W, b, X @ W.T + b + offset)


@pytest.mark.parametrize("far", [0.0, 1.0, 1000.0])
def test_the_minimum_of_every_class_is_found_from_near_and_far(problem: tuple[Any, Any], far: float):
    X, signs = problem
    rng = np.random.default_rng(1)
    start = at(X, far * rng.standard_normal((3, F)), far * rng.standard_normal(3))
    found = minimise(Plain(X), signs, start, PENALTY, TIGHT, np)
    assert found.gradient <= TIGHT
    for code in range(3):
        point = np.append(found.coefficients[code], found.intercepts[code])
        np.testing.assert_allclose(point, expected(X, signs[:, code]), atol=1e-4)
    np.testing.assert_allclose(found.odds, X @ found.coefficients.T + found.intercepts, atol=1e-9)


def test_what_else_is_in_the_odds_at_the_start_stays_there(problem: tuple[Any, Any]):
    X, signs = problem
    offset = np.random.default_rng(2).standard_normal((M, 3))
    found = minimise(Plain(X), signs, at(X, np.zeros((3, F)), np.zeros(3), offset), PENALTY, TIGHT, np)
    for code in range(3):
        point = np.append(found.coefficients[code], found.intercepts[code])
        np.testing.assert_allclose(point, expected(X, signs[:, code], offset[:, code]), atol=1e-4)


def test_a_start_at_the_minimum_costs_no_product_and_is_kept(problem: tuple[Any, Any]):
    X, signs = problem
    found = minimise(Plain(X), signs, at(X, np.zeros((3, F)), np.zeros(3)), PENALTY, TIGHT, np)
    design = Plain(X)
    again = minimise(design, signs, found, PENALTY, 2 * TIGHT, np)
    assert design.products == 0
    np.testing.assert_array_equal(again.coefficients, found.coefficients)


def test_a_class_that_is_done_stays_where_it_is(problem: tuple[Any, Any]):
    X, signs = problem
    there = minimise(Plain(X), signs, at(X, np.zeros((3, F)), np.zeros(3)), PENALTY, TIGHT, np)
    W, b = there.coefficients.copy(), there.intercepts.copy()
    W[1], b[1] = 5.0, 0.0
    found = minimise(Plain(X), signs, at(X, W, b), PENALTY, 2 * TIGHT, np)
    np.testing.assert_array_equal(found.coefficients[[0, 2]], there.coefficients[[0, 2]])
    np.testing.assert_allclose(found.coefficients[1], there.coefficients[1], atol=1e-6)


def test_it_ends_where_float64_ends(problem: tuple[Any, Any]):
    X, signs = problem
    design = Plain(X)
    found = minimise(design, signs, at(X, np.zeros((3, F)), np.zeros(3)), PENALTY, 0.0, np)
    assert found.gradient < 1e-15
    assert design.products < 2000


def test_torch_goes_the_same_way(problem: tuple[Any, Any]):
    X, signs = problem
    here = minimise(Plain(X), signs, at(X, np.zeros((3, F)), np.zeros(3)), PENALTY, 1e-6, np)
    placed = torch.tensor(X)
    zeros = Fit(torch.zeros(3, F).double(), torch.zeros(3).double(), torch.zeros(M, 3).double())
    there = minimise(Plain(placed), torch.tensor(signs), zeros, PENALTY, 1e-6, torch)
    np.testing.assert_allclose(there.coefficients.numpy(), here.coefficients, rtol=1e-10, atol=1e-12)
    assert there.gradient == pytest.approx(here.gradient, rel=1e-3)
