"""Nodes by id where a graph has them: rows of PPR, subgraphs and live edits take text as ids, integers as positions."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import pprop
from pprop import Graph, InputError, LocalPush

IDS = ["ann", "bob", "cem", "dee", "eve"]
PATH = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
GRAPH = Graph.from_scipy(PATH, ids=IDS)


@pytest.mark.parametrize("nodes", [["dee", "ann"], np.array(["dee", "ann"]), pd.Series(["dee", "ann"]), ("dee", "ann")])
def test_rows_of_nodes_given_by_id(nodes: Any) -> None:
    expected = pprop.ppr(GRAPH, [3, 0], eps=1e-6)
    found = pprop.ppr(GRAPH, nodes, eps=1e-6)
    assert found.nodes.tolist() == [3, 0]
    assert np.array_equal(found.matrix.toarray(), expected.matrix.toarray())
    push = LocalPush(GRAPH)
    assert push.rows(nodes, eps=1e-6).nodes.tolist() == [3, 0]
    assert np.array_equal(push.row("dee", 1e-3).values, push.row(3, 1e-3).values)
    assert GRAPH.subgraph(nodes) == GRAPH.subgraph([3, 0])


def test_integer_ids_are_named_as_such() -> None:
    numbered = GRAPH.replace(ids=[14, 13, 12, 11, 0])
    assert pprop.ppr(numbered, ids=[11, 0], eps=1e-3).nodes.tolist() == [3, 4]
    assert pprop.ppr(numbered, [0], eps=1e-3).nodes.tolist() == [0]
    assert pprop.ppr(GRAPH, ids=["dee"], eps=1e-3).nodes.tolist() == [3]
    with pytest.raises(InputError, match=r"'ids' parameter of ppr must be None where nodes is given"):
        pprop.ppr(GRAPH, [0], ids=["dee"], eps=1e-3)


@pytest.mark.parametrize(
    ("graph", "nodes", "message"),
    [
        (GRAPH, ["dee", "eva"], r"'nodes' parameter of ppr .* unknown id 'eva' at index 1 instead. Did you mean 'eve'"),
        (GRAPH.replace(ids=None), ["dee"], r"since this graph has no ids"),
        (GRAPH, "dee", r"one-dimensional array of node ids"),
        (GRAPH, None, r"'nodes' parameter of ppr must be an array of nodes.*ids that are text"),
    ],
)
def test_what_are_no_ids_of_the_graph_is_refused(graph: Graph, nodes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        pprop.ppr(graph, nodes, eps=1e-3)


def test_ids_that_look_alike_are_told_apart() -> None:
    composed, apart = "caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\N{COMBINING ACUTE ACCENT}"
    for known, asked, form in ((composed, apart, "NFC"), (apart, composed, "NFD")):
        graph = GRAPH.replace(ids=[known, *IDS[1:]])
        hint = rf"the same letters in another Unicode form: pass unicodedata\.normalize\('{form}', id\)"
        with pytest.raises(InputError, match=hint):
            pprop.ppr(graph, [asked], eps=1e-3)
        with pytest.raises(InputError, match=hint):
            _live(graph).add_edge("dee", asked)
        with pytest.raises(InputError, match=hint):
            pprop.propagate(graph, pd.Series(np.ones(5), index=[asked, *IDS[1:]]))


def test_ids_of_other_types_are_refused_with_what_makes_text_of_them() -> None:
    ids = [uuid.UUID(int=k) for k in range(5)]
    with pytest.raises(InputError, match=r"Make text of other ids, such as UUIDs: \[str\(id\) for id in ids\]"):
        GRAPH.replace(ids=ids)
    named = GRAPH.replace(ids=list(map(str, ids)))
    with pytest.raises(InputError, match=r"'ids' parameter of positions .* Make text of other ids"):
        named.positions(np.array(ids[:2]))
    with pytest.raises(InputError, match=r"5 unknown ids .*text: convert the index with \.rename\(str\)"):
        pprop.propagate(named, pd.Series(np.ones(5), index=ids))


def test_rows_as_a_frame_name_their_nodes_largest_first() -> None:
    rows = pprop.ppr(GRAPH, ["cem", "ann"], alpha=0.5, topk=2)
    frame = rows.to_frame()
    dense = rows.matrix.toarray()
    assert frame["node"].tolist() == ["cem", "cem", "ann", "ann"]
    assert frame["other"].tolist() == ["cem", "bob", "ann", "bob"]
    assert frame["value"].tolist() == [dense[0, 2], dense[0, 1], dense[1, 0], dense[1, 1]]
    assert repr(rows).startswith("SparseRows(2 rows of 5 nodes, 4 entries, error at most ")
    bare = pprop.ppr(GRAPH.replace(ids=None), [2], alpha=0.5, eps=1e-3)
    assert bare.to_frame()["other"].tolist()[0] == 2
    assert "certified" not in repr(bare)


def _live(graph: Graph = GRAPH) -> Any:
    return pprop.live(graph, np.eye(5), tol=1e-9)


def test_live_edits_take_ids() -> None:
    named, numbered = _live(), _live()
    for edit, by_id, by_position in (
        ("add_edge", ("ann", "dee"), (0, 3)),
        ("set_weight", ("ann", 3, 2.5), (0, 3, 2.5)),
        ("remove_edge", ("bob", "cem"), (1, 2)),
        ("add_edges", ([["ann", "eve"], ["bob", "eve"]],), ([[0, 4], [1, 4]],)),
        ("set_predictions", ("eve", [0, 0, 0, 0, 2.0]), (4, [0, 0, 0, 0, 2.0])),
        ("remove_node", ("cem",), (2,)),
    ):
        assert getattr(named, edit)(*by_id).nodes.tolist() == getattr(numbered, edit)(*by_position).nodes.tolist()
    one = named.add_node(prediction=np.ones(5), neighbours=["ann", "dee"], id="fay")
    assert one.nodes.tolist() == numbered.add_node(prediction=np.ones(5), neighbours=[0, 3], id="fay").nodes.tolist()
    assert np.array_equal(named.logits(["fay", "ann"]), numbered.logits([5, 0]))
    assert np.array_equal(named.error_bound(["bob"]), numbered.error_bound([1]))
    with pytest.raises(InputError, match=r"'v' parameter of add_edge must be the id of a node .* Got 'cem'"):
        named.add_edge("ann", "cem")  # removed
    with pytest.raises(InputError, match=r"Got 'evee' instead\. Did you mean 'eve'"):
        named.add_edge("ann", "evee")
    with pytest.raises(InputError, match=r"no ids"):
        _live(GRAPH.replace(ids=None)).add_edge("ann", "dee")


def test_batches_of_edits_take_ids_and_all_or_none_are_made() -> None:
    named, numbered = _live(), _live()
    named.apply(
        [
            ("add_edge", "ann", "dee"),
            ("remove_edge", "ann", 1),
            ("add_edge", {"u": "bob", "v": "eve", "weight": 2.0}),
            ("add_node", None, {"prediction": np.ones(5), "id": "fay"}),
            ("add_edge", "fay", "ann"),
            ("remove_edges", [["dee", "eve"]]),
        ]
    )
    numbered.apply(
        [
            ("add_edge", 0, 3),
            ("remove_edge", 0, 1),
            ("add_edge", 1, 4, 2.0),
            ("add_node", None, {"prediction": np.ones(5), "id": "fay"}),
            ("add_edge", 5, 0),
            ("remove_edges", [[3, 4]]),
        ]
    )
    assert np.array_equal(named.graph.adjacency.toarray(), numbered.graph.adjacency.toarray())
    before = named.graph
    with pytest.raises(InputError, match=r"because of the one at index 1: .* Got 'zoe'"):
        named.apply([("add_edge", "dee", "eve"), ("add_edge", "ann", "zoe"), ("remove_edge", "ann", "dee")])
    assert named.graph == before
