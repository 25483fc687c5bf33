"""Losses of numbers and of several labels: a dense twin, the ridge solution, independent runs, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import sparse

import pprop
from pprop import Graph, InputError, Split, Stopping
from pprop.kernels import choose_backend
from pprop.models.architecture import DropoutMasks
from pprop.models.inference import bind_propagation
from pprop.models.model import FeatureNetwork, initial_weights
from pprop.training.epoch import NetworkObjective
from pprop.training.task import Task, node_sets

BACKENDS = ["numba", "reference"]
LOSSES = ["squared_error", "huber", "logistic"]
PENALTY = 0.005


def targets_of(graph: Graph, loss: str, columns: int = 3) -> NDArray[np.float64]:
    """Numbers of all nodes, or 0 and 1, a tenth of them unknown."""
    rng = np.random.default_rng(5)
    labels = graph.labels
    assert labels is not None
    numbers = labels[:, None] - 1.0 + rng.normal(scale=1.5, size=(graph.n_nodes, columns))
    found = (numbers > 0).astype(float) if loss == "logistic" else numbers
    found[rng.random(found.shape) < 0.1] = np.nan
    found[np.isnan(found).all(axis=1), 0] = 1.0
    return found


def pagerank(graph: Graph) -> NDArray[np.float64]:
    adjacency = graph.adjacency.toarray() + np.eye(graph.n_nodes)
    scale = np.diag(adjacency.sum(axis=1) ** -0.5)
    return np.asarray(0.1 * np.linalg.inv(np.eye(graph.n_nodes) - 0.9 * scale @ adjacency @ scale), dtype=np.float64)


def written_out(outputs: torch.Tensor, targets: torch.Tensor, loss: str) -> torch.Tensor:
    """The mean over known entries times the columns, by torch's own losses."""
    known = ~targets.isnan()
    given, right = outputs[known], targets[known]
    if loss == "logistic":
        mean = torch.nn.functional.binary_cross_entropy_with_logits(given, right)
    elif loss == "huber":
        mean = torch.nn.functional.huber_loss(given, right, delta=1.35)
    else:
        mean = 0.5 * torch.nn.functional.mse_loss(given, right)
    return mean * targets.shape[1]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("kind", "hidden"), [("PPNP", (16,)), ("MLP", (16,)), ("PPNP", ()), ("PPNP", (16, 8))])
