"""The residual graph network against a dense twin in float64, and what it may see of the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from pprop import Graph, InputError, Split, Stopping, train
from pprop.graph import transition_matrix
from pprop.kernels import BACKENDS
from pprop.kernels.contract import LabelledNodes
from pprop.kernels.random_bits import signed
from pprop.models.architecture import DropoutMasks
from pprop.models.model import initial_weights
from pprop.models.residual import EPSILON, ResidualGNN


def visible(dense: Any, model: ResidualGNN, seed: int | None, epoch: int) -> Any:
    """Return 1 for nodes whose labels an epoch may show, (n, 1)."""
    return (dense.hidden(torch.ones(len(dense.labels), 1), seed, 2 + model.layers, epoch, 0.5) > 0).double()


def twin_of(model: ResidualGNN) -> Any:
    def normed(values: torch.Tensor, gain: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
        spread = values.var(dim=0, correction=0, keepdim=True)
        return (values - values.mean(dim=0, keepdim=True)) / torch.sqrt(spread + EPSILON) * (1 + gain) + offset

    def twin(dense: Any, weights: Any, seed: int | None, epoch: int) -> torch.Tensor:
        mean = torch.from_numpy(transition_matrix(dense.graph, "row", self_loops=False).to_scipy().toarray()).double()

        def dropped(values: torch.Tensor, layer: int) -> torch.Tensor:
            return dense.hidden(values, seed, layer, epoch, model.dropout)

        rest = iter(weights)
        values = dense.features(seed, epoch, model.dropout) @ next(rest)
        if model.label_inputs:
            one_hot = torch.eye(3, dtype=torch.float64)[dense.shown] * (dense.shown >= 0)[:, None]
            values = values + (one_hot * visible(dense, model, seed, epoch)) @ next(rest)
        values = dropped(values, 1)
        for layer in range(model.layers):
            level = normed(values, next(rest), next(rest))
            added = level @ next(rest) + mean @ level @ next(rest) + next(rest)
            values = values + dropped(torch.relu(added), 2 + layer)
        return normed(values, next(rest), next(rest)) @ next(rest) + next(rest)

    return twin


@pytest.mark.parametrize(
    "model",
    [
        ResidualGNN(hidden=6, layers=3, dropout=0.0, label_inputs=False),
        ResidualGNN(hidden=6, layers=2, dropout=0.25, label_inputs=False),
        ResidualGNN(hidden=6, layers=2, dropout=0.25),
        ResidualGNN(hidden=6, layers=0, dropout=0.0),
    ],
)
def test_outputs_and_gradients_are_those_of_the_dense_twin(check_outputs: Any, model: ResidualGNN) -> None:
    check_outputs(model, twin_of(model))


def test_training_follows_the_dense_twin(check_training: Any) -> None:
    model = ResidualGNN(hidden=6, layers=2, dropout=0.25, penalty=0.2, label_inputs=False)
    check_training(model, twin_of(model), torch.nn.functional.cross_entropy)


SPLIT = Split(np.arange(10), np.array([10, 11]), np.array([12, 13]))
SEES = ResidualGNN(hidden=6, layers=2, dropout=0.25, penalty=0.0)


@pytest.mark.parametrize("backend", ["numba", "reference"])
def test_the_loss_of_an_epoch_is_on_the_labels_that_it_hides(dense: Any, backend: str) -> None:
    graph = dense.graph.replace(labels=dense.labels.numpy())
    trained = train(SEES, graph, SPLIT, seeds=11, stopping=Stopping(max_epochs=2, criterion="window"), backend=backend)
    described = SEES.weights(dense.X.shape[1], 3)
    weights = [tensor[0].double() for tensor in initial_weights(described, torch.tensor([signed(11)]))]
    outputs = twin_of(SEES)(dense, weights, 11, 0)
    hidden = torch.flatten(visible(dense, SEES, 11, 0) == 0) & (dense.shown >= 0)
    assert 0 < int(hidden.sum()) < 10
    expected = torch.nn.functional.cross_entropy(outputs[hidden], dense.labels[hidden])
    assert trained.history[0].train_loss[0] == pytest.approx(float(expected), rel=1e-5)


def test_predictions_are_made_with_all_training_labels_shown(dense: Any) -> None:
    graph = dense.graph.replace(labels=dense.labels.numpy())
    trained = train(SEES, graph, SPLIT, seeds=3, stopping=Stopping(max_epochs=3))
    weights = [torch.from_numpy(array[0]).double() for array in trained.weights]
    expected = twin_of(SEES)(dense, weights, None, 0)
    np.testing.assert_allclose(trained.logits[0], expected.numpy(), rtol=1e-4, atol=1e-5)


def test_labels_outside_the_training_nodes_change_no_bit(dense: Any) -> None:
    labels = dense.labels.numpy()
    rotated = labels.copy()
    rotated[SPLIT.evaluation] = (rotated[SPLIT.evaluation] + 1) % 3
    found = [
        train(SEES, dense.graph.replace(labels=each), SPLIT, seeds=3, stopping=Stopping(max_epochs=5)).logits
        for each in (labels, rotated)
    ]
    assert np.array_equal(found[0], found[1])


def test_a_training_label_changes_predictions_of_other_nodes(dense: Any) -> None:
    labels = dense.labels.numpy()
    found = []
    for shift in (0, 1):
        other = labels.copy()
        other[0] = (other[0] + shift) % 3
        graph = dense.graph.replace(labels=other)
        found.append(train(SEES, graph, SPLIT, seeds=3, stopping=Stopping(max_epochs=1, criterion="window")).logits)
    assert not np.allclose(found[0], found[1])


def test_where_an_epoch_would_hide_no_label_all_of_them_count(dense: Any) -> None:
    bound = SEES.bind(dense.graph, next(one.kernels for one in BACKENDS if one.name == "reference"))
    bound.show(dense.shown, 3)
    nodes = LabelledNodes(torch.tensor([[2]]), torch.tensor([[1]]))
    counted = [bound.counted(nodes, DropoutMasks(torch.tensor([7]), epoch)) for epoch in range(20)]
    assert all(float(each.sum()) == 1.0 for each in counted if each is not None)


def test_runs_with_other_training_nodes_are_refused(dense: Any) -> None:
    graph = dense.graph.replace(labels=dense.labels.numpy())
    other = Split(np.arange(1, 11), np.array([11]), np.array([12, 13]))
    with pytest.raises(InputError, match="one split for all runs of a model that sees labels"):
        train(SEES, graph, [SPLIT, other], stopping=Stopping(max_epochs=1))


def test_runs_have_the_bits_they_have_alone(dense: Any) -> None:
    graph = dense.graph.replace(labels=dense.labels.numpy())
    short = Stopping(max_epochs=3, criterion="window")
    together = train(SEES, graph, SPLIT, seeds=[3, 4], stopping=short, backend="numba").logits
    alone = [train(SEES, graph, SPLIT, seeds=seed, stopping=short, backend="numba").logits[0] for seed in (3, 4)]
    assert np.array_equal(together, np.stack(alone))


def test_a_graph_whose_neighbours_differ_is_learned() -> None:
    """The class of a node is that of no neighbour: two sides of a random bipartite graph, half of which is known."""
    random = np.random.default_rng(0)
    side = np.arange(400) % 2
    pairs = random.integers(200, size=(1200, 2)) * 2 + [0, 1]
    adjacency = sparse.coo_array((np.ones(1200), pairs.T), shape=(400, 400)).tocsr()
    features = random.normal(size=(400, 3)).astype(np.float32)
    graph = Graph.from_scipy(((adjacency + adjacency.T) > 0).astype(float), features=features, labels=side)
    order = random.permutation(400)
    split = Split(order[:120], order[120:200], order[200:])
    trained = train(
        ResidualGNN(hidden=16, layers=2), graph, split, seeds=0, stopping=Stopping(max_epochs=150), backend="numba"
    )
    assert (trained.predict(split.evaluation)[0] == side[split.evaluation]).mean() > 0.9
