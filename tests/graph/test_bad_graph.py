"""What is no graph: one sentence in the house form, whatever is wrong, and the inputs stay as they were."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from pprop._errors import GraphError, InputError
from pprop.graph import Graph, transition_matrix

PATH = sparse.csr_array(np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1))
HOUSE = re.compile(r"The '\w+' parameter of [\w.]+ must be .+\. Got .+ instead\.( .+)?")


def refuse(sentence: str, function: Any, *args: Any, error: type[InputError] = InputError, **options: Any) -> None:
    with pytest.raises(error, match=sentence) as caught:
        function(*args, **options)
    assert HOUSE.fullmatch(str(caught.value)), caught.value
    assert len(str(caught.value)) < 400


def graph(**options: Any) -> Graph:
    return Graph.from_scipy(PATH, **options)


def broken(part: str, value: Any, form: Any = sparse.csr_array) -> Any:
    """Return a matrix with an array exchanged behind scipy's back."""
    matrix = form(PATH, copy=True)
    setattr(matrix, part, value)
    return matrix


def test_the_good_graph_is_good() -> None:
    """Else every refusal below would prove nothing."""
    made = graph(features=np.eye(5), labels=[0, 1, 0, 1, -1], ids=list("abcde"), class_names=["x", "y"])
    assert repr(made) == "Graph(5 nodes, 4 edges, undirected, 5 features, 2 classes)"


@pytest.mark.parametrize(
    ("adjacency", "sentence"),
    [
        (np.ones(3), r"'adjacency' .* a scipy sparse matrix or a square array .* Got ndarray of shape \(3,\)"),
        (np.ones((3, 4)), r"a square matrix\. Got shape \(3, 4\)"),
        (np.array([["a"]]), r"a square array of numbers\. .* dtype <U1"),
        (None, "a square array of numbers. Got None"),
        ([[0, 1], [1]], r"a square array of numbers\. Got \[\[0, 1\], \[1\]\]"),
        (sparse.csr_array((3, 4)), r"a square matrix\. Got shape \(3, 4\)"),
        (sparse.coo_array(np.ones(3)), r"a square matrix\. Got shape \(3,\)"),
        (sparse.csr_array((0, 0)), "at least one node. Got an empty matrix"),
        (sparse.coo_array(([], ([], [])), shape=(2**31, 2**31)), "at most 2147483647 nodes"),
        (sparse.csr_array(np.array([[0, 1j], [1j, 0]])), "real numbers. Got dtype complex128"),
        (sparse.csr_array([[0, -2.5], [-2.5, 0]]), r"non-negative weights\. Got a weight of -2\.5"),
        (sparse.csr_array([[0, -np.inf], [-np.inf, 0]]), "finite weights. Got NaN or infinity"),
        (sparse.csr_array([[0, np.nan], [np.nan, 0]]), "finite weights. Got NaN or infinity"),
        (sparse.csr_array([[0, np.inf], [np.inf, 0]]), "finite weights. Got NaN or infinity"),
        (sparse.coo_array(([1e308, 1e308], ([0, 0], [0, 0])), shape=(1, 1)), "finite weights. Got NaN or infinity"),
        (sparse.csr_array([[0, 1], [0, 0]]), r"symmetric when directed=False\. .* Pass directed=True"),
        (sparse.csr_array([[0, 1.0], [1 + 1e-9, 0]]), r"symmetric when directed=False"),
        (broken("indices", np.full(8, 7, dtype=np.int32)), "a sound sparse matrix. Got an inconsistent one"),
        (broken("indices", np.full(8, 7, dtype=np.int32), sparse.csc_array), "a sound sparse matrix"),
        (broken("indices", np.full(8, -1, dtype=np.int32)), "a sound sparse matrix. Got an inconsistent one"),
        (broken("indptr", np.array([0, 5, 2, 3, 4, 8], dtype=np.int32)), "a sound sparse matrix"),
        (broken("indptr", np.array([0, 2, 4, 6, 8, 11], dtype=np.int32)), "a sound sparse matrix. Got an inconsistent"),
    ],
)
def test_adjacency(adjacency: Any, sentence: str) -> None:
    refuse(sentence, Graph.from_scipy, adjacency, error=GraphError)


