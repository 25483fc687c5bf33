"""Logistic regression of every class against the rest, all classes as one smooth problem.

    minimise over W, b:   sum_k [ 1/m sum_i log(1 + exp(-s_ik (x_i w_k + b_k))) + |w_k|^2 / (2 C m) ],   s_ik = +-1

The classes share nothing, so the minimum is that of each class alone, as scikit-learn's ``LogisticRegression`` scales it
(mean loss, intercepts free). Together they need two matrix products a step in place of two per class.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from pprop.models.directions import Centred, Directions, Turned
from pprop.models.feature_rows import FeatureRows, Floats
from pprop.models.newton_cg import Fit, minimise

CERTAIN = 50.0
"""Log odds of a class that all training nodes have, and less of one that none has: no regression can be fitted then."""

TOLERANCE = 1e-5
"""Largest entry of the gradient at the end. On two validation splits each of Citeseer and Cora-ML, 1e-6 and 1e-7 changed no
accuracy, while 1e-4, scikit-learn's default, gave 0.3 and 0.1 points more: diffused features are small, and so is their
gradient, wherever one ends (``experiments/bootstrapped_fp_c.py --tolerance``)."""

SHARPER = 0.1  # tolerance along the directions, where steps are cheap, as a part of the whole one


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
    features
        All features and those along the directions (`Directions.turned`), as rows without nodes yet.
    directions
        Those of the features. They change how long it takes, not what is found.

    Examples
    --------
    See `fit_one_vs_rest`.
    """

    def __init__(self, features: tuple[FeatureRows, FeatureRows], directions: Directions) -> None:
        self.features, self.turned = features
        self.directions = directions
        self.device = self.features.device

    def add(self, nodes: NDArray[np.int64]) -> None:
        """Take the rows of some nodes along."""
        self.features.add(nodes)
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
    >>> from pprop.models.directions import leading_directions
    >>> from pprop.models.feature_rows import CPU
    >>> features = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> directions = leading_directions(features, CPU())
    >>> rows = LearningRows((FeatureRows(features, CPU()), FeatureRows(directions.turned(features), CPU())), directions)
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
    begin = Regression(start.coefficients[open_ones], np.clip(start.intercepts[open_ones], -CERTAIN, CERTAIN))
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
    device, directions = rows.device, rows.directions
    placed = device.put(signs)
    whole = Centred(rows.features, directions)
    W = device.put(start.coefficients)
    b = device.put(start.intercepts) + W @ directions.centre  # the intercept of centred features
    inside = directions.inside(W)
    outside = W - directions.back(inside)
    begin = Fit(inside, b, whole.times(outside) + rows.turned.times(inside) + b)
    part = minimise(Turned(rows.turned, directions), placed, begin, penalty, SHARPER * tolerance, device.xp)
    whole_part = Fit(outside + directions.back(part.coefficients), part.intercepts, part.odds)
    end = minimise(whole, placed, whole_part, penalty, tolerance, device.xp)
    b = end.intercepts - end.coefficients @ directions.centre
    return Regression(device.get(end.coefficients), device.get(b), end.gradient)
