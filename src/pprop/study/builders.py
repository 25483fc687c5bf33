"""From the settings of a cell to the model that is trained: one function per model.

Each function imports what it builds inside itself: listing experiments loads no torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pprop.graph import Graph
    from pprop.models import GAT, GCN, JK, NGCN, Model
    from pprop.models.feature_propagation import FeaturePropagation

__all__ = ["appnp", "bootstrapped_fp", "gat", "gcn", "jk", "mlp", "ngcn", "ppnp"]

Settings = Mapping[str, Any]


def appnp(settings: Settings, graph: Graph) -> Model:
    """Return APPNP; with ``steps = "limit"``, which a cell has for alpha = 0 only, its limit without teleport."""
    from pprop.models import APPNP
    from pprop.propagation import Limit

    limit = settings["steps"] == "limit"
    network = _pick(settings, "hidden", "dropout", "propagation_dropout", "penalty", "normalization", "self_loops")
    model = APPNP(settings["alpha"], 10 if limit else settings["steps"], **network)
    if not limit:
        return model
    assert model.propagation is not None
    return dataclasses.replace(model, propagation=dataclasses.replace(model.propagation, solver=Limit()))


def ppnp(settings: Settings, graph: Graph) -> Model:
    """Return PPNP."""
    from pprop.models import PPNP

    network = _pick(settings, "hidden", "dropout", "propagation_dropout", "penalty", "normalization", "self_loops")
    return PPNP(settings["alpha"], **network)


def mlp(settings: Settings, graph: Graph) -> Model:
    """Return the network without propagation; ``evaluate = "propagated"`` is for the one who evaluates it."""
    from pprop.models import MLP

    return MLP(**_pick(settings, "hidden", "dropout", "penalty"))


def gcn(settings: Settings, graph: Graph) -> GCN:
    """Return GCN, optimised or vanilla: they differ in their settings alone."""
    from pprop.models import GCN

    return GCN(**_pick(settings, "hidden", "dropout", "matrix_dropout", "penalty"))


def ngcn(settings: Settings, graph: Graph) -> NGCN:
    """Return N-GCN."""
    from pprop.models import NGCN

    return NGCN(**_pick(settings, "hidden", "powers", "replicas", "dropout", "penalty"))


def gat(settings: Settings, graph: Graph) -> GAT:
    """Return GAT."""
    from pprop.models import GAT

    return GAT(**_pick(settings, "heads", "units", "dropout", "penalty"))


def jk(settings: Settings, graph: Graph) -> JK:
    """Return the jumping knowledge network."""
    from pprop.models import JK

    return JK(**_pick(settings, "hidden", "layers", "dropout", "penalty"))


def bootstrapped_fp(settings: Settings, graph: Graph) -> FeaturePropagation:
    """Return bootstrapped feature propagation on a graph: it has a `fit`, and `train` does not take it."""
    from pprop.models.feature_propagation import BootstrappedFP, FeaturePropagation

    model = BootstrappedFP(**_pick(settings, "alpha", "steps", "rounds", "share", "C", "self_loops"))
    return FeaturePropagation(graph, model)


def _pick(settings: Settings, *names: str) -> dict[str, Any]:
    return {name: settings[name] for name in names}
