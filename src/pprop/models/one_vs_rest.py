"""Logistic regression of every class against the rest, all classes as one smooth problem, by Newton's method.

    minimise over W, b:   sum_k [ 1/m sum_i log(1 + exp(-s_ik (x_i w_k + b_k))) + |w_k|^2 / (2 C m) ],   s_ik = +-1

The classes share nothing, so the minimum is that of each class alone, as scikit-learn's ``LogisticRegression`` scales it
(mean loss, intercepts free); tests compare the two.

Why not scikit-learn's solver: it fits one class after another, on the CPU alone, and starts each round of bootstrapping
anew. Here all classes share the two matrix products of an iteration, a round starts from the solution of the last one,
most iterations are made along 256 directions instead of thousands of features, and the same code runs on a GPU. The nine
rounds of one bootstrapping on Citeseer (3703 features, 6 classes) take 2.5 s on one core, the search for directions
included; ``LogisticRegression(C=1000, tol=1e-5)``, one class at a time on the same rows, takes 21.9 s. Published rows depend
on the bits of this solver.

A step is found by conjugate gradients. Every class has its own step lengths, so that none waits for another. The code is
one for numpy and torch: large arrays stay where they are, and a few numbers a step come to the host.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop.models.feature_rows import Centred, Design, Device, Directions, Floats, Turned

# Log odds of a class that all training nodes have, and less of one that none has: no regression can be fitted then.
CERTAIN = 50.0

# Largest entry of the gradient at the end. On two validation splits each of Citeseer and Cora-ML, 1e-6 and 1e-7 changed
# no accuracy, while 1e-4, scikit-learn's default, gave 0.3 and 0.1 points more: diffused features are small, and so is
# their gradient, wherever one ends (``experiments/bootstrapped_fp_c.py --tolerance``).
TOLERANCE = 1e-5

SHARPER = 0.1  # tolerance along the directions, where steps are cheap, as a part of the whole one
MOST_STEPS = 200
MOST_PRODUCTS = 200  # of the Hessian and a vector, per step
SOLVED = 0.03  # part of the gradient that a step may leave of its own linear system, while the end is far
NO_GAIN = 5  # steps that may go by without a gradient half as large, once float64 tells no losses apart
FLAT = 1e-6  # curvature that a row has at least, for steps: where all are certain and wrong, there is none
OVERSHOT = 0.1  # slope after a step, as a part of the slope before it, of a step that is short enough


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
        gradient = design.under(slopes) + penalty * at.coefficients, design.intercepts(slopes)
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
        back, of_back = design.under(weighted) + penalty * d, design.intercepts(weighted)
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
    distinguished long after losses cannot be. Along the step odds are linear, and a trial needs no product.
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


@final
@dataclass(frozen=True)
class Regression:
    """Coefficients (c, f) and intercepts (c,) of the classes' log odds, and the largest entry of the gradient there."""

    coefficients: Floats
    intercepts: Floats
    gradient: float = 0.0


@final
class LearningRows:
    """The nodes that regressions learn from, more and more of them, in all features and along some directions.

    Parameters
    ----------
    features, turned
        All features of all nodes, shape (n, f), and those along the directions, (n, k): `Directions.turned`.
    directions
        Those of the features. They change how long it takes, not what is found.
    device
        Where regressions are computed.

    Examples
    --------
    See `fit_one_vs_rest`.
    """

    def __init__(self, features: Any, turned: Any, directions: Directions, device: Device) -> None:
        self.whole, self.turned = Centred(features, directions, device), Turned(turned, directions, device)
        self.directions, self.device = directions, device

    def add(self, nodes: NDArray[np.int64]) -> None:
        """Take the rows of some nodes along."""
        self.whole.add(nodes)
        self.turned.add(nodes)


def fit_one_vs_rest(
    rows: LearningRows,
    classes: NDArray[np.int64],
    start: Regression,
    inverse_penalty: float,
    tolerance: float = TOLERANCE,
) -> Regression:
    """Return the minimum, to the tolerance. A class that all rows or none have gets log odds of +-`CERTAIN` everywhere.

    First the coefficients' part in the directions is fitted, the rest kept as it is: there a step costs a small part of
    one with all features, and little is left to do for those.

    Parameters
    ----------
    rows
        What is learnt from, shape (m, f).
    classes
        Of each row, shape (m,).
    start
        Where to begin, such as the solution for fewer rows.
    inverse_penalty
        scikit-learn's C.
    tolerance
        Largest entry of the gradient that is left.

    Examples
    --------
    >>> from pprop.models.feature_rows import CPU, leading_directions
    >>> features = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> directions = leading_directions(features, CPU())
    >>> rows = LearningRows(features, directions.turned(features), directions, CPU())
    >>> rows.add(np.arange(4))
    >>> found = fit_one_vs_rest(rows, np.array([0, 0, 1, 1]), Regression(np.zeros((2, 1)), np.zeros(2)), 1.0)
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
    certain = CERTAIN if rows.directions.intercepts else 0.0
    begin = Regression(start.coefficients[open_ones], np.clip(start.intercepts[open_ones], -certain, certain))
    found = _fitted(rows, signs, begin, 1 / (inverse_penalty * m), tolerance)
    coefficients[open_ones], intercepts[open_ones] = found.coefficients, found.intercepts
    if found.gradient > tolerance:
        warnings.warn(
            f"A logistic regression ended with a gradient of {found.gradient:.1e}, above {tolerance:.1e}. "
            "A smaller C makes it easier.",
            RuntimeWarning,
            stacklevel=2,
        )
    return Regression(coefficients, intercepts, found.gradient)


def _fitted(rows: LearningRows, signs: Floats, start: Regression, penalty: float, tolerance: float) -> Regression:
    device, directions, whole = rows.device, rows.directions, rows.whole
    placed, W = device.put(signs), device.put(start.coefficients)
    b = device.put(start.intercepts) + W @ directions.centre  # the intercept of centred features
    inside = directions.inside(W)
    outside = W - directions.back(inside)
    begin = Fit(inside, b, whole.times(outside) + rows.turned.times(inside) + b)
    part = minimise(rows.turned, placed, begin, penalty, SHARPER * tolerance, device.xp)
    whole_part = Fit(outside + directions.back(part.coefficients), part.intercepts, part.odds)
    end = minimise(whole, placed, whole_part, penalty, tolerance, device.xp)
    b = end.intercepts - end.coefficients @ directions.centre
    return Regression(device.get(end.coefficients), device.get(b), end.gradient)
