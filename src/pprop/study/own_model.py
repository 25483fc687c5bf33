"""One's own model in the study: named ``module:function``, trained or fitted on the same runs as the others."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from torch import nn

from pprop._errors import InputError
from pprop._validate import describe
from pprop.graph import Graph
from pprop.models import MLP, Architecture, Model
from pprop.study.cell import Cell
from pprop.study.code_version import entries_of, version_of
from pprop.study.prepared import Prepared
from pprop.study.recipe import Fitted, Place, Recipe, TrainedTogether
from pprop.study.zoo import stopping_rule

__all__ = ["own_cell", "own_recipe", "own_version"]

_EXPECTED = (
    "a pprop model such as pprop.APPNP(), a torch module from features (n, f) to logits (n, c), or an object with "
    "fit(nodes, y, stopping=(nodes, y)) and predict(nodes)"
)


def own_cell(name: str, dataset: str, max_epochs: int = 10000, patience: int = 100) -> Cell:
    """Return the cell of one's own model on the paper's test splits.

    Parameters
    ----------
    name
        ``"module:function"``. The function gets the graph, without any labels, and returns a pprop model, a torch module
        or an object with ``fit`` and ``predict``. If it has a parameter `seed`, that is the seed of the run. The module is
        looked for in the present folder, too.
    dataset
        Name for `load_dataset`.
    max_epochs, patience
        Of the early stopping, for what `train` trains.

    Examples
    --------
    >>> own_cell("mymodule:build", "cora_ml").model
    'mymodule:build'
    """
    settings = {"learning_rate": 0.01, "patience": patience, "max_epochs": max_epochs, "criterion": "paper"}
    return Cell(name, settings, dataset)


def own_recipe(cell: Cell, prepared: Prepared, place: Place) -> Recipe:
    """Return how one's own model is computed. Everything but a pprop model is computed on the CPU.

    Examples
    --------
    >>> from pprop.study.prepared import Datasets
    >>> cell = own_cell("pprop.models:GNC", "citeseer")
    >>> own_recipe(cell, Datasets().of(cell), Place("cpu", "numba"))
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The module 'pprop.models' has no function 'GNC'.
    """
    build, source = _find(cell.model)
    bare = _without_labels(prepared.graph)
    takes_seed = "seed" in inspect.signature(build).parameters

    def make(seed: int = 0) -> Any:
        try:
            return build(bare, seed=seed) if takes_seed else build(bare)
        except Exception as error:
            raise InputError(f"The model {cell.model!r} could not be built: {error}") from error

    made = make()
    here = place if isinstance(made, Model | Architecture) else Place("cpu", "numba")
    code = _version(here.backend, source)
    if isinstance(made, nn.Module):
        made = MLP(predictor=make, penalty=0.0)  # by function: each run draws its own first weights
    if isinstance(made, Model | Architecture):
        rate, rule = cell.settings["learning_rate"], stopping_rule(cell)
        return TrainedTogether(cell, prepared, here, code, model=made, stopping=rule, learning_rate=rate)
    if callable(getattr(made, "fit", None)) and callable(getattr(made, "predict", None)):
        return Fitted(cell, prepared, here, code, make=make)
    raise InputError(f"The function {cell.model!r} must return {_EXPECTED}. Got {describe(made)} instead.")


def own_version(cell: Cell, backend: str) -> str:
    """Return the version of all that one's own model runs through: the library's code and its module's source.

    >>> len(own_version(own_cell("pprop.models:GCN", "citeseer"), "numba"))
    12
    """
    return _version(backend, _find(cell.model)[1])


def _find(name: str) -> tuple[Callable[..., Any], bytes]:
    """Return the function of a name, and the source of its module."""
    module_name, _, function_name = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InputError(f"The module of the model {name!r} cannot be imported: {error}.") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise InputError(f"The module {module_name!r} has no function {function_name!r}.")
    if module.__file__ is None:
        raise InputError(f"The module {module_name!r} has no source file, so its rows could not be told apart.")
    return cast("Callable[..., Any]", function), Path(module.__file__).read_bytes()


def _without_labels(graph: Graph) -> Graph:
    names = graph.class_names or tuple(str(index) for index in range(graph.n_classes))
    return graph.replace(labels=None, class_names=names)


def _version(backend: str, source: bytes) -> str:
    """Return the version of the library's code and of the module's."""
    return hashlib.sha256(version_of(entries_of(backend)).encode() + source).hexdigest()[:12]
