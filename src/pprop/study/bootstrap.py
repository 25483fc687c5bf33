"""How sure one may be of a mean: the percentile bootstrap that the paper uses."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pprop._validate import check_float, check_int, reject

__all__ = ["bootstrap_interval"]


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
