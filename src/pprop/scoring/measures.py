"""Measures of predicted classes, by scikit-learn's names: the larger the better.

scikit-learn has each of them for one sample. Here several measures, and a thousand resamples of the same nodes, share one
sorting; the tests hold every figure against scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


@final
class Ranking:
    """Nodes in the order of a score, the largest first, and which of them are of one class.

    Nodes with the same score are one place in the order: a threshold takes all of them or none.

    Parameters
    ----------
    of_class
        Shape (m,).
    scores
        Shape (m,).

    Examples
    --------
    >>> ranking = Ranking(np.array([True, False, True, False]), np.array([0.9, 0.8, 0.3, 0.1]))
    >>> weights = np.ones(4)
    >>> ranking.roc_auc(weights), round(ranking.average_precision(weights), 3)
    (0.75, 0.833)
    """

    def __init__(self, of_class: NDArray[np.bool_], scores: NDArray[Any]) -> None:
        order = np.argsort(-scores, kind="stable")
        self.order = order
        self.scores = scores[order]
        self._hits = of_class[order]
        self._ends = np.append(np.flatnonzero(np.diff(self.scores)), len(scores) - 1)

    def thresholds(self) -> Floats:
        """Return the different scores, falling, shape (places,): `taken` says what each of them takes."""
        return self.scores[self._ends].astype(np.float64)

    def taken(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the weight of the class, and of all nodes, that is at each place or before it, both of shape (places,)."""
        sorted_weights = weights[self.order]
        return np.cumsum(sorted_weights * self._hits)[self._ends], np.cumsum(sorted_weights)[self._ends]

    def roc_auc(self, weights: Floats) -> float:
        """Return the area under the curve of true over false positives; NaN where all or no nodes are of the class."""
        hits, everything = self.taken(weights)
        misses = everything - hits
        if not hits[-1] or not misses[-1]:
            return np.nan
        return float(np.trapezoid(hits, misses) + hits[0] * misses[0] / 2) / float(hits[-1] * misses[-1])

    def average_precision(self, weights: Floats) -> float:
        """Return the mean precision over the positives, without interpolation; NaN where no node is of the class."""
        hits, everything = self.taken(weights)
        if not hits[-1]:
            return np.nan
        precision = hits / np.where(everything > 0, everything, 1.0)
        return float(np.sum(np.diff(hits, prepend=0.0) * precision) / hits[-1])


@final
class Forecast:
    """Predicted probabilities of nodes whose classes are known.

    Parameters
    ----------
    truth
        Positions of classes, shape (m,).
    probabilities
        Shape (m, c).
    predicted
        Positions of classes, shape (m,), where a threshold decides. None: the most probable class.
    """

    def __init__(
        self, truth: NDArray[np.int64], probabilities: NDArray[Any], predicted: NDArray[np.int64] | None = None
    ) -> None:
        self.truth = truth
        self.probabilities = probabilities
        self._predicted = predicted
        self.ranking = cache(self._ranking)

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        """Positions of the predicted classes, shape (m,)."""
        return self.probabilities.argmax(axis=1) if self._predicted is None else self._predicted

    @property
    def classes(self) -> int:
        """How many classes there are, c."""
        return self.probabilities.shape[1]

    def confusion(self, weights: Floats) -> Floats:
        """Return the weight of the nodes of each class (rows) that are predicted as each class, shape (c, c)."""
        cells = self.truth * self.classes + self.predicted
        sums: Floats = np.zeros(self.classes**2)
        np.add.at(sums, cells, weights)
        return sums.reshape(self.classes, self.classes)

    def _ranking(self, code: int) -> Ranking:
        return Ranking(self.truth == code, self.probabilities[:, code])


def _accuracy(forecast: Forecast, weights: Floats) -> float:
    return float(np.average(forecast.predicted == forecast.truth, weights=weights))


def _recalls(forecast: Forecast, weights: Floats) -> Floats:
    table = forecast.confusion(weights)
    return _share(np.diag(table), table.sum(axis=1))


