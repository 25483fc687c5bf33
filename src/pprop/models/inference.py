"""A model bound to a graph and a backend: logits of all nodes from trained weights, and of the nodes that training reads.

Training reads the predictions of its training and stopping nodes only, so that PPNP needs just those rows of its matrix: a
readout is their propagation, forward and backward. Inference is the network on every node, then the propagation, dropout
off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, final

import numpy as np
import torch
from torch import Tensor

from pprop._validate import reject
from pprop.graph import Graph
from pprop.kernels import Draw, FeatureProduct, Kernels, LinearMap, StepPropagation
from pprop.kernels.contract import FeatureMatrix
from pprop.models.architecture import Architecture, BoundModel, DropoutMasks
from pprop.models.model import FeatureNetwork, Model, RunsNetwork, network_inputs
from pprop.models.module import call_module, make_module, module_inputs, module_state, node_blocks
from pprop.propagation.gradients import apply_linear
from pprop.propagation.operator import PPROperator
from pprop.propagation.solvers import PowerIteration, RowSolver

# Nodes for which the network is computed at a time: what it holds of them beside the predictions is bounded.
BLOCK = 2**17


@final
class Inference:
    """A model bound to a graph and a backend, to turn weights into logits, any number of times.

    Parameters
    ----------
    model, graph, kernels
        The model, the graph, the backend.
    operator
        The model's operator on the graph, if it was made already.
    inputs
        The features as a module gets them, if they were made already, and on which device.
    shown
        The labels of the training nodes, (n,), -1 for all others, and the number of classes: for a model that sees them.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop.kernels import choose_backend
    >>> from pprop.models import APPNP
    >>> graph = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]), features=sp.eye_array(2))
    >>> inference = Inference(APPNP(hidden=2), graph, choose_backend("auto", "cpu", "example").kernels)
    >>> inference.logits([torch.eye(2)[None], torch.eye(2)[None]]).shape
    torch.Size([1, 2, 2])
    """

    def __init__(
        self,
        model: Model | Architecture,
        graph: Graph,
        kernels: Kernels,
        operator: PPROperator | None = None,
        inputs: Tensor | None = None,
        shown: tuple[Tensor, int] | None = None,
    ) -> None:
        self._model, self._graph, self._kernels, self._operator = model, graph, kernels, operator
        self._inputs, self._shown = inputs, shown

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
            if self._graph.n_nodes <= BLOCK:
                return RunsNetwork(self._kernels, self._features, weights, bias=predictor.bias).forward(None)
            features = network_inputs(self._graph, predictor.first_layer)
            return network_predictions(predictor, features, weights, self._kernels)
        if self._inputs is None:
            self._inputs = module_inputs(self._graph, weights[0].device)
        devices = [self._inputs.device] if self._inputs.device.type == "cuda" else []
        blocks, predictions = node_blocks(self._inputs, self._model.block_nodes), list[Tensor]()
        for run in range(len(weights[0])):
            # making a module draws weights, which are replaced at once; what it draws later is its own affair
            with torch.random.fork_rng(devices=devices), torch.no_grad():
                module = make_module(predictor).to(self._inputs.device).eval()
                names = module_state(module).keys()
                state = {name: tensor[run] for name, tensor in zip(names, weights, strict=True)}
                module.load_state_dict({**module.state_dict(), **state})
                found = [call_module(module, block, None).to(torch.float32) for block in blocks]
            predictions.append(found[0] if len(found) == 1 else torch.cat(found))
        return torch.stack(predictions)

    def propagated(self, predictions: Tensor) -> Tensor:
        """Return the logits of predictions H: propagated, or as they are in a model without propagation."""
        return predictions if self._map is None else self._map.forward(predictions, None)

    @cached_property
    def _architecture(self) -> BoundModel:
        assert isinstance(self._model, Architecture)
        bound = self._model.bind(self._graph, self._kernels)
        if self._model.sees_labels:
            if self._shown is None:
                reject("shown", "Inference", "the training labels, which this model sees", "None")
            bound.show(*self._shown)
        return bound

    @cached_property
    def _features(self) -> FeatureProduct:
        predictor = self._model.predictor if isinstance(self._model, Model) else None
        assert isinstance(predictor, FeatureNetwork)
        return self._kernels.features(network_inputs(self._graph, predictor.first_layer))

    @cached_property
    def _map(self) -> LinearMap | None:
        settings = self._model.propagation if isinstance(self._model, Model) else None
        if settings is None:
            return None
        operator = self._operator or settings.operator(self._graph)
        return settings.solver.bind(operator, self._kernels)


def network_predictions(
    network: FeatureNetwork,
    features: FeatureMatrix,
    weights: list[Tensor],
    kernels: Kernels,
    out: Tensor | None = None,
    *,
    block: int = BLOCK,
) -> Tensor:
    """Return the predictions H of every node on its own, shape (R, n, c), computed for some nodes at a time.

    Parameters
    ----------
    network, weights
        The predictor and its weights, the runs axis first.
    features
        Of all nodes, (n, f), as the first layer reads them; they may lie in a file.
    kernels
        The backend.
    out
        Where to write them, on any device; None: a new tensor where the weights are.
    block
        Nodes at a time.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop.kernels import choose_backend
    >>> kernels, weights = choose_backend("auto", "cpu", "example").kernels, [torch.eye(3)[None], torch.ones(1, 3, 1)]
    >>> network_predictions(FeatureNetwork((3,)), sp.eye_array(3, dtype="f").tocsr(), weights, kernels, block=2)[0, :, 0]
    tensor([1., 1., 1.])
    """
    n, last = features.shape[0], weights[len(network.hidden)]
    found = last.new_empty(len(last), n, last.shape[2]) if out is None else out
    for first in range(0, n, block):
        part = features[first : first + block]
        found[:, first : first + block] = RunsNetwork(
            kernels, kernels.features(part), weights, bias=network.bias
        ).forward(None)
    return found


class NodeReadout(ABC):
    """Predictions H (R, n, c) and nodes (R, m) to logits (R, m, c)."""

    @abstractmethod
    def forward(self, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        """Return the logits of `nodes`."""

    @abstractmethod
    def adjoint(self, gradient: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        """Return the gradient (R, n, c) of the predictions, for that of the logits (R, m, c)."""

    def apply(self, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        """Return the logits of `nodes` with a gradient for the predictions."""
        return apply_linear(predictions, lambda h: self.forward(h, nodes, draw), lambda g: self.adjoint(g, nodes, draw))

    def of_runs(self, slots: Tensor | slice) -> Self:
        """Return the readout of some of the runs."""
        return self


@final
class StepsReadout(NodeReadout):
    """K power steps of all nodes, or no propagation, then look at some nodes."""

    def __init__(self, steps: StepPropagation | None, n_nodes: int) -> None:
        self._steps, self._n = steps, n_nodes

    def forward(self, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        return gather_nodes(predictions if self._steps is None else self._steps.forward(predictions, draw), nodes)

    def adjoint(self, gradient: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        spread = _scatter(gradient, nodes, self._n)
        return spread if self._steps is None else self._steps.adjoint(spread, draw)

    def of_runs(self, slots: Tensor | slice) -> StepsReadout:
        return self if self._steps is None else StepsReadout(self._steps.of_runs(slots), self._n)


@final
class RowReadout(NodeReadout):
    """The rows of a solver's matrix that belong to the needed nodes, and no others."""

    def __init__(self, operator: PPROperator, needed: Tensor, kernels: Kernels, solver: RowSolver) -> None:
        nodes = np.unique(needed.cpu().numpy())
        self.nodes = torch.from_numpy(nodes).to(needed.device)
        self.row_of_node = torch.zeros(operator.graph.n_nodes, dtype=torch.int64, device=needed.device)
        self.row_of_node[self.nodes] = torch.arange(len(nodes), device=needed.device)
        self.block = torch.from_numpy(solver.rows(operator, nodes, np.float32)).to(needed.device)
        self._rows = kernels.rows(self.block, self.nodes)

    def forward(self, predictions: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        return self._rows.forward(predictions, self.row_of_node[nodes], draw)

    def adjoint(self, gradient: Tensor, nodes: Tensor, draw: Draw | None) -> Tensor:
        return self._rows.adjoint(gradient, self.row_of_node[nodes], draw)


@final
@dataclass(frozen=True)
class PropagatedModel:
    """A model bound to a graph: its operator (None without propagation), and its propagation to the labelled nodes."""

    model: Model
    operator: PPROperator | None
    readout: NodeReadout

    @property
    def dropout(self) -> float:
        """Probability of dropping an entry of the propagation matrix."""
        return 0.0 if self.model.propagation is None else self.model.propagation.dropout

    def of_runs(self, slots: Tensor | slice) -> PropagatedModel:
        """Return the model of some of the runs."""
        return replace(self, readout=self.readout.of_runs(slots))


def bind_propagation(
    model: Model, graph: Graph, kernels: Kernels, needed: Tensor, alphas: Sequence[float] | None = None
) -> PropagatedModel:
    """Bind the propagation of a model to the nodes whose logits are needed, on their device.

    Power steps may have one alpha per run, (R,), in place of the model's.
    """
    settings = model.propagation
    if settings is None:
        return PropagatedModel(model, None, StepsReadout(None, graph.n_nodes))
    operator = settings.operator(graph)
    if isinstance(settings.solver, RowSolver):
        return PropagatedModel(model, operator, RowReadout(operator, needed, kernels, settings.solver))
    assert isinstance(settings.solver, PowerIteration)
    alpha = operator.alpha if alphas is None else torch.tensor(alphas, dtype=torch.float64).to(needed.device)
    steps = kernels.steps(operator.transition, alpha, settings.solver.steps)
    return PropagatedModel(model, operator, StepsReadout(steps, graph.n_nodes))


def gather_nodes(values: Tensor, nodes: Tensor) -> Tensor:
    """Return the rows of (R, n, c) that belong to nodes (R, m), shape (R, m, c)."""
    return values[torch.arange(len(nodes), device=nodes.device)[:, None], nodes]


def _scatter(gradient: Tensor, nodes: Tensor, n_nodes: int) -> Tensor:
    # accumulate: a node that pads a shorter set may also be a real one; its padded gradient is zero
    out = gradient.new_zeros(len(gradient), n_nodes, gradient.shape[2])
    run = torch.arange(len(nodes), device=nodes.device)[:, None]
    return out.index_put_((run, nodes), gradient, accumulate=True)
