"""From trained weights to logits: the network on every node, then the propagation, dropout off."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.graph import Graph
from pprop.kernels import Kernels
from pprop.models.model import Model
from pprop.models.network import FeatureNetwork, RunsNetwork, normalized_features
from pprop.propagation import PPROperator

__all__ = ["logits_of", "make_module", "module_inputs", "module_state", "predict_alone", "propagate_predictions"]


def logits_of(model: Model, graph: Graph, weights: list[Tensor], kernels: Kernels) -> Tensor:
    """Return the logits of all nodes in R runs, shape (R, n, c), from weights with the runs axis first.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop.kernels import choose_backend
    >>> from pprop.models import APPNP
    >>> graph = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), features=np.eye(2))
    >>> weights = [torch.eye(2)[None], torch.eye(2)[None]]
    >>> logits_of(APPNP(hidden=2), graph, weights, choose_backend("auto", "cpu", "example").kernels).shape
    torch.Size([1, 2, 2])
    """
    operator = None if model.propagation is None else model.propagation.operator(graph)
    return propagate_predictions(model, operator, predict_alone(model, graph, weights, kernels), kernels)


def predict_alone(model: Model, graph: Graph, weights: list[Tensor], kernels: Kernels) -> Tensor:
    """Return the predictions H of each node on its own, shape (R, n, c)."""
    predictor = model.predictor
    if isinstance(predictor, FeatureNetwork):
        return RunsNetwork(kernels, normalized_features(graph), weights).forward(None)
    inputs = module_inputs(graph)
    predictions: list[Tensor] = []
    for run in range(len(weights[0])):
        with torch.random.fork_rng(devices=[]):  # making a module draws weights, which are replaced at once
            module = make_module(predictor)
        names = module_state(module).keys()
        state = {name: tensor[run] for name, tensor in zip(names, weights, strict=True)}
        module.load_state_dict({**module.state_dict(), **state})
        with torch.no_grad():
            predictions.append(module.eval()(inputs).to(torch.float32))
    return torch.stack(predictions)


def propagate_predictions(model: Model, operator: PPROperator | None, predictions: Tensor, kernels: Kernels) -> Tensor:
    """Return the logits of predictions H: propagated, or as they are in a model without propagation."""
    if operator is None or model.propagation is None:
        return predictions
    return model.propagation.solver.bind(operator, kernels).forward(predictions, None)


def make_module(predictor: nn.Module | Callable[[], nn.Module]) -> nn.Module:
    """Return a module of one's own for a run: a copy of the one given, or a new one from the function given."""
    module = copy.deepcopy(predictor) if isinstance(predictor, nn.Module) else predictor()
    if not isinstance(module, nn.Module):
        reject("predictor", "Model", "an nn.Module or a function that returns one", describe(module))
    return module


def module_state(module: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of a module's state; what else it keeps (a `Propagation` counts its passes) is no weight."""
    return {name: value for name, value in module.state_dict().items() if isinstance(value, Tensor)}


def module_inputs(graph: Graph) -> Tensor:
    """Return the features as a module gets them: dense float32, first axis the node, not normalised."""
    if graph.features is None:
        raise InputError("A predictor needs node features, and this graph has none.")
    dense = graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
    return torch.from_numpy(np.array(dense, dtype=np.float32))
