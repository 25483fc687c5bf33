"""Live graphs: after every edit within the tolerance of a dense solve on an independent copy of the graph."""

from __future__ import annotations

import bisect
import copy

import numpy as np
import pytest
from scipy import sparse

import pprop
from pprop import Graph, live
from pprop.kernels.numba_cpu import live as loops
from pprop.propagation import live_system
from pprop.propagation.live_record import LiveRecord
from pprop.propagation.live_system import LiveSystem

POWER = {"sym": 0.5, "row": 0.0, "col": 1.0}


KINDS = ["add", "remove", "many", "prediction", "node", "drop", "drop alone", "nothing"]


class Twin:
    """The same graph as a dictionary of weights, solved densely: shares no code with what it checks."""

    def __init__(self, A, H, alpha, normalization, self_loops):
        self.weights = {(i, j): A[i, j] for i in range(len(A)) for j in range(i, len(A)) if A[i, j] > 0}
        self.H = [row.copy() for row in H]
        self.gone: set[int] = set()
        self.alpha, self.power, self.self_loops = alpha, POWER[normalization], self_loops

    def adjacency(self):
        A = np.zeros((len(self.H), len(self.H)))
        for (i, j), weight in self.weights.items():
            A[i, j] = A[j, i] = weight
        return A

    def solved(self):
        """Return Y = D^-p Z and d^p."""
        A = self.adjacency()
        for i in range(len(A)):
            if A[i, i] == 0 and (self.self_loops or not A[i].any()):
                A[i, i] = 1.0
        d = A.sum(axis=1)
        T = A * d[:, None] ** (self.power - 1) / d[None, :] ** self.power
        Z = self.alpha * np.linalg.solve(np.eye(len(A)) - (1 - self.alpha) * T, np.array(self.H))
        return Z / d[:, None] ** self.power, d**self.power

    def copy(self):
        other = copy.copy(self)
        vars(other).update(weights=self.weights.copy(), H=self.H.copy(), gone=self.gone.copy())
        return other

    def here(self):
        return [i for i in range(len(self.H)) if i not in self.gone]


def random_graph(n, rng, *, weighted, columns):
    A = np.zeros((n, n))
    hub = rng.integers(n)
    for _ in range(3 * n):
        i, j = rng.integers(n, size=2) if rng.random() < 0.7 else (hub, rng.integers(n))
        A[i, j] = A[j, i] = rng.uniform(0.1, 5.0) if weighted else 1.0
    A[n - 1] = A[:, n - 1] = 0  # one node is alone
    return A, rng.standard_normal((n, columns))


def some_edit(changing, twin, rng, *, weighted):
    """Make one random edit on both sides; return what it was, None if it could not be."""
    here = twin.here()
    kind = rng.choice(KINDS, p=[0.28, 0.28, 0.08, 0.08, 0.1, 0.08, 0.06, 0.04])
    drawn = [tuple(sorted(pair)) for pair in rng.choice(here, size=(8, 2)).tolist()]
    absent = sorted({pair for pair in drawn if pair not in twin.weights})

    def draw():
        return rng.uniform(0.1, 5.0) if weighted else 1.0

    if kind == "add" and absent:
        (i, j), weight = absent[0], draw()
        changing.add_edge(j, i, weight)
        twin.weights[i, j] = weight
    elif kind == "remove" and twin.weights:
        i, j = list(twin.weights)[rng.integers(len(twin.weights))]
        changing.remove_edge(i, j)
        del twin.weights[i, j]
    elif kind == "many" and absent:
        weights = [draw() for _ in absent]
        changing.add_edges(absent, weights)
        twin.weights |= dict(zip(absent, weights, strict=True))
    elif kind == "prediction":
        nodes = rng.choice(here, size=2, replace=False)
        H = rng.standard_normal((2, len(twin.H[0])))
        changing.set_predictions(nodes, H)
        for node, row in zip(nodes, H, strict=True):
            twin.H[node] = row
    elif kind == "node":
        own = rng.standard_normal(len(twin.H[0]))
        others = rng.choice(here, size=rng.integers(3), replace=False).tolist()
        weights = [draw() for _ in others]
        (at,) = changing.add_node(prediction=own, neighbours=others or None, weights=weights).nodes
        assert at == len(twin.H)
        twin.weights |= {(other, int(at)): weight for other, weight in zip(others, weights, strict=True)}
        twin.H.append(own)
    elif kind == "drop" and len(here) > 4:
        node = int(rng.choice(here))
        changing.remove_node(node)
        twin.gone.add(node)
        twin.weights = {pair: weight for pair, weight in twin.weights.items() if node not in pair}
    elif kind == "drop alone" and len(here) > 4 and (alone := set(here).difference(*twin.weights)):
        node = int(rng.choice(sorted(alone)))
        changing.remove_node(node)
        twin.gone.add(node)
    elif kind == "nothing":
        edit = changing.add_edges if rng.random() < 0.5 else changing.remove_edges
        assert edit(np.empty((0, 2), int)).entries == 0
    else:
        return None
    return kind


