r"""How far a run computed once more by other arithmetic may be from the first: bounds that were measured.

A run on a GPU and the same run on the CPU have the same initial weights and the same masks; only rounding differs. Most
stay together to the end, but where rounding decides which epoch is kept, or which side of a kink a unit is on, they part,
and then differ at most like two initialisations of one split. So the unit of all bounds is the standard deviation
:math:`\sqrt 2 \sigma` of the difference of two initialisations, :math:`\sigma` being the spread of a cell's runs.
``results/gpu_rows_on_cpu.json`` has the measurement; ``docs/study.md`` says what follows from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
from scipy import stats

from pprop._validate import reject
from pprop.study.cell import Seeds

ROW_FACTOR = 4.0
"""A row's bound in units of the difference of two initialisations; 16 of 8800 such differences are beyond it."""

FALSE_ALARM = 1e-4
"""Probability that rounding alone takes the mean of a sample beyond its bound, for differences of a normal law."""

UNKNOWN_SPREAD = 0.015
"""For a cell with too few rows to tell its spread: about the largest of the published cells that end well."""

_ENOUGH = 10  # degrees of freedom: the estimate of a standard deviation is then within a factor 1.5, nearly always


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
    by_split: dict[int, list[float]] = defaultdict(list)
    for seeds, value in accuracies.items():
        by_split[seeds.split].append(value)
    free = len(accuracies) - len(by_split)
    if free >= _ENOUGH:
        return sqrt(sum(len(some) * float(np.var(some)) for some in by_split.values()) / free)
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
    A single run that parted as far as it may is no systematic error, and more than four standard errors of runs that all
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
    quantile = float(stats.t.isf(FALSE_ALARM / 2, m - 1)) if m > 1 else 0.0
    as_measured = quantile * float(np.std(apart, ddof=1)) / sqrt(m) if m > 1 else 0.0
    return min(all_part, max(as_measured, row_bound(max(sigmas)) / m))
