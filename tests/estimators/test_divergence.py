"""A fit that diverges is an error, and leaves nothing that could be used or saved."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.exceptions import NotFittedError

import pprop
from pprop import DivergenceError, Graph

CLASSIFIERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "appnp": (pprop.APPNPClassifier, {}),
    "ppnp": (pprop.PPNPClassifier, {}),
    "mlp": (pprop.MLPNodeClassifier, {}),
    "gcn": (pprop.GCNClassifier, {}),
    "solved": (pprop.SolvedPPNPClassifier, {}),
    "several alphas": (pprop.APPNPClassifierCV, {"alphas": [0.1, 0.5]}),
    "ensemble": (pprop.APPNPEnsembleClassifier, {"members": 2, "rounds": 1}),
    "ensemble of alphas": (pprop.APPNPEnsembleClassifier, {"members": 2, "alpha": [0.1, 0.5]}),
}


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_fit_that_diverges_says_in_which_epoch_and_stays_unfitted(kind: str, graph: Graph, nodes: Any, animals: Any):
    make, settings = CLASSIFIERS[kind]
    model = make(graph, hidden=8, learning_rate=1e30, max_epochs=5, random_state=0, **settings)
    with pytest.raises(DivergenceError, match=r"Training diverged in epoch 1\b.* Use a lower learning_rate"):
        model.fit(nodes, animals)
    with pytest.raises(NotFittedError):
        model.predict(nodes)


def test_a_fit_that_diverges_leaves_the_model_of_the_fit_before(graph: Graph, nodes: Any, animals: Any):
    model = pprop.APPNPClassifier(graph, hidden=8, max_epochs=5, random_state=0).fit(nodes, animals)
    before = model.decision_function(nodes).tobytes()
    with pytest.raises(DivergenceError):
        model.set_params(learning_rate=1e30).fit(nodes, animals)
    assert model.decision_function(nodes).tobytes() == before