def error(changing, twin, solved=None):
    """Return the largest error in the norm of the tolerance."""
    Y, size = solved or twin.solved()
    here = twin.here()
    return np.abs(changing.logits(here) / size[here, None] - Y[here]).max()


def assert_same_graph(changing, twin):
    here = twin.here()
    assert changing.nodes.tolist() == here
    np.testing.assert_allclose(changing.graph.adjacency.toarray(), twin.adjacency()[np.ix_(here, here)], rtol=1e-12)


def count_solves(monkeypatch):
    """Return a list that grows by one with every solve for all nodes."""
    solves, solve = [], LiveSystem._solve
    monkeypatch.setattr(LiveSystem, "_solve", lambda self, graph: solves.append(1) or solve(self, graph))
    return solves


@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("patient", [True, False])
def test_any_sequence_of_edits_stays_within_the_bound(normalization, self_loops, weighted, patient, monkeypatch):
    """By pushes alone, and with solves that begin where pushes have read 30 entries."""
    if not patient:
        monkeypatch.setattr(live_system, "LEAST_PATIENCE", 30)
        monkeypatch.setattr(live_system, "PRODUCT", 0.0)
    solves = count_solves(monkeypatch)
    rng = np.random.default_rng([weighted, self_loops, len(normalization)])
    alpha, tol = 0.15, 1e-3
    A, H = random_graph(14, rng, weighted=weighted, columns=17 if patient else 3)
    twin = Twin(A, H, alpha, normalization, self_loops)
    changing = live(
        Graph.from_scipy(sparse.csr_array(A)), H, alpha, tol=tol, normalization=normalization, self_loops=self_loops
    )
    assert error(changing, twin) <= tol
    kinds, undone, moved, solved = [], set(), 0, twin.solved()
    while len(kinds) < 60 or (set(kinds) != set(KINDS) and len(kinds) < 300):
        before, (Y, _) = twin.copy(), solved
        kind = some_edit(changing, twin, rng, weighted=weighted)
        if kind is None:
            continue
        kinds.append(kind)
        former, solved = solved, twin.solved()
        moved += np.abs(solved[0][: len(Y)] - Y[: len(twin.H)]).max() > tol  # an edit that matters
        assert error(changing, twin, solved) <= tol
        if len(kinds) % 5 == 0 or (kind == "drop alone" and kind not in undone):
            assert_same_graph(changing, twin)
            undone.add(kind)
            changing.undo()
            twin, solved = before, former
            assert error(changing, twin, solved) <= tol
            assert_same_graph(changing, twin)
    assert set(kinds) == set(KINDS)
    assert "drop alone" in undone
    assert moved > 0.5 * len(kinds)
    assert len(solves) == 1 if patient else len(solves) > 0.5 * len(kinds)


