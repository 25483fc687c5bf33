"""A small graph in dense form, the masks of its entries, and checks of a description against a dense twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from pprop import Graph, Split, Stopping, train
from pprop.kernels import BACKENDS
from pprop.kernels.random_bits import Bernoulli, keep_bits
from pprop.models import Architecture
from pprop.models.architecture import DropoutMasks
from pprop.models.model import initial_weights

SEEDS = [11, -4]
N_CLASSES = 3
FEATURES, HIDDEN, EDGES = 0, 1, 2  # streams of docs/randomness.md

Twin = Callable[["Dense", Sequence[Tensor], "int | None", int], Tensor]
"""Weights (a, b) of one run, its seed (None drops nothing) and an epoch to the outputs of all nodes, in float64."""


@dataclass(frozen=True)
class Dense:
    """A directed, weighted graph with a self-loop and an isolated node, its matrices, and their masks for a seed."""

    graph: Graph
    A_hat: Tensor
    X: Tensor
    labels: Tensor

    @property
    def shown(self) -> Tensor:
        """The labels of some nodes, (n,), -1 for the others: for models that see labels."""
        return torch.where(torch.arange(len(self.labels)) < 10, self.labels, -1)

    def features(self, seed: int | None, epoch: int, p: float) -> Tensor:
        n, f = self.X.shape
        return self.X * _kept(seed, FEATURES, torch.arange(n)[:, None], torch.arange(f), epoch, p)

    def matrix(self, seed: int | None, position: int, p: float) -> Tensor:
        node = torch.arange(len(self.A_hat))
        return self.A_hat * _kept(seed, EDGES, node[:, None], node, position, p)

    def hidden(self, H: Tensor, seed: int | None, layer: int, epoch: int, p: float) -> Tensor:
        n, h = H.shape
        return H * _kept(seed, HIDDEN + 16 * layer, torch.arange(n)[:, None], epoch, torch.arange(h), p)


def _kept(seed: int | None, stream: int, first: Any, second: Any, position: Any, p: float) -> Tensor:
    """The mask divided by the keep probability; `first`, `second` and `position` broadcast to its shape."""
    if seed is None or p == 0.0:
        return torch.ones((), dtype=torch.float64)
    first, second, position = torch.broadcast_tensors(*(torch.as_tensor(at) for at in (first, second, position)))
    keep = keep_bits(torch.tensor(seed), stream, first, second, position, Bernoulli.from_probability(p))
    return keep.double() / (1 - p)


@pytest.fixture(scope="session")
def dense() -> Dense:
    rng = np.random.default_rng(2)
    n, f = 14, 19
    A = (rng.random((n, n)) < 0.25) * rng.uniform(0.5, 2.0, (n, n))
    A[6], A[:, 6] = 0.0, 0.0  # isolated
    A[2, 2] = 1.5
    X = np.zeros((n, f))
    for i in range(n):
        X[i, rng.choice(f, 2 ** (i % 3 + 1), replace=False)] = 1.0  # shares of the row that float32 holds exactly
    graph = Graph.from_scipy(sparse.csr_array(A), features=sparse.csr_array(X), directed=True)
    B = A + np.diag(np.where(np.diag(A) == 0, 1.0, 0.0))
    A_hat = B / np.sqrt(B.sum(axis=1)[:, None] * B.sum(axis=0))
    labels = torch.from_numpy(rng.permutation(np.arange(n) % N_CLASSES))
    return Dense(graph, torch.from_numpy(A_hat), torch.from_numpy(X / X.sum(axis=1)[:, None]), labels)


@pytest.fixture
def check_outputs(dense: Dense) -> Callable[[Architecture, Twin], None]:
    """Outputs, and gradients of all weights, equal those of the twin within rounding in float64."""

    def check(model: Architecture, twin: Twin) -> None:
        generator = torch.Generator().manual_seed(5)
        shapes = [weight.shape for weight in model.weights(dense.X.shape[1], N_CLASSES)]
        weights = [torch.randn(len(SEEDS), *s, generator=generator, dtype=torch.float64) for s in shapes]
        ours = [weight.clone().requires_grad_() for weight in weights]
        theirs = [weight.clone().requires_grad_() for weight in weights]
        bound = model.bind(dense.graph, _kernels("reference"))
        if model.sees_labels:
            bound.show(dense.shown, N_CLASSES)
        for seeds, epoch in ((None, 0), (SEEDS, 37)):
            outputs = bound.outputs(ours, DropoutMasks(None if seeds is None else torch.tensor(seeds), epoch))
            expected = torch.stack(
                [
                    twin(dense, [weight[run] for weight in theirs], None if seeds is None else seed, epoch)
                    for run, seed in enumerate(SEEDS)
                ]
            )
            torch.testing.assert_close(outputs, expected, rtol=1e-12, atol=1e-12)
            above = torch.randn(outputs.shape, generator=generator, dtype=torch.float64)
            wanted = torch.autograd.grad(expected, theirs, above)
            for gradient, twins in zip(torch.autograd.grad(outputs, ours, above), wanted, strict=True):
                assert float(twins.abs().max()) > 1e-3  # all of the weights matter
                torch.testing.assert_close(gradient, twins, rtol=1e-12, atol=1e-12)

    return check


@pytest.fixture(params=["numba", "reference"])
def check_training(request: pytest.FixtureRequest, dense: Dense) -> Callable[[Architecture, Twin, Any], None]:
    """Four epochs of two runs, dropout and penalties on, follow the twin's under torch's Adam."""

    def check(model: Architecture, twin: Twin, loss: Callable[[Tensor, Tensor], Tensor]) -> None:
        split = Split(np.array([0, 3, 4, 6, 9]), np.array([1, 2, 5]), np.arange(10, 14))
        rule = Stopping(patience=10, max_epochs=4, criterion="window")  # keeps the last weights
        graph = dense.graph.replace(labels=dense.labels.numpy())
        trained = train(model, graph, split, seeds=SEEDS, stopping=rule, backend=request.param, progress=False)
        described = model.weights(dense.X.shape[1], N_CLASSES)
        start = initial_weights(described, torch.tensor(SEEDS), _kernels("reference"))
        for run, seed in enumerate(SEEDS):
            weights = [tensor[run].double().requires_grad_() for tensor in start]
            adam = torch.optim.Adam(weights, lr=0.01)

            def penalised(nodes: Any, seed: int | None, epoch: int, weights: list[Tensor] = weights) -> Tensor:
                pairs = zip(described, weights, strict=True)
                penalty = torch.stack([one.penalty / 2 * (weight**2).sum() for one, weight in pairs]).sum()
                return loss(twin(dense, weights, seed, epoch)[nodes], dense.labels[nodes]) + penalty

            for epoch in range(4):
                value = penalised(split.train, seed, epoch)
                assert trained.history[run].train_loss[epoch] == pytest.approx(value.item(), rel=1e-4)
                adam.zero_grad()
                value.backward()
                adam.step()
                after = penalised(split.stopping, None, epoch)
                assert trained.history[run].stopping_loss[epoch] == pytest.approx(after.item(), rel=1e-4)
            for array, weight in zip(trained.weights, weights, strict=True):
                np.testing.assert_allclose(array[run], weight.detach().numpy(), rtol=1e-4, atol=1e-4)
            outputs = twin(dense, weights, None, 0)
            share = torch.softmax(outputs, 1) if loss is torch.nn.functional.cross_entropy else outputs
            np.testing.assert_allclose(trained.predict_proba()[run], share.detach().numpy(), rtol=1e-3, atol=1e-4)

    return check


def _kernels(name: str) -> Any:
    return next(backend.kernels for backend in BACKENDS if backend.name == name)
