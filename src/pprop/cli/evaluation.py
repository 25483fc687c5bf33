"""How good predictions are on held-out nodes: accuracy with its interval, per class, and beside simple baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from pprop._validate import counted, listed
from pprop.cli.output import columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pprop.datasets import Split
    from pprop.graph import Graph

CONFIDENCE = 0.95
SMALL = 30  # nodes: with fewer, the interval of an accuracy is wider than 30 points
MOST_CLASSES = 30  # in a table
RARE = 0.2  # share of the nodes outside the largest class
BASELINES = {"majority": "majority class", "label_propagation": "label propagation", "network": "network alone"}
# the same within a sentence
_NAMED = {"majority": "the majority class", "label_propagation": "label propagation", "network": "the network alone"}
# the baselines that --model auto tries
_TRIED = ("label_propagation", "network")


@final
@dataclass(frozen=True)
class ClassScore:
    """How the nodes of one class were predicted; a share of nothing is 0, as in scikit-learn."""

    name: Any
    nodes: int
    predicted: int
    precision: float
    recall: float
    f1: float


@final
@dataclass(frozen=True)
class Evaluation:
    """Predictions compared with the truth.

    Attributes
    ----------
    nodes, accuracy, interval
        How many, the share of them that is right, and Wilson's 95 % interval of that share.
    balanced_accuracy
        Mean recall of the classes that occur among the nodes.
    macro_f1
        Mean F1 of the classes that occur among the nodes or the predictions.
    classes
        One by one, in their order.
    truth, right
        The class of each node, and whether it was predicted, both of shape (nodes,).
    """

    nodes: int
    accuracy: float
    interval: tuple[float, float]
    balanced_accuracy: float
    macro_f1: float
    classes: tuple[ClassScore, ...]
    truth: NDArray[Any] = field(repr=False, compare=False)
    right: NDArray[np.bool_] = field(repr=False, compare=False)

    @classmethod
    def of(cls, truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any] | None = None) -> Evaluation:
        """Compare predictions with the truth, both of shape (m,), m > 0; `classes` are all there are.

        >>> import numpy as np
        >>> found = Evaluation.of(np.array(["a", "a", "a", "b"]), np.array(["a", "a", "b", "b"]))
        >>> found.accuracy, round(found.balanced_accuracy, 3), round(found.macro_f1, 3)
        (0.75, 0.833, 0.733)
        >>> [round(end, 3) for end in found.interval]
        [0.301, 0.954]
        """
        import numpy as np
        from scipy.stats import binomtest
        from sklearn.metrics import precision_recall_fscore_support

        names = np.unique(np.concatenate([truth, predicted, *([] if classes is None else [classes])]))
        right = truth == predicted
        hits = int(np.count_nonzero(right))
        ends = binomtest(hits, len(truth)).proportion_ci(CONFIDENCE, method="wilson")
        measure: Any = precision_recall_fscore_support
        found: list[NDArray[Any]] = list(measure(truth, predicted, labels=names, zero_division=0.0))
        precision, recall, f1, nodes = found
        made = [int(np.count_nonzero(predicted == name)) for name in names]
        rows = zip(names.tolist(), nodes.tolist(), made, precision.tolist(), recall.tolist(), f1.tolist(), strict=True)
        return cls(
            nodes=len(truth),
            accuracy=hits / len(truth),
            interval=(float(ends.low), float(ends.high)),
            balanced_accuracy=float(np.mean(recall[nodes > 0])),
            macro_f1=float(np.mean(f1[(nodes > 0) | (np.array(made) > 0)])),
            classes=tuple(ClassScore(*row) for row in rows),
            truth=truth,
            right=right,
        )

    def record(self) -> dict[str, Any]:
        """Return the figures for --json."""
        return {
            "test_accuracy": self.accuracy,
            "test_interval": list(self.interval),
            "balanced_accuracy": self.balanced_accuracy,
            "macro_f1": self.macro_f1,
            "per_class": [
                {"class": row.name} | {k: v for k, v in vars(row).items() if k != "name"} for row in self.classes
            ],
        }

    def lines(self) -> list[str]:
        """Return the figures for people."""
        low, high = self.interval
        return [
            f"test accuracy      {self.accuracy:.1%} of {counted(self.nodes, 'test node')} (95 % interval {low:.1%} to {high:.1%})",
            f"balanced accuracy  {self.balanced_accuracy:.1%}",
            f"macro F1           {self.macro_f1:.3f}",
        ]

    def table(self) -> str:
        """Return one line per class, the largest first."""
        ordered = sorted(self.classes, key=lambda row: -row.nodes)
        cells = [
            [row.name, row.nodes, row.predicted, f"{row.precision:.1%}", f"{row.recall:.1%}", f"{row.f1:.3f}"]
            for row in ordered[:MOST_CLASSES]
        ]
        left_out = len(ordered) - len(cells)
        more = f"\n... and {counted(left_out, 'smaller class', 'smaller classes')}" if left_out else ""
        return columns(("class", "test nodes", "predicted", "precision", "recall", "F1"), cells) + more


def evaluate_baselines(
    graph: Graph, labels: NDArray[Any], split: Split, settings: Mapping[str, Any], known: Mapping[str, Evaluation]
) -> dict[str, Evaluation | None]:
    """Return what simple ways achieve on the test nodes, by the names in `BASELINES`; None for one that cannot be used.

    All are given the labels that the model was given, those of training and stopping nodes.

    Parameters
    ----------
    graph, labels, split
        As for the model; labels as classes.
    settings
        Of the network.
    known
        Those that need not be computed, because the model is one of them.
    """
    import numpy as np

    from pprop.estimators import LabelPropagationClassifier, MLPNodeClassifier

    test, truth = split.evaluation, labels[split.evaluation]
    given = np.concatenate([split.train, split.stopping])
    classes, counts = np.unique(labels[given], return_counts=True)
    found: dict[str, Evaluation | None] = {name: known.get(name) for name in BASELINES}
    found["majority"] = Evaluation.of(truth, np.full(len(test), classes[counts.argmax()]))
    if found["label_propagation"] is None:
        spread = LabelPropagationClassifier(graph).fit(given, labels[given], missing_labels=())
        found["label_propagation"] = Evaluation.of(truth, spread.predict(test))
    if found["network"] is None and graph.features is not None:
        alone = MLPNodeClassifier(graph, **settings)
        watched = (split.stopping, labels[split.stopping]) if len(split.stopping) else None
        alone.fit(split.train, labels[split.train], stopping=watched, missing_labels=())
        found["network"] = Evaluation.of(truth, alone.predict(test))
    return found


@final
@dataclass(frozen=True)
class Lead:
    """By how much one prediction of some nodes is better than another of the same nodes.

    Both are judged on the same nodes, so only those count that one has right and the other has not. The interval is the
    adjusted Wald interval of Bonett and Price (2012) for the difference of paired proportions; of a balanced accuracy, for
    the mean of such differences over the classes.

    Attributes
    ----------
    lead, interval
        The difference of the two accuracies, or balanced accuracies, as a share, and its 95 % interval.
    """

    lead: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, ours: Evaluation, theirs: Evaluation, *, balanced: bool = False) -> Lead:
        """Compare two evaluations of the same nodes.

        >>> import numpy as np
        >>> truth = np.repeat(["a", "b"], 50)
        >>> ours = Evaluation.of(truth, np.where(np.arange(100) < 90, truth, "c"))
        >>> theirs = Evaluation.of(truth, np.where(np.arange(100) < 70, truth, "c"))
        >>> found = Lead.of(ours, theirs)
        >>> round(found.lead, 3), [round(end, 3) for end in found.interval]
        (0.2, [0.114, 0.278])
        """
        import numpy as np
        from scipy.stats import norm

        groups = [ours.truth == name for name in np.unique(ours.truth)] if balanced else [np.ones(ours.nodes, bool)]
        only_ours, only_theirs = ours.right & ~theirs.right, theirs.right & ~ours.right
        n = np.array([group.sum() for group in groups])
        wins, losses = (np.array([(one & group).sum() for group in groups]) for one in (only_ours, only_theirs))
        p, q = (wins + 1) / (n + 2), (losses + 1) / (n + 2)
        centre = float(np.mean(p - q))
        width = float(norm.ppf((1 + CONFIDENCE) / 2) * np.sqrt(np.sum((p + q - (p - q) ** 2) / (n + 2))) / len(groups))
        return cls(float(np.mean((wins - losses) / n)), (max(-1.0, centre - width), min(1.0, centre + width)))

    @property
    def points(self) -> str:
        """The lead and its interval in points, for people.

        >>> Lead(0.2, (0.115, 0.278)).points
        '+20.0 (11.5 to 27.8)'
        """
        low, high = self.interval
        return f"{100 * self.lead:+.1f} ({100 * low:.1f} to {100 * high:.1f})"


def measure_of(*, balanced: bool) -> str:
    """Return the name of the measure by which models are compared: with class weights, the classes count alike."""
    return "balanced accuracy" if balanced else "accuracy"


def baseline_table(
    model: str, evaluation: Evaluation, baselines: Mapping[str, Evaluation | None], *, balanced: bool
) -> str:
    """Return the model and the baselines, one line each, with the lead of the model over each baseline."""
    rows: list[Sequence[object]] = [
        [name, f"{one.accuracy:.1%}", f"{one.balanced_accuracy:.1%}", f"{one.macro_f1:.3f}", lead]
        for name, one, lead in (
            (model, evaluation, ""),
            *(
                (BASELINES[key], each, Lead.of(evaluation, each, balanced=balanced).points)
                for key, each in baselines.items()
                if each is not None
            ),
        )
    ]
    heading = f"{model}'s lead in {measure_of(balanced=balanced)}"
    table = columns(("on the test nodes", "accuracy", "balanced accuracy", "macro F1", heading), rows)
    return f"{table}\nA lead is in points, with its 95 % interval on the same test nodes."


def comparison(model: str, name: str, ours: Evaluation, theirs: Evaluation, *, balanced: bool) -> str:
    """Return what the test nodes show of a model beside a baseline that it does not clearly beat; empty where it does.

    >>> import numpy as np
    >>> truth = np.array(["a", "b"] * 10)
    >>> ours, theirs = Evaluation.of(truth, truth), Evaluation.of(truth, np.roll(truth, 1))
    >>> comparison("appnp", "network", ours, theirs, balanced=False)
    ''
    >>> comparison("appnp", "network", theirs, ours, balanced=False)[:66]
    'The network alone has a better accuracy than appnp on these 20 tes'
    """
    lead = Lead.of(ours, theirs, balanced=balanced)
    low, high = lead.interval
    if low > 0:
        return ""
    graph_matters = name == "network"
    if high < 0:
        better = _NAMED[name][0].upper() + _NAMED[name][1:]
        found = (
            f"{better} has a better {measure_of(balanced=balanced)} than {model} on these {counted(ours.nodes, 'test node')}, "
            f"by {-100 * lead.lead:.1f} points (95 % interval {-100 * high:.1f} to {-100 * low:.1f})."
        )
        advice = " Averaging over neighbours does not help here." if graph_matters else ""
        if name in _TRIED and model != "auto":
            advice += " --model auto compares the models on labels outside the test nodes."
        return found + advice
    advice = " They do not show that the graph helps." if graph_matters else ""
    return (
        f"{model} and {_NAMED[name]}: no difference that {counted(ours.nodes, 'test node')} can show (lead in "
        f"{measure_of(balanced=balanced)} {100 * lead.lead:+.1f} points, 95 % interval {100 * low:.1f} to {100 * high:.1f}).{advice}"
    )


def cautions(
    model: str, evaluation: Evaluation, baselines: Mapping[str, Evaluation | None], *, balanced: bool
) -> list[str]:
    """Return what someone should know before trusting these figures, one sentence each.

    None of them tells anybody to choose a model by the labels of the test nodes: then nothing would be left to judge it by.
    """
    found: list[str] = []
    if evaluation.nodes < SMALL:
        low, high = evaluation.interval
        found.append(
            f"Only {counted(evaluation.nodes, 'test node')}: the 95 % interval of the accuracy is {low:.0%} to {high:.0%}."
        )
    compared = [
        comparison(model, name, evaluation, one, balanced=balanced)
        for name, one in baselines.items()
        if one is not None and one is not evaluation
    ]
    found += [sentence for sentence in compared if sentence]
    never = [row.name for row in evaluation.classes if row.nodes and not row.predicted]
    if never:
        which = counted(len(never), "class of test nodes is", "classes of test nodes are")
        found.append(f"{which} never predicted: {listed(never)}.")
    untested = [row.name for row in evaluation.classes if not row.nodes]
    if untested:
        which, them = ("the class", "it") if len(untested) == 1 else (f"{len(untested)} classes:", "them")
        found.append(f"No test node is of {which} {listed(untested)}. The figures say nothing about {them}.")
    largest = max(evaluation.classes, key=lambda row: row.nodes)
    if largest.nodes > (1 - RARE) * evaluation.nodes and len(evaluation.classes) > 1 and not balanced:
        found.append(
            f"{largest.nodes / evaluation.nodes:.0%} of the test nodes are of one class, {largest.name!r}: look at the "
            "balanced accuracy and at the recall of the other classes."
        )
    return found
