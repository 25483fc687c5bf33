"""The parameters of the classifiers as fields of dataclasses, in groups that several of them share."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast, dataclass_transform

import numpy as np
from torch import nn

from pprop import settings
from pprop._validate import describe, reject
from pprop.graph import Graph
from pprop.settings import Setting

# What may take the place of the built-in network.
ModuleOrFactory = nn.Module | Callable[[], nn.Module]

Kind = TypeVar("Kind", bound=type)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(dataclasses.field,))
def parameters(kind: Kind) -> Kind:
    """Make a dataclass of a classifier, or of a group of parameters that classifiers share.

    The constructor keeps every parameter as it is, as scikit-learn expects; `fit` checks them. All are keyword-only but
    the graph. The docstring gets a section with the parameters and their lines of help.
    """
    made = cast("Any", dataclasses.dataclass(eq=False, repr=False, kw_only=True))(kind)
    if made.__doc__ and "Examples\n" in made.__doc__:
        made.__doc__ = _documented(made)
    return made


def _documented(kind: type) -> str:
    """Return the docstring of a class with its parameters before the first section: the graph, its own, those it shares."""
    text = textwrap.dedent("    " + (kind.__doc__ or "")).rstrip() + "\n"
    fields = sorted(dataclasses.fields(kind), key=lambda field: (field.kw_only, field.name not in kind.__annotations__))
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
    "in mini-batches (`pprop.scale.train`): for graphs that do not fit otherwise. 64 is a good number. None: on all nodes.",
).optional()
RANDOM_STATE = Setting[int | np.random.RandomState | None](
    "random_state",
    None,
    "An integer is the seed of the run; a RandomState, or numpy's global one for None, draws one at every fit.",
    unchecked,
)


@parameters
class GraphParameters:
    """The graph, which all classifiers have."""

    graph: Graph = dataclasses.field(kw_only=False, metadata={"setting": GRAPH})


@parameters
class MatrixParameters(GraphParameters):
    """Of the propagation matrix."""

    normalization: str = settings.NORMALIZATION.field()
    self_loops: bool = settings.SELF_LOOPS.field()


@parameters
class NetworkParameters(GraphParameters):
    """Of the paper's network."""

    hidden: int | Sequence[int] = settings.HIDDEN.field()
    dropout: float = settings.DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    bias: bool | str = settings.BIAS.field()
    first_layer: str = settings.FIRST_LAYER.field()


@parameters
class PredictorParameters(NetworkParameters):
    """Of the paper's network, and what may take its place."""

    predictor: ModuleOrFactory | None = PREDICTOR.field()
    mixed_precision: bool = settings.MIXED_PRECISION.field()
    block_nodes: int | None = settings.BLOCK_NODES.field()


@parameters
class FitParameters(GraphParameters):
    """Of every fit."""

    scaling: str = settings.SCALING.field()
    stopping: float | None = settings.OPTIONAL_STOPPING.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()
    verbose: int = settings.VERBOSE.field()


@parameters
class TrainingParameters(FitParameters):
    """Of a training epoch by epoch."""

    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.MAX_EPOCHS.field()
    criterion: str = settings.CRITERION.field()
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    backend: str = settings.BACKEND.field()
    device: str = settings.DEVICE.field()
