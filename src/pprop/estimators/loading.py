"""`load`: from a folder to a fitted estimator."""

from __future__ import annotations

import hashlib
import inspect
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as read_tensors

from pprop._errors import FormatError, InputError, MismatchError, Remedy
from pprop._validate import describe, reject
from pprop.datasets import Split
from pprop.estimators import appnp, baselines, columns, ensemble, gprgnn, label_propagation, residual
from pprop.estimators.blend import BlendClassifier, blend_of
from pprop.estimators.features import FILE as FEATURES
from pprop.estimators.features import TrainedFeatures, check_shape, shape_text
from pprop.estimators.fitted import (
    ExpectedWeight,
    Fitted,
    Weights,
    checked_extras,
    elsewhere,
    expected_weights,
    member_name,
)
from pprop.estimators.manifest import MANIFEST, WEIGHTS, Manifest, damaged, read_manifest
from pprop.estimators.node import NEIGHBOURS, ModuleOrFactory, NodeClassifier
from pprop.estimators.saving import (
    EXTRA_PREFIX,
    HISTORY_PREFIX,
    KNOWN_LABELS,
    KNOWN_NODES,
    KNOWN_STOPPING,
    SCALING_PREFIX,
    TEST_NODES,
    WEIGHT_PREFIX,
)
from pprop.estimators.source import GraphSource
from pprop.estimators.targets import Classes
from pprop.graph import Graph, Scaling
from pprop.graph.features.recipe import Recipe
from pprop.graph.files import LARGEST_JSON, path_of, read_file
from pprop.settings import (
    ALPHA,
    BLOCK_NODES,
    FIRST_LAYER,
    MIXED_PRECISION,
    NORMALIZATION,
    POSITIVE,
    SCORING,
    THRESHOLD,
    settings_of,
)
from pprop.training import History

FUNCTION = "load"
# Settings that a manifest of format version 2 may lack: with these values such a model predicts what it did.
_NEW = (MIXED_PRECISION, BLOCK_NODES, FIRST_LAYER, NEIGHBOURS)
LATER: Mapping[str, Any] = {setting.name: setting.default for setting in _NEW}
# The same of any version.
_NEWER: Mapping[str, Any] = {setting.name: setting.default for setting in (SCORING, POSITIVE, THRESHOLD)}
# Nodes, the positions of their labels among the classes, which of the nodes were used for early stopping, and test nodes.
Known = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64]]

# What a manifest may name: the classifiers that these modules define.
_CLASSES: Mapping[str, Callable[..., NodeClassifier]] = {
    name: kind
    for module in (appnp, baselines, columns, ensemble, gprgnn, label_propagation, residual)
    for name, kind in inspect.getmembers(module, inspect.isclass)
    if kind.__module__ == module.__name__ and issubclass(kind, NodeClassifier)
}


