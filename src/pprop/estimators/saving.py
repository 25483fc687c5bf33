"""Saving a fitted classifier to a folder, which appears under its name only when it is complete."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from pprop._errors import FormatError, InputError, TakenError
from pprop._validate import check_float, check_int, describe, reject
from pprop.estimators.features import FILE as FEATURES
from pprop.estimators.features import TrainedFeatures
from pprop.estimators.fitted import MOST_MEMBERS, Blend, Fitted, member_name
from pprop.estimators.manifest import MANIFEST, WEIGHTS, build_manifest, format_of, model_card
from pprop.estimators.source import GraphSource
from pprop.estimators.targets import as_classes
from pprop.graph.files import path_of, replaced_file, replaced_folder

CARD = "MODEL_CARD.md"
WEIGHT_PREFIX = "weights."
HISTORY_PREFIX = "history."
EXTRA_PREFIX = "extra."
SCALING_PREFIX = "scaling."
# The nodes that fit was given labels of, the positions of those labels among the classes, and which of them were used for
# early stopping.
KNOWN_NODES, KNOWN_LABELS, KNOWN_STOPPING = "known.nodes", "known.labels", "known.stopping"
# The test nodes, in ascending order, where they are known.
TEST_NODES = "known.test"
FUNCTION = "save"
# What a folder may hold: files, and a folder for each member of a blend.
FILES = frozenset({WEIGHTS, MANIFEST, CARD, FEATURES})
FOLDERS = frozenset(member_name(k) for k in range(MOST_MEMBERS))


def save_model(
    fitted: Fitted,
    path: object,
    *,
    source: object,
    tested: tuple[object, object] | None,
    overwrite: object,
) -> None:
    """Write weights, other arrays, manifest and model card of a fitted model; see `NodeClassifier.save`.

    `tested` is the test accuracy with the number of test nodes, if that is known; None: those of the fit.
    """
    target = Path(os.path.abspath(path_of(path, "path", FUNCTION)))
    if not isinstance(overwrite, bool):
        reject("overwrite", FUNCTION, "True or False", describe(overwrite))
    if source is not None and not isinstance(source, GraphSource):
        reject("source", FUNCTION, "a GraphSource or None", describe(source))
    as_classes(fitted.target, FUNCTION)  # the format has no other targets yet: use joblib or pickle
    accuracy, test_nodes = fitted.accuracy, fitted.test_nodes
    if tested is not None:
        accuracy = check_float(tested[0], "accuracy", FUNCTION, "[0, 1]")
        test_nodes = None if tested[1] is None else check_int(tested[1], "test_nodes", FUNCTION, low=1)
    files = _files_of(fitted, source, (accuracy, test_nodes))
    if not os.path.isdir(target.parent):  # also where this user may not look
        reject("path", FUNCTION, "a folder in an existing folder", repr(str(target)))
    if os.path.lexists(target):
        _check_replaceable(target, overwrite)
    try:
        with replaced_folder(target, replace=FILES | FOLDERS if overwrite else None) as folder:
            for name, content in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                with replaced_file(folder / name) as stream:
                    stream.write(content)
    except TakenError:
        raise
    except OSError as error:
        expected, got = "a path that can be written", f"{str(target)!r} instead ({error.strerror})."
        raise InputError(f"The 'path' parameter of {FUNCTION} must be {expected}. Got {got}") from error


def _files_of(fitted: Fitted, source: GraphSource | None, tested: tuple[float | None, int | None]) -> dict[str, bytes]:
    """Return the content of every file by its name in the folder; a member of a blend has a folder of its own."""
    files: dict[str, bytes] = {}
    if isinstance(fitted.model, Blend):
        for k, one in enumerate(fitted.model.members):
            theirs = _files_of(one, source or fitted.source, (None, None))
            files |= {f"{member_name(k)}/{name}": content for name, content in theirs.items()}
    assert fitted.history is not None
    scaling = fitted.scaling
    tensors = {
        **{f"{WEIGHT_PREFIX}{name}": np.array(array, order="C") for name, array in fitted.weights.items()},
        **{f"{HISTORY_PREFIX}{name}": curve for name, curve in vars(fitted.history).items()},
        **{f"{EXTRA_PREFIX}{name}": array for name, array in fitted.extras.items()},
        **({} if scaling is None else {f"{SCALING_PREFIX}{name}": array for name, array in scaling.arrays().items()}),
        KNOWN_NODES: fitted.known_nodes,
        KNOWN_LABELS: fitted.target.encode(fitted.known_labels),
    }
    if fitted.split is not None:  # some models of format version 2 do not say it
        tensors[KNOWN_STOPPING] = np.intersect1d(fitted.split.stopping, fitted.known_nodes)
        if len(fitted.split.evaluation):
            tensors[TEST_NODES] = np.sort(fitted.split.evaluation)
    weights = save(tensors)
    described = TrainedFeatures.of(fitted.graph).content()
    manifest = build_manifest(
        fitted,
        source or fitted.source or GraphSource.of(fitted.graph),
        tested,
        hashlib.sha256(weights).hexdigest(),
        None if described is None else hashlib.sha256(described).hexdigest(),
        [hashlib.sha256(content).hexdigest() for name, content in files.items() if name.endswith(f"/{MANIFEST}")],
    )
    files |= {
        WEIGHTS: weights,
        MANIFEST: (json.dumps(manifest, indent=2, allow_nan=False) + "\n").encode(),
        CARD: model_card(manifest).encode("utf-8", errors="replace"),
    }
    if described is not None:
        files[FEATURES] = described
    return files


def _strange(folder: Path) -> list[str]:
    """Return the names in a folder that `save` does not write, sorted."""
    found = [
        file.name
        for file in folder.iterdir()
        if file.name not in FILES and (file.name not in FOLDERS or not file.is_dir() or _strange(file))
    ]
    return sorted(found)


def _check_replaceable(folder: Path, overwrite: bool) -> None:
    start = f"The 'path' parameter of {FUNCTION} must be"
    try:
        format_of(folder)
        extra = _strange(folder)
    except (FormatError, OSError):
        raise InputError(
            f"{start} a new folder or a pprop model to replace. Got {str(folder)!r}, which is neither, instead."
        ) from None
    if not overwrite:
        raise InputError(
            f"{start} a new folder. Got {str(folder)!r}, a saved model, instead. Pass overwrite=True to replace it."
        )
    if extra:
        raise InputError(
            f"{start} a folder with a pprop model and nothing else. Got {str(folder)!r} with {extra[0]!r} instead."
        )
