"""The report of ``pprop train``: how good the model is and how sure one can be of it, beside simple baselines."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any, final

from pprop._validate import counted
from pprop.cli.course import course
from pprop.cli.evaluation import Evaluation, Lead, baseline_table, cautions, evaluate_baselines, measure_of
from pprop.cli.graphs import GraphInput
from pprop.cli.output import picked
from pprop.settings import SCALING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pprop.datasets import Split
    from pprop.graph import Graph
    from pprop.graph.features.column_recipe import ColumnRecipe

FEW_STOPPING = 10  # nodes: one of them more or less right moves the validation accuracy by ten points
SHOWN = 10  # columns of a table in a report, of those used and of those left out
BASELINE_OF = {"MLPNodeClassifier": "network", "LabelPropagationClassifier": "label_propagation"}


@final
class Report:
    """The figures of one fitted model on its test nodes, and of the baselines once they are compared.

    `chosen` is what auto adds to the record: the name of the model it kept, and how good each was on nodes set aside.
    """

    def __init__(
        self, fitted: Any, model: str, origin: GraphInput, split: Split, labels: NDArray[Any], chosen: dict[str, Any]
    ) -> None:
        self._fitted, self._model, self._origin, self._split, self._labels = fitted, model, origin, split, labels
        self._chosen = chosen
        test = split.evaluation
        self._evaluation = Evaluation.of(labels[test], fitted.predict(test), fitted.classes_) if len(test) else None
        self._baselines: dict[str, Evaluation | None] = {}

    def compare(self, arguments: Mapping[str, Any]) -> None:
        """Fit the baselines on the same nodes; the network has the model's settings."""
        if self._evaluation is None:
            return
        own = BASELINE_OF.get(type(self._fitted).__name__)
        known = {} if own is None else {own: self._evaluation}
        self._baselines = evaluate_baselines(self._fitted.graph_, self._labels, self._split, arguments, known)

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
                "measure": measure_of(balanced=self._balanced).replace(" ", "_"),
                "over": {
                    name: None if one is None or self._evaluation is None else vars(self._lead(self._evaluation, one))
                    for name, one in self._baselines.items()
                },
            },
            **picked(fitted.record_, "stopping_accuracy", "stopping_loss"),
            **course(fitted)[0],
            **self._chosen,
            **picked(fitted.record_, "seconds", "compile_seconds", "backend", "device", "seed"),
            "split_seed": split.seed,
            "init_seed": (init_seed or 0) if origin.path is None else None,
            "train_nodes": len(split.train),
            "stopping_nodes": len(split.stopping),
            "test_nodes": len(split.evaluation),
            "alpha": fitted.alpha_,
            "scaling": None if fitted.scaling_ is None else fitted.scaling_.kind,
            "parameters": sum(int(array.size) for array in fitted.weights_.values()),
            "classes": fitted.classes_,
            "fingerprint": fitted.graph_.fingerprint,
            "cautions": self.cautions(),
        }

    @property
    def _balanced(self) -> bool:
        """Whether models are compared by their balanced accuracy."""
        return getattr(self._fitted, "class_weight", None) is not None

    def _lead(self, ours: Evaluation, theirs: Evaluation) -> Lead:
        return Lead.of(ours, theirs, balanced=self._balanced)

    def text(self) -> str:
        """Return the report for people."""
        evaluation, watched = self._evaluation, len(self._split.stopping)
        lines = ["test accuracy      not measured: no test nodes"] if evaluation is None else evaluation.lines()
        reached = self._fitted.record_.stopping_accuracy
        if watched and not math.isnan(reached):
            lines.append(f"validation         {reached:.1%} of {counted(watched, 'validation node')}")
        lines += course(self._fitted)[1]
        if self._chosen.get("scores"):
            tried = ", ".join(f"{name} {score:.1%}" for name, score in self._chosen["scores"].items())
            which = f"{self._chosen['chosen']} (on nodes that neither train nor test: {tried})"
            lines.insert(0, f"chosen             {which.replace('_', ' ')}")
        if self._fitted.scaling_ is not None:
            lines.append(f"features           {self._fitted.scaling_}")
        if evaluation is not None:
            lines += ["", evaluation.table(), ""]
            if self._baselines:
                lines += [baseline_table(self._model, evaluation, self._baselines, balanced=self._balanced), ""]
        return "\n".join([*lines, *(f"Caution: {sentence}" for sentence in self.cautions())])

    def cautions(self) -> list[str]:
        """Return what someone should know before using the model, one sentence each."""
        fitted, found = self._fitted, list[str]()
        if self._evaluation is not None:
            found += cautions(self._model, self._evaluation, self._baselines, balanced=self._balanced)
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
    for columns, what in ((used, "used"), (unused, "left out")):
        shown = list(columns.items())[: None if every else SHOWN]
        lines += [f"{name:<{width}}  {text}" for name, text in shown]
        if len(columns) > len(shown):
            lines.append(f"and {len(columns) - len(shown):,} more {what} ({more})")
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
