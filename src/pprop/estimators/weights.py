"""The weights of one fit by name, and the logits that follow from them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray

from pprop.graph import Graph
from pprop.kernels import Backend
from pprop.models import Architecture, FeatureNetwork, Model
from pprop.models.ensemble import Ensemble, mean_log_probabilities
from pprop.models.feature_propagation import BootstrappedFP, feature_logits
from pprop.models.inference import Inference, make_module, module_state

# What a classifier may learn.
AnyModel = Model | Architecture | BootstrappedFP | Ensemble

# Arrays by name: "layer0", "layer1", ... of the built-in network, or the names of a module's state or a description.
# Those of an ensemble begin with "member0.", "member1.", ...
Weights = dict[str, NDArray[Any]]


@final
class ExpectedWeight(NamedTuple):
    """What one weight of a model must be. No array: the shape may be one that no memory holds."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def named_weights(model: Model | Architecture, arrays: Iterable[NDArray[Any]]) -> Weights:
    """Name the weights of one run, which come in the order of the layers, of the module's state or the description."""
    if isinstance(model, Architecture):
        names = [weight.name for weight in model.weights(1, 1)]  # names do not depend on sizes
        return dict(zip(names, arrays, strict=True))
    if isinstance(model.predictor, FeatureNetwork):
        return {f"layer{layer}": array for layer, array in enumerate(arrays)}
    return dict(zip(_state(model), arrays, strict=True))


def member_weights(model: Ensemble, stacked: Sequence[NDArray[Any]]) -> Weights:
    """Name the weights of all members, which come stacked: one array (members, ...) per layer."""
    named: Weights = {}
    for k in range(model.members):
        own = named_weights(model.member, (np.asarray(array[k]) for array in stacked))
        named |= {f"member{k}.{name}": array for name, array in own.items()}
    return named


def expected_weights(model: AnyModel, n_features: int, n_classes: int) -> Iterator[ExpectedWeight]:
    """Give the weights of a model in their order, one by one: the settings in a file may claim any number of any size."""
    if isinstance(model, Ensemble):
        one = list(expected_weights(model.member, n_features, n_classes))
        for k in range(model.members):
            yield from (weight._replace(name=f"member{k}.{weight.name}") for weight in one)
    elif isinstance(model, BootstrappedFP):
        yield ExpectedWeight("coefficients", (n_classes, n_features), np.dtype(np.float64))
        yield ExpectedWeight("intercepts", (n_classes,), np.dtype(np.float64))
    elif isinstance(model, Architecture):
        for weight in model.weights(n_features, n_classes):
            yield ExpectedWeight(weight.name, weight.shape, np.dtype(np.float32))
    elif isinstance(model.predictor, FeatureNetwork):
        widths = model.predictor.widths(n_features, n_classes)
        for layer, shape in enumerate(itertools.pairwise(widths)):
            yield ExpectedWeight(f"layer{layer}", shape, np.dtype(np.float32))
    else:
        for name, tensor in _state(model).items():
            yield ExpectedWeight(name, tuple(tensor.shape), tensor.numpy().dtype)


def logits_from(model: AnyModel, graph: Graph, weights: Weights, backend: Backend) -> NDArray[np.float32]:
    """Return the logits of all nodes, shape (n, c): the same bits as those at the end of the training."""
    if isinstance(model, Ensemble):
        arrays, each = list(weights.values()), len(weights) // model.members
        layers = [torch.from_numpy(np.stack(arrays[layer::each])) for layer in range(each)]
        return mean_log_probabilities(Inference(model.member, graph, backend.kernels).logits(layers).numpy())
    if isinstance(model, BootstrappedFP):
        return feature_logits(model, graph, weights["coefficients"], weights["intercepts"])
    tensors = [torch.from_numpy(np.array(array))[None] for array in weights.values()]
    return Inference(model, graph, backend.kernels).logits(tensors)[0].numpy()


def _state(model: Model) -> dict[str, torch.Tensor]:
    predictor: Any = model.predictor
    with torch.random.fork_rng(devices=[]):  # making a module draws random weights
        module = make_module(predictor)
    return {name: tensor.detach() for name, tensor in module_state(module).items()}
