"""What a notebook and a TypeError show of a Graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pprop import Graph

PATH = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(4, 4))


def _html(graph: Graph) -> str:
    return graph._repr_html_()  # pyright: ignore[reportPrivateUsage]


def test_a_notebook_shows_a_short_table_in_which_names_are_escaped() -> None:
    labels, ids = ["<script>", "b&w", None, "b&w"], ["<b>", "x", "y", "z"]
    shown = _html(Graph.from_scipy(PATH, features=np.eye(4), labels=labels, ids=ids, name="<i>"))
    for part in (
        "4",
        "3, undirected",
        "4, dense",
        "3 of 4 nodes",
        "&lt;script&gt;: 1, b&amp;w: 2",
        "&lt;b&gt;, x, y, ...",
    ):
        assert f">{part}<" in shown
    assert "Graph &lt;i&gt;" in shown
    assert "<script>" not in shown
    bare = _html(Graph.from_scipy(2 * PATH))
    assert ">3, undirected, weighted<" in bare
    assert "labels" not in bare
    assert "features" not in bare


def test_many_classes_are_cut() -> None:
    shown = _html(Graph.from_scipy(sparse.csr_array((30, 30)), labels=np.arange(30)))
    assert "9: 1 and 20 more" in shown
    assert "10: 1" not in shown


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: type(graph).from_pandas({}, wrong=1),
        lambda graph: type(graph).from_edges([], [], n_nodes=3),
        lambda graph: type(graph).from_pyg([], wrong=1),
        lambda graph: graph.subgraph(),
        lambda graph: graph.scaled(wrong=1),
        lambda graph: graph.to_networkx(1),
    ],
)
def test_a_wrong_argument_is_refused_in_the_name_of_the_public_class(call: Any) -> None:
    with pytest.raises(TypeError, match=r"^Graph\.\w+\(\) "):
        call(Graph.from_scipy(PATH))
