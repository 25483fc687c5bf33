"""``pprop train``: one training on one graph, saved with its predictions and curves."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, final

from pprop import settings
from pprop._validate import reject
from pprop.cli.errors import Checks, UsageError, WrongValueError
from pprop.cli.graphs import GraphArgument, GraphInput, TableOptions
from pprop.cli.judgement import scoring_of
from pprop.cli.models import FILES, keep_test_nodes, write_artefact
from pprop.cli.output import Session, check_folder, new_folder
from pprop.cli.report import (
    Report,
    alike_of,
    candidates_of,
    column_lines,
    columns_of_tables,
    decision_lines,
    decision_record,
    overview,
)
from pprop.cli.splits import SplitOptions, class_names
from pprop.cli.verbs import (
    BackendOption,
    ColumnsOption,
    DeviceOption,
    ForceOption,
    NormalizationOption,
    Options,
    VerboseOption,
    check_machine,
    option,
    out_option,
    read_numbers,
    setting,
    verb,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pprop.datasets import Split
    from pprop.graph import Graph


class ModelName(StrEnum):
    """The models that can be trained."""

    APPNP = "appnp"
    PPNP = "ppnp"
    SOLVED_PPNP = "solved-ppnp"
    MLP = "mlp"
    APPNP_CV = "appnp-cv"
    APPNP_ENSEMBLE = "appnp-ensemble"
    LABEL_PROPAGATION = "label-propagation"
    BOOSTING = "boosting"
    RESIDUAL = "residual"
    GPRGNN = "gprgnn"
    AUTO = "auto"


CLASSIFIERS: Mapping[ModelName, str] = {
    ModelName.APPNP: "APPNPClassifier",
    ModelName.PPNP: "PPNPClassifier",
    ModelName.SOLVED_PPNP: "SolvedPPNPClassifier",
    ModelName.MLP: "MLPNodeClassifier",
    ModelName.APPNP_CV: "APPNPClassifierCV",
    ModelName.APPNP_ENSEMBLE: "APPNPEnsembleClassifier",
    ModelName.LABEL_PROPAGATION: "LabelPropagationClassifier",
    ModelName.BOOSTING: "ColumnsClassifier",
    ModelName.RESIDUAL: "ResidualClassifier",
    ModelName.GPRGNN: "GPRGNNClassifier",
    ModelName.AUTO: "AutoClassifier",
}
# options that not every model has, and the models that have them
_SEVERAL = (ModelName.APPNP_CV, ModelName.APPNP_ENSEMBLE)
_OWNERS: Mapping[str, tuple[ModelName, ...]] = {
    "alpha": (
        *(ModelName.APPNP, ModelName.PPNP, ModelName.SOLVED_PPNP, ModelName.APPNP_ENSEMBLE),
        *(ModelName.LABEL_PROPAGATION, ModelName.GPRGNN),
    ),
    "steps": (ModelName.APPNP, *_SEVERAL, ModelName.GPRGNN),
    "neighbours": (ModelName.APPNP,),
    **dict.fromkeys(("tol", "solver"), (ModelName.SOLVED_PPNP,)),
    "alphas": _SEVERAL,
    "runs": (ModelName.APPNP_CV,),
    **dict.fromkeys(("members", "rounds", "folds", "spread_errors"), (ModelName.APPNP_ENSEMBLE,)),
    "time": (ModelName.AUTO,),
    "layers": (ModelName.RESIDUAL,),
    "hops": (ModelName.BOOSTING,),
    "label_inputs": (ModelName.BOOSTING, ModelName.RESIDUAL, ModelName.AUTO),
    "normalization": (
        *(ModelName.APPNP, ModelName.PPNP, ModelName.SOLVED_PPNP, *_SEVERAL),
        *(ModelName.LABEL_PROPAGATION, ModelName.GPRGNN, ModelName.AUTO),
    ),
}
# models whose network has one width for all of its layers
_ONE_WIDTH = (ModelName.RESIDUAL, ModelName.GPRGNN)
# settings of the network of which models have different defaults; None: the model's
_OF_NETWORK = ("hidden", "dropout", "penalty", "max_epochs")
_SCALE_NEIGHBOURS = 64  # of --scale
_PAPERS_ALPHA = f"the paper's for the graph, or {settings.ALPHA.default}"
_CHOICE = "appnp-cv: " + ",".join(map(str, settings.ALPHAS.default))


def _read_alphas(text: str, option: str) -> tuple[float, ...]:
    return read_numbers(text, option, float)


def _read_widths(text: str, option: str) -> float | tuple[float, ...]:
    widths = read_numbers(text, option, int)
    return widths[0] if len(widths) == 1 else widths


def _of(declared: settings.Setting[Any], default: object = None, name: str = "", **more: Any) -> Any:
    """Return the option of a setting that not every model has; its help begins with those models."""
    default = declared.default if default is None else default
    return setting(declared, f"  [default: {default}]", f"{', '.join(_OWNERS[name or declared.name])}: ", **more)


def _of_network(declared: settings.Setting[Any], residual: settings.Setting[Any], also: str = "", **more: Any) -> Any:
    """Return the option of a setting of which residual has another default than the other models; None: the model's."""
    return setting(declared, f"{also}  [default: {declared.default}; residual: {residual.default}]", **more)


