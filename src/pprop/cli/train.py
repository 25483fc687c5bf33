"""``pprop train``: one training on one graph, saved with its predictions and curves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, final

import typer

from pprop import settings
from pprop._validate import counted
from pprop.cli.graphs import GraphArgument, GraphInput, SplitOptions, Tables, class_names
from pprop.cli.models import FILES, write_artefact
from pprop.cli.output import Session, check_folder, columns, new_folder, picked
from pprop.cli.verbs import (
    BackendOption,
    DeviceOption,
    ForceOption,
    Options,
    VerboseOption,
    option,
    out_option,
    setting,
    verb,
)

if TYPE_CHECKING:
    from pprop.datasets import Split
    from pprop.estimators import APPNPClassifierCV, APPNPEnsembleClassifier, NodeClassifier


class ModelName(StrEnum):
    """The models that can be trained."""

    APPNP = "appnp"
    PPNP = "ppnp"
    SOLVED_PPNP = "solved-ppnp"
    MLP = "mlp"
    APPNP_CV = "appnp-cv"
    APPNP_ENSEMBLE = "appnp-ensemble"


# options that not every model has, and the models that have them
_SEVERAL = (ModelName.APPNP_CV, ModelName.APPNP_ENSEMBLE)
_OWNERS: Mapping[str, tuple[ModelName, ...]] = {
    "alpha": (ModelName.APPNP, ModelName.PPNP, ModelName.SOLVED_PPNP, ModelName.APPNP_ENSEMBLE),
    "steps": (ModelName.APPNP, *_SEVERAL),
    **dict.fromkeys(("tol", "solver"), (ModelName.SOLVED_PPNP,)),
    "alphas": _SEVERAL,
    "runs": (ModelName.APPNP_CV,),
    **dict.fromkeys(("members", "rounds", "folds", "spread_errors"), (ModelName.APPNP_ENSEMBLE,)),
}
_PAPERS_ALPHA = f"the paper's for the graph, or {settings.ALPHA.default}"
_CHOICE = "appnp-cv: " + ",".join(map(str, settings.ALPHAS.default))


def _of(declared: settings.Setting[Any], default: object = None, name: str = "") -> Any:
    """Return the option of a setting that not every model has; its help begins with those models."""
    default = declared.default if default is None else default
    return setting(declared, f"  [default: {default}]", f"{', '.join(_OWNERS[name or declared.name])}: ")


@final
@dataclass(frozen=True)
class ModelOptions(Options):
    """The model, and the options that not every model has; those that are None keep the model's default."""

    panel: ClassVar[str] = "Model"
    model: Annotated[ModelName, option("What to train.")] = ModelName.APPNP
    alpha: Annotated[float | None, _of(settings.ALPHA, _PAPERS_ALPHA)] = None
    steps: Annotated[int | None, _of(settings.STEPS)] = None
    tol: Annotated[float | None, _of(settings.TOL)] = None
    solver: Annotated[str | None, _of(settings.SOLVER)] = None
    alphas: Annotated[str | None, _of(settings.ALPHAS, _CHOICE)] = None
    runs: Annotated[int | None, _of(settings.N_RUNS, name="runs")] = None
    members: Annotated[int | None, _of(settings.MEMBERS)] = None
    rounds: Annotated[int | None, _of(settings.ROUNDS)] = None
    folds: Annotated[int | None, _of(settings.FOLDS)] = None
    spread_errors: Annotated[float | None, _of(settings.SPREAD_ERRORS)] = None

    def arguments(self) -> dict[str, Any]:
        """Return the options given as arguments of the model's classifier; refuse those that the model does not have.

        >>> ModelOptions(ModelName.APPNP_CV, runs=3).arguments()
        {'n_runs': 3}
        """
        given = {name: value for name in _OWNERS if (value := getattr(self, name)) is not None}
        why = {"alpha": f"{self.model} chooses one of --alphas", "alphas": f"{self.model} has one --alpha"}
        if self.model is ModelName.MLP:
            why = dict.fromkeys(why, "mlp does not propagate")
        for name in given:
            if self.model not in _OWNERS[name]:
                *most, last = _OWNERS[name]
                owners = f"{', '.join(most)} and {last}" if most else last
                reason = why.get(name, f"{self.model} has none")
                raise typer.BadParameter(f"--{name.replace('_', '-')} belongs to {owners}; {reason}.")
        if {"alpha", "alphas"} <= set(given):
            raise typer.BadParameter("Give one of --alpha and --alphas.")
        if "alphas" in given:
            given["alphas"] = read_numbers(given["alphas"], "alphas", float)
        # the ensemble takes one alpha or several under one name
        names = {"runs": "n_runs"} | ({"alphas": "alpha"} if self.model is ModelName.APPNP_ENSEMBLE else {})
        return {names.get(name, name): value for name, value in given.items()}


