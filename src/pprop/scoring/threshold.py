"""A threshold: from which probability on a node is taken for the class that is looked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Self, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import InputError, Remedy
from pprop._validate import counted, read_threshold
from pprop.scoring.measures import Floats, Ranking


@final
@dataclass(frozen=True)
class ThresholdRule:
    """How a threshold is chosen on validation nodes.

    Attributes
    ----------
    kind
        "f1": the largest F1. "precision": the largest recall at this precision or more. "recall": the largest precision at
        this recall or more. "cost": the least cost. "probability": this one.
    values
        The numbers that belong to it: none, one, or the two costs.

    Examples
    --------
    >>> ThresholdRule.read("precision=0.5")
    ThresholdRule(kind='precision', values=(0.5,))
    >>> ThresholdRule.read("cost=10:1")
    ThresholdRule(kind='cost', values=(10.0, 1.0))
    >>> ThresholdRule.read(0.3)
    ThresholdRule(kind='probability', values=(0.3,))
    """

    kind: str
    values: tuple[float, ...] = ()

    @classmethod
    def read(cls, given: object, function: str = "fit") -> Self:
        """Return the rule that a text or a number stands for."""
        return cls(*read_threshold(given, "threshold", function))

    @property
    def words(self) -> str:
        """What the threshold is chosen for, for people.

        >>> ThresholdRule.read("cost=10:1").words
        'the least cost, a miss at 10 and a false alarm at 1'
        """
        match self.kind, self.values:
            case "precision", (share,):
                return f"the largest recall with a precision of at least {share:g}"
            case "recall", (share,):
                return f"the largest precision with a recall of at least {share:g}"
            case "cost", (miss, alarm):
                return f"the least cost, a miss at {miss:g} and a false alarm at {alarm:g}"
            case "probability", _:
                return "a given probability"
            case _:
                return "the largest F1"

    def check(self, positive: Any, positives: int, nodes: int) -> None:
        """Refuse validation nodes on which no threshold can be chosen, because none of them is of the class.

        >>> ThresholdRule("f1").check("fraud", 0, 40)
        Traceback (most recent call last):
            ...
        pprop._errors.InputError: No threshold can be chosen: none of 40 validation nodes is 'fraud'. Label more nodes of this \
