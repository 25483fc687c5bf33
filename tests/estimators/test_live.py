"""Live graphs of fitted models: the network predicts new nodes and changed features on its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from torch import nn

from pprop import (
    APPNP,
    GCN,
    APPNPClassifier,
    APPNPEnsembleClassifier,
    BootstrappedFPClassifier,
    Exact,
    GCNClassifier,
    Graph,
    InputError,
    MLPNodeClassifier,
    PPNPClassifier,
    PropagatedClassifier,
    Propagation,
    SolvedPPNP,
    Split,
    Stopping,
    live,
    propagate,
    train,
)

NODES = 30


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(0)
    A = np.triu(rng.random((NODES, NODES)) < 0.15, 1)
    return Graph.from_scipy(sparse.csr_array((A | A.T).astype(float)), features=rng.random((NODES, 6)).round(1))


def fitted(kind, graph, **settings):
    model = kind(graph, max_epochs=15, random_state=0, **settings)
    return model.fit(np.arange(12), ["x", "y", "z"] * 4, stopping=0.25)


@pytest.fixture(scope="module")
def model(graph):
    return fitted(APPNPClassifier, graph, alpha=0.15, steps=3, scaling="l1")


def alone(model, features):
    """The network by hand: two layers without biases on features whose rows sum to one."""
    X = np.atleast_2d(features) / np.atleast_2d(features).sum(axis=1, keepdims=True)
    first, second = model.weights_.values()
    return np.maximum(X @ first, 0) @ second


def exact(graph, H, alpha):
    return propagate(graph, H, alpha, Exact(), normalization="row")


def test_it_starts_at_the_fixed_point_and_tells_the_difference_from_the_steps(model, graph):
    changing = live(model, tol=1e-6)
    expected = exact(graph, alone(model, graph.features), 0.15)
    np.testing.assert_allclose(changing.logits(), expected, atol=2e-5)
    difference = np.abs(expected - model.logits_)
    assert changing.difference is not None
    assert changing.difference.solver == "PowerIteration(steps=3)"
    assert changing.difference.largest == pytest.approx(difference.max(), abs=2e-5)
    assert changing.difference.largest > 1e-3
    assert changing.difference.classes == np.count_nonzero(expected.argmax(axis=1) != model.logits_.argmax(axis=1))


def test_a_model_that_is_exact_has_no_difference(graph):
    changing = live(fitted(PPNPClassifier, graph, alpha=0.2), tol=1e-6)
    assert changing.difference is not None
    assert changing.difference.largest < 1e-4
    assert changing.difference.classes == 0


def test_a_new_node_is_predicted_by_the_network_alone_and_then_by_its_neighbours(model, graph):
    features = np.array([0.0, 1.0, 0.5, 0.0, 0.0, 0.2])
    changing = live(model, tol=1e-6)
    (new,) = changing.add_node(features).nodes
    np.testing.assert_allclose(changing.logits([new]), alone(model, features), atol=1e-5)
    changing.add_edges([[new, 3], [new, 17]])
    A = np.zeros((NODES + 1, NODES + 1))
    A[:NODES, :NODES] = graph.adjacency.toarray()
    A[new, [3, 17]] = A[[3, 17], new] = 1
    X = np.vstack([graph.features, features])
    expected = exact(Graph.from_scipy(sparse.csr_array(A)), alone(model, X), 0.15)
    np.testing.assert_allclose(changing.logits(), expected, atol=2e-5)
    assert changing.predict([new])[0] == model.classes_[expected[new].argmax()]
    np.testing.assert_array_equal(changing.graph.features, X)


def test_nodes_may_come_several_at_a_time_and_sparse(model):
    features = np.eye(6)[:3] + 0.5
    changing = live(model)
    new = changing.add_nodes(sparse.csr_array(features)).nodes
    np.testing.assert_allclose(changing.logits(new), alone(model, features), atol=1e-5)
    assert changing.add_node(sparse.csr_array(features[:1])).nodes.tolist() == [NODES + 3]


def test_changed_features_are_predicted_anew_and_spread(model, graph):
    changing = live(model, tol=1e-6)
    X = np.array(graph.features)
    X[4], X[9] = 1.0, np.arange(6.0)
    changing.set_features(4, X[4])
    changing.set_features([9], X[[9]])
    np.testing.assert_allclose(changing.logits(), exact(graph, alone(model, X), 0.15), atol=2e-5)
    np.testing.assert_array_equal(changing.graph.features, X)
    changing.undo()
    changing.undo()
    np.testing.assert_allclose(changing.logits(), exact(graph, alone(model, graph.features), 0.15), atol=2e-5)
    assert changing.fingerprint == graph.fingerprint


def test_features_of_another_width_are_refused(model):
    changing = live(model)
    with pytest.raises(InputError, match=r"must be an array of shape \(1, 6\)"):
        changing.add_node(np.ones(5))
    with pytest.raises(InputError, match="free of NaN"):
        changing.set_features(0, np.full(6, np.nan))
    assert changing.nodes[-1] == NODES - 1


def test_a_predictor_of_the_user_predicts_new_nodes_too(graph):
    model = fitted(APPNPClassifier, graph, alpha=0.2, predictor=lambda: nn.Linear(6, 3))
    features = np.arange(6.0)
    changing = live(model)
    (new,) = changing.add_node(features).nodes
    weight, bias = model.weights_["weight"], model.weights_["bias"]
    np.testing.assert_allclose(changing.logits([new])[0], weight @ features + bias, rtol=1e-5)


def test_a_trained_run_can_be_live(graph):
    split = Split(np.arange(6), np.arange(6, 12), np.arange(12, NODES))
    labels = np.where(np.arange(NODES) < 12, np.arange(NODES) % 3, -1)

    def trained(seeds):
        rule = Stopping(max_epochs=5)
        return train(APPNP(alpha=0.2, hidden=8), graph, [split] * len(seeds), seeds=seeds, labels=labels, stopping=rule)

    changing = live(trained([0]))
    assert changing.predict().tolist() == changing.logits().argmax(axis=1).tolist()
    with pytest.raises(InputError, match=r"one trained run\. Got 2"):
        live(trained([0, 1]))


def test_models_that_do_not_propagate_at_the_end_are_refused(graph):
    with pytest.raises(InputError, match="needs a model that propagates"):
        live(fitted(MLPNodeClassifier, graph))
    with pytest.raises(InputError, match="whose layers propagate in between"):
        live(fitted(GCNClassifier, graph))
    with pytest.raises(InputError, match="that is not fitted"):
        live(APPNPClassifier(graph))
    with pytest.raises(InputError, match="'model' parameter of live"):
        live("model")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="there is none that H decides"):
        live(fitted(APPNPClassifier, graph, alpha=0.0))


def test_a_predictor_that_propagates_inside_is_refused(graph):
    """What it says of a node is not the node's alone: an edit would change it, unseen."""
    inner = nn.Sequential(nn.Linear(6, 3), Propagation(graph, alpha=0.5))
    with pytest.raises(InputError, match="APPNPClassifier, whose predictor has a Propagation,"):
        live(fitted(APPNPClassifier, graph, predictor=inner))


