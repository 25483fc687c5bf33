"""Random graphs through networkx, PyG, scipy and pandas and back: equal, up to the listed losses."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pprop import Graph
from pprop.graph import LOSSES

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "experiments" / "roundtrips.py"))
FORMATS: dict[str, Any] = SCRIPT["FORMATS"]


@pytest.mark.parametrize("form", FORMATS)
def test_200_random_graphs_come_back(form: str) -> None:
    rng = np.random.default_rng(19)
    for k in range(200):
        graph: Graph = SCRIPT["random_graph"](rng)
        assert SCRIPT["check"](form, graph) == [], f"graph {k}"


def test_the_random_graphs_are_of_all_kinds() -> None:
    rng = np.random.default_rng(19)
    graphs: list[Graph] = [SCRIPT["random_graph"](rng) for _ in range(200)]
    assert {graph.directed for graph in graphs} == {True, False}
    assert {graph.weights is None for graph in graphs} == {True, False}
    assert {None if graph.ids is None else graph.ids.dtype.kind for graph in graphs} == {None, "i", "U"}
    kinds = {None if graph.features is None else (type(graph.features), str(graph.features.dtype)) for graph in graphs}
    assert len(kinds) == 5
    assert {(graph.labels is None, graph.class_names is None) for graph in graphs} == {
        (True, True),
        (False, True),
        (False, False),
    }
    assert any(graph.adjacency.diagonal().any() for graph in graphs)
    assert any((np.diff(graph.indptr) == 0).any() for graph in graphs)


def test_a_loss_is_found() -> None:
    graph = Graph.from_scipy(sparse.csr_array((2, 2)), labels=[0, 1])
    assert SCRIPT["differences"](graph, graph.replace(labels=[1, 0], name="x")) == ["fingerprint", "name"]


def test_every_format_has_its_list_of_losses() -> None:
    assert set(LOSSES) == set(FORMATS)
    assert all(sentence.endswith(".") for sentences in LOSSES.values() for sentence in sentences)


def test_the_paper_settings_are_lost_where_the_lists_say_so() -> None:
    from pprop import Recommended

    graph = Graph.from_scipy(sparse.csr_array((2, 2)), recommended=Recommended(alpha=0.1, known=1))
    kept = {form for form, (through, _) in FORMATS.items() if through(graph).recommended is not None}
    assert kept == {form for form, sentences in LOSSES.items() if not any("paper's" in one for one in sentences)}


def test_features_with_three_dimensions_or_no_columns_come_back_where_they_can() -> None:
    for features in (np.ones((2, 3, 4)), np.ones((2, 0)), sparse.csr_array((2, 0)), sparse.csr_array((2, 5))):
        graph = Graph.from_scipy(sparse.csr_array((2, 2)), features=features)
        for form in ("networkx", "PyG", "scipy"):
            assert SCRIPT["check"](form, graph) == []
