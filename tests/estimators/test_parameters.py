"""The parameters of the classifiers: keyword-only after the graph, shown by help(), the same as those of the models."""

from __future__ import annotations

import inspect
import pydoc
from dataclasses import fields
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import pprop
from pprop import Graph
from pprop.settings import settings_of

NEW = {
    "reading",
    "scaling",
    "bias",
    "class_weight",
    "criterion",
    "mixed_precision",
    "block_nodes",
    "first_layer",
    "neighbours",
}  # since version 0.1
LAST = ("stopping", "random_state", "backend", "device", "verbose")
TRAINING = ("learning_rate", "patience", "max_epochs")
NETWORK = ("hidden", "dropout", "propagation_dropout", "penalty", *TRAINING, "normalization", "self_loops")
# The order of version 0.1, in which parameters still may be given by position.
OLD_ORDER: dict[Any, tuple[str, ...]] = {
    pprop.APPNPClassifier: ("alpha", "steps", *NETWORK, "predictor", *LAST),
    pprop.PPNPClassifier: ("alpha", *NETWORK, "predictor", *LAST),
    pprop.MLPNodeClassifier: ("hidden", "dropout", "penalty", *TRAINING, "predictor", *LAST),
    pprop.SolvedPPNPClassifier: (
        *("alpha", "tol", "solver", "hidden", "dropout", "edge_dropout", "penalty", *TRAINING),
        *("normalization", "self_loops", *LAST),
    ),
    pprop.APPNPClassifierCV: ("alphas", "n_runs", "steps", *NETWORK, "predictor", *LAST),
    pprop.APPNPEnsembleClassifier: (
        *("members", "rounds", "share", "emphasis", "folds", "spread_errors", "alpha", "steps", *NETWORK, *LAST),
    ),
    pprop.GCNClassifier: ("hidden", "dropout", "matrix_dropout", "penalty", *TRAINING, "criterion", *LAST),
    pprop.NGCNClassifier: ("hidden", "powers", "replicas", "dropout", "penalty", *TRAINING, *LAST),
    pprop.GATClassifier: ("heads", "units", "dropout", "penalty", *TRAINING, *LAST),
    pprop.JKClassifier: ("hidden", "layers", "dropout", "penalty", *TRAINING, *LAST),
    pprop.BootstrappedFPClassifier: (
        *("alpha", "steps", "rounds", "share", "C", "self_loops", "stopping", "random_state", "verbose"),
    ),
    pprop.PropagatedClassifier: (
        *("alpha", "steps", "solver", "response", "normalization", "self_loops", "features", "prefit", "batch_size"),
        "backend",
    ),
}
CLASSES = list(OLD_ORDER)


def first(kind: Any, graph: Graph) -> tuple[Any, ...]:
    return (LogisticRegression(), graph) if kind is pprop.PropagatedClassifier else (graph,)


@pytest.mark.parametrize("kind", CLASSES)
def test_parameters_by_position_warn_and_keep_their_order(kind: Any, graph: Graph):
    marks = [f"value of {name}" for name in OLD_ORDER[kind]]
    with pytest.warns(FutureWarning, match=f"Pass {OLD_ORDER[kind][0]}=.* to {kind.__name__} by name"):
        model = kind(*first(kind, graph), *marks)
    assert {name: getattr(model, name) for name in OLD_ORDER[kind]} == dict(zip(OLD_ORDER[kind], marks, strict=True))


@pytest.mark.parametrize("kind", CLASSES)
def test_too_many_or_repeated_parameters_are_a_type_error(kind: Any, graph: Graph):
    with pytest.raises(TypeError):
        kind(*first(kind, graph), *OLD_ORDER[kind], "one more")
    with pytest.raises(TypeError):
        kind(*first(kind, graph), 1, **{OLD_ORDER[kind][0]: 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'learning_rat'"):
        kind(*first(kind, graph), learning_rat=1)


@pytest.mark.parametrize("kind", CLASSES)
def test_the_signature_shows_keyword_only_parameters_with_their_defaults(kind: Any, graph: Graph):
    parameters = dict(inspect.signature(kind).parameters)
    parameters.pop("graph")
    parameters.pop("estimator", None)
    assert set(parameters) - (NEW - set(OLD_ORDER[kind])) == set(OLD_ORDER[kind])
    assert {parameter.kind for parameter in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    made = kind(*first(kind, graph))
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        name: getattr(made, name) for name in parameters
    }
    copied: Any = clone(made)
    assert set(copied.get_params(deep=False)) == set(inspect.signature(kind).parameters)


@pytest.mark.parametrize("kind", CLASSES)
def test_help_explains_every_parameter_once(kind: Any):
    page = pydoc.plain(pydoc.render_doc(kind))
    section = page[page.index("Parameters") : page.index("Attributes") if "Attributes" in page else None]
    for name, setting in settings_of(kind).items():
        assert section.count(f" |  {name}\n") == 1
        assert " ".join(setting.help.split()[:6]) in " ".join(section.replace(" |", " ").split())


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        (pprop.GCNClassifier, pprop.GCN),
        (pprop.NGCNClassifier, pprop.NGCN),
        (pprop.GATClassifier, pprop.GAT),
        (pprop.JKClassifier, pprop.JK),
    ],
)
def test_a_baseline_has_the_defaults_of_its_model(kind: Any, model: Any):
    defaults = {name: setting.default for name, setting in settings_of(kind).items()}
    assert {field.name: field.default for field in fields(model)}.items() <= defaults.items()
