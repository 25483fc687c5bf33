"""What the runs of a cell amount to, and whether one model is better than another on the same splits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from pprop._validate import check_choice, reject
from pprop.study.bootstrap import bootstrap_interval
from pprop.study.cell import Seeds

__all__ = [
    "Paired",
    "Summary",
    "combined_intervals",
    "describe_seeds",
    "paired_test",
    "split_gaps",
    "split_means",
    "student_half",
    "summarise",
]

Over = Literal["runs", "splits"]


@final
@dataclass(frozen=True)
class Summary:
    """A mean with the ends of its 95 % bootstrap interval.

    Examples
    --------
    The paper's ± is the larger distance from the mean to an end:

    >>> round(Summary(100, 0.85, 0.8475, 0.852).half, 6)
    0.0025
    """

    count: int
    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """The number behind the paper's ±."""
        return max(self.mean - self.low, self.high - self.mean)


def summarise(values: ArrayLike) -> Summary:
    """Return the mean of `values`, shape (m,), with the paper's interval: percentile bootstrap, 1000 resamples.

    Examples
    --------
    >>> one = summarise([0.5])
    >>> (one.count, one.mean, one.half)
    (1, 0.5, 0.0)
    """
    sample = np.asarray(values, dtype=np.float64)
    low, high = bootstrap_interval(sample)
    return Summary(len(sample), float(sample.mean()), low, high)


def combined_intervals(ours: float, our_half: float, theirs: float, their_half: float) -> float:
    r"""Return how many combined intervals `ours` is above `theirs`.

    The combined interval of two means that do not depend on one another is :math:`\sqrt{h_1^2 + h_2^2}`, as for
    standard errors. Beyond ±1 the two disagree: by chance, one of 20 comparisons of independent samples does so.

    Examples
    --------
    >>> combined_intervals(85.6, 0.3, 85.1, 0.4)
    1.0
    """
    unit = float(np.hypot(our_half, their_half))
    return round((ours - theirs) / unit, 9) if unit > 0 else float("nan")


@final
@dataclass(frozen=True)
class Paired:
    """A paired t-test of one model against another.

    Attributes
    ----------
    over
        Whether pairs are runs or means over the initialisations of a split.
    pairs
        Their number.
    difference
        Mean of the first minus the second.
    t, p
        The statistic and the two-sided p-value; NaN where no test can be made: fewer than two pairs, or all differences
        the same.
    only_first, only_second
        Runs of either model that have no partner in the other and so are not part of the test.
    """

    over: Over
    pairs: int
    difference: float
    t: float
    p: float
    only_first: tuple[Seeds, ...]
    only_second: tuple[Seeds, ...]


def paired_test(first: Mapping[Seeds, float], second: Mapping[Seeds, float], over: Over = "runs") -> Paired:
    """Compare two models on the runs, or the splits, that both have.

    Parameters
    ----------
    first, second
        The metric of each run.
    over
        ``"runs"``: pairs of equal split and initialisation seed. ``"splits"``: pairs of means over the initialisations
        of a split, because initialisations of different models have nothing in common.

    Returns
    -------
    Paired

    Examples
    --------
    >>> appnp = {Seeds(1, 0): 0.85, Seeds(2, 0): 0.86, Seeds(3, 0): 0.84}
    >>> gcn = {Seeds(1, 0): 0.83, Seeds(2, 0): 0.85, Seeds(4, 0): 0.80}
    >>> test = paired_test(appnp, gcn)
    >>> test.pairs, round(test.difference, 3), round(test.p, 3), test.only_first
    (2, 0.015, 0.205, (Seeds(split=3, init=0),))
    """
    check_choice(over, "over", "paired_test", ("runs", "splits"))
    shared: list[Any]
    if over == "runs":
        shared = sorted(first.keys() & second.keys())
        only_first, only_second = sorted(first.keys() - second.keys()), sorted(second.keys() - first.keys())
        a, b = [first[seeds] for seeds in shared], [second[seeds] for seeds in shared]
    else:
        means, others = split_means(first), split_means(second)
        shared = sorted(means.keys() & others.keys())
        only_first = sorted(seeds for seeds in first if seeds.split not in others)
        only_second = sorted(seeds for seeds in second if seeds.split not in means)
        a, b = [means[split] for split in shared], [others[split] for split in shared]
    difference = np.subtract(a, b)
    mean = float(difference.mean()) if shared else float("nan")
    t, p = _t_test(np.asarray(a), np.asarray(b), difference)
    return Paired(over, len(shared), mean, t, p, tuple(only_first), tuple(only_second))


def split_means(values: Mapping[Seeds, float]) -> dict[int, float]:
    """Return the mean over initialisations of each split, in the order of split seeds.

    Examples
    --------
    >>> split_means({Seeds(7, 0): 1.0, Seeds(7, 1): 2.0, Seeds(5, 0): 4.0})
    {5: 4.0, 7: 1.5}
    """
    grouped: dict[int, list[float]] = {}
    for seeds in sorted(values):
        grouped.setdefault(seeds.split, []).append(values[seeds])
    return {split: float(np.mean(group)) for split, group in grouped.items()}


def split_gaps(first: Mapping[Seeds, float], second: Mapping[Seeds, float]) -> dict[int, float]:
    """Return the mean of the first minus that of the second on each split that both have.

    Examples
    --------
    >>> split_gaps({Seeds(7, 0): 1.0, Seeds(7, 1): 2.0, Seeds(5, 0): 4.0}, {Seeds(7, 0): 1.0})
    {7: 0.5}
    """
    other = split_means(second)
    return {split: mean - other[split] for split, mean in split_means(first).items() if split in other}


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


def describe_seeds(seeds: Iterable[Seeds], most: int = 4) -> str:
    """Return a short text that names runs: by initialisation where whole groups are missing, else one by one.

    Examples
    --------
    >>> describe_seeds([Seeds(5, 1), Seeds(7, 1)])
    'split 5 init 1, split 7 init 1'
    >>> describe_seeds([Seeds(split, init) for init in (1, 2) for split in range(20)])
    '40 runs: init 1 (20 splits), init 2 (20 splits)'
    """
    given = sorted(set(seeds))
    if not given:
        reject("seeds", "describe_seeds", "at least one run", "none")
    if len(given) <= most:
        return ", ".join(f"split {one.split} init {one.init}" for one in given)
    inits = sorted({one.init for one in given})
    counts = {init: sum(1 for one in given if one.init == init) for init in inits}
    return f"{len(given)} runs: " + ", ".join(
        f"init {init} ({count} split{'' if count == 1 else 's'})" for init, count in counts.items()
    )


def _t_test(
    first: NDArray[np.float64], second: NDArray[np.float64], difference: NDArray[np.float64]
) -> tuple[float, float]:
    # differences that are equal up to rounding have no spread to compare their mean with
    if len(difference) < 2 or np.ptp(difference) <= 1e-12 * max(1.0, float(np.abs(difference).max())):
        return float("nan"), float("nan")
    result: Any = stats.ttest_rel(first, second)
    return float(result.statistic), float(result.pvalue)
