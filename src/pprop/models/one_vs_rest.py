"""Logistic regression of every class against the rest, all classes as one smooth problem.

    minimise over W, b:   sum_k [ 1/m sum_i log(1 + exp(-s_ik (x_i w_k + b_k))) + |w_k|^2 / (2 C m) ],   s_ik = +-1

The classes share nothing, so the minimum is that of each class alone, as scikit-learn's ``LogisticRegression`` scales it
(mean loss, intercepts free). Together they need two matrix products a step in place of two per class.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, special

from pprop.models.feature_rows import Device, FeatureRows, Floats

__all__ = ["CERTAIN", "TOLERANCE", "Directions", "Regression", "fit_one_vs_rest", "leading_directions"]

CERTAIN = 50.0
"""Log odds of a class that all training nodes have, and less of one that none has: no regression can be fitted then."""

TOLERANCE = 1e-5
"""Largest entry of the gradient at the end. On two validation splits each of Citeseer and Cora-ML, 1e-6 and 1e-7 changed no
accuracy, while 1e-4, scikit-learn's default, gave 0.3 and 0.1 points more: diffused features are small, and so is their
gradient, wherever one ends (``experiments/bootstrapped_fp_c.py --tolerance``)."""

MOST_STEPS = 5000
N_DIRECTIONS = 64  # more cost more to find than they save
TYPICAL_CURVATURE = 0.05  # of the loss at a node, between 1/4 where it is undecided and 0 where it is certain


@final
@dataclass(frozen=True)
class Regression:
    """Coefficients (c, f) and intercepts (c,) of the classes' log odds, and the largest entry of the gradient there."""

    coefficients: Floats
    intercepts: Floats
    gradient: float = 0.0


@final
@dataclass(frozen=True)
class Directions:
    """Orthonormal columns V (f, k) along which features vary the most, and the mean square of the features in each, (k,).

    The Hessian of a class is about ``I + C m TYPICAL_CURVATURE V diag(squares) V^T``, whose eigenvalues differ by a factor
    of hundreds: diffused features are nearly alike. In coordinates where that is the identity, L-BFGS needs a tenth of
    the steps. The minimum is the same in any coordinates.
    """

    columns: Floats
    squares: Floats

    def scaled(self, coefficients: Floats, by: Floats) -> Floats:
        """Return coefficients (c, f) with their part in each direction multiplied by a number."""
        return coefficients + ((coefficients @ self.columns) * (by - 1)) @ self.columns.T


def leading_directions(features: Any, device: Device, k: int = N_DIRECTIONS) -> Directions:
    """Return about the k leading right singular vectors of a matrix (n, f), by subspace iteration from fixed numbers.

    Examples
    --------
    >>> from pprop.models.feature_rows import CPU
    >>> found = leading_directions(np.diag([3.0, 2.0, 1.0]), CPU())
    >>> found.squares.round(6)  # 9 / 3, 4 / 3, 1 / 3
    array([3.      , 1.333333, 0.333333])
    """
    n, f = int(features.shape[0]), int(features.shape[1])
    columns = np.random.default_rng(0).standard_normal((f, min(k, n, f)))
    for _ in range(3):
        forth = features @ device.put(columns)
        columns = _orthonormal(device.get(features.T @ forth))
    forth = device.get(features @ device.put(columns))
    _, singular, turned = linalg.svd(forth, full_matrices=False)
    return Directions(np.ascontiguousarray(columns @ turned.T), singular**2 / n)


