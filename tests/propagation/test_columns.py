"""Columns of walks, structure and known labels, against dense matrices and against leaving labels away."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from pprop import Graph, transition_matrix
from pprop.propagation.columns import known_nearby, structure_columns, walk_statistics
from pprop.propagation.columns.structure import RETURNS


def random_graph(seed: int, *, directed: bool = False, weighted: bool = False, n: int = 40) -> Graph:
    rng = np.random.default_rng(seed)
    A = (rng.random((n, n)) < 0.12) * (rng.integers(1, 9, (n, n)) / 4 if weighted else 1.0)
    A[:, 3] = A[3] = 0.0  # an isolated node
    return Graph.from_scipy(sp.csr_array(A if directed else np.triu(A, 1) + np.triu(A, 1).T), directed)


def ends(graph: Graph, steps: int, *, against: bool = False) -> np.ndarray:
    """Return the dense distribution of the ends of walks, shape (n, n)."""
    whole = Graph.from_scipy(graph.adjacency.T, directed=True) if against else graph
    T = transition_matrix(whole, "row", self_loops=False).to_scipy().toarray()
    return np.linalg.matrix_power(T, steps)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(
    ("directed", "weighted", "against"),
    [(False, False, False), (False, True, False), (True, True, False), (True, False, True)],
)
def test_statistics_are_those_of_the_distribution_of_ends(
    directed: bool, weighted: bool, against: bool, gaps: bool
) -> None:
    graph = random_graph(1, directed=directed, weighted=weighted)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 21)) * 10.0 ** rng.integers(-3, 4, 21)
    if gaps:
        X[rng.random(X.shape) < 0.4] = np.nan
        X[:, 0] = np.nan
    for hop in walk_statistics(graph, X, 3, 3, against=against):
        assert hop.deviation is not None
        assert hop.largest is not None
        assert hop.smallest is not None
        P = ends(graph, hop.steps, against=against)
        known = ~np.isnan(X)
        mass = P @ known
        with np.errstate(invalid="ignore"):
            mean = P @ np.where(known, X, 0) / mass
            for i in range(40):
                for q in range(21):
                    there = (P[i] > 0) & known[:, q]
                    if not there.any():
                        assert np.isnan(
                            [hop.mean[i, q], hop.deviation[i, q], hop.largest[i, q], hop.smallest[i, q]]
                        ).all()
                        continue
                    x, p = X[there, q], P[i, there] / mass[i, q]
                    size = np.abs(X[:, q][known[:, q]]).max()
                    assert abs(hop.mean[i, q] - mean[i, q]) < 1e-6 * size
                    assert abs(hop.deviation[i, q] - np.sqrt(p @ (x - p @ x) ** 2)) < 1e-3 * size
                    assert hop.largest[i, q] == np.float32(x.max())
                    assert hop.smallest[i, q] == np.float32(x.min())


def test_the_deviation_of_equal_numbers_is_exactly_zero() -> None:
    graph = random_graph(3, weighted=True)
    for hop in walk_statistics(graph, np.full((40, 3), 0.1), 3, 3):
        assert hop.deviation is not None
        assert hop.deviation.max() == 0.0
        assert np.array_equal(hop.mean, np.full((40, 3), np.float32(0.1)))


def test_bits_of_a_column_do_not_depend_on_the_others() -> None:
    graph = random_graph(4, weighted=True)
    X = np.random.default_rng(0).normal(size=(40, 19))
    for whole, alone in zip(walk_statistics(graph, X, 2, 2), walk_statistics(graph, X[:, 7:8], 2, 2), strict=True):
        for one, other in zip(whole[1:], alone[1:], strict=True):
            assert one is not None
            assert other is not None
            assert np.array_equal(one[:, 7:8], other)


@pytest.mark.parametrize(("directed", "weighted"), [(False, False), (False, True), (True, False)])
def test_returns_are_the_diagonals_of_powers(directed: bool, weighted: bool) -> None:
    graph = random_graph(5, directed=directed, weighted=weighted)
    columns, left_out = structure_columns(graph)
    both = (graph.undirected() if directed else graph).without_self_loops()
    A = both.adjacency.toarray()
    with np.errstate(invalid="ignore"):
        P = np.nan_to_num(A / A.sum(axis=1, keepdims=True))
    for steps, name in zip((2, 3, 4), RETURNS, strict=True):
        assert np.allclose(columns[name], np.diag(np.linalg.matrix_power(P, steps)), atol=1e-14)
    assert left_out == ()
    assert structure_columns(graph, most_walks=10)[1] == RETURNS


def test_pagerank_is_that_of_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    A = random_graph(6).adjacency.toarray()
    graph = Graph.from_scipy(sp.csr_array(A))
    expected = networkx.pagerank(
        networkx.from_numpy_array(np.where(A.sum(1) == 0, np.eye(40), A)), alpha=0.85, tol=1e-12
    )
    rank = np.exp(structure_columns(graph)[0]["log PageRank"]) / 40
    assert np.allclose(rank, [expected[node] for node in range(40)], rtol=2e-3)


@pytest.mark.parametrize("directed", [False, True])
def test_no_node_sees_its_own_label(directed: bool) -> None:
    graph = random_graph(7, directed=directed)
    rng = np.random.default_rng(0)
    nodes = rng.permutation(40)[:24]
    values = (rng.random((24, 1)) < 0.5).astype(float)
    folds = rng.permutation(24) % 4
    before = after = known_nearby(graph, nodes, values, folds, ["y"])
    for one in range(24):
        flipped = values.copy()
        flipped[one] = 1 - flipped[one]
        after = known_nearby(graph, nodes, flipped, folds, ["y"])
        for name, column in before.items():
            assert column[nodes[one]] == after[name][nodes[one]], name
    assert any((column != after[name]).any() for name, column in before.items())


def test_shares_of_an_unlabelled_node_are_drawn_to_the_mean_of_all() -> None:
    star = Graph.from_scipy(sp.csr_array([[0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]))
    columns = known_nearby(star, np.array([1, 2]), np.array([[1.0], [1.0]]), np.array([0, 1]), ["y"], prior=2.0)
    assert columns["y 1 away"][0] == pytest.approx((2 + 2 * 1.0) / (2 + 2))
    columns = known_nearby(star, np.array([1, 2]), np.array([[1.0], [0.0]]), np.array([0, 1]), ["y"], prior=2.0)
    assert columns["y 1 away"][0] == pytest.approx((1 + 2 * 0.5) / (2 + 2))
    assert columns["known 1 away"][0] == pytest.approx(np.log(3))
    assert columns["y 2 away"][3] == pytest.approx(((1 / 3) + 2 * 0.5) / (2 / 3 + 2))
