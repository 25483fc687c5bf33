"""``pprop train``: one training on one graph, saved with its predictions and curves."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, final

import typer

from pprop.cli.graphs import GraphArgument, GraphInput, Tables
from pprop.cli.models import FILES, save_artefact
from pprop.cli.output import Session, check_folder
from pprop.cli.splits import SplitOptions, class_names
from pprop.cli.train_report import report
from pprop.cli.verbs import OUTPUT, DeviceOption, ForceOption, Options, VerboseOption, verb

if TYPE_CHECKING:
    from pprop.estimators import NodeClassifier
    from pprop.graph import Graph


class ModelName(StrEnum):
    """The models that can be trained."""

    APPNP = "appnp"
    PPNP = "ppnp"
    SOLVED_PPNP = "solved-ppnp"
    MLP = "mlp"
    APPNP_CV = "appnp-cv"
    APPNP_ENSEMBLE = "appnp-ensemble"


_OWNERS: Mapping[str, tuple[ModelName, ...]] = MappingProxyType(
    {
        "alpha": (ModelName.APPNP, ModelName.PPNP, ModelName.SOLVED_PPNP, ModelName.APPNP_ENSEMBLE),
        "steps": (ModelName.APPNP, ModelName.APPNP_CV, ModelName.APPNP_ENSEMBLE),
        "tol": (ModelName.SOLVED_PPNP,),
        "solver": (ModelName.SOLVED_PPNP,),
        "alphas": (ModelName.APPNP_CV, ModelName.APPNP_ENSEMBLE),
        "runs": (ModelName.APPNP_CV,),
        "members": (ModelName.APPNP_ENSEMBLE,),
        "rounds": (ModelName.APPNP_ENSEMBLE,),
        "folds": (ModelName.APPNP_ENSEMBLE,),
        "spread_errors": (ModelName.APPNP_ENSEMBLE,),
    }
)
"""Options that not every model has, and the models that have them."""


@final
@dataclass(frozen=True)
class ModelOptions(Options):
    """The model, and the options that not every model has; those that are None keep the model's default."""

    panel: ClassVar[str] = "Model"
    model: Annotated[ModelName, typer.Option(help="What to train.")] = ModelName.APPNP
    alpha: Annotated[
        float | None, typer.Option(help="Teleport probability.  [default: the paper's for the graph, or 0.1]")
    ] = None
    steps: Annotated[int | None, typer.Option(help="Power steps; not of ppnp, solved-ppnp and mlp.  [default: 10]")] = (
        None
    )
    tol: Annotated[float | None, typer.Option(help="solved-ppnp: relative error of each solve.  [default: 1e-04]")] = (
        None
    )
    solver: Annotated[
        str | None,
        typer.Option(
            help="solved-ppnp: chebyshev, cg (both undirected) or contraction (any graph).  [default: chebyshev]"
        ),
    ] = None
    alphas: Annotated[
        str | None,
        typer.Option(help="appnp-cv, appnp-ensemble: teleport probabilities to choose from, such as 0.05,0.1,0.2."),
    ] = None
    runs: Annotated[int | None, typer.Option(help="appnp-cv: runs for each alpha.  [default: 1]")] = None
    members: Annotated[int | None, typer.Option(help="appnp-ensemble: runs that vote.  [default: 8]")] = None
    rounds: Annotated[
        int | None, typer.Option(help="appnp-ensemble: trainings from its own predictions.  [default: 2]")
    ] = None
    folds: Annotated[
        int | None,
        typer.Option(help="appnp-ensemble: folds of stopping nodes, of which all but one train a member."),
    ] = None
    spread_errors: Annotated[
        float | None,
        typer.Option(help="appnp-ensemble: how strongly errors at known nodes correct others.  [default: 0]"),
    ] = None

    def settings(self) -> dict[str, Any]:
        """Return the options given as settings of the model's classifier; refuse those that the model does not have.

        >>> ModelOptions(ModelName.APPNP_CV, runs=3).settings()
        {'n_runs': 3}
        """
        given = {name: value for name in _OWNERS if (value := getattr(self, name)) is not None}
        for name in given:
            if self.model not in _OWNERS[name]:
                *most, last = _OWNERS[name]
                owners = f"{', '.join(most)} and {last}" if most else last
                option = f"--{name.replace('_', '-')}"
                raise typer.BadParameter(f"{option} belongs to {owners}; {self._why_not(name)}.")
        if {"alpha", "alphas"} <= set(given):
            raise typer.BadParameter("Give one of --alpha and --alphas.")
        if "alphas" in given:
            given["alphas"] = read_numbers(given["alphas"], "alphas", float)
        # the ensemble takes one alpha or several under one name
        names = {"runs": "n_runs"} | ({"alphas": "alpha"} if self.model is ModelName.APPNP_ENSEMBLE else {})
        return {names.get(name, name): value for name, value in given.items()}

    def _why_not(self, option: str) -> str:
        if self.model is ModelName.MLP and option in ("alpha", "alphas"):
            return "mlp does not propagate"
        if option == "alpha":
            return f"{self.model} chooses one of --alphas"
        if option == "alphas":
            return f"{self.model} has one --alpha"
        return f"{self.model} has none"

    def classifier(self, graph: Graph, settings: Mapping[str, Any]) -> NodeClassifier:
        """Return the classifier of the model, not fitted yet."""
        from pprop import estimators

        kinds = {
            ModelName.APPNP: estimators.APPNPClassifier,
            ModelName.PPNP: estimators.PPNPClassifier,
            ModelName.SOLVED_PPNP: estimators.SolvedPPNPClassifier,
            ModelName.MLP: estimators.MLPNodeClassifier,
            ModelName.APPNP_CV: estimators.APPNPClassifierCV,
            ModelName.APPNP_ENSEMBLE: estimators.APPNPEnsembleClassifier,
        }
        return kinds[self.model](graph, **settings)


