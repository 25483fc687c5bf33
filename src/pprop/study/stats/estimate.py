"""Means with 95 % intervals: the percentile bootstrap that the paper uses, and Student's t."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from pprop._validate import check_float, check_int, reject


@final
@dataclass(frozen=True)
class Estimate:
    """The mean of some runs, the ends of its 95 % interval, and the number of runs.

    Examples
    --------
    >>> Estimate(mean=85.0, low=84.8, high=85.3, runs=100).below_and_above
    (0.2, 0.3)

    The paper's ± is the larger distance from the mean to an end:

    >>> round(Estimate(mean=0.85, low=0.8475, high=0.852, runs=100).half, 6)
    0.0025
    """

    mean: float
    low: float
    high: float
    runs: int

    @property
    def half(self) -> float:
        """The number behind the paper's ±."""
        return max(self.mean - self.low, self.high - self.mean)

    @property
    def below_and_above(self) -> tuple[float, float]:
        """Distances from the mean to the ends of the interval, for error bars."""
        return round(self.mean - self.low, 12), round(self.high - self.mean, 12)


def estimate(values: ArrayLike) -> Estimate:
    """Return the mean of `values`, shape (R,), with the paper's interval: percentile bootstrap, 1000 resamples.

    Examples
    --------
    >>> estimate([84.0, 86.0])
    Estimate(mean=85.0, low=84.0, high=86.0, runs=2)
    """
    sample = np.asarray(values, dtype=np.float64)
    low, high = bootstrap_interval(sample)
    mean = float(sample.mean())
    # The mean of equal values may lie an ulp outside the interval of their resampled means.
    return Estimate(mean, min(low, mean), max(high, mean), len(sample))


def bootstrap_interval(
    values: ArrayLike, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the mean of `values`, shape (m,).

    Examples
    --------
    >>> low, high = bootstrap_interval([0.74, 0.75, 0.76, 0.77])
    >>> 0.74 <= low < 0.755 < high <= 0.77
    True
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not sample.size or not np.isfinite(sample).all():
        reject("values", "bootstrap_interval", "a one-dimensional array of finite numbers, at least one", sample)
    check_float(level, "level", "bootstrap_interval", "(0, 1)")
    check_int(resamples, "resamples", "bootstrap_interval", low=1)
    random = np.random.default_rng(seed)
    means = random.choice(sample, size=(resamples, len(sample))).mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def student_half(values: ArrayLike) -> float:
    """Return half the 95 % interval of the mean of `values`, shape (m,), by Student's t; infinite for fewer than two.

    Examples
    --------
    >>> round(student_half([1.0, 2.0, 3.0]), 4), student_half([1.0])
    (2.4841, inf)
    """
    sample = np.asarray(values, dtype=np.float64)
    if len(sample) < 2:
        return float("inf")
    return float(stats.t.isf(0.025, len(sample) - 1) * sample.std(ddof=1) / np.sqrt(len(sample)))


def combined_intervals(ours: float, our_half: float, theirs: float, their_half: float) -> float:
    r"""Return how many combined intervals `ours` is above `theirs`.

    The combined interval of two independent means is :math:`\sqrt{h_1^2 + h_2^2}`, as for standard errors. Beyond ±1 the
    two disagree: by chance, one of 20 comparisons of independent samples does so.

    Examples
    --------
    >>> combined_intervals(85.6, 0.3, 85.1, 0.4)
    1.0
    """
    unit = float(np.hypot(our_half, their_half))
    return round((ours - theirs) / unit, 9) if unit > 0 else float("nan")
