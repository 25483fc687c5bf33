"""A torch module in place of the network: making one, what it is given, what it may return, and nodes in blocks."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.graph import Graph


def make_module(predictor: nn.Module | Callable[[], nn.Module]) -> nn.Module:
    """Return the module of a run: a copy of the one given, or a new one from the function given."""
    module = copy.deepcopy(predictor) if isinstance(predictor, nn.Module) else predictor()
    if not isinstance(module, nn.Module):
        reject("predictor", "Model", "an nn.Module or a function that returns one", describe(module))
    return module


def module_state(module: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of a module's state; what else it keeps (a `Propagation` counts its passes) is no weight."""
    return {name: value for name, value in module.state_dict().items() if isinstance(value, Tensor)}


def module_inputs(graph: Graph, device: torch.device | None = None) -> Tensor:
    """Return the features as a module gets them: dense float32, first axis the node, not normalised; on a device."""
    if graph.features is None:
        raise InputError("A predictor needs node features, and this graph has none.")
    dense = graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
    return torch.from_numpy(np.array(dense, dtype=np.float32)).to(device or "cpu")


def node_blocks(inputs: Tensor, size: int | None) -> list[Tensor]:
    """Return the features of all nodes in blocks of so many nodes; None: in one.

    >>> [len(block) for block in node_blocks(torch.zeros(5, 2), 2)], len(node_blocks(torch.zeros(5, 2), None))
    ([2, 2, 1], 1)
    """
    return [inputs] if size is None else list(torch.split(inputs, size))


def checked_predictions(predictions: object, nodes: int, classes: int | None, device: torch.device) -> Tensor:
    """Return what a module predicted, at least in float32; refuse what is no tensor (nodes, classes) of floats there.

    `classes` of None: any number.
    """
    expected = f"{(nodes, classes)}, (n, classes)" if classes is not None else f"({nodes}, classes)"
    if not isinstance(predictions, Tensor):
        raise InputError(
            f"The predictor must return a tensor of shape {expected}. Got {type(predictions).__name__} instead: "
            "return the logits alone."
        )
    shape = tuple(predictions.shape)
    if len(shape) != 2 or shape[0] != nodes or classes not in (None, shape[1]):
        raise InputError(f"The predictor must return a tensor of shape {expected}. Got {shape} instead.")
    if not predictions.is_floating_point():
        raise InputError(
            f"The predictor must return floats, the logits of the classes. Got {predictions.dtype} instead: leave out "
            "argmax and other conversions."
        )
    if predictions.device != device:
        raise InputError(
            f"The predictor must return its predictions on {device}, where its input is. Got a tensor on "
            f"{predictions.device} instead: leave out .cpu() and device=... in its forward pass."
        )
    return predictions.to(torch.promote_types(predictions.dtype, torch.float32))  # kernels have no half precision


def call_module(module: nn.Module, block: Tensor, classes: int | None) -> Tensor:
    """Return the predictions of a module for some nodes, checked."""
    try:
        predictions = module(block)
    except RuntimeError as error:
        if "same device" not in str(error):
            raise
        raise InputError(
            f"The predictor has tensors that do not move to {block.device} with it. Make them parameters or buffers "
            "(self.register_buffer), or use device='cpu'."
        ) from error
    return checked_predictions(predictions, len(block), classes, block.device)
