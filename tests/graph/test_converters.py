"""Graphs of networkx, igraph and PyTorch Geometric."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from pprop import Graph
from pprop._errors import GraphError, InputError, MissingDependencyError

with warnings.catch_warnings():  # it names the extensions that it does not find
    warnings.simplefilter("ignore")
    import torch
    from torch_geometric.data import Batch, Data, HeteroData

import igraph
import networkx as nx


def dense(graph: Graph) -> list[list[float]]:
    return graph.adjacency.toarray().tolist()


# networkx


def test_nodes_of_networkx_keep_their_order_and_are_the_ids() -> None:
    g = nx.Graph()
    g.add_nodes_from(["c", "a", "b"])
    g.add_edge("a", "c")
    graph = Graph.from_networkx(g)
    assert graph.ids is not None
    assert graph.ids.tolist() == ["c", "a", "b"]
    assert dense(graph) == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert not graph.directed


def test_integers_from_0_on_are_ids_like_others() -> None:
    ids = Graph.from_networkx(nx.path_graph(3)).ids
    assert ids is not None
    assert ids.tolist() == [0, 1, 2]


def test_a_directed_edge_becomes_what_its_target_receives() -> None:
    graph = Graph.from_networkx(nx.DiGraph([("s", "t")]))
    assert graph.directed
    assert dense(graph) == [[0, 0], [1, 0]]


def test_weights_self_loops_and_zeros_of_networkx() -> None:
    g = nx.Graph()
    g.add_weighted_edges_from([(0, 1, 2.5), (1, 1, 3.0), (1, 2, 0.0)])
    with pytest.warns(UserWarning, match=r"^Graph\.from_networkx: left out 1 edge of weight zero\.$"):
        assert dense(Graph.from_networkx(g)) == [[0, 2.5, 0], [2.5, 3, 0], [0, 0, 0]]
    assert dense(Graph.from_networkx(g, weight=None)) == [[0, 1, 0], [1, 1, 1], [0, 1, 0]]


def test_another_attribute_has_the_weights() -> None:
    g = nx.Graph()
    g.add_edge(0, 1, cost=4)
    assert dense(Graph.from_networkx(g, weight="cost")) == [[0, 4], [4, 0]]
    with pytest.raises(InputError, match=r"'weight' parameter of Graph.from_networkx .* Got 'cots', which no edge has"):
        Graph.from_networkx(g, weight="cots")


def test_edges_without_a_weight_count_one_and_are_counted() -> None:
    g = nx.path_graph(3)
    g.edges[0, 1]["weight"] = 5
    with pytest.warns(UserWarning, match="1 edge of 2 has no 'weight'; each counts as 1"):
        assert dense(Graph.from_networkx(g)) == [[0, 5, 0], [5, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(("kind", "expected"), [(nx.MultiGraph, [[0, 5], [5, 0]]), (nx.MultiDiGraph, [[0, 1], [4, 0]])])
def test_weights_of_parallel_edges_are_added_and_the_edges_counted(kind: Any, expected: list[list[float]]) -> None:
    g = kind()
    g.add_nodes_from([0, 1])
    g.add_weighted_edges_from([(0, 1, 2.0), (0, 1, 2.0), (1, 0, 1.0)])
    merged = "2 parallel edges of 3 edges were" if kind is nx.MultiGraph else "1 parallel edge of 3 edges was"
    with pytest.warns(UserWarning, match=f"Graph.from_networkx: {merged} merged .* weights are added"):
        assert dense(Graph.from_networkx(g)) == expected


def test_directions_can_be_ignored_or_kept_against_the_type() -> None:
    g = nx.DiGraph()
    g.add_weighted_edges_from([(0, 1, 2.0), (1, 0, 3.0)])
    assert dense(Graph.from_networkx(g, directed=False)) == [[0, 3], [3, 0]]
    both = Graph.from_networkx(nx.path_graph(2), directed=True)
    assert both.directed
    assert dense(both) == [[0, 1], [1, 0]]


def test_class_names_of_an_attribute_with_unknowns() -> None:
    g = nx.path_graph(5)
    values = {0: "red", 1: "blue", 2: None, 3: float("nan")}
    nx.set_node_attributes(g, values, "team")
    graph = Graph.from_networkx(g, label="team")
    assert graph.labels is not None
    assert (graph.labels.tolist(), graph.class_names) == ([1, 0, -1, -1, -1], ("blue", "red"))
    with pytest.raises(InputError, match=r"a node attribute\. Got 'teem' instead\. .*'team'\. Did you mean 'team'\?"):
        Graph.from_networkx(g, label="teem")


def test_an_attribute_of_vectors_becomes_the_features_as_it_is() -> None:
    g = nx.path_graph(3)
    nx.set_node_attributes(g, {0: [1.0, 2.0], 1: (3.0, 4.0), 2: np.array([5.0, 6.0])}, "x")
    for wanted in (["x"], "auto"):
        assert np.array_equal(Graph.from_networkx(g, features=wanted).features, [[1, 2], [3, 4], [5, 6]])  # type: ignore[reportArgumentType]
    g.nodes[1]["x"] = [3.0, 4.0, 5.0]
    for wanted in (["x"], "auto"):
        with pytest.raises(
            GraphError,
            match=r"a vector of 2 numbers under 'x' for every node. Got \[3.0, .*\] for the node at position 1",
        ):
            Graph.from_networkx(g, features=wanted)


def test_attributes_of_vectors_are_blocks_of_features_beside_others() -> None:
    rows = np.arange(8.0).reshape(4, 2)
    columns: dict[str, list[Any]] = {
        "age": [31.5, 27.0, 38.0, 45.0],
        "x": rows.tolist(),
        "flags": [(True,)] * 3 + [(False,)],
    }
    network = nx.path_graph(4)
    for name, values in columns.items():
        nx.set_node_attributes(network, dict(enumerate(values)), name)
    other = igraph.Graph(n=4, edges=[(0, 1), (1, 2), (2, 3)], vertex_attrs=columns)
    expected = np.column_stack([columns["age"], rows, [1, 1, 1, 0]])
    for read, given in ((Graph.from_networkx, network), (Graph.from_igraph, other)):
        graph = read(given, features="auto")
        assert graph.feature_names == ("age", "x[0]", "x[1]", "flags[0]")
        assert np.array_equal(graph.features, expected)  # type: ignore[reportArgumentType]
        assert read(given, features=["x", "age"]).feature_names == ("x[0]", "x[1]", "age")
        assert read(given, features={"x": "unused", "flags": "unused"}).feature_names == ("age",)
    network.nodes[2]["x"] = [4.0]
    for wanted in ("auto", ["x", "age"]):
        with pytest.raises(
            GraphError, match=r"a vector of 2 numbers under 'x' .* Got \[4.0\] for the node at position 2"
        ):
            Graph.from_networkx(network, features=wanted)
    del network.nodes[2]["x"]
    for wanted in (["x"], ["x", "age"]):
        lacking = Graph.from_networkx(network, features=wanted)
        assert lacking.feature_names[:3] == ("x[0]", "x[1]", "x is missing")  # type: ignore[index]
        assert lacking.features[2, :3].tolist() == [2, 3, 1]  # type: ignore[index]
    network.nodes[2]["x"] = torch.tensor([[4.0, 5.0]])
    with pytest.raises(GraphError, match=r"Got Tensor of shape \(1, 2\) .* for the node at position 2"):
        Graph.from_networkx(network, features=["x", "age"])


def test_attributes_become_features_by_a_recipe() -> None:
    g = nx.path_graph(4)
    columns = {"age": [31.5, 27.0, None, 45.0], "club": ["chess", "go", "go", "chess"], "team": ["r", "b", "r", "b"]}
    for name, values in columns.items():
        nx.set_node_attributes(g, {at: value for at, value in enumerate(values) if value is not None}, name)
    graph = Graph.from_networkx(g, label="team", features="auto")
    assert graph.feature_names == ("age", "age is missing", "club=chess", "club=go")
    assert graph.recipe is not None
    assert list(graph.recipe.used) == ["age", "club"]
    expected = np.array([[31.5, 0, 1, 0], [27, 0, 0, 1], [31.5, 1, 0, 1], [45, 0, 1, 0]], dtype=np.float32)
    assert np.array_equal(graph.features, expected)  # type: ignore[reportArgumentType]
    chosen = Graph.from_networkx(g, features={"age": "unused", "team": "category"})
    assert chosen.feature_names == ("club=chess", "club=go", "team=b", "team=r")
    named = igraph.Graph(n=4, edges=[(0, 1)], vertex_attrs=columns)
    assert Graph.from_igraph(named, label="team", features="auto").feature_names == graph.feature_names


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"features": "age"}, r"'features' .* 'auto', or a matrix .*\. Got 'age' instead\. Pass \['age'\]"),
        ({"features": ["agee"]}, "'features' .* a node attribute. Got 'agee'.* Did you mean 'age'"),
        (
            {"features": {"age": "nubmer", "x": "unused", "mixed": "unused"}},
            r"'features' parameter of Graph\.from_networkx .* kinds of columns.* Did you mean 'number'",
        ),
        ({"features": {"x": "category"}}, "'x', .* cannot be used .has lists, of which no category can be made"),
        ({"features": ["mixed"]}, r"one type \('b' \(str\) after 1 \(int\) in row 2"),
        (
            {"label": "score"},
            r"'label' parameter of Graph\.from_networkx .* not whole, such as 0\.5, under 'score' of the nodes",
        ),
        ({"label": "tags"}, "several tags in a cell"),
    ],
)
def test_attributes_that_cannot_be_used_are_refused(options: dict[str, Any], sentence: str) -> None:
    g = nx.path_graph(3)
    columns = {"age": [1, 2, 4], "x": [[1.0], [2.0], [3.0]], "mixed": [1, "b", 2], "score": [0.5, 0.25, 1]}
    for name, values in {**columns, "tags": ["a|b", "b|c", "a"]}.items():
        nx.set_node_attributes(g, dict(enumerate(values)), name)
    with pytest.raises(InputError, match=sentence):
        Graph.from_networkx(g, **options)


def test_integer_classes_of_an_attribute_are_named_as_in_a_table() -> None:
    g = nx.path_graph(3)
    nx.set_node_attributes(g, {0: 70, 1: 9, 2: -1}, "zone")
    graph = Graph.from_networkx(g, label="zone")
    assert graph.labels is not None
    assert (graph.labels.tolist(), graph.class_names) == ([1, 0, -1], ("9", "70"))


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        (
            [(0, 1), (0, 2)],
            r"all integers or all strings\. Got \(0, 1\) of type tuple instead\. networkx\.relabel_nodes",
        ),
        (["a", 1, 2], r"Got 1 string and 2 integers instead\. networkx\.relabel_nodes"),
        ([1.5], "Got 1.5 of type float"),
        ([], "a graph with at least one node. Got an empty graph"),
        ([True], "Got True of type bool"),
    ],
)
def test_nodes_that_are_no_ids_are_refused_with_the_remedy(nodes: list[Any], sentence: str) -> None:
    g = nx.Graph()
    g.add_nodes_from(nodes)
    with pytest.raises(GraphError, match=sentence):
        Graph.from_networkx(g)


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        (-1, "non-negative edge weights. Got -1 at edge 0"),
        (float("nan"), "Got nan"),
        ("2", "numbers. Got '2' of type str"),
    ],
)
def test_weights_that_are_none_are_refused(weight: Any, sentence: str) -> None:
    with pytest.raises(GraphError, match=f"'weight' .*{sentence}"):
        Graph.from_networkx(nx.Graph([(0, 1, {"weight": weight})]))


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(InputError, match=r"'g' parameter of Graph.from_networkx must be a networkx\.Graph\. Got 3"):
        Graph.from_networkx(3)
    with pytest.raises(InputError, match=r"must be an igraph\.Graph"):
        Graph.from_igraph(nx.Graph())


def test_a_network_edited_after_its_export_is_read_as_it_is_now() -> None:
    graph = Graph.from_scipy(np.ones((3, 3)) - np.eye(3), labels=["b", "a", "b"], class_names=["b", "a"])
    g = graph.to_networkx()
    g.remove_node(0)
    g.nodes[1]["label"] = "new"
    back = Graph.from_networkx(g)
    assert back.ids is not None
    assert back.labels is not None
    assert (back.ids.tolist(), back.labels.tolist(), back.class_names) == ([1, 2], [1, 0], ("b", "new"))


# igraph


def test_igraph_names_are_the_ids_and_attributes_are_read() -> None:
    g = igraph.Graph(n=3, edges=[(0, 1), (2, 1)], directed=True)
    g.vs["name"] = ["x", "y", "z"]
    g.vs["kind"] = ["b", None, "a"]
    g.es["weight"] = [1.0, 2.0]
    graph = Graph.from_igraph(g, label="kind")
    assert graph.ids is not None
    assert graph.labels is not None
    assert (graph.ids.tolist(), graph.labels.tolist()) == (["x", "y", "z"], [1, -1, 0])
    assert dense(graph) == [[0, 0, 0], [1, 0, 2], [0, 0, 0]]


def test_igraph_without_names_has_no_ids_and_merges_parallel_edges() -> None:
    with pytest.warns(UserWarning, match="2 parallel edges of 4 edges were merged"):
        graph = Graph.from_igraph(igraph.Graph(n=2, edges=[(0, 1), (1, 0), (1, 1), (1, 1)]))
    assert graph.ids is None
    assert dense(graph) == [[0, 2], [2, 2]]
    with pytest.raises(
        GraphError, match=r"vertices have names that are all integers or all strings. Got 1 string and 1 integer"
    ):
        Graph.from_igraph(igraph.Graph(n=2, vertex_attrs={"name": ["a", 1]}))
    with pytest.raises(GraphError, match="at least one node"):
        Graph.from_igraph(igraph.Graph())


# PyTorch Geometric

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def test_a_data_of_pyg_with_everything() -> None:
    data = Data(
        x=torch.eye(4),
        edge_index=EDGES,
        edge_attr=torch.tensor([[2.0], [2.0], [3.0], [3.0]]),
        y=torch.tensor([0, 1, -1, 1]),
    )
    graph = Graph.from_pyg(data)
    assert repr(graph) == "Graph(4 nodes, 2 edges, undirected, weighted, 4 features, 2 classes)"
    assert dense(graph) == [[0, 2, 0, 0], [2, 0, 3, 0], [0, 3, 0, 0], [0, 0, 0, 0]]
    assert np.array_equal(graph.features, np.eye(4))  # type: ignore[reportArgumentType]


def test_an_edge_index_alone_of_a_tensor_or_array() -> None:
    for given in (EDGES, EDGES.numpy(), EDGES.tolist(), EDGES.int()):
        assert repr(Graph.from_pyg(given)) == "Graph(3 nodes, 2 edges, undirected)"
    assert Graph.from_pyg(EDGES, num_nodes=5).n_nodes == 5


def test_edges_that_go_one_way_make_a_directed_graph() -> None:
    graph = Graph.from_pyg(torch.tensor([[0], [1]]))
    assert graph.directed
    assert dense(graph) == [[0, 0], [1, 0]]
    assert dense(Graph.from_pyg(torch.tensor([[0], [1]]), directed=False)) == [[0, 1], [1, 0]]
    assert Graph.from_pyg(EDGES, directed=True).directed


def test_weights_of_edges_listed_twice_are_added() -> None:
    with pytest.warns(UserWarning, match="Graph.from_pyg: 1 parallel edge of 3 edges was merged"):
        assert dense(Graph.from_pyg(np.array([[0, 0, 1], [1, 1, 0]]), directed=True)) == [[0, 1], [2, 0]]


def test_tensors_that_need_a_gradient_or_are_half_precise_are_read() -> None:
    x = torch.ones((3, 2), dtype=torch.bfloat16, requires_grad=True)
    features = Graph.from_pyg(Data(x=x, edge_index=EDGES, y=torch.tensor([[1], [0], [1]]))).features
    assert np.array_equal(features, np.ones((3, 2)))  # type: ignore[reportArgumentType]


def test_masks_pass_through() -> None:
    mask = np.array([True, False, False])
    data = Graph.from_pyg(EDGES).to_pyg(masks={"train_mask": mask, "val_mask": torch.from_numpy(~mask)})
    assert data.train_mask.tolist() == mask.tolist()
    assert data.val_mask.tolist() == (~mask).tolist()
    for bad, sentence in (({"x": mask}, "under which the graph itself"), ({"m": [1, 0, 1]}, "boolean arrays of shape")):
        with pytest.raises(InputError, match=f"'masks' parameter of Graph.to_pyg .*{sentence}"):
            Graph.from_pyg(EDGES).to_pyg(masks=bad)


def hetero() -> HeteroData:
    data = HeteroData()
    data["paper"].x = torch.ones(2, 2)
    return data


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (hetero(), r"nodes of one kind\. Got a HeteroData, .* data\.to_homogeneous\(\)"),
        (Data(x=torch.ones(2, 2)), "a Data with an 'edge_index'. Got one without"),
        (Data(edge_index=EDGES, edge_attr=torch.ones(4, 3)), r"'data\.edge_attr' .* one weight per edge, shape \(4,\)"),
        (
            Data(edge_index=EDGES, edge_weight=-torch.ones(4)),
            r"'data\.edge_weight' .* non-negative edge weights\. Got -1",
        ),
        (Data(edge_index=EDGES, y=torch.ones(3, 2).long(), num_nodes=3), r"'data\.y' .* Got 2 columns, several labels"),
        (
            Data(edge_index=EDGES, y=torch.arange(60), num_nodes=60),
            r"'data\.y' .* 60 different numbers for 60 labels .* data\.y = None\. Codes of classes are text in graph",
        ),
        (Data(edge_index=EDGES, y=torch.rand(3), num_nodes=3), r"'data\.y' .* dtype float32 .* regression"),
        (Data(edge_index=EDGES, y=torch.tensor([1]), num_nodes=3), r"'data\.y' .* Labels of whole graphs"),
        (Data(edge_index=EDGES, num_nodes=2), "node positions from 0 to 1. Got the position 2"),
        (torch.tensor([[0, -1], [1, 0]]), "Got the position -1"),
        (EDGES.T, r"shape \(2, edges\)\. .* Pass the transpose"),
        (EDGES.float(), "dtype float32"),
        (torch.eye(3).to_sparse(), "Got a sparse tensor"),
        (torch.empty((2, 0), dtype=torch.int64), "at least one node. Got none instead. Pass num_nodes"),
        ("cora", "a torch_geometric.data.Data or an edge_index"),
    ],
)
def test_data_that_cannot_be_read_is_refused_in_one_sentence(data: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        Graph.from_pyg(data)
    assert "\n" not in str(caught.value)


def test_a_batch_is_one_graph_of_several_parts() -> None:
    batch = Batch.from_data_list([Data(edge_index=EDGES, num_nodes=3), Data(edge_index=EDGES, num_nodes=4)])
    assert repr(Graph.from_pyg(batch)) == "Graph(7 nodes, 4 edges, undirected)"


def test_fewer_nodes_than_the_data_has_are_refused() -> None:
    with pytest.raises(InputError, match=r"'num_nodes' .* at least 3, .* Got 2"):
        Graph.from_pyg(Data(edge_index=EDGES, num_nodes=3), num_nodes=2)


# libraries


def test_nothing_is_imported_before_one_of_its_objects_is_given() -> None:
    code = """
import sys, numpy as np, pprop
graph = pprop.Graph.from_scipy(np.eye(3), labels=["a", None, "b"], ids=["x", "y", "z"], features=np.eye(3))
graph = pprop.Graph.from_scipy(**graph.to_scipy())
graph = pprop.Graph.from_pyg(np.array([[0, 1], [1, 0]]))
try:
    pprop.Graph.from_networkx(3)
except ValueError:
    pass
print([name for name in ("networkx", "torch_geometric", "igraph", "pandas", "polars", "torch", "pyarrow") if name in sys.modules])
"""
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


@pytest.mark.parametrize(
    ("method", "package"),
    [
        ("to_networkx", "networkx"),
        ("to_pandas", "pandas"),
        ("to_pyg", "torch_geometric"),
    ],
)
def test_an_absent_library_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch, method: str, package: str) -> None:
    for name in (package, f"{package}.data"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=rf"Graph\.{method} needs .{package}.*pip install {package}"):
        getattr(Graph.from_scipy(np.eye(2)), method)()
