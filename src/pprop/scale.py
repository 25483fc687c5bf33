"""Graphs beyond memory, on one machine: folders, training on neighbourhoods, steps over stored graphs.

A face: each name is imported from its home when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pprop.graph.building.build import build_graph
    from pprop.propagation.stored.graph_rows import StoredGraph
    from pprop.propagation.stored.panels import StepsProgress
    from pprop.propagation.stored.plan import StepsPlan
    from pprop.propagation.stored.steps import FolderSteps, plan_steps, propagate_folder
    from pprop.training.minibatch.neighbourhoods import Neighbourhoods, find_neighbourhoods
    from pprop.training.minibatch.training import train
    from pprop.training.predict import predict

__all__ = [
    "FolderSteps",
    "Neighbourhoods",
    "StepsPlan",
    "StepsProgress",
    "StoredGraph",
    "build_graph",
    "find_neighbourhoods",
    "plan_steps",
    "predict",
    "propagate_folder",
    "train",
]

_HOMES = {
    "graph.building.build": ("build_graph",),
    "propagation.stored.graph_rows": ("StoredGraph",),
    "propagation.stored.panels": ("StepsProgress",),
    "propagation.stored.plan": ("StepsPlan",),
    "propagation.stored.steps": ("FolderSteps", "plan_steps", "propagate_folder"),
    "training.minibatch.neighbourhoods": ("Neighbourhoods", "find_neighbourhoods"),
    "training.minibatch.training": ("train",),
    "training.predict": ("predict",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pprop.scale' has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"pprop.{_HOME_OF[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
