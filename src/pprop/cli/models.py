"""A saved model's folder: read with the remedies of the command line, written with predictions and curves beside it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop._errors import InputError
from pprop.cli.graphs import GraphInput
from pprop.cli.output import Session
from pprop.cli.tables import csv_text, prediction_table

if TYPE_CHECKING:
    from pprop.estimators import GraphSource, NodeClassifier

ModelArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A folder written by 'pprop train' or by save.")]
FILES = frozenset(
    {"manifest.json", "weights.safetensors", "MODEL_CARD.md", "predictions.csv", "curves.png", "curves.svg"}
)


def load_model(folder: Path, origin: GraphInput | None, session: Session, remark: str = "") -> NodeClassifier:
    """Load a saved model on another graph, or on its own; say so if it is not the graph of the training."""
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}.")
    graph = None if origin is None else origin.read()
    from pprop.estimators import load

    try:
        model = load(folder, graph=graph)
    except InputError as error:
        raise type(error)(str(error).replace("Pass graph=...", "Add --graph GRAPH")) from error
    if origin is not None and model.graph_changed_:
        note = f"Note: {origin.graph!r} is not the graph of the training"
        session.say(f"{note}: its fingerprint is {model.graph_.fingerprint}. {remark}" if remark else f"{note}.")
    return model


def write_artefact(
    folder: Path, model: NodeClassifier, source: GraphSource, accuracy: float | None, session: Session
) -> None:
    """Write model, predictions and curves into a new folder."""
    from pprop.estimators import APPNPEnsembleClassifier

    model.save(folder, source=source, accuracy=accuracy)
    (folder / "predictions.csv").write_text(csv_text(prediction_table(model)), encoding="utf-8", newline="")
    if find_spec("matplotlib") is None:
        session.say('No curves were drawn: that needs matplotlib. Install it with: pip install "pprop[figures]"')
        return
    from pprop.study.figures.model import draw_curves

    name = type(model).__name__.replace("Classifier", "").removesuffix("Node")
    title = name if model.graph_.name is None else f"{name} on {model.graph_.name}"
    if isinstance(model, APPNPEnsembleClassifier):
        title += " (epochs are rounds)"
    write_figure(draw_curves(model.history_, model.record_.best_epoch, title), folder / "curves")


def write_figure(figure: Any, stem: Path) -> None:
    """Write a figure as PNG and SVG beside each other."""
    from pprop.study.figures.style import save_figure

    for kind in ("png", "svg"):
        stem.with_suffix(f".{kind}").write_bytes(save_figure(figure, kind))
