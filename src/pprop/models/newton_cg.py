"""Newton's method for logistic regressions of several classes at once, its steps by conjugate gradients.

Every class has its own step lengths, so that none waits for another; together they share the two products of an iteration.
The code is one for numpy and torch: large arrays stay where they are, and a few numbers a step come to the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

MOST_STEPS = 200
MOST_PRODUCTS = 200  # of the Hessian and a vector, per step
SOLVED = 0.03  # part of the gradient that a step may leave of its own linear system, while the end is far
NO_GAIN = 5  # steps that may go by without a gradient half as large, once float64 tells no losses apart
FLAT = 1e-6  # curvature that a row has at least, for steps: where all are certain and wrong, there is none
OVERSHOT = 0.1  # slope after a step, as a part of the slope before it, of a step that is short enough


class Design(ABC):
    """The matrix of a regression, (m, f), as an operator, and what is known of its spectrum."""

    @abstractmethod
    def times(self, coefficients: Any) -> Any:
        """Return its product with the transpose of coefficients (c, f), shape (m, c)."""

    @abstractmethod
    def under(self, left: Any) -> Any:
        """Return the product of the transpose of a matrix (m, c) and it, shape (c, f)."""

    @abstractmethod
    def inverse(self, curvature: Any, penalty: float) -> Callable[[Any], Any]:
        """Return about the inverse of the Hessians ``X^T D_k X + penalty I``, where D_k has the trace curvature[k]."""

    def largest(self, of_coefficients: Any, of_intercepts: Any, xp: Any) -> Any:
        """Return the largest entry of a gradient, (c,), in the coordinates that the tolerance is meant for."""
        return xp.maximum(xp.amax(abs(of_coefficients), 1), abs(of_intercepts))


@final
@dataclass(frozen=True)
class Fit:
    """A point: coefficients (c, f), intercepts (c,), log odds of the rows there (m, c), and the gradient's largest entry."""

    coefficients: Any
    intercepts: Any
    odds: Any
    gradient: float = float("inf")


def minimise(design: Design, signs: Any, start: Fit, penalty: float, tolerance: float, xp: Any) -> Fit:
    """Return the minimum of the mean logistic loss plus ``penalty |w|^2 / 2``, or the end of what float64 can do.

    Parameters
    ----------
    design
        The rows to learn from, (m, f).
    signs
        +1 where a row has the class, -1 elsewhere, shape (m, c).
    start
        Where to begin; its odds must be those of its coefficients and intercepts, up to a constant per entry that is to stay.
    penalty
        Weight of the squares.
    tolerance
        Largest entry of the gradient at which a class is left alone.
    xp
        numpy or torch.

    Examples
    --------
    >>> import numpy as np
    >>> class Plain(Design):
    ...     X = np.array([[0.0], [1.0], [2.0], [3.0]])
    ...     def times(self, coefficients): return self.X @ coefficients.T
    ...     def under(self, left): return left.T @ self.X
    ...     def inverse(self, curvature, penalty): return lambda gradient: gradient
    >>> signs = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    >>> start = Fit(np.zeros((1, 1)), np.zeros(1), np.zeros((4, 1)))
    >>> found = minimise(Plain(), signs, start, 1 / 4, 1e-9, np)
    >>> found.coefficients.round(3), (-found.intercepts / found.coefficients[:, 0]).round(6)
    (array([[0.958]]), array([1.5]))
    """
    m = int(signs.shape[0])
    at, smallest, waited = start, float("inf"), 0
    for number in range(MOST_STEPS + 1):
        losses, wrong = _losses(signs * at.odds, xp)
        losses = losses.sum(0) / m + penalty / 2 * (at.coefficients**2).sum(1)
        slopes = signs * wrong / -m
        gradient = design.under(slopes) + penalty * at.coefficients, slopes.sum(0)
        left = design.largest(*gradient, xp)
        at = replace(at, gradient=float(left.max()))
        waited = 0 if at.gradient < smallest / 2 else waited + 1
        smallest = min(smallest, at.gradient)
        if at.gradient <= tolerance or number == MOST_STEPS:
            break
        step = _newton_step(design, (wrong * (1 - wrong) + FLAT) / m, gradient, left, penalty, tolerance, xp)
        gain = -_dot(gradient, (step.coefficients, step.intercepts))
        if waited >= NO_GAIN and float((gain - 1e-14 * losses).max()) <= 0:
            break
        at = _moved(at, step, signs, losses, -gain, penalty, xp)
    return at


