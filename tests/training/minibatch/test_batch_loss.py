"""Loss and gradient of mini-batches: those of exact PPNP where rows are whole, and of all batches together."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from pprop import Graph, PropagationSettings, Split
from pprop.kernels import choose_backend
from pprop.models.model import FeatureNetwork, initial_weights, network_inputs
from pprop.propagation.operator import PPROperator
from pprop.scale import find_neighbourhoods
from pprop.training.minibatch.batches import Batches, SeenColumns
from pprop.training.minibatch.trainer import BatchLoss
from pprop.training.task import node_sets

KERNELS = choose_backend("auto", "cpu", "test").kernels
NETWORK = FeatureNetwork((8,), dropout=0.0)
SETTINGS = PropagationSettings(0.15)


class Setup:
    """All that the loss of one run needs; rows are whole unless `neighbours` says otherwise."""

    def __init__(
        self, graph: Graph, split: Split, batch: int, *, neighbours: int | None = None, weighted: bool = False
    ):
        assert graph.labels is not None
        most, eps = (graph.n_nodes, 1e-12) if neighbours is None else (neighbours, 1e-6)
        self.rows = find_neighbourhoods(graph, split.train, SETTINGS, neighbours=most, eps=eps)
        self.X = network_inputs(graph)
        self.columns = SeenColumns.of(self.X, self.rows.of(np.unique(split.train))[0])
        much = np.linspace(0.5, 3.0, graph.n_nodes) if weighted else None
        self.nodes = node_sets([split.train], np.asarray(graph.labels), much)
        self.batches = Batches(self.nodes, batch, self.rows, self.X, self.columns, KERNELS, seed=5)
        self.loss = BatchLoss(KERNELS, NETWORK, 0.0, 5, torch.device("cpu"))
        self.weights = initial_weights(NETWORK.weights(self.X.shape[1], 3), torch.tensor([5]), KERNELS)

    def total(self) -> tuple[Tensor, list[Tensor]]:
        """Sum of the batches by their shares, for all columns."""
        local = [self.columns.take(self.weights[0]), *self.weights[1:]]
        loss, gradients = torch.zeros(1), [torch.zeros_like(w) for w in local]
        for at, share in enumerate(self.batches.shares):
            found, parts = self.loss.gradients(local, self.batches.bound(at), self.batches.parts[at])
            loss += share * found
            for gradient, part in zip(gradients, parts, strict=True):
                gradient += share * part
        return loss, [self.columns.put(gradients[0]), *gradients[1:]]


@pytest.mark.parametrize("weighted", [False, True])
def test_with_whole_rows_loss_and_gradient_are_those_of_exact_ppnp(graph: Graph, split: Split, weighted: bool):
    setup = Setup(graph, split, batch=100, weighted=weighted)
    X = torch.from_numpy(network_inputs(graph).toarray()).double()
    P = torch.from_numpy(PPROperator(graph, SETTINGS.alpha, "sym", self_loops=True).matrix)
    first, second = (w[0].double().requires_grad_() for w in setup.weights)
    Z = (P @ (X @ first).relu() @ second)[torch.from_numpy(split.train)]
    each = torch.nn.functional.cross_entropy(Z, setup.nodes.labels[0], reduction="none")
    much = torch.ones_like(each) if setup.nodes.weights is None else setup.nodes.weights[0].double()
    expected = (each * much).sum() / much.sum()
    expected.backward()
    loss, gradients = setup.total()
    torch.testing.assert_close(loss[0], expected.detach().float(), rtol=1e-5, atol=0)
    for found, leaf in zip(gradients, (first, second), strict=True):
        assert leaf.grad is not None
        torch.testing.assert_close(found[0], leaf.grad.float(), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1, 5, 15])
def test_batches_add_up_to_the_full_batch(graph: Graph, split: Split, size: int, weighted: bool):
    one, several = (Setup(graph, split, batch, neighbours=8, weighted=weighted) for batch in (100, size))
    assert len(one.batches) == 1
    assert len(several.batches) == -(-len(split.train) // size)
    (loss, gradients), (expected, others) = several.total(), one.total()
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0)
    for found, other in zip(gradients, others, strict=True):
        torch.testing.assert_close(found, other, rtol=1e-4, atol=1e-7)


def test_every_node_is_in_one_batch_and_every_epoch_visits_all(graph: Graph, split: Split):
    batches = Setup(graph, split, batch=3, neighbours=8).batches
    nodes = torch.cat([part.nodes[0] for part in batches.parts])
    assert sorted(nodes.tolist()) == sorted(split.train.tolist())
    orders = [batches.order(epoch) for epoch in range(4)]
    assert all(sorted(order) == list(range(len(batches))) for order in orders)
    assert len(set(map(tuple, orders))) > 1


def test_a_node_listed_twice_counts_twice(graph: Graph, split: Split):
    twice = Split(np.append(split.train, split.train[:4]), split.stopping, split.evaluation)
    setup = Setup(graph, split, 100, neighbours=8)
    again = Setup(graph, twice, 100, neighbours=8)
    much = torch.ones(1, len(split.train))
    much[0, :4] = 2
    local = [setup.columns.take(setup.weights[0]), *setup.weights[1:]]
    nodes = setup.batches.parts[0]
    weighted = type(nodes)(nodes.nodes, nodes.labels, much)
    expected, _ = setup.loss.gradients(local, setup.batches.bound(0), weighted)
    torch.testing.assert_close(again.total()[0], expected, rtol=1e-5, atol=0)


def test_the_columns_that_occur_have_the_gradient_that_all_columns_would_give(graph: Graph, split: Split):
    setup = Setup(graph, split, batch=100, neighbours=2)
    restricted = setup.total()
    assert 0 < setup.columns.count < setup.columns.total
    assert setup.columns.seen is not None
    unseen = np.setdiff1d(np.arange(setup.columns.total), setup.columns.seen)
    setup.columns = SeenColumns(setup.columns.total, None)
    setup.batches = Batches(setup.nodes, 100, setup.rows, setup.X, setup.columns, KERNELS, seed=5)
    whole = setup.total()
    torch.testing.assert_close(restricted[0], whole[0], rtol=1e-6, atol=0)
    for found, other in zip(restricted[1], whole[1], strict=True):
        torch.testing.assert_close(found, other, rtol=1e-5, atol=1e-8)
    assert not whole[1][0][0, unseen].any()