@final
@dataclass(frozen=True)
class TrainingOptions(Options):
    """The network and its training; these options have the names of the settings of all classifiers."""

    panel: ClassVar[str] = "Training"
    hidden: Annotated[str, setting(settings.HIDDEN, " Several are written 64,32.")] = str(settings.HIDDEN.default)
    dropout: Annotated[float, setting(settings.DROPOUT, " Also on the propagation, except with solved-ppnp.")] = (
        settings.DROPOUT.default
    )
    penalty: Annotated[float, setting(settings.PENALTY)] = settings.PENALTY.default
    learning_rate: Annotated[float, setting(settings.LEARNING_RATE)] = settings.LEARNING_RATE.default
    patience: Annotated[int, setting(settings.PATIENCE)] = settings.PATIENCE.default
    max_epochs: Annotated[int, setting(settings.MAX_EPOCHS)] = settings.MAX_EPOCHS.default
    backend: BackendOption = settings.BACKEND.default
    device: DeviceOption = settings.DEVICE.default

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a classifier."""
        widths = read_numbers(self.hidden, "hidden", int)
        return vars(self) | {"hidden": widths[0] if len(widths) == 1 else widths}


@verb(
    "train",
    "pprop train citeseer --out model",
    "pprop train citeseer --model ppnp --split-seed 794209841 --json",
    "pprop train citeseer --model appnp-cv --alphas 0.05,0.1,0.2 --out model",
    "pprop train edges.csv --nodes nodes.csv --label-column topic --out model",
)
def train(
    session: Session,
    graph: GraphArgument,
    *,
    model: ModelOptions,
    training: TrainingOptions,
    split: SplitOptions,
    tables: Tables,
    out: Annotated[Path | None, out_option("Folder for the model, its predictions and curves.", "DIR")] = None,
    force: ForceOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Train a model on a graph.

    On a dataset, the split is the paper's: --split-seed is the seed itself ('pprop data info' lists the paper's 20),
    and any other integer draws another split in the same way. On your own graph the nodes with labels are divided at
    random into test (--test), early stopping (--stopping) and training nodes; all nodes get predictions.

    Besides APPNP, PPNP and the network alone (mlp), there are solved-ppnp, which is PPNP with a solve for all nodes in
    every epoch, for many labelled nodes; appnp-cv, which trains with several alphas and chooses by the stopping nodes;
    and appnp-ensemble, whose members vote and learn from the votes with the largest majorities. The latter works with
    neither 'pprop explain' nor 'pprop live', because its logits are not a sum over nodes.
    """
    origin = GraphInput(graph, tables)
    split.check(origin)
    arguments = {**model.arguments(), **training.arguments(), "verbose": 2 if verbose else int(sys.stderr.isatty())}
    if out is not None:
        check_folder(out, names=FILES, force=force)
    known = origin.read()
    drawn, seed = split.draw(known, origin)
    session.say(f"{model.model.upper()} on {origin.title}: {known}, {drawn}")
    labels = class_names(known)
    from pprop import estimators

    kinds: dict[ModelName, Callable[..., NodeClassifier]] = {
        ModelName.APPNP: estimators.APPNPClassifier,
        ModelName.PPNP: estimators.PPNPClassifier,
        ModelName.SOLVED_PPNP: estimators.SolvedPPNPClassifier,
        ModelName.MLP: estimators.MLPNodeClassifier,
        ModelName.APPNP_CV: estimators.APPNPClassifierCV,
        ModelName.APPNP_ENSEMBLE: estimators.APPNPEnsembleClassifier,
    }
    fitted = kinds[model.model](known, random_state=seed, **arguments)
    fitted.fit(drawn.train, labels[drawn.train], stopping=(drawn.stopping, labels[drawn.stopping]))
    record, text = _report(fitted, model.model, origin, drawn, split.init_seed)
    if out is not None:
        with new_folder(out, session, names=FILES, force=force) as folder:
            write_artefact(folder, fitted, origin.saved, record["test_accuracy"], session)
        text += f"\nsaved in           {out}\nTry: pprop predict {out} --out predictions.csv"
    session.result(record | {"out": out}, text)


def read_numbers(text: str, option: str, kind: type[int] | type[float]) -> tuple[float, ...]:
    """Return numbers that are typed with commas between them.

    >>> read_numbers("64,32", "hidden", int)
    (64, 32)
    """
    try:
        return tuple(kind(number) for number in text.split(","))
    except ValueError:
        noun = "integers" if kind is int else "numbers"
        raise typer.BadParameter(f"--{option} takes {noun} separated by commas, not {text!r}.") from None


