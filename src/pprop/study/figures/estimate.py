"""A mean, how sure it is, and how many runs it rests on: what most points of the figures are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from pprop.study.bootstrap import bootstrap_interval

__all__ = ["Estimate", "estimate"]


@final
@dataclass(frozen=True)
class Estimate:
    """The mean of some runs, the ends of its 95 % bootstrap interval, and the number of runs.

    Examples
    --------
    >>> Estimate(mean=85.0, low=84.8, high=85.3, runs=100).below_and_above
    (0.2, 0.3)
    """

    mean: float
    low: float
    high: float
    runs: int

    @property
    def below_and_above(self) -> tuple[float, float]:
        """How far the interval reaches below and above the mean: what error bars are drawn from."""
        return round(self.mean - self.low, 12), round(self.high - self.mean, 12)


def estimate(values: ArrayLike) -> Estimate:
    """Return the mean of `values`, shape (R,), with the paper's interval.

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
