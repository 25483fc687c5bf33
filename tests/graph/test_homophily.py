"""Homophily and label informativeness, against the definitions on all pairs and against published figures."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from pprop import Graph, InputError, load_dataset
from pprop.graph.homophily import Homophily, homophily


def by_definition(A: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Return h, h_adj and LI by loops over pairs of nodes and of classes."""
    pairs = [(y[i], y[j]) for i in range(len(y)) for j in range(len(y)) if A[i, j] and i != j and min(y[i], y[j]) >= 0]
    m, classes = len(pairs), range(y.max() + 1)
    p = {a: sum(one == a for one, _ in pairs) / m for a in classes}
    h = sum(one == other for one, other in pairs) / m
    chance = sum(share**2 for share in p.values())
    mutual = 0.0
    for a in classes:
        for b in classes:
            share = sum(pair == (a, b) for pair in pairs) / m
            mutual += share * np.log(share / (p[a] * p[b])) if share else 0.0
    return h, (h - chance) / (1 - chance), -mutual / sum(share * np.log(share) for share in p.values() if share)


@pytest.mark.parametrize("seed", range(5))
def test_they_follow_the_definitions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((50, 50)) < 0.15, 1)
    y = rng.integers(0, 4, 50) - (rng.random(50) < 0.2)
    y[y < 0] = -1
    found = homophily(Graph.from_scipy(sp.csr_array((A | A.T).astype(float))), y)
    assert (found.edge, found.adjusted, found.informativeness) == pytest.approx(by_definition(A | A.T, y))


@pytest.mark.data
def test_pubmed_has_the_published_figures() -> None:
    found = homophily(load_dataset("pubmed"))
    assert found.adjusted is not None
    assert found.informativeness is not None
    # table 1 of Platonov et al. 2023: 0.80, 0.69, 0.41
    assert (round(found.edge, 2), round(found.adjusted, 2), round(found.informativeness, 2)) == (0.80, 0.69, 0.41)


def test_directions_weights_and_loops_do_not_count() -> None:
    rng = np.random.default_rng(0)
    A = np.triu(rng.random((30, 30)) < 0.2, 1)
    y = rng.integers(0, 3, 30)
    plain = homophily(Graph.from_scipy(sp.csr_array((A | A.T).astype(float))), y)
    weights = A * rng.random((30, 30)) + np.eye(30)
    weights[::2] += weights.T[::2]  # some edges in both directions
    assert homophily(Graph.from_scipy(sp.csr_array(weights), directed=True), y) == plain


def test_independent_neighbours_have_none_of_either() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 2000)
    A = sp.csr_array(rng.random((2000, 2000)) * (rng.random((2000, 2000)) < 0.01))
    found = homophily(Graph.from_scipy(A, directed=True), y)
    assert found.adjusted is not None
    assert found.informativeness is not None
    assert abs(found.adjusted) < 0.02
    assert found.informativeness < 0.001
    assert "no more often than by chance" in found.sentence


def test_what_cannot_be_said_is_none() -> None:
    graph = Graph.from_scipy(sp.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    assert homophily(graph, [0, -1, 0]) == Homophily(0, 0.0, None, None)
    assert homophily(graph, [0, 0, 0]) == Homophily(2, 1.0, None, None)
    assert "too few" in homophily(graph, [0, 1, 0]).sentence
    with pytest.raises(InputError, match="class indices of 3 nodes"):
        homophily(graph)
    with pytest.raises(InputError, match="class indices of 3 nodes"):
        homophily(graph, [0, 1])
