"""How the runs of a cell are computed: many as one training, or one estimator after another.

`Datasets` settles who may see which labels. No graph that it gives to a model has the label of a test node; the test labels
stay with `Prepared`, which compares predictions with them, and a validation cell does not have them at all.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from platform import node
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from pprop._errors import InputError
from pprop._validate import describe
from pprop.datasets import Split, load_dataset
from pprop.estimators.fitted import TrainingRecord
from pprop.estimators.node import NodeEstimator
from pprop.graph import Graph
from pprop.kernels import choose_backend
from pprop.models import APPNP, GAT, GCN, JK, MLP, NGCN, PPNP, Architecture, Model
from pprop.models.feature_propagation import Bootstrapped, BootstrappedFP, FeaturePropagation
from pprop.models.inference import Inference
from pprop.propagation import Limit
from pprop.study.cell import Cell, Seeds, Splits
from pprop.study.graphs import Protocol, protocol_of
from pprop.study.revisions import provenance_here
from pprop.study.stats.estimate import accuracy, f1_macro, f1_paper
from pprop.study.store.row import Row, RowKey
from pprop.training import Stopping, Trained, run_seed, train

# Takes a row the moment its run has ended.
Finished = Callable[[Row], None]

WARM_UP = 20  # epochs before the first timed run: kernels are compiled, memory is allocated
_MAKE = {"appnp": APPNP, "ppnp": PPNP, "mlp": MLP, "vanilla_gcn": GCN, "gcn": GCN, "ngcn": NGCN, "gat": GAT, "jk": JK}
_OF_RECORD = ("stopping_loss", "stopping_accuracy", "epochs", "best_epoch")
_OF_TRAINING = ("learning_rate", "patience", "max_epochs", "criterion", "evaluate")


def hide_test_labels(graph: Graph) -> Graph:
    """Return the graph with the labels of all test nodes unknown (-1).

    Examples
    --------
    >>> graph = load_dataset("citeseer")
    >>> hidden = hide_test_labels(graph)
    >>> int((hidden.labels < 0).sum()), hidden.n_classes
    (610, 6)
    """
    assert graph.labels is not None
    labels = graph.labels.copy()
    labels[protocol_of(graph).test] = -1
    return graph.replace(labels=labels)


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """A dataset for one kind of split.

    Attributes
    ----------
    graph
        For training: without the labels of test nodes.
    data
        Fingerprint of the whole dataset.
    splits
        ``"test"`` or ``"validation"``.
    protocol
        How they are drawn.

    Examples
    --------
    >>> prepared = Datasets().prepare("citeseer", "validation")
    >>> prepared.split(2413340114, per_class=20)
    Split(120 train, 500 stopping, 880 validation, seed=2413340114)
    """

    graph: Graph
    data: str
    splits: Splits
    protocol: Protocol
    _judge: Graph = field(repr=False)  # that labels are compared with; for validation it has no test labels either
    _drawn: dict[tuple[int, int], Split] = field(default_factory=dict[tuple[int, int], Split], repr=False)

    def split(self, seed: int, per_class: int) -> Split:
        """Return a split; more nodes per class than there are raise InputError."""
        if (seed, per_class) not in self._drawn:
            split = self.protocol.split(self._judge, seed, test=self.splits == "test", per_class=per_class)
            self._drawn[seed, per_class] = split
        return self._drawn[seed, per_class]

    def scores(self, predictions: NDArray[np.uint8], split: Split) -> dict[str, float]:
        """Return the metrics of a row for the predicted class of every node, shape (n,)."""
        labels, n_classes = self._judge.labels, self._judge.n_classes
        assert labels is not None
        truth, found = labels[split.evaluation], predictions[split.evaluation]
        f1, macro = f1_paper(found, truth, n_classes), f1_macro(found, truth, n_classes)
        return {"accuracy": accuracy(found, truth), "f1": f1, "f1_macro": macro}


@final
class Datasets:
    """The datasets of a study, each read once for each kind of split.

    Parameters
    ----------
    graph_of
        The graph of a name.

    Examples
    --------
    >>> datasets = Datasets()
    >>> datasets.prepare("citeseer", "test") is datasets.prepare("citeseer", "test")
    True
    """

    def __init__(self, graph_of: Callable[[str], Graph] = load_dataset) -> None:
        self._graph_of = graph_of
        self.prepare = cache(self._prepare)

    def of(self, cell: Cell) -> Prepared:
        """Return the dataset of a cell."""
        return self.prepare(cell.dataset, cell.splits)

    def _prepare(self, dataset: str, splits: Splits) -> Prepared:
        """Return a dataset for one kind of split."""
        whole = self._graph_of(dataset)
        hidden = hide_test_labels(whole)
        judge = whole if splits == "test" else hidden
        return Prepared(hidden, whole.fingerprint, splits, protocol_of(whole), judge)


@final
@dataclass(frozen=True)
class ComputePlace:
    """Where runs are computed: a torch device, and the backend for it.

    Examples
    --------
    >>> ComputePlace("cpu", "numba").device
    'cpu'
    """

    device: str
    backend: str


@final
@dataclass(frozen=True, eq=False)
class CellRuns:
    """What the runs of one cell share: the cell, its data, where they are computed, and the revision of the model."""

    cell: Cell
    prepared: Prepared
    place: ComputePlace
    revision: str

    def key(self, seeds: Seeds) -> RowKey:
        """Return the key of a run."""
        return RowKey(self.cell.config, self.revision, self.prepared.data, seeds)

    def row(self, seeds: Seeds, predictions: NDArray[np.uint8], **how: Any) -> Row:
        """Return the row of a run that has ended.

        `how` are its seconds, how many runs were trained together, and its epochs and stopping metrics where it has them.
        """
        device = self.place.device
        split = self.prepared.split(seeds.split, self.cell.per_class)
        without = dict(zip(_OF_RECORD, (float("nan"), float("nan"), 0, 0), strict=True))
        scores: dict[str, Any] = self.prepared.scores(predictions, split) | without | how
        return Row(
            key=self.key(seeds),
            cell=self.cell.text,
            **scores,
            predictions=predictions,
            backend=self.place.backend,
            device=device if device == "cpu" else f"cuda ({torch.cuda.get_device_name()})",  # times depend on it
            torch=str(torch.__version__),
            host=node(),
            version=provenance_here().text,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )


class CellRunner(ABC):
    """How the runs of one cell are computed.

    Attributes
    ----------
    task
        What the runs share.
    at_once
        Runs that are best given together; None: all there are.
    """

    at_once: int | None = None

    def __init__(self, task: CellRuns) -> None:
        self.task = task

    @abstractmethod
    def compute(self, runs: Sequence[Seeds], finished: Finished) -> None:
        """Compute some runs; call `finished` with the row of each as it ends."""


@final
class TrainedTogether(CellRunner):
    """Runs of a model that `train` takes: many in one training, or, to be timed, each in its own training."""

    def __init__(self, task: CellRuns, model: Model | Architecture, *, alone: bool = False) -> None:
        super().__init__(task)
        self._model, self._stopping = model, stopping_rule(task.cell)
        self._warm = not alone
        self._inference: Inference | None = None  # bound to the graph once, for all runs of the cell
        # on the CPU few runs keep all cores busy, and smaller parts let several processes share a cell
        self.at_once = 1 if alone else (20 if task.place.device == "cpu" else None)

    def compute(self, runs: Sequence[Seeds], finished: Finished) -> None:
        if not self._warm:
            short = replace(self._stopping, max_epochs=min(WARM_UP, self._stopping.max_epochs))
            self._train(runs[:1], short, None)
            self._warm = True

        def ended(trained: Trained, positions: NDArray[np.int64]) -> None:
            classes = self._logits(trained).argmax(axis=2).astype(np.uint8)  # shape: (R, n)
            for which, position in enumerate(positions):
                how = {name: getattr(trained, name)[which].item() for name in _OF_RECORD}
                seconds = how["epochs"] / trained.run_epochs_per_second
                seeds, predictions = runs[int(position)], classes[which]
                finished(self.task.row(seeds, predictions, seconds=seconds, together=len(runs), **how))

        self._train(runs, self._stopping, ended)

    def _train(
        self, runs: Sequence[Seeds], stopping: Stopping, on_end: Callable[[Trained, NDArray[np.int64]], None] | None
    ) -> None:
        cell, prepared, place = self.task.cell, self.task.prepared, self.task.place
        splits = [prepared.split(seeds.split, cell.per_class) for seeds in runs]
        seeds = [run_seed(seeds.split, seeds.init) for seeds in runs]
        how: dict[str, Any] = {"stopping": stopping, "learning_rate": cell.settings["learning_rate"], "on_end": on_end}
        train(self._model, prepared.graph, splits, seeds=seeds, progress=False, **how, **vars(place))

    def _logits(self, trained: Trained) -> NDArray[np.float32]:
        """Return the logits by which the runs are evaluated, shape (R, n, c).

        The paper's figure on propagation takes models apart. By the setting ``evaluate``: ``"model"``, as they were
        trained; ``"network"``, by the network alone, without the propagation they were trained with; ``"propagated"``,
        propagated with the settings ``alpha`` and ``steps``, which were not part of training.
        """
        settings = self.task.cell.settings
        how = settings.get("evaluate", "model")
        if how == "model":
            return trained.logits
        place = torch.device(trained.device)
        if self._inference is None:
            model = trained.model if how == "network" else APPNP(alpha=settings["alpha"], steps=settings["steps"])
            assert isinstance(model, Model)
            kernels = choose_backend(trained.backend, place.type, "study").kernels
            self._inference = Inference(model, self.task.prepared.graph, kernels)
        if how == "network":
            weights = [torch.from_numpy(array).to(place) for array in trained.weights]
            return self._inference.alone(weights).cpu().numpy()
        return self._inference.propagated(torch.from_numpy(trained.logits).to(place)).cpu().numpy()


def _record_of(model: object) -> TrainingRecord | Bootstrapped | None:
    """Return how the fit of an object went; None: it does not say."""
    if isinstance(model, FeaturePropagation):
        return model.record_
    return model.fitted_.record if isinstance(model, NodeEstimator) else None


@final
class FittedAlone(CellRunner):
    """Runs of an object with ``fit(nodes, y, stopping=(nodes, y))`` and ``predict(nodes)``; `make` gives that of a seed."""

    at_once = 1

    def __init__(self, task: CellRuns, make: Callable[[int], Any]) -> None:
        super().__init__(task)
        self._make = make

    def compute(self, runs: Sequence[Seeds], finished: Finished) -> None:
        cell, prepared = self.task.cell, self.task.prepared
        labels, nodes = prepared.graph.labels, np.arange(prepared.graph.n_nodes)
        assert labels is not None
        names = _OF_RECORD[:2] if cell.model == "bootstrapped_fp" else _OF_RECORD  # its rounds are no epochs
        for seeds in runs:
            split = prepared.split(seeds.split, cell.per_class)
            begin = time.perf_counter()
            model = self._make(run_seed(seeds.split, seeds.init) % 2**64)
            model.fit(split.train, labels[split.train], stopping=(split.stopping, labels[split.stopping]))
            predictions = self._checked(model.predict(nodes))
            seconds = time.perf_counter() - begin
            record = _record_of(model)
            how = {} if record is None else {name: getattr(record, name) for name in names}
            finished(self.task.row(seeds, predictions, seconds=seconds, together=1, **how))

    def _checked(self, predicted: object) -> NDArray[np.uint8]:
        n, c = self.task.prepared.graph.n_nodes, self.task.prepared.graph.n_classes
        array: NDArray[Any] = np.asarray(predicted)
        fault = describe(predicted) if array.shape != (n,) or array.dtype.kind not in "iub" else ""
        if not fault and not (array.min() >= 0 and array.max() < c):
            fault = f"classes from {array.min()} to {array.max()}"
        if fault:
            raise InputError(
                f"The predict of {self.task.cell.model} must return one class per node: integers from 0 to {c - 1}, "
                f"shape ({n},). Got {fault} instead."
            )
        return array.astype(np.uint8)


def build(cell: Cell, graph: Graph) -> Any:
    """Return the model of a cell: what `pprop.train` takes, or an estimator on `graph` where nothing is trained.

    Examples
    --------
    >>> from pprop.datasets import load_dataset
    >>> from pprop.study.cell import make_cell
    >>> build(make_cell("appnp", {}, "citeseer"), load_dataset("citeseer")).propagation.solver
    PowerIteration(steps=10)
    """
    # an MLP is trained without alpha and steps, which it may be evaluated with
    others = (*_OF_TRAINING, "alpha", "steps") if cell.model == "mlp" else _OF_TRAINING
    settings = {name: value for name, value in cell.settings.items() if name not in others}
    if cell.model == "bootstrapped_fp":
        return FeaturePropagation(graph, BootstrappedFP(**settings))
    if settings.get("steps") != "limit":
        return _MAKE[cell.model](**settings)
    del settings["steps"]  # the limit without teleport: a cell has it for alpha = 0 alone
    model = APPNP(**settings)
    assert model.propagation is not None
    return replace(model, propagation=replace(model.propagation, solver=Limit()))


def stopping_rule(cell: Cell) -> Stopping:
    """Return when the runs of a cell end.

    Examples
    --------
    >>> from pprop.study.cell import make_cell
    >>> stopping_rule(make_cell("vanilla_gcn", {}, "citeseer"))
    Stopping(patience=10, max_epochs=200, criterion='loss')
    """
    settings = cell.settings
    return Stopping(settings["patience"], settings["max_epochs"], settings["criterion"])
