"""Edits of a live graph: what is refused, what a Graph is made of on demand, and that a refusal changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from pprop import Exact, Graph, InputError, live, propagate
from pprop.propagation.live_system import LiveSystem

PATH = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))


@pytest.fixture
def changing():
    return live(Graph.from_scipy(PATH), np.eye(5)[:, :3], alpha=0.2)


REFUSED = [
    (lambda c: c.add_edge(0, 5), "an integer from 0 to 4. Got 5"),
    (lambda c: c.add_edge(-1, 2), "an integer from 0 to 4. Got -1"),
    (lambda c: c.add_edge(0.0, 2), "an integer from 0 to 4. Got 0.0"),
    (lambda c: c.add_edge(0, 1), "add_edge: there is already an edge between 0 and 1"),
    (
        lambda c: c.add_edge(0, 2, float("nan")),
        r"'weight' parameter of add_edge must be a float in \(0, inf\). Got nan",
    ),
    (lambda c: c.add_edge(0, 2, 0.0), r"in \(0, inf\). Got 0.0"),
    (lambda c: c.add_edge(0, 2, -1.0), r"in \(0, inf\). Got -1.0"),
    (lambda c: c.add_edge(0, 2, float("inf")), r"in \(0, inf\). Got inf"),
    (lambda c: c.add_edge(0, 2, "1"), r"in \(0, inf\). Got '1'"),
    (lambda c: c.add_edges([[0, 2]], [float("nan")]), "'weights' parameter .* Got nan at index 0"),
    (lambda c: c.add_edges([[0, 2], [2, 0]]), r"\(0, 2\) more than once"),
    (lambda c: c.add_edges([[0, 2], [3, 9]]), "Got 9 at index 3"),
    (lambda c: c.add_edges([[0, 2], [0, 1]]), "already an edge between 0 and 1"),
    (lambda c: c.add_edges([0, 2]), r"shape \(m, 2\)"),
    (lambda c: c.add_edges([[0, 2]], [1.0, 2.0]), "an array of 1 positive"),
    (lambda c: c.add_edges([["a", "b"]]), r"no ids"),
    (lambda c: c.remove_edge(0, 2), "remove_edge: there is no edge between 0 and 2"),
    (lambda c: c.remove_edge(3, 3), "no edge between 3 and 3"),
    (lambda c: c.remove_edges([[0, 1], [0, 4]]), "no edge between 0 and 4"),
    (lambda c: c.remove_node(7), "'u' parameter of remove_node must be an integer from 0 to 4. Got 7"),
    (lambda c: c.remove_nodes([1, 1]), "a position twice"),
    (lambda c: c.remove_nodes(None), r"node positions from 0 to 4. Got array\(None"),
    (lambda c: c.remove_nodes(range(5)), "a graph has at least one"),
    (lambda c: c.add_node(), "needs features for the network to predict from, or a prediction"),
    (lambda c: c.add_node(np.ones(4)), "None, as the graph has none"),
    (lambda c: c.add_node(prediction=[1.0, 2.0]), r"shape \(1, 3\)"),
    (lambda c: c.add_node(prediction=[1.0, 2.0, np.nan]), "1 that are not"),
    (lambda c: c.add_node(prediction=np.ones(3), neighbours=[2, 2]), "a position twice"),
    (lambda c: c.add_node(prediction=np.ones(3), neighbours=[8]), "Got 8 at index 0"),
    (lambda c: c.add_node(prediction=np.ones(3), id="x"), "None, as the nodes of this graph have none"),
    (lambda c: c.set_features(0, np.ones(4)), "None, as the graph has none"),
    (lambda c: c.set_predictions([0, 1], np.ones((3, 3))), r"shape \(2, 3\)"),
    (lambda c: c.set_predictions([0, 0], np.ones((2, 3))), "a position twice"),
    (lambda c: c.set_predictions(0, np.full(3, 1e12)), "The graph is as it was before"),
    (lambda c: c.logits([5]), "Got 5 at index 0"),
    (lambda c: c.positions(["a"]), "has no ids"),
    (lambda c: c.undo(), "no edit to undo"),
]


@pytest.mark.parametrize(("edit", "message"), REFUSED)
def test_an_impossible_edit_is_refused_and_changes_nothing(changing, edit, message):
    logits, fingerprint = changing.logits(), changing.fingerprint
    with pytest.raises(InputError, match=message):
        edit(changing)
    np.testing.assert_allclose(changing.logits(), logits, rtol=0, atol=1e-12)
    assert changing.fingerprint == fingerprint
    assert changing.refresh().drift < 1e-12
    with pytest.raises(InputError, match="no edit to undo"):
        changing.undo()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.0}, r"'alpha' parameter of live must be a float in \[0.001, 1\]"),
        ({"alpha": 1.5}, "'alpha' parameter of live"),
        ({"tol": 0.0}, "'tol' parameter of live"),
        ({"tol": float("nan")}, "'tol' parameter of live"),
        ({"tol": 1e-14}, "'tol' parameter of live must be a float of at least 7.7e-11 for predictions as large"),
        ({"H": np.ones((4, 2))}, r"'H' parameter of live must be .* shape \(5, c\)"),
        ({"H": np.full((5, 2), np.inf)}, "Got 10 that are not"),
        ({"H": None}, "'H' parameter of live must be predictions"),
        ({"response": "margins"}, "'response' parameter of live must be one of 'logits' or 'probabilities'"),
        ({"response": "probabilities"}, r"'H' parameter of live must be probabilities, .* Got \[3.0, 3.0\] at index 0"),
        ({"normalization": "none"}, "'normalization' parameter of live"),
        ({"history": -1}, "'history' parameter of live"),
    ],
)
def test_what_cannot_be_live_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        live(Graph.from_scipy(PATH), **{"H": np.full((5, 2), 3.0), **arguments})  # pyright: ignore[reportArgumentType]


def test_a_directed_graph_is_refused_with_the_remedy():
    with pytest.raises(InputError, match=r"Call .undirected\(\)"):
        live(Graph.from_scipy(sparse.csr_array([[0, 1], [0, 0]]), directed=True), np.eye(2))


def test_a_removed_node_is_no_longer_there_and_its_position_stays_unused(changing):
    changing.remove_node(2)
    for use in (lambda: changing.add_edge(1, 2), lambda: changing.logits([2]), lambda: changing.remove_node(2)):
        with pytest.raises(InputError, match="2, which was removed"):
            use()
    assert changing.nodes.tolist() == [0, 1, 3, 4]
    assert changing.add_node(prediction=np.ones(3)).nodes.tolist() == [5]
    assert changing.graph.n_nodes == 5
    assert changing.logits().shape == (5, 3)


NOTHING = [
    lambda c: c.add_edges(np.empty((0, 2), int)),
    lambda c: c.add_edges(np.empty((0, 2), int), []),
    lambda c: c.remove_edges(np.empty((0, 2), int)),
    lambda c: c.remove_nodes([]),
    lambda c: c.add_nodes(predictions=np.empty((0, 3))),
    lambda c: c.set_predictions([], np.empty((0, 3))),
]


@pytest.mark.parametrize("edit", NOTHING)
def test_an_edit_of_nothing_changes_nothing_and_can_be_undone(changing, edit):
    before, fingerprint = changing.logits(), changing.fingerprint
    update = edit(changing)
    assert (len(update.nodes), update.pushes, update.entries) == (0, 0, 0)
    assert changing.fingerprint == fingerprint
    assert changing.undo().edit == f"undo {update.edit}"
    np.testing.assert_array_equal(changing.logits(), before)
    assert changing.fingerprint == fingerprint


def test_a_removed_node_without_edges_comes_back(changing):
    (new,) = changing.add_node(prediction=np.ones(3)).nodes
    changing.remove_node(new)
    assert changing.graph.n_nodes == 5
    assert changing.undo().edit == "undo remove_node"
    assert changing.graph.n_nodes == 6
    np.testing.assert_array_equal(changing.logits([new]), np.ones((1, 3)))
    changing.undo()
    assert changing.nodes.tolist() == [0, 1, 2, 3, 4]


def test_an_undo_that_fails_can_be_tried_again(changing, monkeypatch):
    before = changing.fingerprint
    changing.remove_node(2)
    with monkeypatch.context() as patch:
        patch.setattr(LiveSystem, "_make_room", lambda *_: (_ for _ in ()).throw(MemoryError("no room")))
        with pytest.raises(MemoryError):
            changing.undo()
        assert changing.nodes.tolist() == [0, 1, 3, 4]
        assert changing.graph.n_edges == 2
    changing.undo()
    assert changing.fingerprint == before


@pytest.mark.parametrize("neighbours", [None, (), np.empty(0, int)])
def test_a_new_node_without_neighbours_has_no_edge(changing, neighbours):
    (new,) = changing.add_node(prediction=[1.0, 2.0, 3.0], neighbours=neighbours).nodes
    assert changing.graph.adjacency.toarray()[new].tolist() == [0] * 6
    np.testing.assert_array_equal(changing.logits([new]), [[1.0, 2.0, 3.0]])


class Watched:
    """A graph that counts how often its ids are read."""

    def __init__(self, graph):
        self.graph, self.reads = graph, 0

    @property
    def ids(self):
        self.reads += 1
        return self.graph.ids

    def __getattr__(self, name):
        return getattr(self.graph, name)


def test_making_the_graph_reads_all_ids_once_and_not_once_per_node():
    reads = []
    for n in (5, 50):
        graph = Graph.from_scipy(sparse.csr_array((n, n)), ids=[f"node {k}" for k in range(n)])
        changing = live(graph, np.ones((n, 3)))
        watched: Any = Watched(graph)
        changing._record._base = watched
        changing.remove_node(1)
        assert changing.graph.ids is not None
        assert changing.graph.ids.tolist() == [f"node {k}" for k in range(n) if k != 1]
        reads.append(watched.reads)
    assert reads[0] == reads[1]


def test_an_id_is_free_again_when_its_node_is_gone_and_is_given_back_by_an_undo():
    changing = live(Graph.from_scipy(PATH, ids=list("abcde")), np.eye(5)[:, :3])
    assert changing.positions(["b"]).tolist() == [1]
    changing.remove_node(1)
    with pytest.raises(InputError, match="unknown id 'b'"):
        changing.positions(["b"])
    changing.add_nodes(predictions=np.ones((2, 3)), ids=["b", "z"])
    assert changing.positions(["b", "z"]).tolist() == [5, 6]
    changing.remove_nodes([5])
    changing.undo()
    assert changing.positions(["b"]).tolist() == [5]
    changing.undo()
    with pytest.raises(InputError, match="unknown id 'z'"):
        changing.positions(["z"])
    changing.undo()
    assert changing.positions(["b", "e"]).tolist() == [1, 4]


def test_spread_probabilities_stay_probabilities_and_must_be_given_as_such():
    rng = np.random.default_rng(0)
    H = rng.dirichlet(np.ones(3), size=5)
    changing = live(Graph.from_scipy(PATH), H, alpha=0.2, tol=1e-8, response="probabilities")
    expected = propagate(Graph.from_scipy(PATH), H, 0.2, Exact(), normalization="row")
    np.testing.assert_allclose(changing.predict_proba(), expected, atol=2e-8)
    np.testing.assert_allclose(changing.logits(), expected, atol=2e-8)
    changing.add_node(prediction=[0.0, 1.0, 0.0], neighbours=[2])
    np.testing.assert_allclose(changing.predict_proba().sum(axis=1), 1, rtol=1e-12)
    for edit in (
        lambda: changing.set_predictions(0, [0.5, 0.6, 0.0]),
        lambda: changing.add_node(prediction=[1.5, -0.5, 0.0]),
    ):
        with pytest.raises(InputError, match="probabilities, none negative, that sum to one"):
            edit()


def test_a_graph_on_demand_has_the_features_labels_and_ids_of_its_nodes():
    features = sparse.csr_array(np.arange(20.0).reshape(5, 4))
    graph = Graph.from_scipy(PATH, features=features, labels=[0, 0, 1, 1, -1], ids=list("abcde"), name="citeseer")
    changing = live(graph, np.eye(5)[:, :3])
    assert changing.graph is graph
    changing.remove_node(1)
    new = changing.add_node(np.full(4, 9.0), [0], prediction=[1.0, 0.0, 0.0], id="z").nodes
    found = changing.graph
    assert found.ids is not None
    assert found.ids.tolist() == list("acdez")
    assert found.labels is not None
    assert found.labels.tolist() == [0, 1, 1, -1, -1]
    assert isinstance(found.features, sparse.csr_array)
    np.testing.assert_array_equal(
        found.features.toarray(), [*np.arange(20.0).reshape(5, 4)[[0, 2, 3, 4]], np.full(4, 9.0)]
    )
    assert found.adjacency.toarray()[4].tolist() == [1, 0, 0, 0, 0]
    assert found.name is None  # it is Citeseer no more
    assert changing.positions(["z", "e"]).tolist() == [new[0], 4]
    with pytest.raises(InputError, match="unknown id 'b'"):
        changing.positions(["b"])
    with pytest.raises(InputError, match="'a', which is in use"):
        changing.add_node(np.ones(4), prediction=[1.0, 0.0, 0.0], id="a")
    with pytest.raises(InputError, match="1 new ids"):
        changing.add_node(np.ones(4), prediction=[1.0, 0.0, 0.0])
    changing.undo()
    changing.undo()
    assert changing.fingerprint == graph.fingerprint
    changing.add_node(prediction=[1.0, 0.0, 0.0], id="y")
    assert changing.graph.features is None  # one of its nodes has none


def test_the_graph_is_made_once_and_only_when_asked_for(changing):
    changing.add_edge(0, 2)
    first = changing.graph
    assert changing.graph is first
    changing.add_edge(0, 3)
    assert changing.graph is not first
    assert first.n_edges == 5


def test_a_self_loop_of_weight_one_changes_no_prediction_and_can_be_removed(changing):
    before = changing.logits()
    changing.add_edge(3, 3)
    assert changing.graph.n_edges == 5
    np.testing.assert_array_equal(changing.logits(), before)
    changing.remove_edge(3, 3)
    assert changing.graph.n_edges == 4


def test_probabilities_sum_to_one_and_classes_are_column_numbers_without_names(changing):
    np.testing.assert_allclose(changing.predict_proba([0, 4]).sum(axis=1), 1)
    assert changing.predict([0, 1]).tolist() == [0, 1]


def test_the_bound_of_a_node_grows_with_the_root_of_its_degree(changing):
    np.testing.assert_allclose(changing.error_bound([0, 1]), 1e-4 * np.sqrt([2, 3]))


def test_large_predictions_that_come_and_go_leave_no_rounding_behind(changing):
    """Numbers of 1e5 cost digits; how many is known, and the residual is computed anew before they matter."""
    start = changing.logits()
    for _ in range(200):
        changing.set_predictions(2, np.full(3, 1e5))
        changing.undo()
    np.testing.assert_allclose(changing.logits(), start, rtol=0, atol=2e-4)
    assert changing.refresh().drift < 1e-4 / 16


def test_a_torch_tensor_of_one_column_is_taken_as_predictions():
    changing = live(Graph.from_scipy(PATH), torch.arange(5.0, requires_grad=True), alpha=1.0)
    np.testing.assert_allclose(changing.logits()[:, 0], np.arange(5.0), atol=1e-3)
