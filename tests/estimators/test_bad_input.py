"""Bad input to a classifier gets one clear sentence."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from pprop import APPNPClassifier, Graph, InputError, MLPNodeClassifier, PPNPClassifier
from pprop.estimators import GraphSource


@pytest.fixture(scope="module")
def fitted(graph: Graph, nodes: Any, animals: Any) -> MLPNodeClassifier:
    return MLPNodeClassifier(graph, max_epochs=1, backend="reference").fit(nodes, animals)


POSITIONS = r"must be an array of node positions, integers from 0 to 89, of shape \(m,\) or \(m, 1\). Got "


@pytest.mark.parametrize("kind", [APPNPClassifier, PPNPClassifier, MLPNodeClassifier])
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"graph": 3}, "The 'graph' parameter of {} must be a Graph. Got 3 instead."),
        ({"hidden": 0}, "The 'hidden' parameter of {} must be an integer of at least 1, or a sequence of them. Got 0 "),
        ({"hidden": "8"}, "The 'hidden' parameter of {} must be .* Got '8' instead."),
        ({"hidden": [8, 2.5]}, r"The 'hidden' parameter of {} must be .* Got \[8, 2.5\] instead."),
        ({"dropout": 1.0}, r"The 'dropout' parameter of {} must be a float in \[0, 1\). Got 1.0 instead."),
        ({"penalty": -1}, r"The 'penalty' parameter of {} must be a float in \[0, inf\). Got -1 instead."),
        ({"learning_rate": 0}, r"The 'learning_rate' parameter of {} must be a float in \(0, inf\). Got 0 instead."),
        ({"patience": 0}, "The 'patience' parameter of {} must be an integer of at least 1. Got 0 instead."),
        ({"max_epochs": 2.5}, "The 'max_epochs' parameter of {} must be an integer of at least 1. Got 2.5 instead."),
        (
            {"predictor": 3},
            "The 'predictor' parameter of {} must be an nn.Module, a function that makes one, or None. ",
        ),
        ({"stopping": 1.0}, r"The 'stopping' parameter of {} must be a float in \(0, 1\). Got 1.0 instead."),
        (
            {"random_state": -1},
            "The 'random_state' parameter of {} must be an integer from 0 to 18446744073709551615. ",
        ),
        (
            {"random_state": "a"},
            r"The 'random_state' parameter of {} must be an integer .*, a RandomState or None. Got ",
        ),
        ({"backend": "abacus"}, "The 'backend' parameter of train must be one of 'auto', .* Got 'abacus' instead."),
        (
            {"device": "abacus"},
            "The 'device' parameter of train must be a torch device such as .* Got 'abacus' instead.",
        ),
        ({"verbose": -1}, "The 'verbose' parameter of {} must be 0, 1 or 2, or False or True. Got -1 instead."),
        ({"verbose": "loudly"}, "The 'verbose' parameter of {} must be .* Got 'loudly' instead."),
    ],
)
def test_an_impossible_setting_is_refused_in_fit(
    graph: Graph, nodes: Any, animals: Any, kind: Any, options: dict[str, Any], sentence: str
) -> None:
    model = kind(**{"graph": graph, **options})
    with pytest.raises(InputError, match=sentence.format(kind.__name__)):
        model.fit(nodes, animals)


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        (APPNPClassifier, {"alpha": 1.3}, r"of APPNPClassifier must be a float in \[0, 1\]. Got 1.3 instead."),
        (PPNPClassifier, {"alpha": 0.0}, r"of PPNPClassifier must be a float in \(0, 1\]. Got 0.0 instead."),
        (APPNPClassifier, {"steps": -1}, "of APPNPClassifier must be an integer from 0 to 10000. Got -1 instead."),
        (
            PPNPClassifier,
            {"normalization": "both"},
            "of PPNPClassifier must be one of 'sym', 'row' or 'col'. Got 'both' ",
        ),
        (APPNPClassifier, {"self_loops": 1}, "of APPNPClassifier must be True or False. Got 1 instead."),
        (APPNPClassifier, {"propagation_dropout": 2}, r"The 'propagation_dropout' parameter .* in \[0, 1\). Got 2 "),
    ],
)
def test_an_impossible_setting_of_the_propagation_is_refused(
    graph: Graph, nodes: Any, animals: Any, kind: Any, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        kind(graph, **options).fit(nodes, animals)


@pytest.mark.parametrize("method", ["fit", "predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize(
    ("X", "got"),
    [
        ([0, 90], "90 at index 1 instead."),
        ([0, -1], "-1 at index 1 instead. Negative values in data."),
        ([0.0, 1.0], r"ndarray of shape \(2,\) and dtype float64 instead."),
        ([[0, 1], [2, 3]], r"ndarray of shape \(2, 2\) and dtype int64 instead."),
        (np.array([1, "a"], dtype=object), r"ndarray of shape \(2,\) and dtype object instead."),
        (np.array([1, 2**70], dtype=object), r"ndarray of shape \(2,\) and dtype object instead."),
        ([1, np.nan], "an array with NaN or inf instead."),
        ([1j, 2], r"ndarray of shape \(2,\) and dtype complex128 instead. Complex data not supported."),
        (3, "3 instead."),
        ([[1], [2, 3]], r"\[\[1\], \[2, 3\]\] instead."),
        (sparse.csr_array((2, 1), dtype=np.int64), "a sparse matrix instead."),
        (
            np.empty((3, 0)),
            r"an array with 0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required instead.",
        ),
    ],
)
def test_what_is_no_array_of_positions_is_refused(
    graph: Graph, fitted: MLPNodeClassifier, method: str, X: Any, got: str
) -> None:
    call = partial(MLPNodeClassifier(graph).fit, y=[0, 1]) if method == "fit" else getattr(fitted, method)
    with pytest.raises(InputError, match=f"The 'X' parameter of {method} {POSITIONS}{got}"):
        call(X)


LABELS = "must be an array of 4 class labels, one per node, all integers or all strings. Got "


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (None, "MLPNodeClassifier requires y to be passed, but the target y is None."),
        ([0, 1, 0], r"The 'y' parameter of fit " + LABELS + r"ndarray of shape \(3,\)"),
        ([0, "1", 0, 1], "The 'y' parameter of fit " + LABELS + "labels of type int and str instead."),
        ([True, 1, False, 0], LABELS + "labels of type bool and int instead."),
        ([0.5, 1, 0, 1], LABELS + "the number 0.5 instead. Unknown label type: continuous. Numbers on a scale"),
        ([np.inf, 1, 0, 1], LABELS + "an array with NaN or inf instead."),
        ([np.nan, None, -1, "?"], "must be labels of which some are known. Got 4 labels, all unknown, instead."),
        ([None, "a", "a", "NA"], "must be labels of at least two classes. Got 1 class, 'a', instead."),
        ([b"a", b"b", b"a", b"b"], LABELS + "labels of type bytes instead."),
        (
            np.array([2**63, 1, 0, 1], dtype=np.uint64),
            LABELS + "9223372036854775808, which int64 does not hold, instead.",
        ),
        ([2**70, 1, 0, 1], LABELS + f"{2**70}, which int64 does not hold, instead."),
        ([1e300, 1, 0, 1], "the number 1e[+]300 instead."),
        (
            [[0, 1], [1, 0], [0, 2], [1, 0]],
            "rows of 0 and 1, one column per label, NaN where unknown. Got 2.0 instead.",
        ),
        (["a", "a\0", "a", "a\0"], r"text that does not end in a null character. Got 'a\\x00' at index 1 instead."),
        (np.array(["a", "b\0", "a", "b"], dtype=object), "does not end in a null character. .* at index 1 instead."),
        ([2, 2, 2, 2], "The 'y' parameter of fit must be labels of at least two classes. Got 1 class, 2, instead."),
    ],
)
def test_what_are_no_class_labels_is_refused(graph: Graph, y: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        MLPNodeClassifier(graph).fit([0, 1, 2, 3], y)


def test_no_nodes_and_two_classes_of_one_node_are_refused(graph: Graph) -> None:
    with pytest.raises(InputError, match=r"The 'X' parameter of fit must be an array of at least one node. Got none "):
        MLPNodeClassifier(graph).fit([], [])
    with pytest.raises(
        InputError, match=r"The 'y' parameter of fit must be one class per node. Got two classes for node 7"
    ):
        MLPNodeClassifier(graph).fit([7, 8, 7], [0, 1, 1])


@pytest.mark.parametrize(
    ("stopping", "sentence"),
    [
        (0.0, r"The 'stopping' parameter of fit must be a pair \(nodes, y\) or a float in \(0, 1\). Got 0.0 instead."),
        (20, r"must be a pair \(nodes, y\) or a float in \(0, 1\). Got 20 instead."),
        (([5], [0], [1]), r"must be a pair \(nodes, y\) or a float in \(0, 1\). Got \(\[5\], \[0\], \[1\]\) instead."),
        (([3], [0]), "The 'stopping' parameter of fit must be nodes that are not in X. Got node 3, which is, instead."),
        (([], []), "The 'stopping' parameter of fit must be at least one node with its class, or a fraction. Got none"),
        (
            ([99], [0]),
            "The 'stopping' parameter of fit must be an array of node positions, .* Got 99 at index 0 instead.",
        ),
        (([5, 6], [0]), "The 'stopping' parameter of fit must be an array of 2 class labels"),
        (([5, 6], ["a", "b"]), "must be labels of the same kind as y, integers or strings. Got ndarray"),
    ],
)
def test_impossible_stopping_nodes_are_refused(graph: Graph, stopping: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        MLPNodeClassifier(graph).fit([0, 1, 2, 3], [0, 1, 0, 1], stopping=stopping)


def test_a_classifier_that_was_not_fitted_says_so(graph: Graph, tmp_path: Any) -> None:
    model = APPNPClassifier(graph)
    for call in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(NotFittedError, match="This APPNPClassifier instance is not fitted yet"):
            call([0])
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model")


def test_a_graph_without_features_is_refused(graph: Graph, nodes: Any, animals: Any) -> None:
    with pytest.raises(InputError, match="needs node features, and this graph has none"):
        APPNPClassifier(graph.replace(features=None)).fit(nodes, animals)


@pytest.mark.parametrize(
    ("kind", "arguments", "sentence"),
    [
        (
            "web",
            {},
            "The 'kind' parameter of GraphSource must be one of 'dataset', 'npz', 'edges' or 'file'. Got 'web' instead.",
        ),
        ("dataset", {}, "The 'arguments' parameter of GraphSource must be given 'name' for kind 'dataset'. Got None"),
        ("npz", {"path": 3}, "The 'arguments' parameter of GraphSource must be a path. Got 3 instead."),
        ("npz", {"path": "a", "nodes": "b"}, "must be among directed, path for kind 'npz'. Got 'nodes' instead."),
        ("edges", {"path": "a", "weight": 3}, "must be a str, a bool or None under 'weight'. Got 3 instead."),
    ],
)
def test_an_impossible_source_is_refused(kind: Any, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        GraphSource(kind, arguments)
