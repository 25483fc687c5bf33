"""The frozen Graph: what it keeps, what it derives, and that nothing changes it. Against matrices written out by hand."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import InputError
from pprop.graph import Graph, Recommended, read_npz, write_npz

# 0 -> 1 -> 2 -> 0 with a self-loop at 2, 3 <-> 4; entry (i, j) is what i receives from j
ARCS = np.array(
    [
        [0.0, 0.0, 2.0, 0.0, 0.0],
        [0.5, 0.0, 0.0, 0.0, 0.0],
        [0.0, 3.0, 4.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, 6.0, 0.0],
    ]
)
PATH = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
FEATURES = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 5.0]])


def whole(adjacency: NDArray[Any] = ARCS, **changes: Any) -> Graph:
    """Return a graph with every field filled."""
    fields: dict[str, Any] = {
        "directed": True,
        "features": sparse.csr_array(FEATURES),
        "labels": [0, 1, -1, 1, 0],
        "ids": ["ann", "bob", "cem", "dee", "eve"],
        "class_names": ["red", "blue"],
        "feature_names": ["x", "y", "z"],
        "name": "five",
        "recommended": Recommended(alpha=0.1, known=3),
    }
    return Graph.from_scipy(sparse.csr_array(adjacency), **{**fields, **changes})


def arrays_of(graph: Graph) -> dict[str, NDArray[Any]]:
    features = graph.features
    found: dict[str, Any] = {name: getattr(graph, name) for name in ("indptr", "indices", "weights", "labels", "ids")}
    if isinstance(features, sparse.csr_array):
        found |= {f"features.{part}": getattr(features, part) for part in ("data", "indices", "indptr")}
    else:
        found["features"] = features
    return {name: array for name, array in found.items() if array is not None}


def test_every_field_is_kept() -> None:
    graph = whole()
    np.testing.assert_array_equal(graph.adjacency.toarray(), ARCS)
    assert isinstance(graph.features, sparse.csr_array)
    np.testing.assert_array_equal(graph.features.toarray(), FEATURES)
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 1, -1, 1, 0]
    assert graph.ids is not None
    assert graph.ids.tolist() == ["ann", "bob", "cem", "dee", "eve"]
    assert (graph.class_names, graph.feature_names) == (("red", "blue"), ("x", "y", "z"))
    assert (graph.name, graph.recommended) == ("five", Recommended(alpha=0.1, known=3))
    assert (graph.n_nodes, graph.n_entries, graph.n_edges, graph.n_classes) == (5, 6, 6, 2)
    assert repr(graph) == "Graph(5 nodes, 6 edges, directed, weighted, 3 features, 2 classes)"


def test_structure_is_canonical_and_unit_weights_are_not_stored() -> None:
    rows, columns = [0, 0, 1, 1, 2, 2], [2, 1, 0, 0, 1, 0]
    values = [1.0, 1.0, 0.25, 0.75, 0.0, 1.0]  # unsorted, a duplicate that adds up to one, a stored zero
    graph = Graph.from_scipy(sparse.coo_array((values, (rows, columns)), shape=(3, 3)), directed=True)
    assert (graph.indptr.tolist(), graph.indices.tolist()) == ([0, 2, 3, 4], [1, 2, 0, 0])
    assert (graph.indptr.dtype, graph.indices.dtype) == (np.int64, np.int32)
    assert graph.weights is None


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("f4", "f4"),
        ("f8", "f8"),
        (">f8", "f8"),
        (">f4", "f4"),
        ("f2", "f2"),
        (">f2", "f4"),
        ("i8", "f4"),
        ("u1", "u1"),
        ("i1", "i1"),
        ("?", "f4"),
    ],
)
def test_features_keep_their_type_or_become_float32(given: str, kept: str) -> None:
    dense = np.array([[1, 0], [0, 1]]).astype(given)
    graph = Graph.from_scipy(sparse.csr_array((2, 2)), features=dense)
    assert isinstance(graph.features, np.ndarray)
    assert graph.features.dtype == np.dtype(kept)
    np.testing.assert_array_equal(graph.features, np.eye(2))


def test_features_may_have_more_than_two_dimensions() -> None:
    images = np.arange(24.0).reshape(2, 3, 4)
    graph = Graph.from_scipy(sparse.csr_array((2, 2)), features=images)
    np.testing.assert_array_equal(graph.subgraph([1]).features, images[1:])  # type: ignore[arg-type]


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.lil_array])
def test_features_in_any_sparse_form(form: Any) -> None:
    graph = whole(features=form(FEATURES))
    assert isinstance(graph.features, sparse.csr_array)
    np.testing.assert_array_equal(graph.features.toarray(), FEATURES)


# ids and positions


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (["a", "b", "a b"], "U"),
        ([3, -1, 2**40], "i"),
        (np.array([3, 1, 2], dtype=np.uint8), "u"),
        (np.array(["a", "b", "c"], dtype=object), "U"),  # what pandas gives
        (np.array([3, 1, 2], dtype=object), "i"),
        ([2**63, 1, 2], "u"),
        ([np.str_("a"), "b", "c"], "U"),
        ([np.int64(7), 8, 9], "i"),
    ],
)
def test_ids_are_kept_and_found_in_any_order(ids: Any, kind: str) -> None:
    graph = Graph.from_scipy(sparse.csr_array((3, 3)), ids=ids)
    assert graph.ids is not None
    assert graph.ids.dtype.kind == kind
    assert graph.ids.tolist() == list(ids)
    assert graph.positions([ids[2], ids[0], ids[2]]).tolist() == [2, 0, 2]
    assert graph.positions(np.asarray(list(ids), dtype=object)).tolist() == [0, 1, 2]
    assert graph.positions([]).dtype == np.int64
    assert graph.positions([]).shape == (0,)


def test_positions_without_ids() -> None:
    with pytest.raises(InputError, match="no ids: its nodes are named by their positions"):
        Graph.from_scipy(sparse.csr_array((2, 2))).positions([0])


# derived graphs


def test_largest_component_keeps_the_order_and_what_belongs_to_the_nodes() -> None:
    matrix = np.zeros((6, 6))
    matrix[[5, 0, 3], [0, 3, 1]] = 2.0  # weakly connected: 0, 1, 3, 5
    matrix[4, 2] = 1.0
    graph = Graph.from_scipy(
        sparse.csr_array(matrix), directed=True, features=np.eye(6), labels=[0, 1, 2, 3, 4, 5], ids=list("abcdef")
    )
    part = graph.largest_component()
    keep = [0, 1, 3, 5]
    np.testing.assert_array_equal(part.adjacency.toarray(), matrix[np.ix_(keep, keep)])
    assert part.ids is not None
    assert part.ids.tolist() == ["a", "b", "d", "f"]
    assert part.labels is not None
    assert part.labels.tolist() == keep
    np.testing.assert_array_equal(part.features, np.eye(6)[keep])  # type: ignore[arg-type]
    assert part.directed


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([(0, 3), (1, 2)], [0, 3]),  # of equals the one with the first node
        ([(1, 4), (0, 3), (2, 3)], [0, 2, 3]),
        ([(1, 4), (2, 3)], [1, 4]),
        ([], [0]),
    ],
)
def test_first_of_several_largest_components(edges: list[tuple[int, int]], expected: list[int]) -> None:
    matrix = np.zeros((5, 5))
    for i, j in edges:
        matrix[i, j] = matrix[j, i] = 1.0
    part = Graph.from_scipy(sparse.csr_array(matrix), ids=np.arange(5)).largest_component()
    assert part.ids is not None
    assert part.ids.tolist() == expected


def test_connected_graph_is_its_own_largest_component() -> None:
    graph = Graph.from_scipy(sparse.csr_array(PATH))
    assert graph.largest_component() is graph


def test_undirected_takes_the_larger_weight_of_two() -> None:
    both = whole().undirected()
    np.testing.assert_array_equal(both.adjacency.toarray(), np.maximum(ARCS, ARCS.T))
    assert not both.directed
    assert both.n_edges == 5  # four pairs and a self-loop
    assert both.undirected() is both
    assert both.ids is not None
    assert both.recommended == whole().recommended


def test_unweighted_keeps_the_structure() -> None:
    plain = whole().unweighted()
    np.testing.assert_array_equal(plain.adjacency.toarray(), (ARCS > 0).astype(float))
    assert plain.weights is None
    assert plain.unweighted() is plain


def test_without_self_loops_empties_the_diagonal_only() -> None:
    np.testing.assert_array_equal(whole().without_self_loops().adjacency.toarray(), ARCS - np.diag(np.diag(ARCS)))


def test_subgraph_follows_the_order_given() -> None:
    order = [4, 2, 0]
    part = whole().subgraph(order)
    np.testing.assert_array_equal(part.adjacency.toarray(), ARCS[np.ix_(order, order)])
    assert isinstance(part.features, sparse.csr_array)
    np.testing.assert_array_equal(part.features.toarray(), FEATURES[order])
    assert part.labels is not None
    assert part.labels.tolist() == [0, -1, 0]
    assert part.positions(["cem"]).tolist() == [1]
    assert (part.class_names, part.feature_names, part.name) == (("red", "blue"), ("x", "y", "z"), "five")


def test_replace_changes_what_it_is_told_and_nothing_else() -> None:
    graph = whole()
    before = graph.fingerprint
    changed = graph.replace(labels=None, class_names=None, name="other")
    assert (changed.labels, changed.class_names, changed.name) == (None, None, "other")
    assert changed.replace(labels=graph.labels) == graph
    assert graph.fingerprint == before
    assert graph.name == "five"


# symmetric to the last bit


def test_weights_symmetric_to_rounding_are_stored_symmetric_to_the_last_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    half = np.triu(rng.random((8, 8)), 1)
    matrix = half + half.T * (1 + 1e-14)
    assert not np.array_equal(matrix, matrix.T)
    graph = Graph.from_scipy(sparse.csr_array(matrix))
    stored = graph.adjacency.toarray()
    np.testing.assert_array_equal(stored, np.maximum(matrix, matrix.T))
    write_npz(graph, tmp_path / "graph.npz")
    assert read_npz(tmp_path / "graph.npz") == graph
    write_npz(Graph.from_scipy(sparse.csr_array(matrix), directed=True), tmp_path / "rounded.npz")
    assert read_npz(tmp_path / "rounded.npz") == graph  # the reader and the Graph mean the same by symmetric
    assert read_npz(tmp_path / "rounded.npz", directed=False) == graph


def test_weights_that_rounding_alone_keeps_from_one_are_one() -> None:
    graph = Graph.from_scipy(sparse.csr_array([[0, 1.0], [1 - 1e-15, 0]]))
    assert graph.weights is None
    assert graph == Graph.from_scipy(sparse.csr_array([[0, 1], [1, 0]]))


# immutable


@pytest.mark.parametrize("features", [FEATURES, sparse.csr_array(FEATURES)])
def test_arrays_cannot_be_written_to_nor_made_writable_views_of_something(features: Any) -> None:
    for name, array in arrays_of(whole(features=features)).items():
        with pytest.raises(ValueError, match="read-only"):
            array[..., 0] = array[..., 0]
        holder: Any = array
        while isinstance(holder, np.ndarray):
            assert not holder.flags.writeable, name
            holder = holder.base


def test_what_is_done_to_the_inputs_later_does_not_reach_the_graph() -> None:
    adjacency = sparse.csr_array(ARCS)
    features, labels, ids = FEATURES.copy(), np.array([0, 1, -1, 1, 0]), np.array(list("abcde"))
    views = [features.view(), ids.view(), labels.view()]
    for view in views:
        view.flags.writeable = False  # as pandas hands them out: read-only here, writable there
    graph = whole(features=views[0], ids=views[1], labels=views[2]).replace(adjacency=adjacency)
    before = {name: array.copy() for name, array in arrays_of(graph).items()}
    adjacency.data[:] = 9
    adjacency.indices[:] = 0
    features[:], labels[:], ids[:] = 9, 0, "z"
    for name, array in arrays_of(graph).items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_a_frozen_array_is_shared_and_not_copied() -> None:
    features = FEATURES.copy()
    features.flags.writeable = False
    graph = whole(features=features)
    assert graph.features is features
    assert graph.replace(name="again").features is features


def test_sparse_features_are_a_new_object_that_shares_the_arrays() -> None:
    graph = whole()
    first, second = graph.features, graph.features
    assert isinstance(first, sparse.csr_array)
    assert isinstance(second, sparse.csr_array)
    assert np.shares_memory(first.data, second.data)
    first.data = np.zeros(5)
    first.indices = np.zeros_like(first.indices)
    assert isinstance(graph.features, sparse.csr_array)
    np.testing.assert_array_equal(graph.features.toarray(), FEATURES)
    with pytest.raises(ValueError, match="read-only"):
        second *= 2


def test_wide_indices_of_sparse_features_are_narrowed_once() -> None:
    wide: Any = sparse.csr_array(FEATURES)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    graph = whole(features=wide)
    first, second = graph.features, graph.features
    assert isinstance(first, sparse.csr_array)
    assert isinstance(second, sparse.csr_array)
    assert np.shares_memory(first.indices, second.indices)
    assert graph == whole()


@pytest.mark.parametrize("name", ["directed", "weights", "features", "labels", "fingerprint", "anything"])
def test_attributes_cannot_be_set_or_deleted(name: str) -> None:
    graph = whole()
    with pytest.raises(AttributeError, match=f"A Graph is immutable: '{name}' cannot be set"):
        setattr(graph, name, None)
    with pytest.raises(AttributeError, match=f"A Graph is immutable: '{name}' cannot be deleted"):
        delattr(graph, name)


def test_graph_is_not_made_by_calling_the_class() -> None:
    with pytest.raises(InputError, match=r"Use Graph\.from_scipy or one of the readers"):
        Graph()


def test_copies_are_the_graph_itself() -> None:
    graph = whole()
    assert copy.copy(graph) is graph
    assert copy.deepcopy({"graph": graph})["graph"] is graph


@pytest.mark.parametrize(
    "changes", [{}, {"features": FEATURES, "ids": None}, {"features": None, "feature_names": None}]
)
def test_pickle_gives_back_an_equal_frozen_graph(changes: dict[str, Any]) -> None:
    graph = whole(**changes)
    back = pickle.loads(pickle.dumps(graph))  # noqa: S301 - made one line ago
    assert back == graph
    assert hash(back) == hash(graph)
    for field in ("class_names", "feature_names", "name", "recommended", "directed"):
        assert getattr(back, field) == getattr(graph, field)
    assert not any(array.flags.writeable for array in arrays_of(back).values())


# fingerprint


CHANGES: dict[str, dict[str, Any]] = {
    "structure": {"adjacency": sparse.csr_array(np.roll(ARCS, 1, axis=0))},
    "a weight": {"adjacency": sparse.csr_array(np.where(ARCS == 2.0, np.nextafter(2.0, 3.0), ARCS))},
    "no weights": {"adjacency": sparse.csr_array(np.sign(ARCS))},
    "labels": {"labels": [0, 1, -1, 1, 1]},
    "no labels": {"labels": None},
    "ids": {"ids": ["ann", "bob", "cem", "dee", "evE"]},
    "order of ids": {"ids": ["bob", "ann", "cem", "dee", "eve"]},
    "no ids": {"ids": None},
    "a feature": {"features": sparse.csr_array(FEATURES * [1, 1, 2])},
    "place of a feature": {"features": sparse.csr_array(FEATURES[:, ::-1])},
    "an empty feature": {"features": sparse.csr_array(np.pad(FEATURES, ((0, 0), (0, 1)))), "feature_names": None},
    "two empty features": {"features": sparse.csr_array(np.pad(FEATURES, ((0, 0), (0, 2)))), "feature_names": None},
    "precision": {"features": sparse.csr_array(FEATURES, dtype=np.float32)},
    "no features": {"features": None, "feature_names": None},
}


def test_fingerprint_depends_on_each_part() -> None:
    graph = whole()
    prints = {name: graph.replace(**change).fingerprint for name, change in CHANGES.items()}
    prints["nothing"] = graph.fingerprint
    assert len(set(prints.values())) == len(prints), prints
    assert all(len(digits) == 32 and int(digits, 16) >= 0 for digits in prints.values())


def test_fingerprint_depends_on_the_direction() -> None:
    arrow = Graph.from_scipy(sparse.csr_array(PATH), directed=True)
    assert arrow != Graph.from_scipy(sparse.csr_array(PATH))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (["a\0b", "c"], ["a", "b\0c"]),
        (["1:a", "b"], ["1", ":ab"]),
        (["12", "3"], ["1", "23"]),
        (["1", "2"], [1, 2]),
        (["\ud800", "b"], ["\ud801", "b"]),  # lone halves of a character are text to numpy
    ],
)
def test_fingerprint_tells_ids_apart(left: list[Any], right: list[Any]) -> None:
    empty = sparse.csr_array((2, 2))
    assert Graph.from_scipy(empty, ids=left) != Graph.from_scipy(empty, ids=right)


def test_fingerprint_does_not_depend_on_names() -> None:
    changed = whole().replace(
        name="six", class_names=["a", "b"], feature_names=["p", "q", "r"], recommended=Recommended(alpha=0.2, known=4)
    )
    assert changed.fingerprint == whole().fingerprint


def test_fingerprint_does_not_depend_on_the_representation() -> None:
    expected = whole().fingerprint
    unsorted = sparse.csr_array(FEATURES)
    unsorted.indices[:2], unsorted.data[:2] = [2, 0], [2.0, 1.0]
    unsorted.has_sorted_indices = False
    zeros = sparse.coo_array(FEATURES + 7)
    zeros.data -= 7  # every entry stored
    twice = sparse.coo_array(
        (np.array([0.5, 0.5, 2, 3, 4, 5]), ([0, 0, 0, 2, 3, 4], [0, 0, 2, 1, 0, 2])), shape=FEATURES.shape
    )
    for features in (unsorted, zeros, twice, sparse.csc_array(FEATURES), sparse.csr_matrix(FEATURES)):
        assert whole(features=features).fingerprint == expected
    stored = sparse.coo_array(ARCS + 7)
    stored.data -= 7
    assert whole().replace(adjacency=stored).fingerprint == expected
    assert whole().replace(adjacency=sparse.csc_array(ARCS)).fingerprint == expected
    assert whole(ids=np.array(["ann", "bob", "cem", "dee", "eve"], dtype="U40")).fingerprint == expected
    assert whole(labels=np.array([0, 1, -1, 1, 0], dtype=np.int8)).fingerprint == expected
    integers = {
        whole(ids=np.array([5, 1, 2, 3, 4], dtype=dtype)).fingerprint for dtype in ("i1", "u2", ">i4", "i8", "O")
    }
    assert len(integers) == 1
