"""Which nodes are set aside for early stopping when a fraction is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pprop import Graph, MLPNodeClassifier
from pprop.estimators.targets import hold_out


def sizes(nodes: Any, codes: Any, chosen: Any) -> list[int]:
    """Return how many of the chosen nodes each class has."""
    return np.bincount(codes[np.isin(nodes, chosen)], minlength=codes.max() + 1).tolist()


@pytest.mark.parametrize(
    ("fraction", "expected"), [(0.01, [1, 1, 0, 1]), (0.25, [5, 1, 0, 2]), (0.5, [10, 1, 0, 4]), (0.99, [19, 1, 0, 6])]
)
def test_every_class_gives_its_rounded_share_and_keeps_a_node(fraction: float, expected: list[int]) -> None:
    codes = np.repeat([0, 1, 2, 3], [20, 2, 1, 7])
    nodes = np.random.default_rng(0).permutation(100)[:30]
    train, stopping = hold_out(nodes, codes, fraction, seed=3)
    assert sizes(nodes, codes, stopping) == expected
    assert sorted([*train, *stopping]) == sorted(nodes)


def test_the_same_seed_draws_the_same_nodes_and_another_seed_others() -> None:
    nodes, codes = np.arange(100), np.arange(100) % 2
    first = hold_out(nodes, codes, 0.3, seed=2**40)[1]
    assert np.array_equal(first, hold_out(nodes, codes, 0.3, seed=2**40)[1])
    assert not np.array_equal(first, hold_out(nodes, codes, 0.3, seed=2**41)[1])
    assert not np.array_equal(first, hold_out(nodes, codes, 0.3, seed=0)[1])


def test_the_draw_does_not_depend_on_the_order_of_the_nodes() -> None:
    nodes, codes = np.arange(40), np.arange(40) % 3
    order = np.random.default_rng(0).permutation(40)
    straight, mixed = hold_out(nodes, codes, 0.3, seed=1)[1], hold_out(nodes[order], codes[order], 0.3, seed=1)[1]
    assert set(straight) == set(mixed)


def test_a_node_listed_twice_stays_on_one_side() -> None:
    nodes, codes = np.tile(np.arange(20), 3), np.tile(np.arange(20) % 2, 3)
    train, stopping = hold_out(nodes, codes, 0.5, seed=0)
    assert not set(train) & set(stopping)
    assert (len(train), len(stopping)) == (30, 30)


def test_one_node_in_every_class_is_watched_as_it_trains_and_a_warning_says_so(graph: Graph) -> None:
    model = MLPNodeClassifier(graph, hidden=8, max_epochs=2, random_state=0)
    with pytest.warns(
        UserWarning, match="Every class has one node only, so early stopping watches the training nodes"
    ) as said:
        model.fit([3, 40, 70], ["a", "b", "c"])
    assert model.train_nodes_.tolist() == model.stopping_nodes_.tolist() == [3, 40, 70]
    assert said[0].filename == __file__  # the caller's line: Python shows a warning once per line


def test_a_fraction_given_to_fit_replaces_that_of_the_constructor(graph: Graph) -> None:
    nodes, labels = np.arange(20), np.arange(20) % 2
    model = MLPNodeClassifier(graph, stopping=0.5, hidden=8, max_epochs=2, random_state=0)
    assert len(model.fit(nodes, labels).stopping_nodes_) == 10
    assert len(model.fit(nodes, labels, stopping=0.2).stopping_nodes_) == 4
    assert np.array_equal(model.stopping_nodes_, hold_out(nodes, labels, 0.2, seed=0)[1])
