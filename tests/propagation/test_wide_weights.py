"""Edge weights that range over hundreds of orders of magnitude, against decimal arithmetic with 80 digits."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import pprop
from pprop import Graph, InputError
from pprop.graph import transition_matrix
from pprop.kernels import Draw
from pprop.propagation.attribution import Attributor
from pprop.propagation.operator import PPROperator
from pprop.propagation.solvers import Solver

pytestmark = pytest.mark.slow

ALPHA = 0.25
Matrix = tuple[tuple[Decimal, ...], ...]

EDGES: dict[str, list[tuple[int, int, float]]] = {
    "two components": [(0, 1, 1e300), (1, 2, 3e300), (3, 4, 1e-300), (4, 5, 2e-300)],
    "two components, less far": [(0, 1, 1e300), (1, 2, 3e300), (3, 4, 1e-12), (4, 5, 2e-12)],
    "beyond float32": [(0, 1, 1e20), (1, 2, 3.0), (3, 4, 1e-20), (4, 5, 2e-20)],
    "denormal": [(0, 1, 1e-310), (1, 2, 3e-310), (3, 4, 2e-310), (4, 5, 1e-310)],
    "one component": [(0, 1, 1e300), (1, 2, 3.0), (2, 3, 1e-30), (3, 4, 1e-300), (4, 5, 2e-300)],
    "falling along a path": [(0, 1, 1e10), (1, 2, 1e-5), (2, 3, 1e-20), (3, 4, 1e-35), (4, 5, 1e-50)],
    "sums beyond the largest float": [(0, 1, 1.7e308), (1, 2, 1.7e308), (2, 0, 1.7e308), (3, 4, 1.7e308), (4, 5, 1.0)],
}
EPS_IN_UNIT_OF_WEIGHTS = ("beyond float32", "falling along a path")
CASES = pytest.mark.parametrize("name", EDGES)
NORMALIZATIONS = pytest.mark.parametrize("normalization", ["sym", "row", "col"])
SELF_LOOPS = pytest.mark.parametrize("self_loops", [False, True])
DIRECTED = pytest.mark.parametrize("directed", [False, True])


@pytest.fixture(autouse=True)
def many_digits() -> Iterator[None]:
    with decimal.localcontext(prec=80):
        yield


@cache
def graph_of(name: str, directed: bool) -> Graph:
    u, v, weights = (np.array(column) for column in zip(*EDGES[name], strict=True))
    if directed:  # node 5 then sends to nobody
        return Graph.from_scipy(sp.coo_array((weights, (u, v)), shape=(6, 6)).T, directed=True)
    both = (np.r_[weights, weights], (np.r_[u, v], np.r_[v, u]))
    return Graph.from_scipy(sp.coo_array(both, shape=(6, 6)))


def predictions() -> np.ndarray:
    return np.array([[1, 0, 2], [2, 0, 1], [0.5, 3, 0.5], [4, 0, 1], [0.25, 0, 3], [8, 1, 1]])


@cache
def exact_transition(graph: Graph, normalization: str, self_loops: bool) -> Matrix:
    """T to 80 digits."""
    n = graph.n_nodes
    A = [[Decimal(float(x)) for x in row] for row in graph.adjacency.toarray()]
    for i in range(n):
        if A[i][i] == 0 and (self_loops or not any(A[i])):
            A[i][i] = Decimal(1)
    rows = [sum(row, Decimal(0)) for row in A]
    columns = [sum((A[i][j] for i in range(n)), Decimal(0)) for j in range(n)]

    def entry(i: int, j: int) -> Decimal:
        if A[i][j] == 0:
            return Decimal(0)
        if normalization == "sym":
            return A[i][j] / (rows[i] * columns[j]).sqrt()
        return A[i][j] / (rows[i] if normalization == "row" else columns[j])

    return tuple(tuple(entry(i, j) for j in range(n)) for i in range(n))


@cache
def exact_steps(T: Matrix, steps: int) -> np.ndarray:
    n, alpha = len(T), Decimal(ALPHA)
    start = [[Decimal(float(x)) for x in row] for row in predictions()]
    state = start
    for _ in range(steps):
        state = [
            [
                (1 - alpha) * sum(T[i][j] * state[j][c] for j in range(n)) + alpha * start[i][c]
                for c in range(len(start[0]))
            ]
            for i in range(n)
        ]
    return np.array([[float(x) for x in row] for row in state])


@cache
def exact_ppr(T: Matrix) -> np.ndarray:
    """alpha (I - (1 - alpha) T)^-1 by Gauss and Jordan."""
    n, alpha = len(T), Decimal(ALPHA)
    M = [[Decimal(int(i == j)) - (1 - alpha) * T[i][j] for j in range(n)] for i in range(n)]
    inverse = [[alpha * int(i == j) for j in range(n)] for i in range(n)]
    for k in range(n):
        pivot = M[k][k]
        M[k], inverse[k] = [x / pivot for x in M[k]], [x / pivot for x in inverse[k]]
        for i in range(n):
            if i != k and M[i][k] != 0:
                factor = M[i][k]
                M[i] = [x - factor * y for x, y in zip(M[i], M[k], strict=True)]
                inverse[i] = [x - factor * y for x, y in zip(inverse[i], inverse[k], strict=True)]
    return np.array([[float(x) for x in row] for row in inverse])


def close(actual: np.ndarray, expected: np.ndarray, rtol: float) -> None:
    """To rounding relative to every entry; what is below the smallest normal number may be lost."""
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=64 * float(np.finfo(actual.dtype).tiny))


@CASES
@NORMALIZATIONS
@SELF_LOOPS
@DIRECTED
def test_a_transition_matrix_has_the_entries_of_many_digits(
    name: str, normalization: str, self_loops: bool, directed: bool
) -> None:
    graph = graph_of(name, directed)
    T = transition_matrix(graph, normalization, self_loops)
    expected = np.array([[float(x) for x in row] for row in exact_transition(graph, normalization, self_loops)])
    close(T.to_scipy().toarray(), expected, 1e-14)
    close(T.transpose.to_scipy().toarray(), expected.T, 1e-14)


@CASES
@NORMALIZATIONS
@SELF_LOOPS
@DIRECTED
def test_propagation_is_that_of_many_digits(name: str, normalization: str, self_loops: bool, directed: bool) -> None:
    graph, H = graph_of(name, directed), predictions()
    T = exact_transition(graph, normalization, self_loops)
    steps, limit = exact_steps(T, 3), exact_ppr(T) @ H
    norms = {"sym": lambda x: np.linalg.norm(x, axis=0), "row": lambda x: abs(x).max(0), "col": lambda x: abs(x).sum(0)}
    size = norms[normalization]
    for dtype in (np.float64, np.float32):
        unit = float(np.finfo(dtype).eps)
        arguments = graph, H.astype(dtype), ALPHA
        for backend in ("numba", "reference"):
            stepped = pprop.propagate(*arguments, pprop.PowerIteration(3), normalization, self_loops, backend=backend)
            close(stepped, steps, 16 * unit)
        if dtype == np.float64:  # the matrix of Exact is of float64 for any predictions
            exact = pprop.propagate(*arguments, pprop.Exact(), normalization, self_loops)
            assert (size(exact - limit) <= 16 * unit * size(limit)).all()
        solved = pprop.propagate(*arguments, pprop.Contraction(1e-4), normalization, self_loops)
        assert (size(solved - limit) <= 1e-4 * size(limit)).all()


@CASES
@NORMALIZATIONS
@SELF_LOOPS
@pytest.mark.parametrize("solver", [pprop.Chebyshev(1e-4), pprop.ConjugateGradient(1e-4)])
def test_solvers_of_undirected_graphs_are_right_or_refuse_to_weigh_by_such_degrees(
    name: str, normalization: str, self_loops: bool, solver: Solver
) -> None:
    graph, H = graph_of(name, False), predictions()
    limit = exact_ppr(exact_transition(graph, normalization, self_loops)) @ H
    for dtype in (np.float64, np.float32):
        arguments = graph, H.astype(dtype), ALPHA, solver, normalization, self_loops
        if normalization != "sym" and transition_matrix(graph, normalization, self_loops).folded:
            with pytest.raises(InputError, match=r"degrees within a factor of 2\^64.*Use Contraction\(tol=0.0001\)"):
                pprop.propagate(*arguments)
            continue
        wrong = pprop.propagate(*arguments) - limit
        if normalization == "sym":
            assert (np.linalg.norm(wrong, axis=0) <= 1e-4 * np.linalg.norm(limit, axis=0)).all()
        else:  # degrees weigh in the norm, and differ little within each component
            for part in (slice(0, 3), slice(3, 6)):
                size = np.linalg.norm(limit[part], axis=0)
                assert (np.linalg.norm(wrong[part], axis=0) <= 1e-3 * size + 1e-30).all()


@CASES
@NORMALIZATIONS
@SELF_LOOPS
@DIRECTED
def test_rows_by_push_are_below_the_exact_ones_by_no_more_than_they_say(
    name: str, normalization: str, self_loops: bool, directed: bool
) -> None:
    graph = graph_of(name, directed)
    expected = exact_ppr(exact_transition(graph, normalization, self_loops))
    rows = pprop.ppr(graph, np.arange(6), ALPHA, eps=1e-9, normalization=normalization, self_loops=self_loops)
    missing = expected - rows.matrix.toarray()
    assert (missing >= -1e-14 * expected).all()
    if rows.norm == "l1 before scaling":  # entry j of row i by sqrt(d_j / d_i), or by d_j / d_i
        d = graph.adjacency.sum(axis=1) + self_loops
        missing = missing * (d / d[:, None]) ** (0.5 if normalization == "sym" else 1.0)
    size = {"l2": np.linalg.norm(missing, axis=1), "max": missing.max(axis=1)}.get(rows.norm, missing.sum(axis=1))
    assert (size <= rows.error).all()
    assert (rows.error <= 1e-6).all() or name in EPS_IN_UNIT_OF_WEIGHTS


@CASES
@NORMALIZATIONS
@SELF_LOOPS
def test_a_live_graph_is_within_its_tolerance_or_refused(name: str, normalization: str, self_loops: bool) -> None:
    graph, H = graph_of(name, False), predictions()
    expected = exact_ppr(exact_transition(graph, normalization, self_loops)) @ H
    try:
        live = pprop.live(graph, H, ALPHA, tol=1e-6, normalization=normalization, self_loops=self_loops)
    except InputError as error:
        assert "degrees" in str(error)  # noqa: PT017  either is right, but nothing else
        assert normalization != "row" or name in ("denormal", "sums beyond the largest float")
        return
    assert (np.abs(live.logits() - expected) <= live.error_bound()[:, None]).all()
    live.remove_edge(4, 5)
    live.undo()
    assert (np.abs(live.logits() - expected) <= live.error_bound()[:, None]).all()


@pytest.mark.parametrize("name", ["two components", "denormal", "one component"])
@NORMALIZATIONS
@SELF_LOOPS
@pytest.mark.parametrize("solver", [pprop.PowerIteration(3), pprop.Exact()])
def test_contributions_add_up_to_the_exact_value(
    name: str, normalization: str, self_loops: bool, solver: Solver
) -> None:
    graph, H = graph_of(name, False), predictions()[:, :2]
    T = exact_transition(graph, normalization, self_loops)
    expected = exact_steps(T, 3)[:, :2] if isinstance(solver, pprop.PowerIteration) else exact_ppr(T) @ H
    attributor = Attributor(H, PPROperator(graph, ALPHA, normalization, self_loops), solver)
    for one in attributor.exact(np.arange(6), 6):
        np.testing.assert_allclose(one.value, expected[one.node], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(one.contributions.sum(axis=0), expected[one.node], rtol=1e-6, atol=1e-7)
    for one in attributor.fast(np.arange(6), 6, 1e-9):
        assert np.abs(one.value - one.contributions.sum(axis=0)).sum() <= one.error + 1e-12


@pytest.mark.parametrize("name", ["one component", "sums beyond the largest float"])
def test_the_limit_refuses_degrees_that_it_cannot_hold(name: str) -> None:
    with pytest.raises(InputError, match=r"degrees within a factor of 2\^64"):
        pprop.propagate(graph_of(name, False), predictions(), 0.0, pprop.Limit())


def test_the_limit_of_components_far_apart_is_the_mean_of_each() -> None:
    graph = graph_of("two components", False)
    # every node is a neighbour of itself, with a weight that vanishes in the first component and rules in the second
    value = pprop.propagate(graph, predictions(), 0.0, pprop.Limit(), "row")
    np.testing.assert_allclose(value[:3, 0], (1.0 * 1 + 2.0 * 4 + 0.5 * 3) / 8, rtol=1e-14)
    np.testing.assert_allclose(value[3:, 0], (4.0 + 0.25 + 8.0) / 3, rtol=1e-14)


@NORMALIZATIONS
def test_edge_dropout_normalises_the_weights_that_are_left(normalization: str) -> None:
    graph = graph_of("one component", False)
    dropped = PPROperator(graph, ALPHA, normalization).dropped(Draw(torch.tensor([1]), 0, 0.5), 0)
    kept = graph.adjacency.toarray() * (dropped.to_scipy().toarray() != 0)
    assert 0 < np.count_nonzero(kept) < graph.n_entries
    left = Graph.from_scipy(sp.csr_array(kept))
    expected = np.array([[float(x) for x in row] for row in exact_transition(left, normalization, True)])
    close(dropped.to_scipy().toarray(), expected, 1e-14)


def test_an_ordinary_graph_keeps_one_unit_for_all_weights() -> None:
    weights = [2.0**-k for k in range(0, 60, 4)]
    path = sp.diags_array([weights, weights], offsets=[-1, 1])
    T = transition_matrix(Graph.from_scipy(path), "row")
    assert T.symmetric
    assert not T.folded
    for i, (left, right) in enumerate(pairwise([0.0, *weights, 0.0])):
        assert T.row_scale[i] == 1.0 / (left + 1.0 + right)
