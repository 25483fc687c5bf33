"""Bad input to models and training gets one clear sentence."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import pprop
from pprop import Graph, InputError, Split
from pprop.models.model import network_inputs


def changed(split: Split, **parts: Any) -> Split:
    fields: dict[str, Any] = {"train": split.train, "stopping": split.stopping, "evaluation": split.evaluation, **parts}
    return Split(**fields)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"alpha": 1.3}, r"The 'alpha' parameter of PropagationSettings must be a float in \[0, 1\]. Got 1.3 instead."),
        ({"alpha": float("nan")}, r"must be a float in \[0, 1\]. Got nan instead"),
        ({"steps": -1}, "The 'steps' parameter of PowerIteration must be an integer from 0 to 10000. Got -1 instead."),
        (
            {"hidden": 8.0},
            "The 'hidden' parameter of FeatureNetwork must be an integer of at least 1. Got 8.0 instead.",
        ),
        (
            {"self_loops": "no"},
            "The 'self_loops' parameter of PropagationSettings must be True or False. Got 'no' instead.",
        ),
        ({"hidden": 0}, "The 'hidden' parameter of FeatureNetwork must be an integer of at least 1. Got 0 instead."),
        ({"dropout": 1.0}, r"The 'dropout' parameter of .* must be a float in \[0, 1\). Got 1.0 instead."),
        ({"penalty": -1.0}, r"The 'penalty' parameter of Model must be a float in \[0, inf\). Got -1.0 instead."),
        ({"normalization": "both"}, "must be one of 'sym', 'row' or 'col'. Got 'both' instead."),
        ({"predictor": 3}, "must be a FeatureNetwork, an nn.Module or a function that makes one. Got 3 instead."),
    ],
)
def test_a_model_with_an_impossible_setting_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        pprop.APPNP(**options)


def test_ppnp_does_not_accept_alpha_zero() -> None:
    with pytest.raises(InputError, match=r"must be a float in \(0, 1\]. Got 0.0 instead."):
        pprop.PPNP(alpha=0.0)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"train": np.array([0, 90])}, "node positions from 0 to 89. Got 90 at index 1 instead."),
        ({"stopping": np.array([-1])}, "node positions from 0 to 89. Got -1 at index 0 instead."),
        ({"train": np.array([], dtype=int)}, "must be at least one node. Got none instead."),
        ({"train": np.array(["a"])}, r"Use graph.positions\(ids\) to turn ids into positions."),
        ({"train": np.array([[0, 1]])}, "must be a one-dimensional array of node positions"),
    ],
)
def test_nodes_that_the_graph_does_not_have_are_refused(
    community_graph: Graph, community_splits: list[Split], parts: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        pprop.train(pprop.MLP(), community_graph, changed(community_splits[0], **parts))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"seeds": [1, 2, 3]}, "one seed, or 2 of them, one per split. Got 3 seeds instead."),
        ({"seeds": [0.5, 1]}, "The 'seeds' parameter of train must be an integer"),
        ({"seeds": 2**64}, "The 'seeds' parameter of train must be an integer"),
        ({"labels": np.zeros(5, dtype=int)}, r"must be an integer array of shape \(90,\)"),
        ({"labels": np.zeros(90)}, r"must be an integer array of shape \(90,\)"),
        ({"labels": np.full(90, -1)}, "must be known .* for every train node. Got -1 for node"),
        ({"learning_rate": 0}, r"must be a float in \(0, inf\). Got 0 instead."),
        ({"seeds": None}, "The 'seeds' parameter of train must be an integer or a sequence of at least one. Got None"),
        ({"seeds": 1.5}, "The 'seeds' parameter of train must be an integer"),
        ({"stopping": 5}, "The 'stopping' parameter of train must be a pprop.Stopping. Got 5 instead."),
        ({"labels": [[0], [0, 1]]}, "The 'labels' parameter of train must be an integer array"),
        ({"labels": np.full(90, 10**13)}, "class indices from 0 to 89, or -1. Got the label 10000000000000 instead."),
        ({"labels": np.full(90, 2**64 - 1, dtype=np.uint64)}, "Got the label 18446744073709551615 instead."),
        ({"backend": "fortran"}, "must be one of 'auto', 'numba', 'triton' or 'reference'. Got 'fortran' instead."),
    ],
)
def test_train_refuses_arguments_that_make_no_sense(
    community_graph: Graph, community_splits: list[Split], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        pprop.train(pprop.MLP(), community_graph, community_splits[:2], **options)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "model",
            "APPNP",
            "The 'model' parameter of train must be a model such as pprop.APPNP(). Got 'APPNP' instead.",
        ),
        ("graph", None, "The 'graph' parameter of train must be a pprop.Graph. Got None instead."),
        ("splits", None, "The 'splits' parameter of train must be a Split or a sequence of at least one. Got None"),
        ("splits", [], "The 'splits' parameter of train must be a Split or a sequence of at least one."),
        ("splits", [3], "The 'splits' parameter of train must be a Split or a sequence of at least one."),
    ],
)
def test_train_refuses_what_is_no_model_graph_or_split(
    community_graph: Graph, community_splits: list[Split], name: str, value: Any, sentence: str
) -> None:
    arguments: dict[str, Any] = {
        "model": pprop.MLP(),
        "graph": community_graph,
        "splits": community_splits,
        name: value,
    }
    with pytest.raises(InputError, match=re.escape(sentence)):
        pprop.train(**arguments)


def test_labels_beyond_the_named_classes_are_refused(community_graph: Graph, community_splits: list[Split]) -> None:
    named = community_graph.replace(class_names=["a", "b", "c"])
    with pytest.raises(InputError, match="Got the label 4 instead"):
        pprop.train(pprop.MLP(), named, community_splits[0], labels=np.full(90, 4))


@pytest.mark.parametrize("evaluation", [np.array([99]), np.array([-1]), np.array([0.5])])
def test_evaluation_nodes_are_checked_before_training(
    community_graph: Graph, community_splits: list[Split], evaluation: Any
) -> None:
    with pytest.raises(InputError, match=r"The 'splits.evaluation' parameter of train must be .* from 0 to 89"):
        pprop.train(pprop.MLP(), community_graph, changed(community_splits[0], evaluation=evaluation))


def test_accuracy_needs_labelled_evaluation_nodes(community_graph: Graph, community_splits: list[Split]) -> None:
    rule = pprop.Stopping(max_epochs=1)
    empty = changed(community_splits[0], evaluation=np.array([], dtype=int))
    with pytest.raises(InputError, match="has no evaluation nodes"):
        pprop.train(pprop.MLP(hidden=4), community_graph, empty, stopping=rule).accuracy()
    assert community_graph.labels is not None
    labels = community_graph.labels.copy()
    labels[community_splits[0].evaluation[0]] = -1
    partly = community_graph.replace(labels=labels)
    with pytest.raises(InputError, match="has evaluation nodes without a label"):
        pprop.train(pprop.MLP(hidden=4), partly, community_splits[0], stopping=rule).accuracy()


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e308])
def test_features_of_any_magnitude_are_normalised(scale: float) -> None:
    features = scale * np.array([[1.0, 1.0], [0.0, 1.0]])
    words = Graph.from_scipy(sparse.csr_array((2, 2)), features=sparse.csr_array(features))
    np.testing.assert_array_equal(network_inputs(words).toarray(), [[0.5, 0.5], [0.0, 1.0]])
    table = Graph.from_scipy(sparse.csr_array((2, 2)), features=features)
    # a standard deviation below the smallest number cannot divide
    spread = 0.0 if scale < 1e-320 else 1.0
    np.testing.assert_array_equal(network_inputs(table).toarray(), [[spread, 0.0], [-spread, 0.0]])


def test_train_needs_features_and_labels(community_graph: Graph, community_splits: list[Split]) -> None:
    bare = Graph.from_scipy(community_graph.adjacency, labels=community_graph.labels)
    with pytest.raises(InputError, match="needs node features, and this graph has none"):
        pprop.train(pprop.APPNP(), bare, community_splits[0])
    with pytest.raises(InputError, match="train needs labels, and this graph has none"):
        pprop.train(pprop.APPNP(), community_graph.replace(labels=None), community_splits[0])


def test_predict_refuses_nodes_out_of_range(community_graph: Graph, community_splits: list[Split]) -> None:
    trained = pprop.train(
        pprop.MLP(hidden=4), community_graph, community_splits[0], stopping=pprop.Stopping(max_epochs=1)
    )
    with pytest.raises(InputError, match="Got 90 at index 0 instead"):
        trained.predict([90])


def test_identity_features_serve_a_graph_without_any(community_graph: Graph, community_splits: list[Split]) -> None:
    graph = Graph.from_scipy(community_graph.adjacency, labels=community_graph.labels, features=sparse.eye_array(90))
    trained = pprop.train(pprop.APPNP(hidden=8), graph, community_splits[0], stopping=pprop.Stopping(max_epochs=60))
    assert trained.accuracy()[0] > 0.8  # communities are visible in the edges alone; chance is a third
