"""A scoring: a measure of predicted classes, and the class that it is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import InputError
from pprop._validate import check_choice, counted, describe, nearest, reject
from pprop.scoring.measures import METRICS, Floats, Forecast, Metric

# The default of two classes: the rarer one is what people look for where it is at most this share of the labels.
RARE = 0.25
RESAMPLES = 1000
# Nodes drawn in all resamples together: about a second's work.
MOST_DRAWN = 50_000_000
CONFIDENCE = 0.95


@final
@dataclass(frozen=True)
class Judged:
    """The value of a scoring.

    Attributes
    ----------
    value
        The larger the better.
    of_class
        The value of each class by name, where the scoring is their mean: those that occur among the nodes.
    """

    value: float
    of_class: dict[Any, float]

    @property
    def worst(self) -> tuple[Any, float] | None:
        """The class with the smallest value, and that value."""
        return min(self.of_class.items(), key=lambda item: item[1]) if self.of_class else None


@final
@dataclass(frozen=True, eq=False)
class Scoring:
    """What predictions are judged by.

    With two classes a measure that has a value for each of them is that of the positive class, else their mean, each class
    against all others. With a positive class among more than two it is that of this class.

    Attributes
    ----------
    name
        One of `METRICS`.
    classes
        Their names, shape (c,).
    positive
        The name of the class that is looked for; None: the mean over classes.

    Examples
    --------
    >>> scoring = Scoring.read("average_precision", np.array(["fraud", "honest"]), np.array([3, 97]))
    >>> scoring.positive, scoring.words
    ('fraud', "average precision of 'fraud'")
    >>> scoring(np.array([0, 1, 1]), np.array([[0.6, 0.4], [0.7, 0.3], [0.1, 0.9]]))
    0.5
    """

    name: str
    classes: NDArray[Any]
    positive: Any = None

    @classmethod
    def read(
        cls,
        name: object,
        classes: NDArray[Any],
        counts: NDArray[np.int64],
        positive: object = None,
        *,
        function: str = "fit",
    ) -> Self:
        """Return the scoring of that name.

        Parameters
        ----------
        name
            One of scikit-learn's names that `METRICS` has.
        classes, counts
            The names of the classes and how many training labels each has, shape (c,).
        positive
            The name of the class that is looked for. None: of two classes the rarer one.
        function
            Its name in an error.
        """
        remedy = nearest(name, METRICS) if isinstance(name, str) else ""
        checked = check_choice(name, "scoring", function, tuple(METRICS), remedy=remedy)
        return cls(checked, classes, positive_class(classes, counts, positive, function=function))

    @property
    def metric(self) -> Metric:
        """The measure."""
        return METRICS[self.name]

    @property
    def words(self) -> str:
        """What it is, for people."""
        if not self.metric.by_class:
            return self.metric.words
        return f"macro {self.metric.words}" if self.positive is None else f"{self.metric.words} of {self.positive!r}"

    def __call__(self, truth: NDArray[np.int64], probabilities: NDArray[Any], weights: Floats | None = None) -> float:
        """Return the value for nodes: the larger the better.

        Parameters
        ----------
        truth
            Positions of classes, shape (m,).
        probabilities
            Shape (m, c).
        weights
            Of the nodes, shape (m,); None: each counts once.
        """
        return self.judge(Forecast(truth, probabilities), weights).value

    def judge(self, forecast: Forecast, weights: Floats | None = None) -> Judged:
        """Return the value for a forecast, and that of each class where it is their mean."""
        each = np.ones(len(forecast.truth)) if weights is None else weights
        if (
            self.positive is not None and self.metric.of_ranking is not None
        ):  # the rankings of the other classes take time
            return Judged(self.metric.of_ranking(forecast.ranking(self._code), each), {})
        found = np.asarray(self.metric.of(forecast, each))
        if not self.metric.by_class:
            return Judged(float(found), {})
        if self.positive is not None:
            return Judged(float(found[self._code]), {})
        there = ~np.isnan(found)
        mean = float(found[there].mean()) if there.any() else np.nan
        return Judged(mean, dict(zip(self.classes[there].tolist(), found[there].tolist(), strict=True)))

    def check(self, truth: NDArray[np.int64], what: str) -> None:
        """Refuse nodes for which the value does not exist: none of them is of the class that is looked for, or all are.

        Parameters
        ----------
        truth
            Positions of their classes, shape (m,).
        what
            What these nodes are, in the plural, as in "validation nodes".
        """
        if not self.metric.by_class:
            return
        there = np.bincount(truth, minlength=len(self.classes)) > 0
        remedy = f"Label more nodes, pass other {what}, or choose another scoring, such as 'accuracy'."
        if self.positive is not None and not there[self._code]:
            raise InputError(
                f"None of {counted(len(truth), what.removesuffix('s'))} is {self.positive!r}: "
                f"{self.words} has no value. {remedy}"
            )
        if self.metric.ranks and there.sum() < 2:
            only = self.classes[there].tolist()
            raise InputError(
                f"All {len(truth):,} {what} are {only[0]!r}: {self.words} has no value. {remedy}"
                if only
                else f"There are no {what}: {self.words} has no value. {remedy}"
            )

    def interval(self, forecast: Forecast, resamples: int = RESAMPLES, seed: int = 0) -> tuple[float, float]:
        """Return the 95 % percentile interval of the value, from resamples of the nodes."""
        values = self.resampled(forecast, resamples, seed)
        return ends(values)

    def resampled(self, forecast: Forecast, resamples: int = RESAMPLES, seed: int = 0) -> Floats:
        """Return the value for resamples of the nodes, shape (resamples,): the same ones for other forecasts of them."""
        drawn = resample(len(forecast.truth), resamples, seed)
        return np.array([self.judge(forecast, weights).value for weights in drawn])

    @property
    def _code(self) -> int:
        return int(np.flatnonzero(self.classes == self.positive)[0])


def positive_class(
    classes: NDArray[Any], counts: NDArray[np.int64], positive: object = None, *, function: str = "fit"
) -> Any:
    """Return the name of the class that is looked for: the one given, else the rarer of two; None for more classes.

    >>> positive_class(np.array(["no", "yes"]), np.array([90, 10]))
    'yes'
    """
    names: list[Any] = classes.tolist()
    if positive is None:
        # of two that are equally rare the second, as scikit-learn takes the larger label
        return names[1 if counts[1] <= counts[0] else 0] if len(names) == 2 else None
    found = [name for name in names if name == positive or str(name) == str(positive)]
    if not found:
        remedy = nearest(str(positive), [str(name) for name in names])
        reject("positive", function, f"one of the classes, {classes_text(names)}", describe(positive), remedy=remedy)
    return found[0]


def classes_text(names: Sequence[Any]) -> str:
    """Return names of classes as a sentence has them, of many the first ten.

    >>> classes_text(["ant", "bee"])
    "'ant', 'bee'"
    """
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(repr(name) for name in names[:10]) + more


def default_scoring(
    classes: NDArray[Any], counts: NDArray[np.int64], positive: object = None, *, function: str = "fit"
) -> tuple[Scoring, str]:
    """Return the scoring that suits the labels, and a sentence that says why.

    Parameters
    ----------
    classes, counts
        The names of the classes and how many training labels each has, shape (c,).
    positive
        The name of the class that is looked for, where somebody has said it.
    function
        Its name in an error.

    Examples
    --------
    >>> scoring, why = default_scoring(np.array(["fraud", "honest"]), np.array([3, 97]))
    >>> scoring.name
    'average_precision'
    >>> print(why)
    Judged by the average precision of 'fraud', because 3 % of the training labels are of this class.
    """
    wanted = positive_class(classes, counts, positive, function=function)
    if wanted is not None:
        share = float(counts[classes == wanted][0] / counts.sum())
        if share <= RARE:
            scoring = Scoring("average_precision", classes, wanted)
            written = f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"
            return scoring, (
                f"Judged by the {scoring.words}, because {written.replace('%', ' %')} of the training labels are of this class."
            )
        if positive is not None:
            scoring = Scoring("average_precision", classes, wanted)
            return scoring, f"Judged by the {scoring.words}, the class that is looked for."
    return Scoring("accuracy", classes, wanted), "Judged by accuracy: no class that is looked for is rare."


def resample(nodes: int, resamples: int = RESAMPLES, seed: int = 0) -> Iterator[Floats]:
    """Yield how often each of n nodes is drawn, with replacement, shape (n,): fewer resamples of very many nodes.

    >>> [int(weights.sum()) for weights in resample(5, resamples=2)]
    [5, 5]
    """
    random = np.random.default_rng(seed)
    for _ in range(max(100, min(resamples, MOST_DRAWN // max(nodes, 1))) if resamples > 100 else resamples):
        yield np.bincount(random.integers(nodes, size=nodes), minlength=nodes).astype(np.float64)


def ends(values: Floats) -> tuple[float, float]:
    """Return the ends of the 95 % percentile interval of values; those without a value are left out.

    >>> low, high = ends(np.arange(101.0))
    >>> round(low, 3), round(high, 3)
    (2.5, 97.5)
    """
    there = values[~np.isnan(values)]
    if not len(there):
        return np.nan, np.nan
    low, high = np.quantile(there, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
