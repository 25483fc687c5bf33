"""No classifier ranks a well-connected rare class below chance; dividing by the propagation of ones changes no prediction."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

import pprop
from pprop import Graph
from pprop.models.model import PropagationSettings
from pprop.models.propagated_ones import propagated_ones

QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 60, "random_state": 0}


@cache
def rings(directed: bool = False) -> Graph:
    """Return 1,000 accounts, 6 % of them in rings of ten with three times as many neighbours as the others."""
    n, size, random = 1000, 10, np.random.default_rng(3)
    fraud = np.zeros(n, dtype=bool)
    members = random.permutation(n)[: 6 * size]
    fraud[members] = True
    pairs = [random.integers(0, n, (2, 2 * n))]
    for ring in members.reshape(-1, size):
        pairs += [random.choice(ring, (2, 2 * size)), np.stack([np.repeat(ring, 8), random.integers(0, n, 8 * size)])]
    source, target = np.concatenate(pairs, axis=1)
    X = random.standard_normal((n, 6)) + 0.5 * fraud[:, None] * (np.arange(6) < 2)
    names = np.where(fraud, "fraud", "honest").tolist()
    return Graph.from_edges(source, target, nodes=np.arange(n), directed=directed, features=X, labels=names)


def fitted(model: Any) -> tuple[Any, NDArray[np.int64]]:
    """Fit a model to every second node; return it and the others."""
    graph = model.graph
    names = np.array(graph.class_names)[graph.labels]
    nodes = np.arange(graph.n_nodes)
    return model.fit(nodes[::2], names[::2]), nodes[1::2]


def auc(model: Any, nodes: NDArray[np.int64], scores: NDArray[Any]) -> float:
    """Return the ROC AUC of the rare class."""
    graph = model.graph
    return float(roc_auc_score(np.array(graph.class_names)[graph.labels[nodes]] == "fraud", scores))


DEFAULTS: dict[str, Callable[[Graph], Any]] = {
    "appnp": lambda graph: pprop.APPNPClassifier(graph, **QUICK),
    "ppnp": lambda graph: pprop.PPNPClassifier(graph, **QUICK),
    "solved ppnp": lambda graph: pprop.SolvedPPNPClassifier(graph, tol=1e-3, **QUICK),
    "ensemble": lambda graph: pprop.APPNPEnsembleClassifier(graph, members=2, rounds=0, **QUICK),
    "errors spread": lambda graph: pprop.APPNPEnsembleClassifier(
        graph, members=1, rounds=0, spread_errors=0.3, **QUICK
    ),
    "label propagation": lambda graph: pprop.LabelPropagationClassifier(graph),
    "alpha chosen": lambda graph: pprop.APPNPClassifierCV(graph, **QUICK),
    "learned hops": lambda graph: pprop.GPRGNNClassifier(graph, **QUICK),
    "propagated": lambda graph: pprop.PropagatedClassifier(LogisticRegression(), graph),
    "propagated naive Bayes": lambda graph: pprop.PropagatedClassifier(GaussianNB(), graph),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_no_default_ranks_a_well_connected_rare_class_below_chance(name: str):
    model, others = fitted(DEFAULTS[name](rings()))
    assert model.normalization_ == "row"
    assert auc(model, others, model.predict_proba(others)[:, 0]) > 0.5
    assert auc(model, others, -model.decision_function(others)) > 0.5


NOT_AVERAGED: dict[str, Callable[[Graph], Any]] = {
    "network alone": lambda graph: pprop.MLPNodeClassifier(graph, **QUICK),
    "boosting": lambda graph: pprop.ColumnsClassifier(graph, random_state=0),
    "residual": lambda graph: pprop.ResidualClassifier(graph, layers=2, **QUICK),
    "auto": lambda graph: pprop.AutoClassifier(graph, **QUICK),
}


@pytest.mark.parametrize("name", NOT_AVERAGED)
def test_no_other_default_ranks_it_below_chance_either(name: str):
    model, others = fitted(NOT_AVERAGED[name](rings()))
    assert auc(model, others, model.predict_proba(others)[:, 0]) > 0.5
    assert auc(model, others, -model.decision_function(others)) > 0.5


SYMMETRIC: dict[str, Callable[[Graph], Any]] = {
    "appnp": lambda graph: pprop.APPNPClassifier(graph, normalization="sym", **QUICK),
    "ppnp": lambda graph: pprop.PPNPClassifier(graph, normalization="sym", **QUICK),
    "ensemble": lambda graph: pprop.APPNPEnsembleClassifier(graph, members=2, rounds=0, normalization="sym", **QUICK),
    "propagated": lambda graph: pprop.PropagatedClassifier(
        LogisticRegression(), graph, normalization="sym", response="logits"
    ),
    "label propagation": lambda graph: pprop.LabelPropagationClassifier(graph, normalization="sym"),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_scores_of_a_symmetric_matrix_do_not_follow_the_number_of_neighbours(name: str):
    model, others = fitted(SYMMETRIC[name](rings()))
    logits = model.logits_[others]
    if name == "propagated":  # what the division repairs
        assert auc(model, others, logits[:, 0] - logits[:, 1]) < 0.5
    shares = model.predict_proba(others)
    assert auc(model, others, shares[:, 0]) > 0.5
    assert auc(model, others, -model.decision_function(others)) > 0.5
    assert np.array_equal(np.where(logits[:, 0] >= logits[:, 1], 0, 1), shares.argmax(axis=1))


def test_probabilities_are_the_softmax_of_logits_divided_by_the_propagation_of_ones():
    graph = rings()
    model, _ = fitted(pprop.APPNPClassifier(graph, normalization="sym", **QUICK))
    ones = pprop.propagate(graph, np.ones((graph.n_nodes, 1)), 0.1)
    powers = np.exp(model.logits_ / ones)
    np.testing.assert_allclose(model.predict_proba(), powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)
    plain, _ = fitted(pprop.APPNPClassifier(graph, **QUICK))
    powers = np.exp(plain.logits_.astype(np.float64))
    np.testing.assert_allclose(plain.predict_proba(), powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def test_the_papers_graphs_keep_the_papers_matrix_logits_and_predictions():
    graph = pprop.load_dataset("citeseer")
    split = pprop.paper_split(graph, pprop.TEST_SEEDS[0])
    assert graph.labels is not None
    given = (split.train, graph.labels[split.train])
    watched = (split.stopping, graph.labels[split.stopping])
    own, named = (
        pprop.APPNPClassifier(graph, hidden=16, max_epochs=30, random_state=0, normalization=one).fit(
            *given, stopping=watched
        )
        for one in (None, "sym")
    )
    assert own.normalization_ == "sym"
    assert np.array_equal(own.logits_, named.logits_)
    assert np.array_equal(own.decision_function(), own.logits_)
    shares, nodes = own.predict_proba(), np.arange(graph.n_nodes)
    assert np.array_equal(shares[nodes, own.predict()], shares.max(axis=1))  # in float32 two may be the same
    other = pprop.APPNPClassifier(graph.replace(recommended=None), hidden=16, max_epochs=2, random_state=0)
    assert other.fit(*given, stopping=watched).normalization_ == "row"


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize(("alpha", "steps"), [(0.0, 3), (0.1, 0), (0.1, 1), (1.0, 10)])
def test_the_propagation_of_ones_can_always_be_divided_by(directed: bool, self_loops: bool, alpha: float, steps: int):
    lonely = np.zeros((5, 5))
    lonely[0, 1] = lonely[1, 0] = lonely[2, 1] = 1.0  # nodes 3 and 4 have no edges
    graph = Graph.from_scipy(sparse.csr_array(lonely if directed else np.maximum(lonely, lonely.T)), directed)
    for normalization in ("sym", "col"):
        how = PropagationSettings(alpha, pprop.PowerIteration(steps), 0.0, normalization, self_loops)
        ones = propagated_ones(graph, how)
        assert ones is not None
        assert np.isfinite(ones).all()
        assert (ones > 0).all()
        if alpha == 1.0 or steps == 0:
            assert (ones == 1.0).all()


def test_a_model_keeps_its_matrix_when_it_is_saved_and_moved(tmp_path: Any):
    graph = pprop.load_dataset("citeseer")
    assert graph.labels is not None
    nodes = np.arange(200)
    model = pprop.APPNPClassifier(graph, hidden=4, max_epochs=2, random_state=0).fit(nodes, graph.labels[nodes])
    model.save(tmp_path / "model")
    bare = graph.replace(recommended=None)  # which recommends nothing
    loaded = pprop.load(tmp_path / "model", graph=bare)
    assert (loaded.normalization_, loaded.settings_["normalization"]) == ("sym", None)
    assert np.array_equal(loaded.logits_, model.logits_)
    assert np.array_equal(loaded.predict_proba(), model.predict_proba())
    moved = model.on(graph.subgraph(np.arange(500)).replace(recommended=None))
    assert moved.normalization_ == "sym"


def test_label_propagation_counts_the_nodes_that_no_label_reaches():
    pair = Graph.from_scipy(sparse.csr_array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]))
    model = pprop.LabelPropagationClassifier(pair).fit([0, 1, 2], ["a", "a", "b"])
    assert model.n_unreached_ == 1
    np.testing.assert_allclose(model.predict_proba([3]), [[2 / 3, 1 / 3]])
