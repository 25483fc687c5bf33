"""Classes survive when nodes are left out."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from pprop.graph import Graph


def test_subgraph_keeps_the_number_of_classes_where_they_have_no_names() -> None:
    graph = Graph.from_scipy(sparse.csr_array((4, 4)), labels=[0, 1, 2, -1])
    part = graph.subgraph([2, 3])
    assert part.labels is not None
    np.testing.assert_array_equal(part.labels, [2, -1])
    assert part.n_classes == graph.n_classes == 3
    assert graph.subgraph([0]).n_classes == 3


def test_subgraph_keeps_names_of_classes_and_the_absence_of_labels() -> None:
    empty = sparse.csr_array((3, 3))
    named = Graph.from_scipy(empty, labels=[0, 1, -1], class_names=["x", "y", "z"])
    assert named.subgraph([2]).class_names == ("x", "y", "z")
    assert Graph.from_scipy(empty).subgraph([1]).class_names is None
    assert Graph.from_scipy(empty, labels=[-1, -1, -1]).subgraph([1]).class_names is None
