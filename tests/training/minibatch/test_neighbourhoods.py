"""Neighbourhoods are the largest entries of PPR rows, with the mass of the whole row where that is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import pprop
from pprop import Graph, PropagationSettings
from pprop.propagation.operator import PPROperator
from pprop.scale import find_neighbourhoods


def dense_rows(graph: Graph, settings: PropagationSettings) -> np.ndarray:
    return PPROperator(graph, settings.alpha, settings.normalization, settings.self_loops).matrix


@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
def test_all_entries_are_the_rows_of_the_dense_matrix(graph: Graph, normalization: str):
    settings = PropagationSettings(0.2, normalization=normalization)
    nodes = np.array([0, 7, 60])
    found = find_neighbourhoods(graph, nodes, settings, neighbours=graph.n_nodes, eps=1e-12)
    np.testing.assert_allclose(found.matrix.toarray(), dense_rows(graph, settings)[nodes], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.kept, 1.0, rtol=1e-6)


@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
def test_the_largest_entries_are_kept_and_have_the_mass_of_the_row(graph: Graph, normalization: str):
    settings, nodes = PropagationSettings(0.2, normalization=normalization), np.array([3, 25])
    exact = dense_rows(graph, settings)[nodes]
    rows = find_neighbourhoods(graph, nodes, settings, neighbours=6, eps=1e-12).matrix.toarray()
    degrees = np.diff(graph.indptr) + 1.0
    power = {"sym": 0.5, "row": 0.0, "col": 1.0}[normalization]
    scale = (degrees[None] / degrees[nodes, None]) ** power  # makes the rows those of the row-stochastic matrix
    assert (np.count_nonzero(rows, axis=1) == 6).all()
    np.testing.assert_allclose((rows * scale).sum(axis=1), 1.0, rtol=1e-5)
    for row, true in zip(rows, exact, strict=True):
        largest = np.argsort(-true)[:6]
        assert set(np.flatnonzero(row)) == set(largest)
        shares = row[largest] / true[largest]
        np.testing.assert_allclose(shares, shares[0], rtol=1e-5)


def test_rows_of_a_directed_graph_whose_mass_is_not_known_stay_as_they_are():
    arrows = sparse.csr_array(np.array([[0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 1, 0]], dtype=float))
    graph, settings = Graph.from_scipy(arrows, directed=True), PropagationSettings(0.3)
    found = find_neighbourhoods(graph, [0, 1], settings, neighbours=4, eps=1e-12)
    assert np.isnan(found.kept).all()
    np.testing.assert_allclose(found.matrix.toarray(), dense_rows(graph, settings)[:2], rtol=1e-5)


def test_a_node_without_neighbours_is_its_own_neighbourhood(graph: Graph):
    found = find_neighbourhoods(graph, [60], PropagationSettings())
    assert found.matrix.indices.tolist() == [60]
    np.testing.assert_allclose(found.matrix.data, 1.0, rtol=1e-6)


def test_rows_of_some_nodes_are_numbered_by_the_nodes_that_occur(graph: Graph):
    found = find_neighbourhoods(graph, [5, 40, 60], PropagationSettings(), neighbours=5)
    members, rows = found.of(np.array([60, 5, 60]))
    assert members.tolist() == sorted({60, *found.matrix[[0]].indices.tolist()})
    whole = np.zeros((3, graph.n_nodes), dtype=np.float32)
    whole[:, members] = rows.toarray()
    np.testing.assert_array_equal(whole, found.matrix.toarray()[[2, 0, 2]])


@pytest.mark.parametrize("neighbours", [0, -3, 1.5, None])
def test_fewer_than_one_neighbour_is_refused(graph: Graph, neighbours: object):
    with pytest.raises(pprop.InputError, match="'neighbours' parameter of find_neighbourhoods must be an integer"):
        find_neighbourhoods(graph, [0], PropagationSettings(), neighbours=neighbours)  # pyright: ignore[reportArgumentType]


def test_a_propagation_without_teleport_is_refused(graph: Graph):
    with pytest.raises(pprop.InputError, match="'alpha' parameter of find_neighbourhoods must be above 0"):
        find_neighbourhoods(graph, [0], PropagationSettings(0.0))
