"""How good predictions are on held-out nodes: accuracy with its interval, per class, and beside simple baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from pprop._validate import counted, listed
from pprop.cli.output import columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pprop.datasets import Split
    from pprop.graph import Graph

CONFIDENCE = 0.95
SMALL = 30  # nodes: with fewer, the interval of an accuracy is wider than 30 points
MOST_CLASSES = 30  # in a table
RARE = 0.2  # share of the nodes outside the largest class
BASELINES = {"majority": "majority class", "label_propagation": "label propagation", "network": "network alone"}


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
    """

    nodes: int
    accuracy: float
    interval: tuple[float, float]
    balanced_accuracy: float
    macro_f1: float
    classes: tuple[ClassScore, ...]

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
        right = int(np.count_nonzero(truth == predicted))
        ends = binomtest(right, len(truth)).proportion_ci(CONFIDENCE, method="wilson")
        measure: Any = precision_recall_fscore_support
        found: list[NDArray[Any]] = list(measure(truth, predicted, labels=names, zero_division=0.0))
        precision, recall, f1, nodes = found
        made = [int(np.count_nonzero(predicted == name)) for name in names]
        rows = zip(names.tolist(), nodes.tolist(), made, precision.tolist(), recall.tolist(), f1.tolist(), strict=True)
        return cls(
            nodes=len(truth),
            accuracy=right / len(truth),
            interval=(float(ends.low), float(ends.high)),
            balanced_accuracy=float(np.mean(recall[nodes > 0])),
            macro_f1=float(np.mean(f1[(nodes > 0) | (np.array(made) > 0)])),
            classes=tuple(ClassScore(*row) for row in rows),
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
            f"test accuracy      {self.accuracy:.1%} of {counted(self.nodes, 'node')} (95 % interval {low:.1%} to {high:.1%})",
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


def baseline_table(model: str, evaluation: Evaluation, baselines: Mapping[str, Evaluation | None]) -> str:
    """Return the model and the baselines, one line each."""
    rows: list[Sequence[object]] = [
        [name, f"{one.accuracy:.1%}", f"{one.balanced_accuracy:.1%}", f"{one.macro_f1:.3f}"]
        for name, one in ((model, evaluation), *((BASELINES[key], each) for key, each in baselines.items()))
        if one is not None
    ]
    return columns(("on the test nodes", "accuracy", "balanced accuracy", "macro F1"), rows)


def cautions(
    model: str, evaluation: Evaluation, baselines: Mapping[str, Evaluation | None], *, balanced: bool
) -> list[str]:
    """Return what someone should know before trusting these figures, one sentence each."""
    found: list[str] = []
    if evaluation.nodes < SMALL:
        low, high = evaluation.interval
        found.append(
            f"Only {counted(evaluation.nodes, 'node')} to test on: the accuracy may as well be {low:.0%} or {high:.0%}."
        )
    measure = "balanced_accuracy" if balanced else "accuracy"
    ours = getattr(evaluation, measure)
    for name, one in baselines.items():
        if one is not None and getattr(one, measure) > ours:
            what = measure.replace("_", " ")
            remedy = {"majority": "", "label_propagation": "--model label-propagation", "network": "--model mlp"}[name]
            advice = f" Try {remedy}, or --model auto, which chooses." if remedy else ""
            found.append(
                f"{BASELINES[name].capitalize()} does better than {model} on the test nodes: {what} "
                f"{getattr(one, measure):.1%} against {ours:.1%}.{advice}"
            )
    never = [row.name for row in evaluation.classes if row.nodes and not row.predicted]
    if never:
        which = f"{counted(len(never), 'class', 'classes')} of the test nodes {'is' if len(never) == 1 else 'are'}"
        advice = "" if balanced else " Try --class-weight balanced."
        found.append(f"{which} never predicted ({listed(never)}).{advice}")
    untested = [row.name for row in evaluation.classes if not row.nodes]
    if untested:
        which = f"{counted(len(untested), 'class', 'classes')} ({listed(untested)})"
        found.append(f"No test node is of {which}: nothing is known about them.")
    largest = max(row.nodes for row in evaluation.classes)
    if largest > (1 - RARE) * evaluation.nodes and len(evaluation.classes) > 1 and not balanced:
        found.append(
            f"{largest / evaluation.nodes:.0%} of the test nodes are of one class: look at the balanced accuracy, not the "
            "accuracy."
        )
    return found
