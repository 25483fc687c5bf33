"""One's own model in the study: named ``module:function``, trained or fitted on the same runs as the others."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, final

import torch
from torch import nn

from pprop._errors import InputError
from pprop._validate import describe
from pprop.estimators.trained import TrainedClassifier
from pprop.graph import Graph
from pprop.models import MLP, Architecture, Model
from pprop.study.cell import Cell, Seeds
from pprop.study.own_source import find_function, own_source, told
from pprop.study.prepared import Prepared
from pprop.study.recipe import Finished, Fitted, Place, Recipe, TrainedTogether
from pprop.study.revisions import own_revision
from pprop.study.row import Row
from pprop.study.zoo import stopping_rule
from pprop.training import run_seed

__all__ = ["own_cell", "own_recipe"]

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
        or an object with ``fit`` and ``predict``. It is called with seed 0 to see which; a parameter `seed` is that
        of the run when it is called for one. A torch module gets the features as they are stored, not normalised. The module
        is looked for in the present folder, too.
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
    """Return how one's own model is computed. Everything but a model or a classifier of pprop is computed on the CPU.

    Examples
    --------
    >>> from pprop.study.prepared import Datasets
    >>> cell = own_cell("pprop.models:GNC", "citeseer")
    >>> own_recipe(cell, Datasets().of(cell), Place("cpu", "numba"))
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The module 'pprop.models' has no function 'GNC'.
    """
    own = _Own(cell, prepared)
    made = own.first()
    here = place if isinstance(made, Model | Architecture | TrainedClassifier) else Place("cpu", "numba")
    return _Guarded(own, here, own_revision(here.backend, own_source(own.module)), made)


@final
class _Own:
    """The function that makes one's own model, and the module it is from."""

    def __init__(self, cell: Cell, prepared: Prepared) -> None:
        self.cell, self.prepared = cell, prepared
        self.module, self._build = find_function(cell.model)
        self._graph = _without_labels(prepared.graph)
        with told(f"The function {cell.model!r} cannot be called"):
            self.takes_seed = "seed" in inspect.signature(self._build).parameters

    def first(self) -> Any:
        """Return a model to look at; torch's generator goes on as if nothing had happened."""
        with torch.random.fork_rng(devices=[]):
            return self.make(0)

    def make(self, seed: int) -> Any:
        """Return a new model."""
        with told(f"The model {self.cell.model!r} could not be built"):
            return self._build(self._graph, seed=seed) if self.takes_seed else self._build(self._graph)


@final
class _Guarded(Recipe):
    """Runs of one's own model. What its code raises is told as such and ends no other cell."""

    def __init__(self, own: _Own, place: Place, revision: str, made: object) -> None:
        super().__init__(own.cell, own.prepared, place, revision)
        self._own, self._made = own, made
        self._trained = isinstance(made, Model | Architecture | nn.Module)
        if not self._trained and not all(callable(getattr(made, name, None)) for name in ("fit", "predict")):
            raise InputError(f"The function {self.cell.model!r} must return {_EXPECTED}. Got {describe(made)} instead.")
        self._each = not self._trained or own.takes_seed or isinstance(made, nn.Module)
        self.at_once = 1 if self._each else self._recipe(made).at_once

    def compute(self, runs: Sequence[Seeds], finished: Finished) -> None:
        outside: list[BaseException] = []

        def ended(row: Row) -> None:
            try:
                finished(row)
            except Exception as error:  # not the model's fault
                outside.append(error)
                raise

        with told(f"The model {self.cell.model!r} failed", but=outside):
            if not self._each:
                return self._recipe(self._made).compute(runs, ended)
            for seeds in runs:
                self._recipe(self._of_run(run_seed(seeds.split, seeds.init) % 2**64)).compute([seeds], ended)

    def _of_run(self, seed: int) -> Any:
        """Return the description of the model of one run."""
        if isinstance(self._made, nn.Module):
            return MLP(predictor=lambda: self._own.make(seed), penalty=0.0)
        return self._own.make(seed) if self._trained else None

    def _recipe(self, model: Any) -> Recipe:
        if not self._trained:
            return Fitted(self.cell, self.prepared, self.place, self.revision, make=self._placed)
        rate, rule = self.cell.settings["learning_rate"], stopping_rule(self.cell)
        return TrainedTogether(
            self.cell, self.prepared, self.place, self.revision, model=model, stopping=rule, learning_rate=rate
        )

    def _placed(self, seed: int) -> Any:
        """Return an object to fit; a classifier of pprop computes where the row will say."""
        made = self._own.make(seed)
        if isinstance(made, TrainedClassifier):
            made.set_params(device=self.place.device, backend=self.place.backend)
        return made


def _without_labels(graph: Graph) -> Graph:
    names = graph.class_names or tuple(str(index) for index in range(graph.n_classes))
    return graph.replace(labels=None, class_names=names)
