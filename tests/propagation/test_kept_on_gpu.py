"""On a GPU a graph keeps what `propagate` has bound: later calls give the same numbers, and two threads do not share it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import pprop

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
SOLVERS = [pprop.PowerIteration(10), pprop.Chebyshev(1e-5), pprop.ConjugateGradient(1e-5), pprop.Contraction(1e-5)]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_later_calls_give_the_numbers_of_the_first(make_random, solver):
    graph, _ = make_random(40)
    for columns in (3, 5, 3):
        H = torch.rand(graph.n_nodes, columns, generator=torch.Generator().manual_seed(columns)).cuda()
        expected = pprop.propagate(graph, H.cpu().double(), 0.1, solver)
        for _ in range(3):
            torch.testing.assert_close(
                pprop.propagate(graph, H, 0.1, solver).cpu().double(), expected, rtol=2e-5, atol=2e-5
            )
    assert len(graph.of_structure["bound"]) == 1


def test_a_graph_keeps_the_last_few_and_each_for_its_own_settings(make_random):
    graph, _ = make_random(40)
    H = torch.rand(graph.n_nodes, 2).cuda()
    for alpha in (0.1, 0.2, 0.3, 0.4, 0.5, 0.1):
        expected = pprop.propagate(graph, H.cpu().double(), alpha)
        torch.testing.assert_close(pprop.propagate(graph, H, alpha).cpu().double(), expected, rtol=2e-5, atol=2e-5)
    assert len(graph.of_structure["bound"]) == 4


def test_threads_have_one_each(make_random):
    (graph, _), solver = make_random(40), pprop.Chebyshev(1e-5)
    inputs = [torch.rand(graph.n_nodes, 2).cuda() for _ in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda H: pprop.solve(graph, H, 0.1, solver), inputs))
    for H, solution in zip(inputs, found, strict=True):
        expected = pprop.propagate(graph, H.cpu().double(), 0.1, solver)
        torch.testing.assert_close(solution.value.cpu().double(), expected, rtol=2e-5, atol=2e-5)
