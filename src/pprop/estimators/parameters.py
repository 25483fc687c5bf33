"""The parameters of a classifier as fields of a dataclass, and those that are settings of estimators alone."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar, cast, dataclass_transform

import numpy as np
from torch import nn

from pprop import settings
from pprop._validate import describe, reject
from pprop.settings import Setting

# What may take the place of the built-in network.
ModuleOrFactory = nn.Module | Callable[[], nn.Module]

Kind = TypeVar("Kind", bound=type)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(dataclasses.field,))
def parameters(kind: Kind) -> Kind:
    """Make a dataclass of a classifier.

    The constructor keeps every parameter as it is, as scikit-learn expects; `fit` checks them. All are keyword-only but
    the graph. The docstring gets a section with the parameters and their lines of help.
    """
    made = cast("Any", dataclasses.dataclass(eq=False, repr=False, kw_only=True))(kind)
    if made.__doc__ and "Examples\n" in made.__doc__:
        made.__doc__ = _documented(made)
    return made


def _documented(kind: type) -> str:
    """Return the docstring of a class with its parameters before the first section, in the order of its fields."""
    text = textwrap.dedent("    " + (kind.__doc__ or "")).rstrip() + "\n"
    fields = dataclasses.fields(cast("Any", kind))
    helps = (textwrap.fill(field.metadata["setting"].help, 112) for field in fields)
    lines = [f"{field.name}\n{textwrap.indent(line, '    ')}" for field, line in zip(fields, helps, strict=True)]
    section = "\n".join(["Parameters", "----------", *lines, "", ""])
    first = re.search(r"^\w[\w ]*\n-{3,}$", text, flags=re.MULTILINE)
    assert first is not None
    return text[: first.start()] + section + text[first.start() :]


def _check_predictor(value: object, name: str, function: str) -> object:
    if value is not None and not callable(value):
        reject(name, function, "an nn.Module, a function that makes one, or None", describe(value))
    return value


def unchecked(value: object, name: str, function: str) -> object:
    """Return a value as it is: it is checked where it is used."""
    return value


GRAPH = Setting[Any]("graph", None, "With features. It is shared, not copied, when the estimator is cloned.", unchecked)
PREDICTOR = Setting[ModuleOrFactory | None](
    "predictor",
    None,
    "In place of the built-in network: any ``nn.Module`` from features (n, ...), a tensor whose first axis is the node, "
    "to logits (n, c); or a function that makes one. `hidden`, `dropout` and `bias` then have no meaning "
    "for it.",
    _check_predictor,
)
NEIGHBOURS = settings.whole(
    "neighbours",
    1,
    1,
    "In place of power steps over all nodes, train on so many of the largest entries of the PPR rows of the labelled nodes, "
    "in mini-batches (see `pprop.train`): for graphs that do not fit otherwise. 64 is a good number. None: on all nodes.",
).optional()
RANDOM_STATE = Setting[int | np.random.RandomState | None](
    "random_state",
    None,
    "An integer is the seed of the run; a RandomState, or numpy's global one for None, draws one at every fit.",
    unchecked,
)