def test_training_is_that_of_a_dense_twin(
    community_graph: Graph, community_splits: list[Split], loss: str, backend: str, kind: str, hidden: tuple[int, ...]
) -> None:
    graph, splits, targets = community_graph, community_splits[:2], targets_of(community_graph, loss)
    model = getattr(pprop, kind)(hidden=hidden, dropout=0.0)
    how: dict[str, Any] = {"stopping": Stopping(max_epochs=15), "backend": backend}
    trained = pprop.train(model, graph, splits, seeds=[3, 4], labels=targets, loss=loss, **how)
    matrix = torch.tensor(pagerank(graph) if kind == "PPNP" else np.eye(graph.n_nodes), dtype=torch.float32)
    start = initial_weights(FeatureNetwork(hidden).weights(40, 3), torch.tensor([3, 4]))
    features = torch.tensor(cast("Any", graph.features).toarray(), dtype=torch.float32)
    inputs = features / features.abs().sum(dim=1, keepdim=True).clamp(min=1e-12)
    numbers = torch.tensor(targets, dtype=torch.float32)
    for run, split in enumerate(splits):
        weights = [w[run].clone().requires_grad_() for w in start]
        optimizer, curve = torch.optim.Adam(weights, lr=0.01), []

        def loss_on(nodes: NDArray[np.int64], weights: list[torch.Tensor] = weights) -> torch.Tensor:
            values = inputs
            for w in weights[:-1]:
                values = torch.relu(values @ w)
            outputs = (matrix @ (values @ weights[-1]))[nodes]
            return written_out(outputs, numbers[nodes], loss) + 0.5 * PENALTY * weights[0].square().sum()

        for _ in range(15):
            before = loss_on(split.train)
            optimizer.zero_grad()
            before.backward()
            optimizer.step()
            curve.append((before.item(), loss_on(split.stopping).item()))
        history = trained.history[run]
        np.testing.assert_allclose(np.stack([history.train_loss, history.stopping_loss], axis=1), curve, rtol=3e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_gradient_is_zero_at_the_ridge_solution_and_training_reaches_its_loss(
    community_graph: Graph, community_splits: list[Split], backend: str
) -> None:
    """A linear predictor and exact PPNP are ridge regression on the propagated columns."""
    graph, split = community_graph.scaled(), community_splits[0]
    targets = np.nan_to_num(targets_of(graph, "squared_error", 2))
    columns = pagerank(graph) @ cast("Any", graph.features).toarray()
    P, y, m = columns[split.train], targets[split.train], len(split.train)
    # the loss is (1 / 2 m) |P W - y|^2 + (penalty / 2) |W|^2
    solution = np.linalg.solve(P.T @ P / m + PENALTY * np.eye(P.shape[1]), P.T @ y / m)
    least = 0.5 * np.square(P @ solution - y).sum() / m + 0.5 * PENALTY * np.square(solution).sum()

    model, kernels = pprop.PPNP(hidden=(), dropout=0.0), choose_backend(backend, "cpu", "test").kernels
    nodes = node_sets([split.train], np.zeros(graph.n_nodes, np.int64), None, targets.astype(np.float32))
    nodes = replace(nodes, targets=torch.from_numpy(y)[None], weights=torch.ones(1, m, dtype=torch.float64))
    cpu = torch.device("cpu")
    task = Task(graph, kernels, (0,), 2, nodes, nodes, Stopping(), 0.01, cpu, loss="squared_error")
    objective = NetworkObjective(task, bind_propagation(model, graph, kernels, nodes.nodes.flatten(), None))
    weights = [torch.from_numpy(solution)[None]]
    loss, (gradient,) = objective.loss_and_gradients(weights, nodes, DropoutMasks(None))
    assert loss.item() + 0.5 * PENALTY * np.square(solution).sum() == pytest.approx(least, abs=1e-6)
    assert float((gradient[0] + PENALTY * weights[0][0]).abs().max()) < 1e-6

    if backend == "numba":  # the reference makes the same steps, slowly
        how: dict[str, Any] = {"stopping": Stopping(patience=None, max_epochs=800), "learning_rate": 0.05}
        trained = pprop.train(model, graph, split, labels=targets, loss="squared_error", **how)
        assert trained.history[0].train_loss[-1] == pytest.approx(least, abs=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_run_seven_alone_is_run_seven_of_twenty(
    community_graph: Graph, community_splits: list[Split], loss: str
) -> None:
    graph, split, targets = community_graph, community_splits[0], targets_of(community_graph, loss)
    how: dict[str, Any] = {"labels": targets, "loss": loss, "stopping": Stopping(max_epochs=12)}
    for model in (pprop.APPNP(), pprop.APPNP(hidden=(16, 8)), pprop.GCN(hidden=16)):
        many = pprop.train(model, graph, split, seeds=range(20), **how)
        alone = pprop.train(model, graph, split, seeds=7, **how)
        assert np.array_equal(many.logits[7], alone.logits[0])
        assert np.array_equal(many.history[7].stopping_loss, alone.history[0].stopping_loss)


def test_one_label_is_the_binary_model(community_graph: Graph, community_splits: list[Split]) -> None:
    """Of two classes the logit of the second less that of the first is what one label has: losses agree."""
    kernels = choose_backend("numba", "cpu", "test").kernels
    rng = np.random.default_rng(0)
    odds, labels = torch.from_numpy(rng.normal(size=(1, 30, 1))), torch.from_numpy(rng.integers(0, 2, (1, 30)))
    both = torch.cat([torch.zeros_like(odds), odds], dim=2)
    loss, right, gradient = kernels.cross_entropy(both, labels)
    ours, good, slope = kernels.elementwise_loss(
        odds, labels[..., None].double(), torch.ones(1, 30, dtype=torch.float64), "logistic"
    )
    assert ours.item() == pytest.approx(loss.item(), abs=1e-12)
    assert good.item() == pytest.approx(right.item())
    np.testing.assert_allclose(slope[..., 0], gradient[..., 1], atol=1e-12)


def test_a_node_of_weight_k_counts_like_one_that_is_listed_k_times(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    graph, split = community_graph, community_splits[0]
    targets = targets_of(graph, "squared_error")
    twice = replace(split, train=np.concatenate([split.train, split.train[:3]]))
    weights = np.ones(graph.n_nodes)
    weights[split.train[:3]] = 2
    how: dict[str, Any] = {"labels": targets, "loss": "squared_error", "stopping": Stopping(max_epochs=5)}
    model = pprop.APPNP(dropout=0.0)
    listed = pprop.train(model, graph, twice, **how)
    weighted = pprop.train(model, graph, split, weights=weights, **how)
    np.testing.assert_allclose(listed.history[0].train_loss, weighted.history[0].train_loss, rtol=1e-5)


def test_what_is_for_classes_alone_is_refused(community_graph: Graph, community_splits: list[Split]) -> None:
    graph, split, targets = community_graph, community_splits[0], targets_of(community_graph, "squared_error")
    how: dict[str, Any] = {"labels": targets, "loss": "squared_error"}
    with pytest.raises(InputError, match="'squared_err'"):
        pprop.train(pprop.APPNP(), graph, split, labels=targets, loss="squared_err")
    with pytest.raises(InputError, match="with neighbours"):
        pprop.train(pprop.APPNP(), graph, split, neighbours=8, **how)
    with pytest.raises(InputError, match="NGCN, which is made for classes"):
        pprop.train(pprop.NGCN(), graph, split, **how)
    with pytest.raises(InputError, match="ResidualGNN, which is made for classes"):
        pprop.train(pprop.ResidualGNN(label_inputs=True), graph, split, **how)
    with pytest.raises(InputError, match="a module in place"):
        pprop.train(pprop.APPNP(predictor=torch.nn.Linear(40, 3)), graph, split, **how)


def test_targets_that_nothing_can_be_compared_with_are_refused(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    graph, split = community_graph, community_splits[0]
    model, targets = pprop.APPNP(), targets_of(graph, "squared_error")
    for wrong, message in [
        (targets[:5], "numbers of shape"),
        (np.where(np.arange(graph.n_nodes)[:, None] == split.train[2], np.inf, targets), "inf for node"),
        (np.where(np.arange(graph.n_nodes)[:, None] == split.train[2], np.nan, targets), "NaN for node"),
        (targets.astype(str), "numbers of shape"),
    ]:
        with pytest.raises(InputError, match=message):
            pprop.train(model, graph, split, labels=wrong, loss="squared_error")
    with pytest.raises(InputError, match="0 or 1"):
        pprop.train(model, graph, split, labels=np.nan_to_num(targets), loss="logistic")


def test_targets_of_other_nodes_are_not_read(community_graph: Graph, community_splits: list[Split]) -> None:
    graph, split, targets = community_graph, community_splits[0], targets_of(community_graph, "squared_error")
    known = np.union1d(split.train, split.stopping)
    others = np.full_like(targets, np.inf)
    others[known] = targets[known]
    how: dict[str, Any] = {"loss": "squared_error", "stopping": Stopping(max_epochs=3)}
    one, other = (pprop.train(pprop.APPNP(), graph, split, labels=given, **how) for given in (targets, others))
    assert np.array_equal(one.logits, other.logits)
    assert sparse.issparse(graph.features)
