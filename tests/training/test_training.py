"""Training against a dense twin in plain torch, and the promises that `train` makes."""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import pprop
from pprop import Graph, Split, Stopping
from pprop.models.model import FeatureNetwork, initial_weights

pytestmark = pytest.mark.slow

BACKENDS = ["numba", "reference"]


def dense_pagerank(graph: Graph, alpha: float, steps: int | None) -> torch.Tensor:
    """The propagation matrix written out: K power steps, or the inverse."""
    adjacency = graph.adjacency.toarray() + np.eye(graph.n_nodes)
    scale = np.diag(adjacency.sum(axis=1) ** -0.5)
    a_hat = scale @ adjacency @ scale
    if steps is None:
        matrix = alpha * np.linalg.inv(np.eye(graph.n_nodes) - (1 - alpha) * a_hat)
    else:
        matrix = np.eye(graph.n_nodes)
        for _ in range(steps):
            matrix = (1 - alpha) * a_hat @ matrix + alpha * np.eye(graph.n_nodes)
    return torch.tensor(matrix, dtype=torch.float32)


def twin_losses(
    graph: Graph, split: Split, matrix: torch.Tensor, weights: list[torch.Tensor], epochs: int
) -> list[tuple[float, float, float]]:
    """Train without dropout by torch's autograd and Adam; return training loss, stopping loss, stopping accuracy."""
    features = torch.tensor(cast("Any", graph.features).toarray(), dtype=torch.float32)
    inputs = features / features.abs().sum(dim=1, keepdim=True).clamp(min=1e-12)
    parameters = [w.clone().requires_grad_() for w in weights]
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    labels = torch.tensor(graph.labels)

    def loss_on(nodes: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = inputs
        for w in parameters[:-1]:
            hidden = torch.relu(hidden @ w)
        logits = (matrix @ (hidden @ parameters[-1]))[nodes]
        loss = torch.nn.functional.cross_entropy(logits, labels[nodes])
        penalty = 0.5 * 0.005 * parameters[0].square().sum()
        return loss + penalty, (logits.argmax(dim=1) == labels[nodes]).double().mean()

    curve: list[tuple[float, float, float]] = []
    for _ in range(epochs):
        loss, _ = loss_on(split.train)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            stopping_loss, accuracy = loss_on(split.stopping)
        curve.append((loss.item(), stopping_loss.item(), accuracy.item()))
    return curve


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["APPNP", "PPNP", "MLP"])
@pytest.mark.parametrize("hidden", [(16,), (), (16, 8)])
def test_without_dropout_every_model_trains_like_a_dense_twin(
    community_graph: Graph, community_splits: list[Split], backend: str, kind: str, hidden: tuple[int, ...]
) -> None:
    graph, splits = community_graph, community_splits[:2]
    model = getattr(pprop, kind)(hidden=hidden, dropout=0.0)
    trained = pprop.train(model, graph, splits, seeds=[3, 4], stopping=Stopping(max_epochs=20), backend=backend)
    matrix = {
        "APPNP": lambda: dense_pagerank(graph, 0.1, 10),
        "PPNP": lambda: dense_pagerank(graph, 0.1, None),
        "MLP": lambda: torch.eye(graph.n_nodes),
    }[kind]()
    start = initial_weights(FeatureNetwork(tuple(hidden)).weights(40, 3), torch.tensor([3, 4]))
    for run, split in enumerate(splits):
        twin = np.array(twin_losses(graph, split, matrix, [w[run] for w in start], 20))
        history = trained.history[run]
        np.testing.assert_allclose(history.train_loss, twin[:, 0], rtol=2e-5)
        np.testing.assert_allclose(history.stopping_loss, twin[:, 1], rtol=2e-5)
        np.testing.assert_allclose(history.stopping_accuracy, twin[:, 2], atol=1e-12)


