r"""The spread of a model's runs: how much is the split's and the initialisation's, and how far a repeated run may be off.

A run on a GPU and the same run on the CPU have the same initial weights and the same masks; only rounding differs. Most
stay together to the end, but where rounding decides which epoch is kept, or which side of a kink a unit is on, they part,
and then differ at most like two initialisations of one split. So the unit of the bounds on repeated runs is the standard
deviation :math:`\sqrt 2 \sigma` of the difference of two initialisations, :math:`\sigma` being the spread of a cell's
runs. ``results/gpu_rows_on_cpu.json`` has the measurement; ``docs/study.md`` says what follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pprop._validate import reject
from pprop.study.cell import Seeds
from pprop.study.stats.estimate import bootstrap_interval
from pprop.study.stats.paired import by_split

TAIL = 0.025  # on either side of a 95 % interval

# A row's bound in units of the difference of two initialisations; 67 of 38260 such differences are beyond it.
ROW_FACTOR = 4.0

# Probability that rounding alone takes the mean of a sample beyond its bound, for differences of a normal law.
FALSE_ALARM = 1e-4

# For a cell with too few rows to estimate its spread: about the largest of the published cells that end well.
UNKNOWN_SPREAD = 0.015

_ENOUGH = 10  # degrees of freedom: the estimate of a standard deviation is then within a factor 1.5, nearly always


@final
@dataclass(frozen=True)
class Components:
    """Standard deviations of a metric between splits and between initialisations, with 95 % intervals.

    Attributes
    ----------
    splits, inits
        How many of each; every split has all the initialisations.
    split, init
        The standard deviations, in the unit of the metric.
    split_interval, init_interval
        Their intervals.
    share
        Of the variance of a single run, how much is the split's; NaN if the runs are all alike.
    share_interval
        Its interval.
    """

    splits: int
    inits: int
    split: float
    init: float
    split_interval: tuple[float, float]
    init_interval: tuple[float, float]
    share: float
    share_interval: tuple[float, float]


def variance_components(values: Mapping[Seeds, float]) -> Components | None:
    r"""Divide the variance of runs into that of splits and that of initialisations.

    One-way random effects, by the analysis of variance: with s splits of r initialisations each, ``MS_between`` and
    ``MS_within`` estimate :math:`\sigma^2 + r\,\sigma_s^2` and :math:`\sigma^2`, hence

    .. math:: \hat\sigma_s^2 = \max\bigl(0, (MS_{between} - MS_{within}) / r\bigr), \quad
              \hat\sigma^2 = MS_{within}.

    The intervals suppose normal deviations. That of :math:`\sigma` (chi-squared with s (r - 1) degrees of freedom) and
    that of the share :math:`\sigma_s^2 / (\sigma_s^2 + \sigma^2)` (F with s - 1 and s (r - 1)) are then exact [1]_. That
    of :math:`\sigma_s` is the modified large-sample interval of a difference of mean squares [2]_.

    In simulated studies of 20 splits with 5 initialisations (``experiments/variance_coverage.py``) the latter holds the
    truth in 94 to 95 %, for any ratio of the two deviations; resampling the 20 splits does so in 84 to 86 %, and
    Satterthwaite's approximation in 72 % where the splits differ little. Heavy tails make all of them too narrow: with
    Student's t of 5 degrees of freedom the three intervals hold it in 84 to 94 % (splits), 81 % (initialisations) and
    83 to 94 % (share), and resampling in 78 to 85 %.

    Parameters
    ----------
    values
        The metric of each run.

    Returns
    -------
    Components, or None where the design does not allow them: splits with different numbers of initialisations, fewer
    than two splits, or fewer than two initialisations.

    References
    ----------
    .. [1] Searle, Casella and McCulloch. Variance Components. Wiley, 1992. Section 3.6.
    .. [2] Ting, Burdick, Graybill, Jeyaratnam and Lu. Confidence intervals on linear combinations of variance
       components that are unrestricted in sign. Journal of Statistical Computation and Simulation 35, 1990.

    Examples
    --------
    >>> runs = {Seeds(s, i): 0.8 + 0.01 * s + 0.001 * i for s in range(20) for i in range(5)}
    >>> parts = variance_components(runs)
    >>> round(parts.split, 3), round(parts.init, 4), round(parts.share, 2)
    (0.059, 0.0016, 1.0)
    >>> [round(end, 3) for end in parts.split_interval]
    [0.045, 0.086]
    """
    table = _balanced(values)
    if table is None:
        return None
    splits, inits = table.shape
    within = float(table.var(axis=1, ddof=1).mean())
    between = float(inits * table.mean(axis=1).var(ddof=1))
    split = max(0.0, (between - within) / inits)
    degrees = splits * (inits - 1)
    split_interval = _split_interval(between, within, splits, inits)
    init_interval = _roots(degrees * within / stats.chi2.isf([TAIL, 1 - TAIL], degrees))
    share = split / (split + within) if split + within > 0 else float("nan")
    share_interval = _share_interval(between, within, splits, inits)
    return Components(splits, inits, sqrt(split), sqrt(within), split_interval, init_interval, share, share_interval)


@final
@dataclass(frozen=True)
class Tails:
    """How far initialisations deviate from normally: the kurtosis (3 if they do not), and an interval without that.

    Attributes
    ----------
    kurtosis
        Of the deviations from the mean of their split.
    interval
        Of the standard deviation between initialisations: percentile bootstrap over splits, for many of them.
    """

    kurtosis: float
    interval: tuple[float, float]


def init_tails(values: Mapping[Seeds, float]) -> Tails | None:
    """Return the tails of the deviations between initialisations; None where `variance_components` is, or if there are none.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(200, 5))
    >>> tails = init_tails({Seeds(split, init): noise[split, init] for split in range(200) for init in range(5)})
    >>> 2.5 < tails.kurtosis < 3.5, tails.interval[0] < 1 < tails.interval[1]
    (True, True)
    """
    table = _balanced(values)
    if table is None:
        return None
    deviations = table - table.mean(axis=1, keepdims=True)
    square = float((deviations**2).mean())
    if not square > 0:
        return None
    low, high = bootstrap_interval(table.var(axis=1, ddof=1), resamples=2000)
    return Tails(float((deviations**4).mean()) / square**2, (low**0.5, high**0.5))


def _balanced(values: Mapping[Seeds, float]) -> NDArray[np.float64] | None:
    """Return the runs as shape (splits, initialisations), or None."""
    splits, inits = sorted({seeds.split for seeds in values}), sorted({seeds.init for seeds in values})
    if len(splits) < 2 or len(inits) < 2 or len(values) != len(splits) * len(inits):
        return None
    return np.array([[values[Seeds(split, init)] for init in inits] for split in splits])


def _split_interval(between: float, within: float, splits: int, inits: int) -> tuple[float, float]:
    """Return the modified large-sample interval of the root of (between - within) / inits, cut off at 0.

    Its constants make it exact where one of the two mean squares is nothing beside the other, and where the mean
    squares are as their F test just rejects.
    """
    above, below = splits - 1, splits * (inits - 1)
    g1, g2 = (1 - df / float(stats.chi2.isf(TAIL, df)) for df in (above, below))
    h1, h2 = (df / float(stats.chi2.ppf(TAIL, df)) - 1 for df in (above, below))
    high, low = float(stats.f.isf(TAIL, above, below)), float(stats.f.ppf(TAIL, above, below))
    g12 = ((high - 1) ** 2 - g1**2 * high**2 - h2**2) / high
    h12 = ((1 - low) ** 2 - h1**2 * low**2 - g2**2) / low
    down = g1**2 * between**2 + h2**2 * within**2 + g12 * between * within
    up = h1**2 * between**2 + g2**2 * within**2 + h12 * between * within
    ends = between - within + np.array([-1.0, 1.0]) * np.sqrt(np.maximum(0.0, [down, up]))
    return _roots(np.maximum(0.0, ends / inits))


def _share_interval(between: float, within: float, splits: int, inits: int) -> tuple[float, float]:
    """Return the interval of the splits' share from that of the ratio of both variances."""
    above, below = splits - 1, splits * (inits - 1)
    if not between + within > 0:
        return float("nan"), float("nan")
    high, low = (float(quantile(TAIL, above, below)) for quantile in (stats.f.isf, stats.f.ppf))
    ends = [(between - each * within) / (between + (inits - 1) * each * within) for each in (high, low)]
    return max(0.0, ends[0]), max(0.0, ends[1])


