"""The weights of one run by name, and the logits that follow from them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pprop.graph import Graph
from pprop.kernels import Backend
from pprop.models import FeatureNetwork, Model
from pprop.models.inference import Inference, make_module, module_state

__all__ = ["Weights", "expected_weights", "logits_from", "named_weights"]

Weights = dict[str, NDArray[Any]]
"""Arrays by name: "layer0", "layer1", ... of the built-in network, or the names of a module's state."""


def named_weights(model: Model, arrays: Iterable[NDArray[Any]]) -> Weights:
    """Name the weights of one run, which come in the order of the layers or of the module's state."""
    if isinstance(model.predictor, FeatureNetwork):
        return {f"layer{layer}": array for layer, array in enumerate(arrays)}
    return dict(zip(_state(model), arrays, strict=True))


def expected_weights(model: Model, n_features: int, n_classes: int) -> Weights:
    """Return an array of the right shape and type for every weight of a model; the values mean nothing."""
    if isinstance(model.predictor, FeatureNetwork):
        widths = model.predictor.widths(n_features, n_classes)
        shapes = itertools.pairwise(widths)
        return named_weights(model, (np.broadcast_to(np.float32(0), shape) for shape in shapes))
    return {name: tensor.numpy() for name, tensor in _state(model).items()}


def logits_from(model: Model, graph: Graph, weights: Weights, backend: Backend) -> NDArray[np.float32]:
    """Return the logits of all nodes, shape (n, c): the same bits as those at the end of the training."""
    tensors = [torch.from_numpy(np.array(array))[None] for array in weights.values()]
    return Inference(model, graph, backend.kernels).logits(tensors)[0].numpy()


def _state(model: Model) -> dict[str, torch.Tensor]:
    predictor: Any = model.predictor
    with torch.random.fork_rng(devices=[]):  # making a module draws weights, which nobody wants here
        module = make_module(predictor)
    return {name: tensor.detach() for name, tensor in module_state(module).items()}
