"""Training on neighbourhoods: what it learns, what it depends on, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

import pprop
from pprop import APPNP, Graph, Split, Stopping, scale
from pprop.graph import Scaling
from pprop.models.model import FeatureNetwork, initial_weights, network_inputs
from pprop.propagation.operator import PPROperator

SHORT = Stopping(max_epochs=30)
PLAIN = APPNP(0.15, hidden=8, dropout=0.0)


def dense_adam(
    graph: Graph, split: Split, rows: np.ndarray, start: list[np.ndarray], epochs: int, penalty: float, rate: float
) -> list[np.ndarray]:
    """Full-batch training of a two-layer network on dense rows, by the book, in float64."""
    assert graph.labels is not None
    X, Y = network_inputs(graph).toarray().astype(float), np.eye(graph.n_classes)[graph.labels[split.train]]
    weights, means, squares = [w.astype(float) for w in start], [0.0, 0.0], [0.0, 0.0]
    for step in range(1, epochs + 1):
        first, second = weights
        hidden = np.maximum(X @ first, 0)
        logits = rows @ hidden @ second
        probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        gradient = rows.T @ (probabilities - Y) / len(Y)
        gradients = [X.T @ (gradient @ second.T * (hidden > 0)) + penalty * first, hidden.T @ gradient]
        for layer, g in enumerate(gradients):
            means[layer] = 0.9 * means[layer] + 0.1 * g
            squares[layer] = 0.999 * squares[layer] + 0.001 * g * g
            mean, square = means[layer] / (1 - 0.9**step), squares[layer] / (1 - 0.999**step)
            weights[layer] = weights[layer] - rate * mean / (np.sqrt(square) + 1e-8)
    return weights


def test_epochs_are_those_of_full_batch_training_on_the_same_rows(graph: Graph, split: Split):
    stopping = Stopping(patience=None, max_epochs=12)
    trained = scale.train(PLAIN, graph, split, neighbours=8, stopping=stopping, seeds=3)
    assert PLAIN.propagation is not None
    found = scale.find_neighbourhoods(graph, split.train, PLAIN.propagation, neighbours=8)
    rows = found.matrix.toarray().astype(float)[np.searchsorted(found.nodes, split.train)]
    layers = FeatureNetwork((8,)).weights(40, 3)
    start = [w[0].numpy() for w in initial_weights(layers, torch.tensor([3]))]
    seen = trained.weights[0][0].any(axis=1)
    assert 0 < seen.sum() < 40
    start[0][~seen] = 0  # a column that no neighbourhood contains is left out
    expected = dense_adam(graph, split, rows, start, 12, PLAIN.penalty, 0.01)
    for ours, theirs in zip(trained.weights, expected, strict=True):
        np.testing.assert_allclose(ours[0], theirs, atol=2e-5)


def test_predictions_are_the_networks_spread_by_power_steps(graph: Graph, split: Split):
    trained = scale.train(APPNP(0.15, 5, hidden=8), graph, split, neighbours=8, stopping=SHORT)
    first, second = (w[0].astype(float) for w in trained.weights)
    H = np.maximum(network_inputs(graph).toarray() @ first, 0) @ second
    expected = pprop.propagate(graph, H, alpha=0.15, solver=pprop.PowerIteration(5))
    np.testing.assert_allclose(trained.logits[0], expected, rtol=1e-4, atol=1e-6)


def test_it_learns_the_communities_in_one_batch_and_in_several(graph: Graph, split: Split):
    for batch in (100, 4):
        trained = scale.train(
            APPNP(hidden=16), graph, split, neighbours=16, batch=batch, stopping=Stopping(max_epochs=150)
        )
        assert trained.accuracy()[0] >= 0.8, batch


def test_the_same_seed_gives_the_same_bits_alone_and_beside_others(graph: Graph, split: Split):
    other = Split(split.train[::2], split.stopping, split.evaluation)
    how: dict[str, Any] = {"neighbours": 6, "batch": 4, "stopping": SHORT}
    both = scale.train(APPNP(hidden=8), graph, [other, split], seeds=[1, 2], **how)
    alone = scale.train(APPNP(hidden=8), graph, split, seeds=2, **how)
    again = scale.train(APPNP(hidden=8), graph, split, seeds=2, **how)
    changed = scale.train(APPNP(hidden=8), graph, split, seeds=4, **how)
    for name in ("logits", "stopping_loss", "best_epoch"):
        np.testing.assert_array_equal(getattr(both, name)[1], getattr(alone, name)[0])
        np.testing.assert_array_equal(getattr(again, name), getattr(alone, name))
    assert (changed.logits != alone.logits).any()


def test_batches_that_are_made_again_for_every_visit_give_the_same_bits(
    graph: Graph, split: Split, monkeypatch: pytest.MonkeyPatch
):
    how: dict[str, Any] = {"neighbours": 6, "batch": 4, "stopping": SHORT}
    held = scale.train(APPNP(hidden=8), graph, split, **how)
    monkeypatch.setattr("pprop.training.minibatch.training._HELD_SHARE", 0.0)
    again = scale.train(APPNP(hidden=8), graph, split, **how)
    np.testing.assert_array_equal(held.logits, again.logits)


def test_dense_features_are_read_by_rows_where_they_lie(graph: Graph, split: Split, tmp_path: Path):
    noise = np.random.default_rng(2).standard_normal((graph.n_nodes, 6))
    X = (noise + 2 * np.eye(6)[np.asarray(graph.labels)]).astype(np.float32)
    np.save(tmp_path / "features.npy", X)
    mapped = graph.replace(features=np.load(tmp_path / "features.npy", mmap_mode="r"))
    in_memory = graph.replace(features=X)
    how: dict[str, Any] = {"neighbours": 6, "batch": 4, "stopping": SHORT}
    found, expected = (scale.train(APPNP(hidden=8, bias=True), one, split, **how) for one in (mapped, in_memory))
    np.testing.assert_array_equal(found.logits, expected.logits)
    assert found.weights[0].any(axis=2).all()  # no column of a dense matrix is left out


def test_a_node_without_neighbours_keeps_its_own_prediction(graph: Graph, split: Split):
    trained = scale.train(APPNP(hidden=8), graph, split, neighbours=6, stopping=SHORT)
    first, second = (w[0] for w in trained.weights)
    own = np.maximum(network_inputs(graph).toarray()[60] @ first, 0) @ second
    np.testing.assert_allclose(trained.logits[0, 60], own, rtol=1e-4, atol=1e-6)


def test_weights_of_nodes_count(graph: Graph, split: Split):
    twice = np.ones(graph.n_nodes)
    twice[split.train[:3]] = 2
    listed = Split(np.append(split.train, split.train[:3]), split.stopping, split.evaluation)
    how: dict[str, Any] = {"neighbours": 6, "stopping": SHORT}
    weighted = scale.train(PLAIN, graph, split, weights=twice, **how)
    repeated = scale.train(PLAIN, graph, listed, **how)
    np.testing.assert_allclose(weighted.logits, repeated.logits, rtol=1e-3, atol=1e-4)


def test_without_predictions_it_says_where_they_come_from(graph: Graph, split: Split):
    trained = scale.train(APPNP(hidden=8), graph, split, neighbours=6, stopping=SHORT, predict=False)
    with_them = scale.train(APPNP(hidden=8), graph, split, neighbours=6, stopping=SHORT)
    assert trained.logits.shape == (1, 0, 3)
    np.testing.assert_array_equal(scale.predict(trained), with_them.logits[0])
    with pytest.raises(pprop.InputError, match=r"predict=False and has no predictions. Use pprop\.scale\.predict"):
        trained.predict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"neighbours": 0}, "'neighbours' parameter of train must be an integer of at least 1. Got 0"),
        ({"batch": 0}, "'batch' parameter of train must be an integer of at least 1. Got 0"),
        ({"eps": 0.0}, "'eps' parameter of train must be a float in"),
        ({"model": pprop.PPNP()}, "'model' parameter of train must be pprop.APPNP"),
        ({"model": pprop.MLP()}, "'model' parameter of train must be pprop.APPNP"),
        ({"model": APPNP(0.0)}, "'alpha' parameter of train must be above 0"),
        ({"labels": np.full(61, -1)}, "'labels' parameter of train must be known"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(graph: Graph, split: Split, change: dict[str, Any], message: str):
    arguments: dict[str, Any] = {"model": APPNP(hidden=4), "stopping": SHORT} | change
    with pytest.raises(pprop.InputError, match=message):
        scale.train(arguments.pop("model"), graph, split, **arguments)


def test_a_graph_without_features_or_labels_is_refused(graph: Graph, split: Split):
    with pytest.raises(pprop.InputError, match="needs node features, and this graph has none"):
        scale.train(APPNP(), graph.replace(features=None), split)
    with pytest.raises(pprop.InputError, match="train needs labels, and this graph has none"):
        scale.train(APPNP(), graph.replace(labels=None, class_names=None), split)


def test_what_does_not_fit_is_refused_before_the_search(graph: Graph, split: Split, monkeypatch: pytest.MonkeyPatch):
    def never(*_: object, **__: object) -> None:
        pytest.fail("the search has begun")

    monkeypatch.setattr("pprop.training.minibatch.training.find_neighbourhoods", never)
    monkeypatch.setattr("pprop.training.minibatch.training.memory_limit", lambda device: 1000)
    with pytest.raises(
        pprop.CapacityError, match=r"neighbourhoods of 36 labelled nodes need up to .* Use fewer neighbours"
    ):
        scale.train(APPNP(hidden=8), graph, split)


def test_verbose_says_what_it_will_take(graph: Graph, split: Split, capsys: pytest.CaptureFixture[str]):
    scale.train(APPNP(hidden=8), graph, split, neighbours=6, stopping=Stopping(max_epochs=2), verbose=True)
    said = capsys.readouterr().err
    assert "search: the neighbourhoods of 36 nodes take about 1 s" in said
    assert "neighbourhoods: 211 entries of 36 rows with" in said
    assert "plan: 1 run on cpu; at most" in said
    assert "epoch: 1 Adam step for 16 training nodes, whose neighbourhoods have " in said


def test_a_column_that_no_training_node_sees_does_not_count(graph: Graph, split: Split):
    trained = scale.train(APPNP(hidden=8), graph, split, neighbours=3, stopping=SHORT)
    unseen = np.flatnonzero(~trained.weights[0][0].any(axis=1))
    assert len(unseen)
    changed = network_inputs(graph).toarray()
    changed[:, unseen] = 5.0
    other = graph.scaled("none").replace(features=sparse.csr_array(changed), scaling=Scaling("none"))
    np.testing.assert_allclose(scale.predict(trained, other), trained.logits[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("hidden", [(), (6, 5)])
def test_networks_of_any_depth_are_trained_and_predicted_in_blocks(graph: Graph, split: Split, hidden: tuple[int, ...]):
    model = APPNP(hidden=hidden, bias=True)
    trained = scale.train(model, graph, split, neighbours=6, batch=5, stopping=Stopping(max_epochs=5))
    assert [w.shape[1:] for w in trained.weights[: len(hidden) + 1]] == list(
        zip((40, *hidden), (*hidden, 3), strict=True)
    )
    np.testing.assert_array_equal(scale.predict(trained, block=10), trained.logits[0])


def test_on_a_directed_graph_whole_rows_are_those_of_exact_ppnp(graph: Graph, split: Split):
    ones = np.ones(len(graph.indices))
    both_ways = sparse.csr_array((ones, graph.indices, graph.indptr), shape=(graph.n_nodes, graph.n_nodes))
    arrows = sparse.csr_array(sparse.triu(both_ways, 1))
    one_way = Graph.from_scipy(arrows, directed=True, features=graph.features, labels=graph.labels)
    how: dict[str, Any] = {"neighbours": 61, "eps": 1e-12, "stopping": Stopping(patience=None, max_epochs=8)}
    trained = scale.train(PLAIN, one_way, split, seeds=3, **how)
    rows = PPROperator(one_way, 0.15, "sym", self_loops=True).matrix[split.train]
    start = [w[0].numpy() for w in initial_weights(FeatureNetwork((8,)).weights(40, 3), torch.tensor([3]))]
    start[0][~trained.weights[0][0].any(axis=1)] = 0
    expected = dense_adam(one_way, split, rows, start, 8, PLAIN.penalty, 0.01)
    for ours, theirs in zip(trained.weights, expected, strict=True):
        np.testing.assert_allclose(ours[0], theirs, atol=2e-5)
