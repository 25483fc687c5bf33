"""The report of ``pprop train``: how good the model is and how sure one can be of it, beside simple baselines.

First the report, then what it consists of: measures on held-out nodes, the comparison with baselines, how the training went,
and what became of the columns of tables.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from pprop._validate import counted, listed
from pprop.cli.graphs import GraphInput
from pprop.cli.judgement import MAJORITY, Judgement, Predicted
from pprop.cli.output import columns, picked
from pprop.settings import SCALING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pprop.cli.splits import Drawn
    from pprop.datasets import Split
    from pprop.estimators import APPNPClassifierCV, APPNPEnsembleClassifier, AutoClassifier, NodeClassifier
    from pprop.estimators.fitted import Fitted, TrainingRecord
    from pprop.graph import Graph
    from pprop.graph.features.column_recipe import ColumnRecipe
    from pprop.graph.homophily import Homophily
    from pprop.scoring import Scoring
    from pprop.study.figures.model import RankingPicture

FEW_STOPPING = 10  # nodes: one of them more or less right moves the validation accuracy by ten points
SHOWN = 10  # columns of a table in a report, of those used and of those left out
BASELINE_OF = {"MLPNodeClassifier": "network", "LabelPropagationClassifier": "label_propagation"}
CONFIDENCE = 0.95
SMALL = 30  # nodes: with fewer, the interval of an accuracy is wider than 30 points
MOST_CLASSES = 30  # in a table
RARE = 0.2  # share of the nodes outside the largest class
BASELINES = {"majority": MAJORITY, "label_propagation": "label propagation", "network": "network alone"}
# the same within a sentence
_NAMED = {"majority": "the majority class", "label_propagation": "label propagation", "network": "the network alone"}
_MATRICES = {
    "row": "row: means over neighbours",
    "sym": "sym: the paper's; probabilities without the factor of the number of neighbours",
    "col": "col: sums over neighbours; probabilities without the factor of the number of neighbours",
}
# the baselines that --model auto tries
_TRIED = ("label_propagation", "network")


@final
class Report:
    """The figures of one fitted model on its test nodes, and of the baselines once they are compared.

    `alike` is what the edges between training nodes show, `judged_by` what `scoring_of` returns. `chosen` is what auto adds to the
    record, see `candidates_of`; empty for another model.
    """

    def __init__(
        self,
        fitted: Any,
        model: str,
        origin: GraphInput,
        drawn: Drawn,
        alike: Homophily,
        labels: NDArray[Any],
        judged_by: tuple[Scoring, str],
        chosen: dict[str, Any],
    ) -> None:
        split = drawn.split
        self._fitted, self._model, self._origin, self._split, self._labels = fitted, model, origin, split, labels
        self._drawn, self._alike, self._chosen = drawn, alike, chosen
        test = split.evaluation
        self._evaluation = Evaluation.of(labels[test], fitted.predict(test), fitted.classes_) if len(test) else None
        self._baselines: dict[str, Evaluation | None] = {}
        self._judged_by, self._majority = judged_by, None
        self._predicted = {model: Predicted.of(fitted, test)} if len(test) else dict[str, Predicted]()
        self._judgement = self._judge()

    def _judge(self) -> Judgement | None:
        scoring, why = self._judged_by
        truth = self._labels[self._split.evaluation]
        return Judgement(scoring, why, truth, self._predicted, self._majority) if self._predicted else None

    def picture(self) -> RankingPicture | None:
        """Return what the picture of the ranking shows, if there is a class to rank by."""
        return None if self._judgement is None else self._judgement.picture()

    def compare(self, arguments: Mapping[str, Any]) -> None:
        """Fit the baselines on the same nodes; the network has the model's settings."""
        if self._evaluation is None:
            return
        own = BASELINE_OF.get(type(self._fitted).__name__)
        if self._chosen.get("chosen") == ["majority"]:  # label propagation that spreads nothing
            own = None
        known = {} if own is None else {own: self._evaluation}
        graph, labels, split = self._fitted.graph_, self._labels, self._split
        self._baselines, predicted = evaluate_baselines(graph, labels, split, arguments, known)
        self._majority = predicted.pop("majority")
        self._predicted |= {BASELINES[name]: one for name, one in predicted.items()}
        self._judgement = self._judge()

    def record(self, init_seed: int | None) -> dict[str, Any]:
        """Return the report for --json."""
        fitted, split, origin = self._fitted, self._split, self._origin
        empty: dict[str, Any] = dict.fromkeys(
            ("test_accuracy", "test_interval", "balanced_accuracy", "macro_f1", "per_class")
        )
        measures = {"baselines": "accuracy", "baselines_balanced_accuracy": "balanced_accuracy"}
        return {
            "model": self._model,
            "graph": origin.title,
            **(empty if self._evaluation is None else self._evaluation.record()),
            **{
                key: {name: None if one is None else getattr(one, measure) for name, one in self._baselines.items()}
                for key, measure in measures.items()
            },
            "leads": {
                "measure": self._compared,
                "over": {
                    name: None if one is None or self._evaluation is None else vars(self._lead(self._evaluation, one))
                    for name, one in self._baselines.items()
                },
            },
            **picked(fitted.record_, "stopping_accuracy", "stopping_loss"),
            **course(fitted)[0],
            **self._chosen,
            **picked(fitted.record_, "seconds", "compile_seconds", "backend", "device", "seed"),
            "split": self._drawn.record,
            "split_seed": split.seed,
            "init_seed": (init_seed or 0) if origin.path is None else None,
            "train_nodes": len(split.train),
            "stopping_nodes": len(split.stopping),
            "test_nodes": len(split.evaluation),
            "alpha": fitted.alpha_,
            "normalization": fitted.normalization_,
            "scaling": None if fitted.scaling_ is None else fitted.scaling_.kind,
            "parameters": sum(int(array.size) for array in fitted.weights_.values()),
            "classes": fitted.classes_,
            "fingerprint": fitted.graph_.fingerprint,
            "homophily": vars(self._alike),
            "judgement": None if self._judgement is None else self._judgement.record(),
            "cautions": self.cautions(),
        }

    @property
    def _balanced(self) -> bool:
        """Whether the leads of the table of baselines are in balanced accuracy."""
        if self._judged_by[0].name == "balanced_accuracy":
            return True
        parts = getattr(self._fitted, "members_", [self._fitted])
        return any(getattr(one, "class_weight", None) is not None for one in parts)

    @property
    def _compared(self) -> str:
        """The name of the measure of the leads in the table of baselines."""
        return measure_of(balanced=self._balanced).replace(" ", "_")

    def _lead(self, ours: Evaluation, theirs: Evaluation) -> Lead:
        return Lead.of(ours, theirs, balanced=self._balanced)

    def text(self) -> str:
        """Return the report for people."""
        evaluation, watched = self._evaluation, len(self._split.stopping)
        lines = ["test accuracy      not measured: no test nodes"]
        if evaluation is not None:
            lines = evaluation.lines(alone=not self._baselines)
        reached = self._fitted.record_.stopping_accuracy
        if watched and not math.isnan(reached):
            lines.append(f"validation         {reached:.1%} of {counted(watched, 'validation node')}")
        lines += course(self._fitted)[1]
        if self._chosen:
            lines = [*candidate_lines(self._chosen), *lines]
        if self._fitted.normalization_ is not None:
            lines.append(f"normalisation      {_MATRICES[self._fitted.normalization_]}")
        if self._fitted.scaling_ is not None:
            lines.append(f"features           {self._fitted.scaling_}")
        if evaluation is not None:
            lines += ["", evaluation.table(), ""]
            if self._baselines:
                lines += [baseline_table(self._model, evaluation, self._baselines, balanced=self._balanced), ""]
        if self._judgement is not None:
            lines += self._judgement.lines(self._compared)
        return "\n".join([*lines, *(f"Caution: {sentence}" for sentence in self.cautions())])

    def cautions(self) -> list[str]:
        """Return what someone should know before using the model, one sentence each."""
        fitted, found = self._fitted, [*self._drawn.cautions]
        if self._evaluation is not None:
            found += cautions(
                self._model, self._evaluation, self._baselines, balanced=self._balanced, judgement=self._judgement
            )
        if self._judgement is not None:
            found += self._judgement.cautions()
        watched = len(self._split.stopping)
        if 0 < watched < FEW_STOPPING:
            found.append(
                f"Only {counted(watched, 'validation node')}: early stopping may end far too early or too late."
            )
        most, ran = getattr(fitted, "max_epochs", None), course(fitted)[0]["epochs"]
        if watched and most is not None and ran is not None and ran >= most:
            found.append(
                f"The training ended at --max-epochs {most}, before early stopping would end it: allow more, or less --patience."
            )
        return found


