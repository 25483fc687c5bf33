"""How good predictions are: accuracy and macro F1 of one run, and means of runs with 95 % intervals.

Macro F1 has two definitions that differ; the intervals are the percentile bootstrap that the paper uses, and Student's t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from pprop._validate import check_float, check_int, reject

_Counts: TypeAlias = NDArray[np.int64]


def accuracy(predicted: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of nodes whose predicted class is their label.

    Parameters
    ----------
    predicted, labels
        Classes of the evaluation nodes, shape (m,), at least one.

    Examples
    --------
    >>> accuracy([0, 1, 1, 2], [0, 1, 2, 2])
    0.75
    """
    first, second = _pair(predicted, labels, "accuracy")
    return float((first == second).mean())


def f1_paper(predicted: ArrayLike, labels: ArrayLike, n_classes: int) -> float:
    r"""Return the paper's macro F1: the harmonic mean of the class-averaged precision and recall.

    .. math::

        F = \frac{2 P R}{P + R}, \quad
        P = \frac 1 c \sum_k \frac{TP_k}{TP_k + FP_k}, \quad
        R = \frac 1 c \sum_k \frac{TP_k}{TP_k + FN_k}

    The precision of a class without false positives is 1, also when it was never predicted, and so is the recall of a
    class without false negatives: this is what the authors' code computes. It is not the mean of the classes' F1.

    Parameters
    ----------
    predicted, labels
        Classes of the evaluation nodes, shape (m,), each from 0 to ``n_classes - 1``.
    n_classes
        Classes c of the graph.

    Examples
    --------
    The precisions are 1, 1/2 and 1, the recalls 1, 1 and 1/2, so both averages are 5/6:

    >>> round(f1_paper([0, 1, 1, 2], [0, 1, 2, 2], 3), 6)
    0.833333
    """
    right, wrongly, missed = _counts(predicted, labels, n_classes, "f1_paper")
    precision, recall = (float(np.mean(_share(right, rest, empty=1.0))) for rest in (wrongly, missed))
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def f1_macro(predicted: ArrayLike, labels: ArrayLike, n_classes: int) -> float:
    r"""Return the usual macro F1, the mean over classes of ``2 TP / (2 TP + FP + FN)``.

    A class that is neither predicted nor present counts 0, as in scikit-learn with ``zero_division=0``.

    Parameters
    ----------
    predicted, labels, n_classes
        As for `f1_paper`.

    Examples
    --------
    >>> round(f1_macro([0, 1, 1, 2], [0, 1, 2, 2], 3), 6)
    0.777778
    """
    right, wrongly, missed = _counts(predicted, labels, n_classes, "f1_macro")
    return float(np.mean(_share(2 * right, wrongly + missed, empty=0.0)))


def _share(part: _Counts, rest: _Counts, empty: float) -> NDArray[np.float64]:
    """Return ``part / (part + rest)`` for each class, `empty` where both are 0."""
    total = part + rest
    return np.where(total > 0, part / np.maximum(total, 1), empty)


def _counts(predicted: ArrayLike, labels: ArrayLike, n_classes: int, function: str) -> tuple[_Counts, _Counts, _Counts]:
    """Return true positives, false positives and false negatives of each class, each of shape (c,)."""
    first, second = _pair(predicted, labels, function)
    check_int(n_classes, "n_classes", function, low=1)
    for name, classes in (("predicted", first), ("labels", second)):
        if classes.min() < 0 or classes.max() >= n_classes:
            got = f"classes from {classes.min()} to {classes.max()}"
            reject(name, function, f"classes from 0 to {n_classes - 1}", got)
    right = np.bincount(first[first == second], minlength=n_classes)
    return right, np.bincount(first, minlength=n_classes) - right, np.bincount(second, minlength=n_classes) - right


def _pair(predicted: ArrayLike, labels: ArrayLike, function: str) -> tuple[_Counts, _Counts]:
    """Return both as int64 of one shape (m,), m > 0."""
    first: NDArray[Any] = np.asarray(predicted)
    second: NDArray[Any] = np.asarray(labels)
    for name, array in (("predicted", first), ("labels", second)):
        if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
            reject(name, function, "a one-dimensional array of classes, at least one", array)
    if first.shape != second.shape:
        reject("predicted", function, f"of the shape of 'labels', {second.shape}", first)
    return first.astype(np.int64), second.astype(np.int64)


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


def half_by_chance(values: ArrayLike, level: float = 0.99, draws: int = 1000) -> tuple[float, float]:
    """Return the range of the ± of `values`, shape (m,), over other draws of its 1000 resamples.

    A published ± beyond it is of other values.

    Parameters
    ----------
    values
        One for each run.
    level
        The share of draws that end within the range.
    draws
        How many are made.

    Examples
    --------
    >>> accuracies = np.linspace(0.7, 0.8, 20)
    >>> low, high = half_by_chance(accuracies, draws=100)
    >>> low < estimate(accuracies).half < high
    True
    """
    sample = np.asarray(values, dtype=np.float64)
    ends = np.array(
        [bootstrap_interval(sample, seed=seed) for seed in range(1, draws + 1)]
    )  # seed 0 is that of `estimate`
    low, high = np.quantile(np.abs(ends - sample.mean()).max(axis=1), [(1 - level) / 2, (1 + level) / 2])
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
