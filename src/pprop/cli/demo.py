"""``pprop demo``: three models on the bundled recipes, a table, a figure and a model to go on with."""

from __future__ import annotations

import json
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pprop._validate import counted
from pprop.cli.graphs import example_input
from pprop.cli.models import write_artefact, write_figure
from pprop.cli.output import Session, check_folder, columns, new_folder
from pprop.cli.splits import class_names, own_split
from pprop.cli.verbs import DeviceOption, VerboseOption, at_least, check_machine, option, setting, verb
from pprop.settings import BACKEND, DEVICE, MAX_EPOCHS, PATIENCE, SCALING, STOPPING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pprop.datasets import Split
    from pprop.estimators import GraphSource
    from pprop.graph import Graph
    from pprop.training import Stopping, Trained


FOLDER = Path("demo-output")
SUMMARY = "demo.json"
NAMES = frozenset({SUMMARY, "accuracy.png", "accuracy.svg", "model"})
TEST = 0.5  # share of the labelled recipes
CRITERION = "plateau"  # of early stopping, as `pprop train` has it for tables


@verb("demo", "pprop demo", "pprop demo --splits 20 --out more-splits", checks=True)
def demo(
    session: Session,
    out: Annotated[Path, option("Folder for the figure, the model and the numbers.", metavar="DIR")] = FOLDER,
    splits: Annotated[
        int,
        option(
            "Number of random divisions of the labelled recipes into training, validation and test.", rule=at_least(1)
        ),
    ] = 5,
    patience: Annotated[int, setting(PATIENCE)] = PATIENCE.default,
    max_epochs: Annotated[int, setting(MAX_EPOCHS)] = MAX_EPOCHS.default,
    device: DeviceOption = DEVICE.default,
    verbose: VerboseOption = False,
) -> None:
    """Train three models on the bundled recipes.

    The network alone, label propagation and APPNP on several random splits, offline, in less than a minute on two idle
    cores. Prints a table, and writes the figure of the accuracies, a trained APPNP and the numbers into a folder. The
    output of an earlier demo is replaced, any other folder left alone.
    """
    again = (out / SUMMARY).is_file()
    session.checks.run(check_folder, out, names=NAMES, force=again)
    session.checks.run(check_machine, BACKEND.default, device)
    session.checks.settle()
    begin, can_draw = time.perf_counter(), find_spec("matplotlib") is not None

    from pprop.estimators.node import recommended_normalization, uses_bias
    from pprop.models import APPNP, MLP
    from pprop.training import Stopping, run_seed, train

    tables = example_input()
    graph = tables.read()
    drawn = [own_split(graph, TEST, STOPPING.default, seed) for seed in range(splits)]
    first = drawn[0]
    known = len(first.train) + len(first.stopping) + len(first.evaluation)
    session.say(f"{graph.n_nodes:,} invented recipes, {graph.n_edges:,} pairs that readers saved together.")
    session.say(
        f"The cuisine of {known} recipes is known: {len(first.train)} for training, {len(first.stopping)} for validation, "
        f"{len(first.evaluation)} for the test. {counted(splits, 'random split')}."
    )
    rule = Stopping(patience, max_epochs, CRITERION)
    seeds = [run_seed(split.seed, 0) for split in drawn]
    scaled = graph.scaled(SCALING.default)
    # as a classifier has them, so that the saved model is the first of these runs
    bias, normalization = uses_bias("auto", scaled), recommended_normalization(graph)
    session.say("network alone: reads the columns, not the pairs")
    network = train(MLP(bias=bias), scaled, drawn, seeds=seeds, stopping=rule, device=device, verbose=verbose)
    session.say("label propagation: reads the pairs, not the columns")
    spread = [_label_propagation(graph, split) for split in drawn]
    session.say("APPNP: a network, and ten steps of personalized PageRank")
    model = APPNP(bias=bias, normalization=normalization)
    appnp = train(model, scaled, drawn, seeds=seeds, stopping=rule, device=device, verbose=verbose)
    record: dict[str, Any] = {
        "graph": "recipes",
        "fingerprint": graph.fingerprint,
        "split_seeds": [split.seed for split in drawn],
        "patience": patience,
        "models": [
            _trained("network alone", network),
            _summary("label propagation", [accuracy for accuracy, _ in spread], sum(seconds for _, seconds in spread)),
            _trained("APPNP", appnp),
        ],
    }
    with new_folder(out, session, names=NAMES, force=again) as folder:
        folder.mkdir()
        _save_model(folder / "model", graph, tables.saved, first, appnp, rule, session)
        if can_draw:
            from pprop.study.figures.accuracies import distribution_data, draw_distribution

            title = f"Recipes, {counted(splits, 'random split')}"
            accuracies = {row["model"].replace(" ", "\n"): _array(row["accuracies"]) / 100 for row in record["models"]}
            rows = distribution_data(accuracies)
            write_figure(draw_distribution(rows, title), folder / "accuracy")
        record |= {"out": out, "seconds": time.perf_counter() - begin}
        (folder / SUMMARY).write_text(json.dumps(record, indent=2, default=str) + "\n", encoding="utf-8")
    session.result(record, _text(record, out, can_draw))


