"""How well probabilities of one class rank nodes, and how far they can be taken at their word: figures and curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop.scoring.measures import Floats, Ranking
from pprop.scoring.scores import RESAMPLES, ends, resample

BINS = 10  # of probabilities, with equally many nodes each
MOST_TOP = 100
LEAST_TOP = 10
POINTS = 1000  # of a curve

# Names and words of the figures; {top} is the number of nodes at the top.
FIGURES: Mapping[str, str] = {
    "roc_auc": "ROC AUC",
    "average_precision": "average precision",
    "top_precision": "precision among the top {top}",
    "top_recall": "recall among the top {top}",
    "calibration_error": "calibration error",
    "brier_score": "Brier score",
}


def top_of(nodes: int) -> int:
    """Return how many nodes are at the top of a ranking: a tenth, at least 10 and at most 100.

    >>> top_of(5), top_of(50), top_of(600), top_of(10_000)
    (5, 10, 60, 100)
    """
    return min(nodes, MOST_TOP, max(LEAST_TOP, nodes // 10))


@final
@dataclass(frozen=True)
class Figure:
    """A figure and its 95 % interval; NaN where it does not exist."""

    value: float
    interval: tuple[float, float]

    def __str__(self) -> str:
        """Return it for people.

        >>> str(Figure(0.8312, (0.75, 0.9)))
        '0.831 (0.750 to 0.900)'
        """
        if np.isnan(self.value):
            return "-"
        low, high = self.interval
        return f"{self.value:.3f} ({low:.3f} to {high:.3f})"

    def record(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"value": self.value, "interval": list(self.interval)}


@final
class JudgedNodes:
    """Nodes of which some are of a class, and the probability of the class that a model gives each.

    Parameters
    ----------
    of_class
        Shape (m,), m > 0.
    scores
        Probabilities of the class, shape (m,).

    Examples
    --------
    >>> judged = JudgedNodes(np.array([True, False, True, False]), np.array([0.9, 0.8, 0.3, 0.1]))
    >>> float(judged.measure(np.ones(4), top=2)["top_recall"])
    0.5
    """

    def __init__(self, of_class: NDArray[np.bool_], scores: NDArray[Any]) -> None:
        self._of_class, self._scores = of_class, scores.astype(np.float64)
        self._ranking = Ranking(of_class, self._scores)
        places = np.unique(np.quantile(self._scores, np.arange(1, BINS) / BINS))
        # nodes with the same probability share a bin
        self._bin = np.searchsorted(places, self._scores, side="left")

    def measure(self, weights: Floats, top: int) -> dict[str, float]:
        """Return the figures by the names in `FIGURES`.

        Precision and recall among the top nodes are means over the orders of nodes with the same probability. The calibration
        error is the mean distance between probability and share of the class, over bins with equally many nodes.
        """
        hits, everything = self._ranking.taken(weights)
        found = float(np.interp(top, np.append(0.0, everything), np.append(0.0, hits)))
        nodes, sums, positives = (
            np.bincount(self._bin, weights * values, minlength=BINS) for values in (1.0, self._scores, self._of_class)
        )
        total = weights.sum()
        return {
            "roc_auc": self._ranking.roc_auc(weights),
            "average_precision": self._ranking.average_precision(weights),
            "top_precision": found / top,
            "top_recall": found / hits[-1] if hits[-1] else np.nan,
            "calibration_error": float(np.abs(sums - positives).sum() / nodes.sum()),
            "brier_score": float(weights @ (self._scores - self._of_class) ** 2 / total),
        }

    def figures(self, top: int, resamples: int = RESAMPLES) -> dict[str, Figure]:
        """Return the same with 95 % percentile intervals from resamples of the nodes."""
        values = self.measure(np.ones(len(self._scores)), top)
        drawn = [self.measure(weights, top) for weights in resample(len(self._scores), resamples)]
        return {name: Figure(value, ends(np.array([one[name] for one in drawn]))) for name, value in values.items()}

    def curves(self) -> Curves:
        """Return precision over recall, and shares of the class over probabilities."""
        hits, everything = self._ranking.taken(np.ones(len(self._scores)))
        places = int(np.argmax(hits == hits[-1])) + 1  # after them nothing of the class is left to find
        kept = np.unique(np.linspace(0, places - 1, min(POINTS, places)).astype(np.int64))
        bins = [np.flatnonzero(self._bin == number) for number in np.unique(self._bin)]
        return Curves(
            recall=hits[kept] / max(hits[-1], 1),
            precision=hits[kept] / everything[kept],
            probability=np.array([self._scores[nodes].mean() for nodes in bins]),
            share=np.array([self._of_class[nodes].mean() for nodes in bins]),
            nodes=np.array([len(nodes) for nodes in bins]),
        )


@final
@dataclass(frozen=True)
class Curves:
    """What a picture shows of one model.

    Attributes
    ----------
    recall, precision
        Of the nodes at or above each place of the ranking, from the top on until all of the class are found, shape (places,).
    probability, share, nodes
        Mean probability of the nodes of a bin, the share of them that is of the class, and their number, shape (bins,).
    """

    recall: Floats
    precision: Floats
    probability: Floats
    share: Floats
    nodes: NDArray[np.int64]
