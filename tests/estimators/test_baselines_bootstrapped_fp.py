"""Bootstrapped feature propagation against an independent version with loops, dense matrices and scikit-learn's OvR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import pprop
from pprop import BootstrappedFPClassifier, Graph, InputError

EVERYWHERE = np.arange(90)


SETTINGS: dict[str, Any] = {"C": 100.0, "rounds": 4, "share": 0.15}


def slow_version(
    graph: Graph, train: Any, stopping: Any, labels: Any, *, self_loops: bool
) -> tuple[np.ndarray, list[float]]:
    """Return the probabilities of the best round, and the stopping accuracies of all."""
    A = graph.adjacency.toarray()
    A[...] += np.eye(90) if self_loops else np.diag(1.0 * (A.sum(axis=1) == 0))  # an isolated node keeps its features
    d = A.sum(axis=1)
    M = A / np.sqrt(np.outer(d, d))
    counts = graph.features.toarray().astype(float)  # type: ignore[union-attr]
    X = counts / np.abs(counts).sum(axis=1, keepdims=True)
    powers = [np.linalg.matrix_power(0.8 * M, k) for k in range(11)]
    diffused = powers[10] @ X + 0.2 * sum(power @ X for power in powers[:10])
    own = {int(node): int(labels[node]) for node in train}
    best, accuracies = None, []
    for _ in range(SETTINGS["rounds"] + 1):
        known = sorted(own)
        regression = LogisticRegression(C=SETTINGS["C"], tol=1e-9, solver="newton-cholesky", max_iter=1000)
        P = OneVsRestClassifier(regression).fit(diffused[known], [own[i] for i in known]).predict_proba(diffused)
        answers = P.argmax(axis=1)
        accuracies.append(float(np.mean(answers[stopping] == labels[stopping])))
        if accuracies[-1] > max([-1.0, *accuracies[:-1]]):
            best = P
        entropy = [-sum(p * np.log(p) for p in row) for row in P]
        for k in range(3):
            quota = round(SETTINGS["share"] * sum(answers == k))
            others = [i for i in range(90) if answers[i] == k and i not in own and i not in set(stopping)]
            for node in sorted(others, key=lambda i: entropy[i])[:quota]:
                own[node] = k
    assert best is not None
    return best, accuracies


@pytest.mark.parametrize("self_loops", [True, False])
def test_probabilities_are_those_of_the_slow_version(graph: Graph, nodes: Any, animals: Any, self_loops: bool) -> None:
    fitted = BootstrappedFPClassifier(graph, self_loops=self_loops, **SETTINGS)
    fitted.fit(nodes[:9], animals[:9], stopping=(nodes[9:], animals[9:]))
    P, accuracies = slow_version(graph, nodes[:9], nodes[9:], EVERYWHERE // 30, self_loops=self_loops)
    assert fitted.history_.stopping_accuracy.tolist() == accuracies
    assert fitted.record_.best_epoch == int(np.argmax(accuracies))
    np.testing.assert_allclose(fitted.predict_proba(EVERYWHERE), P, atol=1e-3)  # where the optimiser stops


def test_rounds_end_when_no_node_is_left_to_add(graph: Graph, nodes: Any, animals: Any) -> None:
    fitted = BootstrappedFPClassifier(graph, rounds=50, share=0.5, C=100.0)
    fitted.fit(nodes[:18], animals[:18], stopping=(nodes[18:], animals[18:]))
    assert fitted.n_iter_ < 20
    assert len(fitted.history_.train_loss) == fitted.n_iter_


def test_without_rounds_it_is_one_regression_on_diffused_features(graph: Graph, nodes: Any, animals: Any) -> None:
    first = BootstrappedFPClassifier(graph, rounds=0, C=100.0, random_state=0).fit(nodes, animals)
    more = BootstrappedFPClassifier(graph, rounds=3, C=100.0, random_state=0).fit(nodes, animals)
    assert first.n_iter_ == 1
    assert more.history_.stopping_loss[0] == first.history_.stopping_loss[0]


def test_it_is_the_same_twice_and_learns_the_communities(graph: Graph, nodes: Any, animals: Any) -> None:
    stopping = (nodes[18:], animals[18:])
    first, second = (BootstrappedFPClassifier(graph).fit(nodes[:18], animals[:18], stopping=stopping) for _ in "12")
    assert np.array_equal(first.logits_, second.logits_)
    others = np.setdiff1d(EVERYWHERE, nodes)
    assert first.score(others, np.array(["ant", "bee", "cat"])[others // 30]) > 0.9
    np.testing.assert_allclose(first.predict_proba(EVERYWHERE).sum(axis=1), 1.0, rtol=1e-6)


def test_a_loaded_one_predicts_as_the_saved_one_bit_for_bit(
    graph: Graph, nodes: Any, animals: Any, tmp_path: Path
) -> None:
    saved = BootstrappedFPClassifier(graph, rounds=2, C=50.0, self_loops=False, random_state=0).fit(nodes, animals)
    saved.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert type(loaded) is BootstrappedFPClassifier
    assert np.array_equal(loaded.decision_function(EVERYWHERE), saved.decision_function(EVERYWHERE))
    assert loaded.get_params() == saved.get_params()
    assert loaded.record_ == saved.record_


def test_a_class_of_the_stopping_nodes_alone_is_a_class_that_nobody_gets(
    graph: Graph, nodes: Any, animals: Any
) -> None:
    early = animals != "cat"
    fitted = BootstrappedFPClassifier(graph, rounds=1).fit(
        nodes[early], animals[early], stopping=(nodes[~early], animals[~early])
    )
    assert fitted.classes_.tolist() == ["ant", "bee", "cat"]
    assert "cat" not in fitted.predict(EVERYWHERE)
    assert np.isfinite(fitted.decision_function(EVERYWHERE)).all()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"alpha": 1.5}, "The 'alpha' parameter of BootstrappedFPClassifier must be"),
        ({"steps": -1}, "The 'steps' parameter of BootstrappedFPClassifier must be"),
        ({"rounds": 1.5}, "The 'rounds' parameter of BootstrappedFPClassifier must be"),
        ({"share": 0.0}, "The 'share' parameter of BootstrappedFPClassifier must be"),
        ({"C": 0.0}, "The 'C' parameter of BootstrappedFPClassifier must be"),
        ({"self_loops": "no"}, "The 'self_loops' parameter of BootstrappedFPClassifier must be"),
    ],
)
def test_impossible_settings_are_refused_in_fit(
    graph: Graph, nodes: Any, animals: Any, settings: Any, sentence: str
) -> None:
    model = BootstrappedFPClassifier(graph, **settings)
    with pytest.raises(InputError, match=sentence):
        model.fit(nodes, animals)