def load(
    path: str | PathLike[str],
    graph: Graph | None = None,
    predictor: ModuleOrFactory | None = None,
    *,
    logits_file: str | PathLike[str] | None = None,
) -> NodeClassifier:
    """Load a model that was written by ``save``. Nothing is unpickled.

    On the graph and the backend that it was trained with, its predictions equal those of the saved model bit for bit.
    They are computed on the CPU, so those of a model trained on a GPU agree within rounding; it loads without a GPU.

    Parameters
    ----------
    path
        The folder.
    graph
        None reads the graph that the manifest names, and refuses one with another fingerprint. A graph given here is
        used in any case, if it has the features of the training: found by name, in any order, where both have names;
        ``graph_changed_`` of the result says whether it is another than that of the training.
    predictor
        For a model that was trained with a `predictor`: the same module again, or a function that makes one. Its
        weights are replaced.
    logits_file
        For APPNP on a large graph: an ``.npy`` file for the logits of all nodes, which is replaced, and is read as long as
        the model is in use. None: they are in memory.

    Returns
    -------
    NodeClassifier
        Of the class that was saved, fitted. ``train_nodes_`` and ``stopping_nodes_`` are those of the fit, in ascending
        order, and ``known_nodes_`` are both; on another graph there are none. A model of format version 2 may have
        ``known_nodes_`` alone.

    Raises
    ------
    FormatError
        The folder holds no pprop model, a damaged or hostile one, or one of another format version than 2 and 3. Weights or features.json
        that are missing, or that are not those that the manifest has the digest of, are damage.
    InputError
        The graph or the predictor does not fit, or is missing.

    Examples
    --------
    >>> import tempfile, numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5))
    >>> model = pprop.APPNPClassifier(graph, hidden=8, max_epochs=5, random_state=0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> model.fit([0, 1, 3, 4], ["a", "a", "b", "b"]).save(Path(folder.name, "model"))
    >>> loaded = pprop.load(Path(folder.name, "model"), graph=graph)
    >>> bool((loaded.decision_function(range(5)) == model.decision_function(range(5))).all())
    True
    >>> folder.cleanup()
    """
    folder = path_of(path, "path", FUNCTION)
    if not os.path.isdir(folder):  # also where this user may not look
        reject("path", FUNCTION, "an existing folder", repr(str(path)))
    manifest = read_manifest(folder)
    if graph is not None and not isinstance(graph, Graph):
        reject("graph", FUNCTION, "a Graph or None", describe(graph))
    found, history, known, extras, scaling = _read_weights(folder, manifest)
    _check_predictor(predictor, manifest)
    if manifest.model == BlendClassifier.__name__:
        if logits_file is not None:
            expected = "None, unless the model is APPNP with the built-in network"
            reject("logits_file", FUNCTION, expected, describe(logits_file))
        return _load_blend(folder, manifest, graph, known)
    trained = _read_features(folder, manifest)
    used = _find_graph(folder, manifest, trained.recipe) if graph is None else trained.matched(graph, FUNCTION)
    check_shape(used, manifest.feature_shape, FUNCTION)
    changed = used.fingerprint != manifest.fingerprint
    if manifest.scaled and not changed:  # a file of scaled features does not say so
        used = used.replace(scaling=scaling)
    estimator = _unfitted(folder, manifest, used, predictor)
    try:
        values = estimator._checked()  # pyright: ignore[reportPrivateUsage]
        if "alpha" in values:
            alpha = math.nan if manifest.alpha is None else manifest.alpha
            values["alpha"] = settings_of(estimator).get("alpha", ALPHA).check(alpha, manifest.model)
        if "normalization" in values:  # of None, which graph decided; an earlier version has it among the settings
            recorded = manifest.settings["normalization"] if manifest.normalization is None else manifest.normalization
            values["normalization"] = NORMALIZATION.check(recorded, manifest.model)
        if "bias" in values:  # "auto" was decided by the graph of the training; its weights say how
            biased = any(name.rpartition(".")[2] == "bias0" for name in found)
            values["bias"] = biased if isinstance(values["bias"], str) else values["bias"]
        model = estimator._model(values)  # pyright: ignore[reportPrivateUsage]
    except InputError as error:
        raise damaged(folder, f"a setting is impossible ({error})") from error
    width = manifest.feature_shape[0] if manifest.feature_shape else 0
    weights = _in_order(folder, found, expected_weights(model, width, len(manifest.classes)), predictor)
    if scaling is None and weights:
        raise damaged(folder, "it does not say how features are scaled")
    if changed and (reason := elsewhere(manifest.model, model)) is not None:
        raise InputError(reason)
    known = (known[0][:0], known[1][:0], known[0][:0], known[0][:0]) if changed else known
    nodes, codes, stopping, test = _check_known(folder, known, len(manifest.classes), used.n_nodes)
    try:
        extras = checked_extras(manifest.model, model, extras, nodes, used.n_nodes, len(manifest.classes))
    except InputError as error:
        raise damaged(folder, f"{WEIGHTS} has an array besides the weights that does not fit ({error})") from error
    fitted = Fitted(
        kind=type(estimator),
        settings=estimator._settings(),  # pyright: ignore[reportPrivateUsage]
        graph=used,
        target=Classes(manifest.classes, manifest.scoring, manifest.threshold),
        model=model,
        alpha=manifest.alpha,
        outputs=np.empty(0),
        known_nodes=nodes,
        known_labels=manifest.classes[codes],
        weights=weights,
        extras=extras,
        scaling=scaling,
        split=None if stopping is None else Split(np.setdiff1d(nodes, stopping), stopping, test),
        record=manifest.record,
        history=history,
        accuracy=None if changed else manifest.accuracy,
        test_nodes=None if changed else manifest.test_nodes,
        source=None if changed else manifest.source,
        graph_changed=changed,
    )
    estimator.fitted_ = fitted.again(FUNCTION, logits_file)
    return estimator