def test_signs_are_those_of_the_sums_in_every_form() -> None:
    pairs, compressed = ([0, 0], [0, 0]), ([0, 0], [0, 2])
    for values, total in (([3.0, -1.0], 2.0), ([1.0, -3.0], -2.0)):
        forms = (
            sparse.coo_array((values, pairs), shape=(1, 1)),
            sparse.csr_array((values, *compressed), shape=(1, 1)),
            sparse.csc_array((values, *compressed), shape=(1, 1)),
        )
        for matrix in forms:
            if total < 0:
                refuse("Got a weight of -2", Graph.from_scipy, matrix, error=GraphError)
            else:
                assert Graph.from_scipy(matrix).adjacency.toarray().tolist() == [[total]]


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (np.full((5, 2), np.nan), "free of NaN and infinity. Got 10 such values"),
        (np.array([[0.0], [1], [np.inf], [2], [-np.inf]]), "free of NaN and infinity. Got 2 such values"),
        (
            sparse.csr_array(np.diag([1, 2, np.nan, 3, 4])),
            "free of NaN and infinity. Got nan in row 2, column 2 instead",
        ),
        (np.eye(4), r"finite numbers with 5 rows\. Got ndarray of shape \(4, 4\)"),
        (sparse.csr_array(np.eye(4)), r"finite numbers with 5 rows\. Got csr_array of shape \(4, 4\)"),
        (sparse.coo_array(np.ones(5)), r"finite numbers with 5 rows\. Got coo_array of shape \(5,\)"),
        (sparse.csr_array(1j * np.eye(5)), r"finite numbers with 5 rows\. .* dtype complex128"),
        (np.arange(5.0), r"finite numbers with 5 rows\. Got ndarray of shape \(5,\)"),
        ([[1, 2], [3], [4], [5], [6]], r"finite numbers with 5 rows\. Got \[\[1, 2\], \[3\]"),
        ([["a"]] * 5, r"finite numbers with 5 rows\. .* dtype <U1"),
        (np.array([[None]] * 5), r"finite numbers with 5 rows\. .* dtype object"),
        (3, "finite numbers with 5 rows"),
        ("x", "finite numbers with 5 rows"),
        (broken("indices", np.full(8, 9, dtype=np.int32)), "'features' .* a sound sparse matrix"),
    ],
)
def test_features(features: Any, sentence: str) -> None:
    refuse(sentence, graph, features=features, error=GraphError)


