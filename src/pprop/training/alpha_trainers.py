"""Trainers of runs that differ in the teleport probability: fused run by run on the CPU, one program elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import final

import numpy as np
import torch
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.trainer import LabelledNodes, PropagateSteps, Trainer, TrainerSpec
from pprop.models import FeatureNetwork, Model
from pprop.models.alpha_steps import AlphaSteps
from pprop.models.network import RunsNetwork, glorot_uniform, normalized_features
from pprop.models.readout import MapReadout
from pprop.propagation import PPROperator
from pprop.training.program import Task
from pprop.training.propagated import Propagated
from pprop.training.runs_program import RunsProgram

__all__ = ["AlphaProgram", "FusedAlphas", "fuses", "make_alpha_trainer"]


def fuses(task: Task, predictor: FeatureNetwork) -> bool:
    """Say whether runs are trained one by one by a fused trainer: on a CPU, where they gain nothing from company."""
    return task.device.type == "cpu" and len(predictor.hidden) == 1 and task.kernels.runs_at_once(1 << 20) < 1 << 20


def make_alpha_trainer(
    task: Task, model: Model, operator: PPROperator, steps: int, alphas: Sequence[float], *, fused: bool
) -> Trainer:
    """Return the trainer of the runs of a task, run r with alphas[r].

    Parameters
    ----------
    task, model, operator
        What is trained; the alphas of model and operator play no part.
    steps
        Power steps K.
    alphas
        One per run.
    fused
        What `fuses` says.
    """
    predictor = model.predictor
    assert isinstance(predictor, FeatureNetwork)
    features = normalized_features(task.graph)
    weights = glorot_uniform(predictor.widths(features.shape[1], task.n_classes), task.seed_tensor, task.kernels)
    matrix_dropout = 0.0 if model.propagation is None else model.propagation.dropout
    if fused:
        spec = TrainerSpec(
            features=features,
            weights=(weights[0], weights[1]),
            seeds=task.seed_tensor,
            propagation=None,
            train=LabelledNodes(task.train.nodes, task.train.labels),
            stopping=LabelledNodes(task.stopping.nodes, task.stopping.labels),
            dropout=predictor.dropout,
            matrix_dropout=matrix_dropout,
            rate=task.rate,
            penalty=model.penalty,
        )
        return FusedAlphas(task, spec, operator.transition, steps, alphas)
    propagation = AlphaSteps(operator.transition, alphas, steps, task.kernels, task.device)
    network = RunsNetwork(task.kernels, task.kernels.features(features), weights)
    readout = MapReadout(propagation, task.graph.n_nodes)
    program = RunsProgram(task, Propagated(model, operator, readout), network, predictor.dropout)
    return AlphaProgram(program, propagation)


@final
class FusedAlphas(Trainer):
    """The backend's fused trainer, once per alpha, of whose runs only those with that alpha are trained.

    Each of these trainers is told of all runs, so that it knows how many threads are busy with others; they share the
    initial weights, and take the memory of a run when its training begins.
    """

    def __init__(
        self, task: Task, spec: TrainerSpec, transition: Transition, steps: int, alphas: Sequence[float]
    ) -> None:
        trainers: dict[float, list[Trainer]] = {}
        self._threads = 1
        for alpha in dict.fromkeys(alphas):
            propagation = PropagateSteps(transition, alpha, steps) if steps > 0 else None
            whole = task.kernels.trainer(replace(spec, propagation=propagation))
            assert whole is not None
            self._threads, trainers[alpha] = whole.parts()
        self._parts: list[Trainer] = [trainers[alpha][run] for run, alpha in enumerate(alphas)]

    def parts(self) -> tuple[int, list[Trainer]]:
        return self._threads, self._parts

    def epoch(self) -> Tensor:
        return torch.from_numpy(np.concatenate([part.epoch().numpy() for part in self._parts], axis=1))

    def weights(self) -> list[Tensor]:
        return [torch.cat(layer) for layer in zip(*(part.weights() for part in self._parts), strict=True)]

    def keep(self, slots: Tensor) -> None:
        kept = [int(slot) for slot in slots]
        for slot in set(range(len(self._parts))) - set(kept):
            self._parts[slot].close()
        self._parts = [self._parts[slot] for slot in kept]

    def close(self) -> None:
        for part in self._parts:
            part.close()


@final
class AlphaProgram(Trainer):
    """The program of single operations, whose propagation loses the alphas of the runs that leave the batch."""

    def __init__(self, program: RunsProgram, propagation: AlphaSteps) -> None:
        self._program, self._propagation = program, propagation
        self.capturable = program.capturable

    def epoch(self) -> Tensor:
        return self._program.epoch()

    def weights(self) -> list[Tensor]:
        return self._program.weights()

    def remember(self, wanted: Tensor) -> None:
        self._program.remember(wanted)

    def remembered(self) -> list[Tensor]:
        return self._program.remembered()

    def keep(self, slots: Tensor) -> None:
        self._program.keep(slots)
        self._propagation.keep(slots)
