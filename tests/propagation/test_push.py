"""Sparse PPR rows by local push: against dense rows, a plain twin, and the errors they claim."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pprop import Graph, InputError, ppr
from pprop.graph import transition_matrix
from pprop.kernels.numba_cpu.push_rows import at_most
from pprop.propagation import LocalPush

ALPHA = 0.15
EVERY = [
    (d, w, n, s) for d in (False, True) for w in (False, True) for n in ("sym", "row", "col") for s in (True, False)
]


def exact_rows(T: Any, alpha: float) -> Any:
    return alpha * np.linalg.inv(np.eye(len(T)) - (1 - alpha) * T)


def hub_graph(n: int = 400, seed: int = 3) -> Graph:
    """A sparse random graph, two of whose nodes are joined to nearly half of it, and five to nobody."""
    rng = np.random.default_rng(seed)
    matrix: Any = sparse.random_array((n, n), density=3 / n, rng=rng).toarray()
    matrix[0, rng.choice(n, n // 2, replace=False)] = 1
    matrix[1, rng.choice(n, n // 3, replace=False)] = 1
    matrix = np.sign(matrix + matrix.T)
    np.fill_diagonal(matrix, 0)
    matrix[-5:, :] = matrix[:, -5:] = 0
    return Graph.from_scipy(sparse.csr_array(matrix))


def twin(graph: Graph, node: int, alpha: float, eps: float) -> tuple[dict[int, float], dict[int, float], int]:
    """Push on the row-stochastic matrix without added loops, first come, first served, in plain Python."""
    p: dict[int, float] = {}
    r, queue, touched = {node: 1.0}, deque([node]), 0
    while queue:
        u = queue.popleft()
        x, r[u] = r[u], 0.0
        p[u] = p.get(u, 0.0) + alpha * x
        row = graph.indices[graph.indptr[u] : graph.indptr[u + 1]].tolist()
        for v in row:
            touched += 1
            r[v] = r.get(v, 0.0) + (1 - alpha) * x / len(row)
            degree = graph.indptr[v + 1] - graph.indptr[v]
            if r[v] >= eps * degree and v not in queue:
                queue.append(v)
    return p, r, touched


@pytest.mark.parametrize(("directed", "weighted", "normalization", "self_loops"), EVERY)
def test_rows_agree_with_a_dense_inverse_within_the_error_they_claim(
    make_graph, dense_transition, directed, weighted, normalization, self_loops
):
    graph, A = make_graph(directed=directed, weighted=weighted)
    exact = exact_rows(dense_transition(A, normalization, self_loops), ALPHA)
    d = A.sum(1) + ((A.diagonal() == 0) if self_loops else (A.sum(1) == 0))
    for eps in (3e-2, 1e-3, 1e-9):
        rows = ppr(graph, np.arange(9), ALPHA, eps, normalization=normalization, self_loops=self_loops)
        missing = exact - rows.matrix.toarray()
        assert missing.min() > -1e-14  # never above the exact row
        if directed:
            size = {"row": missing.sum(1), "sym": np.sqrt((missing**2).sum(1)), "col": missing.max(1)}[normalization]
            assert rows.norm == {"row": "l1", "sym": "l2", "col": "max"}[normalization]
            assert (size <= rows.error).all()
        else:
            power = {"row": 0, "sym": 0.5, "col": 1}[normalization]
            assert rows.norm == ("l1 before scaling" if power else "l1")
            unscaled = missing * (d[None, :] / d[:, None]) ** power
            assert unscaled.sum(1) == pytest.approx(rows.error, abs=1e-12)  # not a bound: it is the error
            assert (unscaled <= eps * d + 1e-14).all()
        stored = rows.matrix.toarray() > 0
        assert (missing[stored] <= rows.entry_errors().toarray()[stored]).all()
    assert rows.matrix.toarray() == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize(("directed", "weighted", "normalization", "self_loops"), EVERY)
def test_a_row_is_p_and_the_rows_of_its_residuals(
    make_graph, dense_transition, directed, weighted, normalization, self_loops
):
    graph, A = make_graph(directed=directed, weighted=weighted)
    exact = exact_rows(dense_transition(A, normalization, self_loops), ALPHA)
    push = LocalPush(graph, ALPHA, normalization, self_loops)
    for node in range(9):
        row = push.row(node, eps=0.02)
        p, r = np.zeros(9), np.zeros(9)
        p[row.nodes], r[row.nodes] = row.values, row.residuals
        assert p + r @ exact == pytest.approx(exact[node], rel=1e-12, abs=1e-14)


def test_hub_rows_and_rows_of_nodes_alone_are_certified_too():
    graph = hub_graph()
    exact = exact_rows(transition_matrix(graph, "row").to_scipy().toarray(), 0.1)
    nodes = np.arange(graph.n_nodes)
    degree = np.diff(graph.indptr) + 1
    for eps in (1e-2, 1e-4):
        rows = ppr(graph, nodes, 0.1, eps, normalization="row")
        missing = exact - rows.matrix.toarray()
        assert missing.sum(1) == pytest.approx(rows.error, abs=1e-12)
        assert (missing <= eps * degree + 1e-14).all()
        assert (rows.entries_touched <= np.maximum(1 / (0.1 * eps), np.diff(graph.indptr))).all()
    assert rows.matrix[[-1]].toarray()[0].tolist() == [*[0.0] * (graph.n_nodes - 1), 1.0]
    assert rows.error[-1] < 1e-12


def test_the_kernel_makes_the_pushes_of_a_plain_twin():
    graph, eps = hub_graph(), 1e-3
    push = LocalPush(graph, 0.1, "row", self_loops=False)
    for node in (0, 1, 2, 77):
        p, r, touched = twin(graph, node, 0.1, eps)
        row = push.row(node, eps)
        assert row.entries_touched == touched
        assert row.nodes.tolist() == list(r)
        assert row.values == pytest.approx([p.get(u, 0.0) for u in r], rel=1e-12)
        assert row.residuals == pytest.approx(list(r.values()), rel=1e-9, abs=1e-18)


def test_the_number_of_threads_changes_no_bit():
    import numba

    graph = hub_graph()
    before = numba.get_num_threads()
    try:
        results = []
        for threads in (1, before):
            numba.set_num_threads(threads)
            results.append(ppr(graph, np.arange(100), 0.1, 1e-4).matrix)
    finally:
        numba.set_num_threads(before)
    assert np.array_equal(results[0].data, results[1].data)
    assert np.array_equal(results[0].indices, results[1].indices)


@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize("directed", [False, True])
def test_certified_largest_entries_are_the_largest(make_random, dense_transition, normalization, directed):
    graph, A = make_random(60, directed=directed, weighted=True)
    exact = exact_rows(dense_transition(A, normalization, True), ALPHA)
    rows = ppr(graph, np.arange(60), ALPHA, topk=5, normalization=normalization)
    assert rows.certified is not None
    assert rows.certain_entries is not None
    assert (np.diff(rows.matrix.indptr) == 5).all()
    assert rows.certified.mean() > 0.9
    for i in range(60):
        kept = set(rows.matrix[[i]].indices.tolist())
        largest = set(np.argsort(-exact[i])[:5].tolist())
        assert len(kept & largest) >= rows.certain_entries[i]
        assert not rows.certified[i] or kept == largest
    missing = exact - rows.matrix.toarray()
    stored = rows.matrix.toarray() > 0
    assert missing.min() > -1e-14
    assert (missing[stored] <= rows.entry_errors().toarray()[stored]).all()


def test_a_coarse_eps_leaves_largest_entries_uncertain_and_says_so():
    graph = hub_graph()
    rows = ppr(graph, [5], 0.1, eps=1e-2, topk=50)
    assert rows.certified is not None
    assert rows.certain_entries is not None
    assert not rows.certified[0]
    assert rows.certain_entries[0] < 50
    assert rows.eps[0] == 1e-2


def test_equal_entries_are_never_certain_but_a_whole_component_is():
    star = Graph.from_scipy(sparse.csr_array([[0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]))
    tie: Any = ppr(star, [0], ALPHA, topk=2)
    assert tie.certified.tolist() == [False]
    assert tie.certain_entries.tolist() == [1]
    whole: Any = ppr(star, [0], ALPHA, topk=10)
    assert whole.certified.tolist() == [True]
    assert whole.matrix.nnz == 4


def test_the_unit_of_the_weights_counts_for_eps_only(make_graph):
    graph, A = make_graph(directed=False, weighted=True)
    heavy = Graph.from_scipy(sparse.csr_array(A * 2.0**300))
    one = ppr(graph, [0, 3], ALPHA, 1e-3, normalization="row", self_loops=False)
    other = ppr(heavy, [0, 3], ALPHA, 1e-3 * 2.0**-30, normalization="row", self_loops=False)
    assert other.error.min() > one.error.max()  # all thresholds are above 1: only the first push is made
    tiny = Graph.from_scipy(sparse.csr_array(A * 2.0**-20))
    same = ppr(tiny, [0, 3], ALPHA, 1e-3, normalization="row", self_loops=False)
    fine = ppr(graph, [0, 3], ALPHA, 1e-3 * 2.0**-20, normalization="row", self_loops=False)
    assert same.matrix.toarray() == pytest.approx(fine.matrix.toarray(), rel=1e-6)


def test_a_stored_degree_is_never_too_high_and_what_bounds_errors_never_too_low():
    weights = np.concatenate([np.geomspace(1e-60, 1e60, 2000), np.random.default_rng(0).uniform(1.0, 2.0, 2000)])
    pairs: Any = np.arange(2 * len(weights)).reshape(-1, 2).T
    half = sparse.coo_array((weights, pairs), shape=(pairs.size, pairs.size))
    push = LocalPush(Graph.from_scipy(sparse.csr_array(half + half.T)), ALPHA, self_loops=False)
    stored, top = push._structure[3], float(push.degrees.max())
    assert stored.dtype == np.float32
    assert (stored.astype(np.float64) <= push.degrees).all()
    bounds = np.array([at_most(degree, top) for degree in stored])
    assert (bounds >= push.degrees).all()
    normal = (push.degrees > 1e-37) & (push.degrees < 1e38)
    assert (bounds[normal] <= push.degrees[normal] * (1 + 3e-7)).all()


def test_no_nodes_give_no_rows(make_graph):
    graph, _ = make_graph(directed=False, weighted=False)
    assert ppr(graph, np.empty(0, int), ALPHA, 1e-3).matrix.shape == (0, 9)


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ({"eps": 0.0}, "'eps' parameter of ppr must be a float in (0, 1)"),
        ({"eps": float("nan")}, "'eps' parameter of ppr must be a float in (0, 1)"),
        ({"eps": 1e-17}, "what float64 can tell apart"),
        ({}, "Try eps=1e-4 or topk=32"),
        ({"topk": 0}, "'topk' parameter of ppr must be an integer of at least 1"),
        ({"eps": 0.1, "alpha": 0.0}, "'alpha' parameter of ppr must be a float in (0, 1]"),
        ({"eps": 0.1, "nodes": [9]}, "node positions from 0 to 8. Got 9 at index 0"),
        ({"eps": 0.1, "nodes": ["a"]}, "this graph has no ids"),
        ({"eps": 0.1, "normalization": "both"}, "'normalization' parameter of ppr"),
        ({"eps": 0.1, "self_loops": 1}, "'self_loops' parameter of ppr"),
    ],
)
def test_wrong_arguments_are_refused_with_their_name(make_graph, arguments, fragment):
    graph, _ = make_graph(directed=False, weighted=False)
    given: dict[str, Any] = {"nodes": [0], **arguments}
    with pytest.raises(InputError) as caught:
        ppr(graph, **given)
    assert fragment in str(caught.value)