@pytest.mark.parametrize(
    ("labels", "names", "sentence"),
    [
        ([0, 1, 0, 1], None, r"an integer array of shape \(5,\), with -1 for unknown\. Got ndarray of shape \(4,\)"),
        ([[0, 1, 0, 1, 0]], None, r"shape \(5,\).* Got ndarray of shape \(1, 5\)"),
        ([0.0, 1, 0, 1, 0], None, r"an integer array .* dtype float64"),
        ([True] * 5, None, r"an integer array .* dtype bool"),
        (list("abcab"), ["a", "b"], r"text among class_names\. Got the label 'c'"),
        (["a", 1, None, None, None], None, "all text or all integers.* Got 1 of type int"),
        (np.array([0.5, 1, np.nan, 1, 0]), None, r"an integer array .* dtype float64"),
        ([[0], 1, 0, 1, 0], None, r"an integer array .* Got \[\[0\], 1, 0, 1, 0\]"),
        (7, None, "an integer array"),
        (sparse.csr_array((5, 5)), None, "an integer array"),
        ([0, 1, 0, 1, 5], None, "class indices from 0 to 4, or -1. Got the label 5"),
        ([0, 1, 0, -2, 1], None, "class indices from 0 to 4, or -1. Got the label -2"),
        ([0, 1, 2, 1, -1], ["p", "q"], "class indices from 0 to 1, or -1. Got the label 2"),
        ([0, -1, -1, -1, -1], [], "an array of -1 for no classes. Got the label 0"),
    ],
)
def test_labels(labels: Any, names: Any, sentence: str) -> None:
    refuse(f"'labels' .* {sentence}", graph, labels=labels, class_names=names, error=GraphError)


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        (list("abca"), r"an array of 5 integers or strings\. Got ndarray of shape \(4,\)"),
        ([list("abcde")], r"an array of 5 integers or strings\. Got ndarray of shape \(1, 5\)"),
        (list("abcdb"), "distinct ids. Got the id 'b' more than once"),
        ([1, 2, 3, 2, 5], "distinct ids. Got the id 2 more than once"),
        (np.array(list("abcda"), dtype=object), "distinct ids. Got the id 'a' more than once"),
        ([1.0, 2, 3, 4, 5], "integers or strings. .* dtype float64"),
        ([True, 2, 3, 4, 5], "integers or strings"),
        (["a", 1, "b", 2, "c"], "integers or strings"),
        (np.array(["a", 1, "b", 2, "c"], dtype=object), "integers or strings. .* dtype object"),
        (np.array(["a", None, "b", "c", "d"], dtype=object), "integers or strings. .* dtype object"),
        (np.array(["a", np.nan, "b", "c", "d"], dtype=object), "integers or strings. .* dtype object"),
        ([2**70, 1, 2, 3, 4], "integers or strings. .* dtype object"),
        ([b"a", b"b", b"c", b"d", b"e"], r"integers or strings. .* dtype \|S1"),
        ([["a"], "b", "c", "d", "e"], r"integers or strings\. Got \[\['a'\], 'b'"),
        (["a", "a\0", "b", "c", "d"], r"text that does not end in a null character. Got 'a\\x00' at index 1 instead"),
        ("abcde", "integers or strings. Got array"),
        (5, "integers or strings"),
    ],
)
def test_ids(ids: Any, sentence: str) -> None:
    refuse(f"'ids' parameter of Graph.from_scipy .* {sentence}", graph, ids=ids, error=GraphError)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"directed": "no"}, "'directed' .* True or False. Got 'no'"),
        ({"directed": None}, "'directed' .* True or False. Got None"),
        ({"directed": 1}, "'directed' .* True or False. Got 1 "),
        ({"class_names": 3}, "'class_names' .* a sequence of names, or None. Got 3"),
        ({"class_names": "ab"}, "'class_names' .* a sequence of names, or None. Got 'ab'"),
        ({"class_names": {"a", "b"}}, "'class_names' .* a sequence of names"),
        ({"class_names": {"a": 0}}, "'class_names' .* a sequence of names"),
        ({"class_names": np.array("a")}, "'class_names' .* a sequence of names"),
        ({"class_names": ["a", "a\0"]}, "'class_names' .* not end in a null character. Got 'a.x00' at index 1 instead"),
        ({"feature_names": ["a\0"]}, "'feature_names' .* not end in a null character. Got 'a.x00' at index 0 instead"),
        ({"class_names": ["a", None]}, "'class_names' .* a sequence of names, or None. Got None at index 1"),
        ({"class_names": [["a"], ["b"]]}, r"'class_names' .* Got \['a'\] at index 0"),
        ({"feature_names": 3}, "'feature_names' .* a sequence of names, or None. Got 3"),
        ({"feature_names": "abcde"}, "'feature_names' .* a sequence of names, or None. Got 'abcde'"),
        ({"feature_names": ["a"]}, "'feature_names' .* a sequence of 2 names, one per feature. Got 1 names"),
        ({"name": 5}, "'name' .* a str or None. Got 5"),
        ({"recommended": "x"}, r"'recommended' .* a pprop\.graph\.Recommended or None\. Got 'x'"),
    ],
)
def test_other_fields(options: dict[str, Any], sentence: str) -> None:
    refuse(sentence, graph, features=np.ones((5, 2)), **options)


def test_feature_names_without_features() -> None:
    refuse("a sequence of 0 names, one per feature. Got 1 names", graph, feature_names=["x"])


