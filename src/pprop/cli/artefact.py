"""A trained model's folder: what the estimator saves, with predictions and curves beside it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pprop.cli.node_table import prediction_table
from pprop.cli.output import Session
from pprop.cli.tables import write_csv
from pprop.cli.targets import new_folder
from pprop.estimators import APPNPEnsembleClassifier, GraphSource, NodeClassifier

__all__ = ["FILES", "save_artefact", "write_artefact", "write_figure"]

FILES = frozenset(
    {"manifest.json", "weights.safetensors", "MODEL_CARD.md", "predictions.csv", "curves.png", "curves.svg"}
)


def save_artefact(
    path: Path, model: NodeClassifier, source: GraphSource, accuracy: float | None, session: Session, *, force: bool
) -> None:
    """Write the folder, all of it or nothing."""
    with new_folder(path, session, names=FILES, force=force) as folder:
        write_artefact(folder, model, source, accuracy, session)


def write_artefact(
    folder: Path, model: NodeClassifier, source: GraphSource, accuracy: float | None, session: Session
) -> None:
    """Write model, predictions and curves into a new folder."""
    model.save(folder, source=source, accuracy=accuracy)
    with (folder / "predictions.csv").open("xb") as stream:
        write_csv(prediction_table(model), stream)
    if find_spec("matplotlib") is None:
        session.say('No curves were drawn: that needs matplotlib. Install it with: pip install "pprop[figures]"')
        return
    from pprop.study.figures import curves_data, draw_curves

    name = type(model).__name__.replace("Classifier", "").removesuffix("Node")
    title = name if model.graph_.name is None else f"{name} on {model.graph_.name}"
    if isinstance(model, APPNPEnsembleClassifier):
        title += " (epochs are rounds)"
    write_figure(draw_curves(curves_data(model.history_, model.record_.best_epoch), title), folder / "curves")


def write_figure(figure: Any, stem: Path) -> None:
    """Write a figure as PNG and SVG beside each other."""
    from pprop.study.figures import save_figure

    for kind in ("png", "svg"):
        stem.with_suffix(f".{kind}").write_bytes(save_figure(figure, kind))
