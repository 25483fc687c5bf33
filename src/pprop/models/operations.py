"""The kernels as differentiable functions, to write a model of R runs like one of a single run.

Each is linear, or knows its result, so that its gradient is another kernel. Sums over nodes and entries are made by the
kernels alone: on the CPU a run then has the same bits whatever else is in the batch. What torch computes between them
(sums of two tensors, products of elements, copies) has no order.
"""

from __future__ import annotations

from typing import Any, cast, final

import torch
from torch import Tensor

from pprop.kernels import Draw, FeatureProduct, Kernels, StepPropagation


def feature_product(product: FeatureProduct, weights: Tensor, draw: Draw | None) -> Tensor:
    """Return drop(X) W: weights (R, f, h) to (R, n, h)."""
    return cast("Tensor", _Linear.apply(weights, product, draw))


def power_steps(steps: StepPropagation, values: Tensor, draw: Draw | None = None) -> Tensor:
    """Return the K power steps of (R, n, c); with alpha = 0 that is T^K times the values."""
    return cast("Tensor", _Linear.apply(values, steps, draw))


def linear(kernels: Kernels, inputs: Tensor, weights: Tensor) -> Tensor:
    """Return inputs (R, n, h) times weights (R, h, c), shape (R, n, c)."""
    return cast("Tensor", _Product.apply(inputs, weights, kernels))


def relu_drop(kernels: Kernels, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
    """Return ReLU, then dropout of (R, n, h); the values given are overwritten. `layer` tells masks apart."""
    return cast("Tensor", _ReluDrop.apply(values, kernels, layer, draw))


def drop(kernels: Kernels, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
    """Return dropout of (R, n, h), a copy; without a draw the values themselves. `layer` tells masks apart."""
    return values if draw is None else cast("Tensor", _Drop.apply(values, kernels, layer, draw))


def softmax(kernels: Kernels, values: Tensor) -> Tensor:
    """Return the softmax over the last axis."""
    return cast("Tensor", _Softmax.apply(values, kernels))


@final
class _Linear(torch.autograd.Function):
    """A bound linear operator."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, operator: FeatureProduct | StepPropagation, draw: Draw | None) -> Tensor:
        ctx.operator, ctx.draw = operator, draw
        return operator.forward(values.contiguous(), draw)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return ctx.operator.adjoint(gradients[0].contiguous(), ctx.draw), None, None


@final
class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weights: Tensor, kernels: Kernels) -> Tensor:
        ctx.save_for_backward(inputs, weights)
        ctx.kernels = kernels
        return kernels.linear(inputs.contiguous(), weights.contiguous())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        inputs, weights = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        wanted_inputs, wanted_weights, _ = ctx.needs_input_grad
        return (
            ctx.kernels.linear_input_adjoint(gradient, weights.contiguous()) if wanted_inputs else None,
            ctx.kernels.linear_weight_adjoint(inputs.contiguous(), gradient) if wanted_weights else None,
            None,
        )


@final
class _ReluDrop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, kernels: Kernels, layer: int, draw: Draw | None) -> Tensor:
        ctx.mark_dirty(values)
        result = kernels.activate(values, layer, draw)
        ctx.save_for_backward(result)
        ctx.kernels, ctx.draw = kernels, draw
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (result,) = ctx.saved_tensors
        gradient = gradients[0].clone(memory_format=torch.contiguous_format)
        return ctx.kernels.activate_adjoint(gradient, result, ctx.draw), None, None, None


@final
class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, kernels: Kernels, layer: int, draw: Draw) -> Tensor:
        ctx.arguments = kernels, layer, draw
        return kernels.drop(values.clone(memory_format=torch.contiguous_format), layer, draw)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        kernels, layer, draw = ctx.arguments
        return kernels.drop(gradients[0].clone(memory_format=torch.contiguous_format), layer, draw), None, None, None


@final
class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, kernels: Kernels) -> Tensor:
        result = kernels.softmax(values.contiguous())
        ctx.save_for_backward(result)
        ctx.kernels = kernels
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (result,) = ctx.saved_tensors
        return ctx.kernels.softmax_adjoint(gradients[0].contiguous(), result), None
