"""How each kind of model is trained: which trainer makes its epochs, in which batches, and how much memory that takes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.graph import transition_matrix
from pprop.graph.features.scaling import DenseRows
from pprop.kernels.contract import PropagateRows, PropagateSteps, Trainer, TrainerBytes, TrainerSizes, TrainerSpec
from pprop.models import Architecture, FeatureNetwork, Model, SolvedPPNP
from pprop.models.inference import PropagatedModel, RowReadout, bind_propagation
from pprop.models.model import PropagationSettings, initial_weights, network_inputs
from pprop.models.module import module_inputs
from pprop.models.propagated_ones import propagated_ones
from pprop.propagation import PowerIteration, PPROperator
from pprop.training.epoch import ArchitectureObjective, NetworkObjective, RunsTrainer
from pprop.training.loop import RunBatch
from pprop.training.memory import TrainingBytes, operations_bytes, split_runs, training_bytes
from pprop.training.modules import ModuleTrainer
from pprop.training.scored import ScoredTrainer
from pprop.training.task import Task

# Runs of a description that a CPU trains together: more of them do not fit its cache, fewer leave threads idle.
CPU_BATCH = 8


class ModelTraining(ABC):
    """The training of one kind of model on one graph.

    Attributes
    ----------
    at_once
        Runs that are in training at the same time, where that is fewer than are given; None: all.
    operator
        The PPR operator of a model that has one.
    inputs
        The features on the device, as a module gets them; None for models that read them otherwise.
    note
        What the training computes, for people.
    """

    at_once: int | None = None
    operator: PPROperator | None = None
    inputs: Tensor | None = None
    note: str | None = None

    def bytes(self) -> TrainingBytes | None:
        """Return how much memory it takes; None: it is not known, and runs go one by one."""
        return None

    def logits(self, weights: list[Tensor]) -> Tensor | None:
        """Return the logits of all nodes for weights of R runs, (R, n, c); None: they are made as of any model."""
        return None

    @abstractmethod
    def trainer(self, runs: slice) -> Trainer:
        """Return the trainer of some of the runs."""

    def batches(self, runs: slice) -> tuple[int, list[RunBatch]]:
        """Return how many threads may train a batch each, and the batches of some of the runs: `at_once` in each."""
        parts = split_runs(runs, self.at_once or runs.stop - runs.start)
        return 1, [RunBatch(part, lambda part=part: self.trainer(part)) for part in parts]


def training_of(model: Model | Architecture, task: Task) -> ModelTraining:
    """Return the way to train a model."""
    if isinstance(model, Architecture):
        return _ArchitectureTraining(model, task)
    needed = torch.cat([task.train.nodes.flatten(), task.stopping.nodes.flatten()])
    bound = bind_propagation(model, task.graph, task.kernels, needed, task.alphas)
    return (_NetworkTraining if isinstance(model.predictor, FeatureNetwork) else _ModuleTraining)(bound, task)


@final
class _NetworkTraining(ModelTraining):
    """The paper's network: fused where it has one hidden layer and the backend has a trainer for it."""

    def __init__(self, bound: PropagatedModel, task: Task) -> None:
        self._bound, self._task, self.operator = bound, task, bound.operator
        network = _network(bound.model)
        self._fused = len(network.hidden) == 1
        if self._fused:
            self.at_once = task.kernels.runs_at_once(len(task.seeds))

    def trainer(self, runs: slice) -> Trainer:
        task, bound = self._task.part(runs), self._bound.of_runs(runs)
        trainer = network_trainer(task, bound, fused=self._fused)
        if task.scoring is None:
            return trainer
        objective = NetworkObjective(task, bound)
        ones = _ones(task, bound.model.propagation)
        return ScoredTrainer(trainer, task.scoring, task.stopping, objective.logits, objective.keep, ones)

    def batches(self, runs: slice) -> tuple[int, list[RunBatch]]:
        trainer = self.trainer(runs)
        threads, trainers = (1, [trainer]) if self._task.device.type == "cuda" else trainer.parts()
        parts = split_runs(runs, (runs.stop - runs.start) // len(trainers))
        return threads, [RunBatch(part, lambda one=one: one) for part, one in zip(parts, trainers, strict=True)]

    def bytes(self) -> TrainingBytes:
        task, bound, predictor = self._task, self._bound, _network(self._bound.model)
        features, settings = network_inputs(task.graph, predictor.first_layer), bound.model.propagation
        n, f, hidden, classes = task.graph.n_nodes, features.shape[1], sum(predictor.hidden), task.n_classes
        weights = sum(math.prod(layer.shape) for layer in predictor.weights(f, classes))
        steps = settings.solver.steps if settings and isinstance(settings.solver, PowerIteration) else 0
        transition = None if bound.operator is None else bound.operator.transition
        dropout = predictor.dropout > 0 or bound.dropout > 0
        sizes = TrainerSizes(
            nodes=n,
            features=f,
            hidden=hidden,
            classes=classes,
            feature_entries=None if isinstance(features, DenseRows) else features.nnz,
            entries=0 if transition is None or isinstance(bound.readout, RowReadout) else len(transition.indices),
            steps=steps,
            ppr_rows=len(bound.readout.nodes) if isinstance(bound.readout, RowReadout) else 0,
            weighted=transition is not None and transition.weights is not None,
            symmetric=transition is not None and transition.symmetric,
            dropout=dropout,
            train_nodes=task.train.nodes.shape[1],
            stopping_nodes=task.stopping.nodes.shape[1],
        )
        trainer = task.kernels.trainer_bytes(sizes) if self._fused else None
        if trainer is None:
            floats, words = (4 * hidden + 6 * classes + predictor.bias) * n, _mask_words(task) * dropout
            steps = steps if bound.dropout and task.device.type == "cuda" else 0
            masks = task.kernels.step_mask_bytes(n, sizes.entries, steps, classes) if steps else 0
            trainer = operations_bytes(features, floats, weights, sizes.entries, words, sizes.ppr_rows, masks)
        if task.scoring is not None:
            scores = operations_bytes(features, (hidden + 2 * classes) * n, 0, sizes.entries, 0, sizes.ppr_rows)
            trainer = TrainerBytes(
                *(
                    {**held, **{f"{name} of the score": size for name, size in more.items()}}
                    for held, more in ((trainer.shared, scores.shared), (trainer.run, scores.run))
                )
            )
        return training_bytes(trainer, features.shape, hidden, classes, weights, task.rule.max_epochs)


def network_trainer(task: Task, bound: PropagatedModel, *, fused: bool) -> Trainer:
    """Return the backend's fused trainer for a network with one hidden layer, else one of single operations."""
    predictor = _network(bound.model)
    features = network_inputs(task.graph, predictor.first_layer)
    layers = predictor.weights(features.shape[1], task.n_classes, bound.model.penalty)
    weights = initial_weights(layers, task.seed_tensor, task.kernels)
    if fused:
        spec = TrainerSpec(
            features=features,
            weights=tuple(weights),
            seeds=task.seed_tensor,
            propagation=_propagation(task, bound),
            train=task.train,
            stopping=task.stopping,
            dropout=predictor.dropout,
            matrix_dropout=bound.dropout,
            rate=task.rate,
            penalty=bound.model.penalty,
            loss=task.loss,
        )
        trainer = task.kernels.trainer(spec)
        if trainer is not None:
            return trainer
    return RunsTrainer(task, NetworkObjective(task, bound), weights, [layer.penalty for layer in layers])


def _ones(task: Task, how: PropagationSettings | SolvedPPNP | None) -> NDArray[np.float64] | None:
    """Return what the logits of the stopping nodes are divided by for a score, (R, m); None: nothing."""
    if how is None:
        return None
    alphas = (how.alpha,) * len(task.seeds) if task.alphas is None else task.alphas
    found = {alpha: propagated_ones(task.graph, replace(how, alpha=alpha)) for alpha in set(alphas)}
    rows = [found[alpha] for alpha in alphas]
    nodes = task.stopping.nodes.cpu().numpy()
    return (
        None if rows[0] is None else np.stack([row[at] for row, at in zip(rows, nodes, strict=True) if row is not None])
    )


def _network(model: Model) -> FeatureNetwork:
    assert isinstance(model.predictor, FeatureNetwork)
    return model.predictor


def _propagation(task: Task, bound: PropagatedModel) -> PropagateSteps | PropagateRows | None:
    settings, operator, readout = bound.model.propagation, bound.operator, bound.readout
    if operator is None or settings is None:
        return None
    if isinstance(readout, RowReadout):
        return PropagateRows(readout.block, readout.nodes, readout.row_of_node)
    assert isinstance(settings.solver, PowerIteration)
    alpha = operator.alpha if task.alphas is None else torch.tensor(task.alphas, dtype=torch.float64)
    return PropagateSteps(operator.transition, alpha, settings.solver.steps) if settings.solver.steps > 0 else None


@final
class _ModuleTraining(ModelTraining):
    """A torch module in place of the network, one run after another."""

    at_once = 1

    def __init__(self, bound: PropagatedModel, task: Task) -> None:
        self._bound, self._task, self.operator = bound, task, bound.operator
        self.inputs = self._inputs = module_inputs(task.graph, task.device)
        runs = len(task.seeds)
        self.note = f"modules: {runs} runs one after another" if runs > 1 else "modules: 1 run"

    def trainer(self, runs: slice) -> Trainer:
        task = self._task.part(runs)
        trainer = ModuleTrainer(task, self._bound.of_runs(runs), self._inputs)
        if task.scoring is None:
            return trainer
        ones = _ones(task, self._bound.model.propagation)
        return ScoredTrainer(trainer, task.scoring, task.stopping, lambda _, nodes: trainer.logits(nodes), ones=ones)


@final
class _ArchitectureTraining(ModelTraining):
    """A description, through autograd: all runs together on a GPU, a few at a time on a CPU."""

    def __init__(self, model: Architecture, task: Task) -> None:
        self._model, self._task = model, task
        self._weights = model.weights(network_inputs(task.graph).shape[1], task.n_classes)
        if task.device.type == "cpu":
            self.at_once = CPU_BATCH

    def trainer(self, runs: slice) -> Trainer:
        task = self._task.part(runs)
        weights = initial_weights(self._weights, task.seed_tensor, task.kernels)
        penalties = [weight.penalty for weight in self._weights]
        objective = ArchitectureObjective(task, self._model)
        trainer = RunsTrainer(task, objective, weights, penalties)
        if task.scoring is None:
            return trainer
        ones = _ones(task, self._model if isinstance(self._model, SolvedPPNP) else None)
        return ScoredTrainer(trainer, task.scoring, task.stopping, objective.logits, ones=ones)

    def bytes(self) -> TrainingBytes:
        task, classes = self._task, self._task.n_classes
        features = network_inputs(task.graph)
        n = features.shape[0]
        weights = sum(math.prod(weight.shape) for weight in self._weights)
        floats, entries = n * self._model.floats_per_node(classes), len(transition_matrix(task.graph).indices)
        trainer = operations_bytes(features, floats, weights, entries, _mask_words(task) * self._model.branches())
        return training_bytes(trainer, features.shape, 0, classes, weights, task.rule.max_epochs)


def _mask_words(task: Task) -> int:
    """Return the mask words of an entry: on a CPU two, by rows and by columns, are kept for 32 epochs."""
    return 2 if task.device.type == "cpu" else 0
