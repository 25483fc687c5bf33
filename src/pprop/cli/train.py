"""``pprop train``: one training on one graph, saved with its predictions and curves."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop._errors import InputError
from pprop.cli.graphs import (
    DirectedOption,
    FeaturesOption,
    GraphArgument,
    GraphInput,
    IdColumnOption,
    LabelColumnOption,
    NodesOption,
    SourceOption,
    TargetOption,
    WeightOption,
)
from pprop.cli.output import DebugOption, DeviceOption, JsonOption, Session, VerboseOption
from pprop.cli.targets import ForceOption, check_folder
from pprop.cli.train_models import ModelName, make_classifier, own_settings, read_numbers
from pprop.cli.train_report import report

if TYPE_CHECKING:
    from pprop.datasets import Split
    from pprop.estimators import NodeClassifier
    from pprop.graph import Graph

__all__ = ["EXAMPLES", "train"]

EXAMPLES = (
    "pprop train citeseer --out model",
    "pprop train citeseer --model ppnp --split-seed 794209841 --json",
    "pprop train citeseer --model appnp-cv --alphas 0.05,0.1,0.2 --out model",
    "pprop train edges.csv --nodes nodes.csv --label-column topic --out model",
)


def train(
    graph: GraphArgument,
    model: Annotated[ModelName, typer.Option("--model", help="What to train.")] = ModelName.APPNP,
    alpha: Annotated[
        float | None,
        typer.Option("--alpha", help="Teleport probability.  [default: the paper's for the graph, or 0.1]"),
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Power steps; not of ppnp, solved-ppnp and mlp.  [default: 10]")
    ] = None,
    tol: Annotated[
        float | None, typer.Option("--tol", help="solved-ppnp: relative error of each solve.  [default: 1e-04]")
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(
            "--solver",
            help="solved-ppnp: chebyshev, cg (both undirected) or contraction (any graph).  [default: chebyshev]",
        ),
    ] = None,
    alphas: Annotated[
        str | None,
        typer.Option(
            "--alphas", help="appnp-cv, appnp-ensemble: teleport probabilities to choose from, such as 0.05,0.1,0.2."
        ),
    ] = None,
    runs: Annotated[int | None, typer.Option("--runs", help="appnp-cv: runs for each alpha.  [default: 1]")] = None,
    members: Annotated[
        int | None, typer.Option("--members", help="appnp-ensemble: runs that vote.  [default: 8]")
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", help="appnp-ensemble: trainings from its own predictions.  [default: 2]"),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option("--folds", help="appnp-ensemble: folds of stopping nodes, of which all but one train a member."),
    ] = None,
    spread_errors: Annotated[
        float | None,
        typer.Option(
            "--spread-errors", help="appnp-ensemble: how strongly errors at known nodes correct others.  [default: 0]"
        ),
    ] = None,
    hidden: Annotated[str, typer.Option("--hidden", help="Width of the hidden layer, or of several: 64,32.")] = "64",
    dropout: Annotated[
        float,
        typer.Option("--dropout", help="On inputs, hidden layer and propagation, but not the solves of solved-ppnp."),
    ] = 0.5,
    penalty: Annotated[float, typer.Option("--penalty", help="L2 penalty on the first layer.")] = 0.005,
    learning_rate: Annotated[float, typer.Option("--learning-rate", help="Adam's.")] = 0.01,
    patience: Annotated[int, typer.Option("--patience", help="Epochs without improvement before the end.")] = 100,
    max_epochs: Annotated[int, typer.Option("--max-epochs", help="Epochs at most.")] = 10000,
    split_seed: Annotated[
        int | None,
        typer.Option("--split-seed", help="Datasets: seed of the paper's split.  [default: its first test split]"),
    ] = None,
    init_seed: Annotated[
        int | None, typer.Option("--init-seed", help="Datasets: seed of the initial weights.  [default: 0]")
    ] = None,
    test: Annotated[
        float | None, typer.Option("--test", help="Own graph: share of labelled nodes for testing.  [default: 0.2]")
    ] = None,
    stopping: Annotated[
        float | None, typer.Option("--stopping", help="Own graph: share for early stopping.  [default: 0.2]")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Own graph: seed of the split and the weights.  [default: 0]")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for the model, its predictions and curves.")
    ] = None,
    nodes: NodesOption = None,
    source: SourceOption = "source",
    target: TargetOption = "target",
    weight: WeightOption = None,
    id_column: IdColumnOption = "id",
    label_column: LabelColumnOption = None,
    features: FeaturesOption = None,
    directed: DirectedOption = False,
    backend: Annotated[str, typer.Option("--backend", help="auto, numba, triton (cuda) or reference.")] = "auto",
    device: DeviceOption = "cpu",
    force: ForceOption = False,
    json: JsonOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Train a model on a graph.

    On a dataset, the split is the paper's: --split-seed is the seed itself ('pprop data info' lists the paper's 20),
    and any other integer draws another split in the same way. On your own graph the nodes with labels are divided at
    random into test (--test), early stopping (--stopping) and training nodes; all nodes get predictions.

    Besides APPNP, PPNP and the network alone (mlp), there are solved-ppnp, which is PPNP with a solve for all nodes in
    every epoch, for many labelled nodes; appnp-cv, which trains with several alphas and lets the stopping nodes choose;
    and appnp-ensemble, whose members vote and learn from the votes they are most certain of. The latter can be neither
    explained nor live: its logits are no sum over nodes.
    """
    with Session("train", json=json, debug=debug) as session:
        origin = GraphInput.of(
            graph,
            nodes=nodes,
            source=source,
            target=target,
            weight=weight,
            id_column=id_column,
            label_column=label_column,
            features=features,
            directed=directed,
        )
        _check_usage(origin, (split_seed, init_seed), (test, stopping, seed))
        own = own_settings(
            model,
            {
                "alpha": alpha,
                "steps": steps,
                "tol": tol,
                "solver": solver,
                "alphas": None if alphas is None else read_numbers(alphas, "alphas", float),
                "runs": runs,
                "members": members,
                "rounds": rounds,
                "folds": folds,
                "spread-errors": spread_errors,
            },
        )
        widths = read_numbers(hidden, "hidden", int)
        if out is not None:
            from pprop.cli.artefact import FILES

            check_folder(out, names=FILES, force=force)
        known = origin.read()
        split, run = _split(known, origin, (split_seed, init_seed), (test, stopping, seed))
        settings = {
            **own,
            "hidden": widths[0] if len(widths) == 1 else widths,
            "dropout": dropout,
            "penalty": penalty,
            "learning_rate": learning_rate,
            "patience": patience,
            "max_epochs": max_epochs,
            "backend": backend,
            "device": device,
            "verbose": 2 if verbose else int(sys.stderr.isatty()),
        }
        session.say(f"{model.upper()} on {origin.title}: {known}, {split}")
        fitted = _fit(model, known, split, run, settings)
        record, text = report(fitted, str(model), origin, split, init_seed)
        if out is not None:
            from pprop.cli.artefact import save_artefact

            save_artefact(out, fitted, origin.saved, record["test_accuracy"], session, force=force)
            text += f"\nsaved in           {out}\nTry: pprop predict {out} --out predictions.csv"
        session.result(record | {"out": out}, text)


