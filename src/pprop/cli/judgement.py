"""The part of the report of ``pprop train`` that judges probabilities: by the scoring, and of one class by its ranking.

The model, the network alone and label propagation are judged on the same test nodes and on the same resamples of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, final

from pprop._validate import counted
from pprop.cli.output import columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pprop.scoring import Forecast, Judged, Scoring
    from pprop.scoring.judged_nodes import Figure, JudgedNodes
    from pprop.study.figures.model import RankingPicture

DRAWN = 20_000_000  # nodes times classes in all resamples together: a few seconds
RESAMPLES = 1000
BESIDE = ("balanced_accuracy", "average_precision")  # shown of more than two classes, beside the scoring
MAJORITY = "majority class"
ACCURACIES = ("accuracy", "balanced_accuracy")  # in the first lines of the report
_NAMED = {"network alone": "the network alone", MAJORITY: "the majority class"}  # within a sentence
CHANCE = 0.5  # the ROC AUC of an order by chance


@final
@dataclass(frozen=True, eq=False)
class Predicted:
    """What a model says of the test nodes.

    Attributes
    ----------
    predicted
        Names of classes, shape (m,).
    probabilities, classes
        Shape (m, c), and the names of these classes.
    """

    predicted: NDArray[Any]
    probabilities: NDArray[Any]
    classes: NDArray[Any]

    @classmethod
    def of(cls, model: Any, nodes: NDArray[Any]) -> Predicted:
        """Return what a fitted classifier says of nodes."""
        return cls(model.predict(nodes), model.predict_proba(nodes), model.classes_)

    @classmethod
    def majority(cls, labels: NDArray[Any], nodes: int) -> Self:
        """Return what the shares of the classes among known labels say of so many nodes: the same of each.

        >>> import numpy as np
        >>> Predicted.majority(np.array(["a", "b", "a", "a"]), 1).probabilities
        array([[0.75, 0.25]])
        """
        import numpy as np

        classes, counts = np.unique(labels, return_counts=True)
        shares = np.tile(counts / counts.sum(), (nodes, 1))
        return cls(np.full(nodes, classes[counts.argmax()]), shares, classes)


@final
class Judgement:
    """What the test nodes show of probabilities.

    Parameters
    ----------
    scoring, why
        What models are judged by, and the sentence that says why.
    truth
        Names of the classes of the test nodes, shape (m,), m > 0.
    models
        By the words that name them, the model of the training first.
    majority
        What the majority says, which the model is compared with and of which no figures are shown; None: nothing.
    """

    def __init__(
        self,
        scoring: Scoring,
        why: str,
        truth: NDArray[Any],
        models: Mapping[str, Predicted],
        majority: Predicted | None = None,
    ) -> None:
        import numpy as np

        self._scoring, self._why, self._truth, self._models = scoring, why, truth, models
        self._majority = majority
        self._own = next(iter(models))
        said = [*models.values(), *([] if majority is None else [majority])]
        # test nodes may be of classes that no training node is of
        self._classes = np.unique(np.concatenate([truth, *(one.classes for one in said)]))

    def _outcome(self, one: Predicted) -> Forecast:
        import numpy as np

        from pprop.scoring import Forecast

        aligned = np.zeros((len(self._truth), len(self._classes)), dtype=one.probabilities.dtype)
        aligned[:, np.searchsorted(self._classes, one.classes)] = one.probabilities
        truth, predicted = (np.searchsorted(self._classes, names) for names in (self._truth, one.predicted))
        return Forecast(truth, aligned, predicted)

    @cached_property
    def _outcomes(self) -> dict[str, Forecast]:
        return {name: self._outcome(one) for name, one in self._models.items()}

    @property
    def measure(self) -> str:
        """What the scoring is, for people: the average precision of a class, with its name."""
        return self._measures[self._scoring.name].words

    @property
    def by_accuracy(self) -> bool:
        """Whether the scoring is accuracy or balanced accuracy, of which the report has leads of its own."""
        return self._scoring.name in ACCURACIES

    @property
    def figure(self) -> Figure:
        """The value of the scoring for the model of the training."""
        return self._figures_of(self._scoring.name)[self._own]

    @property
    def leads(self) -> Mapping[str, Figure]:
        """By how much the model's scoring is above that of the others, by the words that name them."""
        return self._leads

    @cached_property
    def _measures(self) -> dict[str, Scoring]:
        """What is shown: the scoring first."""
        from pprop.scoring import Scoring

        positive = self._scoring.positive
        names = [self._scoring.name, *(() if positive is not None else BESIDE)]
        return {name: Scoring(name, self._classes, positive) for name in dict.fromkeys(names)}

    @property
    def _times(self) -> int:
        """How many resamples there are."""
        return max(50, min(RESAMPLES, DRAWN // (len(self._truth) * len(self._classes))))

    @cached_property
    def _resampled(self) -> dict[str, dict[str, NDArray[np.float64]]]:
        """The values of each measure for each model on the resamples."""
        return {
            name: {model: measure.resampled(outcome, self._times) for model, outcome in self._outcomes.items()}
            for name, measure in self._measures.items()
        }

    @cached_property
    def _judged(self) -> dict[str, dict[str, Judged]]:
        return {
            name: {model: measure.judge(outcome) for model, outcome in self._outcomes.items()}
            for name, measure in self._measures.items()
        }

    def _figures_of(self, name: str) -> dict[str, Figure]:
        from pprop.scoring import ends
        from pprop.scoring.judged_nodes import Figure

        drawn = self._resampled[name]
        return {model: Figure(one.value, ends(drawn[model])) for model, one in self._judged[name].items()}

    @cached_property
    def _leads(self) -> dict[str, Figure]:
        """By how much the model's scoring is above another's, on the same resamples."""
        from pprop.scoring import ends
        from pprop.scoring.judged_nodes import Figure

        name = self._scoring.name
        values = {model: one.value for model, one in self._judged[name].items()}
        drawn = self._resampled[name]
        if self._majority is not None:
            measure, outcome = self._measures[name], self._outcome(self._majority)
            values = {MAJORITY: measure.judge(outcome).value, **values}
            drawn = {MAJORITY: measure.resampled(outcome, self._times), **drawn}
        return {
            other: Figure(values[self._own] - values[other], ends(drawn[self._own] - drawn[other]))
            for other in values
            if other != self._own
        }

    @property
    def _positives(self) -> NDArray[np.bool_]:
        return self._truth == self._scoring.positive

    @property
    def ranks(self) -> bool:
        """Whether there is a class to rank by, with test nodes in it and outside it."""
        return self._scoring.positive is not None and 0 < int(self._positives.sum()) < len(self._truth)

    @cached_property
    def _ranked(self) -> dict[str, JudgedNodes]:
        import numpy as np

        from pprop.scoring.judged_nodes import JudgedNodes

        (column,) = np.flatnonzero(self._classes == self._scoring.positive).tolist()
        return {
            name: JudgedNodes(self._positives, outcome.probabilities[:, column])
            for name, outcome in self._outcomes.items()
        }

    @property
    def _top(self) -> int:
        from pprop.scoring.judged_nodes import top_of

        return top_of(len(self._truth))

    @cached_property
    def _rankings(self) -> dict[str, dict[str, Figure]]:
        return {name: one.figures(self._top) for name, one in self._ranked.items()}

    def record(self) -> dict[str, Any]:
        """Return the same for --json."""
        figures = {name: self._figures_of(name) for name in self._measures}
        found: dict[str, Any] = {
            "scoring": self._scoring.name,
            "positive": self._scoring.positive,
            "why": self._why,
            "values": {
                name: {_key(model): figure.record() for model, figure in by_model.items()}
                for name, by_model in figures.items()
            },
            "leads": {_key(model): figure.record() for model, figure in self._leads.items()},
            "worst_classes": {
                name: {"class": worst[0], "value": worst[1]}
                for name, by_model in self._judged.items()
                if (worst := by_model[self._own].worst) is not None
            },
        }
        if self.ranks:
            found["ranking"] = {
                "top": self._top,
                "positives": int(self._positives.sum()),
                **{
                    _key(model): {name: figure.record() for name, figure in by_name.items()}
                    for model, by_name in self._rankings.items()
                },
            }
        return found

    def lines(self, compared: str = "") -> list[str]:
        """Return the same for people, without what the report has above: the accuracy, and leads in the measure `compared`."""
        from pprop.scoring.judged_nodes import FIGURES

        lines = [self._why, ""]
        if self.ranks:
            rows = [
                [words.format(top=self._top), *(str(each[name]) for each in self._rankings.values())]
                for name, words in FIGURES.items()
            ]
            few = counted(int(self._positives.sum()), "test node")
            title = f"{self._scoring.positive!r} ({few} of {len(self._truth):,})"
        else:
            rows, title = [], "on the test nodes"
        shown = [] if self.ranks and self._scoring.metric.ranks else [self._scoring.name]
        if self._scoring.positive is None:
            shown = [*self._measures]
        above = set(ACCURACIES)  # the second without an interval, unless models are compared by it
        if self._scoring.name == "balanced_accuracy" != compared:
            above.remove("balanced_accuracy")
        for name in shown:
            if name not in above:
                rows.append([self._measures[name].words, *map(str, self._figures_of(name).values())])
        if rows:
            lines += [
                columns((title, *self._models), rows),
                "Each figure has its 95 % interval on the same test nodes.",
            ]
        if self.ranks:
            lines.append(
                f"The calibration error is the mean distance of a probability of {self._scoring.positive!r} from the share that is."
            )
        return [
            *lines,
            *self._worst_in_words(),
            *([] if self._scoring.name == compared else self._leads_in_words()),
            "",
        ]

    def _worst_in_words(self) -> list[str]:
        return [
            f"The worst class of {self._own} by {self._measures[name].metric.words} is {worst[0]!r}: {worst[1]:.3f}."
            for name, by_model in self._judged.items()
            if (worst := by_model[self._own].worst) is not None
        ]

    def _leads_in_words(self) -> list[str]:
        found = list[str]()
        for other, lead in self._leads.items():
            low, high = lead.interval
            if math.isnan(lead.value):
                continue
            found.append(
                f"{self._own}'s lead in {self._measures[self._scoring.name].words} over {_NAMED.get(other, other)}: "
                f"{lead.value:+.3f} (95 % interval {low:+.3f} to {high:+.3f})."
            )
        return found

    def cautions(self) -> list[str]:
        """Return what someone should know before using the ranking."""
        if not self.ranks:
            return []
        area, positive = self._rankings[self._own]["roc_auc"], self._scoring.positive
        if area.interval[1] < CHANCE:
            return [
                f"{self._own} ranks {positive!r} worse than chance does: its ROC AUC is {area.value:.3f}, below {CHANCE:g}. "
                "Do not use the order of its probabilities."
            ]
        return []

    def picture(self) -> RankingPicture | None:
        """Return what the picture of the ranking shows; None where there is no class to rank by."""
        if not self.ranks:
            return None
        from pprop.study.figures.model import RankingPicture

        share = float(self._positives.mean())
        curves = {name: one.curves() for name, one in self._ranked.items()}
        return RankingPicture(str(self._scoring.positive), share, curves)


def _key(model: str) -> str:
    return model.replace(" ", "_").replace("-", "_")


def scoring_of(fitted: Any, names: NDArray[Any]) -> tuple[Scoring, str]:
    """Return what a fitted model is judged by, and a sentence that says why; `names` are the classes of its training nodes.

    auto says by what it chose; another model may have a scoring of its own, else the labels say.
    """
    import numpy as np

    from pprop.scoring import Scoring, default_scoring

    chosen_by = getattr(fitted, "scoring_", None)
    if isinstance(chosen_by, Scoring):
        return chosen_by, str(fitted.why_)
    classes, counts = np.unique(names, return_counts=True)
    positive, wanted = getattr(fitted, "positive", None), getattr(fitted, "scoring", None)
    if wanted is None:
        return default_scoring(classes, counts, positive, function="train")
    scoring = Scoring.read(wanted, classes, counts, positive, function="train")
    return (
        scoring,
        f"Judged by {'the ' if scoring.positive is not None and scoring.metric.by_class else ''}{scoring.words}.",
    )
