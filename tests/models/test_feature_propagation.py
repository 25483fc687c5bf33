"""Bootstrapped feature propagation without an estimator around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from pprop import BootstrappedFPClassifier, Graph, InputError
from pprop.models.feature_propagation import (
    BootstrappedFP,
    Diffused,
    FeaturePropagation,
    diffused_features,
    feature_logits,
)
from pprop.models.feature_rows import CPU, Torch


@pytest.fixture
def graph() -> Graph:
    """Three communities of 30 nodes, 300 features: more than are diffused at a time."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(3), 30)
    links = rng.random((90, 90)) < np.where(group[:, None] == group, 0.15, 0.01)
    links = np.triu(links, 1)
    words = rng.random((90, 300)) < np.where(np.arange(300) % 3 == group[:, None], 0.1, 0.05)
    return Graph.from_scipy(sp.csr_array((links + links.T).astype(float)), features=words.astype(float))


@pytest.mark.parametrize("self_loops", [True, False])
def test_diffused_features_are_the_series_of_powers(graph: Graph, self_loops: bool):
    links = graph.adjacency.toarray().astype(float)
    A = links + (np.eye(90) if self_loops else np.diag(1.0 * (links.sum(axis=1) == 0)))
    M = A / np.sqrt(np.outer(A.sum(axis=1), A.sum(axis=1)))
    words: Any = graph.features
    counts = np.asarray(words if isinstance(words, np.ndarray) else words.toarray(), dtype=float)
    X = counts / counts.sum(axis=1, keepdims=True)
    powers = [np.linalg.matrix_power(0.7 * M, k) for k in range(5)]
    expected = powers[4] @ X + 0.3 * sum(power @ X for power in powers[:4])
    for device in (CPU(), Torch("cpu")):
        found = device.get(diffused_features(BootstrappedFP(0.3, steps=4, self_loops=self_loops), graph, device))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_torch_bootstraps_as_numpy_does(graph: Graph):
    a, b, c, d = runs()[0]
    model = BootstrappedFP(rounds=3, share=0.2)
    here, there = (
        Diffused(diffused_features(model, graph, device), device).bootstrap(model, a, b, c, d, 3, tolerance=1e-8)
        for device in (CPU(), Torch("cpu"))
    )
    np.testing.assert_allclose(there.log_shares, here.log_shares, atol=1e-3)
    np.testing.assert_array_equal(there.log_shares.argmax(axis=1), here.log_shares.argmax(axis=1))


def runs() -> list[tuple[Any, Any, Any, Any]]:
    rng = np.random.default_rng(1)
    found: list[tuple[Any, Any, Any, Any]] = []
    for _ in range(2):
        nodes = rng.permutation(90)[:30]
        found.append((nodes[:15], nodes[:15] // 30, nodes[15:], nodes[15:] // 30))
    return found


def test_a_second_fit_is_as_if_it_were_the_first(graph: Graph):
    (a, b, c, d), (e, f, g, h) = runs()
    twice = FeaturePropagation(graph, BootstrappedFP(rounds=3))
    twice.fit(a, b, stopping=(c, d)).fit(e, f, stopping=(g, h))
    once = FeaturePropagation(graph, BootstrappedFP(rounds=3)).fit(e, f, stopping=(g, h))
    np.testing.assert_array_equal(twice.record_.log_shares, once.record_.log_shares)


def test_it_is_what_the_estimator_learns(graph: Graph):
    a, b, c, d = runs()[0]
    found = FeaturePropagation(graph, BootstrappedFP(rounds=3)).fit(a, b, stopping=(c, d))
    estimator = BootstrappedFPClassifier(graph, rounds=3).fit(a, b, stopping=(c, d))
    np.testing.assert_array_equal(found.predict(np.arange(90)), estimator.predict(np.arange(90)))
    assert found.record_.stopping_accuracy == np.mean(found.predict(c) == d)
    assert found.record_.stopping_loss == estimator.record_.stopping_loss


def test_the_round_with_the_best_stopping_accuracy_is_kept_the_earliest_among_equals(graph: Graph):
    a, b, c, d = runs()[0]
    model = BootstrappedFP(rounds=6, share=0.2)
    diffused = Diffused(diffused_features(model, graph))
    found = diffused.bootstrap(model, a, b, c, d, 3)
    assert found.best == int(np.argmax(found.curves[:, 2]))
    shares = [shares for _, shares in diffused.rounds(model, a, b, c, 3)]
    np.testing.assert_array_equal(found.log_shares, shares[found.best])
    np.testing.assert_allclose(np.exp(shares[-1]).sum(axis=1), 1.0)
    assert [float(np.mean(one[c].argmax(axis=1) == d)) for one in shares] == found.curves[:, 2].tolist()


def test_an_absent_device_is_refused_in_fit(graph: Graph):
    a, b, c, d = runs()[0]
    with pytest.raises(InputError, match="The 'device' parameter of feature propagation"):
        FeaturePropagation(graph, BootstrappedFP(), device="tpu").fit(a, b, stopping=(c, d))


def test_the_original_reading_is_one_against_rest_regression_with_a_penalty_on_the_intercept():
    """scikit-learn's liblinear, which the authors' code used, penalises the intercept as the weight of a column of ones."""
    random = np.random.default_rng(0)
    features = random.poisson(0.4, (60, 9)).astype(np.float64)
    classes = np.arange(60) % 3
    model = BootstrappedFP(reading="original", C=1.0, rounds=0)
    watched = np.arange(40, 60)
    found = Diffused(features, penalised=True).bootstrap(
        model, np.arange(40), classes[:40], watched, classes[watched], 3, tolerance=1e-10
    )
    for code in range(3):
        theirs: Any = LogisticRegression(solver="liblinear", C=1.0, tol=1e-10, max_iter=1000)
        theirs.fit(features[:40], classes[:40] == code)
        np.testing.assert_allclose(found.regression.coefficients[code], theirs.coef_[0], atol=1e-6)
        np.testing.assert_allclose(found.regression.intercepts[code], theirs.intercept_[0], atol=1e-6)


def test_the_original_reading_takes_features_as_they_are_stored():
    pair = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), features=sp.csr_array([[2.0, 6.0], [4.0, 0.0]]))
    model = BootstrappedFP(0.5, steps=1, self_loops=False, reading="original")
    np.testing.assert_allclose(diffused_features(model, pair), [[3.0, 3.0], [3.0, 3.0]])
    found = feature_logits(model, pair, np.zeros((2, 2)), np.array([1.0, 0.0]))
    assert found.argmax(axis=1).tolist() == [0, 0]