def test_undoing_everything_gives_the_graph_of_the_start():
    rng = np.random.default_rng(5)
    A, H = random_graph(12, rng, weighted=False, columns=3)
    graph = Graph.from_scipy(sparse.csr_array(A))
    twin, changing = Twin(A, H, 0.2, "sym", True), live(graph, H, 0.2, tol=1e-5)
    start = twin.copy()
    edits = sum(some_edit(changing, twin, rng, weighted=False) is not None for _ in range(60))
    assert changing.fingerprint != graph.fingerprint
    for _ in range(edits):
        changing.undo()
    assert changing.fingerprint == graph.fingerprint
    assert error(changing, start) <= 1e-5
    with pytest.raises(pprop.InputError, match="no edit to undo"):
        changing.undo()


def test_only_the_last_edits_can_be_undone():
    changing = live(Graph.from_scipy(sparse.csr_array((4, 4))), np.eye(4)[:, :3], history=1)
    changing.add_edges([[0, 1], [2, 3]])
    changing.add_edge(1, 2)
    changing.undo()
    assert changing.graph.n_edges == 2
    with pytest.raises(pprop.InputError, match="more than 1 ago"):
        changing.undo()


def test_the_cost_of_an_edit_does_not_grow_with_the_graph():
    """A ring of 100 nodes and one of 100,000: the same edit reads the same entries, and a refresh reads them all."""
    entries = []
    for n in (100, 100_000):
        at = np.arange(n)
        ring = sparse.coo_array((np.ones(n), (at, (at + 1) % n)), shape=(n, n))
        H = np.zeros((n, 3))
        H[40:60] = np.random.default_rng(0).standard_normal((20, 3))
        changing = live(Graph.from_scipy(ring + ring.T), H, 0.3, tol=1e-3)
        entries.append(changing.add_edge(45, 52).entries)
        assert changing.refresh().entries == 2 * n + 2
    assert entries[0] == entries[1] > 0


def test_a_hub_that_comes_back_costs_no_more_than_pushes_for_a_while_and_a_solve(monkeypatch):
    """Pushes alone read 56 million entries here: every one of the hub sets off those of all others."""
    rng, n = np.random.default_rng(0), 2000
    A = np.zeros((n, n))
    A[rng.integers(n, size=5 * n), rng.integers(n, size=5 * n)] = 1.0
    A[0, 1::2] = 1.0
    np.fill_diagonal(A, 0.0)
    graph, H = Graph.from_scipy(sparse.csr_array(np.maximum(A, A.T))), rng.standard_normal((n, 3))
    solves = count_solves(monkeypatch)
    changing = live(graph, H)
    changing.remove_node(0)
    solves.clear()
    update = changing.undo()
    assert update.summed_up
    assert len(solves) == 1
    assert live_system.LEAST_PATIENCE < update.entries < 3 * live_system.LEAST_PATIENCE
    exact = live(graph, H, tol=1e-8)
    assert (np.abs(changing.logits() - exact.logits()) <= changing.error_bound()[:, None]).all()
    assert not changing.add_edge(1, int(changing.nodes[-1])).summed_up


def shifted(rows, u, v, *, insert):
    """Make edits one by one in sorted lists, and return how many of their entries move to another place."""
    moves = 0
    for pair in zip(u.tolist(), v.tolist(), strict=True):
        for i, j in (pair, pair[::-1]):
            row = rows[i]
            at = bisect.bisect_left(row, j)
            if insert:
                moves += len(row) - at
                row.insert(at, j)
            else:
                assert row.pop(at) == j
                moves += len(row) - at
    return moves


def test_removing_a_hub_shifts_no_more_than_the_rows_of_its_neighbours(monkeypatch):
    """Among them another hub; both ways, and with several nodes at a time."""
    n, done = 300, []
    A = np.zeros((n, n))
    A[150] = A[:, 150] = A[40, ::3] = A[::3, 40] = 1
    np.fill_diagonal(A, 0)
    rows = [np.flatnonzero(row).tolist() for row in A]
    degrees = A.sum(axis=1)
    real = loops.change_edges

    def spy(*given):
        done.append(shifted(rows, given[2], given[3], insert=given[5]))
        return real(*given)

    monkeypatch.setattr(loops, "change_edges", spy)
    changing = live(Graph.from_scipy(sparse.csr_array(A)), np.eye(n)[:, :3])
    for nodes in ([150], [40, 150]):
        changing.remove_nodes(nodes)
        changing.undo()
        assert changing.graph.adjacency.toarray().tolist() == A.tolist()
    changing.remove_edges([[150, other] for other in range(n) if other != 150])
    changing.undo()
    assert len(done) == 6
    assert max(done) <= degrees[A[150] > 0].sum()


