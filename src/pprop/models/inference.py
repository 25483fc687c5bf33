"""From trained weights to logits: the network on every node, then the propagation, dropout off."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.graph import Graph
from pprop.kernels import FeatureProduct, Kernels
from pprop.models.architecture import Architecture, BoundModel, DropoutMasks
from pprop.models.model import Model
from pprop.models.network import FeatureNetwork, RunsNetwork, normalized_features
from pprop.propagation import PPROperator
from pprop.propagation.operator import LinearMap


@final
class Inference:
    """A model bound to a graph and a backend, to turn weights into logits as often as one likes.

    Parameters
    ----------
    model, graph, kernels
        The model, the graph, the backend.
    operator
        The model's operator on the graph, if it is at hand.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop.kernels import choose_backend
    >>> from pprop.models import APPNP
    >>> graph = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), features=np.eye(2))
    >>> inference = Inference(APPNP(hidden=2), graph, choose_backend("auto", "cpu", "example").kernels)
    >>> inference.logits([torch.eye(2)[None], torch.eye(2)[None]]).shape
    torch.Size([1, 2, 2])
    """

    def __init__(
        self, model: Model | Architecture, graph: Graph, kernels: Kernels, operator: PPROperator | None = None
    ) -> None:
        self._model, self._graph, self._kernels, self._operator = model, graph, kernels, operator

    def logits(self, weights: list[Tensor]) -> Tensor:
        """Return the logits of all nodes in R runs, shape (R, n, c), from weights with the runs axis first."""
        if isinstance(self._model, Architecture):
            with torch.no_grad():
                return self._architecture.logits(self._architecture.outputs(weights, DropoutMasks(None)))
        return self.propagated(self.alone(weights))

    def alone(self, weights: list[Tensor]) -> Tensor:
        """Return the predictions H of each node on its own, shape (R, n, c)."""
        assert isinstance(self._model, Model)
        predictor = self._model.predictor
        if isinstance(predictor, FeatureNetwork):
            return RunsNetwork(self._kernels, self._features, weights).forward(None)
        inputs = module_inputs(self._graph)
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

    def propagated(self, predictions: Tensor) -> Tensor:
        """Return the logits of predictions H: propagated, or as they are in a model without propagation."""
        return predictions if self._map is None else self._map.forward(predictions, None)

    @cached_property
    def _architecture(self) -> BoundModel:
        assert isinstance(self._model, Architecture)
        return self._model.bind(self._graph, self._kernels)

    @cached_property
    def _features(self) -> FeatureProduct:
        return self._kernels.features(normalized_features(self._graph))

    @cached_property
    def _map(self) -> LinearMap | None:
        settings = self._model.propagation if isinstance(self._model, Model) else None
        if settings is None:
            return None
        operator = self._operator or settings.operator(self._graph)
        return settings.solver.bind(operator, self._kernels)


def make_module(predictor: nn.Module | Callable[[], nn.Module]) -> nn.Module:
    """Return the module of a run: a copy of the one given, or a new one from the function given."""
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
