"""Attributions against dense twins: the matrix P from unit vectors, contributions entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from pprop import Chebyshev, Exact, Graph, InputError, Limit, PowerIteration
from pprop.propagation import PPROperator, Solver
from pprop.propagation.attribution import Attribution, Attributor

ALPHA = 0.15
SOLVERS = [PowerIteration(0), PowerIteration(1), PowerIteration(4), Exact()]


def predictions(n: int, c: int = 2) -> NDArray[np.float64]:
    return np.random.default_rng(5).normal(size=(n, c))


def twin(T: NDArray[np.float64], solver: Solver, alpha: float = ALPHA) -> NDArray[Any]:
    """P of a dense T, from the definition."""
    n = len(T)
    if not isinstance(solver, PowerIteration):
        return alpha * np.linalg.inv(np.eye(n) - (1 - alpha) * T)
    power = np.eye(n)
    for _ in range(solver.steps):
        power = (1 - alpha) * T @ power + alpha * np.eye(n)
    return power


def total(one: Attribution) -> NDArray[np.float64]:
    return one.contributions.sum(axis=0) + one.others


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_are_the_entries_of_the_operator_that_the_model_uses(
    make_graph: Any, dense_transition: Any, solver: Solver, normalization: str, directed: bool, weighted: bool
) -> None:
    graph, A = make_graph(directed=directed, weighted=weighted)
    H, P = predictions(9), twin(dense_transition(A, normalization), solver)
    attributor = Attributor(H, PPROperator(graph, ALPHA, normalization), solver)
    for node, one in enumerate(attributor.exact(np.arange(9), most=9)):
        row = np.zeros(9)
        row[one.nodes] = one.weights
        np.testing.assert_allclose(row, P[node], atol=1e-7)
        np.testing.assert_allclose(one.contributions, P[node][one.nodes, None] * H[one.nodes], atol=1e-6)
        np.testing.assert_allclose(one.value, P[node] @ H, atol=1e-6)
        np.testing.assert_allclose(attributor.value[node], P[node] @ H, atol=1e-12)
        assert one.other_count == 0
        assert one.error == 0.0


def test_the_largest_are_named_and_the_rest_is_one_sum(make_random: Any, dense_transition: Any) -> None:
    graph, A = make_random(60)
    H, P = predictions(60), twin(dense_transition(A), PowerIteration(3))
    [one] = Attributor(H, PPROperator(graph, ALPHA), PowerIteration(3)).exact(np.array([7]), most=4)
    sizes = P[7] * np.abs(H).sum(axis=1)
    named = np.argsort(-sizes)[:4]
    assert one.nodes.tolist() == named.tolist()
    np.testing.assert_allclose(one.shares, sizes[named] / sizes.sum(), rtol=1e-12)
    np.testing.assert_allclose(one.other_share, 1 - one.shares.sum(), rtol=1e-12)
    np.testing.assert_allclose(one.others, np.delete(P[7], named) @ np.delete(H, named, axis=0), atol=1e-14)
    assert one.other_count == np.count_nonzero(P[7]) - 4 < 56  # three steps do not reach all nodes


@pytest.mark.parametrize("solver", [PowerIteration(10), Exact()], ids=repr)
def test_many_nodes_together_are_explained_as_one_by_one(make_random: Any, solver: Solver) -> None:
    graph, _ = make_random(50, directed=True, weighted=True)
    attributor = Attributor(predictions(50), PPROperator(graph, ALPHA), solver)
    nodes = np.array([3, 3, 49, *range(20)])  # no multiple of the rows of a task, one node twice
    for node, one in zip(nodes, attributor.exact(nodes, most=5), strict=True):
        [alone] = attributor.exact(np.array([node]), most=5)
        assert one.node == alone.node == node
        assert one.nodes.tolist() == alone.nodes.tolist()
        np.testing.assert_allclose(one.contributions, alone.contributions, rtol=1e-12)
        np.testing.assert_allclose(one.others, alone.others, atol=1e-14)


@pytest.mark.parametrize("solver", [PowerIteration(2), PowerIteration(10), Exact()], ids=repr)
@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("eps", [0.1, 1e-2, 1e-3])
def test_the_fast_mode_misses_what_it_says_and_no_more(
    make_random: Any, dense_transition: Any, solver: Solver, normalization: str, directed: bool, eps: float
) -> None:
    graph, A = make_random(80, directed=directed, weighted=True)
    H, P = predictions(80), twin(dense_transition(A, normalization), solver)
    attributor = Attributor(H, PPROperator(graph, ALPHA, normalization), solver)
    for one in attributor.fast(np.array([0, 11, 79]), 80, eps):
        row = np.zeros(80)
        row[one.nodes] = one.weights
        assert (row <= P[one.node] + 1e-12).all()  # from below
        missing = (np.abs((P[one.node] - row)[:, None] * H)).sum()
        assert missing <= one.error <= missing + 1e-7
        np.testing.assert_allclose(total(one), P[one.node] @ H, atol=1e-12)


@pytest.mark.parametrize("solver", [PowerIteration(5), Exact()], ids=repr)
def test_the_fast_mode_knows_of_graphs_without_self_loops(
    make_random: Any, dense_transition: Any, solver: Solver
) -> None:
    graph, A = make_random(30)
    H, P = predictions(30), twin(dense_transition(A, "sym", self_loops=False), solver)
    attributor = Attributor(H, PPROperator(graph, ALPHA, "sym", self_loops=False), solver)
    [one] = attributor.fast(np.array([3]), 30, 1e-10)
    np.testing.assert_allclose(one.weights, P[3][one.nodes], atol=1e-8)


def test_a_smaller_eps_has_a_smaller_error(make_random: Any) -> None:
    graph, _ = make_random(200)
    attributor = Attributor(predictions(200), PPROperator(graph, ALPHA), Exact())
    errors = [attributor.fast(np.array([5]), 10, eps)[0].error for eps in (1e-1, 1e-2, 1e-3, 1e-5, 1e-9)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 1.0
    assert errors[-1] < 1e-5


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_an_eps_that_no_push_can_reach_is_refused_in_the_name_of_the_caller(make_random: Any, alpha: float) -> None:
    graph, _ = make_random(40)
    attributor = Attributor(predictions(40), PPROperator(graph, alpha), Exact())
    least = 64 * 2.0**-53 / alpha
    with pytest.raises(InputError, match=f"^The 'eps' parameter of explain must be at least {least:.2g}, what float64"):
        attributor.fast(np.array([5]), 10, 0.9 * least)
    assert attributor.fast(np.array([5]), 10, 1.1 * least)[0].error < 1e-7


def test_pushing_leaves_no_trace_for_the_next_node(make_random: Any) -> None:
    graph, _ = make_random(40)
    operator = PPROperator(graph, ALPHA)
    used = Attributor(predictions(40), operator, PowerIteration(10))
    used.fast(np.arange(40), 3, 1e-3)
    for node in (0, 17):
        [again] = used.fast(np.array([node]), 40, 1e-3)
        [fresh] = Attributor(predictions(40), operator, PowerIteration(10)).fast(np.array([node]), 40, 1e-3)
        assert again.weights.tolist() == fresh.weights.tolist()


@pytest.mark.parametrize("mode", ["exact", "fast"])
@pytest.mark.parametrize("solver", [PowerIteration(10), Exact(), Limit()], ids=repr)
def test_a_node_without_an_edge_explains_itself(mode: str, solver: Solver) -> None:
    graph = Graph.from_scipy(sparse.csr_array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    attributor = Attributor(predictions(3), PPROperator(graph, 0.0 if solver == Limit() else ALPHA), solver)
    if mode == "fast" and solver == Limit():
        with pytest.raises(InputError, match="cannot explain Limit"):
            attributor.fast(np.array([2]), 5, 1e-6)
        return
    [one] = attributor.exact(np.array([2]), 5) if mode == "exact" else attributor.fast(np.array([2]), 5, 1e-9)
    assert one.nodes.tolist() == [2]
    np.testing.assert_allclose(one.contributions[0], predictions(3)[2], rtol=1e-6)
    np.testing.assert_allclose(one.shares, [1.0], rtol=1e-6)
    assert one.other_count == 0
    assert one.other_share <= (0.0 if mode == "exact" else 1e-6)


def test_without_propagation_a_node_explains_itself_also_where_it_predicts_nothing() -> None:
    H = np.array([[0.0, 0.0], [3.0, -1.0]])
    nothing, something = Attributor(H, None, None).exact(np.array([0, 1]), most=10)
    assert (nothing.nodes.tolist(), nothing.shares.tolist(), nothing.other_share) == ([0], [0.0], 0.0)
    assert something.contributions.tolist() == [[3.0, -1.0]]
    assert something.shares.tolist() == [1.0]


def test_a_solver_to_a_tolerance_is_explained_by_the_fixed_point(make_graph: Any, dense_transition: Any) -> None:
    graph, A = make_graph(directed=False, weighted=True)
    H, P = predictions(9), twin(dense_transition(A), Exact())
    [one] = Attributor(H, PPROperator(graph, ALPHA), Chebyshev(0.1)).exact(np.array([1]), most=3)
    np.testing.assert_allclose(one.weights, P[1][one.nodes], atol=1e-8)
    np.testing.assert_allclose(total(one), P[1] @ H, atol=1e-6)


def test_rows_come_from_the_dense_matrix_where_a_polynomial_would_have_too_many_terms(make_graph: Any) -> None:
    graph, _ = make_graph(directed=True, weighted=False)
    operator, H = PPROperator(graph, 1e-3), predictions(9)
    [one] = Attributor(H, operator, Exact()).exact(np.array([4]), most=9)
    np.testing.assert_allclose(one.weights, operator.matrix[4][one.nodes], rtol=1e-12)


def test_what_a_graph_has_of_hubs_is_followed_too(dense_transition: Any) -> None:
    A = np.zeros((300, 300))
    A[0, 1:] = A[1:, 0] = 1.0  # a star: its centre sends to everybody
    H, solver = predictions(300), PowerIteration(10)
    P = twin(dense_transition(A), solver)
    attributor = Attributor(H, PPROperator(Graph.from_scipy(sparse.csr_array(A)), ALPHA), solver)
    for one in (*attributor.exact(np.array([0, 9]), 300), *attributor.fast(np.array([0, 9]), 300, 1e-6)):
        row = np.zeros(300)
        row[one.nodes] = one.weights
        np.testing.assert_allclose(row, P[one.node], atol=1e-4 if one.error else 1e-13)


def test_weights_too_small_for_float64_do_not_overrun_the_lists() -> None:
    tiny = sparse.csr_array(np.array([[0, 1e-300, 1.0], [1e-300, 0, 1e-320], [1.0, 1e-320, 0]]))
    attributor = Attributor(predictions(3), PPROperator(Graph.from_scipy(tiny), ALPHA), PowerIteration(50))
    for one in attributor.fast(np.arange(3), 3, 1e-15):
        np.testing.assert_allclose(total(one), attributor.value[one.node], atol=1e-12)
        assert len(set(one.nodes.tolist())) == len(one.nodes) <= 3


def test_refuses_a_solver_that_it_does_not_know() -> None:
    class Other(Solver):
        def bind(self, operator: PPROperator, kernels: Any) -> Any:
            return Exact().bind(operator, kernels)

    graph = Graph.from_scipy(sparse.csr_array([[0, 1], [1, 0]]))
    with pytest.raises(
        InputError, match=r"^The 'solver' parameter of explain must be PowerIteration\(steps\), Exact\(\)"
    ):
        Attributor(np.eye(2), PPROperator(graph, ALPHA), Other())
