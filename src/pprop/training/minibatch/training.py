"""How a model is trained on the neighbourhoods of its labelled nodes alone, in mini-batches: `train` with `neighbours`."""

from __future__ import annotations

import math
import sys
import time
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from pprop._process import memory_limit
from pprop._validate import describe, reject
from pprop._words import duration
from pprop.graph.features.scaling import DenseRows
from pprop.kernels import choose_backend
from pprop.kernels.contract import FeatureMatrix, Trainer
from pprop.models import Architecture, FeatureNetwork, Model
from pprop.models.blocks import block_logits
from pprop.models.model import initial_weights, network_inputs
from pprop.propagation import PowerIteration
from pprop.training.adam import Adam
from pprop.training.memory import TrainingBytes
from pprop.training.minibatch.batches import Batches, SeenColumns
from pprop.training.minibatch.memory import check_search, neighbourhood_bytes
from pprop.training.minibatch.neighbourhoods import Neighbourhoods, find_neighbourhoods
from pprop.training.minibatch.trainer import BatchLoss, ColumnsTrainer, NeighbourhoodTrainer, fused_trainer, labelled
from pprop.training.task import Task
from pprop.training.trainers import ModelTraining

# Labelled nodes of a mini-batch, at most.
BATCH = 1024
DENSE = 2**24  # numbers of rows that are stored as a dense matrix, at most
_SAMPLE = 16  # nodes whose search is timed before that of all others
_HELD_SHARE = 0.5  # of the memory that may be used: batches beyond it are made again for every visit


def check_model(model: Model | Architecture, function: str) -> Model:
    """Return a model that can be trained on neighbourhoods; refuse any other.

    >>> from pprop import MLP
    >>> check_model(MLP(), "train")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'model' parameter of train must be pprop.APPNP() with the built-in network where ...
    """
    expected = "pprop.APPNP() with the built-in network where neighbours are given"
    if not isinstance(model, Model) or model.propagation is None or not isinstance(model.predictor, FeatureNetwork):
        reject("model", function, expected, describe(model))
    if not isinstance(model.propagation.solver, PowerIteration):
        expected = "pprop.APPNP(), which predicts by power steps, where neighbours are given"
        reject("model", function, expected, describe(model.propagation.solver))
    return model