@final
@dataclass(frozen=True)
class TrainingOptions(Options):
    """The network and its training; these options have the names of the settings of all classifiers."""

    panel: ClassVar[str] = "Training"
    hidden: Annotated[str, typer.Option(help="Width of the hidden layer, or of several: 64,32.")] = "64"
    dropout: Annotated[
        float, typer.Option(help="On inputs, hidden layer and propagation, but not the solves of solved-ppnp.")
    ] = 0.5
    penalty: Annotated[float, typer.Option(help="L2 penalty on the first layer.")] = 0.005
    learning_rate: Annotated[float, typer.Option(help="Adam's.")] = 0.01
    patience: Annotated[int, typer.Option(help="Epochs without improvement before the end.")] = 100
    max_epochs: Annotated[int, typer.Option(help="Epochs at most.")] = 10000
    backend: Annotated[str, typer.Option(help="auto, numba, triton (cuda) or reference.")] = "auto"
    device: DeviceOption = "cpu"

    def settings(self) -> dict[str, Any]:
        """Return the settings of a classifier."""
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
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", rich_help_panel=OUTPUT, help="Folder for the model, its predictions and curves."),
    ] = None,
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
    settings = {**model.settings(), **training.settings(), "verbose": 2 if verbose else int(sys.stderr.isatty())}
    if out is not None:
        check_folder(out, names=FILES, force=force)
    known = origin.read()
    drawn, seed = split.draw(known, origin)
    session.say(f"{model.model.upper()} on {origin.title}: {known}, {drawn}")
    labels = class_names(known)
    fitted = model.classifier(known, {**settings, "random_state": seed})
    fitted.fit(drawn.train, labels[drawn.train], stopping=(drawn.stopping, labels[drawn.stopping]))
    record, text = report(fitted, model.model, origin, drawn, split.init_seed)
    if out is not None:
        save_artefact(out, fitted, origin.saved, record["test_accuracy"], session, force=force)
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