def _roots(variances: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.sqrt(variances)
    return float(low), float(high)


def spread(accuracies: Mapping[Seeds, float]) -> float:
    r"""Return the standard deviation between initialisations of one split, :math:`\sigma`.

    Where too few splits have several runs it is that of all runs, which is larger; where there are too few runs for that,
    `UNKNOWN_SPREAD`.

    Parameters
    ----------
    accuracies
        Of the runs of one cell.

    Examples
    --------
    >>> round(spread({Seeds(split, init): 0.1 * split + 0.02 * init for split in range(10) for init in (0, 1)}), 4)
    0.0141
    >>> round(spread({Seeds(split, 0): 0.8 + 0.01 * split for split in range(11)}), 4), spread({Seeds(1, 0): 0.8})
    (0.0332, 0.015)
    """
    groups = by_split(accuracies).values()
    free = len(accuracies) - len(groups)
    if free >= _ENOUGH:
        return sqrt(sum(len(some) * float(np.var(some)) for some in groups) / free)
    if len(accuracies) > _ENOUGH:
        return float(np.std(list(accuracies.values()), ddof=1))
    return UNKNOWN_SPREAD


def row_bound(sigma: float) -> float:
    r"""Return how far apart the accuracies of one run may be: :math:`4 \sqrt 2 \sigma`.

    >>> round(row_bound(0.005), 4)
    0.0283
    """
    return ROW_FACTOR * sqrt(2) * sigma


def mean_bound(apart: Sequence[float], sigmas: Sequence[float]) -> float:
    r"""Return how far from 0 the mean difference of a sample of m runs may be.

    A systematic error of a backend shows here first: it adds up, and rounding does not. The test is Student's, with the
    sample's own standard deviation s and the quantile t of `FALSE_ALARM`, since some models part often and some never.
    A single run at its bound is no systematic error, and more than four standard errors of runs that all
    part is one in any case:

    .. math:: \min\Bigl(\tfrac{4}{m} \sqrt{\textstyle\sum_i 2 \sigma_i^2},\;
              \max\bigl(t_{m-1}\, s / \sqrt m,\; \tfrac{1}{m} \max_i 4 \sqrt 2 \sigma_i\bigr)\Bigr)

    Parameters
    ----------
    apart
        The differences, shape (m,).
    sigmas
        The spreads of their cells, shape (m,).

    Examples
    --------
    >>> round(mean_bound([0.001], [0.005]), 4), round(mean_bound([0.001, -0.001] * 50, [0.005] * 100), 4)
    (0.0283, 0.0004)
    """
    m = len(sigmas)
    if not 0 < m == len(apart):
        reject("apart", "mean_bound", "a sequence of numbers, one for each spread and at least one", apart)
    all_part = ROW_FACTOR * sqrt(2 * sum(sigma**2 for sigma in sigmas)) / m
    as_measured = float(stats.t.isf(FALSE_ALARM / 2, m - 1)) * float(np.std(apart, ddof=1)) / sqrt(m) if m > 1 else 0.0
    return min(all_part, max(as_measured, row_bound(max(sigmas)) / m))
