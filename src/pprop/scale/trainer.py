"""One epoch on neighbourhoods: an Adam step for every mini-batch of training nodes, then a look at the stopping nodes.

    loss of a batch = mean cross entropy of its nodes, logits Z_i = sum_j drop(pi_ij) f(x_j), + penalty / 2 * |W|^2,

where j runs over the neighbourhood of i. With one batch, all of a row and no dropout this is the loss of PPNP.
"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from pprop.kernels import Draw, Kernels
from pprop.kernels.random_bits import BRANCHES, derive_seed
from pprop.kernels.trainer import LabelledNodes, Trainer
from pprop.models.network import FeatureNetwork, RunsNetwork
from pprop.scale.batches import Batch, Batches, Columns

# One tensor (1, a, b) per weight; also the type of their gradients.
Weights = list[Tensor]


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
        batch: Batch,
        nodes: LabelledNodes,
        draws: tuple[Draw | None, Draw | None] = (None, None),
    ) -> tuple[Tensor, Weights]:
        """Return the mean cross entropy of a batch, (1,), and its gradient for every weight."""
        network = self._bound(weights, batch)
        Z = batch.rows.forward(network.forward(draws[0]), draws[1])
        loss, _, gradient = self._kernels.cross_entropy(Z, nodes.labels, nodes.weights)
        return loss, network.backward(batch.rows.adjoint(gradient, draws[1]))

    def right(self, weights: Weights, batch: Batch, nodes: LabelledNodes) -> tuple[Tensor, Tensor]:
        """Return the mean cross entropy of a batch without dropout, (1,), and the weight of right answers, (1,)."""
        Z = batch.rows.forward(self._bound(weights, batch).forward(None), None)
        loss, right, _ = self._kernels.cross_entropy(Z, nodes.labels, nodes.weights)
        return loss, right

    def _bound(self, weights: Weights, batch: Batch) -> RunsNetwork:
        return RunsNetwork(self._kernels, batch.first, weights, bias=self._network.bias)


@final
class NeighbourhoodTrainer(Trainer):
    """One run in mini-batches.

    Parameters
    ----------
    kernels
        The backend.
    loss
        Of a batch.
    train, stopping
        The batches of the two sets.
    columns
        Those of the features that are trained.
    weights
        Initial weights of all columns, one tensor (1, a, b) each.
    penalties
        lambda of lambda / 2 * |W|^2 for each of them.
    rate
        Adam's learning rate.
    """

    def __init__(
        self,
        kernels: Kernels,
        loss: BatchLoss,
        train: Batches,
        stopping: Batches,
        columns: Columns,
        weights: Weights,
        penalties: list[float],
        rate: float,
    ) -> None:
        self._kernels, self._loss, self._train, self._stopping = kernels, loss, train, stopping
        self._columns, self._rate, self._penalties = columns, rate, penalties
        self._shape = weights[0].shape
        self._weights = [columns.take(weights[0]), *weights[1:]]
        self._whole: Tensor | None = None
        self._moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in self._weights]
        self._squares = [
            kernels.adam(w, *(torch.zeros_like(w) for _ in range(3)), step=1, rate=0.0, penalty=0.0)
            for w in self._weights
        ]
        self._best = [w.clone() for w in self._weights]
        self._epoch = self._step = 0

    def epoch(self) -> Tensor:
        loss = torch.zeros_like(self._squares[0], dtype=torch.float64)
        for at in self._train.order(self._epoch):
            nodes, share = self._train.parts[at], self._train.shares[at]
            found, gradients = self._loss.gradients(
                self._weights, self._train.bound(at), nodes, self._loss.draws(at, self._epoch)
            )
            loss += share * (found + self._penalty())
            self._adam_step(gradients)
        after, accuracy = torch.zeros_like(loss), torch.zeros_like(loss)
        for at, nodes in enumerate(self._stopping.parts):
            found, right = self._loss.right(self._weights, self._stopping.bound(at), nodes)
            after += self._stopping.shares[at] * found
            accuracy += self._stopping.shares[at] * (right / nodes.sizes)
        self._epoch += 1
        return torch.stack([loss, after + self._penalty(), accuracy]).float()

    def _penalty(self) -> Tensor:
        """Return the sum of penalty / 2 * |W|^2, shape (1,)."""
        terms = (0.5 * penalty * squares for penalty, squares in zip(self._penalties, self._squares, strict=True))
        return sum(terms, torch.zeros_like(self._squares[0]))

    def _adam_step(self, gradients: Weights) -> None:
        self._step += 1
        for layer, gradient in enumerate(gradients):
            self._squares[layer] = self._kernels.adam(
                self._weights[layer], gradient, *self._moments[layer],
                step=self._step, rate=self._rate, penalty=self._penalties[layer],
            )  # fmt: skip

    def weights(self) -> Weights:
        return self._all_columns(self._weights)

    def _all_columns(self, weights: Weights) -> Weights:
        """Return weights of all columns of the features: zero for those that no neighbourhood contains."""
        if self._whole is None and self._columns.seen is not None:
            self._whole = torch.zeros(self._shape, device=weights[0].device)
        return [weights[0] if self._whole is None else self._columns.put(weights[0], self._whole), *weights[1:]]

    def remember(self, wanted: Tensor) -> None:
        for kept, live in zip(self._best, self._weights, strict=True):
            kept.copy_(torch.where(wanted[:, None, None], live, kept))

    def remembered(self) -> Weights:
        return self._all_columns(self._best)

    def keep(self, slots: Tensor) -> None:
        """Do nothing: there is one run, and it is in training or the loop has ended."""
