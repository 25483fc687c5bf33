"""ResidualClassifier and GPRGNNClassifier: networks for neighbours that differ, saved, loaded and on another graph."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from pprop import (
    FormatError,
    GPRGNNClassifier,
    Graph,
    InputError,
    MLPNodeClassifier,
    ResidualClassifier,
    live,
    load,
)

ALL = np.arange(90)
Made = tuple[Graph, NDArray[np.str_]]
SHORT: dict[str, Any] = {"hidden": 6, "max_epochs": 8, "random_state": 0}
KINDS: list[Any] = [
    lambda graph: ResidualClassifier(graph, layers=2, **SHORT),
    lambda graph: ResidualClassifier(graph, layers=2, label_inputs=False, **SHORT),
    lambda graph: GPRGNNClassifier(graph, alpha=0.3, steps=4, **SHORT),
]


@pytest.fixture(scope="module")
def opposite() -> Made:
    """400 nodes whose neighbours are all of the other of two classes, and features that say nothing."""
    rng = np.random.default_rng(3)
    side = np.arange(400) % 2
    pairs = rng.integers(200, size=(1200, 2)) * 2 + [0, 1]
    half = sparse.coo_array((np.ones(1200), pairs.T), shape=(400, 400)).tocsr()
    features = rng.normal(size=(400, 3)).astype(np.float32)
    return Graph.from_scipy(((half + half.T) > 0).astype(float), features=features), np.array(["even", "odd"])[side]


def halves(y: NDArray[Any]) -> tuple[Any, Any, Any]:
    """Return what trains, what validates, and what tests, in a random order."""
    order = np.random.default_rng(0).permutation(len(y))
    train, judges, test = order[:160], order[160:240], order[240:]
    return train, (judges, y[judges]), test


def test_labels_as_inputs_show_the_class_where_neighbours_differ(opposite: Made) -> None:
    graph, y = opposite
    train, judges, test = halves(y)
    model = ResidualClassifier(graph, hidden=16, layers=2, max_epochs=120, random_state=0)
    assert model.fit(train, y[train], stopping=judges).score(test, y[test]) > 0.9
    alone = MLPNodeClassifier(graph, max_epochs=100, random_state=0).fit(train, y[train], stopping=judges)
    assert alone.score(test, y[test]) < 0.65


def test_learned_weights_of_hops_subtract_neighbours_that_differ(opposite: Made) -> None:
    """Features that show the class weakly, with noise that the other side's mean takes away."""
    graph, y = opposite
    rng = np.random.default_rng(5)
    weak = np.where(y == "odd", 0.5, -0.5)[:, None] + rng.normal(size=(400, 1))
    graph = graph.replace(features=weak.astype(np.float32))
    train, judges, test = halves(y)
    model = GPRGNNClassifier(graph, max_epochs=300, steps=4, dropout=0.0, penalty=1e-3, random_state=0)
    model.fit(train, y[train], stopping=judges)
    alone = MLPNodeClassifier(graph, max_epochs=100, random_state=0).fit(train, y[train], stopping=judges)
    assert model.score(test, y[test]) > alone.score(test, y[test]) + 0.1


