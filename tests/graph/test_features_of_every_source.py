"""`features=` in every Graph.from_*: an array in the order of the nodes, or a frame whose index names them."""

from __future__ import annotations

from typing import Any

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse

from pprop import Graph, InputError

IDS = list("dacb")
E = np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32)
ENDS = ["d", "a", "c"], ["a", "c", "b"]
EDGES = pd.DataFrame({"source": ENDS[0], "target": ENDS[1]})
NODES = pd.DataFrame({"id": IDS, "team": ["x", "y", "x", "y"]})
EDGE_INDEX = np.array([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
FRAME = pd.DataFrame(E, index=IDS, columns=list("pqr")).iloc[[3, 1, 0, 2]]


def _network() -> Any:
    network = nx.Graph()
    network.add_nodes_from(IDS)
    network.add_edges_from(zip(*ENDS, strict=True))
    return network


def _igraph() -> Any:
    graph = igraph.Graph([(0, 1), (1, 2), (2, 3)])
    graph.vs["name"] = IDS
    return graph


SOURCES: dict[str, Any] = {
    "scipy": lambda features: Graph.from_scipy(
        sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(4, 4)), features=features, ids=IDS
    ),
    "edges": lambda features: Graph.from_edges(*ENDS, nodes=IDS, features=features),
    "pandas": lambda features: Graph.from_pandas(EDGES, NODES, label_column="team", features=features),
    "networkx": lambda features: Graph.from_networkx(_network(), features=features),
    "igraph": lambda features: Graph.from_igraph(_igraph(), features=features),
    "PyG": lambda features: Graph.from_pyg(EDGE_INDEX, features=features),
}


@pytest.mark.parametrize("source", SOURCES)
def test_an_array_has_the_rows_of_the_nodes(source: str) -> None:
    for features in (E, E.tolist(), torch.from_numpy(E)):
        graph = SOURCES[source](features)
        assert np.allclose(graph.features, E, rtol=1e-7)
        assert graph.n_edges == 3
        assert graph.recipe is None
    assert SOURCES[source](E.astype(np.float16)).features.dtype == np.float16
    found: Any = SOURCES[source](sparse.csr_array(E)).features
    assert isinstance(found, sparse.csr_array)
    assert np.array_equal(found.toarray(), E)
    for wrong in (E[:3], E[:, 0]):
        with pytest.raises(InputError, match=r"'features' parameter of Graph\.from_.* with 4 rows"):
            SOURCES[source](wrong)


@pytest.mark.parametrize("source", [name for name in SOURCES if name != "PyG"])
def test_rows_of_a_frame_are_found_by_id(source: str) -> None:
    graph = SOURCES[source](FRAME)
    assert np.array_equal(graph.features, E)
    assert graph.feature_names == ("p", "q", "r")
    assert np.array_equal(SOURCES[source](pl.DataFrame(E, schema=list("pqr"))).features, E)
    with pytest.raises(InputError, match=r"'features' parameter of Graph\.from_.* 1 unknown id \('z'\)"):
        SOURCES[source](FRAME.rename({"d": "z"}))


def test_a_frame_names_the_nodes_of_an_edge_list() -> None:
    for graph in (
        Graph.from_edges(*ENDS, features=FRAME, labels=pd.Series(["x", "y", "z", "w"], index=list("abcd"))),
        Graph.from_pandas(EDGES, features=FRAME),
    ):
        assert graph.ids is not None
        assert np.array_equal(graph.features, FRAME.loc[graph.ids.tolist()])  # type: ignore[reportArgumentType]
    for make in (Graph.from_edges, lambda *ends, **given: Graph.from_pandas(EDGES, **given)):
        with pytest.raises(InputError, match=r"'features' parameter .*order of the nodes is not given.*nodes="):
            make(*ENDS, features=E)


def test_features_and_columns_of_the_node_table_are_used_together() -> None:
    nodes = NODES.assign(age=[31.5, 27.0, 45.25, 38.0])
    graph = Graph.from_pandas(EDGES, nodes, label_column="team", features=FRAME)
    assert graph.feature_names == ("age", "p", "q", "r")
    assert np.array_equal(graph.features, np.column_stack([nodes["age"], E]).astype(np.float32))  # type: ignore[reportArgumentType]
    assert graph.recipe is not None
    again = Graph.from_pandas(EDGES, nodes, label_column="team", features=FRAME, feature_columns=graph.recipe)
    assert again == graph
    block = Graph.from_pandas(EDGES, nodes, label_column="team", features=E)
    assert block.feature_names == ("age", "features[0]", "features[1]", "features[2]")
    assert np.array_equal(block.features, graph.features)  # type: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"must be the only features.*feature_columns=\[\]"):
        Graph.from_pandas(EDGES, nodes, label_column="team", features=sparse.csr_array(E))
    alone = Graph.from_pandas(EDGES, nodes, label_column="team", features=E, feature_columns=[])
    assert np.array_equal(alone.features, E)  # type: ignore[reportArgumentType]
    chosen = Graph.from_pandas(EDGES, nodes.assign(size=1.5), features=FRAME, feature_columns=["age"])
    assert chosen.feature_names == ("age", "p", "q", "r")
    with pytest.raises(InputError, match=r"'features' .* with other columns than the DataFrame.* 'age'"):
        Graph.from_pandas(EDGES, nodes, features=FRAME.rename(columns={"p": "age"}))


def test_weights_of_an_edge_index() -> None:
    weights = np.array([2.0, 2, 3, 3, 4, 4])
    for given in (weights, torch.from_numpy(weights), weights[:, None].tolist()):
        graph = Graph.from_pyg(EDGE_INDEX, edge_weight=given)
        assert graph.adjacency[0, 1] == graph.adjacency[1, 0] == 2
        assert graph.adjacency[2, 3] == 4
    with pytest.raises(InputError, match=r"'edge_weight' parameter of Graph.from_pyg must be one weight per edge"):
        Graph.from_pyg(EDGE_INDEX, edge_weight=weights[:4])
    with pytest.raises(InputError, match=r"'edge_weight' parameter of Graph.from_pyg must be finite, non-negative"):
        Graph.from_pyg(EDGE_INDEX, edge_weight=-weights)
    features = np.ones((6, 2), dtype=np.float32)
    assert Graph.from_pyg(EDGE_INDEX, features=features).n_nodes == 6


def test_columns_in_a_dict_with_different_indices_are_refused() -> None:
    with pytest.raises(InputError, match=r"'target' parameter of Graph.from_pandas must be indexed as 'source' is"):
        Graph.from_pandas({"source": EDGES["source"], "target": EDGES["target"][::-1]})
