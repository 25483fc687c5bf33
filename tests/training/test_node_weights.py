"""Weights of labelled nodes: the loss and what early stopping watches are weighted means, on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

import pprop
from pprop import Graph, InputError, Split, Stopping
from pprop.models.model import FeatureNetwork, initial_weights, network_inputs
from pprop.training.task import node_sets
from pprop.training.train import TrainOptions, train_alphas

BACKENDS = ("numba", "reference")
EPOCHS = Stopping(max_epochs=6, criterion="window", patience=6)


@pytest.fixture(scope="module")
def uneven() -> NDArray[np.float64]:
    """Weights of 90 nodes, some of them zero."""
    weights = np.random.default_rng(5).gamma(1.0, size=90)
    weights[::7] = 0.0
    return weights


def weighted_twin(
    graph: Graph, split: Split, weights: NDArray[np.float64], start: list[torch.Tensor], epochs: int
) -> NDArray[np.float64]:
    """Train an MLP without dropout by torch's autograd and Adam in float64; return the three curves."""
    X = torch.from_numpy(np.array(network_inputs(graph).toarray())).double()
    W = [w.double().requires_grad_() for w in start]
    adam = torch.optim.Adam(W, lr=0.01)
    labels, much = torch.tensor(graph.labels), torch.from_numpy(weights)

    def means(nodes: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
        logits = (torch.relu(X @ W[0]) @ W[1])[nodes]
        each = nn.functional.cross_entropy(logits, labels[nodes], reduction="none")
        right = (logits.argmax(dim=1) == labels[nodes]).double()
        loss = (each * much[nodes]).sum() / much[nodes].sum() + 0.0025 * W[0].square().sum()
        return loss, (right * much[nodes]).sum() / much[nodes].sum()

    curves: list[list[float]] = []
    for _ in range(epochs):
        loss, _ = means(split.train)
        adam.zero_grad()
        loss.backward()
        adam.step()
        with torch.no_grad():
            curves.append([loss.item(), *(value.item() for value in means(split.stopping))])
    return np.array(curves).T


def curves_of(trained: pprop.Trained, run: int = 0) -> NDArray[np.float64]:
    history = trained.history[run]
    return np.stack([history.train_loss, history.stopping_loss, history.stopping_accuracy])


@pytest.mark.parametrize("backend", BACKENDS)
def test_weighted_training_follows_a_dense_twin(
    community_graph: Graph, community_splits: list[Split], uneven: NDArray[np.float64], backend: str
) -> None:
    model, splits = pprop.MLP(hidden=8, dropout=0.0), community_splits[:2]
    trained = pprop.train(
        model, community_graph, splits, seeds=[3, 4], weights=uneven, stopping=EPOCHS, backend=backend
    )
    start = initial_weights(FeatureNetwork((8,)).weights(40, 3), torch.tensor([3, 4]))
    for run, split in enumerate(splits):
        twin = weighted_twin(community_graph, split, uneven, [w[run] for w in start], 6)
        np.testing.assert_allclose(curves_of(trained, run), twin, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "model",
    [
        pprop.APPNP(hidden=8, steps=3),
        pprop.APPNP(hidden=(8, 8), steps=3),
        pprop.PPNP(hidden=8),
        pprop.GCN(hidden=8),
        pprop.GAT(heads=2, units=4),
        pprop.NGCN(hidden=8, powers=2, replicas=1),
        pprop.MLP(predictor=lambda: nn.Linear(40, 3)),
    ],
    ids=["appnp", "deep", "ppnp", "gcn", "gat", "ngcn", "module"],
)
def test_a_node_of_weight_k_counts_like_k_copies(
    community_graph: Graph, community_splits: list[Split], model: Any, backend: str
) -> None:
    times = np.random.default_rng(1).integers(0, 4, 90)
    split = community_splits[0]
    copies = Split(
        np.repeat(split.train, times[split.train]), np.repeat(split.stopping, times[split.stopping]), np.array([0])
    )
    how: dict[str, Any] = {"seeds": 2, "stopping": EPOCHS, "backend": backend}
    weighted = pprop.train(model, community_graph, split, weights=times, **how)
    listed = pprop.train(model, community_graph, copies, **how)
    np.testing.assert_allclose(curves_of(weighted), curves_of(listed), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(weighted.logits, listed.logits, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("size", [1.0, 8.0, 1e-300, 1e300])
@pytest.mark.parametrize("model", [pprop.APPNP(hidden=8, steps=3), pprop.GCN(hidden=8)], ids=["appnp", "gcn"])
def test_equal_weights_of_any_size_change_no_bit(
    community_graph: Graph, community_splits: list[Split], model: Any, size: float
) -> None:
    """Powers of two do not, to the bit; others differ by the rounding of one weight."""
    how: dict[str, Any] = {"seeds": 2, "stopping": EPOCHS, "backend": "numba"}
    plain = pprop.train(model, community_graph, community_splits[0], **how)
    weighted = pprop.train(model, community_graph, community_splits[0], weights=np.full(90, size), **how)
    if size in (1.0, 8.0):
        assert np.array_equal(curves_of(plain), curves_of(weighted))
        assert np.array_equal(plain.logits, weighted.logits)
    else:
        np.testing.assert_allclose(curves_of(plain), curves_of(weighted), rtol=2e-5)


def test_weights_go_with_their_runs_when_others_end(
    community_graph: Graph, community_splits: list[Split], uneven: NDArray[np.float64]
) -> None:
    rule, model = Stopping(patience=2, max_epochs=60), pprop.APPNP(hidden=8, steps=2, penalty=0.0)
    how: dict[str, Any] = {"weights": uneven, "stopping": rule, "learning_rate": 0.1, "backend": "numba"}
    together = pprop.train(model, community_graph, community_splits, seeds=range(6), **how)
    assert len(set(together.epochs.tolist())) > 1
    for run, split in enumerate(community_splits):
        alone = pprop.train(model, community_graph, split, seeds=run, **how)
        assert np.array_equal(alone.logits[0], together.logits[run])
    several = train_alphas(
        model,
        community_graph,
        community_splits[0],
        TrainOptions(rule, 0.1, "numba"),
        alphas=[0.1, 0.5],
        weights=uneven,
    )
    assert np.array_equal(several[0].logits[0], together.logits[0])


def test_sets_of_other_sizes_are_padded_with_nothing() -> None:
    sets = node_sets([np.array([1, 2]), np.array([0])], np.array([0, 1, 1]), np.array([3.0, 0.5, 0.25]))
    assert sets.weights is not None
    assert sets.weights.tolist() == [[0.5, 0.25], [0.75, 0.0]]  # each divided by a power of two
    assert sets.sizes.tolist() == [0.75, 0.75]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(89), "an array of 90 numbers, one per node"),
        (np.ones((90, 1)), "an array of 90 numbers"),
        (np.full(90, "a"), "an array of 90 numbers"),
        (np.full(90, np.nan), "finite and not negative for every train node"),
        (np.full(90, -1), "finite and not negative for every train node"),
        (np.zeros(90), "above 0 for at least one train node"),
    ],
)
def test_impossible_weights_are_refused(
    community_graph: Graph, community_splits: list[Split], weights: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        pprop.train(pprop.MLP(hidden=8), community_graph, community_splits[0], weights=weights)


def test_weights_of_other_nodes_are_not_read(community_graph: Graph, community_splits: list[Split]) -> None:
    split = community_splits[0]
    weights = np.full(90, np.nan)
    weights[split.train], weights[split.stopping] = 1.0, 1.0
    how: dict[str, Any] = {"stopping": EPOCHS, "backend": "reference"}
    model = pprop.MLP(hidden=8)
    one = pprop.train(model, community_graph, split, weights=weights, **how)
    assert np.array_equal(one.logits, pprop.train(model, community_graph, split, **how).logits)