def _check_usage(origin: GraphInput, paper: tuple[int | None, ...], own: tuple[float | None, ...]) -> None:
    if origin.path is None and own != (None, None, None):
        raise typer.BadParameter(
            "--test, --stopping and --seed divide a graph of your own; a dataset has --split-seed and --init-seed."
        )
    if origin.path is not None and paper != (None, None):
        raise typer.BadParameter(
            "--split-seed and --init-seed belong to a dataset; a graph of your own has --test, --stopping and --seed."
        )


def _split(
    graph: Graph,
    origin: GraphInput,
    paper: tuple[int | None, int | None],
    own: tuple[float | None, float | None, int | None],
) -> tuple[Split, int]:
    """Return the split, and the seed of the weights and masks, without a sign."""
    from pprop.training import run_seed

    if origin.path is None:
        from pprop.datasets import TEST_SEEDS, paper_split

        split = paper_split(graph, TEST_SEEDS[0] if paper[0] is None else paper[0])
        return split, run_seed(split.seed, 0 if paper[1] is None else paper[1]) % 2**64
    from pprop.cli.splits import own_split

    test, stopping = (0.2 if share is None else share for share in own[:2])
    split = own_split(graph, test, stopping, 0 if own[2] is None else own[2])
    return split, run_seed(split.seed, 0) % 2**64


def _fit(model: ModelName, graph: Graph, split: Split, seed: int, settings: dict[str, Any]) -> NodeClassifier:
    import numpy as np

    if graph.labels is None:
        raise InputError("Training needs labels, and this graph has none.")
    names = np.asarray(graph.class_names) if graph.class_names is not None else np.arange(graph.n_classes)
    classifier = make_classifier(model, graph, {**settings, "random_state": seed})
    watched = (split.stopping, names[graph.labels[split.stopping]])
    return classifier.fit(split.train, names[graph.labels[split.train]], stopping=watched)