@final
@dataclass(frozen=True)
class ModelOptions(Options):
    """The model, and the options that not every model has; those that are None keep the model's default."""

    panel: ClassVar[str] = "Model"
    model: Annotated[ModelName, option("Model to train.")] = ModelName.APPNP
    alpha: Annotated[float | None, _of(settings.ALPHA, _PAPERS_ALPHA)] = None
    steps: Annotated[int | None, _of(settings.STEPS)] = None
    normalization: NormalizationOption = None
    neighbours: Annotated[
        int | None,
        option("appnp: Neighbours per labelled node to train on, the most important ones.  [default: all nodes]"),
    ] = None
    tol: Annotated[float | None, _of(settings.TOL)] = None
    solver: Annotated[str | None, _of(settings.SOLVER)] = None
    alphas: Annotated[str | None, _of(settings.ALPHAS, _CHOICE, reads=_read_alphas)] = None
    runs: Annotated[int | None, _of(settings.N_RUNS, name="runs")] = None
    members: Annotated[int | None, _of(settings.MEMBERS)] = None
    rounds: Annotated[int | None, _of(settings.ROUNDS)] = None
    folds: Annotated[int | None, _of(settings.FOLDS)] = None
    spread_errors: Annotated[float | None, _of(settings.SPREAD_ERRORS)] = None
    time: Annotated[float | None, _of(settings.TIME, "no limit")] = None
    layers: Annotated[int | None, _of(settings.RESIDUAL_LAYERS)] = None
    hops: Annotated[int | None, _of(settings.HOPS)] = None
    label_inputs: Annotated[
        bool | None,
        option(
            "boosting, residual, auto: Whether training labels are inputs of the model. Published models do not read labels.  "
            "[default: label-inputs]",
            "--label-inputs/--no-label-inputs",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Return the options given as arguments of the model's classifier; refuse those that the model does not have.

        >>> ModelOptions(ModelName.APPNP_CV, runs=3).arguments()
        {'n_runs': 3}
        """
        given = {name: value for name in _OWNERS if (value := getattr(self, name)) is not None}
        why = {"alpha": f"{self.model} chooses one of --alphas", "alphas": f"{self.model} has one --alpha"}
        if self.model is ModelName.MLP:
            why = dict.fromkeys((*why, "normalization"), "mlp does not propagate")
        elif self.model is ModelName.AUTO:
            why = dict.fromkeys(why, "auto chooses for itself")
        with Checks() as checks:
            for name in given:
                if self.model not in _OWNERS[name]:
                    *most, last = _OWNERS[name]
                    owners = f"{', '.join(most)} and {last}" if most else last
                    reason = why.get(name, f"{self.model} has none")
                    checks.add(UsageError(f"--{name.replace('_', '-')} belongs to {owners}; {reason}."))
            if {"alpha", "alphas"} <= set(given):
                checks.add(UsageError("Give one of --alpha and --alphas."))
        if "alphas" in given:
            given["alphas"] = _read_alphas(given["alphas"], "alphas")
        # the ensemble takes one alpha or several under one name
        names = {"runs": "n_runs"} | ({"alphas": "alpha"} if self.model is ModelName.APPNP_ENSEMBLE else {})
        return {names.get(name, name): value for name, value in given.items()}

    def check(self, origin: GraphInput, split: SplitOptions, *, scale: bool) -> None:
        """Refuse what the model does not take, before any table is read."""
        from pprop import estimators
        from pprop.estimators.appnp import check_tol
        from pprop.propagation.tolerance import check_solver

        kind: Any = getattr(estimators, CLASSIFIERS[self.model])
        known = settings.settings_of(kind)
        with Checks() as checks:
            if scale and self.model is not ModelName.APPNP:
                checks.add(UsageError(f"--scale trains appnp alone: leave out --scale or --model {self.model}."))
            for name, value in (checks.run(self.arguments) or {}).items():
                if self.alphas is None or name not in ("alpha", "alphas"):  # several have the rule of their option
                    checks.run(known[name].rule, value, "runs" if name == "n_runs" else name, "train")
            if self.neighbours is not None and self.alpha == 0:
                expected = "above 0 with --neighbours: without teleport no neighbours are the most important"
                checks.run(reject, "alpha", "train", expected, self.alpha)
            if self.model is ModelName.SOLVED_PPNP:
                if origin.tables.directed:
                    checks.run(check_solver, self.solver or settings.SOLVER.default, "train")
                if self.tol is not None and (self.alpha is not None or origin.is_table):
                    alpha = settings.ALPHA.default if self.alpha is None else self.alpha
                    checks.run(check_tol, self.tol, alpha, "train")
            if kind._stopping_nodes_also is not None and split.stopping == 0 and split.split_column is None:
                expected = f"above 0 with --model {self.model}: {kind._stopping_nodes_also}"
                checks.run(reject, "stopping", "train", expected, split.stopping)


@final
@dataclass(frozen=True)
class TrainingOptions(Options):
    """The network and its training; these options have the names of the settings of all classifiers."""

    panel: ClassVar[str] = "Training"
    hidden: Annotated[
        str | None,
        _of_network(settings.HIDDEN, settings.RESIDUAL_WIDTH, " Several are written 64,32.", reads=_read_widths),
    ] = None
    dropout: Annotated[
        float | None,
        _of_network(settings.DROPOUT, settings.RESIDUAL_DROPOUT, " Also on the propagation, except with solved-ppnp."),
    ] = None
    penalty: Annotated[float | None, _of_network(settings.PENALTY, settings.RESIDUAL_PENALTY)] = None
    scaling: Annotated[str, setting(settings.SCALING)] = settings.SCALING.default
    class_weight: Annotated[
        str | None,
        option(
            "Weights of the classes: balanced, or CLASS=WEIGHT,... With balanced every class counts the same; by default every node."
        ),
    ] = None
    scoring: Annotated[str | None, setting(settings.SCORING)] = settings.SCORING.default
    positive: Annotated[str | None, setting(settings.POSITIVE)] = settings.POSITIVE.default
    threshold: Annotated[str | None, setting(settings.THRESHOLD)] = None
    learning_rate: Annotated[float, setting(settings.LEARNING_RATE)] = settings.LEARNING_RATE.default
    patience: Annotated[int, setting(settings.PATIENCE)] = settings.PATIENCE.default
    max_epochs: Annotated[int | None, _of_network(settings.MAX_EPOCHS, settings.RESIDUAL_MAX_EPOCHS)] = None
    criterion: Annotated[
        str | None, setting(settings.CRITERION, "  [default: paper for a dataset, plateau for a graph of your own]")
    ] = None
    backend: BackendOption = settings.BACKEND.default
    device: DeviceOption = settings.DEVICE.default

    def check(self) -> None:
        """Refuse weights and a machine before any table is read."""
        with Checks() as checks:
            checks.run(_check_class_weights, self.class_weight)
            checks.run(check_machine, self.backend, self.device)

    def arguments(self, classes: Sequence[object], *, own: bool) -> dict[str, Any]:
        """Return the arguments of a classifier of these classes, for a graph of the user's own or a dataset."""
        given = {name: value for name, value in vars(self).items() if value is not None or name not in _OF_NETWORK}
        if self.hidden is not None:
            given["hidden"] = _read_widths(self.hidden, "hidden")
        return given | {
            "class_weight": _class_weights(self.class_weight, classes),
            "criterion": self.criterion or ("plateau" if own else settings.CRITERION.default),
        }


def _check_ensemble(model: ModelOptions, training: TrainingOptions) -> None:
    """Refuse what judges an ensemble by nodes that its members learn from, and two ways to choose an alpha."""
    with Checks() as checks:
        for name in ("scoring", "threshold"):
            if getattr(training, name) is not None and (model.folds or model.spread_errors):
                why = "needs validation nodes that no member learns from: leave out --folds and --spread-errors"
                checks.add(UsageError(f"--{name} {why}, or --{name}."))
        if training.scoring is not None and "," in (model.alphas or ""):
            why = (
                "is not what the ensemble chooses one of several --alphas by: give one --alpha, or leave out --scoring"
            )
            checks.add(UsageError(f"--scoring {why}."))


def _check_class_weights(text: str | None) -> None:
    """Refuse what holds no weights above 0, whatever the names of the classes are."""
    if text is None or text == "balanced":
        return
    # the name of a class may have commas and equals signs, so that only the last weight is sure to be one
    *others, last = (_number(part.rpartition("=")[2]) if "=" in part else None for part in text.split(","))
    if (
        last is None
        or not 0 < last < math.inf
        or any(other is not None and not 0 < other < math.inf for other in others)
    ):
        raise WrongValueError(f"--class-weight takes balanced or CLASS=WEIGHT,... with weights above 0. Got {text!r}.")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _class_weights(text: str | None, classes: Sequence[object]) -> str | dict[object, float] | None:
    """Return what a classifier takes as `class_weight`.

    >>> _class_weights("stay, maybe=2,7=0.5", ["stay, maybe", 7])
    {'stay, maybe': 2.0, 7: 0.5}
    """
    if text is None or text == "balanced":
        return text
    by_name, found, waiting = {str(name): name for name in classes}, dict[object, float](), ""
    for part in text.split(","):  # the name of a class may have commas
        waiting += part
        name, equals, weight = waiting.rpartition("=")
        if equals and name.strip() in by_name:
            found[by_name[name.strip()]] = read_numbers(weight, "class-weight", float)[0]
            waiting = ""
        else:
            waiting += ","
    if waiting:
        known = ", ".join(map(repr, by_name))
        raise WrongValueError(f"--class-weight takes balanced or CLASS=WEIGHT,... of {known}. Got {waiting[:-1]!r}.")
    return found


@verb(
    "train",
    "pprop train citeseer --out model",
    "pprop train citeseer --model ppnp --split-seed 794209841 --json",
    "pprop train citeseer --model appnp-cv --alphas 0.05,0.1,0.2 --out model",
    "pprop train edges.csv --nodes nodes.csv --label-column topic --out model",
    checks=True,
)
def train(
    session: Session,
    graph: GraphArgument,
    *,
    model: ModelOptions,
    training: TrainingOptions,
    split: SplitOptions,
    tables: TableOptions,
    out: Annotated[Path | None, out_option("Folder for the model, its predictions and curves.", "DIR")] = None,
    force: ForceOption = False,
    scale: Annotated[
        bool,
        option(
            f"Train appnp on a graph of millions of nodes: --neighbours {_SCALE_NEIGHBOURS} --no-baselines.", "--scale"
        ),
    ] = False,
    no_baselines: Annotated[bool, option("Leave out the comparison with simple baselines.", "--no-baselines")] = False,
    every_column: ColumnsOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Train a model on a graph, and compare it with simple baselines on the same test nodes.

    Your own graph is an edge list and a node table. Name the column with the classes: --label-column. Nodes with a class
    are divided at random into training, validation (--stopping) and test nodes (--test). All nodes get predictions. The
    validation nodes end the training.

    The datasets of the paper have the paper's splits. --split-seed chooses one of them ('pprop data info' lists 20);
    another integer draws another split in the same way.

    The models: appnp averages the predictions of a network over the graph by power steps. ppnp uses the exact PageRank
    matrix; solved-ppnp solves for all nodes in every epoch, for many labelled nodes. mlp is the network alone.
    label-propagation needs no features. For neighbours that differ: boosting is gradient boosting on columns of each node's
    surroundings; residual is a deep network with separate weights for neighbours; gprgnn is appnp with learned weights of
    hops. appnp-cv chooses alpha by the validation nodes. appnp-ensemble trains several members that vote; 'pprop explain' and
    'pprop live' cannot use it. auto tries several, judges them by validation nodes, and keeps the best or the mean of the
    best, which 'pprop explain' and 'pprop live' cannot use.

    Use --scale for graphs of millions of nodes: it trains in mini-batches and predicts in blocks.
    """
    from pprop.cli.check import checked

    origin = GraphInput(graph, tables)
    if scale:
        no_baselines = True
        if model.neighbours is None and model.model is ModelName.APPNP:
            model = replace(model, neighbours=_SCALE_NEIGHBOURS)
    checks = session.checks
    if "model" not in session.unread:
        checks.run(model.check, origin, split, scale=scale)
    checks.run(training.check)
    if "model" not in session.unread and model.model in _ONE_WIDTH and "," in (training.hidden or ""):
        checks.add(WrongValueError(f"--hidden takes one width with --model {model.model}. Got {training.hidden!r}."))
    if model.model is ModelName.APPNP_ENSEMBLE:
        checks.run(_check_ensemble, model, training)
    checks.run(split.check, origin)
    if out is not None:
        checks.run(check_folder, out, names=FILES, force=force)
    checks.run(origin.check, labels=True, split=split.columns, wrong_already=bool(checks))
    checks.settle()
    divided = split.read(origin)
    origin = split.without_column(origin)
    known, findings = checked(origin, session.words)
    for finding in findings:
        session.say(f"{finding.level.capitalize()}: {finding.what}")
    scaling = {ModelName.LABEL_PROPAGATION: None, ModelName.BOOSTING: "none"}.get(model.model, training.scaling)
    used, unused = columns_of_tables(known, origin, split_column=split.column, scaling=scaling)
    if used or unused:
        session.say("\n".join(["Columns:", *(f"  {line}" for line in column_lines(used, unused, every=every_column))]))
    made_split = split.draw(known, origin, divided)
    drawn = made_split.split
    labels = class_names(known)
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning

    arguments = training.arguments(np.unique(labels).tolist(), own=origin.path is not None)
    arguments |= {"random_state": made_split.seed, "verbose": 2 if verbose else int(sys.stderr.isatty())}
    if not len(drawn.stopping):
        arguments["stopping"] = None
    session.say(f"{model.model.upper()} on {origin.title}: {overview(known, drawn)}")
    if made_split.sentence:
        session.say(made_split.sentence)
    alike = alike_of(known, drawn)
    session.say(f"Training labels: {alike.figures('training nodes')}. {alike.sentence}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the report has it among its cautions
        made = _fit(model.model, known, drawn, labels, model.arguments(), arguments)
    from pprop.estimators.fitted import elsewhere

    fitted = getattr(made, "best_", made)  # auto keeps one of several, or their mean
    chosen = {} if made is fitted else candidates_of(made)
    keep_test_nodes(fitted, drawn.evaluation)
    judged_by = scoring_of(made, labels[drawn.train])
    report = Report(fitted, model.model, origin, made_split, alike, labels, judged_by, chosen)
    if not no_baselines:
        session.say("Fitting the baselines (--no-baselines leaves them out)")
        report.compare({**arguments, "threshold": None})  # of which each model has its own
    record: dict[str, Any] = {
        **report.record(split.init_seed),
        "columns": {"used": used, "unused": unused},
        "findings": [vars(finding) for finding in findings],
    }
    text = report.text()
    for line in decision_lines(fitted.fitted_):
        text += f"\n{line}"
    record |= decision_record(fitted.fitted_)
    if out is not None:
        with new_folder(out, session, names=FILES, force=force) as folder:
            tested = record["test_accuracy"], len(drawn.evaluation)
            write_artefact(folder, fitted, origin.saved, session, *tested, report.picture())
        if elsewhere(fitted.fitted_.name, fitted.fitted_.model) is not None:
            text += "\nThis model cannot take new nodes: it uses the labels of this graph. Train again when nodes are added."
        text += "\n" if record["cautions"] else ""
        text += f"\nsaved in           {out}\nTry: pprop predict {out} --out predictions.csv"
    session.result(record | {"out": out}, text)


def _fit(
    model: ModelName, graph: Graph, split: Split, labels: NDArray[Any], own: dict[str, Any], arguments: dict[str, Any]
) -> Any:
    """Return the fitted classifier of a model, with its own arguments and those of `arguments` that it has."""
    from pprop import estimators

    kind: Any = getattr(estimators, CLASSIFIERS[model])
    shared = {field.name: arguments[field.name] for field in fields(kind) if field.name in arguments}
    pair = (split.stopping, labels[split.stopping]) if len(split.stopping) else None
    # unknown labels are out already, and a class may be named NA
    fit = kind(graph, **shared, **own).fit
    return fit(split.train, labels[split.train], stopping=pair, missing_labels=())