def _report(
    fitted: NodeClassifier, model: str, origin: GraphInput, split: Split, init_seed: int | None
) -> tuple[dict[str, Any], str]:
    """Return the report: a record for --json, and the text."""
    training, tested, accuracy = fitted.record_, "not measured (--test 0)", None
    if len(split.evaluation):
        accuracy = float(fitted.score(split.evaluation, class_names(fitted.graph_)[split.evaluation]))
        tested = f"{accuracy:.1%} of {counted(len(split.evaluation), 'node')}"
    course, lines = _course(fitted)
    record: dict[str, Any] = {
        "model": model,
        "graph": origin.title,
        "test_accuracy": accuracy,
        **picked(training, "stopping_accuracy", "stopping_loss"),
        **course,
        **picked(training, "seconds", "backend", "device", "seed"),
        "split_seed": split.seed,
        "init_seed": (init_seed or 0) if origin.path is None else None,
        "train_nodes": len(split.train),
        "stopping_nodes": len(split.stopping),
        "test_nodes": len(split.evaluation),
        "alpha": fitted.alpha_,
        "parameters": sum(int(array.size) for array in fitted.weights_.values()),
        "classes": fitted.classes_,
        "fingerprint": fitted.graph_.fingerprint,
    }
    stopped = f"{training.stopping_accuracy:.1%} of {counted(len(split.stopping), 'node')}"
    return record, "\n".join([f"test accuracy      {tested}", f"stopping accuracy  {stopped}", *lines])


def _course(fitted: NodeClassifier) -> tuple[dict[str, Any], list[str]]:
    """Return the part of the report that differs from model to model: epochs, their speed, and what was chosen."""
    from pprop.estimators import APPNPClassifierCV, APPNPEnsembleClassifier

    training = fitted.record_
    place = f"({training.backend}, {training.device})"
    if isinstance(fitted, APPNPEnsembleClassifier):
        return _of_ensemble(fitted, place)
    speed = 1000 * training.seconds / training.epochs
    record = {**picked(training, "epochs", "best_epoch"), "ms_per_epoch": speed}
    kept = f"epochs             {training.epochs} (kept: epoch {training.best_epoch + 1})"
    if isinstance(fitted, APPNPClassifierCV):
        alphas, lines = _of_choice(fitted, kept, place)
        return {**record, **alphas}, lines
    return record, [kept, f"time               {training.seconds:.1f} s, {speed:.1f} ms an epoch {place}"]


def _of_choice(fitted: APPNPClassifierCV, kept: str, place: str) -> tuple[dict[str, Any], list[str]]:
    """Report the alphas. The time is that of all runs together, so the time of an epoch is unknown."""
    runs = fitted.scores_.shape[1]
    means = fitted.scores_.mean(axis=1), fitted.losses_.mean(axis=1)
    alphas = [
        {"alpha": alpha, "stopping_accuracy": accuracy, "stopping_loss": loss}
        for alpha, accuracy, loss in zip(fitted.alphas_, *means, strict=True)
    ]
    lines = [
        f"alpha              {fitted.alpha_:g}, the best of {len(fitted.alphas_)} on the stopping nodes",
        f"{kept}, of the run that was kept",
        f"time               {fitted.record_.seconds:.1f} s for {counted(fitted.scores_.size, 'run')} together {place}",
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
        lines.append(f"folds              {fitted.folds}; a member also trains on the stopping nodes of all but one")
    if fitted.spread_errors:
        lines.append(f"spread errors      {fitted.spread_errors:g}; stopping accuracies are those before it")
    lines.append(f"by round           {', '.join(f'{share:.1%}' for share in by_round)} of the stopping nodes")
    lines.append(f"time               {fitted.record_.seconds:.1f} s for {runs} {place}")
    if len(fitted.alphas_) > 1:
        best = f"{fitted.alpha_:g}, the best of {len(fitted.alphas_)} on the stopping nodes in the first round"
        lines = [f"alpha              {best}", *lines, "", _table(alphas, fitted.best_index_), ""]
    return record, lines


def _table(alphas: Sequence[Mapping[str, float]], best: int) -> str:
    """Return one line per alpha, the chosen one marked.

    >>> rows = [{"alpha": 0.1, "stopping_accuracy": 0.8}, {"alpha": 0.25, "stopping_accuracy": 0.852}]
    >>> print(_table(rows, best=1))
    alpha  stopping accuracy  chosen
    -----  -----------------  ------
      0.1              80.0%
     0.25              85.2%  yes
    """
    forms = {"alpha": "{:g}", "stopping_accuracy": "{:.1%}", "stopping_loss": "{:.4f}"}
    rows = [
        [*(forms[name].format(value) for name, value in row.items()), "yes" if k == best else ""]
        for k, row in enumerate(alphas)
    ]
    headings = [*(name.replace("_", " ") for name in alphas[0]), "chosen"]
    return columns(headings, rows, left=(len(alphas[0]),))
