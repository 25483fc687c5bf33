"""Checks of the settings that the classifiers share, made when they are fitted."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from torch import nn

from pprop._validate import check_float, check_int, describe, reject
from pprop.graph import Graph

__all__ = [
    "MOST_STEPS",
    "ModuleOrFactory",
    "layer_widths",
    "matrix_dropout",
    "module_or_none",
    "power_steps",
    "switch",
    "teleport_probability",
    "verbosity",
]

ModuleOrFactory = nn.Module | Callable[[], nn.Module]
"""What may take the place of the built-in network."""

DEFAULT_ALPHA = 0.1
MOST_STEPS = 10_000
"""Of power steps, and of layers: a saved model from a stranger makes them all when it is loaded."""


def teleport_probability(alpha: float | None, graph: Graph, interval: str, name: str) -> float:
    if alpha is not None:
        return check_float(alpha, "alpha", name, interval)
    return DEFAULT_ALPHA if graph.recommended is None else graph.recommended.alpha


def power_steps(steps: object, name: str) -> int:
    return check_int(steps, "steps", name, low=0, high=MOST_STEPS)


def layer_widths(hidden: object, name: str) -> list[int]:
    several = isinstance(hidden, Sequence) and not isinstance(hidden, str)
    widths: list[Any] = list(cast("Any", hidden)) if several else [hidden]
    for width in widths:
        if not isinstance(width, numbers.Integral) or isinstance(width, bool) or width < 1:
            reject("hidden", name, "an integer of at least 1, or a sequence of them", describe(cast("object", hidden)))
    return [int(width) for width in widths]


def matrix_dropout(dropout: float | None, name: str) -> float | None:
    return None if dropout is None else check_float(dropout, "propagation_dropout", name, "[0, 1)")


def switch(value: object, parameter: str, name: str) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(cast("bool", value))
    reject(parameter, name, "True or False", describe(value))


def verbosity(value: object, name: str) -> int:
    level = int(cast("int", value)) if isinstance(value, numbers.Integral | np.bool_) else -1
    if level < 0:
        reject("verbose", name, "0, 1 or 2, or False or True", describe(cast("object", value)))
    return level


def module_or_none(predictor: ModuleOrFactory | None, name: str) -> ModuleOrFactory | None:
    if predictor is not None and not callable(predictor):
        reject("predictor", name, "an nn.Module, a function that makes one, or None", describe(predictor))
    return predictor
