"""One epoch of a torch module in place of the network."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import final

import torch
from torch import Tensor, nn

from pprop._errors import InputError
from pprop.kernels import Draw
from pprop.kernels.random_bits import MODULE, derive_seed
from pprop.kernels.trainer import LabelledNodes, Trainer
from pprop.models.inference import PropagatedModel, make_module, module_inputs, module_state
from pprop.models.network import FeatureNetwork
from pprop.training.task import Task


@final
class ModuleTrainer(Trainer):
    """One run of a torch module in place of the network: the same loss, through torch's autograd and optimiser.

    The penalty applies to the first trainable parameter of the module with at least two dimensions.
    """

    def __init__(self, task: Task, bound: PropagatedModel) -> None:
        (self._seed,), self._train, self._stopping = task.seeds, task.train, task.stopping
        self._inputs, self._readout = module_inputs(task.graph), bound.readout
        self._penalty, self._matrix_dropout = bound.model.penalty, bound.dropout
        self._expected, self._epoch = (task.graph.n_nodes, task.n_classes), 0
        predictor = bound.model.predictor
        assert not isinstance(predictor, FeatureNetwork)
        with self._seeded(0):
            self._module = make_module(predictor)
        trainable = [p for p in self._module.parameters() if p.requires_grad]
        if not trainable:
            raise InputError("The predictor has no trainable parameter. Use pprop.propagate for fixed predictions.")
        self._first = next((p for p in trainable if p.ndim >= 2), None)
        self._optimizer = torch.optim.Adam(trainable, lr=task.rate)

    @contextmanager
    def _seeded(self, moment: int) -> Generator[None]:
        """Seed torch's generator by (run, moment) in a block: 0 is the initialisation, epoch + 1 an epoch."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(self._seed, MODULE, moment))
            yield

    def epoch(self) -> Tensor:
        draw = None
        if self._matrix_dropout > 0:
            draw = Draw(torch.tensor([self._seed]), self._epoch, self._matrix_dropout)
        self._module.train()
        with self._seeded(self._epoch + 1):
            predictions = self._predict()
        loss, _ = self._loss(predictions, self._train, draw)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self._epoch += 1
        with torch.no_grad():
            self._module.eval()
            after, accuracy = self._loss(self._predict(), self._stopping, None)
        return torch.stack([loss.detach(), after, accuracy.to(after.dtype)])[:, None]

    def weights(self) -> list[Tensor]:
        return [tensor.detach()[None] for tensor in module_state(self._module).values()]

    def keep(self, slots: Tensor) -> None:
        pass  # one run: it is here, or the loop has ended

    def _predict(self) -> Tensor:
        predictions = self._module(self._inputs)
        shape = tuple(getattr(predictions, "shape", ()))
        if shape != self._expected:
            raise InputError(
                f"The predictor must return a tensor of shape {self._expected}, (n, classes). Got {shape} instead."
            )
        return predictions.to(torch.promote_types(predictions.dtype, torch.float32))  # kernels have no half precision

    def _loss(self, predictions: Tensor, nodes: LabelledNodes, draw: Draw | None) -> tuple[Tensor, Tensor]:
        logits = self._readout.apply(predictions[None], nodes.nodes, draw)[0]
        labels = nodes.labels[0]
        if nodes.weights is None:
            loss, right = (
                nn.functional.cross_entropy(logits, labels, ignore_index=-1),
                (logits.argmax(-1) == labels).sum(),
            )
        else:
            weights = nodes.weights[0].where(labels >= 0, 0.0)
            some = weights > 0
            each = nn.functional.cross_entropy(logits[some], labels[some], reduction="none")
            loss = (each * weights[some]).sum() / weights.sum()
            right = weights.double()[logits.argmax(-1) == labels].sum()
        if self._penalty and self._first is not None:
            loss = loss + 0.5 * self._penalty * self._first.square().sum()
        return loss, right / nodes.sizes[0]
