"""Linear maps of tensors with gradients: the derivative of a map is its adjoint."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast, final

import torch
from torch import Tensor

from pprop.kernels import Draw, LinearMap
from pprop.kernels.arrays import type_name
from pprop.propagation.solvers import working_type


def apply_map(linear_map: LinearMap, predictions: Tensor, draw: Draw | None) -> Tensor:
    """Apply a linear map to predictions (R, n, c) of any float type, with gradients of any order; the type stays."""
    working = getattr(torch, working_type(type_name(predictions)))
    wide = predictions if linear_map.takes_half else predictions.to(working)
    forward, adjoint = partial(linear_map.forward, draw=draw), partial(linear_map.adjoint, draw=draw)
    return apply_linear(wide, forward, adjoint).to(predictions.dtype)


def apply_linear(values: Tensor, forward: Callable[[Tensor], Tensor], adjoint: Callable[[Tensor], Tensor]) -> Tensor:
    """Return a linear function of values; `adjoint` takes the gradient of the result to that of the values."""
    return cast("Tensor", _Linear.apply(values, forward, adjoint))


@final
class _Linear(torch.autograd.Function):
    """A linear function whose derivative is its adjoint, and the other way round."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, forward: Any, adjoint: Any) -> Tensor:
        ctx.functions = forward, adjoint
        return forward(values.detach())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        forward, adjoint = ctx.functions
        return _Linear.apply(gradients[0], adjoint, forward), None, None
