"""Writing a fitted estimator to a folder."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import save

from pprop._errors import FormatError
from pprop._validate import check_float, describe, reject
from pprop.estimators._card import model_card
from pprop.estimators._folder import write_folder
from pprop.estimators._manifest import MANIFEST, WEIGHTS, build_manifest, format_of
from pprop.estimators.source import GraphSource
from pprop.graph.files import path_of

if TYPE_CHECKING:
    from pprop.estimators.base import NodeClassifier

__all__ = ["CARD", "EXTRA_PREFIX", "HISTORY_PREFIX", "KNOWN_LABELS", "KNOWN_NODES", "WEIGHT_PREFIX", "write_artefact"]

CARD = "MODEL_CARD.md"
WEIGHT_PREFIX = "weights."
HISTORY_PREFIX = "history."
EXTRA_PREFIX = "extra."
KNOWN_NODES, KNOWN_LABELS = "known.nodes", "known.labels"
"""The nodes that fit was given labels of, and the positions of those labels among the classes."""
FUNCTION = "save"


def write_artefact(
    estimator: NodeClassifier, path: object, *, source: object, accuracy: float | None, overwrite: object
) -> None:
    """Write weights, manifest and model card of a fitted estimator; see `NodeClassifier.save`."""
    target = Path(os.path.abspath(path_of(path, "path", FUNCTION)))
    if not isinstance(overwrite, bool):
        reject("overwrite", FUNCTION, "True or False", describe(overwrite))
    if source is not None and not isinstance(source, GraphSource):
        reject("source", FUNCTION, "a GraphSource or None", describe(source))
    known = estimator.accuracy_ if accuracy is None else check_float(accuracy, "accuracy", FUNCTION, "[0, 1]")
    tensors = {
        **{f"{WEIGHT_PREFIX}{name}": np.array(array, order="C") for name, array in estimator.weights_.items()},
        **{f"{HISTORY_PREFIX}{name}": curve for name, curve in vars(estimator.history_).items()},
        **{f"{EXTRA_PREFIX}{name}": array for name, array in estimator._extras().items()},  # pyright: ignore[reportPrivateUsage]
        KNOWN_NODES: estimator.known_nodes_,
        KNOWN_LABELS: np.searchsorted(estimator.classes_, estimator.known_labels_),
    }
    weights = save(tensors)
    manifest = build_manifest(
        estimator,
        source or estimator.source_ or GraphSource.of(estimator.graph_),
        known,
        hashlib.sha256(weights).hexdigest(),
    )
    files = {
        WEIGHTS: weights,
        MANIFEST: (json.dumps(manifest, indent=2, allow_nan=False) + "\n").encode(),
        CARD: model_card(manifest).encode("utf-8", errors="replace"),
    }

    def may_replace(folder: Path) -> str | None:
        return _objection(folder, overwrite, set(files))

    write_folder(target, files, FUNCTION, may_replace=may_replace)


def _objection(folder: Path, overwrite: bool, names: set[str]) -> str | None:
    """Say why an existing folder must stay, or None."""
    start = f"The 'path' parameter of {FUNCTION} must be"
    try:
        format_of(folder)
        extra = sorted({file.name for file in folder.iterdir()} - names)
    except (FormatError, OSError):
        return f"{start} a new folder or a pprop model to replace. Got {str(folder)!r}, which is neither, instead."
    if not overwrite:
        return f"{start} a new folder. Got {str(folder)!r}, a saved model, instead. Pass overwrite=True to replace it."
    if extra:
        return f"{start} a folder with a pprop model and nothing else. Got {str(folder)!r} with {extra[0]!r} instead."
    return None
