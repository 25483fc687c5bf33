"""``pprop tune``: search for good settings on the labelled nodes of a graph, never on its test nodes."""

from __future__ import annotations

import math
from enum import StrEnum
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
from pprop.cli.output import DebugOption, DeviceOption, JsonOption, Session
from pprop.cli.text import columns, counted
from pprop.cli.tune_words import read_setting, shell_graph

if TYPE_CHECKING:
    from pprop.datasets import Split
    from pprop.graph import Graph
    from pprop.tuning import Tuned

__all__ = ["EXAMPLES", "tune"]

EXAMPLES = (
    "pprop tune citeseer --out tuned --time-limit 10",
    "pprop tune citeseer --out tuned --space alpha=0.02:0.5:log --space hidden=32,64 --space max_epochs=2000",
    "pprop tune edges.csv --nodes nodes.csv --label-column topic --out tuned --trials 30 --fit",
)


class TunedModel(StrEnum):
    """The models that can be tuned."""

    APPNP = "appnp"
    PPNP = "ppnp"
    MLP = "mlp"


def tune(
    graph: GraphArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the search, new or to be continued.")],
    model: Annotated[TunedModel, typer.Option("--model", help="What to tune.")] = TunedModel.APPNP,
    space: Annotated[
        list[str] | None,
        typer.Option(
            "--space",
            metavar="SETTING=VALUES",
            help="LOW:HIGH, LOW:HIGH:log, A,B,... or one value; may be repeated.  [default: all common settings]",
        ),
    ] = None,
    trials: Annotated[int, typer.Option("--trials", help="Trials in all, earlier ones in the folder included.")] = 50,
    time_limit: Annotated[
        float | None, typer.Option("--time-limit", metavar="MIN", help="End after so many minutes.")
    ] = None,
    holdouts: Annotated[int, typer.Option("--holdouts", help="Holdouts, and trainings, per trial.")] = 4,
    fit: Annotated[
        bool, typer.Option("--fit", help="Train a model with the best settings, saved in DIR/model.")
    ] = False,
    split_seed: Annotated[
        int | None,
        typer.Option("--split-seed", help="Datasets: seed of the paper's split.  [default: its first test split]"),
    ] = None,
    test: Annotated[
        float | None, typer.Option("--test", help="Own graph: share of labelled nodes left out.  [default: 0.2]")
    ] = None,
    stopping: Annotated[
        float | None, typer.Option("--stopping", help="Own graph: share to stop and to judge.  [default: 0.2]")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the search; own graph: also of the split.")] = 0,
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
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Search for good settings of a model.

    Only training and stopping nodes of the split that 'pprop train' would use take part, so that its test accuracy
    stays an honest one. A search that was interrupted, killed or ended by a limit goes on when the same command is given
    again; --trials and --time-limit may then be other ones.
    """
    with Session("tune", json=json, debug=debug) as session:
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
        _check_usage(origin, split_seed, (test, stopping), time_limit)
        if out.exists() and not out.is_dir():
            raise NotADirectoryError(f"--out must be a folder, and {str(out)!r} is a file.")
        described = None if not space else dict(read_setting(text) for text in space)
        known = origin.read()
        split = _split(known, origin, split_seed, test, stopping, seed)
        session.say(f"{model.upper()} on {origin.title}: {known}, {split}")
        tuned = _search(
            known, split, session, out,
            model=str(model), space=described, trials=trials, holdouts=holdouts, seed=seed, backend=backend,
            device=device, time_limit=None if time_limit is None else 60 * time_limit,
        )  # fmt: skip
        command = tuned.command(shell_graph(origin, split_seed, test, stopping, seed))
        _write(tuned, command, out, f"{model.upper()} on {origin.title}", session)
        record, text = _report(tuned, command, out)
        if fit:
            record["model_out"] = _fit(tuned, known, split, origin, out, session, backend=backend, device=device)
            text += f"\nmodel saved in     {record['model_out']}"
        session.result(record, text)


def _check_usage(
    origin: GraphInput, split_seed: int | None, own: tuple[float | None, ...], time_limit: float | None
) -> None:
    if time_limit is not None and not 0 < time_limit < math.inf:
        raise typer.BadParameter(f"--time-limit takes minutes, more than 0, not {time_limit:g}.")
    if origin.path is None and own != (None, None):
        raise typer.BadParameter("--test and --stopping divide a graph of your own; a dataset has --split-seed.")
    if origin.path is not None and split_seed is not None:
        raise typer.BadParameter("--split-seed belongs to a dataset; a graph of your own has --test and --stopping.")


def _split(
    graph: Graph, origin: GraphInput, split_seed: int | None, test: float | None, stopping: float | None, seed: int
) -> Split:
    """Return the split that ``pprop train`` would use."""
    if origin.path is None:
        from pprop.datasets import TEST_SEEDS, paper_split

        return paper_split(graph, TEST_SEEDS[0] if split_seed is None else split_seed)
    from pprop.cli.splits import own_split

    return own_split(graph, 0.2 if test is None else test, 0.2 if stopping is None else stopping, seed)


def _labels(graph: Graph) -> Any:
    import numpy as np

    if graph.labels is None:
        raise InputError("Tuning needs labels, and this graph has none.")
    names = np.asarray(graph.class_names) if graph.class_names is not None else np.arange(graph.n_classes)
    return names[graph.labels]


def _search(graph: Graph, split: Split, session: Session, out: Path, **options: Any) -> Tuned:
    from pprop.tuning import tune as search

    classes = _labels(graph)
    try:
        watched = (split.stopping, classes[split.stopping])
        return search(graph, split.train, classes[split.train], stopping=watched, folder=out, **options)
    finally:
        if out.exists():
            session.keep(out)


def _write(tuned: Tuned, command: str, out: Path, title: str, session: Session) -> None:
    """Write the best settings, with the command, and the figures."""
    from importlib.util import find_spec

    from pprop.tuning.folder import BEST, read_best, write_json

    write_json(out / BEST, {**read_best(out), "command": command})
    if find_spec("matplotlib") is None:
        session.say('No figures were drawn: that needs matplotlib. Install it with: pip install "pprop[tune]"')
        return
    from pprop.tuning.figures import save_figures

    save_figures(tuned, out, title)


def _report(tuned: Tuned, command: str, out: Path) -> tuple[dict[str, Any], str]:
    best = max(tuned.trials, key=lambda trial: trial.score)
    record: dict[str, Any] = {
        "model": tuned.model,
        "settings": dict(tuned.settings),
        "score": tuned.score,
        "default_score": tuned.default_score,
        "scores": list(best.scores),
        "trials": len(tuned.trials),
        "seconds": tuned.seconds,
        "command": command,
        "out": out,
    }
    table = columns(["setting", "best"], [[name, _shown(value)] for name, value in tuned.settings.items()])
    lines = [
        table,
        "",
        f"judging accuracy   {tuned.score:.1%} (defaults: {tuned.default_score:.1%}), best of "
        f"{counted(len(tuned.trials), 'trial')}",
        f"search in          {out}",
        f"Try: {command}",
    ]
    return record, "\n".join(lines)


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _fit(
    tuned: Tuned, graph: Graph, split: Split, origin: GraphInput, out: Path, session: Session, **options: Any
) -> Path:
    """Train and save a model as ``pprop train`` would with the best settings; one that is there is replaced."""
    from pprop.cli.artefact import save_artefact
    from pprop.training import run_seed

    classes = _labels(graph)
    model = tuned.classifier(graph, random_state=run_seed(split.seed, 0) % 2**64, **options)
    model.fit(split.train, classes[split.train], stopping=(split.stopping, classes[split.stopping]))
    save_artefact(out / "model", model, origin.saved, None, session, force=True)
    return out / "model"
