"""The DIR argument: a saved model, read with the remedies of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pprop._errors import InputError

if TYPE_CHECKING:
    from pprop.estimators import NodeClassifier
    from pprop.graph import Graph

__all__ = ["ModelArgument", "load_model"]

ModelArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A folder written by 'pprop train' or by save.")]


def load_model(folder: Path, graph: Graph | None) -> NodeClassifier:
    """Load a saved model, on the graph given or on its own."""
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder)!r}.")
    from pprop.estimators import load

    try:
        return load(folder, graph=graph)
    except InputError as error:
        raise type(error)(str(error).replace("Pass graph=...", "Add --graph GRAPH")) from error