def test_a_model_keeps_its_own_settings(model):
    with pytest.raises(InputError, match="'alpha' parameter of live must be None with a fitted model"):
        live(model, alpha=0.3)


def test_models_that_vote_or_propagate_something_else_are_told_why(graph):
    with pytest.raises(InputError, match="APPNPEnsembleClassifier, whose members vote,"):
        live(fitted(APPNPEnsembleClassifier, graph, members=2, rounds=0))
    boosted = BootstrappedFPClassifier(graph, rounds=1, random_state=0).fit(np.arange(12), ["x", "y", "z"] * 4)
    with pytest.raises(InputError, match="BootstrappedFPClassifier, which propagates features,"):
        live(boosted)


SPREAD = [
    (LogisticRegression(), {"response": "logits"}),
    (LogisticRegression(), {"response": "logits", "self_loops": False, "normalization": "row"}),
    (LogisticRegression(), {"response": "probabilities"}),
    (GaussianNB(), {"response": "probabilities", "normalization": "sym", "self_loops": False}),
]


@pytest.mark.parametrize(("estimator", "settings"), SPREAD)
def test_a_propagated_classifier_is_live_and_predicts_as_one_on_the_edited_graph(graph, estimator, settings):
    spread = PropagatedClassifier(estimator, graph, alpha=0.3, solver=Exact(), **settings)
    spread.fit(np.arange(12), ["x", "y", "z"] * 4)
    changing = live(spread, tol=1e-8)
    np.testing.assert_allclose(changing.predict_proba(), spread.predict_proba(range(NODES)), atol=1e-6)
    assert changing.predict().tolist() == spread.predict(range(NODES)).tolist()
    assert changing.difference is not None
    assert changing.difference.solver == "Exact()"
    assert changing.difference.largest < 1e-6

    (new,) = changing.add_node(np.linspace(0, 1, 6)).nodes
    np.testing.assert_allclose(
        changing.predict_proba([new]), spread.estimator_.predict_proba(np.linspace([0], [1], 6).T)
    )
    changing.add_edges([[new, 3], [new, 20]])
    changing.remove_node(7)
    changing.set_features([1, 5], np.full((2, 6), 0.5))
    other: Any = spread.get_params(deep=False) | {
        "estimator": spread.estimator_,
        "graph": changing.graph,
        "prefit": True,
    }
    fresh = PropagatedClassifier(**other).fit()
    np.testing.assert_allclose(changing.predict_proba(), fresh.predict_proba(range(NODES)), atol=1e-6)
    assert changing.predict().tolist() == fresh.predict(range(NODES)).tolist()


