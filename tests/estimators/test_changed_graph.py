"""A graph that changed under a fitted model: refused by all that reads the model, whichever classifier it is."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import pprop
from pprop import Graph, InputError

TRAINED = {
    kind.__name__: kind
    for kind in (
        *(pprop.APPNPClassifier, pprop.PPNPClassifier, pprop.MLPNodeClassifier, pprop.APPNPClassifierCV),
        *(pprop.APPNPEnsembleClassifier, pprop.GCNClassifier, pprop.NGCNClassifier, pprop.GATClassifier),
        pprop.JKClassifier,
    )
}
NAMES = (*TRAINED, "BootstrappedFPClassifier", "PropagatedClassifier")
MORE: dict[str, dict[str, Any]] = {
    "APPNPClassifierCV": {"alphas": [0.1, 0.2]},
    "APPNPEnsembleClassifier": {"members": 2, "rounds": 0},
}
ALL = np.arange(90)


@pytest.fixture(scope="module", params=NAMES)
def fitted(request: pytest.FixtureRequest, graph: Graph, nodes: NDArray[np.int64], animals: NDArray[np.str_]) -> Any:
    """A fitted classifier of each kind; tests take copies."""
    name = request.param
    if name == "PropagatedClassifier":
        model: Any = pprop.PropagatedClassifier(LogisticRegression(), graph)
    elif name == "BootstrappedFPClassifier":
        model = pprop.BootstrappedFPClassifier(graph, rounds=1, random_state=0)
    else:
        quick: dict[str, Any] = {"max_epochs": 2, "random_state": 0, "backend": "reference", **MORE.get(name, {})}
        model = TRAINED[name](graph, **quick)
    return model.fit(nodes, animals)


def other_edges(graph: Graph) -> Graph:
    changed = graph.adjacency.tolil()
    changed[0, 89] = changed[89, 0] = 1.0
    return graph.replace(adjacency=changed.tocsr())


def readers(model: Any, folder: Path) -> dict[str, Any]:
    """All that reads a fitted model, by name."""
    own = {
        "predict": lambda: model.predict(ALL),
        "predict_proba": lambda: model.predict_proba(ALL),
        "decision_function": lambda: model.decision_function(ALL),
        "score": lambda: model.score(ALL, ALL),
        "explain": lambda: pprop.explain(model, 0),
        "explain of its own": lambda: model.explain(0),
    }
    if isinstance(model, pprop.PropagatedClassifier):
        return own
    return own | {"live": lambda: pprop.live(model), "save": lambda: model.save(folder / "model")}


def test_another_graph_is_refused_by_everything_and_the_former_one_is_not(
    fitted: Any, graph: Graph, tmp_path: Path
) -> None:
    model = copy.copy(fitted)
    before = model.predict_proba(ALL)
    changed = {
        "edges": other_edges(graph),
        "features": graph.replace(features=np.ones((90, 40))),
        "size": graph.subgraph(ALL[:-1]),
    }
    for other in changed.values():
        model.set_params(graph=other)
        sentence = f"The graph of this {type(model).__name__} is not the one that it was fitted on: its fingerprint is"
        for read in readers(model, tmp_path).values():
            with pytest.raises(InputError, match=sentence):
                read()
    assert list(tmp_path.iterdir()) == []
    model.set_params(graph=graph.replace(name="the same content"))
    assert np.array_equal(model.predict_proba(ALL), before)
    model.set_params(graph=graph)
    assert np.array_equal(model.predict_proba(ALL), before)


def test_what_is_no_graph_is_refused(fitted: Any) -> None:
    model = copy.copy(fitted).set_params(graph=None)
    with pytest.raises(
        InputError, match=rf"The 'graph' parameter of {type(model).__name__} must be a Graph\. Got None"
    ):
        model.predict(ALL)


def test_a_pickled_model_has_one_graph_and_predicts_the_same(fitted: Any) -> None:
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301  its own bytes
    assert again.graph is again.graph_
    assert np.array_equal(again.predict_proba(ALL), fitted.predict_proba(ALL))


@pytest.mark.parametrize("array", ["indptr", "indices", "weights", "features", "features.data"])
def test_an_array_that_was_opened_for_writing_is_named_and_a_new_fit_on_a_new_graph_helps(
    array: str, nodes: NDArray[np.int64], animals: NDArray[np.str_], tmp_path: Path
) -> None:
    features = np.random.default_rng(0).random((90, 5))
    ring = sparse.diags_array([2.0, 2.0], offsets=[-1, 1], shape=(90, 90))
    graph = Graph.from_scipy(ring, features=sparse.csr_array(features) if "." in array else features)
    model = pprop.APPNPClassifier(graph, max_epochs=2, random_state=0, backend="reference").fit(nodes, animals)
    model.predict(ALL)
    owner, _, part = array.partition(".")
    found: Any = getattr(graph, owner)
    opened = getattr(found, part) if part else found
    while isinstance(opened.base, np.ndarray):
        opened = opened.base
    opened.flags.writeable = True
    for read in readers(model, tmp_path).values():
        with pytest.raises(InputError, match=rf"its array '{array}' was made writeable\. A Graph is immutable"):
            read()
    assert model.set_params(graph=graph.replace()).fit(nodes, animals).predict(ALL).shape == (90,)


def test_a_fresh_fit_takes_the_new_graph(fitted: Any, graph: Graph, nodes: Any, animals: Any) -> None:
    model = copy.copy(fitted).set_params(graph=other_edges(graph)).fit(nodes, animals)
    assert model.graph_ is model.graph
    assert model.predict(ALL).shape == (90,)