@pytest.mark.parametrize(("kind", "epochs"), [("APPNP", 13), ("PPNP", 4), ("MLP", 13)])
def test_backends_agree_with_dropout_on(kind: str, epochs: int) -> None:
    """13 epochs of 10 steps: decisions on edges come in groups of 128 steps. Small graphs have several runs elsewhere."""
    graph = pprop.load_dataset("citeseer")
    split = pprop.paper_split(graph, pprop.TEST_SEEDS[0])
    one, other = (
        pprop.train(
            getattr(pprop, kind)(), graph, split, seeds=1, stopping=Stopping(max_epochs=epochs), backend=backend
        ).history[0]
        for backend in BACKENDS
    )
    np.testing.assert_allclose(one.train_loss, other.train_loss, atol=1e-4, rtol=0)
    np.testing.assert_allclose(one.stopping_loss, other.stopping_loss, atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", ["APPNP", "PPNP", "MLP"])
def test_the_weights_kept_are_those_of_the_best_epoch(
    community_graph: Graph, community_splits: list[Split], kind: str
) -> None:
    trained = pprop.train(
        getattr(pprop, kind)(hidden=8),
        community_graph,
        community_splits,
        stopping=Stopping(patience=15, max_epochs=200),
    )
    assert (trained.best_epoch < trained.epochs - 1).any()  # otherwise a view of the last weights would pass
    labels = community_graph.labels
    assert labels is not None
    for run, split in enumerate(community_splits):
        history, best = trained.history[run], trained.best_epoch[run]
        accuracy = np.mean(trained.predict(split.stopping)[run] == labels[split.stopping])
        probability = trained.predict_proba(split.stopping)[run, np.arange(30), labels[split.stopping]]
        loss = -np.log(probability).mean() + 0.0025 * np.square(trained.weights[0][run]).sum()
        assert accuracy == pytest.approx(history.stopping_accuracy[best])
        assert loss == pytest.approx(history.stopping_loss[best], rel=1e-5)
        assert trained.stopping_accuracy[run] == history.stopping_accuracy[best] == history.stopping_accuracy.max()


def test_a_run_is_the_same_alone_and_among_runs_that_end_at_other_epochs(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    rule = Stopping(patience=10, max_epochs=300)
    together = pprop.train(pprop.APPNP(hidden=8), community_graph, community_splits, seeds=range(6), stopping=rule)
    assert len(set(together.epochs.tolist())) > 2  # so that the batch was packed anew on the way
    for run, split in enumerate(community_splits):
        alone = pprop.train(pprop.APPNP(hidden=8), community_graph, split, seeds=run, stopping=rule)
        assert alone.epochs[0] == together.epochs[run]
        assert np.array_equal(alone.history[0].train_loss, together.history[run].train_loss)
        assert all(np.array_equal(a[0], b[run]) for a, b in zip(alone.weights, together.weights, strict=True))
        assert np.array_equal(alone.logits[0], together.logits[run])


def test_runs_may_have_sets_of_different_sizes(community_graph: Graph, community_splits: list[Split]) -> None:
    first, second = community_splits[:2]
    short = Split(second.train[:9], second.stopping[:17], second.evaluation)
    rule = Stopping(max_epochs=15)
    together = pprop.train(pprop.PPNP(hidden=8), community_graph, [first, short], seeds=[5, 6], stopping=rule)
    alone = pprop.train(pprop.PPNP(hidden=8), community_graph, short, seeds=6, stopping=rule)
    assert np.array_equal(together.history[1].train_loss, alone.history[0].train_loss)
    assert np.array_equal(together.history[1].stopping_accuracy, alone.history[0].stopping_accuracy)


def test_the_same_call_twice_gives_the_same_bits(community_graph: Graph, community_splits: list[Split]) -> None:
    once, again = (
        pprop.train(pprop.APPNP(hidden=8), community_graph, community_splits, stopping=Stopping(max_epochs=40))
        for _ in range(2)
    )
    assert np.array_equal(once.logits, again.logits)


def test_other_seeds_give_other_weights_and_other_masks(community_graph: Graph, community_splits: list[Split]) -> None:
    runs = pprop.train(
        pprop.APPNP(hidden=8), community_graph, community_splits[0], seeds=[0, 1], stopping=Stopping(max_epochs=5)
    )
    assert not np.array_equal(runs.weights[0][0], runs.weights[0][1])
    assert runs.history[0].train_loss[0] != runs.history[1].train_loss[0]


def test_python_calls_per_epoch_do_not_grow_with_the_number_of_runs(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    """Of the program of single operations; the fused trainer of the CPU has a thread drive each run by itself."""

    def calls(runs: int, epochs: int) -> int:
        count = 0

        def profile(frame: Any, event: str, argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(profile)
        try:
            pprop.train(
                pprop.APPNP(hidden=8),
                community_graph,
                community_splits[0],
                seeds=range(runs),
                stopping=Stopping(patience=1000, max_epochs=epochs),
                backend="reference",
            )
        finally:
            sys.setprofile(None)
        return count

    calls(2, 3)  # compile and import first
    one, many = (calls(runs, 11) - calls(runs, 3) for runs in (1, 40))
    assert many <= 1.25 * one  # best weights are copied run by run, in the epochs that improve; nothing else is


def test_labels_of_evaluation_nodes_are_never_read(community_graph: Graph, community_splits: list[Split]) -> None:
    split = community_splits[0]
    assert community_graph.labels is not None
    spoiled = community_graph.labels.copy()
    spoiled[split.evaluation] = -1
    rule = Stopping(max_epochs=10)
    honest = pprop.train(pprop.APPNP(hidden=8), community_graph, split, stopping=rule)
    blind = pprop.train(pprop.APPNP(hidden=8), community_graph, split, labels=spoiled, stopping=rule)
    assert np.array_equal(honest.logits, blind.logits)


def test_probabilities_sum_to_one_and_agree_with_the_classes(
    community_graph: Graph, community_splits: list[Split]
) -> None:
    trained = pprop.train(pprop.APPNP(hidden=8), community_graph, community_splits[0], stopping=Stopping(max_epochs=5))
    probability = trained.predict_proba([4, 7])
    np.testing.assert_allclose(probability.sum(axis=2), 1, atol=1e-6)
    assert np.array_equal(probability.argmax(axis=2), trained.predict([4, 7]))


def test_progress_goes_to_standard_error_and_nothing_to_standard_output(
    community_graph: Graph, community_splits: list[Split], capfd: pytest.CaptureFixture[str]
) -> None:
    pprop.train(
        pprop.MLP(hidden=8), community_graph, community_splits[0], stopping=Stopping(max_epochs=3), progress=True
    )
    shown = capfd.readouterr()
    assert "Training" in shown.err
    assert "1/1" in shown.err
    assert shown.out == ""


def test_backend_and_costs_are_reported(community_graph: Graph, community_splits: list[Split]) -> None:
    for backend in BACKENDS:
        trained = pprop.train(
            pprop.MLP(hidden=8), community_graph, community_splits[0], stopping=Stopping(max_epochs=3), backend=backend
        )
        assert trained.backend == backend
        assert trained.epochs.tolist() == [3]
        assert 0 < trained.epochs.sum() / trained.run_epochs_per_second <= trained.seconds