@pytest.mark.parametrize("make", KINDS)
def test_a_saved_model_has_the_same_bits(make: Any, graph: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    model = make(graph).fit(nodes[:24], animals[:24], stopping=(nodes[24:], animals[24:]))
    model.save(tmp_path / "model")
    again: Any = load(tmp_path / "model", graph=graph)
    assert type(again) is type(model)
    assert np.array_equal(again.logits_, model.logits_)
    assert again.get_params() == model.get_params()
    assert sorted(again.train_nodes_.tolist()) == sorted(nodes[:24].tolist())
    assert np.array_equal(model.on(graph).logits_, model.logits_)


@pytest.mark.filterwarnings("ignore:Every class has one node only")
def test_labels_are_shown_again_where_training_nodes_validate(graph: Graph, tmp_path: Path) -> None:
    model = ResidualClassifier(graph, layers=1, **SHORT).fit([0, 40, 80], ["ant", "bee", "cat"])
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model", graph=graph).logits_, model.logits_)


@pytest.mark.parametrize("make", KINDS)
def test_labels_that_fit_was_not_given_change_no_bit(make: Any, graph: Graph, nodes: Any, animals: Any) -> None:
    codes = ALL // 30
    rotated = np.where(np.isin(ALL, nodes), codes, (codes + 1) % 3)
    one, other = (make(graph.replace(labels=each)).fit(nodes, animals, stopping=0.25) for each in (codes, rotated))
    assert np.array_equal(one.logits_, other.logits_)


def test_labels_of_validation_nodes_are_no_inputs(graph: Graph, nodes: Any, animals: Any) -> None:
    """One epoch, which the last one is whatever they are: other labels of validation nodes, the same outputs."""
    watched = nodes[24:]
    found = [
        ResidualClassifier(graph, hidden=6, layers=2, max_epochs=1, random_state=0)
        .fit(nodes[:24], animals[:24], stopping=(watched, labels))
        .logits_
        for labels in (animals[24:], np.roll(animals[24:], 1))
    ]
    assert np.array_equal(found[0], found[1])


def test_on_another_graph_no_labels_are_shown_and_a_warning_says_so(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path
) -> None:
    model = ResidualClassifier(graph, layers=2, **SHORT).fit(nodes, animals)
    model.save(tmp_path / "model")
    other = graph.replace(ids=[f"n{k}" for k in range(90)])
    message = r"labels that this ResidualClassifier was trained with belong to another graph"
    with pytest.warns(UserWarning, match=message):
        moved = model.on(other)
    with pytest.warns(UserWarning, match=message):
        loaded = load(tmp_path / "model", graph=other)
    assert moved.graph_changed_
    assert np.array_equal(moved.logits_, loaded.logits_)
    assert not np.array_equal(moved.logits_, model.logits_)
    blind = ResidualClassifier(graph, layers=2, label_inputs=False, **SHORT).fit(nodes, animals)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(blind.on(other).logits_, blind.logits_)


def test_nodes_of_a_damaged_file_are_refused(graph: Graph, nodes: Any, animals: Any, tmp_path: Path) -> None:
    model: Any = ResidualClassifier(graph, layers=1, **SHORT).fit(nodes, animals)
    shown = model.fitted_.extras["shown"]
    for wrong in ({}, {"shown": shown[::-1]}, {"shown": np.arange(90)}, {"shown": shown.astype(np.int32)}):
        extras = {name: np.array(array, order="C") for name, array in wrong.items()}
        model.fitted_ = replace(model.fitted_, extras=extras)
        model.save(tmp_path / "model", overwrite=True)
        with pytest.raises(FormatError, match=r"is damaged: .* given the nodes whose labels it sees"):
            load(tmp_path / "model", graph=graph)


@pytest.mark.parametrize(
    ("make", "explained", "edited"),
    [
        (KINDS[0], "ResidualClassifier, whose logits are no sum over nodes", "whose layers propagate in between"),
        (KINDS[2], "GPRGNNClassifier, whose weights of hops are learned", "whose weights of hops are learned"),
    ],
)
def test_explanations_and_live_graphs_say_why_not(
    make: Any, explained: str, edited: str, graph: Graph, nodes: Any, animals: Any
) -> None:
    model = make(graph).fit(nodes, animals)
    with pytest.raises(InputError, match=explained):
        model.explain(0)
    with pytest.raises(InputError, match=edited):
        live(model)


def test_impossible_settings_are_refused(graph: Graph, nodes: Any, animals: Any) -> None:
    with pytest.raises(InputError, match="The 'label_inputs' parameter of ResidualClassifier must be"):
        ResidualClassifier(graph, label_inputs="yes").fit(nodes, animals)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="The 'alpha' parameter of GPRGNNClassifier must be"):
        GPRGNNClassifier(graph, alpha=2.0).fit(nodes, animals)
