"""``pprop demo``: three models on the bundled Citeseer graph, a table, a figure and a model to go on with."""

from __future__ import annotations

import json as json_module
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop.cli.output import DebugOption, DeviceOption, JsonOption, Session, VerboseOption
from pprop.cli.targets import check_folder, new_folder
from pprop.cli.text import columns

if TYPE_CHECKING:
    from pprop.datasets import Split
    from pprop.graph import Graph
    from pprop.training import Stopping, Trained

__all__ = ["EXAMPLES", "demo"]

EXAMPLES = ("pprop demo", "pprop demo --splits 20 --out all-splits")

SUMMARY = "demo.json"
NAMES = frozenset({SUMMARY, "accuracy.png", "accuracy.svg", "model"})
PAPER_PATIENCE = 100
PUBLISHED = {"MLP": None, "APPNP": 75.73, "PPNP": 75.83}  # per cent, means of 100 runs, Table 2 of the paper


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for the figure, the model and the numbers.")
    ] = Path("demo-output"),
    splits: Annotated[int, typer.Option("--splits", min=1, max=20, help="How many of the paper's test splits.")] = 4,
    patience: Annotated[
        int, typer.Option("--patience", help="Epochs without improvement before a run ends; the paper's is 100.")
    ] = PAPER_PATIENCE,
    max_epochs: Annotated[int, typer.Option("--max-epochs", help="Epochs of a run at most.")] = 10000,
    device: DeviceOption = "cpu",
    json: JsonOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Train three models on the bundled Citeseer graph.

    MLP, APPNP and PPNP on several of the paper's test splits, offline, in under two minutes on two idle cores. Prints a
    table, and writes the figure of the accuracies, a trained APPNP and the numbers into a folder. The output
    of an earlier demo is replaced, any other folder left alone.
    """
    with Session("demo", json=json, debug=debug) as session:
        check_folder(out, names=NAMES, force=(out / SUMMARY).is_file())
        begin = time.perf_counter()

        from pprop.datasets import TEST_SEEDS, load_dataset, paper_split
        from pprop.training import Stopping

        graph = load_dataset("citeseer")
        drawn = [paper_split(graph, seed) for seed in TEST_SEEDS[:splits]]
        session.say(f"Citeseer: {graph.n_nodes} papers of {graph.n_classes} fields, {graph.n_edges} citations.")
        session.say(
            f"Known are the fields of {len(drawn[0].train)} papers for training and {len(drawn[0].stopping)} for early "
            f"stopping; {len(drawn[0].evaluation)} others are the test. {splits} of the paper's 20 test splits."
        )
        if patience < PAPER_PATIENCE:
            session.say(
                f"Runs end after {patience} epochs without improvement (the paper: {PAPER_PATIENCE}), to be quick."
            )
        rule = Stopping(patience, max_epochs)
        trained = _train_all(graph, drawn, rule, session, device=device, verbose=verbose)
        record: dict[str, Any] = {
            "graph": "citeseer",
            "fingerprint": graph.fingerprint,
            "split_seeds": [split.seed for split in drawn],
            "patience": patience,
            "models": [_summary(name, runs) for name, runs in trained.items()],
        }
        with new_folder(out, session, names=NAMES, force=True) as folder:
            folder.mkdir()
            _save_model(folder / "model", graph, drawn[0], trained["APPNP"], rule, session)
            drawn_figure = _save_figure(folder / "accuracy", trained, splits)
            record |= {"out": out, "seconds": time.perf_counter() - begin}
            (folder / SUMMARY).write_text(json_module.dumps(record, indent=2, default=str) + "\n", encoding="utf-8")
        session.result(record, _text(record, out, drawn_figure))


def _train_all(
    graph: Graph, splits: list[Split], rule: Stopping, session: Session, *, device: str, verbose: bool
) -> dict[str, Trained]:
    from pprop.models import APPNP, MLP, PPNP
    from pprop.training import run_seed, train

    models = {"MLP": MLP(), "APPNP": APPNP(alpha=0.1, steps=10), "PPNP": PPNP(alpha=0.1)}
    about = {
        "MLP": "the network alone, no citations",
        "APPNP": "the network, then ten steps of personalized PageRank",
        "PPNP": "the network, then personalized PageRank solved exactly",
    }
    seeds = [run_seed(split.seed, 0) for split in splits]
    trained: dict[str, Trained] = {}
    for name, model in models.items():
        session.say(f"{name}: {about[name]}")
        trained[name] = train(model, graph, splits, seeds=seeds, stopping=rule, device=device, verbose=verbose)
    return trained


def _summary(name: str, runs: Trained) -> dict[str, Any]:
    from pprop.study.stats.estimate import bootstrap_interval

    accuracy = 100 * runs.accuracy()
    low, high = bootstrap_interval(accuracy)
    return {
        "model": name,
        "accuracy": float(accuracy.mean()),
        "interval": [low, high],
        "published": PUBLISHED[name],
        "accuracies": accuracy.tolist(),
        "epochs": float(runs.epochs.mean()),
        "seconds": runs.seconds,
        "ms_per_epoch": 1000 / runs.run_epochs_per_second,
        "parameters": sum(int(array[0].size) for array in runs.weights),
        "backend": runs.backend,
        "device": runs.device,
    }


def _save_model(folder: Path, graph: Graph, split: Split, runs: Trained, rule: Stopping, session: Session) -> None:
    """Save the first run of APPNP, trained once more by itself: each run depends on its own seed and split alone."""
    import numpy as np

    from pprop.cli.artefact import write_artefact
    from pprop.estimators import APPNPClassifier, GraphSource

    assert graph.labels is not None
    names = np.asarray(graph.class_names)
    model = APPNPClassifier(
        graph,
        alpha=0.1,
        steps=10,
        patience=rule.patience,
        max_epochs=rule.max_epochs,
        random_state=runs.seeds[0] % 2**64,
        device=runs.device,
    )
    watched = (split.stopping, names[graph.labels[split.stopping]])
    model.fit(split.train, names[graph.labels[split.train]], stopping=watched)
    accuracy = float(model.score(split.evaluation, names[graph.labels[split.evaluation]]))
    write_artefact(folder, model, GraphSource("dataset", {"name": "citeseer"}), accuracy, session)


def _save_figure(stem: Path, trained: dict[str, Trained], splits: int) -> bool:
    """Draw the accuracies where matplotlib is installed; return whether it is."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        return False
    from pprop.cli.artefact import write_figure
    from pprop.study.figures import distribution_data, draw_distribution

    rows = distribution_data({name: runs.accuracy() for name, runs in trained.items()})
    title = f"Citeseer, {splits} test split{'s' if splits > 1 else ''}: runs, mean, 95 % interval"
    write_figure(draw_distribution(rows, title), stem)
    return True


def _text(record: dict[str, Any], out: Path, drawn_figure: bool) -> str:
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
    figure = (
        f"figure   {out / 'accuracy.png'} (and .svg)"
        if drawn_figure
        else 'figure   needs: pip install "pprop[figures]"'
    )
    return (
        f"{columns(headings, rows)}\n\n{figure}\nmodel    {out / 'model'}\nnumbers  {out / SUMMARY}\n\n"
        f"Try next: pprop predict {out / 'model'} --out predictions.csv\n"
        "          pprop train edges.csv --nodes nodes.csv --label-column topic --out my-model"
    )
