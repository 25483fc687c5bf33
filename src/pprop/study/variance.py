"""Where the spread of a model's runs comes from: the split, or the initialisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from pprop._validate import check_int
from pprop.study.cell import Seeds

__all__ = ["Components", "variance_components"]


@final
@dataclass(frozen=True)
class Components:
    """Standard deviations of a metric between splits and between initialisations, with 95 % bootstrap intervals.

    Attributes
    ----------
    splits, inits
        How many of each; every split has all the initialisations.
    split, init
        The standard deviations, in the unit of the metric.
    split_interval, init_interval
        Their percentile intervals, splits being resampled.
    share
        Of the variance of a single run, how much is the split's; NaN if the runs are all alike.
    """

    splits: int
    inits: int
    split: float
    init: float
    split_interval: tuple[float, float]
    init_interval: tuple[float, float]
    share: float


def variance_components(values: Mapping[Seeds, float], resamples: int = 1000, seed: int = 0) -> Components | None:
    r"""Divide the variance of runs into that of splits and that of initialisations.

    One-way random effects, by the analysis of variance: with s splits of r initialisations each, ``MS_between`` and
    ``MS_within`` estimate :math:`\sigma^2 + r\,\sigma_s^2` and :math:`\sigma^2`, hence

    .. math:: \hat\sigma_s^2 = \max\bigl(0, (MS_{between} - MS_{within}) / r\bigr), \quad
              \hat\sigma^2 = MS_{within}.

    Parameters
    ----------
    values
        The metric of each run.
    resamples, seed
        Of the bootstrap over splits.

    Returns
    -------
    Components, or None where the design does not allow them: splits with different numbers of initialisations, fewer
    than two splits, or fewer than two initialisations.

    Examples
    --------
    >>> runs = {Seeds(s, i): 0.8 + 0.01 * s + 0.001 * i for s in range(20) for i in range(5)}
    >>> parts = variance_components(runs)
    >>> round(parts.split, 3), round(parts.init, 4), round(parts.share, 2)
    (0.059, 0.0016, 1.0)
    """
    check_int(resamples, "resamples", "variance_components", low=1)
    table = _balanced(values)
    if table is None:
        return None
    split, init = _estimate(table[None])
    random = np.random.default_rng(seed)
    drawn = table[random.integers(0, len(table), size=(resamples, len(table)))]
    splits, inits = _estimate(drawn)
    total = float(split[0] + init[0])
    return Components(
        *table.shape,
        split=float(np.sqrt(split[0])),
        init=float(np.sqrt(init[0])),
        split_interval=_interval(splits),
        init_interval=_interval(inits),
        share=float(split[0]) / total if total > 0 else float("nan"),
    )


def _balanced(values: Mapping[Seeds, float]) -> NDArray[np.float64] | None:
    """Return the runs as shape (splits, initialisations), or None."""
    splits, inits = sorted({seeds.split for seeds in values}), sorted({seeds.init for seeds in values})
    if len(splits) < 2 or len(inits) < 2 or len(values) != len(splits) * len(inits):
        return None
    return np.array([[values[Seeds(split, init)] for init in inits] for split in splits])


def _estimate(tables: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both variances of tables of shape (m, splits, initialisations), each of shape (m,)."""
    inits = tables.shape[2]
    within = tables.var(axis=2, ddof=1).mean(axis=1)
    between = inits * tables.mean(axis=2).var(axis=1, ddof=1)
    return np.maximum(0.0, (between - within) / inits), within


def _interval(variances: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(np.sqrt(variances), [0.025, 0.975])
    return float(low), float(high)