def _load_blend(folder: Path, manifest: Manifest, graph: Graph | None, known: Known) -> BlendClassifier:
    """Return a blend, whose members lie in folders of their own; each of them is the one that the manifest has the digest of."""
    if not manifest.members:
        raise damaged(folder, "it does not say which members it has")
    members: list[NodeClassifier] = []
    for k, digest in enumerate(manifest.members):
        place = folder / member_name(k)
        try:
            content = read_file(place / MANIFEST)
        except OSError as error:
            raise damaged(folder, f"{member_name(k)}/{MANIFEST} cannot be read ({error.strerror})") from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise damaged(
                folder, f"{member_name(k)} is not the member that the manifest describes, its SHA-256 differs"
            )
        if k == 0 and graph is None:
            graph = _find_graph(folder, manifest, _read_features(folder, manifest).recipe)
        members.append(load(place, graph=graph))
    first = members[0]
    for one in members:
        same = np.array_equal(one.classes_, manifest.classes) and one.graph_.fingerprint == first.graph_.fingerprint
        if not same or isinstance(one, BlendClassifier):
            raise damaged(folder, "its members are not of the same graph and classes")
    blend = BlendClassifier(first.graph_, members=members)
    blended = blend_of([one.fitted_ for one in members])
    changed, split = blended.graph_changed, blended.split
    if split is not None and not changed:
        test = _check_known(folder, known, len(manifest.classes), blended.graph.n_nodes)[3]
        split = replace(split, evaluation=test)
    blend.fitted_ = replace(
        blended,
        target=Classes(manifest.classes, manifest.scoring, manifest.threshold),
        split=split,
        record=manifest.record,
        accuracy=None if changed else manifest.accuracy,
        test_nodes=None if changed else manifest.test_nodes,
        source=None if changed else manifest.source,
    )
    return blend


