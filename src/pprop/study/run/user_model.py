"""A user's model in the study: named ``module:function``, trained or fitted on the same runs as the others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, final

import torch
from torch import nn

from pprop._errors import InputError
from pprop._validate import describe
from pprop.estimators.node import NodeEstimator
from pprop.models import MLP, Architecture, Model
from pprop.settings import CRITERION, LEARNING_RATE, MAX_EPOCHS, PATIENCE
from pprop.study.cell import Cell, Seeds
from pprop.study.revisions import explained, find_function, user_revision, user_source
from pprop.study.run.recipe import CellRunner, CellRuns, ComputePlace, Finished, FittedAlone, Prepared, TrainedTogether
from pprop.study.store.row import Row
from pprop.training import run_seed

_EXPECTED = (
    "a pprop model such as pprop.APPNP(), a torch module from features (n, f) to logits (n, c), or an object with "
    "fit(nodes, y, stopping=(nodes, y)) and predict(nodes)"
)


def user_cell(name: str, dataset: str, max_epochs: int = MAX_EPOCHS.default, patience: int = PATIENCE.default) -> Cell:
    """Return the cell of a user's model on the paper's test splits.

    Parameters
    ----------
    name
        ``"module:function"``. The function gets the graph, without any labels, and returns a pprop model, a torch module
        or an object with ``fit`` and ``predict``. It is called with seed 0 to see which; a parameter `seed` is that
        of the run when it is called for one. A torch module gets the features as they are stored, not normalised. The
        module may be in the current folder.
    dataset
        Name for `load_dataset`.
    max_epochs, patience
        Of the early stopping, for what `train` trains.

    Examples
    --------
    >>> user_cell("mymodule:build", "cora_ml").model
    'mymodule:build'
    """
    defaults = {setting.name: setting.default for setting in (LEARNING_RATE, CRITERION)}
    return Cell(name, {**defaults, "patience": patience, "max_epochs": max_epochs}, dataset)


def user_recipe(cell: Cell, prepared: Prepared, place: ComputePlace) -> CellRunner:
    """Return how a user's model is computed. Everything but a model or a classifier of pprop is computed on the CPU.

    Examples
    --------
    >>> from pprop.study.run.recipe import Datasets
    >>> cell = user_cell("pprop.models:GNC", "citeseer")
    >>> user_recipe(cell, Datasets().of(cell), ComputePlace("cpu", "numba"))
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The module 'pprop.models' has no function 'GNC'.
    """
    module, function = find_function(cell.model)
    graph = prepared.graph
    names = graph.class_names or tuple(str(index) for index in range(graph.n_classes))
    unlabelled = graph.replace(labels=None, class_names=names)
    with explained(f"The function {cell.model!r} cannot be called"):
        takes_seed = "seed" in inspect.signature(function).parameters

    def make(seed: int) -> Any:
        with explained(f"The model {cell.model!r} could not be built"):
            return function(unlabelled, seed=seed) if takes_seed else function(unlabelled)

    with torch.random.fork_rng(devices=[]):  # looking at a model does not move torch's generator
        made = make(0)
    here = place if isinstance(made, Model | Architecture) or _placeable(made) else ComputePlace("cpu", "numba")
    task = CellRuns(cell, prepared, here, user_revision(here.backend, user_source(module)))
    return _Guarded(task, make, made, takes_seed)


def _placeable(made: object) -> TypeGuard[NodeEstimator]:
    """Whether an object is an estimator of pprop that takes a device and a backend."""
    return isinstance(made, NodeEstimator) and hasattr(made, "device") and hasattr(made, "backend")


@final
class _Guarded(CellRunner):
    """Runs of a user's model. An error in its code is reported as such and ends no other cell."""

    def __init__(self, task: CellRuns, make: Callable[[int], Any], made: object, takes_seed: bool) -> None:
        super().__init__(task)
        self._make, self._made = make, made
        self._trained = isinstance(made, Model | Architecture | nn.Module)
        if not self._trained and not all(callable(getattr(made, name, None)) for name in ("fit", "predict")):
            raise InputError(f"The function {task.cell.model!r} must return {_EXPECTED}. Got {describe(made)} instead.")
        self._each = not self._trained or takes_seed or isinstance(made, nn.Module)
        self.at_once = 1 if self._each else self._recipe(made).at_once

    def compute(self, runs: Sequence[Seeds], finished: Finished) -> None:
        outside: list[BaseException] = []

        def ended(row: Row) -> None:
            try:
                finished(row)
            except Exception as error:  # not the model's fault
                outside.append(error)
                raise

        with explained(f"The model {self.task.cell.model!r} failed", but=outside):
            if not self._each:
                return self._recipe(self._made).compute(runs, ended)
            for seeds in runs:
                self._recipe(self._of_run(run_seed(seeds.split, seeds.init) % 2**64)).compute([seeds], ended)

    def _of_run(self, seed: int) -> Any:
        """Return the description of the model of one run."""
        if isinstance(self._made, nn.Module):
            return MLP(predictor=lambda: self._make(seed), penalty=0.0)
        return self._make(seed) if self._trained else None

    def _recipe(self, model: Any) -> CellRunner:
        return TrainedTogether(self.task, model) if self._trained else FittedAlone(self.task, self._placed)

    def _placed(self, seed: int) -> Any:
        """Return an object to fit; a classifier of pprop computes where the row says."""
        made, place = self._make(seed), self.task.place
        if _placeable(made):
            made.set_params(device=place.device, backend=place.backend)
        return made
