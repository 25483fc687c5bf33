"""Graphs beyond memory, on one machine: folders, training on neighbourhoods, steps over stored graphs.

A face: each name but `train` is imported from its home when it is first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pprop.datasets import Split
    from pprop.graph import Graph
    from pprop.graph.building.build import build_graph
    from pprop.models import Model
    from pprop.propagation.stored.graph_rows import StoredGraph
    from pprop.propagation.stored.panels import StepsProgress
    from pprop.propagation.stored.plan import StepsPlan
    from pprop.propagation.stored.steps import FolderSteps, plan_steps, propagate_folder
    from pprop.training.minibatch.neighbourhoods import Neighbourhoods, find_neighbourhoods
    from pprop.training.predict import predict
    from pprop.training.result import Trained

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
    "training.predict": ("predict",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def train(model: Model, graph: Graph, splits: Split | Sequence[Split], *, neighbours: int = 64, **how: Any) -> Trained:
    """Train APPNP on the nodes that its labelled nodes draw on most: `pprop.train` with `neighbours`.

    Parameters
    ----------
    model, graph, splits, neighbours, how
        As for `pprop.train`.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5), labels=[0, 0, 0, 1, 1])
    >>> split = pprop.Split(np.array([0, 4]), np.array([1]), np.array([2, 3]))
    >>> trained = train(pprop.APPNP(hidden=4), graph, split, neighbours=2, stopping=pprop.Stopping(max_epochs=3))
    >>> trained.logits.shape, trained.weights[0][0].any(axis=1)  # column 2 is in no neighbourhood of 0 and 4
    ((1, 5, 2), array([ True,  True, False,  True,  True]))
    """
    from pprop.training import train as train_any

    return train_any(model, graph, splits, neighbours=neighbours, **how)


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'pprop.scale' has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"pprop.{_HOME_OF[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
