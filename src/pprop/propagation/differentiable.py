"""Gradients of a linear map: its derivative is its adjoint, and the derivative of that is the map itself."""

from __future__ import annotations

from typing import Any, cast, final

import torch
from torch import Tensor

from pprop.kernels import Draw
from pprop.propagation.solvers import LinearMap

__all__ = ["apply_map"]


def apply_map(linear_map: LinearMap, predictions: Tensor, draw: Draw | None) -> Tensor:
    """Apply a linear map (R, n, c) to (R, n, c) with gradients of any order."""
    return cast("Tensor", _Apply.apply(predictions, linear_map, draw, False))


@final
class _Apply(torch.autograd.Function):
    """A linear map whose derivative is its adjoint, and the other way round."""

    @staticmethod
    def forward(ctx: Any, operand: Tensor, linear_map: LinearMap, draw: Draw | None, transposed: bool) -> Tensor:
        ctx.arguments = linear_map, draw, transposed
        plain = operand.detach()
        return linear_map.adjoint(plain, draw) if transposed else linear_map.forward(plain, draw)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        linear_map, draw, transposed = ctx.arguments
        return _Apply.apply(gradients[0], linear_map, draw, not transposed), None, None, None