class, use more nodes for validation, or give a probability: threshold=0.5.
        """
        if positives or self.kind == "probability":
            return
        advice = "Label more nodes of this class, use more nodes for validation, or give a probability: {}"
        raise InputError(
            f"No threshold can be chosen: none of {counted(nodes, 'validation node')} is {positive!r}.",
            remedies=[Remedy(f"{advice}=0.5.", ("threshold",), shell=f"{advice} 0.5")],
        )


@final
@dataclass(frozen=True)
class Threshold:
    """From which probability on a node is taken for the positive class, and what this gave on the nodes it was chosen on.

    Attributes
    ----------
    positive
        The name of the class.
    probability
        A node whose probability is at least this is taken.
    rule
        What it was chosen for.
    nodes, positives, taken, hits
        Of the nodes that it was chosen on: how many, how many are of the class, how many it takes, and how many of those
        are of the class.

    Examples
    --------
    >>> threshold = Threshold.choose(
    ...     ThresholdRule("f1"), "yes", np.array([True, True, False, False]), np.array([0.9, 0.4, 0.3, 0.1])
    ... )
    >>> threshold.probability, threshold.precision, threshold.recall
    (0.35, 1.0, 1.0)
    >>> threshold.takes(np.array([0.35, 0.2]))
    array([ True, False])
    """

    positive: Any
    probability: float
    rule: ThresholdRule
    nodes: int
    positives: int
    taken: int
    hits: int

    @classmethod
    def choose(cls, rule: ThresholdRule, positive: Any, of_class: NDArray[np.bool_], scores: NDArray[Any]) -> Self:
        """Return the threshold that suits a rule best on some nodes.

        Between two scores it lies half-way; of equally good thresholds the one that takes fewest nodes is chosen.

        Parameters
        ----------
        rule
            What to choose for.
        positive
            The name of the class.
        of_class
            Which of the nodes are of the class, shape (m,).
        scores
            Their probabilities of the class, shape (m,).
        """
        positives = int(np.count_nonzero(of_class))
        if rule.kind == "probability":
            taken = scores >= rule.values[0]
            hits = int(np.count_nonzero(taken & of_class))
            return cls(positive, rule.values[0], rule, len(scores), positives, int(np.count_nonzero(taken)), hits)
        rule.check(positive, positives, len(scores))
        ranking = Ranking(of_class, scores)
        found, everything = (np.append(0.0, each) for each in ranking.taken(np.ones(len(scores))))
        at = _best(rule, positive, found, everything, positives)
        places = ranking.thresholds()
        above = places[at - 1] if at else np.nextafter(places[0], np.inf)
        below = places[at] if at < len(places) else 0.0
        probability = float((above + below) / 2 if at else above)
        return cls(positive, probability, rule, len(scores), positives, int(everything[at]), int(found[at]))

    @property
    def precision(self) -> float:
        """Of the nodes it takes, the share that is of the class; 0 where it takes none."""
        return self.hits / self.taken if self.taken else 0.0

    @property
    def recall(self) -> float:
        """Of the nodes of the class, the share that it takes; 0 where there are none."""
        return self.hits / self.positives if self.positives else 0.0

    def takes(self, scores: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether nodes with these probabilities are taken for the class."""
        return scores >= self.probability

    def sentence(self) -> str:
        """Return what it is and what it gave, for people.

        >>> import textwrap
        >>> print(textwrap.fill(Threshold("yes", 0.35, ThresholdRule("f1"), 40, 10, 12, 9).sentence(), 100))
        A node is taken for 'yes' from a probability of 0.35 on, chosen for the largest F1: of 40 validation
        nodes it takes 12, with a precision of 75.0 % and a recall of 90.0 %.
        """
        why = "" if self.rule.kind == "probability" else f", chosen for {self.rule.words}"
        return (
            f"A node is taken for {self.positive!r} from a probability of {self.probability:.3g} on{why}: of "
            f"{counted(self.nodes, 'validation node')} it takes {self.taken:,}, with a precision of {100 * self.precision:.1f} % "
            f"and a recall of {100 * self.recall:.1f} %."
        )

    def record(self) -> dict[str, Any]:
        """Return what `from_record` reads, for JSON."""
        return vars(self) | {"rule": {"kind": self.rule.kind, "values": list(self.rule.values)}}

    def described(self) -> dict[str, Any]:
        """Return the record with what the threshold gave and its sentence, for JSON that is read by others."""
        return self.record() | {"precision": self.precision, "recall": self.recall, "sentence": self.sentence()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the threshold that was recorded.

        >>> threshold = Threshold("yes", 0.35, ThresholdRule("precision", (0.5,)), 40, 10, 12, 9)
        >>> Threshold.from_record(threshold.record()) == threshold
        True
        """
        fields: dict[str, Any] = dict(record)
        fields["rule"] = ThresholdRule(record["rule"]["kind"], tuple(record["rule"]["values"]))
        return cls(**fields)


def _best(rule: ThresholdRule, positive: Any, found: Floats, everything: Floats, positives: int) -> int:
    """Return how many places of the ranking are taken, given what each number of them takes; none takes nothing."""
    recall = found / positives
    precision = np.divide(found, everything, out=np.zeros_like(found), where=everything > 0)
    match rule.kind, rule.values:
        case "precision", (least,):
            if not (precision >= least).any():
                _unreachable(least, positive, float(precision.max()))
            worth = np.where(precision >= least, recall, -1.0)
        case "recall", (least,):
            worth = np.where(recall >= least, precision, -1.0)
        case "cost", (miss, alarm):
            worth = -(miss * (positives - found) + alarm * (everything - found))
        case _:
            worth = 2 * found / (everything + positives)
    return int(worth.argmax())


def _unreachable(least: float, positive: Any, largest: float) -> NoReturn:
    raise InputError(
        f"No threshold takes nodes for {positive!r} with a precision of at least {least:g}: the largest there is on the "
        f"validation nodes is {largest:.3f}. Ask for less, or for a recall."
    )