def _label_propagation(graph: Graph, split: Split) -> tuple[float, float]:
    """Return the accuracy of label propagation in per cent, and the seconds; it is given the labels that APPNP is given."""
    import numpy as np

    from pprop.estimators import LabelPropagationClassifier

    names = class_names(graph)
    given = np.concatenate([split.train, split.stopping])
    model = LabelPropagationClassifier(graph).fit(given, names[given])
    record = model.record_
    return 100 * float(model.score(split.evaluation, names[split.evaluation])), record.seconds - record.compile_seconds


def _summary(name: str, accuracies: Sequence[float], seconds: float) -> dict[str, Any]:
    from pprop.study.stats.estimate import bootstrap_interval

    accuracy = _array(accuracies)
    return {
        "model": name,
        "accuracy": float(accuracy.mean()),
        "interval": bootstrap_interval(accuracy),
        "accuracies": accuracy.tolist(),
        "seconds": seconds,
    }


def _trained(name: str, runs: Trained) -> dict[str, Any]:
    return {
        **_summary(name, (100 * runs.accuracy()).tolist(), runs.seconds - runs.compile_seconds),
        "epochs": float(runs.epochs.mean()),
        "ms_per_epoch": 1000 / runs.run_epochs_per_second,
        "parameters": sum(int(array[0].size) for array in runs.weights),
        "backend": runs.backend,
        "device": runs.device,
    }


def _array(values: Any) -> NDArray[Any]:
    import numpy as np

    return np.asarray(values, dtype=np.float64)


def _save_model(
    folder: Path, graph: Graph, source: GraphSource, split: Split, runs: Trained, rule: Stopping, session: Session
) -> None:
    """Save the first run of APPNP, trained once more by itself: each run depends on its own seed and split alone."""
    from pprop.estimators import APPNPClassifier

    assert rule.patience is not None
    known = class_names(graph)
    model = APPNPClassifier(
        graph,
        patience=rule.patience,
        max_epochs=rule.max_epochs,
        criterion=rule.criterion,
        random_state=runs.seeds[0] % 2**64,
        device=runs.device,
    )
    model.fit(split.train, known[split.train], stopping=(split.stopping, known[split.stopping]))
    accuracy = float(model.score(split.evaluation, known[split.evaluation]))
    write_artefact(folder, model, source, session, accuracy, len(split.evaluation))


def _text(record: dict[str, Any], out: Path, can_draw: bool) -> str:
    headings = ("model", "accuracy %", "95 % interval", "epochs", "seconds", "parameters")
    rows = [
        (
            row["model"],
            f"{row['accuracy']:.1f}",
            f"{row['interval'][0]:.1f} to {row['interval'][1]:.1f}",
            f"{row['epochs']:.0f}" if "epochs" in row else "-",
            f"{row['seconds']:.1f}",
            f"{row['parameters']:,}" if "parameters" in row else "-",
        )
        for row in record["models"]
    ]
    figure = f"{out / 'accuracy.png'} (and .svg)" if can_draw else "needs: pip install matplotlib"
    return (
        f"{columns(headings, rows)}\n\nfigure   {figure}\nmodel    {out / 'model'}\nnumbers  {out / SUMMARY}\n\n"
        f"Try next: pprop predict {out / 'model'} --out predictions.csv\n"
        "          pprop train edges.csv --nodes nodes.csv --label-column cuisine --out my-model"
    )
