"""Few classes stand above a classifier: what it has is found in few places."""

from __future__ import annotations

from typing import Any

import pytest

import pprop
from pprop.estimators.explanation import explain
from pprop.estimators.fitted import Fitted
from pprop.estimators.node import NodeEstimator

KINDS = [
    kind for name in pprop.__all__ if isinstance(kind := getattr(pprop, name), type) and issubclass(kind, NodeEstimator)
]


def own_ancestors(kind: type) -> list[type]:
    return [one for one in kind.__mro__[1:] if one.__module__.startswith("pprop.")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_classifier_has_at_most_four_ancestors_of_ours(kind: type):
    assert len(own_ancestors(kind)) <= 4


def test_all_estimators_are_among_them():
    assert len(KINDS) == 21
    assert pprop.APPNPClassifier in KINDS
    assert pprop.PropagatedClassifier in KINDS


def test_no_class_above_a_classifier_is_one_of_explanations():
    assert [one for one in own_ancestors(pprop.APPNPClassifier) if one.__module__ == explain.__module__] == []


def test_a_fit_leaves_one_attribute_behind_and_a_failing_one_leaves_the_former(graph: Any, nodes: Any, animals: Any):
    model: Any = pprop.APPNPClassifier(graph, hidden=8, max_epochs=3, random_state=0).fit(nodes, animals)
    before = model.fitted_
    assert isinstance(before, Fitted)
    assert [name for name in vars(model) if name.endswith("_")] == ["fitted_"]
    with pytest.raises(pprop.InputError):
        model.fit(nodes, animals[:-1])
    assert model.fitted_ is before
