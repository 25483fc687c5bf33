"""How the runs of a cell are computed: many as one training, or one estimator after another."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from platform import node
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from pprop._errors import InputError, PpropError
from pprop._validate import describe
from pprop.models import Architecture, Model
from pprop.study.cell import Cell, Seeds
from pprop.study.evaluation import Evaluation
from pprop.study.prepared import Prepared
from pprop.study.provenance import provenance_here
from pprop.study.revisions import revision_of
from pprop.study.row import Row, RowKey
from pprop.study.zoo import build, model_kind, stopping_rule
from pprop.training import Stopping, Trained, run_seed, train

__all__ = ["Fitted", "Place", "Recipe", "TrainedTogether", "recipe_of"]

Finished = Callable[[Row], None]
"""Takes a row the moment its run has ended."""

WARM_UP = 20  # epochs before the first timed run: kernels are compiled, memory is at hand


@final
@dataclass(frozen=True)
class Place:
    """Where runs are computed: a torch device, and the backend for it.

    Examples
    --------
    >>> Place("cpu", "numba").device
    'cpu'
    """

    device: str
    backend: str


class Recipe(ABC):
    """How the runs of one cell are computed.

    Attributes
    ----------
    at_once
        Runs that are best given together; None: all there are.
    """

    at_once: int | None = None

    def __init__(self, cell: Cell, prepared: Prepared, place: Place, revision: str) -> None:
        self.cell, self.prepared, self.place, self.revision = cell, prepared, place, revision

    def key(self, seeds: Seeds) -> RowKey:
        """Return the key of a run."""
        return RowKey(self.cell.config, self.revision, self.prepared.data, seeds)

    @abstractmethod
    def compute(self, runs: Sequence[Seeds], finished: Finished) -> None:
        """Compute some runs; call `finished` with the row of each as it ends."""

    def _row(self, seeds: Seeds, predictions: NDArray[np.uint8], *, seconds: float, together: int, **how: Any) -> Row:
        scores = self.prepared.scores(predictions, self.prepared.split(seeds.split, self.cell.per_class))
        return Row(
            key=self.key(seeds),
            cell=self.cell.text,
            accuracy=scores["accuracy"],
            f1=scores["f1"],
            f1_macro=scores["f1_macro"],
            stopping_loss=how.get("stopping_loss", float("nan")),
            stopping_accuracy=how.get("stopping_accuracy", float("nan")),
            epochs=how.get("epochs", 0),
            best_epoch=how.get("best_epoch", 0),
            seconds=seconds,
            together=together,
            predictions=predictions,
            backend=self.place.backend,
            device=_device_name(self.place.device),
            torch=str(torch.__version__),
            host=node(),
            version=provenance_here().text,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )


@final
class TrainedTogether(Recipe):
    """Runs of a model that `train` takes: many in one training, or, to be timed, each in one of its own."""

    def __init__(
        self,
        cell: Cell,
        prepared: Prepared,
        place: Place,
        revision: str,
        *,
        model: Model | Architecture,
        stopping: Stopping,
        learning_rate: float,
        alone: bool = False,
    ) -> None:
        super().__init__(cell, prepared, place, revision)
        self._model, self._stopping, self._rate, self._alone = model, stopping, learning_rate, alone
        self._evaluation = Evaluation(cell.settings, prepared.graph)
        self._warm = not alone
        # on the CPU few runs keep all cores busy, and smaller parts let several processes share a cell
        self.at_once = 1 if alone else (20 if place.device == "cpu" else None)

    def compute(self, runs: Sequence[Seeds], finished: Finished) -> None:
        if not self._warm:
            short = replace(self._stopping, max_epochs=min(WARM_UP, self._stopping.max_epochs))
            self._train(runs[:1], short, None)
            self._warm = True

        def ended(trained: Trained, positions: NDArray[np.int64]) -> None:
            classes = self._evaluation.classes(trained)
            for which, position in enumerate(positions):
                epochs = int(trained.epochs[which])
                row = self._row(
                    runs[int(position)],
                    classes[which],
                    seconds=epochs / trained.run_epochs_per_second,
                    together=len(runs),
                    stopping_loss=float(trained.stopping_loss[which]),
                    stopping_accuracy=float(trained.stopping_accuracy[which]),
                    epochs=epochs,
                    best_epoch=int(trained.best_epoch[which]),
                )
                finished(row)

        self._train(runs, self._stopping, ended)

    def _train(
        self,
        runs: Sequence[Seeds],
        stopping: Stopping,
        on_end: Callable[[Trained, NDArray[np.int64]], None] | None,
    ) -> None:
        train(
            self._model,
            self.prepared.graph,
            [self.prepared.split(seeds.split, self.cell.per_class) for seeds in runs],
            seeds=[run_seed(seeds.split, seeds.init) for seeds in runs],
            stopping=stopping,
            learning_rate=self._rate,
            backend=self.place.backend,
            device=self.place.device,
            progress=False,
            on_end=on_end,
        )


@final
class Fitted(Recipe):
    """Runs of an object with ``fit(nodes, y, stopping=(nodes, y))`` and ``predict(nodes)``, made anew for each run."""

    at_once = 1

    def __init__(
        self, cell: Cell, prepared: Prepared, place: Place, revision: str, *, make: Callable[[int], Any]
    ) -> None:
        super().__init__(cell, prepared, place, revision)
        self._make = make

    def compute(self, runs: Sequence[Seeds], finished: Finished) -> None:
        labels, nodes = self.prepared.graph.labels, np.arange(self.prepared.graph.n_nodes)
        assert labels is not None
        for seeds in runs:
            split = self.prepared.split(seeds.split, self.cell.per_class)
            begin = time.perf_counter()
            model = self._make(run_seed(seeds.split, seeds.init) % 2**64)
            try:
                model.fit(split.train, labels[split.train], stopping=(split.stopping, labels[split.stopping]))
                predicted = model.predict(nodes)
            except Exception as error:
                if ":" not in self.cell.model or isinstance(error, PpropError):
                    raise
                raise InputError(f"The model {self.cell.model!r} failed: {type(error).__name__}: {error}") from error
            predictions = self._checked(predicted)
            seconds = time.perf_counter() - begin
            record = getattr(model, "record_", None)
            names = ["stopping_loss", "stopping_accuracy"]
            if ":" in self.cell.model:  # the rounds of bootstrapped feature propagation are no epochs
                names += ["epochs", "best_epoch"]
            how = {name: getattr(record, name) for name in names if hasattr(record, name)}
            finished(self._row(seeds, predictions, seconds=seconds, together=1, **how))

    def _checked(self, predicted: object) -> NDArray[np.uint8]:
        n, c = self.prepared.graph.n_nodes, self.prepared.graph.n_classes
        array: NDArray[Any] = np.asarray(predicted)
        fault = describe(predicted) if array.shape != (n,) or array.dtype.kind not in "iub" else ""
        if not fault and not (array.min() >= 0 and array.max() < c):
            fault = f"classes from {array.min()} to {array.max()}"
        if fault:
            raise InputError(
                f"The predict of {self.cell.model} must return one class per node: integers from 0 to {c - 1}, shape "
                f"({n},). Got {fault} instead."
            )
        return array.astype(np.uint8)


def recipe_of(cell: Cell, prepared: Prepared, place: Place, *, alone: bool = False) -> Recipe:
    """Return how the runs of a cell of the zoo, or of one's own model, are computed.

    Examples
    --------
    >>> from pprop.study.prepared import Datasets
    >>> from pprop.study.zoo import make_cell
    >>> cell = make_cell("mlp", {"max_epochs": 2}, "citeseer")
    >>> rows = []
    >>> recipe = recipe_of(cell, Datasets().of(cell), Place("cpu", "numba"))
    >>> recipe.compute([Seeds(2144199730, 0), Seeds(794209841, 0)], rows.append)
    >>> sorted(row.key.seeds.split for row in rows), rows[0].epochs, rows[0].predictions.shape
    ([794209841, 2144199730], 2, (2110,))
    """
    if ":" in cell.model:
        from pprop.study.own_model import own_recipe

        return own_recipe(cell, prepared, place)
    if not model_kind(cell.model).trained:
        here = Place(place.device, "numpy" if place.device == "cpu" else "torch")  # it needs none of our kernels
        make = _maker(cell, prepared, here.device)
        return Fitted(cell, prepared, here, revision_of(cell.model, here.backend), make=make)
    return TrainedTogether(
        cell,
        prepared,
        place,
        revision_of(cell.model, place.backend),
        model=build(cell, prepared.graph),
        stopping=stopping_rule(cell),
        learning_rate=cell.settings["learning_rate"],
        alone=alone,
    )


def _maker(cell: Cell, prepared: Prepared, device: str) -> Callable[[int], Any]:
    """Return what gives a model for each run: one object for all, as its fit starts anew and shares what splits share."""
    model = build(cell, prepared.graph)
    model.device = device
    return lambda seed: model


def _device_name(device: str) -> str:
    """Return the name of a GPU, since times depend on it."""
    return device if device == "cpu" else f"cuda ({torch.cuda.get_device_name()})"