@final
class NeighbourhoodTraining(ModelTraining):
    """The training of a model on neighbourhoods: one run after another."""

    at_once = 1

    def __init__(
        self,
        model: Model,
        task: Task,
        neighbours: int,
        batch: int,
        eps: float,
        *,
        verbose: bool = False,
        predict: bool = True,
    ) -> None:
        assert isinstance(model.predictor, FeatureNetwork)
        assert model.propagation is not None
        self._model, self._network, self._propagation = model, model.predictor, model.propagation
        self._task, self._batch, self._predict = task, batch, predict
        self._features: FeatureMatrix = network_inputs(task.graph, model.predictor.first_layer)
        nodes = np.unique(np.concatenate([labelled(task, run) for run in range(len(task.seeds))]))
        check_search(task.graph.n_nodes, len(nodes), neighbours, memory_limit("cpu"))
        self._neighbourhoods = self._search(nodes, neighbours, eps, verbose)
        self._columns = [self._seen(run) for run in range(len(task.seeds))]
        block = self._block()
        self._fused = len(self._network.hidden) == 1 and 0 < block <= DENSE
        held = self._held()
        self._hold = held <= _HELD_SHARE * memory_limit(str(task.device))
        self.note = self._describe(0)
        self._batch_bytes = held if self._hold else held // max(-(-len(nodes) // batch), 1)
        self._batch_bytes += 8 * block if self._fused else 0

    def _search(self, nodes: NDArray[np.int64], neighbours: int, eps: float, verbose: bool) -> Neighbourhoods:
        def find(some: NDArray[np.int64]) -> Neighbourhoods:
            graph, settings = self._task.graph, self._propagation
            return find_neighbourhoods(graph, some, settings, neighbours=neighbours, eps=eps, function="train")

        if verbose:
            find(nodes[:1])  # compiles, and reads the degrees
            begin = time.perf_counter()
            find(nodes[:: -(-len(nodes) // _SAMPLE)])
            about = (time.perf_counter() - begin) * len(nodes) / min(len(nodes), _SAMPLE)
            sys.stderr.write(f"search: the neighbourhoods of {len(nodes):,} nodes take about {duration(about)}\n")
        found = find(nodes)
        if verbose:
            kept = found.kept[np.isfinite(found.kept)]
            share = f" with {100 * kept.mean():.0f} % of the mass of their rows" if len(kept) else ""
            sys.stderr.write(f"neighbourhoods: {found.matrix.nnz:,} entries of {len(nodes):,} rows{share}\n")
        return found

    def _seen(self, run: int) -> SeenColumns:
        train = _real(self._task.train.nodes[run], self._task.train.labels[run])
        return SeenColumns.of(self._features, self._neighbourhoods.of(np.unique(train))[0])

    def _describe(self, run: int) -> str:
        """Say what an epoch of a run computes."""
        train = _real(self._task.train.nodes[run], self._task.train.labels[run])
        members, columns = len(self._neighbourhoods.of(np.unique(train))[0]), self._columns[run]
        steps = -(-len(train) // self._batch)
        held = "" if self._hold else ", batches made again for every visit"
        return (
            f"epoch: {steps:,} Adam step{'s' if steps > 1 else ''} for {len(train):,} training nodes, whose neighbourhoods have "
            f"{members:,} nodes and {columns.count:,} of {columns.total:,} feature columns{held}"
        )

    def _block(self) -> int:
        """Return the numbers of a dense matrix of the rows of any run, at most; 0 where some have several batches."""
        if any(
            int((one.labels >= 0).sum(dim=1).max()) > self._batch for one in (self._task.train, self._task.stopping)
        ):
            return 0
        each = [labelled(self._task, run) for run in range(len(self._task.seeds))]
        return max(len(nodes) * len(self._neighbourhoods.of(nodes)[0]) for nodes in each)

    def _held(self) -> int:
        """Return about how many bytes all batches of a run take: rows twice, features twice, masks."""
        mean = self._features.shape[1] * 4 if isinstance(self._features, DenseRows) else 0
        if not isinstance(self._features, DenseRows):
            mean = 32 * self._features.nnz // max(self._features.shape[0], 1) + 16
        return int(self._neighbourhoods.matrix.nnz * (32 + mean))

    def trainer(self, runs: slice) -> Trainer:
        task, network, run = self._task.part(runs), self._network, int(runs.start)
        columns = self._columns[run]
        layers = network.weights(self._features.shape[1], task.n_classes, self._model.penalty)
        weights = initial_weights(layers, task.seed_tensor, task.kernels)
        weights = [columns.take(weights[0]), *weights[1:]]
        known = self._neighbourhoods, self._features, columns
        made = fused_trainer(task, *known, self._model, weights) if self._fused else None
        if made is None:
            common = *known, task.kernels, task.seeds[0]
            made = NeighbourhoodTrainer(
                BatchLoss(task.kernels, network, self._propagation.dropout, task.seeds[0], task.device),
                Batches(task.train, self._batch, *common, hold=self._hold),
                Batches(task.stopping, self._batch, *common, hold=self._hold),
                Adam(task.kernels, weights, [layer.penalty for layer in layers], task.rate),
            )
        return ColumnsTrainer(made, columns)

    def logits(self, weights: list[torch.Tensor]) -> torch.Tensor:
        kernels = choose_backend("auto", "cpu", "train").kernels
        one = [weight.cpu() for weight in weights]
        return torch.from_numpy(block_logits(self._model, self._task.graph, one, kernels))[None]

    def bytes(self) -> TrainingBytes:
        task, network = self._task, self._network
        f, classes = self._features.shape[1], task.n_classes
        rest = network.weights(f, classes)[1:]
        return neighbourhood_bytes(
            nodes=task.graph.n_nodes,
            entries=task.graph.n_entries,
            row_entries=self._neighbourhoods.matrix.nnz,
            batches=self._batch_bytes,
            members=min(self._batch * int(np.diff(self._neighbourhoods.matrix.indptr).max()), task.graph.n_nodes),
            columns=max(columns.count for columns in self._columns),
            features=f,
            hidden=sum(network.hidden),
            first=network.widths(f, classes)[1],
            other_weights=sum(math.prod(layer.shape) for layer in rest),
            classes=classes,
            max_epochs=task.rule.max_epochs,
            predict=self._predict,
        )


def _real(nodes: torch.Tensor, labels: torch.Tensor) -> NDArray[np.int64]:
    """Return the nodes of a set without those that pad it."""
    return nodes[labels >= 0].cpu().numpy()
