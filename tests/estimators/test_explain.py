"""Explanations of fitted classifiers: they add up to the logits, and name nodes and labels."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from torch import nn

import pprop
from pprop import Graph, InputError, explain
from pprop.estimators import NodeClassifier

QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 15, "random_state": 0}


@pytest.fixture(scope="module")
def appnp(graph: Graph, nodes: Any, animals: Any) -> NodeClassifier:
    return pprop.APPNPClassifier(graph, **QUICK).fit(nodes, animals)


@pytest.fixture(scope="module")
def ppnp(graph: Graph, nodes: Any, animals: Any) -> NodeClassifier:
    return pprop.PPNPClassifier(graph, alpha=0.2, **QUICK).fit(nodes, animals)


def whole(one: pprop.Explanation) -> Any:
    return one.contributions.sum(axis=0) + one.others


def dense(graph: Graph) -> Any:
    assert isinstance(graph.features, sparse.csr_array)
    return graph.features.toarray()


def alone(model: NodeClassifier) -> Any:
    """H of the built-in network with one hidden layer, by plain numpy."""
    features = dense(model.graph_)
    features = features / np.maximum(features.sum(axis=1, keepdims=True), 1)
    first, second = model.weights_.values()
    return np.maximum(features @ first, 0) @ second


@pytest.mark.parametrize("mode", ["exact", "fast"])
@pytest.mark.parametrize("name", ["appnp", "ppnp"])
def test_the_whole_adds_up_to_the_logits(name: str, mode: str, request: pytest.FixtureRequest) -> None:
    model: NodeClassifier = request.getfixturevalue(name)
    H = alone(model)
    explanations = explain(model, range(90), k=7, mode=mode)
    for node, one in enumerate(explanations):
        assert (one.node, one.name, one.quantity, one.mode) == (node, node, "logit", mode)
        assert one.prediction == model.predict([node])[0]
        np.testing.assert_allclose(whole(one), model.logits_[node], atol=1e-4 * np.abs(H).max())
        np.testing.assert_allclose(one.contributions, one.weights[:, None] * H[one.nodes], atol=1e-6)
        assert one.shares.sum() + one.other_share == pytest.approx(1)


def test_the_labels_are_those_of_the_fit(appnp: NodeClassifier, nodes: Any, animals: Any) -> None:
    given = dict(zip(nodes.tolist(), animals.tolist(), strict=True))
    explanation = appnp.explain(0, k=90)
    assert isinstance(explanation, pprop.Explanation)
    assert explanation.labels == [given.get(node) for node in explanation.nodes.tolist()]
    assert {"ant", None} <= set(explanation.labels)


def test_a_propagated_classifier_knows_the_labels_of_its_fit(graph: Graph, nodes: Any, animals: Any) -> None:
    given = dict(zip(nodes.tolist(), animals.tolist(), strict=True))
    model = pprop.PropagatedClassifier(LogisticRegression(), graph)
    model.fit(np.append(nodes, nodes[:3]), np.append(animals, animals[:3]))  # some twice
    explanation = explain(model, 0, k=90)
    assert explanation.labels == [given.get(node) for node in explanation.nodes.tolist()]
    assert {"ant", None} <= set(explanation.labels)
    assert explain(pickle.loads(pickle.dumps(model)), 0).labels == explanation.labels[:10]  # noqa: S301  its own bytes
    numbers = model.fit(nodes, nodes // 30).explain(int(nodes[0]), k=1)
    assert numbers.labels == [int(nodes[0]) // 30]


def test_of_an_estimator_that_was_fitted_before_no_labels_are_known(graph: Graph, nodes: Any, animals: Any) -> None:
    model = pprop.PropagatedClassifier(LogisticRegression(), graph).fit(nodes, animals)
    model.set_params(estimator=model.estimator_, prefit=True).fit()
    assert set(explain(model, 0, k=90).labels) == {None}


def test_names_are_the_ids_of_the_graph(graph: Graph, nodes: Any, animals: Any) -> None:
    named = graph.replace(ids=[f"n{node:02d}" for node in range(90)])
    one = explain(pprop.APPNPClassifier(named, **QUICK).fit(nodes, animals), 3, k=2)
    assert one.name == "n03"
    assert one.names == [f"n{node:02d}" for node in one.nodes]
    assert repr(one).startswith(f"Explanation(node 'n03' is {one.prediction!r}: '{one.names[0]}' ")
    record = one.to_json()
    assert record["contributors"][0]["name"] == one.names[0]
    parts = [part["contribution"]["ant"] for part in record["contributors"]] + [record["others"]["contribution"]["ant"]]
    assert sum(parts) == pytest.approx(record["value"]["ant"])


def test_a_position_gives_one_explanation_and_an_array_a_list(appnp: NodeClassifier) -> None:
    assert isinstance(explain(appnp, np.int64(4)), pprop.Explanation)
    assert [one.node for one in explain(appnp, [4])] == [4]
    assert explain(appnp, []) == []


def test_a_network_without_propagation_is_explained_by_the_node_itself(graph: Graph, nodes: Any, animals: Any) -> None:
    model = pprop.MLPNodeClassifier(graph, **QUICK).fit(nodes, animals)
    for mode in ("exact", "fast"):
        one = explain(model, 5, mode=mode)
        assert (one.nodes.tolist(), one.other_count, one.error) == ([5], 0, 0.0)
        np.testing.assert_allclose(one.contributions[0], model.logits_[5], atol=1e-6)


def test_a_predictor_of_the_user_is_explained_too(graph: Graph, nodes: Any, animals: Any) -> None:
    model = pprop.APPNPClassifier(graph, predictor=lambda: nn.Linear(40, 3), max_epochs=5, random_state=0)
    one = explain(model.fit(nodes, animals), 5, k=3)
    H = dense(graph) @ model.weights_["weight"].T + model.weights_["bias"]
    np.testing.assert_allclose(one.contributions, one.weights[:, None] * H[one.nodes], atol=1e-5)
    np.testing.assert_allclose(whole(one), model.logits_[5], atol=1e-4 * np.abs(H).max())


@pytest.mark.parametrize(("inner", "quantity"), [(LogisticRegression(), "probability"), (LinearSVC(), "logit")])
def test_a_propagated_classifier_is_explained_by_what_it_spreads(
    graph: Graph, nodes: Any, animals: Any, inner: Any, quantity: str
) -> None:
    response = "probabilities" if quantity == "probability" else "logits"
    model = pprop.PropagatedClassifier(inner, graph, solver=pprop.Exact(), response=response).fit(nodes, animals)
    one = explain(model, 8)
    assert one.quantity == quantity
    spread = model.predict_proba([8])[0] if quantity == "probability" else model.decision_function([8])[0]
    np.testing.assert_allclose(whole(one), spread, atol=1e-6)
    assert one.prediction == model.predict([8])[0]
    np.testing.assert_allclose(one.contributions, one.weights[:, None] * model.alone_[one.nodes], atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (pprop.GCNClassifier, {"hidden": 8, "max_epochs": 2}),
        (pprop.BootstrappedFPClassifier, {}),
        (pprop.APPNPEnsembleClassifier, {"hidden": 8, "members": 2, "rounds": 0, "max_epochs": 2}),
    ],
)
def test_a_model_whose_logits_are_no_sum_over_nodes_is_refused(
    graph: Graph, nodes: Any, animals: Any, kind: Any, settings: dict[str, Any]
) -> None:
    model = kind(graph, **settings).fit(nodes, animals)
    with pytest.raises(
        InputError, match=f"must be an APPNP, PPNP, SolvedPPNP or MLP classifier. Got {kind.__name__}, whose logits"
    ):
        explain(model, 0)


@pytest.mark.parametrize("kind", [pprop.MLPNodeClassifier, pprop.APPNPClassifier, pprop.PPNPClassifier])
def test_a_predictor_that_propagates_inside_is_refused(graph: Graph, nodes: Any, animals: Any, kind: Any) -> None:
    def inside() -> nn.Module:
        return nn.Sequential(nn.Linear(40, 3), pprop.Propagation(graph))

    settings: dict[str, Any] = {"max_epochs": 2, "random_state": 0, "backend": "reference"}
    model = kind(graph, predictor=inside, **settings).fit(nodes, animals)
    with pytest.raises(InputError, match=f"Got {kind.__name__}, whose predictor has a Propagation, instead"):
        explain(model, 0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"node": 90}, "The 'node' parameter of explain .* Got 90 at index 0 instead"),
        ({"node": -1}, "The 'node' parameter of explain .* Got -1 at index 0"),
        ({"node": 1.5}, "The 'node' parameter of explain"),
        ({"node": "n07"}, "since this graph has no ids. Got text, which would be ids, instead"),
        ({"node": None}, "The 'node' parameter of explain must be a node, or several. Got None"),
        ({"node": 0, "ids": 0}, "The 'ids' parameter of explain must be None where node is given."),
        ({"k": 0}, "The 'k' parameter of explain must be an integer of at least 1. Got 0"),
        ({"mode": "quick"}, "The 'mode' parameter of explain must be .*'exact'.*'fast'"),
        ({"mode": "fast", "eps": 0.0}, r"The 'eps' parameter of explain must be a float in \(0, 1\). Got 0.0"),
        ({"mode": "fast", "eps": float("nan")}, "The 'eps' parameter of explain must be a float"),
        ({"mode": "fast", "eps": 1e-20}, "at least 2.2e-16, the rounding of float64. Got 1e-20"),
        ({"eps": 1e-4}, "must be None with mode='exact'. Got 0.0001 instead. Pass mode='fast'"),
    ],
)
def test_impossible_arguments_are_refused(appnp: NodeClassifier, arguments: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = {"node": 0, **arguments}
    with pytest.raises(InputError, match=sentence):
        explain(appnp, **given)


def test_what_is_no_fitted_classifier_is_refused(graph: Graph) -> None:
    with pytest.raises(NotFittedError):
        explain(pprop.APPNPClassifier(graph), 0)
    with pytest.raises(InputError, match="The 'model' parameter of explain must be a fitted classifier"):
        explain(LogisticRegression(), 0)  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_a_graph_exchanged_after_the_fit_is_refused(graph: Graph, nodes: Any, animals: Any) -> None:
    model = pprop.APPNPClassifier(graph, **QUICK).fit(nodes, animals)
    explain(model, 0)
    model.set_params(graph=graph.replace(adjacency=sparse.csr_array((90, 90))))
    with pytest.raises(InputError, match="is not the one that it was fitted on"):
        explain(model, 0)


def test_weights_that_do_not_belong_to_the_logits_are_refused(appnp: NodeClassifier) -> None:
    other = copy.copy(appnp)
    other.fitted_ = replace(appnp.fitted_, weights={name: array + 1 for name, array in appnp.weights_.items()})
    with pytest.raises(InputError, match="are not those that its logits come from"):
        explain(other, 0)


def test_another_fit_is_explained_by_its_own_weights(graph: Graph, nodes: Any, animals: Any) -> None:
    model = pprop.APPNPClassifier(graph, **QUICK).fit(nodes, animals)
    before = explain(model, 1)
    model.set_params(random_state=1).fit(nodes, animals)
    after = explain(model, 1)
    assert not np.allclose(before.value, after.value)
    np.testing.assert_allclose(whole(after), model.logits_[1], atol=1e-4)


def test_an_explained_model_can_be_pickled_and_explained_again(appnp: NodeClassifier) -> None:
    again = pickle.loads(pickle.dumps(appnp))  # noqa: S301  its own bytes
    assert explain(again, 2).to_json() == explain(appnp, 2).to_json()


def test_a_loaded_model_knows_the_labels_of_its_fit(appnp: NodeClassifier, graph: Graph, tmp_path: Path) -> None:
    appnp.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert explain(loaded, 2).to_json() == explain(appnp, 2).to_json()
    other = graph.replace(adjacency=sparse.csr_array((90, 90)))
    elsewhere = explain(pprop.load(tmp_path / "model", graph=other), 2)
    assert (elsewhere.nodes.tolist(), elsewhere.labels) == ([2], [None])  # alone there, and nobody has a label


def test_explaining_draws_no_random_numbers(graph: Graph, nodes: Any, animals: Any) -> None:
    model = pprop.APPNPClassifier(graph, predictor=lambda: nn.Linear(40, 3), max_epochs=2).fit(nodes, animals)
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    explain(model, 0)
    assert torch.equal(torch.rand(1), expected)