def test_inputs_stay_as_they_were() -> None:
    adjacency = sparse.coo_array(([1.0, 2.0, 0.0], ([1, 0, 0], [0, 1, 1])), shape=(2, 2))
    features = sparse.csr_array(([1.0, 0.0, np.nan], [1, 0, 0], [0, 2, 3]), shape=(2, 2))
    refuse("symmetric", Graph.from_scipy, adjacency)
    refuse("NaN", Graph.from_scipy, adjacency, directed=True, features=features)
    assert adjacency.data.tolist() == [1.0, 2.0, 0.0]
    assert features.indices.tolist() == [1, 0, 0]
    assert features.nnz == 3
    assert features.data.flags.writeable


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ([1, 9, 7], "an array of ids of this graph. Got the unknown id 9 at index 1"),
        (["1"], "an array of ids of this graph. Got the unknown id '1' at index 0"),
        ([True], "one-dimensional array of node ids, all integers or all strings. .* dtype bool"),
        (np.array([True]), "all integers or all strings. .* dtype bool"),
        ([2.0], "all integers or all strings. .* dtype float64"),
        (np.array([2.0]), "all integers or all strings. .* dtype float64"),
        (np.array([1, "2"], dtype=object), "all integers or all strings. .* dtype object"),
        ([1, "2"], "all integers or all strings"),
        ([1, None], "all integers or all strings"),
        ([[1], 2], r"all integers or all strings\. Got \[\[1\], 2\]"),
        ([[1, 2]], r"all integers or all strings\. Got ndarray of shape \(1, 2\)"),
        (np.array([[1, 2]]), r"all integers or all strings\. Got ndarray of shape \(1, 2\)"),
        (np.array([[1], [2, 3]], dtype=object), "all integers or all strings. .* dtype object"),
        (1, "all integers or all strings. Got 1 "),
        ("ab", "all integers or all strings. Got 'ab'"),
        ([2**70], "all integers or all strings"),
    ],
)
def test_positions(wanted: Any, sentence: str) -> None:
    refuse(f"'ids' parameter of positions .* {sentence}", graph(ids=[1, 2, 3, 4, 5]).positions, wanted)


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ([], "an array of at least one position. Got an empty array"),
        ([0, 5], "node positions from 0 to 4. Got 5 at index 1"),
        ([-1], "node positions from 0 to 4. Got -1 at index 0"),
        ([1, 2, 1], "an array of distinct positions. Got a position twice"),
        ([0.0], "node positions from 0 to 4. .* dtype float64"),
        ([True, False], "node positions from 0 to 4. .* dtype bool"),
        (["a"], "since this graph has no ids"),
        ([[0, 1]], r"one-dimensional array .* Got ndarray of shape \(1, 2\)"),
        ([[0], 1], r"one-dimensional array .* Got \[\[0\], 1\]"),
        (0, "one-dimensional array"),
        (None, "an array of nodes"),
    ],
)
def test_nodes_of_a_subgraph(nodes: Any, sentence: str) -> None:
    refuse(f"'nodes' parameter of subgraph .*{sentence}", graph().subgraph, nodes)


def test_replace_of_an_unknown_field_names_the_fields() -> None:
    with pytest.raises(InputError, match=r"no field 'label' to replace\. Its fields are: adjacency, .*, labels, ids"):
        graph().replace(label=[0])
    for field, value in (("labels", [0]), ("adjacency", 3), ("recipe", 3)):
        with pytest.raises(InputError, match=rf"^The '{field}' parameter of Graph\.replace must be"):
            graph().replace(**{field: value})


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((PATH,), r"'graph' .* a pprop\.Graph\. Got csr_array of shape \(5, 5\) .*Graph\.from_scipy"),
        ((None,), r"'graph' .* a pprop\.Graph\. Got None"),
        ((graph(), "symmetric"), "'normalization' .* one of 'sym', 'row' or 'col'. Got 'symmetric'"),
        ((graph(), "sym", "no"), "'self_loops' .* True or False. Got 'no'"),
        ((graph(), "sym", 1), "'self_loops' .* True or False. Got 1 "),
    ],
)
def test_arguments_of_transition_matrix(arguments: tuple[Any, ...], sentence: str) -> None:
    refuse(sentence, transition_matrix, *arguments)


def test_an_id_with_a_null_character_is_not_the_one_without_it() -> None:
    refuse("'ids' .* null character. Got 'a.x00' at index 0", graph(ids=list("abcde")).positions, ["a\0"])


def test_an_integer_of_thousands_of_digits_is_described() -> None:
    for name in (10**5000, [10**5000]):
        refuse("'name' .* Got a value of type .* that is too long to print instead", graph, name=name)


def test_a_complaint_names_the_function_that_was_called():
    import torch

    igraph = pytest.importorskip("igraph", reason="igraph is an optional dependency")
    data = pytest.importorskip("torch_geometric.data", reason="PyTorch Geometric is an optional dependency")
    ring = igraph.Graph.Ring(3)
    ring.vs["name"] = ["a", "a", "b"]
    with pytest.raises(InputError, match=r"parameter of Graph\.from_igraph must be an array of distinct ids"):
        Graph.from_igraph(ring)
    with pytest.raises(InputError, match=r"parameter of Graph\.from_igraph must be an igraph\.Graph"):
        Graph.from_igraph(3)
    edges = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(InputError, match=r"parameter of Graph\.from_pyg must be free of NaN"):
        Graph.from_pyg(data.Data(x=torch.tensor([[float("nan")], [1.0]]), edge_index=edges))