def test_the_steps_of_a_propagated_classifier_differ_from_the_fixed_point_by_what_is_told(graph):
    spread = PropagatedClassifier(GaussianNB(), graph, alpha=0.1, steps=1).fit(np.arange(12), ["x", "y", "z"] * 4)
    changing = live(spread, tol=1e-8)
    expected = propagate(graph, spread.alone_, 0.1, Exact(), normalization="row")
    assert changing.difference is not None
    assert changing.difference.solver == "PowerIteration(steps=1)"
    difference = np.abs(expected - spread.predict_proba(range(NODES))).max()
    assert changing.difference.largest == pytest.approx(difference, abs=1e-6)
    assert difference > 0.01


def test_new_features_reach_an_estimator_in_the_form_of_the_others(graph):
    """Sparse where those of the graph are sparse, dense where they are dense, whatever is given."""
    for known, given in ((np.asarray, sparse.csr_array), (sparse.csr_array, np.asarray)):
        like = graph.replace(features=known(graph.features))
        spread = PropagatedClassifier(LogisticRegression(), like).fit(np.arange(12), ["x", "y", "z"] * 4)
        (new,) = live(spread).add_nodes(given(np.ones((1, 6)))).nodes
        assert new == NODES
        changing = live(spread)
        changing.set_features([2], given(np.ones((1, 6))))
        assert sparse.issparse(changing.graph.features) == sparse.issparse(like.features)


def test_an_estimator_that_sees_something_else_than_the_graph_has_no_network(graph):
    texts = [f"node {k}" for k in range(NODES)]
    spread = PropagatedClassifier(make_pipeline(CountVectorizer(), MultinomialNB()), graph, features=texts)
    changing = live(spread.fit(np.arange(12), ["x", "y", "z"] * 4))
    with pytest.raises(InputError, match="there is no network"):
        changing.add_node(np.ones(6))
    assert changing.add_node(np.ones(6), prediction=[0.2, 0.3, 0.5]).nodes.tolist() == [NODES]


def test_a_propagated_classifier_is_live_with_the_settings_of_its_fit(graph):
    spread = PropagatedClassifier(LogisticRegression(), graph)
    with pytest.raises(InputError, match="a PropagatedClassifier that is not fitted"):
        live(spread)
    before = live(spread.fit(np.arange(12), ["x", "y", "z"] * 4)).logits()
    spread.set_params(self_loops=False)  # as of any classifier: for the next fit
    np.testing.assert_array_equal(live(spread).logits(), before)
    other: Any = spread.fitted_.model
    spread.fitted_ = replace(spread.fitted_, model=replace(other, self_loops=False))
    with pytest.raises(InputError, match="not those that its logits come from"):
        live(spread)
    with pytest.raises(InputError, match="there is none that H decides"):
        live(PropagatedClassifier(LogisticRegression(), graph, alpha=0.0).fit(np.arange(12), ["x", "y", "z"] * 4))


def test_a_training_with_a_solve_in_the_loop_can_be_live(graph):
    split = Split(np.arange(6), np.arange(6, 12), np.arange(12, NODES))
    labels = np.where(np.arange(NODES) < 12, np.arange(NODES) % 3, -1)
    model = SolvedPPNP(alpha=0.2, hidden=8, edge_dropout=0.2, normalization="row", self_loops=False)
    trained = train(model, graph, split, labels=labels, stopping=Stopping(max_epochs=5))
    changing = live(trained, tol=1e-6)
    X = (graph.features - graph.features.mean(axis=0)) / graph.features.std(axis=0)
    H = np.maximum(X @ trained.weights[0][0], 0) @ trained.weights[1][0]
    expected = propagate(graph, H, 0.2, Exact(), normalization="row", self_loops=False)
    np.testing.assert_allclose(changing.logits(), expected, atol=1e-5)
    assert changing.difference is not None
    assert changing.difference.solver == "Chebyshev(tol=0.0001, max_products=10000)"
    assert changing.difference.largest == pytest.approx(np.abs(expected - trained.logits[0]).max(), abs=1e-5)
    (new,) = changing.add_node(np.asarray(graph.features)[3]).nodes
    np.testing.assert_allclose(changing.logits([new])[0], H[3], atol=1e-5)


def test_a_training_of_layers_that_propagate_is_refused_by_the_name_of_its_model(graph):
    split = Split(np.arange(6), np.arange(6, 12), np.arange(12, NODES))
    labels = np.where(np.arange(NODES) < 12, np.arange(NODES) % 3, -1)
    with pytest.raises(InputError, match="GCN, whose layers propagate in between,"):
        live(train(GCN(hidden=8), graph, split, labels=labels, stopping=Stopping(max_epochs=2)))
