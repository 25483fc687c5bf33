"""One epoch on neighbourhoods: an Adam step for every mini-batch of training nodes, then a look at the stopping nodes.

    loss of a batch = mean cross entropy of its nodes, logits Z_i = sum_j drop(pi_ij) f(x_j), + penalty / 2 * |W|^2,

where j runs over the neighbourhood of i. With one batch, all of a row and no dropout this is the loss of PPNP: so one batch
whose rows are small enough to be dense is trained by the backend's fused trainer, as PPNP is (`fused_trainer`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.kernels import Draw, Kernels
from pprop.kernels.contract import FeatureMatrix, LabelledNodes, PropagateRows, Trainer, TrainerSpec
from pprop.kernels.random_bits import BRANCHES, derive_seed
from pprop.models import Model
from pprop.models.model import FeatureNetwork, RunsNetwork
from pprop.training.adam import Adam, Weights
from pprop.training.minibatch.batches import Batches, MiniBatch, SeenColumns
from pprop.training.minibatch.neighbourhoods import Neighbourhoods
from pprop.training.task import Task


@final
class BatchLoss:
    """Loss and gradient of mini-batches of one run, by the kernels of a backend.

    Masks are a function of a seed for each batch, made of the run's, of the epoch, and of places in the batch.

    Parameters
    ----------
    kernels, network
        The backend and the predictor.
    row_dropout
        Probability of dropping an entry of a row.
    seed, device
        Of the run.
    """

    def __init__(
        self, kernels: Kernels, network: FeatureNetwork, row_dropout: float, seed: int, device: torch.device
    ) -> None:
        self._kernels, self._network, self._row_dropout = kernels, network, row_dropout
        self._seed, self._device = seed, device

    def draws(self, at: int, epoch: int) -> tuple[Draw | None, Draw | None]:
        """Return which entries batch number `at` drops in an epoch: of the network, and of its rows."""
        made: list[Draw | None] = []
        for layer, probability in enumerate((self._network.dropout, self._row_dropout)):
            seeds = torch.tensor([derive_seed(self._seed, BRANCHES, at, layer)], device=self._device)
            made.append(Draw(seeds, epoch, probability) if probability > 0 else None)
        return made[0], made[1]

    def gradients(
        self,
        weights: Weights,
        batch: MiniBatch,
        nodes: LabelledNodes,
        draws: tuple[Draw | None, Draw | None] = (None, None),
    ) -> tuple[Tensor, Weights]:
        """Return the mean cross entropy of a batch, (1,), and its gradient for every weight."""
        network = self._bound(weights, batch)
        Z = batch.rows.forward(network.forward(draws[0]), draws[1])
        loss, _, gradient = self._kernels.cross_entropy(Z, nodes.labels, nodes.weights)
        return loss, network.backward(batch.rows.adjoint(gradient, draws[1]))

    def right(self, weights: Weights, batch: MiniBatch, nodes: LabelledNodes) -> tuple[Tensor, Tensor]:
        """Return the mean cross entropy of a batch without dropout, (1,), and the weight of right answers, (1,)."""
        Z = batch.rows.forward(self._bound(weights, batch).forward(None), None)
        loss, right, _ = self._kernels.cross_entropy(Z, nodes.labels, nodes.weights)
        return loss, right

    def _bound(self, weights: Weights, batch: MiniBatch) -> RunsNetwork:
        return RunsNetwork(self._kernels, batch.first, weights, bias=self._network.bias)


@final
class NeighbourhoodTrainer(Trainer):
    """One run in mini-batches.

    Parameters
    ----------
    loss
        Of a batch.
    train, stopping
        The batches of the two sets.
    adam
        The weights of the columns that are trained, one tensor (1, a, b) each, and how they are stepped.
    """

    def __init__(self, loss: BatchLoss, train: Batches, stopping: Batches, adam: Adam) -> None:
        self._loss, self._train, self._stopping, self._adam = loss, train, stopping, adam
        self._epoch = self._step = 0

    def epoch(self) -> Tensor:
        adam = self._adam
        loss = torch.zeros_like(adam.penalty(), dtype=torch.float64)
        for at in self._train.order(self._epoch):
            nodes, share = self._train.parts[at], self._train.shares[at]
            batch, draws = self._train.bound(at), self._loss.draws(at, self._epoch)
            found, gradients = self._loss.gradients(adam.weights, batch, nodes, draws)
            loss += share * (found + adam.penalty())
            self._step += 1
            adam.step(gradients, self._step)
        after, accuracy = torch.zeros_like(loss), torch.zeros_like(loss)
        for at, nodes in enumerate(self._stopping.parts):
            found, right = self._loss.right(adam.weights, self._stopping.bound(at), nodes)
            after += self._stopping.shares[at] * found
            accuracy += self._stopping.shares[at] * (right / nodes.sizes)
        self._epoch += 1
        return torch.stack([loss, after + adam.penalty(), accuracy]).float()

    def weights(self) -> Weights:
        return self._adam.weights

    def remember(self, wanted: Tensor) -> None:
        self._adam.remember(wanted)

    def remembered(self) -> Weights:
        return self._adam.best

    def keep(self, slots: Tensor) -> None:
        """Do nothing: there is one run, and it is in training or the loop has ended."""


@final
class ColumnsTrainer(Trainer):
    """A trainer of the feature columns that neighbourhoods contain, for a network of all columns: the others are zero."""

    def __init__(self, trainer: Trainer, columns: SeenColumns) -> None:
        self._trainer, self._columns, self.capturable = trainer, columns, trainer.capturable

    def epoch(self) -> Tensor:
        return self._trainer.epoch()

    def weights(self) -> Weights:
        return self._trainer.weights()

    def all_weights(self, kept: Weights) -> Weights:
        return [self._columns.put(kept[0]), *kept[1:]]

    def remember(self, wanted: Tensor) -> None:
        self._trainer.remember(wanted)

    def remembered(self) -> Weights:
        return self._trainer.remembered()

    def keep(self, slots: Tensor) -> None:
        self._trainer.keep(slots)

    def close(self) -> None:
        self._trainer.close()


def fused_trainer(
    task: Task,
    neighbourhoods: Neighbourhoods,
    features: FeatureMatrix,
    columns: SeenColumns,
    model: Model,
    weights: Weights,
) -> Trainer | None:
    """Return the backend's trainer of one run whose labelled nodes are one batch; None where it has none.

    Parameters
    ----------
    task
        Of one run.
    neighbourhoods, features, columns
        What the network reads.
    model
        With a network of one hidden layer.
    weights
        Initial weights of the columns that are trained.
    """
    network, place = model.predictor, task.device
    assert isinstance(network, FeatureNetwork)
    assert model.propagation is not None
    nodes = neighbourhoods.nodes[neighbourhoods.places(labelled(task, 0))]
    members, rows = neighbourhoods.of(nodes)
    row_of_node = np.zeros(len(members), dtype=np.int64)
    row_of_node[np.searchsorted(members, nodes)] = np.arange(len(nodes))
    here = torch.from_numpy(members).to(place)

    def local(given: LabelledNodes) -> LabelledNodes:
        return replace(given, nodes=torch.searchsorted(here, given.nodes).clamp(max=len(members) - 1))

    return task.kernels.trainer(
        TrainerSpec(
            features=columns.features(features, members),
            weights=tuple(weights),
            seeds=task.seed_tensor,
            propagation=PropagateRows(
                torch.from_numpy(rows.toarray()).to(place),
                torch.from_numpy(np.searchsorted(members, nodes)).to(place),
                torch.from_numpy(row_of_node).to(place),
            ),
            train=local(task.train),
            stopping=local(task.stopping),
            dropout=network.dropout,
            matrix_dropout=model.propagation.dropout,
            rate=task.rate,
            penalty=model.penalty,
        )
    )


def labelled(task: Task, run: int) -> NDArray[np.int64]:
    """Return the training and stopping nodes of a run, each once, ascending."""
    sets = (task.train, task.stopping)
    return np.unique(np.concatenate([one.nodes[run][one.labels[run] >= 0].cpu().numpy() for one in sets]))
