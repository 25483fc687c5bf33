"""Biases of the network: against a torch module, on both CPU backends, and without a trace where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import pprop
from pprop import Graph, InputError, Split, Stopping
from pprop.kernels import choose_backend
from pprop.models.inference import bind_propagation
from pprop.models.model import FeatureNetwork, initial_weights, network_inputs
from pprop.training.epoch import RunsTrainer
from pprop.training.loop import Stopping as Rule
from pprop.training.task import Task, node_sets
from pprop.training.trainers import training_of

BACKENDS = ("numba", "reference")
EPOCHS = Stopping(max_epochs=15, criterion="window", patience=15)


class Twin(nn.Module):
    """The same network as a module, on features that are scaled already."""

    def __init__(self, graph: Graph, hidden: tuple[int, ...], seed: int) -> None:
        super().__init__()
        self.X = torch.from_numpy(np.array(network_inputs(graph).toarray()))
        start = initial_weights(FeatureNetwork(hidden).weights(40, 3), torch.tensor([seed]))
        self.layers = nn.ModuleList([nn.Linear(w.shape[1], w.shape[2]) for w in start])
        with torch.no_grad():
            for layer, w in zip(self.layers, start, strict=True):
                assert isinstance(layer, nn.Linear)
                layer.weight.copy_(w[0].T)
                layer.bias.zero_()

    def forward(self, _: torch.Tensor) -> torch.Tensor:
        values = self.X
        for layer in self.layers[:-1]:
            values = torch.relu(layer(values))
        return self.layers[-1](values)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("hidden", [(8,), (), (8, 8)])
@pytest.mark.parametrize("kind", ["APPNP", "PPNP", "MLP"])
def test_without_dropout_it_trains_like_a_module_with_biases(
    community_graph: Graph, community_splits: list[Split], backend: str, hidden: tuple[int, ...], kind: str
) -> None:
    split, make = community_splits[0], getattr(pprop, kind)
    how: dict[str, Any] = {"seeds": 7, "stopping": EPOCHS, "backend": backend}
    ours = pprop.train(make(hidden=hidden, dropout=0.0, bias=True), community_graph, split, **how)
    plain = {} if kind == "MLP" else {"propagation_dropout": 0.0}
    twin = make(predictor=lambda: Twin(community_graph, hidden, 7), **plain)
    theirs = pprop.train(twin, community_graph, split, **how)
    np.testing.assert_allclose(ours.history[0].train_loss, theirs.history[0].train_loss, rtol=2e-5)
    np.testing.assert_allclose(ours.history[0].stopping_loss, theirs.history[0].stopping_loss, rtol=2e-5)
    np.testing.assert_allclose(ours.logits, theirs.logits, rtol=1e-3, atol=1e-4)
    layers = len(hidden) + 1
    assert [w.shape[1:] for w in ours.weights[layers:]] == [(1, width) for width in (*hidden, 3)]
    assert all(np.abs(bias).max() > 0.01 for bias in ours.weights[layers:])  # they have learned
    for mine, bias in zip(ours.weights[layers:], theirs.weights[1::2], strict=True):
        np.testing.assert_allclose(mine[0, 0], bias[0], rtol=1e-3, atol=1e-4)


def test_backends_agree_with_dropout_on_and_biases_are_never_dropped(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    model = pprop.APPNP(hidden=8, steps=2, bias=True)
    one, other = (
        pprop.train(model, community_graph, community_splits[:3], seeds=5, stopping=EPOCHS, backend=backend)
        for backend in BACKENDS
    )
    for mine, theirs in zip(one.history, other.history, strict=True):
        np.testing.assert_allclose(mine.train_loss, theirs.train_loss, atol=1e-4, rtol=0)
    dark = community_graph.replace(features=np.zeros((90, 40), dtype=np.float32)).scaled("none")
    trained = pprop.train(pprop.MLP(hidden=(), bias=True), dark, community_splits[0], stopping=EPOCHS)
    assert np.ptp(trained.history[0].train_loss - trained.history[0].train_loss[0]) > 0
    assert (trained.logits[0] == trained.logits[0, 0]).all()  # nothing but the bias, the same for all nodes
    assert np.array_equal(trained.logits[0, 0], trained.weights[1][0, 0])


def test_a_run_has_the_same_bits_alone_and_in_a_batch(community_graph: Graph, community_splits: list[Split]) -> None:
    model = pprop.APPNP(hidden=8, steps=2, bias=True)
    together = pprop.train(model, community_graph, community_splits, seeds=range(6), stopping=EPOCHS, backend="numba")
    alone = pprop.train(model, community_graph, community_splits[4], seeds=4, stopping=EPOCHS, backend="numba")
    assert all(np.array_equal(a[0], b[4]) for a, b in zip(alone.weights, together.weights, strict=True))
    assert np.array_equal(alone.logits[0], together.logits[4])


@pytest.mark.parametrize("bias", [False, True])
def test_a_network_is_trained_fused_with_biases_and_without(
    community_graph: Graph, community_splits: list[Split], bias: bool
) -> None:
    split, labels = community_splits[0], community_graph.labels
    assert labels is not None
    kernels, model = choose_backend("numba", "cpu", "test").kernels, pprop.MLP(hidden=8, bias=bias)
    sets = node_sets([split.train], labels), node_sets([split.stopping], labels)
    task = Task(community_graph, kernels, (1,), 3, *sets, Rule(), 0.01, torch.device("cpu"))
    bind_propagation(model, community_graph, kernels, sets[0].nodes)
    training = training_of(model, task)
    trainer = training.trainer(slice(0, 1))
    assert not isinstance(trainer, RunsTrainer)
    trainer.close()
    held = training.bytes()
    assert held is not None
    assert held.results["weights"] == 4 * (40 * 8 + 8 * 3 + bias * (8 + 3))


def test_a_bias_is_true_or_false() -> None:
    with pytest.raises(InputError, match="'bias' parameter of FeatureNetwork must be True or False"):
        pprop.APPNP(bias="yes")  # pyright: ignore[reportArgumentType]
