"""Batches of edits of a live graph: as the same edits one by one, within the bound, in their order and all or none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from pprop import Graph, InputError, LiveUpdate, live
from pprop.propagation import live_system
from pprop.propagation.live_system import LiveSystem

pytestmark = pytest.mark.usefixtures("every_kernel_threaded")

POWER = {"sym": 0.5, "row": 0.0, "col": 1.0}
ALPHA, TOL = 0.15, 1e-3


def dense(adjacency, H, normalization, self_loops, alpha=ALPHA):
    """The fixed point Z and d^p by numpy alone."""
    A = adjacency.copy()
    for i in range(len(A)):
        if A[i, i] == 0 and (self_loops or not A[i].any()):
            A[i, i] = 1.0
    d, p = A.sum(axis=1), POWER[normalization]
    T = A * d[:, None] ** (p - 1) / d[None, :] ** p
    return alpha * np.linalg.solve(np.eye(len(A)) - (1 - alpha) * T, H), d**p


def random_graph(n, rng, *, weighted):
    A = np.zeros((n, n))
    ends = rng.integers(n, size=(3 * n, 2))
    ends[: n // 2, 0] = 0  # a hub
    weights = rng.uniform(0.1, 5.0, len(ends)) if weighted else np.ones(len(ends))
    A[ends[:, 0], ends[:, 1]] = weights
    return np.maximum(A, A.T)


def random_edits(A, count, rng, *, weighted):
    """Return edits of edges, which are also made in A: the same edge may be met several times."""
    edits, n = [], len(A)
    for _ in range(count):
        u, v = rng.integers(n, size=2).tolist()
        if A[u, v] and rng.random() < 0.4:
            u, v = (int(end) for end in rng.permutation(np.argwhere(A))[0])
        weight = float(rng.uniform(0.1, 5.0)) if weighted else 1.0
        if not A[u, v]:
            edits.append(("add_edge", u, v, weight) if weighted else ("add_edge", u, v))
        elif weighted and rng.random() < 0.3:
            edits.append(("set_weight", u, v, weight))
        else:
            weight = 0.0
            edits.append(("remove_edge", u, v))
        A[u, v] = A[v, u] = weight
    return edits


@pytest.fixture(params=["pushes", "sweeps", "solves"])
def way(request, monkeypatch):
    """How a batch is settled: by pushes alone, by sweeps, and by a solve after them."""
    if request.param == "pushes":
        monkeypatch.setattr(live_system, "BATCH_PATIENCE", 10**9)
    else:
        monkeypatch.setattr(live_system, "BATCH_PATIENCE", 10)
    if request.param == "solves":
        monkeypatch.setattr(live_system, "MOST_SWEEPS", 1)
    return request.param


@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_is_within_the_bound_of_a_dense_solve_and_of_the_same_edits_one_by_one(
    normalization, self_loops, weighted, way
):
    rng = np.random.default_rng([len(normalization), self_loops, weighted])
    A, H = random_graph(60, rng, weighted=weighted), rng.standard_normal((60, 11))
    start, graph = A.copy(), Graph.from_scipy(sparse.csr_array(A))

    def changed():
        return live(graph, H, ALPHA, tol=TOL, normalization=normalization, self_loops=self_loops)

    together, singly, swept = changed(), changed(), 0
    for _ in range(3):
        edits = random_edits(A, 120, rng, weighted=weighted)
        update = together.apply(edits)
        swept += update.summed_up
        assert (update.edit, len(update.nodes)) == ("apply", 240)
        for name, *arguments in edits:
            getattr(singly, name)(*arguments)
        Z, size = dense(A, H, normalization, self_loops)
        np.testing.assert_allclose(together.graph.adjacency.toarray(), A, rtol=1e-12)
        np.testing.assert_allclose(together.error_bound(), TOL * size, rtol=1e-12)
        assert np.abs((together.logits() - Z) / size[:, None]).max() <= TOL
        assert np.abs((together.logits() - singly.logits()) / size[:, None]).max() <= 2 * TOL
        drift = together.refresh().drift
        assert drift is not None
        assert drift < 1e-12
    assert (swept > 0) == (way != "pushes")
    for _ in range(3):
        together.undo()
    np.testing.assert_allclose(together.graph.adjacency.toarray(), start, rtol=1e-12)
    first, size = dense(start, H, normalization, self_loops)
    assert np.abs((together.logits() - first) / size[:, None]).max() <= TOL


def path(n=5):
    return sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n))


@pytest.fixture
def changing():
    return live(Graph.from_scipy(path()), np.eye(5)[:, :3], alpha=0.2)


def test_edits_act_in_their_order(changing):
    before = changing.fingerprint
    assert changing.apply([("add_edge", 0, 2), ("remove_edge", 2, 0)]).entries == 0
    assert changing.fingerprint == before
    changing.apply([("remove_edge", 0, 1), ("add_edge", 1, 0, 2.0), ("set_weight", 0, 1, 3.0), ("add_edge", 4, 4)])
    A = path().toarray()
    A[0, 1] = A[1, 0] = 3.0
    A[4, 4] = 1.0
    np.testing.assert_array_equal(changing.graph.adjacency.toarray(), A)


def test_nodes_and_edges_may_be_edited_together_and_new_positions_used_at_once():
    rng = np.random.default_rng(0)
    start, given = random_graph(20, rng, weighted=False), rng.standard_normal((20, 3))
    changing = live(Graph.from_scipy(sparse.csr_array(start)), given, ALPHA, tol=1e-6)
    own, other = rng.standard_normal((2, 3))
    u, v = (int(end) for end in np.argwhere(np.triu(start[:10, :10], 1))[0])
    update = changing.apply(
        [
            ("remove_edge", u, v),
            ("add_node", {"prediction": own, "neighbours": [3, 4]}),
            ("add_edge", 20, u),
            ("set_predictions", 5, other),
            ("remove_node", 19),
            ("add_edges", [[20, v], [20, 20]]),
            ["remove_edges", [[20, 3]]],
        ]
    )
    assert update.nodes.tolist() == [u, v, 20, 20, u, 5, 19, 20, v, 20, 20, 20, 3]
    A = np.pad(start, (0, 1))
    A[u, v] = A[v, u] = A[19] = A[:, 19] = 0
    A[20, [4, u, v, 20]] = A[[4, u, v, 20], 20] = 1
    H = np.vstack([given, own])
    H[5] = other
    left = [k for k in range(21) if k != 19]
    np.testing.assert_array_equal(changing.graph.adjacency.toarray(), A[np.ix_(left, left)])
    Z, size = dense(A, H, "sym", self_loops=True)
    assert (np.abs(changing.logits() - Z[left]) <= 1e-6 * size[left, None]).all()
    assert changing.undo().edit == "undo apply"
    assert changing.nodes.tolist() == list(range(20))
    with pytest.raises(InputError, match="no edit to undo"):
        changing.undo()


def test_a_batch_that_isolates_every_node_leaves_their_own_predictions():
    for self_loops in (True, False):
        A = random_graph(30, np.random.default_rng(1), weighted=True)
        H = np.random.default_rng(2).standard_normal((30, 3))
        changing = live(Graph.from_scipy(sparse.csr_array(A)), H, ALPHA, tol=1e-6, self_loops=self_loops)
        changing.apply([("remove_edge", *pair) for pair in np.argwhere(np.triu(A)).tolist()])
        assert changing.graph.n_edges == 0
        np.testing.assert_allclose(changing.logits(), H, atol=1e-6)


def test_an_empty_batch_changes_nothing_and_is_undone(changing):
    before, logits = changing.fingerprint, changing.logits()
    update = changing.apply([])
    assert (update.edit, len(update.nodes), update.pushes, update.entries) == ("apply", 0, 0, 0)
    assert changing.undo().edit == "undo apply"
    assert changing.fingerprint == before
    np.testing.assert_array_equal(changing.logits(), logits)


GOOD = [("add_edge", 0, 2), ("remove_edge", 3, 4)]
NODE = ("add_node", {"prediction": [1.0, 0.0, 0.0], "neighbours": [0]})
REFUSED = [
    (("add_edge", 0, 9), "the one at index 2: The 'v' parameter of add_edge must be an integer from 0 to 4. Got 9"),
    (("add_edge", 10**30, 1), "index 2: The 'u' parameter of add_edge must be an integer from 0 to 4"),
    (("add_edge", 0.0, 1), "index 2: .* an integer from 0 to 4. Got 0.0"),
    (("add_edge", True, 3), "index 2: .* an integer from 0 to 4. Got True"),
    (("add_edge", 2, 0), "index 2: add_edge: there is already an edge between 2 and 0"),
    (("remove_edge", 4, 3), "index 2: remove_edge: there is no edge between 4 and 3"),
    (("set_weight", 0, 3, 2.0), "index 2: set_weight: there is no edge between 0 and 3"),
    (("add_edge", 0, 3, float("nan")), r"index 2: The 'weight' parameter of add_edge .* Got nan"),
    (("add_edge", 0, 3, 10**400), r"index 2: The 'weight' parameter of add_edge"),
    (("set_weight", 0, 1, "2"), r"index 2: The 'weight' parameter of set_weight .* Got '2'"),
    (("add_edges", [[0, 3], [0, 1]]), "index 2: add_edges: there is already an edge between 0 and 1"),
    (("add_edges", [[0, 3], [3, 0]]), r"index 2: .* \(0, 3\) more than once"),
    (("remove_node", 7), "index 2: The 'u' parameter of remove_node"),
    (("remove_nodes", range(5)), "index 2: .* a graph has at least one"),
    (("set_predictions", 0, [1.0]), r"index 2: .* shape \(1, 3\)"),
    (("set_predictions", 0, [1e12] * 3), "apply would make numbers so large"),
    (("add_edge", 0), "index 2: The arguments of add_edge are u, v, weight: missing a required argument: 'v'"),
    (("remove_edge", 0, 1, 2.0), "index 2: The arguments of remove_edge are u, v"),
    (("add_node", {"colour": 1}), "index 2: The arguments of add_node"),
    (("refresh",), "edits that begin with one of add_edge, .* Got 'refresh' at index 2"),
    ((), r"a tuple of a method's name and its arguments. Got \(\) at index 2"),
    (3, "Got 3 at index 2"),
]


@pytest.mark.parametrize(("wrong", "message"), REFUSED)
@pytest.mark.parametrize("before", [GOOD, [GOOD[0], NODE]])
@pytest.mark.parametrize("after", [[], [("remove_edge", 0, 4)]])
def test_a_batch_with_an_impossible_edit_is_refused_whole_and_its_place_named(changing, wrong, message, before, after):
    if before[1] is NODE and message != "apply would make numbers so large":
        if wrong in [REFUSED[5][0]]:  # this edge is there then
            return
        message = message.replace("0 to 4", "0 to 5")
        wrong = ("remove_nodes", range(6)) if wrong == ("remove_nodes", range(5)) else wrong
    after = [] if "numbers so large" in message else after
    logits, fingerprint = changing.logits(), changing.fingerprint
    with pytest.raises(InputError, match=message):
        changing.apply([*before, wrong, *after])
    assert changing.fingerprint == fingerprint
    assert changing.nodes.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(changing.logits(), logits, rtol=0, atol=1e-12)
    assert changing.refresh().drift < 1e-12
    with pytest.raises(InputError, match="no edit to undo"):
        changing.undo()
    assert changing.apply(GOOD).edit == "apply"


def test_the_first_impossible_edit_is_named_whatever_is_wrong_with_it(changing):
    with pytest.raises(InputError, match=r"index 0: .* already an edge between 0 and 1"):
        changing.apply([("add_edge", 0, 1), ("add_edge", 0, 9)])
    with pytest.raises(InputError, match=r"index 0: .* Got 9"):
        changing.apply([("add_edge", 0, 9), ("add_edge", 0, 1)])
    with pytest.raises(InputError, match=r"Line 7: .* Got 9"):
        changing.apply([("add_edge", 0, 2), ("add_edge", 0, 9)], places=["Line 3", "Line 7"])


@pytest.mark.parametrize("edits", [None, 3, "add_edge", ["add_edge"]])
def test_what_is_no_list_of_edits_is_refused(changing, edits):
    with pytest.raises(InputError, match="'edits' parameter of apply must be edits, each a tuple"):
        changing.apply(edits)


def test_an_interruption_takes_back_what_was_made(changing, monkeypatch):
    before, logits = changing.fingerprint, changing.logits()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(LiveSystem, "set_predictions", interrupted)
    with pytest.raises(KeyboardInterrupt):
        changing.apply([("add_edge", 0, 2), NODE, ("set_predictions", 0, [1.0, 0.0, 0.0])])
    assert changing.fingerprint == before
    np.testing.assert_allclose(changing.logits(), logits, rtol=0, atol=1e-12)
    assert isinstance(changing.apply(GOOD), LiveUpdate)


@pytest.mark.parametrize("edit", [lambda c: c.apply(GOOD), lambda c: c.add_edge(0, 2)])
def test_an_edit_whose_settling_is_interrupted_is_made_and_settled_before_predictions_are_read(
    changing, monkeypatch, edit
):
    twin = live(Graph.from_scipy(path()), np.eye(5)[:, :3], alpha=0.2)
    edit(twin)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LiveSystem, "_push_at_most", interrupted)
        with pytest.raises(KeyboardInterrupt):
            edit(changing)
    assert changing.fingerprint == twin.fingerprint
    Z, size = dense(changing.graph.adjacency.toarray(), np.eye(5)[:, :3], "sym", self_loops=True, alpha=0.2)
    assert (np.abs(changing.logits() - Z) <= 1e-4 * size[:, None]).all()
    changing.undo()
    assert changing.graph.n_edges == 4


def test_edits_may_come_from_a_generator_and_hold_numpy_numbers(changing):
    pairs = np.array([[0, 2], [1, 3]])
    changing.apply(("add_edge", u, v, np.float32(2.0)) for u, v in pairs)
    assert changing.graph.adjacency.toarray()[[0, 1], [2, 3]].tolist() == [2.0, 2.0]


def test_an_edge_has_another_weight_and_gets_its_own_back(changing):
    changing.set_weight(0, 1, 4.0)
    changing.set_weights([[1, 2], [3, 4]], [2.0, 0.5])
    A = path().toarray()
    for (u, v), weight in {(0, 1): 4.0, (1, 2): 2.0, (3, 4): 0.5}.items():
        A[u, v] = A[v, u] = weight
    Z, size = dense(A, np.eye(5)[:, :3], "sym", self_loops=True, alpha=0.2)
    assert (np.abs(changing.logits() - Z) <= 1e-4 * size[:, None]).all()
    np.testing.assert_array_equal(changing.graph.adjacency.toarray(), A)
    with pytest.raises(InputError, match="no edge between 0 and 4"):
        changing.set_weights([[0, 4]], [1.0])
    changing.undo()
    changing.undo()
    np.testing.assert_array_equal(changing.graph.adjacency.toarray(), path().toarray())


def test_the_way_of_a_batch_is_chosen_by_what_pushes_would_read():
    """Two edits of a ring are pushed; edits at every other node of a random graph are swept."""
    n, rng = 20_000, np.random.default_rng(0)
    at = np.arange(n)
    ring = sparse.coo_array((np.ones(n), (at, (at + 1) % n)), shape=(n, n))
    H = rng.standard_normal((n, 3))
    changing = live(Graph.from_scipy(ring + ring.T), H, 0.3, tol=1e-3)
    assert not changing.apply([("add_edge", 5, 900), ("add_edge", 77, 4000)]).summed_up
    ends = rng.integers(n, size=(5 * n, 2))
    A = sparse.coo_array((np.ones(5 * n), (ends[:, 0], ends[:, 1])), shape=(n, n))
    changing = live(Graph.from_scipy(sparse.csr_array(A + A.T > 0).astype(float)), H, 0.3, tol=1e-3)
    half = sparse.triu(changing.graph.adjacency).tocoo()
    edits = [("remove_edge", int(u), int(v)) for u, v in zip(half.row[::10], half.col[::10], strict=True)]
    assert changing.apply(edits).summed_up


def test_a_batch_has_the_same_bits_with_any_number_of_threads():
    import numba

    rng = np.random.default_rng(3)
    A, H = random_graph(400, rng, weighted=True), rng.standard_normal((400, 3))
    graph, edits = Graph.from_scipy(sparse.csr_array(A)), random_edits(A.copy(), 600, rng, weighted=True)
    found, threads = [], numba.get_num_threads()
    try:
        for count in {1, threads}:
            numba.set_num_threads(count)
            changing = live(graph, H, tol=1e-6)
            assert changing.apply(edits).summed_up
            found.append(changing.logits())
    finally:
        numba.set_num_threads(threads)
    assert all(np.array_equal(each, found[0]) for each in found)
