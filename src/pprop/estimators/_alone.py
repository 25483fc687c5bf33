"""What explanations and live graphs count on: a predictor that sees each node alone, then a propagation."""

from __future__ import annotations

import torch

from pprop._validate import reject
from pprop.models import PPNP, FeatureNetwork, Model, SolvedPPNP
from pprop.models.inference import make_module
from pprop.propagation import Propagation

__all__ = ["as_ppnp", "check_alone"]


def check_alone(description: Model, name: str, function: str) -> None:
    """Refuse a predictor that propagates inside: what it gives for a node is not the node's alone.

    >>> import pprop
    >>> check_alone(pprop.APPNP(), "APPNPClassifier", "explain")
    """
    if isinstance(description.predictor, FeatureNetwork):
        return
    with torch.random.fork_rng(devices=[]):  # making a module draws weights, which nobody wants here
        module = make_module(description.predictor)
    if any(isinstance(part, Propagation) for part in module.modules()):
        expected = "a model whose predictor sees each node alone"
        got = f"{name}, whose predictor has a Propagation of its own,"
        reject("model", function, expected, got, remedy="Leave the propagation to APPNPClassifier or PPNPClassifier.")


def as_ppnp(description: SolvedPPNP) -> Model:
    """Return the PPNP that a `SolvedPPNP` is where nothing is dropped; it has the same two weights.

    >>> as_ppnp(SolvedPPNP(alpha=0.2)).propagation.alpha
    0.2
    """
    return PPNP(
        float(description.alpha),
        hidden=description.hidden,
        normalization=description.normalization,
        self_loops=description.self_loops,
    )
