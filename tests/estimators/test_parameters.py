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

CLASSES: list[Any] = [
    pprop.APPNPClassifier,
    pprop.PPNPClassifier,
    pprop.MLPNodeClassifier,
    pprop.SolvedPPNPClassifier,
    pprop.APPNPClassifierCV,
    pprop.APPNPEnsembleClassifier,
    pprop.GCNClassifier,
    pprop.NGCNClassifier,
    pprop.GATClassifier,
    pprop.JKClassifier,
    pprop.BootstrappedFPClassifier,
    pprop.PropagatedClassifier,
    pprop.ColumnsClassifier,
    pprop.GPRGNNClassifier,
    pprop.ResidualClassifier,
]


def first(kind: Any, graph: Graph) -> tuple[Any, ...]:
    return (LogisticRegression(), graph) if kind is pprop.PropagatedClassifier else (graph,)


@pytest.mark.parametrize("kind", CLASSES)
def test_all_but_the_graph_are_given_by_name(kind: Any, graph: Graph):
    with pytest.raises(TypeError, match="positional argument"):
        kind(*first(kind, graph), 0.1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'learning_rat'"):
        kind(*first(kind, graph), learning_rat=1)


@pytest.mark.parametrize("kind", CLASSES)
def test_the_signature_shows_keyword_only_parameters_with_their_defaults(kind: Any, graph: Graph):
    parameters = dict(inspect.signature(kind).parameters)
    parameters.pop("graph")
    parameters.pop("estimator", None)
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
