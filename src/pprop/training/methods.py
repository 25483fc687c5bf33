"""How each kind of model is trained: the paper's network, a module of one's own, a baseline's description."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pprop.graph import transition_matrix
from pprop.models import Architecture, FeatureNetwork, Model
from pprop.models.inference import Inference
from pprop.models.network import normalized_features
from pprop.models.readout import RowReadout
from pprop.propagation import PowerIteration
from pprop.training.architecture_program import ArchitectureProgram
from pprop.training.chunks import ShareOfProgress, join_results
from pprop.training.loop import Ended, LoopResult
from pprop.training.module_program import train_modules
from pprop.training.program import Task
from pprop.training.progress import Progress
from pprop.training.propagated import Propagated, bind_propagation
from pprop.training.sizes import Sizes
from pprop.training.train_runs import drive, make_trainer

__all__ = ["Method", "method_of"]

CPU_BATCH = 8
"""Runs of a description that a CPU trains together: more of them do not fit its cache, fewer leave threads idle."""


class Method(ABC):
    """The training of one kind of model on one graph.

    Attributes
    ----------
    at_once
        Runs that are in training at the same time, where that is fewer than are given; None: all.
    """

    at_once: int | None = None

    def __init__(self, inference: Inference) -> None:
        self._inference = inference

    @abstractmethod
    def sizes(self) -> Sizes | None:
        """Return what decides how much memory a run needs; None: it is not known, and runs go one by one."""

    @abstractmethod
    def train(self, task: Task, progress: Progress, ended: Ended) -> LoopResult:
        """Train the runs of a task, which may be part of the one this method was made for."""

    def logits(self, weights: list[Tensor]) -> Tensor:
        """Return the logits of all nodes, (R, n, c)."""
        return self._inference.logits(weights)


def method_of(model: Model | Architecture, task: Task) -> Method:
    """Return the way to train a model."""
    if isinstance(model, Architecture):
        return ArchitectureMethod(model, task)
    propagated = bind_propagation(model, task)
    if isinstance(model.predictor, FeatureNetwork):
        return NetworkMethod(propagated, model.predictor, task)
    return ModuleMethod(propagated, task)


@final
class NetworkMethod(Method):
    """The paper's network: fused where the backend has a trainer for it."""

    def __init__(self, propagated: Propagated, predictor: FeatureNetwork, task: Task) -> None:
        super().__init__(Inference(propagated.model, task.graph, task.kernels, propagated.operator))
        self._propagated, self._predictor, self._task = propagated, predictor, task
        if len(predictor.hidden) == 1:
            self.at_once = task.kernels.runs_at_once(len(task.seeds))

    def train(self, task: Task, progress: Progress, ended: Ended) -> LoopResult:
        return drive(make_trainer(task, self._propagated, self._predictor), task, progress, ended)

    def sizes(self) -> Sizes:
        task, predictor, operator = self._task, self._predictor, self._propagated.operator
        readout, settings = self._propagated.readout, self._propagated.model.propagation
        features = normalized_features(task.graph)
        steps = operator is not None and not isinstance(readout, RowReadout)
        return Sizes(
            nodes=task.graph.n_nodes,
            features=features.shape[1],
            hidden=sum(predictor.hidden),
            classes=task.n_classes,
            feature_entries=features.nnz,
            entries=len(operator.transition.indices) if operator is not None and steps else 0,
            steps=settings.solver.steps if settings and isinstance(settings.solver, PowerIteration) else 0,
            ppr_rows=len(readout.nodes) if isinstance(readout, RowReadout) else 0,
            weighted=operator is not None and operator.transition.weights is not None,
            dropout=predictor.dropout > 0 or self._propagated.dropout > 0,
            train_nodes=task.train.nodes.shape[1],
            stopping_nodes=task.stopping.nodes.shape[1],
            max_epochs=task.rule.max_epochs,
        )


@final
class ModuleMethod(Method):
    """A module of one's own, one run after another."""

    def __init__(self, propagated: Propagated, task: Task) -> None:
        super().__init__(Inference(propagated.model, task.graph, task.kernels, propagated.operator))
        self._propagated = propagated

    def sizes(self) -> None:
        return None

    def train(self, task: Task, progress: Progress, ended: Ended) -> LoopResult:
        predictor = self._propagated.model.predictor
        assert not isinstance(predictor, FeatureNetwork)
        return train_modules(task, self._propagated, predictor, progress, ended)


@final
class ArchitectureMethod(Method):
    """A description, through autograd: all runs together on a GPU, a few at a time on a CPU."""

    def __init__(self, model: Architecture, task: Task) -> None:
        super().__init__(Inference(model, task.graph, task.kernels))
        self._model, self._task = model, task
        if task.device.type == "cpu":
            self.at_once = CPU_BATCH

    def train(self, task: Task, progress: Progress, ended: Ended) -> LoopResult:
        batch = self.at_once or len(task.seeds)
        results: list[LoopResult] = []
        work = 0
        for begin in range(0, len(task.seeds), batch):
            part = task.part(slice(begin, begin + batch))

            def shifted(
                result: LoopResult, runs: NDArray[np.int64], epochs: int, begin: int = begin, work: int = work
            ) -> None:
                ended(result, runs + begin, work + epochs)

            share = ShareOfProgress(progress, begin, work) if begin or batch < len(task.seeds) else progress
            results.append(drive(ArchitectureProgram(part, self._model), part, share, shifted))
            work += int(results[-1].epochs.sum())
        return join_results(results)

    def sizes(self) -> Sizes:
        task, features = self._task, normalized_features(self._task.graph)
        weights = self._model.weights(features.shape[1], task.n_classes)
        return Sizes(
            nodes=task.graph.n_nodes,
            features=features.shape[1],
            hidden=0,
            classes=task.n_classes,
            feature_entries=features.nnz,
            entries=len(transition_matrix(task.graph).indices),
            heads=self._model.branches(),
            train_nodes=task.train.nodes.shape[1],
            stopping_nodes=task.stopping.nodes.shape[1],
            max_epochs=task.rule.max_epochs,
            units=self._model.floats_per_node(task.n_classes),
            weights=sum(weight.shape[0] * weight.shape[1] for weight in weights),
        )
