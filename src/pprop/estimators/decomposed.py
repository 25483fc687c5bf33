"""A fitted model as a network that sees each node alone and a propagation: what explanations and live graphs need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop._validate import reject
from pprop.estimators.fitted import AnyModel, Blend, Columns, Fitted, SpreadSettings
from pprop.graph import Graph, Scaling
from pprop.kernels import Kernels, choose_backend
from pprop.models import GPRGNN, PPNP, Architecture, FeatureNetwork, Model, SolvedPPNP
from pprop.models.ensemble import Ensemble
from pprop.models.inference import Inference
from pprop.models.label_propagation import LabelPropagation
from pprop.models.module import make_module
from pprop.propagation import Propagation, Solver

EXPECTED = {
    "explain": "an APPNP, PPNP, SolvedPPNP or MLP classifier",
    "live": (
        "a fitted APPNPClassifier, PPNPClassifier, SolvedPPNPClassifier or PropagatedClassifier, a training of APPNP, "
        "PPNP or SolvedPPNP, or a Graph"
    ),
}


@final
class Decomposed(NamedTuple):
    """The parts of a fitted model.

    Attributes
    ----------
    description
        A `Model`, whose logits are Z = P H, H the predictions of the network for each node alone.
    weights
        Of the network, with the runs axis: one run.
    solver, tol
        What the logits of the fit were propagated with (None: not at all), and the tolerance of its solves.
    kernels
        Of the CPU.
    scaling
        Of the features, where the network was not given them as they are.
    """

    description: Model
    weights: list[Tensor]
    solver: Solver | None
    tol: float
    kernels: Kernels
    scaling: Scaling | None

    @classmethod
    def of(cls, fitted: Fitted, function: str) -> Decomposed:
        """Return the parts of what a fit left behind, as `decompose` does."""
        return decompose(fitted.model, fitted.weights.values(), fitted.scaling, fitted.name, function)

    def alone(self, graph: Graph) -> NDArray[Any]:
        """Return the predictions H of the network for each node of a graph alone, shape (n, c)."""
        scaled = graph if self.scaling is None else graph.scaled(self.scaling)
        return Inference(self.description, scaled, self.kernels).alone(self.weights)[0].numpy()


def decompose(
    model: AnyModel | SpreadSettings, weights: Iterable[NDArray[Any]], scaling: Scaling | None, name: str, function: str
) -> Decomposed:
    """Return the parts of a model; refuse one that propagates anywhere but after its network.

    Parameters
    ----------
    model, weights, scaling
        Of one run.
    name
        Of the classifier, or of the model, for the error.
    function
        ``"explain"`` or ``"live"``, for the error.
    """
    description, tol = model, 0.0
    solver: Solver | None = None
    if isinstance(model, SolvedPPNP):  # the PPNP with the same two weights, where nothing is dropped
        solver, tol = model.solver, model.solver.wanted
        description = PPNP(
            float(model.alpha), hidden=model.hidden, normalization=model.normalization, self_loops=model.self_loops
        )
    if not isinstance(description, Model):
        reject("model", function, EXPECTED[function], f"{name}, {_why_not(description, function)},")
    if solver is None and description.propagation is not None:
        solver = description.propagation.solver
    if not isinstance(description.predictor, FeatureNetwork):
        with torch.random.fork_rng(devices=[]):  # making a module draws random weights
            module = make_module(description.predictor)
        if any(isinstance(part, Propagation) for part in module.modules()):
            expected, remedy = "sees each node alone", "Leave the propagation to APPNPClassifier or PPNPClassifier."
            got = f"{name}, whose predictor has a Propagation,"
            reject("model", function, f"a model whose predictor {expected}", got, remedy=remedy)
    tensors = [torch.from_numpy(np.array(array))[None] for array in weights]
    return Decomposed(description, tensors, solver, tol, choose_backend("auto", "cpu", function).kernels, scaling)


def _why_not(model: AnyModel | SpreadSettings, function: str) -> str:
    if isinstance(model, GPRGNN):
        return "whose weights of hops are learned"
    if isinstance(model, Blend):
        return "which averages the probabilities of several classifiers"
    if function == "explain":
        return "whose logits are no sum over nodes"
    if isinstance(model, LabelPropagation):
        return "which spreads labels"
    if isinstance(model, Ensemble):
        return "whose members vote"
    if isinstance(model, Columns):
        return "which reads columns of each node's surroundings"
    return "whose layers propagate in between" if isinstance(model, Architecture) else "which propagates features"