def _read_weights(folder: Path, manifest: Manifest) -> tuple[Weights, History, Known, Weights, Scaling | None]:
    try:
        content = read_file(folder / WEIGHTS)
    except OSError as error:
        raise damaged(folder, f"{WEIGHTS} cannot be read ({error.strerror})") from error
    if hashlib.sha256(content).hexdigest() != manifest.sha256:
        raise damaged(folder, f"{WEIGHTS} is not the file that the manifest describes, its SHA-256 differs")
    try:
        tensors: dict[str, NDArray[Any]] = read_tensors(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise damaged(folder, f"{WEIGHTS} is no valid safetensors file") from error
    curves: dict[str, NDArray[Any]] = {}
    for field in fields(History):
        curve = tensors.pop(HISTORY_PREFIX + field.name, None)
        if curve is None and field.name == "stopping_score":  # models of before have none
            curve = np.full(manifest.record.epochs, np.nan)
        if curve is None or curve.dtype != float or curve.shape != (manifest.record.epochs,):
            raise damaged(folder, f"{WEIGHTS} lacks the curve {field.name!r} of {manifest.record.epochs} epochs")
        curves[field.name] = curve
    none = np.empty(0, dtype=np.int64)  # in a model of format version 2
    known = tensors.pop(KNOWN_NODES, none), tensors.pop(KNOWN_LABELS, none), tensors.pop(KNOWN_STOPPING, None)
    known = *known, tensors.pop(TEST_NODES, none)
    extras, of_scaling = (
        {name.removeprefix(prefix): tensors.pop(name) for name in list(tensors) if name.startswith(prefix)}
        for prefix in (EXTRA_PREFIX, SCALING_PREFIX)
    )
    scaling = None
    if manifest.scaling is not None:
        try:
            scaling = Scaling.restored(manifest.scaling, of_scaling, math.prod(manifest.feature_shape))
        except FormatError as error:
            raise damaged(folder, str(error)) from error
    stray = [name for name in tensors if not name.startswith(WEIGHT_PREFIX)]
    if stray:
        raise damaged(folder, f"{WEIGHTS} holds the unknown tensor {stray[0]!r}")
    weights = {name.removeprefix(WEIGHT_PREFIX): tensor for name, tensor in tensors.items()}
    return weights, History(**curves), known, extras, scaling


def _check_known(folder: Path, known: Known, n_classes: int, n_nodes: int) -> Known:
    nodes, codes, stopping, test = known
    sound = nodes.shape == codes.shape == (nodes.size,) and nodes.dtype == codes.dtype == np.int64
    if not sound or ((codes < 0) | (codes >= n_classes) | (nodes < 0) | (nodes >= n_nodes)).any():
        raise damaged(folder, f"{WEIGHTS} has labelled nodes that the graph or the classes have not")
    if (nodes[1:] <= nodes[:-1]).any():
        raise damaged(folder, f"{WEIGHTS} has labelled nodes that are not in ascending order")
    kept = stopping is None or (
        stopping.dtype == np.int64 and np.array_equal(np.intersect1d(stopping, nodes), stopping)
    )
    if not kept:
        raise damaged(folder, f"{WEIGHTS} has validation nodes that are no labelled nodes, or not in ascending order")
    apart = (
        test.dtype == np.int64 and test.ndim == 1 and not np.isin(test, nodes).any() and (test[1:] > test[:-1]).all()
    )
    if not apart or ((test < 0) | (test >= n_nodes)).any():
        raise damaged(
            folder, f"{WEIGHTS} has test nodes that the graph has not, that are labelled nodes, or out of order"
        )
    return known


def _check_predictor(predictor: object, manifest: Manifest) -> None:
    if predictor is None and manifest.predictor is not None:
        raise InputError(
            f"This model was trained with the predictor {manifest.predictor}, whose code is not saved with it. "
            "Pass predictor=..., the same module again or the function that makes it."
        )
    if predictor is not None and manifest.predictor is None:
        reject("predictor", FUNCTION, "None for a model with the built-in network", describe(predictor))


def _read_features(folder: Path, manifest: Manifest) -> TrainedFeatures:
    if manifest.features_sha256 is None and not os.path.lexists(folder / FEATURES):
        return TrainedFeatures()
    try:
        content = read_file(folder / FEATURES, LARGEST_JSON)
    except OSError as error:
        raise damaged(folder, f"{FEATURES} cannot be read ({error.strerror})") from error
    if manifest.version < 3:
        warnings.warn(
            f"The model in {str(folder)!r} has format version 2, without a digest of {FEATURES}: whether that file "
            "has changed is not known. Load the model and save it again to add the digest.",
            stacklevel=3,
        )
    elif hashlib.sha256(content).hexdigest() != manifest.features_sha256:
        raise damaged(folder, f"{FEATURES} is not the file that the manifest describes, its SHA-256 differs")
    try:
        trained = TrainedFeatures.from_content(content)
    except FormatError as error:
        raise damaged(folder, str(error)) from error
    shape = None if trained == TrainedFeatures() else [] if trained.names is None else [len(trained.names)]
    if shape not in (None, manifest.feature_shape):
        raise damaged(folder, f"{FEATURES} has {shape_text(shape)}")
    return trained


def saved_source(path: str | PathLike[str]) -> GraphSource | None:
    """Return where the graph of a saved model was read; None where that is not known."""
    return read_manifest(path_of(path, "path", "saved_source")).source


def saved_recipe(path: str | PathLike[str]) -> Recipe | None:
    """Return how a saved model turns the columns of a table into features; None where it was trained on a matrix.

    Give it to `read_edges` or `Graph.from_pandas` as `feature_columns`, to read another graph in the same way.
    """
    folder = path_of(path, "path", "saved_recipe")
    return _read_features(folder, read_manifest(folder)).recipe


def _find_graph(folder: Path, manifest: Manifest, recipe: Recipe | None) -> Graph:
    if manifest.source is None:
        name = "without a name" if manifest.graph_name is None else f"named {manifest.graph_name!r}"
        raise MismatchError(
            f"The model in {str(folder)!r} does not say where its graph, {name}, can be read.",
            subject="source",
            remedies=[Remedy(settings={"graph": ...})],
        )
    graph = manifest.source.read(recipe)
    if graph.fingerprint != manifest.fingerprint:
        raise MismatchError(
            f"The graph {manifest.source} is not the one that the model in {str(folder)!r} was trained on: its "
            f"fingerprint is {graph.fingerprint}, not {manifest.fingerprint}.",
            subject="graph",
            remedies=[Remedy("Name the graph to use it all the same.", settings={"graph": ...})],
        )
    return graph


def _unfitted(folder: Path, manifest: Manifest, graph: Graph, predictor: ModuleOrFactory | None) -> NodeClassifier:
    kind = _CLASSES.get(manifest.model)
    if kind is None:
        raise damaged(folder, f"there is no model class {manifest.model!r}")
    names = {field.name for field in fields(cast("Any", kind))}
    may_lack = {**_NEWER, **(LATER if manifest.version == 2 else {})}
    given = {name: value for name, value in may_lack.items() if name in names} | manifest.settings
    wrong = sorted((names - {"graph", "predictor"}) ^ set(given))
    if wrong:
        raise damaged(folder, f"the setting {wrong[0]!r} is missing or unknown")
    if isinstance(given.get("class_weight"), list):  # the pairs of a dict, which may have integers as keys
        try:
            given["class_weight"] = dict(given["class_weight"])
        except (TypeError, ValueError) as error:
            raise damaged(folder, "the setting 'class_weight' is no list of pairs") from error
    own: dict[str, Any] = {"predictor": predictor} if "predictor" in names else {}
    return kind(graph=graph, **own, **given)


def _in_order(folder: Path, found: Weights, expected: Iterable[ExpectedWeight], predictor: object) -> Weights:
    """Return the weights in the order of the model (a safetensors file has none), or say which one does not fit."""
    owner = "the settings" if predictor is None else "the predictor"
    wanted: dict[str, ExpectedWeight] = {}
    for weight in expected:  # which may never end
        if weight.name not in found:
            raise _misfit(folder, f"the weight {weight.name!r} is missing in {WEIGHTS}", predictor)
        wanted[weight.name] = weight
    for name in sorted(set(found) - set(wanted)):
        raise _misfit(folder, f"the weight {name!r} is unknown to {owner}", predictor)
    for name, weight in wanted.items():
        array = found[name]
        if array.shape != weight.shape or array.dtype != weight.dtype:
            got, other = (f"{one.dtype} of shape {one.shape}" for one in (array, weight))
            raise _misfit(folder, f"the weight {name!r} is {got}, where {owner} would have {other}", predictor)
        if np.isnan(array).any() or (predictor is None and np.isinf(array).any()):  # a module's mask may be infinite
            raise damaged(folder, f"the weight {name!r} holds NaN or infinity")
    return {name: found[name] for name in wanted}


def _misfit(folder: Path, what: str, predictor: object) -> InputError:
    if predictor is None:
        return damaged(folder, what)
    return InputError(f"The predictor given to {FUNCTION} is not that of the model in {str(folder)!r}: {what}.")
