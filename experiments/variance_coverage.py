"""How often intervals of variance components hold the truth: simulated studies of 20 splits with 5 initialisations.

Compares what `variance_components` gives with resampling the splits and with Satterthwaite's approximation, for normal
deviations, for heavy tails (Student's t with 5 degrees of freedom) and for skewed ones (gamma with shape 4). The numbers
in the docstring of `variance_components` are those that this prints (about two minutes):

    python experiments/variance_coverage.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pprop.study.cell import Seeds
from pprop.study.stats.variance import variance_components

SPLITS, INITS, STUDIES, RESAMPLES = 20, 5, 2000, 400

Array = NDArray[np.float64]
Law = Callable[[np.random.Generator, tuple[int, ...]], Array]

LAWS: dict[str, Law] = {  # mean 0, variance 1
    "normal": lambda random, shape: random.standard_normal(shape),
    "t, 5 degrees": lambda random, shape: random.standard_t(5, shape) / np.sqrt(5 / 3),
    "gamma, shape 4": lambda random, shape: (4 - random.gamma(4.0, size=shape)) / 2,
}


def split_variance(tables: Array) -> tuple[Array, Array, Array]:
    """Return the splits' variance and both mean squares of tables of shape (m, splits, initialisations)."""
    within = tables.var(axis=2, ddof=1).mean(axis=1)
    between = INITS * tables.mean(axis=2).var(axis=1, ddof=1)
    return np.maximum(0.0, (between - within) / INITS), between, within


def satterthwaite(table: Array) -> tuple[float, float]:
    """Return the ends for the splits' variance; nothing below or above where the estimate is 0."""
    (found,), (between,), (within,) = split_variance(table[None])
    if found == 0.0:
        return 0.0, 0.0
    spread = (between / INITS) ** 2 / (SPLITS - 1) + (within / INITS) ** 2 / (SPLITS * (INITS - 1))
    degrees = found**2 / spread
    with np.errstate(divide="ignore", over="ignore"):  # an estimate near 0 has few degrees, and an end at infinity
        low, high = degrees * found / stats.chi2.isf([0.025, 0.975], degrees)
    return float(low), float(high)


def resampled(table: Array, random: np.random.Generator) -> tuple[float, float]:
    """Return the percentile ends for the splits' variance, whole splits being drawn."""
    drawn = table[random.integers(SPLITS, size=(RESAMPLES, SPLITS))]
    low, high = np.quantile(split_variance(drawn)[0], [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    print(f"{'deviations':16} splits' sd | splits  initialisations  share | splits by resampling  by Satterthwaite")
    for name, law in LAWS.items():
        for sd in (0.3, 1.0, 2.0):
            random = np.random.default_rng([len(name), int(10 * sd)])
            held = np.zeros(5)
            for _ in range(STUDIES):
                table = sd * law(random, (SPLITS, 1)) + law(random, (SPLITS, INITS))
                parts = variance_components({Seeds(*at): float(value) for at, value in np.ndenumerate(table)})
                assert parts is not None
                ends = (parts.split_interval, parts.init_interval, parts.share_interval)
                others = (resampled(table, random), satterthwaite(table))
                truths = (sd, 1.0, sd**2 / (1 + sd**2), sd**2, sd**2)
                held += [low <= truth <= high for (low, high), truth in zip((*ends, *others), truths, strict=True)]
            split, init, share, by_drawing, by_degrees = 100 * held / STUDIES
            print(
                f"{name:16} {sd:10} | {split:5.1f}  {init:15.1f}  {share:5.1f} | {by_drawing:20.1f}  {by_degrees:16.1f}"
            )


if __name__ == "__main__":
    main()
