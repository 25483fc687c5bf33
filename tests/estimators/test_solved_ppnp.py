"""The classifier that solves in every epoch: its settings, its folder, its explanations and its live graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pprop
from pprop import (
    Chebyshev,
    ConjugateGradient,
    Contraction,
    Exact,
    FormatError,
    Graph,
    InputError,
    Recommended,
    SolvedPPNP,
    SolvedPPNPClassifier,
    Split,
    Stopping,
    explain,
    live,
)

pytestmark = pytest.mark.slow

QUICK: dict[str, Any] = {"hidden": 8, "max_epochs": 15, "random_state": 5}
OWN: dict[str, Any] = {
    "alpha": 0.3,
    "tol": 1e-3,
    "solver": "cg",
    "dropout": 0.2,
    "edge_dropout": 0.4,
    "penalty": 0.01,
    "normalization": "row",
    "self_loops": False,
}
"""Settings far from the defaults."""


def alone(model: SolvedPPNPClassifier) -> Any:
    """H by plain numpy."""
    features: Any = model.graph_.features
    X = features.toarray() / np.maximum(features.sum(axis=1).reshape(-1, 1), 1)
    first, second = model.weights_.values()
    return np.maximum(X @ first, 0) @ second


@pytest.fixture(scope="module")
def fitted(graph: Graph, nodes: Any, animals: Any) -> SolvedPPNPClassifier:
    return SolvedPPNPClassifier(graph, **OWN, **QUICK).fit(nodes, animals)


@pytest.mark.parametrize(
    ("name", "solver"), [("chebyshev", Chebyshev), ("cg", ConjugateGradient), ("contraction", Contraction)]
)
def test_every_setting_reaches_the_model(graph: Graph, nodes: Any, animals: Any, name: str, solver: Any) -> None:
    own: dict[str, Any] = {**OWN, "solver": name}
    stopping = (nodes[20:], animals[20:])
    fitted = SolvedPPNPClassifier(graph, **own, **QUICK).fit(nodes[:20], animals[:20], stopping=stopping)
    del own["tol"]
    own |= {"solver": solver(tol=1e-3), "hidden": 8}
    model = SolvedPPNP(**own)
    assert fitted.model_ == model
    trained = pprop.train(
        model,
        graph,
        Split(nodes[:20], nodes[20:], np.empty(0, dtype=np.int64)),
        seeds=5,
        labels=np.arange(90) // 30,
        stopping=Stopping(max_epochs=15),
        progress=False,
    )
    assert np.array_equal(fitted.logits_, trained.logits[0])
    assert fitted.predict(np.arange(90)).tolist() == np.array(["ant", "bee", "cat"])[trained.predict()[0]].tolist()


def test_the_recommended_alpha_is_taken_where_none_is_given(graph: Graph, nodes: Any, animals: Any) -> None:
    advised = graph.replace(recommended=Recommended(alpha=0.35, known=50))
    given = SolvedPPNPClassifier(graph, alpha=0.35, **QUICK).fit(nodes, animals)
    taken = SolvedPPNPClassifier(advised, **QUICK).fit(nodes, animals)
    assert taken.alpha_ == 0.35
    assert taken.model_ == SolvedPPNP(alpha=0.35, hidden=8, normalization="row")
    assert np.array_equal(taken.logits_, given.logits_)


def test_a_saved_model_comes_back_bit_for_bit(
    graph: Graph, nodes: Any, animals: Any, fitted: SolvedPPNPClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert isinstance(loaded, SolvedPPNPClassifier)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.model_ == fitted.model_
    assert np.array_equal(loaded.logits_, fitted.logits_)
    again = loaded.fit(nodes, animals)
    assert np.array_equal(again.logits_, fitted.logits_)
    manifest = (tmp_path / "model" / "manifest.json").read_text()
    (tmp_path / "model" / "manifest.json").write_text(manifest.replace('"cg"', '"guess"'))
    with pytest.raises(FormatError, match=r"a setting is impossible .*'solver' .* Got 'guess' instead"):
        pprop.load(tmp_path / "model", graph=graph)


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_explanations_add_up_to_the_logits(graph: Graph, fitted: SolvedPPNPClassifier, mode: str) -> None:
    H = alone(fitted)
    fixed = pprop.propagate(graph, H, 0.3, Exact(), normalization="row", self_loops=False)
    assert np.abs(fixed - fitted.logits_).max() > 1e-6 * np.abs(H).max()  # the tolerance of the solves is seen
    for one in explain(fitted, range(90), k=7, mode=mode):
        whole = one.contributions.sum(axis=0) + one.others
        np.testing.assert_allclose(whole, fixed[one.node], atol=1e-5 * np.abs(H).max())
        assert np.abs(whole - fitted.logits_[one.node]).max() <= 1e-3 * np.abs(H).max()
        np.testing.assert_allclose(one.contributions, one.weights[:, None] * H[one.nodes], atol=1e-6)


@pytest.mark.parametrize("normalization", ["sym", "row", "col"])
def test_a_solve_that_is_far_off_is_explained_and_other_weights_are_refused(
    graph: Graph, nodes: Any, animals: Any, normalization: str
) -> None:
    settings: dict[str, Any] = {"tol": 0.08, "learning_rate": 1.0, "penalty": 0.0, "normalization": normalization}
    model = SolvedPPNPClassifier(graph, **settings, **QUICK).fit(nodes, animals)
    H = alone(model)
    assert np.abs(H).max() > 1  # or else the check is one of absolute errors
    off = float(np.abs(pprop.propagate(graph, H, 0.1, Exact(), normalization) - model.logits_).max())
    assert off > 1e-3 * np.abs(H).max()
    assert explain(model, 0).value == pytest.approx(model.logits_[0], abs=off * 1.001)
    model.fitted_ = replace(model.fitted_, weights={name: 8 * array for name, array in model.weights_.items()})
    with pytest.raises(InputError, match="weights of this SolvedPPNPClassifier are not those"):
        explain(model, 0)


def test_it_is_live_within_its_bound(graph: Graph, fitted: SolvedPPNPClassifier) -> None:
    changing = live(fitted, tol=1e-5)
    H = alone(fitted)
    fixed = pprop.propagate(graph, H, 0.3, Exact(), normalization="row", self_loops=False)
    assert (np.abs(changing.logits() - fixed) <= changing.error_bound()[:, None] + 1e-6).all()
    assert changing.difference is not None
    assert changing.difference.solver == "ConjugateGradient(tol=0.001, max_products=10000)"
    assert changing.difference.largest == pytest.approx(np.abs(fixed - fitted.logits_).max(), abs=2e-5)
    assert set(changing.predict()) <= {"ant", "bee", "cat"}
    features: Any = graph.features
    (new,) = changing.add_node(features.toarray()[3]).nodes
    np.testing.assert_allclose(changing.logits([new])[0], H[3], atol=1e-5)


def test_live_says_that_it_would_take_one(graph: Graph) -> None:
    with pytest.raises(
        InputError, match=r"SolvedPPNPClassifier or PropagatedClassifier, .* Got a SolvedPPNPClassifier "
    ):
        live(SolvedPPNPClassifier(graph))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"tol": 0.0}, r"The 'tol' parameter of {} must be a float in \(0, 1\). Got 0.0 instead."),
        ({"tol": 1}, r"The 'tol' parameter of {} must be a float in \(0, 1\). Got 1 instead."),
        ({"tol": None}, r"The 'tol' parameter of {} must be a float in \(0, 1\). Got None instead."),
        ({"tol": 1e-7}, "The 'tol' parameter of {} must be at least 9.5e-06, what float32 can reach at alpha 0.1. Got"),
        ({"solver": "exact"}, "The 'solver' parameter of {} must be one of 'chebyshev', 'cg' or 'contraction'. Got "),
        ({"solver": Chebyshev(1e-3)}, "The 'solver' parameter of {} must be one of 'chebyshev', 'cg' or 'contraction'"),
        ({"alpha": 0.0}, r"The 'alpha' parameter of {} must be a float in \(0, 1\]. Got 0.0 instead."),
        ({"alpha": "a"}, r"The 'alpha' parameter of {} must be a float in \(0, 1\]. Got 'a' instead."),
        ({"hidden": (8, 8)}, r"The 'hidden' parameter of {} must be an integer of at least 1. Got \(8, 8\) instead."),
        ({"dropout": 1.0}, r"The 'dropout' parameter of {} must be a float in \[0, 1\). Got 1.0 instead."),
        ({"edge_dropout": 1.0}, r"The 'edge_dropout' parameter of {} must be a float in \[0, 1\). Got 1.0 instead."),
        ({"penalty": -1}, r"The 'penalty' parameter of {} must be a float in \[0, inf\). Got -1 instead."),
        ({"normalization": "both"}, "The 'normalization' parameter of {} must be one of 'sym', 'row' or 'col'. Got "),
        ({"self_loops": 1}, "The 'self_loops' parameter of {} must be True or False. Got 1 instead."),
        ({"patience": 0}, "The 'patience' parameter of {} must be an integer of at least 1. Got 0 instead."),
        ({"graph": 3, "alpha": 0.1}, "The 'graph' parameter of {} must be a Graph. Got 3 instead."),
    ],
)
def test_an_impossible_setting_is_refused_in_fit(
    graph: Graph, nodes: Any, animals: Any, settings: dict[str, Any], sentence: str
) -> None:
    given: dict[str, Any] = {"graph": graph, **settings}
    with pytest.raises(InputError, match=sentence.format("SolvedPPNPClassifier")):
        SolvedPPNPClassifier(**given).fit(nodes, animals)


def test_a_directed_graph_needs_contraction(graph: Graph, nodes: Any, animals: Any) -> None:
    directed = Graph.from_scipy(graph.adjacency, features=graph.features, directed=True)
    for solver in ("chebyshev", "cg"):
        with pytest.raises(InputError, match=f"must be 'contraction' for a directed graph. Got '?{solver}'? instead"):
            SolvedPPNPClassifier(directed, solver=solver, **QUICK).fit(nodes, animals)
    model = SolvedPPNPClassifier(directed, solver="contraction", **QUICK).fit(nodes, animals)
    assert model.logits_.shape == (90, 3)


def test_alpha_one_is_the_network_alone(graph: Graph, nodes: Any, animals: Any) -> None:
    model = SolvedPPNPClassifier(graph, alpha=1.0, **QUICK).fit(nodes, animals)
    np.testing.assert_allclose(model.logits_, alone(model), atol=1e-6)
    assert explain(model, 4).nodes.tolist() == [4]
