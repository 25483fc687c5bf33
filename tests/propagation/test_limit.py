"""The limit of power iteration without teleport, against high powers of the dense matrix."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from scipy import sparse

import pprop
from pprop import Graph, InputError, Limit, PowerIteration, Propagation, propagate, solve
from pprop.propagation import PPROperator


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
def test_it_is_a_high_power_of_the_matrix_also_on_several_components(
    make_graph, dense_transition, library_matrix, backend, weighted, normalization
):
    graph, A = make_graph(directed=False, weighted=weighted)
    power = np.linalg.matrix_power(dense_transition(A, normalization), 10**6)
    found = library_matrix(graph, alpha=0, solver=Limit(), normalization=normalization, backend=backend)
    np.testing.assert_allclose(found, power, rtol=0, atol=1e-9)  # a million products of the power round
    rows = Limit().rows(PPROperator(graph, 0.0, normalization), np.array([8, 2]), np.float64)
    np.testing.assert_allclose(rows, found[[8, 2]], rtol=0, atol=1e-15)


def test_on_a_connected_graph_it_is_the_papers_projection_on_the_root_of_the_degrees(make_random, backend):
    graph, A = make_random(30)
    v = np.sqrt(A.sum(axis=0) + 1)
    v /= np.linalg.norm(v)
    H = np.random.default_rng(0).standard_normal((30, 3))
    Z = propagate(graph, H, 0, Limit(), backend=backend)
    np.testing.assert_allclose(Z, np.outer(v, v) @ H, rtol=0, atol=1e-14)
    np.testing.assert_allclose(propagate(graph, H, 0, PowerIteration(2000), backend=backend), Z, rtol=0, atol=1e-12)


@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
def test_its_gradient_is_that_of_its_matrix(make_graph, library_matrix, backend, normalization):
    graph, _ = make_graph(directed=False, weighted=True)
    P = library_matrix(graph, alpha=0, solver=Limit(), normalization=normalization, backend=backend)
    H = torch.randn(2, 9, 3, dtype=torch.float64, requires_grad=True)
    G = np.random.default_rng(1).standard_normal((2, 9, 3))
    Propagation(graph, 0, Limit(), normalization, backend=backend)(H).backward(torch.from_numpy(G))
    assert H.grad is not None
    np.testing.assert_allclose(H.grad, P.T @ G, rtol=0, atol=1e-14)


def test_dropout_removes_entries_of_its_matrix_and_scales_the_others(make_graph, backend):
    graph, _ = make_graph(directed=False, weighted=True)
    P = Limit().rows(PPROperator(graph, 0.0), np.arange(9), np.float64)
    layer = Propagation(graph, 0, Limit(), dropout=0.25, backend=backend)
    once = layer(torch.eye(9, 3, dtype=torch.float64)).numpy()
    kept = once != 0
    assert 0 < kept.sum() < (P[:, :3] != 0).sum()
    np.testing.assert_allclose(once[kept], P[:, :3][kept] / 0.75, rtol=1e-14)


def test_a_solution_is_a_fixed_point_without_products(make_random, backend):
    graph, _ = make_random(30, weighted=True)
    solution = solve(graph, np.eye(30, 3), 0, Limit(), backend=backend)
    assert (solution.outcome, solution.statistics.matrix_products) == (pprop.Outcome.EXACT, 0)
    assert solution.statistics.residual < 1e-14
    assert solution.statistics.error_bound is None


@pytest.mark.parametrize("alpha", [0.1, 1])
def test_another_alpha_is_refused(make_random, alpha):
    graph, _ = make_random(5)
    sentence = rf"^The 'alpha' parameter of propagate must be 0 with Limit\(\)\. Got {alpha} instead\. Use Exact\(\) "
    with pytest.raises(InputError, match=sentence):
        propagate(graph, np.ones(5), alpha, Limit())


def test_a_directed_graph_is_refused(make_graph):
    graph, _ = make_graph(directed=True, weighted=False)
    with pytest.raises(InputError, match=r"^The 'graph' parameter of Limit must be undirected\. Got a directed graph"):
        propagate(graph, np.ones(9), 0, Limit())


def test_powers_that_alternate_are_refused():
    """Without self-loops a bipartite component swaps its halves at every step; a triangle does not."""
    path, triangle = [[0, 1, 0], [1, 0, 1], [0, 1, 0]], [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    both = Graph.from_scipy(sparse.block_diag([triangle, path]).tocsr())
    with pytest.raises(InputError, match=r"Got a graph in which the component of node 3 is bipartite"):
        propagate(both, np.ones(6), 0, Limit(), self_loops=False)
    alone = Graph.from_scipy(sparse.csr_array(triangle))
    np.testing.assert_allclose(propagate(alone, [3.0, 0.0, 0.0], 0, Limit(), self_loops=False), np.ones(3))


def test_a_model_trains_with_it():
    graph = pprop.load_dataset("citeseer")
    split = pprop.paper_split(graph, seed=2144199730)
    settings = pprop.PropagationSettings(alpha=0.0, solver=Limit(), dropout=0.5)
    model = dataclasses.replace(pprop.APPNP(), propagation=settings)
    trained = pprop.train(model, graph, split, stopping=pprop.Stopping(max_epochs=3), backend="reference")
    # all that propagation leaves is one direction, so that all nodes have the same class
    assert len(set(trained.predict(np.arange(graph.n_nodes))[0])) == 1
    degree = np.asarray(graph.adjacency.sum(axis=1)) + 1
    direction = trained.logits[0] / np.sqrt(degree)[:, None]
    np.testing.assert_allclose(direction, np.broadcast_to(direction[0], direction.shape), rtol=1e-5)