def _losses(margins: Any, xp: Any) -> tuple[Any, Any]:
    """Return log(1 + exp(-margins)) and its slope but for the sign, exp(-margins) / (1 + exp(-margins))."""
    small = xp.exp(-abs(margins))
    return xp.log1p(small) + (-margins).clip(0), xp.where(margins > 0, small, xp.ones_like(small)) / (1 + small)


def _dot(left: tuple[Any, Any], right: tuple[Any, Any]) -> Any:
    return (left[0] * right[0]).sum(1) + left[1] * right[1]


def _newton_step(
    design: Design, weights: Any, gradient: tuple[Any, Any], left: Any, penalty: float, tolerance: float, xp: Any
) -> Fit:
    """Return a step and what it adds to the odds; zeros for a class that is done.

    A class's system is solved until its residual is a small part of the gradient or half the tolerance: with the
    Hessian of the minimum, that is where the next gradient will be.
    """
    curvature = weights.sum(0)
    approximate = design.inverse(curvature, penalty)
    enough = (SOLVED * left).clip(tolerance / 2)
    x, of_x = xp.zeros_like(gradient[0]), xp.zeros_like(gradient[1])
    added = xp.zeros_like(weights)
    r, of_r = -gradient[0], -gradient[1]
    z, of_z = approximate(r), of_r / curvature
    d, of_d = z, of_z
    rz = _dot((r, of_r), (z, of_z))
    open_ones = left > tolerance
    for _ in range(MOST_PRODUCTS):
        forth = design.times(d) + of_d
        weighted = weights * forth
        back, of_back = design.under(weighted) + penalty * d, weighted.sum(0)
        bend = _dot((d, of_d), (back, of_back))
        open_ones = open_ones & (bend > 0) & (rz > 0)  # zero only by rounding, next to the solution
        length = xp.where(open_ones, rz / xp.where(open_ones, bend, xp.ones_like(bend)), xp.zeros_like(rz))
        x, of_x, added = x + length[:, None] * d, of_x + length * of_d, added + length * forth
        r, of_r = r - length[:, None] * back, of_r - length * of_back
        open_ones = open_ones & (design.largest(r, of_r, xp) > enough)
        if not bool(open_ones.any()):
            break
        z, of_z = approximate(r), of_r / curvature
        following = _dot((r, of_r), (z, of_z))
        ratio = xp.where(open_ones, following / xp.where(open_ones, rz, xp.ones_like(rz)), xp.zeros_like(rz))
        d, of_d, rz = z + ratio[:, None] * d, of_z + ratio * of_d, following
    return Fit(x, of_x, added)


def _moved(at: Fit, step: Fit, signs: Any, losses: Any, slopes: Any, penalty: float, xp: Any) -> Fit:
    """Return where the step ends, shortened for the classes in which it went too far.

    The loss is convex, so that a slope that is still negative says that the loss has fallen all the way: slopes can be
    told apart long after losses cannot. Along the step odds are linear, and a trial needs no product.
    """
    m = int(signs.shape[0])
    square = (at.coefficients**2).sum(1)
    mixed, own = (at.coefficients * step.coefficients).sum(1), (step.coefficients**2).sum(1)
    length = xp.ones_like(slopes)
    for _ in range(60):
        trial, wrong = _losses(signs * (at.odds + length * step.odds), xp)
        trial = trial.sum(0) / m + penalty / 2 * (square + length * (2 * mixed + length * own))
        slope = -(signs * wrong * step.odds).sum(0) / m + penalty * (mixed + length * own)
        good = (slope <= 0) | ((slope <= -OVERSHOT * slopes) & (trial <= losses * (1 + 1e-12)))
        if bool(good.all()):
            break
        secant = (-slopes / xp.where(good, xp.ones_like(slope), slope - slopes)).clip(0.1, 0.9)
        length = xp.where(good, length, length * secant)
    return Fit(
        at.coefficients + length[:, None] * step.coefficients,
        at.intercepts + length * step.intercepts,
        at.odds + length * step.odds,
    )