def fit_one_vs_rest(
    rows: FeatureRows,
    classes: NDArray[np.int64],
    start: Regression,
    directions: Directions,
    inverse_penalty: float,
    tolerance: float = TOLERANCE,
) -> Regression:
    """Return the minimum, to the tolerance. A class that all rows or none have gets log odds of +-`CERTAIN` everywhere.

    Parameters
    ----------
    rows
        What is learnt from, shape (m, f).
    classes
        Of each row, shape (m,).
    start
        Where to begin, such as the solution for fewer rows.
    directions
        Those of the features. They change how long it takes, not what is found.
    inverse_penalty
        scikit-learn's C.
    tolerance
        Largest entry of the gradient that is left.

    Examples
    --------
    >>> from pprop.models.feature_rows import CPU
    >>> features = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> rows = FeatureRows(features, CPU())
    >>> rows.add(np.arange(4))
    >>> nothing = Regression(np.zeros((2, 1)), np.zeros(2))
    >>> found = fit_one_vs_rest(rows, np.array([0, 0, 1, 1]), nothing, leading_directions(features, CPU()), 1.0)
    >>> found.coefficients.round(3).ravel(), (-found.intercepts / found.coefficients[:, 0]).round(3)
    (array([-0.958,  0.958]), array([1.5, 1.5]))
    """
    n_classes, m = len(start.intercepts), len(classes)
    members = np.bincount(classes, minlength=n_classes)
    coefficients = np.zeros_like(start.coefficients)
    intercepts = np.where(members == m, CERTAIN, -CERTAIN)
    open_ones = np.flatnonzero((members > 0) & (members < m))
    if not len(open_ones):
        return Regression(coefficients, intercepts)
    signs = np.where(classes[:, None] == open_ones, 1.0, -1.0)
    problem = _Problem(rows, signs, directions, inverse_penalty, tolerance)
    point = problem.point(start.coefficients[open_ones], np.clip(start.intercepts[open_ones], -CERTAIN, CERTAIN))
    coefficients[open_ones], intercepts[open_ones], left = problem.minimum(point)
    return Regression(coefficients, intercepts, left)


@final
class _Problem:
    """The loss of some classes in coordinates whose scales are alike."""

    def __init__(
        self, rows: FeatureRows, signs: Floats, directions: Directions, inverse_penalty: float, tolerance: float
    ) -> None:
        self._rows, self._signs, self._directions, self._tolerance = rows, signs, directions, tolerance
        self._penalty = 1 / (inverse_penalty * rows.count)
        total = inverse_penalty * rows.count * TYPICAL_CURVATURE
        self._along = 1 / np.sqrt(1 + total * directions.squares)
        self._of_intercept = float(1 / np.sqrt(1 + total))
        self._left = np.inf

    def point(self, coefficients: Floats, intercepts: Floats) -> Floats:
        """Return coefficients and intercepts as one vector of the scaled coordinates."""
        scaled = self._directions.scaled(coefficients, 1 / self._along)
        return np.concatenate([scaled.ravel(), intercepts / self._of_intercept])

    def minimum(self, point: Floats) -> tuple[Floats, Floats, float]:
        """Return coefficients, intercepts, and the largest entry of the gradient there."""

        def enough(xk: Floats) -> None:  # after a step, whose end is where the loss was computed last
            if self._left <= self._tolerance:
                raise StopIteration

        # It ends by `enough`, or where float64 cannot tell two losses apart.
        found = optimize.minimize(
            self._loss,
            point,
            jac=True,
            method="L-BFGS-B",
            callback=enough,
            options={"maxiter": MOST_STEPS, "maxfun": 2 * MOST_STEPS, "gtol": 0.0, "ftol": 0.0, "maxls": 50},
        )
        point = np.asarray(found.x, dtype=np.float64)
        if self._left > self._tolerance:
            self._loss(point)  # the last one computed may have been a step too far
        if self._left > self._tolerance:
            warnings.warn(
                f"A logistic regression ended with a gradient of {self._left:.1e}, above {self._tolerance:.1e}. "
                "A smaller C makes it easier.",
                RuntimeWarning,
                stacklevel=4,
            )
        return *self._split(point), self._left

    def _split(self, point: Floats) -> tuple[Floats, Floats]:
        c, f = self._signs.shape[1], self._rows.shape[1]
        coefficients = self._directions.scaled(point[: c * f].reshape(c, f), self._along)
        return coefficients, point[c * f :] * self._of_intercept

    def _loss(self, point: Floats) -> tuple[float, Floats]:
        W, b = self._split(point)
        m = self._rows.count
        margins = self._signs * (self._rows.times(np.ascontiguousarray(W.T)) + b)
        loss = -special.log_expit(margins).sum() / m + self._penalty / 2 * (W * W).sum()
        slopes = self._signs * special.expit(-margins) / -m
        gradient = self._rows.under(slopes) + self._penalty * W
        of_b = slopes.sum(axis=0)
        self._left = float(max(np.abs(gradient).max(initial=0.0), np.abs(of_b).max()))
        scaled = self._directions.scaled(gradient, self._along)
        return float(loss), np.concatenate([scaled.ravel(), of_b * self._of_intercept])


def _orthonormal(columns: Floats) -> Floats:
    return np.asarray(linalg.qr(columns, mode="economic")[0], dtype=np.float64)
