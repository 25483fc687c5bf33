"""Training of any torch module in place of the paper's network, one run at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from pprop._errors import InputError
from pprop.kernels import Draw
from pprop.kernels.random_bits import derive_seed
from pprop.kernels.streams import MODULE
from pprop.kernels.trainer import Trainer
from pprop.models.inference import make_module, module_inputs, module_state
from pprop.models.readout import apply_readout
from pprop.training.chunks import ShareOfProgress, join_results
from pprop.training.loop import Ended, LoopResult, nobody, run_loop
from pprop.training.program import NodeSet, Task
from pprop.training.progress import Progress
from pprop.training.propagated import Propagated

__all__ = ["ModuleProgram", "train_modules"]


@contextmanager
def _seeded(seed: int, moment: int) -> Generator[None]:
    """Run a block with torch's generator seeded by (run, moment): 0 is the initialisation, epoch + 1 an epoch.

    Outside the block the generator goes on as if nothing had happened.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, MODULE, moment))
        yield


@final
class ModuleProgram(Trainer):
    """The same loss and optimiser as the paper's network, through torch's autograd.

    The penalty applies to the first parameter of the module that is a matrix.
    """

    def __init__(self, task: Task, propagated: Propagated, run: int, module: nn.Module, inputs: Tensor) -> None:
        slot = slice(run, run + 1)
        self._module, self._inputs, self._readout = module, inputs, propagated.readout
        self._seed, self._train, self._stopping = task.seeds[run], task.train.keep(slot), task.stopping.keep(slot)
        self._penalty, self._matrix_dropout = propagated.model.penalty, propagated.dropout
        self._expected = (task.graph.n_nodes, task.n_classes)
        trainable = [p for p in module.parameters() if p.requires_grad]
        if not trainable:
            raise InputError("The predictor has no trainable parameter. Use pprop.propagate for fixed predictions.")
        self._first = next((p for p in trainable if p.ndim >= 2), None)
        self._optimizer = torch.optim.Adam(trainable, lr=task.rate)

        self._epoch = 0

    def epoch(self) -> Tensor:
        epoch, draw = self._epoch, None
        if self._matrix_dropout > 0:
            draw = Draw(torch.tensor([self._seed]), epoch, self._matrix_dropout)
        self._module.train()
        with _seeded(self._seed, epoch + 1):
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
        return predictions.to(
            torch.promote_types(predictions.dtype, torch.float32)
        )  # the kernels know no half precision

    def _loss(self, predictions: Tensor, nodes: NodeSet, draw: Draw | None) -> tuple[Tensor, Tensor]:
        logits = apply_readout(self._readout, predictions[None], nodes.nodes, draw)[0]
        labels = nodes.labels[0]
        loss = nn.functional.cross_entropy(logits, labels, ignore_index=-1)
        if self._penalty and self._first is not None:
            loss = loss + 0.5 * self._penalty * self._first.square().sum()
        right = (logits.argmax(dim=-1) == labels).sum()
        return loss, right / nodes.sizes[0]


def train_modules(
    task: Task,
    propagated: Propagated,
    predictor: nn.Module | Callable[[], nn.Module],
    progress: Progress,
    ended: Ended = nobody,
) -> LoopResult:
    """Train one module per run, one after another."""
    inputs = module_inputs(task.graph)
    results: list[LoopResult] = []
    for run, seed in enumerate(task.seeds):
        with _seeded(seed, 0):
            module = make_module(predictor)
        program = ModuleProgram(task, propagated, run, module, inputs)
        results.append(run_loop(program, 1, task.rule, ShareOfProgress(progress, run)))
        ended(results[-1], np.array([run]), sum(int(result.epochs.sum()) for result in results))
    return join_results(results)
