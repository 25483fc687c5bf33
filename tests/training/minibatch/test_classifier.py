"""`APPNPClassifier(neighbours=...)` is the training on neighbourhoods, and is saved like any other model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from torch import nn

import pprop
from pprop import APPNP, APPNPClassifier, Graph, Split, Stopping, scale


def fitted(graph: Graph, split: Split) -> APPNPClassifier:
    assert graph.labels is not None
    model = APPNPClassifier(graph, hidden=8, neighbours=6, max_epochs=20, random_state=3, alpha=0.2)
    return model.fit(split.train, graph.labels[split.train], stopping=(split.stopping, graph.labels[split.stopping]))


def test_it_learns_what_scale_train_does(graph: Graph, split: Split):
    model = APPNP(0.2, hidden=8, normalization="row")
    trained = scale.train(model, graph, split, neighbours=6, seeds=3, stopping=Stopping(max_epochs=20))
    np.testing.assert_array_equal(fitted(graph, split).logits_, trained.logits[0])


def test_a_saved_model_predicts_the_same_bits(graph: Graph, split: Split, tmp_path: Path):
    model = fitted(graph, split)
    model.save(tmp_path / "model")
    loaded = pprop.load(tmp_path / "model", graph=graph)
    assert isinstance(loaded, APPNPClassifier)
    assert loaded.neighbours == 6
    np.testing.assert_array_equal(loaded.decision_function(), model.decision_function())


def test_a_predictor_of_ones_own_is_refused(graph: Graph):
    model = APPNPClassifier(graph, neighbours=6, predictor=nn.LazyLinear(3))
    with pytest.raises(
        pprop.InputError, match="'neighbours' parameter of APPNPClassifier must be None with a predictor"
    ):
        model.fit([0, 1, 25, 26], [0, 0, 1, 1], stopping=None)


def test_less_than_one_neighbour_is_refused(graph: Graph):
    with pytest.raises(
        pprop.InputError, match="'neighbours' parameter of APPNPClassifier must be an integer of at least 1"
    ):
        APPNPClassifier(graph, neighbours=0).fit([0, 1, 25, 26], [0, 0, 1, 1])
