"""How a fit judges its predictions, and how it decides: the scoring, the positive class and the threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import InputError, Remedy
from pprop.estimators.fitted import Fitted
from pprop.estimators.reading import FitData
from pprop.estimators.targets import Classes
from pprop.scoring import Forecast, Scoring, Threshold, ThresholdRule, positive_class
from pprop.scoring.scores import classes_text


def measured(
    target: Classes,
    codes: NDArray[np.int64],
    logarithms: NDArray[Any],
    weights: NDArray[np.float64] | None,
    scoring: Scoring | None,
) -> dict[str, Any]:
    """Return loss, accuracy and score of nodes that nothing was learned from, as a `TrainingRecord` names them.

    Parameters
    ----------
    target
        The classes.
    codes, logarithms
        Of the nodes: their class indices, shape (m,), and the logarithms of their probabilities, shape (m, c).
    weights
        How much each counts in loss and accuracy, shape (m,); None: all the same.
    scoring
        None: there is no score.

    Examples
    --------
    >>> codes, half = np.array([0, 1]), np.log([[0.9, 0.1], [0.5, 0.5]])
    >>> found = measured(Classes(np.array(["a", "b"])), codes, half, None, None)
    >>> round(found["stopping_loss"], 3), found["stopping_accuracy"]
    (0.399, 0.5)
    """
    if not len(codes):
        return {"stopping_loss": float("nan"), "stopping_accuracy": float("nan"), "stopping_score": None}
    score = None
    if scoring is not None:
        score = scoring.judge(Forecast(codes, target.probabilities(logarithms)), weights).value
    return {
        "stopping_loss": -float(np.average(logarithms[np.arange(len(codes)), codes], weights=weights)),
        "stopping_accuracy": target.score(target.decode(codes), logarithms, weights),
        "stopping_score": score,
    }


@final
@dataclass(frozen=True, eq=False)
class Judging:
    """What `scoring`, `positive` and `threshold` of a classifier stand for, given its training labels.

    Attributes
    ----------
    scoring
        None: accuracy, and the paper's early stopping.
    rule, positive
        How the threshold is chosen, and for which class; None: every node gets its most probable class.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> from pprop.estimators.reading import Given
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((6, 6)))
    >>> data = FitData.of(Given.read(graph, [0, 1, 2, 3, 4, 5], list("nnnnyy"), "fit", stopping=0.5), graph)
    >>> judged = Judging.of(data, {"scoring": "roc_auc", "threshold": "f1"}, "APPNPClassifier")
    >>> judged.scoring.words, judged.positive
    ("ROC AUC of 'y'", 'y')
    """

    scoring: Scoring | None
    rule: ThresholdRule | None
    positive: Any

    @classmethod
    def of(cls, data: FitData, values: Mapping[str, Any], function: str) -> Self:
        """Read the settings of a classifier that has them; refuse what the labels do not allow, before any training.

        Parameters
        ----------
        data
            What the model learns from.
        values
            Settings that were validated.
        function
            Name for an error.
        """
        split = data.split
        # where training nodes end the training, no node is left to choose a threshold on
        apart = np.setdiff1d(split.stopping, split.train)
        return cls.read(data.classes.names, data.values[split.train], data.values[apart], values, function)

    @classmethod
    def read(
        cls,
        names: NDArray[Any],
        train: NDArray[np.int64],
        validation: NDArray[np.int64],
        values: Mapping[str, Any],
        function: str,
    ) -> Self:
        """Read the settings, given the names of the classes and the class indices of training and validation nodes."""
        name, wanted, threshold = (values.get(each) for each in ("scoring", "positive", "threshold"))
        if name is None and wanted is None and threshold is None:
            return cls(None, None, None)
        counts = np.bincount(train, minlength=len(names))
        positive = positive_class(names, counts, wanted, function=function)
        scoring = None if name is None else Scoring(name, names, positive)
        if threshold is None:
            return cls(scoring, None, None)
        if positive is None:
            text = f"A threshold is for one class. There are {len(names)} classes: {classes_text(names.tolist())}."
            raise InputError(
                text, remedies=[Remedy("Name the class: {}=...", ("positive",), shell="Name the class: {} NAME")]
            )
        if not len(validation):
            raise InputError("A threshold needs validation nodes, and there are none. Keep some nodes for validation.")
        rule = ThresholdRule.read(threshold, function)
        rule.check(positive, int(np.count_nonzero(names[validation] == positive)), len(validation))
        return cls(scoring, rule, positive)

    def decided(self, fitted: Fitted) -> Fitted:
        """Return what a fit left behind with the threshold that its validation nodes choose."""
        if self.rule is None:
            return fitted
        assert fitted.split is not None
        nodes, target = fitted.split.stopping, fitted.classes
        truth = target.encode(fitted.known_labels)[np.searchsorted(fitted.known_nodes, nodes)]
        return self.decided_by(fitted, truth, target.probabilities(fitted.comparable(nodes)))

    def decided_by(self, fitted: Fitted, truth: NDArray[np.int64], probabilities: NDArray[Any]) -> Fitted:
        """Return what a fit left behind with the threshold that these nodes choose.

        Parameters
        ----------
        fitted
            What a fit left behind.
        truth, probabilities
            Of the nodes: their class indices, shape (m,), and what a model predicts of them, shape (m, c).
        """
        if self.rule is None:
            return fitted
        (code,) = fitted.classes.positions([self.positive])
        threshold = Threshold.choose(self.rule, self.positive, truth == code, probabilities[:, code])
        return replace(fitted, target=replace(fitted.classes, threshold=threshold))
