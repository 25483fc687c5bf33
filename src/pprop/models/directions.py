"""Directions in which features vary the most: a few hundred numbers per node in place of thousands, and a preconditioner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from pprop.models.feature_rows import Device, FeatureRows
from pprop.models.newton_cg import Design

N_DIRECTIONS = 256  # more cost more to find than they save
PASSES = 2  # over the features, there and back, to find them
SAMPLE = 4096  # rows that are enough to find them


@final
@dataclass(frozen=True)
class Directions:
    """Orthonormal columns V (f, k) along which centred features vary the most; arrays of one device.

    The Hessian of a class is about ``penalty I + curvature V diag(squares) V^T``, whose eigenvalues differ by a factor of
    hundreds: diffused features are nearly alike. In V it is nearly diagonal. What is found is the same for any V.

    Attributes
    ----------
    centre
        Mean of the features, (f,). Without it, the first direction and the intercept would be nearly the same.
    columns
        V.
    squares
        Mean square of the centred features along each, (k,).
    others
        That along a direction orthogonal to all of them, on average.
    """

    centre: Any
    columns: Any
    squares: Any
    others: float

    def turned(self, features: Any) -> Any:
        """Return the centred features along the directions, (n, k)."""
        return features @ self.columns - self.centre @ self.columns

    def inside(self, coefficients: Any) -> Any:
        """Return coefficients (c, f) along the directions, (c, k)."""
        return coefficients @ self.columns

    def back(self, inside: Any) -> Any:
        """Return coefficients (c, f) from those along the directions, (c, k)."""
        return inside @ self.columns.T


def leading_directions(features: Any, device: Device, k: int = N_DIRECTIONS) -> Directions:
    """Return about the k leading principal directions of a matrix (n, f), by subspace iteration from fixed numbers.

    Of a large matrix, some thousand rows at equal distances speak for all.

    Examples
    --------
    >>> from pprop.models.feature_rows import CPU
    >>> found = leading_directions(np.array([[3.0, 0.0], [-3.0, 0.0], [1.0, 2.0], [-1.0, -2.0]]), CPU())
    >>> found.squares.round(6)  # eigenvalues of [[5, 1], [1, 2]]
    array([5.302776, 1.697224])
    """
    sample = features[:: -(-int(features.shape[0]) // SAMPLE)]
    n, f = int(sample.shape[0]), int(sample.shape[1])
    xp, centre = device.xp, sample.mean(0)
    sample = sample - centre
    columns = device.put(np.eye(f) if f <= k else np.random.default_rng(0).standard_normal((f, min(k, n))))
    for _ in range(PASSES if f > k else 0):
        columns = xp.linalg.qr(sample.T @ (sample @ columns))[0]
    forth = sample @ columns
    squares, turn = xp.linalg.eigh(forth.T @ forth / n)
    squares, columns = xp.flip(squares, (0,)).clip(0), columns @ xp.flip(turn, (1,))
    others = max(float((sample * sample).sum()) / n - float(squares.sum()), 0.0) / max(f - int(squares.shape[0]), 1)
    return Directions(centre, columns, squares, others)


@final
class Turned(Design):
    """Rows of centred features along the directions: columns are nearly uncorrelated, so a diagonal is enough."""

    def __init__(self, rows: FeatureRows, directions: Directions) -> None:
        self._rows, self._directions = rows, directions

    def times(self, coefficients: Any) -> Any:
        return self._rows.times(coefficients)

    def under(self, left: Any) -> Any:
        return self._rows.under(left)

    def inverse(self, curvature: Any, penalty: float) -> Callable[[Any], Any]:
        diagonal = penalty + curvature[:, None] * self._directions.squares
        return lambda gradient: gradient / diagonal


@final
class Centred(Design):
    """Rows of all centred features: a diagonal along the directions, and one number for what is orthogonal to them."""

    def __init__(self, rows: FeatureRows, directions: Directions) -> None:
        self._rows, self._directions = rows, directions

    def times(self, coefficients: Any) -> Any:
        return self._rows.times(coefficients) - coefficients @ self._directions.centre

    def under(self, left: Any) -> Any:
        return self._rows.under(left) - left.sum(0)[:, None] * self._directions.centre

    def inverse(self, curvature: Any, penalty: float) -> Callable[[Any], Any]:
        known = self._directions
        outside = penalty + curvature[:, None] * known.others
        change = 1 / (penalty + curvature[:, None] * known.squares) - 1 / outside

        def approximate(gradient: Any) -> Any:
            return gradient / outside + known.back(known.inside(gradient) * change)

        return approximate

    def largest(self, of_coefficients: Any, of_intercepts: Any, xp: Any) -> Any:
        """Return that of the features as they are, whose intercept is another one."""
        return super().largest(of_coefficients + of_intercepts[:, None] * self._directions.centre, of_intercepts, xp)