def alike_of(graph: Graph, split: Split) -> Homophily:
    """Return what the edges between training nodes show of classes of neighbours; no other label is read."""
    import numpy as np

    from pprop.graph.homophily import homophily

    assert graph.labels is not None
    known = np.full(graph.n_nodes, -1, dtype=np.int64)
    known[split.train] = graph.labels[split.train]
    return homophily(graph, known)


def decision_lines(fitted: Fitted) -> list[str]:
    """Return what early stopping maximised, and from which probability on a node is predicted as the positive class."""
    found: list[str] = []
    scoring, record = fitted.scoring, fitted.record
    if scoring is not None and record is not None and record.stopping_score is not None:
        nodes = counted(record.stopping_nodes, "validation node")
        found.append(f"judged by          {scoring.words}: {record.stopping_score:.3f} on {nodes}")
    if fitted.threshold is not None:
        found.append(f"threshold          {fitted.threshold.sentence()}")
    return found


def decision_record(fitted: Fitted) -> dict[str, Any]:
    """Return the same for --json; nothing where neither was asked for."""
    found: dict[str, Any] = {}
    if fitted.scoring is not None:
        assert fitted.record is not None
        found |= {"scoring": fitted.scoring.name, "positive": fitted.scoring.positive}
        found["stopping_score"] = fitted.record.stopping_score
    if fitted.threshold is not None:
        found["threshold"] = fitted.threshold.described()
    return found


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

    def lines(self, *, alone: bool) -> list[str]:
        """Return the figures for people; not `alone`: those alone that the table of baselines does not have."""
        low, high = self.interval
        lines = [
            f"test accuracy      {self.accuracy:.1%} of {counted(self.nodes, 'test node')} (95 % interval {low:.1%} to {high:.1%})"
        ]
        if alone:
            lines += [
                f"balanced accuracy  {self.balanced_accuracy:.1%}",
                f"macro F1           {self.macro_f1:.3f}",
            ]
        return lines

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
) -> tuple[dict[str, Evaluation | None], dict[str, Predicted]]:
    """Return what simple ways achieve on the test nodes, by the names in `BASELINES`; None for one that cannot be used.

    Also return what the majority, and those that were fitted, say of the test nodes.

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
    found: dict[str, Evaluation | None] = {name: known.get(name) for name in BASELINES}
    predicted = {"majority": Predicted.majority(labels[given], len(test))}
    found["majority"] = Evaluation.of(truth, predicted["majority"].predicted)
    if found["label_propagation"] is None:
        spread = LabelPropagationClassifier(graph).fit(given, labels[given], missing_labels=())
        predicted["label_propagation"] = Predicted.of(spread, test)
        found["label_propagation"] = Evaluation.of(truth, predicted["label_propagation"].predicted)
    if found["network"] is None and graph.features is not None:
        alone = MLPNodeClassifier(graph, **settings)
        watched = (split.stopping, labels[split.stopping]) if len(split.stopping) else None
        alone.fit(split.train, labels[split.train], stopping=watched, missing_labels=())
        predicted["network"] = Predicted.of(alone, test)
        found["network"] = Evaluation.of(truth, predicted["network"].predicted)
    return found, predicted


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


def candidates_of(model: AutoClassifier) -> dict[str, Any]:
    """Return what auto adds to the record: what it kept, by what it judged, and what became of each candidate."""
    rows = [
        {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in vars(row).items()}
        for row in model.candidates_
    ]
    scoring = model.scoring_
    return {
        "chosen": list(model.chosen_),
        "chosen_score": None if math.isnan(model.score_) else model.score_,
        "scoring": scoring.name,
        "positive": scoring.positive if scoring.metric.by_class else None,
        "judged": model.why_,
        "judges": len(model.validation_nodes_),
        "scores": model.scores_,
        "candidates": rows,
    }


def candidate_lines(record: Mapping[str, Any]) -> list[str]:
    """Return for people what auto kept and a table of the candidates, the best first and those that were left out last."""
    names = " and ".join(record["chosen"]).replace("_", " ")
    kept = f"{names}, the geometric mean of their probabilities" if len(record["chosen"]) > 1 else names
    if record["chosen_score"] is not None:
        kept += f": {record['chosen_score']:.3f} on {counted(record['judges'], 'node')} that neither train nor test"
    lines = [f"chosen             {kept}"]
    tried = sorted((row for row in record["candidates"] if not row["left_out"]), key=lambda row: -row["score"])
    cells = [
        [
            row["name"].replace("_", " "),
            f"{row['score']:.3f}",
            "" if row["low"] is None else f"{row['low']:.3f} to {row['high']:.3f}",
            f"{row['seconds']:.1f}",
            "yes" if row["name"] in record["chosen"] else "",
        ]
        for row in tried
    ]
    if not cells:
        return [*lines, ""]
    headings = ("candidate", record["scoring"].replace("_", " "), "95 % interval", "seconds", "chosen")
    left_out = [
        f"Not tried: {row['name'].replace('_', ' ')}: {row['left_out']}"
        for row in record["candidates"]
        if row["left_out"]
    ]
    return [*lines, record["judged"], "", columns(headings, cells, left=(0, 4)), *left_out, ""]


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
    return _lead_in_words(model, name, ours.nodes, measure_of(balanced=balanced), lead.lead, lead.interval, points=True)


def _lead_in_words(
    model: str, name: str, nodes: int, measure: str, lead: float, interval: tuple[float, float], *, points: bool = False
) -> str:
    """Return what a lead over a baseline shows; empty where it is above 0, or where the measure has no value.

    >>> _lead_in_words("appnp", "network", 40, "F1 of 'bad'", -0.1, (-0.18, -0.02))[:76]
    "The network alone has a better F1 of 'bad' than appnp on these 40 test nodes"
    """
    low, high = interval
    if math.isnan(lead) or math.isnan(low) or low > 0:
        return ""
    unit, digits, times = (" points", 1, 100) if points else ("", 3, 1)
    low, high, lead = times * low, times * high, times * lead
    graph_matters = name == "network"
    if high < 0:
        better = _NAMED[name][0].upper() + _NAMED[name][1:]
        found = (
            f"{better} has a better {measure} than {model} on these {counted(nodes, 'test node')}, "
            f"by {-lead:.{digits}f}{unit} (95 % interval {-high:.{digits}f} to {-low:.{digits}f})."
        )
        advice = " Averaging over neighbours does not help here." if graph_matters else ""
        if name in _TRIED and model != "auto":
            advice += " --model auto compares the models on labels outside the test nodes."
        return found + advice
    advice = " They do not show that the graph helps." if graph_matters else ""
    return (
        f"{model} and {_NAMED[name]}: no difference that {counted(nodes, 'test node')} can show (lead in "
        f"{measure} {lead:+.{digits}f}{unit}, 95 % interval {low:.{digits}f} to {high:.{digits}f}).{advice}"
    )


def cautions(
    model: str,
    evaluation: Evaluation,
    baselines: Mapping[str, Evaluation | None],
    *,
    balanced: bool,
    judgement: Judgement | None = None,
) -> list[str]:
    """Return what someone should know before trusting these figures, one sentence each.

    None of them tells anybody to choose a model by the labels of the test nodes: then nothing would be left to judge it by.
    With a `judgement` by another measure than accuracy, models are compared by that measure.
    """
    found: list[str] = []
    other = None if judgement is None or judgement.by_accuracy else judgement
    there = other is not None and not math.isnan(
        other.figure.value
    )  # among test nodes of one class there is no ranking
    if evaluation.nodes < SMALL:
        low, high = evaluation.interval
        words, ends = "accuracy", f"{low:.0%} to {high:.0%}"
        if other is not None and there:
            low, high = other.figure.interval
            words, ends = other.measure, f"{low:.3f} to {high:.3f}"
        found.append(f"Only {counted(evaluation.nodes, 'test node')}: the 95 % interval of the {words} is {ends}.")
    if other is None:
        compared = [
            comparison(model, name, evaluation, one, balanced=balanced)
            for name, one in baselines.items()
            if one is not None and one is not evaluation
        ]
    else:
        leads = {name: other.leads[words] for name, words in BASELINES.items() if words in other.leads}
        compared = [
            _lead_in_words(model, name, evaluation.nodes, other.measure, lead.value, lead.interval)
            for name, lead in leads.items()
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
    rare = largest.nodes > (1 - RARE) * evaluation.nodes and len(evaluation.classes) > 1 and not balanced
    if rare and (other is None or there):
        advice = "look at the balanced accuracy and at the recall of the other classes"
        if other is not None:
            advice = f"look at the {other.measure}, not at the accuracy"
        found.append(
            f"{largest.nodes / evaluation.nodes:.0%} of the test nodes are of one class, {largest.name!r}: {advice}."
        )
    return found


def course(fitted: NodeClassifier) -> tuple[dict[str, Any], list[str]]:
    """Return the part of the report that differs from model to model: epochs, their speed, and what was chosen."""
    from pprop.estimators import APPNPClassifierCV, APPNPEnsembleClassifier, LabelPropagationClassifier

    training = fitted.record_
    place = f"({training.backend}, {training.device})"
    if isinstance(fitted, APPNPEnsembleClassifier):
        return _of_ensemble(fitted, place)
    if isinstance(fitted, LabelPropagationClassifier):
        lines, unreached = [f"time               {_time(training)}"], fitted.n_unreached_
        if unreached:
            nodes = counted(unreached, "node")
            lines.append(
                f"not reached        {nodes} by any label; they get the shares of the classes among the labels"
            )
        return {**dict.fromkeys(("epochs", "best_epoch", "ms_per_epoch")), "unreached": unreached}, lines
    if not training.epochs:  # several models
        return dict.fromkeys(("epochs", "best_epoch", "ms_per_epoch")), [f"time               {_time(training)}"]
    speed = training.ms_per_epoch
    record = {**picked(training, "epochs", "best_epoch"), "ms_per_epoch": speed}
    kept = f"epochs             {training.epochs} (kept: epoch {training.best_epoch + 1})"
    if isinstance(fitted, APPNPClassifierCV):
        alphas, lines = _of_choice(fitted, kept, place)
        return {**record, **alphas}, lines
    return record, [kept, f"time               {_time(training)}, {speed:.1f} ms an epoch {place}"]


def _time(training: TrainingRecord) -> str:
    """Return the seconds of a training without those that compiled kernels, which the next one does not need.

    >>> from pprop.estimators.fitted import TrainingRecord
    >>> _time(TrainingRecord(320, 219, 0.51, 0.84, 22.1, "numba", "cpu", 0, 120, 500, compile_seconds=20.5))
    '1.6 s (and 20.5 s to compile kernels, once)'
    """
    own = f"{training.seconds - training.compile_seconds:.1f} s"
    return (
        f"{own} (and {training.compile_seconds:.1f} s to compile kernels, once)"
        if training.compile_seconds >= 0.05
        else own
    )


def _of_choice(fitted: APPNPClassifierCV, kept: str, place: str) -> tuple[dict[str, Any], list[str]]:
    """Report the alphas. The time is that of all runs together, so the time of an epoch is unknown."""
    runs = fitted.scores_.shape[1]
    means = fitted.scores_.mean(axis=1), fitted.losses_.mean(axis=1)
    measure = "stopping_accuracy" if fitted.fitted_.scoring is None else "stopping_score"
    alphas = [
        {"alpha": alpha, measure: value, "stopping_loss": loss}
        for alpha, value, loss in zip(fitted.alphas_, *means, strict=True)
    ]
    lines = [
        f"alpha              {fitted.alpha_:g}, the best of {len(fitted.alphas_)} on the validation nodes",
        f"{kept}, of the run that was kept",
        f"time               {_time(fitted.record_)} for {counted(fitted.scores_.size, 'run')} together {place}",
        "",
        _table(alphas, fitted.best_index_),
        *([f"Means over {runs} runs each."] if runs > 1 else []),
        "",
    ]
    return {"ms_per_epoch": None, "runs": runs, "alphas": alphas}, lines


def _of_ensemble(fitted: APPNPEnsembleClassifier, place: str) -> tuple[dict[str, Any], list[str]]:
    """Report members and rounds, and the alphas if there were several; the epochs of a member are not kept."""
    by_round = fitted.history_.stopping_accuracy.tolist()
    scored = zip(fitted.alphas_, fitted.scores_, strict=True)
    alphas = [{"alpha": alpha, "stopping_accuracy": accuracy} for alpha, accuracy in scored]
    record: dict[str, Any] = {
        **dict.fromkeys(("epochs", "best_epoch", "ms_per_epoch")),
        **picked(fitted, "members", "rounds", "folds", "spread_errors"),
        "stopping_accuracy_by_round": by_round,
        "alphas": alphas,
    }
    again = f" and {counted(fitted.rounds, 'more time')} from their own predictions" if fitted.rounds else ""
    runs = counted(fitted.members * (len(by_round) + len(fitted.alphas_) - 1), "run")
    lines = [f"members            {fitted.members}, trained once{again}"]
    if fitted.folds:
        lines.append(f"folds              {fitted.folds}; a member also trains on the validation nodes of all but one")
    if fitted.spread_errors:
        lines.append(f"spread errors      {fitted.spread_errors:g}; validation accuracies are those before it")
    lines.append(f"by round           {', '.join(f'{share:.1%}' for share in by_round)} of the validation nodes")
    lines.append(f"time               {_time(fitted.record_)} for {runs} {place}")
    if len(fitted.alphas_) > 1:
        best = f"{fitted.alpha_:g}, the best of {len(fitted.alphas_)} on the validation nodes in the first round"
        lines = [f"alpha              {best}", *lines, "", _table(alphas, fitted.best_index_), ""]
    return record, lines


def _table(alphas: Sequence[Mapping[str, float]], best: int) -> str:
    """Return one line per alpha, the chosen one marked.

    >>> rows = [{"alpha": 0.1, "stopping_accuracy": 0.8}, {"alpha": 0.25, "stopping_accuracy": 0.852}]
    >>> print(_table(rows, best=1))
    alpha  validation accuracy  chosen
    -----  -------------------  ------
      0.1                80.0%
     0.25                85.2%  yes
    """
    forms = {"alpha": "{:g}", "stopping_accuracy": "{:.1%}", "stopping_score": "{:.3f}", "stopping_loss": "{:.4f}"}
    rows = [
        [*(forms[name].format(value) for name, value in row.items()), "yes" if k == best else ""]
        for k, row in enumerate(alphas)
    ]
    headings = [*(name.replace("_", " ").replace("stopping", "validation") for name in alphas[0]), "chosen"]
    return columns(headings, rows, left=(len(alphas[0]),))


def columns_of_tables(
    graph: Graph, origin: GraphInput, *, split_column: str | None = None, scaling: str | None = SCALING.default
) -> tuple[dict[str, str], dict[str, str]]:
    """Return what became of each column of the tables, by name: those used as features, and the others with the reason.

    `scaling` is that of the model; None: the model reads no features.
    """
    if not origin.is_table:
        return {}, {}
    used, unused = dict[str, str](), dict[str, str]()
    if graph.recipe is not None:
        standard = {"number", "date", "embedding"} if scaling in ("auto", "standard") else set[str]()
        used = {
            column.name: f"{column.summary}, standardised" if column.kind in standard else column.summary
            for column in graph.recipe.columns
            if column.kind != "unused"
        }
        left_out = [column for column in graph.recipe.columns if column.kind == "unused"]
        left_out.sort(key=lambda column: not _use_of_split(column))  # first what the user may want to act upon
        unused = {column.name: f"{column.summary}{_use_of_split(column)}" for column in left_out}
    if scaling is None:
        used, unused = {}, {**unused, **dict.fromkeys(used, "left out: label propagation reads no features")}
    if split_column in unused:
        del unused[split_column]
    if origin.tables.structure is not None and origin.tables.nodes is not None:
        reason = f"left out: --structure {origin.tables.structure} takes its place"
        given = {origin.tables.id_column, origin.tables.label_column, split_column}
        names = origin.files.header(origin.tables.nodes, "nodes").names
        used, unused = {}, dict.fromkeys((name for name in names if name not in given), reason)
    beside = origin.unused_edge_columns()
    return used, {
        **unused,
        **{name if name not in {**used, **unused} else f"{name} (edges)": beside[name] for name in beside},
    }


def _use_of_split(column: ColumnRecipe) -> str:
    """Return how a column that was recognised as a split can be used as one; empty for other columns."""
    from pprop.graph.features.splits import HOLDS_FOLDS, HOLDS_PART, HOLDS_SPLIT

    uses = {
        HOLDS_SPLIT: "uses it",
        HOLDS_FOLDS: "--test-fold FOLD tests on one of them",
        HOLDS_PART: "--test-fold VALUE tests on the nodes with that value and trains on the others",
    }
    use = uses.get(column.reason)
    return "" if use is None else f"; --split-column {shlex.quote(column.name)} {use}"


def column_lines(
    used: Mapping[str, str], unused: Mapping[str, str], *, every: bool = False, more: str = "--columns shows all"
) -> list[str]:
    """Return one aligned line per column, those used before those left out, ten of each unless `every` is wanted.

    >>> column_lines({"age": "number"}, {"phone": "left out: looks like an identifier"})
    ['age    number', 'phone  left out: looks like an identifier']
    >>> column_lines({f"x{k}": "number" for k in range(100)}, {})[-2:]
    ['x9   number', 'and 90 more used (--columns shows all)']
    """
    width = max(map(len, [*used, *unused]), default=0)
    lines: list[str] = []
    for part, what in ((used, "used"), (unused, "left out")):
        shown = list(part.items())[: None if every else SHOWN]
        lines += [f"{name:<{width}}  {text}" for name, text in shown]
        if len(part) > len(shown):
            lines.append(f"and {len(part) - len(shown):,} more {what} ({more})")
    return lines


def overview(graph: Graph, split: Split) -> str:
    """Return the sizes of a graph and of its split in words.

    >>> import numpy as np
    >>> from pprop.datasets import Split
    >>> from pprop.graph import Graph
    >>> ring = Graph.from_edges([0, 1, 2], [1, 2, 0], nodes=np.arange(3), labels=[0, 0, 1])
    >>> overview(ring, Split(*(np.array([k]) for k in range(3))))
    '3 nodes, 3 edges, 2 classes; 1 training, 1 validation and 1 test nodes'
    """
    sizes = [counted(graph.n_nodes, "node"), counted(graph.n_edges, "directed edge" if graph.directed else "edge")]
    if graph.feature_shape is not None:
        sizes.append(counted(graph.feature_shape[1], "feature"))
    sizes.append(counted(graph.n_classes, "class", "classes"))
    parts = (
        f"{len(split.train):,} training, {len(split.stopping):,} validation and {len(split.evaluation):,} test nodes"
    )
    return f"{', '.join(sizes)}; {parts}"
