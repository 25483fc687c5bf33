"""No model reads a label that `fit` was not given: with other labels of test nodes every bit is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import pprop
from pprop import Graph, estimators
from pprop.estimators.node import NodeEstimator

QUICK: dict[str, Any] = {"max_epochs": 5, "random_state": 0}
JUDGED: dict[str, Any] = {"scoring": "average_precision", "positive": "bee", "threshold": "f1"}
MODELS: dict[str, Callable[[Graph], Any]] = {
    "APPNPClassifier": lambda graph: pprop.APPNPClassifier(graph, **QUICK, **JUDGED),
    "APPNPClassifierCV": lambda graph: pprop.APPNPClassifierCV(graph, alphas=(0.1, 0.5), **QUICK, **JUDGED),
    "APPNPEnsembleClassifier": lambda graph: pprop.APPNPEnsembleClassifier(
        graph, members=2, rounds=1, spread_errors=0.3, **QUICK
    ),
    "AutoClassifier": lambda graph: pprop.AutoClassifier(graph, **QUICK, **JUDGED),
    "BootstrappedFPClassifier": lambda graph: pprop.BootstrappedFPClassifier(graph, rounds=2, random_state=0),
    "ColumnsClassifier": lambda graph: pprop.ColumnsClassifier(graph, stopping=0.3, random_state=0, **JUDGED),
    "GATClassifier": lambda graph: pprop.GATClassifier(graph, **QUICK),
    "GCNClassifier": lambda graph: pprop.GCNClassifier(graph, **QUICK),
    "GPRGNNClassifier": lambda graph: pprop.GPRGNNClassifier(graph, **QUICK, **JUDGED),
    "JKClassifier": lambda graph: pprop.JKClassifier(graph, **QUICK),
    "LabelPropagationClassifier": lambda graph: pprop.LabelPropagationClassifier(graph),
    "MLPNodeClassifier": lambda graph: pprop.MLPNodeClassifier(graph, **QUICK, **JUDGED),
    "NGCNClassifier": lambda graph: pprop.NGCNClassifier(graph, **QUICK),
    "PPNPClassifier": lambda graph: pprop.PPNPClassifier(graph, **QUICK, **JUDGED),
    "PropagatedClassifier": lambda graph: pprop.PropagatedClassifier(LogisticRegression(), graph),
    "ResidualClassifier": lambda graph: pprop.ResidualClassifier(graph, layers=2, **QUICK, **JUDGED),
    "SolvedPPNPClassifier": lambda graph: pprop.SolvedPPNPClassifier(graph, tol=1e-3, **QUICK, **JUDGED),
}

OF_NUMBERS: dict[str, Callable[[Graph], Any]] = {
    "APPNPRegressor": lambda graph: pprop.APPNPRegressor(graph, **QUICK),
    "ColumnsRegressor": lambda graph: pprop.ColumnsRegressor(graph, stopping=0.3, random_state=0),
    "MLPNodeRegressor": lambda graph: pprop.MLPNodeRegressor(graph, **QUICK),
    "PropagatedRegressor": lambda graph: pprop.PropagatedRegressor(Ridge(), graph),
}


def test_every_estimator_is_among_them():
    public = {name: getattr(estimators, name) for name in estimators.__all__}
    kinds = {name for name, kind in public.items() if isinstance(kind, type) and issubclass(kind, NodeEstimator)}
    assert {*MODELS, *OF_NUMBERS} == kinds - {"NodeClassifier"}  # which is abstract


@pytest.mark.parametrize("name", MODELS)
def test_other_labels_of_test_nodes_change_no_bit(name: str, graph: Graph, nodes: Any, animals: Any):
    every = np.arange(graph.n_nodes)
    codes = every // 30
    rotated = np.where(np.isin(every, nodes), codes, (codes + 1) % 3)
    one, other = (MODELS[name](graph.replace(labels=each)).fit(nodes, animals) for each in (codes, rotated))
    assert np.array_equal(one.predict_proba(), other.predict_proba())
    assert np.array_equal(one.predict(), other.predict())


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_labels_of_the_graph_change_no_predicted_number(name: str, graph: Graph, nodes: Any):
    every = np.arange(graph.n_nodes)
    numbers = np.sin(every[np.asarray(nodes)])
    one, other = (
        OF_NUMBERS[name](graph.replace(labels=each)).fit(nodes, numbers)
        for each in (every // 30, (every + 30) // 30 % 3)
    )
    assert np.array_equal(one.predict(), other.predict())