def _precisions(forecast: Forecast, weights: Floats) -> Floats:
    """Return the precision of each class; 0 where it is never predicted, NaN where it does not occur either."""
    table = forecast.confusion(weights)
    return np.where(
        table.sum(axis=1) + table.sum(axis=0) > 0, _share(np.diag(table), table.sum(axis=0), empty=0.0), np.nan
    )


def _f1s(forecast: Forecast, weights: Floats) -> Floats:
    table = forecast.confusion(weights)
    return _share(2 * np.diag(table), table.sum(axis=0) + table.sum(axis=1))


def _share(part: Floats, whole: Floats, empty: float = np.nan) -> Floats:
    return np.divide(part, whole, out=np.full(len(whole), empty), where=whole > 0)


def _balanced_accuracy(forecast: Forecast, weights: Floats) -> float:
    return float(np.nanmean(_recalls(forecast, weights)))


def _matthews(forecast: Forecast, weights: Floats) -> float:
    table = forecast.confusion(weights)
    made, there, total = table.sum(axis=0), table.sum(axis=1), table.sum()
    spread = (total**2 - made @ made) * (total**2 - there @ there)
    return float((np.trace(table) * total - made @ there) / np.sqrt(spread)) if spread > 0 else 0.0


def _roc_aucs(forecast: Forecast, weights: Floats) -> Floats:
    return np.array([forecast.ranking(code).roc_auc(weights) for code in range(forecast.classes)])


def _average_precisions(forecast: Forecast, weights: Floats) -> Floats:
    return np.array([forecast.ranking(code).average_precision(weights) for code in range(forecast.classes)])


def _neg_log_loss(forecast: Forecast, weights: Floats) -> float:
    shares = _shares(forecast.probabilities)[np.arange(len(forecast.truth)), forecast.truth]
    return float(np.average(np.log(np.maximum(shares, np.finfo(np.float64).eps)), weights=weights))


def _neg_brier(forecast: Forecast, weights: Floats) -> float:
    """Return the negative mean squared distance; of two classes half of it, that of the one probability."""
    distance = _shares(forecast.probabilities)
    distance[np.arange(len(forecast.truth)), forecast.truth] -= 1.0
    whole = -float(np.average(np.sum(distance**2, axis=1), weights=weights))
    return whole / 2 if forecast.classes == 2 else whole


def _shares(probabilities: NDArray[Any]) -> Floats:
    """Return probabilities that sum to 1 in float64, as float32 does not."""
    exact = probabilities.astype(np.float64)
    return exact / exact.sum(axis=1, keepdims=True)


@final
@dataclass(frozen=True)
class Metric:
    """A measure of predicted classes.

    Attributes
    ----------
    words
        What people call it.
    of
        The value for a `Forecast` and weights of its nodes: one number, or one for each class, NaN where it has none.
    by_class
        Whether it has a value for each class.
    of_ranking
        The value of one class, where that is a function of the order of the nodes.
    """

    words: str
    of: Callable[[Forecast, Floats], float | Floats]
    by_class: bool = False
    of_ranking: Callable[[Ranking, Floats], float] | None = None

    @property
    def ranks(self) -> bool:
        """Whether it judges the order of the nodes: no threshold changes it."""
        return self.of_ranking is not None


METRICS: Mapping[str, Metric] = {
    "accuracy": Metric("accuracy", _accuracy),
    "balanced_accuracy": Metric("balanced accuracy", _balanced_accuracy),
    "f1": Metric("F1", _f1s, by_class=True),
    "f1_macro": Metric("macro F1", lambda forecast, weights: float(np.nanmean(_f1s(forecast, weights)))),
    "precision": Metric("precision", _precisions, by_class=True),
    "recall": Metric("recall", _recalls, by_class=True),
    "matthews_corrcoef": Metric("Matthews' correlation", _matthews),
    "roc_auc": Metric("ROC AUC", _roc_aucs, by_class=True, of_ranking=Ranking.roc_auc),
    "average_precision": Metric(
        "average precision", _average_precisions, by_class=True, of_ranking=Ranking.average_precision
    ),
    "neg_log_loss": Metric("negative log loss", _neg_log_loss),
    "neg_brier_score": Metric("negative Brier score", _neg_brier),
}
