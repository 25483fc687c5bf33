"""``pprop demo``: three models on the bundled Citeseer graph, a table, a figure and a model to go on with."""

from __future__ import annotations

import json
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pprop._validate import counted
from pprop.cli.models import write_artefact, write_figure
from pprop.cli.output import Session, check_folder, columns, new_folder, picked
from pprop.cli.splits import class_names
from pprop.cli.verbs import DeviceOption, VerboseOption, option, setting, verb
from pprop.settings import ALPHA, DEVICE, MAX_EPOCHS, PATIENCE, STEPS

if TYPE_CHECKING:
    from pprop.datasets import Split
    from pprop.graph import Graph
    from pprop.models import Model
    from pprop.training import Stopping, Trained


FOLDER = Path("demo-output")
SUMMARY = "demo.json"
NAMES = frozenset({SUMMARY, "accuracy.png", "accuracy.svg", "model"})
PUBLISHED = {"MLP": None, "APPNP": 75.73, "PPNP": 75.83}  # per cent, means of 100 runs, Table 2 of the paper


@verb("demo", "pprop demo", "pprop demo --splits 20 --out all-splits")
def demo(
    session: Session,
    out: Annotated[Path, option("Folder for the figure, the model and the numbers.", metavar="DIR")] = FOLDER,
    splits: Annotated[int, option("How many of the paper's test splits.", min=1, max=20)] = 4,
    patience: Annotated[int, setting(PATIENCE)] = PATIENCE.default,
    max_epochs: Annotated[int, setting(MAX_EPOCHS)] = MAX_EPOCHS.default,
    device: DeviceOption = DEVICE.default,
    verbose: VerboseOption = False,
) -> None:
    """Train three models on the bundled Citeseer graph.

    MLP, APPNP and PPNP on several of the paper's test splits, offline, in under two minutes on two idle cores. Prints a
    table, and writes the figure of the accuracies, a trained APPNP and the numbers into a folder. The output
    of an earlier demo is replaced, any other folder left alone.
    """
    again = (out / SUMMARY).is_file()
    check_folder(out, names=NAMES, force=again)
    begin, can_draw = time.perf_counter(), find_spec("matplotlib") is not None

    from pprop.datasets import TEST_SEEDS, load_dataset, paper_split
    from pprop.models import APPNP, MLP, PPNP
    from pprop.training import Stopping, run_seed, train

    graph = load_dataset("citeseer")
    drawn = [paper_split(graph, seed) for seed in TEST_SEEDS[:splits]]
    first = drawn[0]
    session.say(f"Citeseer: {graph.n_nodes} papers of {graph.n_classes} fields, {graph.n_edges} citations.")
    session.say(
        f"Known are the fields of {len(first.train)} papers for training and {len(first.stopping)} for early "
        f"stopping; {len(first.evaluation)} others are the test. {splits} of the paper's 20 test splits."
    )
    if patience < PATIENCE.default:
        session.say(
            f"Runs end after {patience} epochs without improvement (the paper: {PATIENCE.default}), to be quick."
        )
    rule = Stopping(patience, max_epochs)
    seeds = [run_seed(split.seed, 0) for split in drawn]
    models: dict[str, tuple[Model, str]] = {
        "MLP": (MLP(), "the network alone, no citations"),
        "APPNP": (APPNP(), "the network, then ten steps of personalized PageRank"),
        "PPNP": (PPNP(), "the network, then personalized PageRank solved exactly"),
    }
    trained: dict[str, Trained] = {}
    for name, (model, about) in models.items():
        session.say(f"{name}: {about}")
        trained[name] = train(model, graph, drawn, seeds=seeds, stopping=rule, device=device, verbose=verbose)
    record: dict[str, Any] = {
        "graph": "citeseer",
        "fingerprint": graph.fingerprint,
        "split_seeds": [split.seed for split in drawn],
        "patience": patience,
        "models": [_summary(name, runs) for name, runs in trained.items()],
    }
    with new_folder(out, session, names=NAMES, force=again) as folder:
        folder.mkdir()
        _save_model(folder / "model", graph, first, trained["APPNP"], rule, session)
        if can_draw:
            from pprop.study.figures.accuracies import distribution_data, draw_distribution

            title = f"Citeseer, {counted(splits, 'test split')}: runs, mean, 95 % interval"
            rows = distribution_data({name: runs.accuracy() for name, runs in trained.items()})
            write_figure(draw_distribution(rows, title), folder / "accuracy")
        record |= {"out": out, "seconds": time.perf_counter() - begin}
        (folder / SUMMARY).write_text(json.dumps(record, indent=2, default=str) + "\n", encoding="utf-8")
    session.result(record, _text(record, out, can_draw))


def _summary(name: str, runs: Trained) -> dict[str, Any]:
    from pprop.study.stats.estimate import bootstrap_interval

    accuracy = 100 * runs.accuracy()
    return {
        "model": name,
        "accuracy": float(accuracy.mean()),
        "interval": bootstrap_interval(accuracy),
        "published": PUBLISHED[name],
        "accuracies": accuracy.tolist(),
        "epochs": float(runs.epochs.mean()),
        "seconds": runs.seconds,
        "ms_per_epoch": 1000 / runs.run_epochs_per_second,
        "parameters": sum(int(array[0].size) for array in runs.weights),
        **picked(runs, "backend", "device"),
    }


def _save_model(folder: Path, graph: Graph, split: Split, runs: Trained, rule: Stopping, session: Session) -> None:
    """Save the first run of APPNP, trained once more by itself: each run depends on its own seed and split alone."""
    from pprop.estimators import APPNPClassifier, GraphSource

    assert rule.patience is not None
    known = class_names(graph)
    model = APPNPClassifier(
        graph, alpha=ALPHA.default, steps=STEPS.default, patience=rule.patience, max_epochs=rule.max_epochs,
        random_state=runs.seeds[0] % 2**64, device=runs.device,
    )  # fmt: skip
    model.fit(split.train, known[split.train], stopping=(split.stopping, known[split.stopping]))
    accuracy = float(model.score(split.evaluation, known[split.evaluation]))
    source = GraphSource("dataset", {"name": "citeseer"})
    write_artefact(folder, model, source, session, accuracy, len(split.evaluation))


def _text(record: dict[str, Any], out: Path, can_draw: bool) -> str:
    headings = ("model", "accuracy %", "95 % interval", "paper (100 runs)", "epochs", "seconds", "parameters")
    rows = [
        (
            row["model"],
            f"{row['accuracy']:.2f}",
            f"{row['interval'][0]:.2f} to {row['interval'][1]:.2f}",
            "-" if row["published"] is None else f"{row['published']:.2f}",
            f"{row['epochs']:.0f}",
            f"{row['seconds']:.1f}",
            f"{row['parameters']:,}",
        )
        for row in record["models"]
    ]
    figure = f"{out / 'accuracy.png'} (and .svg)" if can_draw else 'needs: pip install "pprop[figures]"'
    return (
        f"{columns(headings, rows)}\n\nfigure   {figure}\nmodel    {out / 'model'}\nnumbers  {out / SUMMARY}\n\n"
        f"Try next: pprop predict {out / 'model'} --out predictions.csv\n"
        "          pprop train edges.csv --nodes nodes.csv --label-column topic --out my-model"
    )