def test_no_edit_looks_at_all_nodes(monkeypatch):
    changing = live(Graph.from_scipy(sparse.csr_array((6, 6)), ids=list("abcdef")), np.eye(6)[:, :3])

    def everyone(*_):
        raise AssertionError("a look at all nodes")

    monkeypatch.setattr(LiveSystem, "_everyone", everyone)
    monkeypatch.setattr(LiveRecord, "nodes", property(everyone))
    changing.add_edges([[0, 1], [2, 3]])
    changing.add_node(prediction=[1.0, 0.0, 0.0], neighbours=[0, 4], id="g")
    changing.remove_node(0)
    changing.remove_nodes([4, 5])
    assert changing.positions(["g", "b"]).tolist() == [6, 1]
    changing.set_predictions(1, [0.0, 1.0, 0.0])
    for _ in range(5):
        changing.undo()
    assert changing.positions(["f", "a"]).tolist() == [5, 0]
    assert repr(changing) == "LiveGraph(6 nodes, alpha=0.1, tol=0.0001)"


def test_a_heavy_edge_leaves_no_rounding_behind():
    """A weight of 1e14 swallows all others; when it is gone, they are there again with all their digits."""
    A, H = random_graph(10, np.random.default_rng(2), weighted=True, columns=3)
    A[0, 1] = A[1, 0] = 0
    twin = Twin(A, H, 0.2, "sym", True)
    changing = live(Graph.from_scipy(sparse.csr_array(A)), H, 0.2, tol=1e-9)
    changing.add_edge(0, 1, 1e14)
    changing.remove_edge(0, 1)
    assert error(changing, twin) <= 1e-9
    drift = changing.refresh().drift
    assert drift is not None
    assert drift < 1e-12


def test_rounding_is_summed_up_before_it_could_matter():
    """Near the smallest tolerance that float64 allows, edits compute all residuals anew now and then, by themselves."""
    A, H = random_graph(10, np.random.default_rng(3), weighted=True, columns=3)
    twin, graph = Twin(A, H, 0.2, "sym", True), Graph.from_scipy(sparse.csr_array(A))
    with pytest.raises(pprop.InputError, match="a float of at least") as caught:
        live(graph, H, 0.2, tol=1e-15)
    least = float(str(caught.value).split("at least ")[1].split()[0])
    changing = live(graph, H, 0.2, tol=1.5 * least)
    summed_up = 0
    for _ in range(20):
        summed_up += changing.add_edge(9, 0, 0.5).summed_up + changing.remove_edge(9, 0).summed_up
        assert error(changing, twin) <= 1.5 * least
    assert 0 < summed_up < 40


def test_an_alpha_of_one_is_the_predictions_alone():
    changing = live(Graph.from_scipy(sparse.csr_array((3, 3))), np.eye(3), 1.0)
    changing.add_edge(0, 1)
    np.testing.assert_allclose(changing.logits(), np.eye(3), atol=2e-4)


def test_a_full_pool_is_packed_and_nothing_is_lost():
    rng = np.random.default_rng(4)
    graph = Graph.from_scipy(sparse.csr_array((60, 60)))
    system = LiveSystem(graph, np.eye(60), alpha=0.5, tol=1e-3, normalization="sym", self_loops=True)
    A = np.triu(rng.random((60, 60)) < 0.6)
    u, v = np.nonzero(A)
    sizes = set()
    for i, j in zip(u, v, strict=True):
        system.change_edges(np.array([i]), np.array([j]), np.ones(1), add=True)
        sizes.add(len(system._rows.indices))
    assert len(sizes) > 1
    row, column, weights = system.entries()
    np.testing.assert_array_equal(
        sparse.coo_array((weights, (row, column)), shape=(60, 60)).toarray(), (A | A.T).astype(float)
    )
