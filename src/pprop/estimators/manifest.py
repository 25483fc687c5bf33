"""The manifest of a saved model, written and read with checks, and the model card, the same for people."""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import FormatError, InputError
from pprop._validate import describe
from pprop._version import __version__
from pprop.estimators.features import FILE as FEATURES
from pprop.estimators.features import feature_shape
from pprop.estimators.fitted import MOST_MEMBERS, Fitted, TrainingRecord
from pprop.estimators.source import GraphSource
from pprop.graph.files import read_json
from pprop.models import FeatureNetwork, Model
from pprop.scoring import Scoring, Threshold, positive_class
from pprop.settings import SCORING

FORMAT = "pprop-model"
VERSION = 3  # since version 3 with a digest of the features' file
READ = (2, VERSION)
MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
_CLASS_TYPES = {
    "str": (str, "U"),
    "int": (int, "i"),
    "bool": (bool, "b"),
}  # of an item, and numpy's code for an array of them
_KINDS = {code: kind for kind, (_, code) in _CLASS_TYPES.items()}
_PACKAGES = ("numpy", "scipy", "torch", "numba", "scikit-learn", "safetensors")


def build_manifest(
    fitted: Fitted,
    source: GraphSource | None,
    tested: tuple[float | None, int | None],
    digest: str,
    features: str | None,
    members: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the manifest of a fitted model, ready for JSON.

    `tested` is its accuracy and the number of test nodes; `digest` and `features` are the digests of the weights and of
    the description of the features, `members` those of the manifests of a blend's members.
    """
    assert fitted.record is not None
    graph, classes, model = fitted.graph, fitted.classes.names, fitted.model
    predictor = model.predictor if isinstance(model, Model) else None
    built_in = isinstance(predictor, FeatureNetwork | None)
    named: Any = predictor if hasattr(predictor, "__qualname__") else type(predictor)
    return {
        "format": FORMAT,
        "format_version": VERSION,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": {
            "class": fitted.name,
            "alpha": fitted.alpha,
            "normalization": fitted.normalization,
            "predictor": None if built_in else f"{named.__module__}.{named.__qualname__}",
            "parameters": sum(array.size for array in fitted.every_weight.values()),
        },
        "settings": {name: _plain(value) for name, value in fitted.settings.items()},
        "classes": {"kind": _KINDS[classes.dtype.kind], "values": classes.tolist()},
        "graph": {
            "name": graph.name,
            "source": None if source is None else source.to_json(),
            "fingerprint": graph.fingerprint,
            "nodes": graph.n_nodes,
            "edges": graph.n_edges,
            "directed": graph.directed,
            "feature_shape": feature_shape(graph),
            "scaled": graph.scaling is not None,
            "scaling": None if fitted.scaling is None else fitted.scaling.kind,
        },
        "training": {name: _plain(value) for name, value in asdict(fitted.record).items()},
        "scoring": None
        if fitted.scoring is None
        else {"name": fitted.scoring.name, "positive": fitted.scoring.positive},
        "threshold": None if fitted.threshold is None else fitted.threshold.record(),
        "accuracy": tested[0],
        "test_nodes": tested[1],
        "versions": {"pprop": __version__, "python": platform.python_version()}
        | {package: version(package) for package in _PACKAGES},
        "weights": {"file": WEIGHTS, "sha256": digest},
        "features": None if features is None else {"file": FEATURES, "sha256": features},
        **({"members": list(members)} if members else {}),
    }


def _plain(value: object) -> object:
    """Return a setting or a figure as JSON can hold it; a RandomState and a number that is not finite become null."""
    if isinstance(value, np.ndarray | np.generic):
        value = cast("object", value.tolist())
    if isinstance(value, Mapping):  # whose keys need not be text
        value = list(cast("Mapping[object, object]", value).items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(item) for item in cast("Iterable[object]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | bool | int | float | None) else None


def damaged(folder: Path, what: str) -> FormatError:
    """Return the error for a folder that is a pprop model, but a broken one."""
    return FormatError(f"The model in {str(folder)!r} is damaged: {what}. Save it again, or use another copy.")


def format_of(folder: Path) -> Mapping[str, Any]:
    """Return the manifest of a folder as a dict, or say that there is no pprop model in it, or one not to be read here."""
    file = folder / MANIFEST
    if not os.path.lexists(file):
        raise FormatError(f"The folder {str(folder)!r} holds no pprop model: it has no {MANIFEST}.")
    try:
        content = read_json(file)
    except OSError as error:
        raise damaged(folder, f"{MANIFEST} cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise damaged(folder, f"{MANIFEST} is no valid JSON") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:  # pyright: ignore[reportUnknownMemberType]
        raise FormatError(f"The folder {str(folder)!r} holds no pprop model: its {MANIFEST} is of another format.")
    manifest = cast("dict[str, Any]", content)
    number = manifest.get("format_version")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise damaged(folder, f"its format version is {describe(number)}")
    if number not in READ:
        remedy = "Install a newer pprop." if number > VERSION else "Train the model again."
        raise FormatError(
            f"The model in {str(folder)!r} has format version {number}, and pprop {__version__} reads versions "
            f"{' and '.join(map(str, READ))}. {remedy}"
        )
    return manifest


@final
@dataclass(frozen=True)
class Manifest:
    """A manifest, checked for all that needs neither the weights nor the graph."""

    version: int
    model: str
    alpha: float | None
    normalization: str | None  # None: there is none, or a model of an earlier version, whose settings have it
    predictor: str | None
    settings: dict[str, Any]
    classes: NDArray[Any]
    graph_name: str | None
    source: GraphSource | None
    fingerprint: str
    feature_shape: list[int]
    scaled: bool
    scaling: str | None
    record: TrainingRecord
    scoring: Scoring | None  # None also where the file does not say it
    threshold: Threshold | None
    accuracy: float | None
    test_nodes: int | None
    sha256: str
    features_sha256: str | None  # None: no file, or not known before version 3
    members: tuple[str, ...] = ()  # digests of the manifests of a blend's members


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder; raise FormatError for what is missing or of the wrong type."""
    content = format_of(folder)

    def wrong(section: str, key: str | None, value: object) -> FormatError:
        where = repr(section) if key is None else f"{key!r} under {section!r}"
        return damaged(folder, f"{MANIFEST} has {describe(value)} as {where}")

    def typed(section: str, key: str | None, *types: type | None) -> Any:
        """Return an entry of a section, or for a key of None a section, of one of these types; None is JSON's null."""
        holder, name = (content, section) if key is None else (typed(section, None, dict), key)
        if name not in holder:
            raise damaged(folder, f"{MANIFEST} lacks {name!r}{'' if key is None else f' under {section!r}'}")
        value = holder[name]
        if type(value) in types or (value is None and None in types):
            return value
        if float in types and type(value) is int and abs(value) <= sys.float_info.max:
            return float(value)
        raise wrong(section, key, value)

    source = typed("graph", "source", dict, None)
    described = content["format_version"] >= 3 and typed("features", None, dict, None) is not None
    shape: list[Any] = typed("graph", "feature_shape", list)
    if not all(type(size) is int for size in shape):
        raise wrong("graph", "feature_shape", shape)
    accuracy = typed("accuracy", None, float, None)
    if accuracy is not None and not 0 <= accuracy <= 1:
        raise wrong("accuracy", None, accuracy)
    test_nodes = typed("test_nodes", None, int, None) if content["format_version"] >= 3 else None
    if test_nodes is not None and test_nodes < 1:
        raise wrong("test_nodes", None, test_nodes)
    predictor = typed("model", "predictor", str, None)
    kind, values = typed("classes", "kind", str), typed("classes", "values", list)
    if kind not in _CLASS_TYPES:
        raise wrong("classes", "kind", kind)
    wanted, code = _CLASS_TYPES[kind]
    classes = np.array(values if all(type(value) is wanted for value in values) else [])
    # not the same: text that ends in a null character, which numpy drops; another code: an integer of more than 64 bits
    if len(values) < 2 or classes.dtype.kind != code or not classes.tolist() == values == sorted(set(values)):
        raise wrong("classes", "values", values)
    members: list[Any] = typed("members", None, list) if "members" in content else []
    if not all(type(digest) is str for digest in members) or len(members) > MOST_MEMBERS:
        raise wrong("members", None, members)
    types: dict[str, tuple[type | None, ...]] = {"int": (int,), "str": (str,), "float": (float, None)}
    types["float | None"] = types["float"]
    noted: dict[str, Any] = typed("training", None, dict)
    found = {
        field.name: typed("training", field.name, *types[str(field.type)])
        for field in fields(TrainingRecord)
        # version 2 may lack those with a default, and the score came later
        if field.name in noted
        or field.default is MISSING
        or (content["format_version"] >= 3 and field.name != "stopping_score")
    }
    record: dict[str, Any] = {name: math.nan if value is None else value for name, value in found.items()}
    record["stopping_score"] = found.get("stopping_score")
    return Manifest(
        version=content["format_version"],
        model=typed("model", "class", str),
        alpha=typed("model", "alpha", float, None),
        normalization=typed("model", "normalization", str, None) if "normalization" in content["model"] else None,
        predictor=predictor,
        settings=typed("settings", None, dict),
        classes=classes,
        graph_name=typed("graph", "name", str, None),
        source=None if source is None else GraphSource.from_json(source),
        fingerprint=typed("graph", "fingerprint", str),
        feature_shape=shape,
        scaled=typed("graph", "scaled", bool),
        scaling=typed("graph", "scaling", str, None),
        record=TrainingRecord(**record),
        scoring=_scoring(folder, content.get("scoring"), classes),
        threshold=_threshold(folder, content.get("threshold"), classes),
        accuracy=accuracy,
        test_nodes=test_nodes,
        sha256=typed("weights", "sha256", str),
        features_sha256=typed("features", "sha256", str) if described else None,
        members=tuple(members),
    )


def _scoring(folder: Path, described: Any, classes: NDArray[Any]) -> Scoring | None:
    """Return the scoring that a manifest describes."""
    if described is None:
        return None
    try:
        name, positive = SCORING.check(described["name"], "load"), described["positive"]
        if positive is not None:
            positive = positive_class(classes, np.ones(len(classes), dtype=np.int64), positive, function="load")
    except (InputError, KeyError, TypeError) as error:
        raise damaged(folder, f"{MANIFEST} has {describe(described)} as 'scoring'") from error
    return Scoring(name, classes, positive)


def _threshold(folder: Path, described: Any, classes: NDArray[Any]) -> Threshold | None:
    """Return the threshold that a manifest describes."""
    if described is None:
        return None
    try:
        found = Threshold.from_record(described)
        counts = found.nodes, found.positives, found.taken, found.hits
        sound = (
            found.positive in classes.tolist() and type(found.probability) is float and math.isfinite(found.probability)
        )
        numbers_of_rule = {"f1": 0, "precision": 1, "recall": 1, "cost": 2, "probability": 1}.get(found.rule.kind)
        sound = sound and len(found.rule.values) == numbers_of_rule
        sound = sound and all(type(value) is float and math.isfinite(value) for value in found.rule.values)
        if not sound or not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(folder, f"{MANIFEST} has {describe(described)} as 'threshold'") from error
    return found


_SHOWN_CLASSES = 20


def model_card(manifest: Mapping[str, Any]) -> str:
    """Return a short description of a saved model in Markdown."""
    model, graph, training = manifest["model"], manifest["graph"], manifest["training"]
    classes: list[object] = manifest["classes"]["values"]
    shown = ", ".join(_code(name) for name in classes[:_SHOWN_CLASSES])
    more = "" if len(classes) <= _SHOWN_CLASSES else f" and {len(classes) - _SHOWN_CLASSES} more"
    name = "a graph without a name" if graph["name"] is None else _code(graph["name"])
    rows = {
        "accuracy on test nodes": _tested(manifest["accuracy"], manifest["test_nodes"]),
        "accuracy on validation nodes": _percent(training["stopping_accuracy"]),
        "epochs (kept)": f"{training['epochs']} ({training['best_epoch'] + 1})",
        "training, validation nodes": f"{training['train_nodes']}, {training['stopping_nodes']}",
        "seconds (to compile kernels)": f"{training['seconds']:.1f} ({training['compile_seconds']:.1f})",
        "backend, device": f"{training['backend']}, {training['device']}",
        "seed": training["seed"],
        "weights": f"{model['parameters']:,}",
    }
    if manifest["scoring"] is not None and training["stopping_score"] is not None:
        rows[f"{manifest['scoring']['name']} on validation nodes"] = f"{training['stopping_score']:.3f}"
    decision = "" if manifest["threshold"] is None else f"\n{Threshold.from_record(manifest['threshold']).sentence()}\n"
    settings = "\n".join(f"| {key} | {_code(value)} |" for key, value in manifest["settings"].items())
    figures = "\n".join(f"| {key} | {value} |" for key, value in rows.items())
    teleport = "" if model["alpha"] is None else f" The teleport probability used is alpha = {model['alpha']:g}."
    if model.get("normalization") is not None:
        teleport += f" Its matrix has the normalisation {_code(model['normalization'])}."
    return f"""# {model["class"]}

Assigns each node of {name} ({graph["nodes"]:,} nodes, {graph["edges"]:,} edges) to one of {len(classes)} classes:
{shown}{more}.{teleport}
{decision}
Written by pprop {manifest["versions"]["pprop"]}. Use it with

    import pprop
    model = pprop.load("this folder")
    model.predict([0, 1, 2])  # positions of nodes in model.graph

## Training

| | |
|---|---|
{figures}

## Settings

| | |
|---|---|
{settings}

## Limits

The model knows the graph it was trained on (fingerprint {_code(graph["fingerprint"])}). On another graph with the same
features it runs, but nothing is known about its accuracy there. `manifest.json` has all details; the weights are in
`weights.safetensors`.
"""


def _code(value: object) -> str:
    text = " ".join(str(value).split()).replace("`", "'").replace("|", "\\|")
    return f"`{text}`"


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.1f} %"


def _tested(accuracy: float | None, nodes: int | None) -> str:
    if accuracy is None or nodes is None:
        return _percent(accuracy)
    from scipy.stats import binomtest  # half a second

    ends = binomtest(round(accuracy * nodes), nodes).proportion_ci(0.95, method="wilson")
    return f"{_percent(accuracy)} of {nodes:,} (95 % interval {100 * ends.low:.1f} to {100 * ends.high:.1f})"
