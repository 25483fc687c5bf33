"""The kernels as differentiable functions, to write a model of R runs like one of a single run.

Each is linear, or knows its result, so that its gradient is another kernel. Sums over nodes and entries are made by the
kernels alone: on the CPU a run then has the same bits in any batch. What torch computes between them (sums of two tensors,
products of elements, copies) has no order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, final

import torch
from torch import Tensor

from pprop.kernels import Draw, FeatureProduct, Kernels, StepPropagation
from pprop.propagation.gradients import apply_linear


def applied(operator: FeatureProduct | StepPropagation, values: Tensor, draw: Draw | None = None) -> Tensor:
    """Return drop(X) W for weights W (R, f, h), or the K power steps of (R, n, c): with alpha = 0, T^K times the values."""
    return apply_linear(
        values, lambda v: operator.forward(v.contiguous(), draw), lambda g: operator.adjoint(g.contiguous(), draw)
    )


def drop(kernels: Kernels, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
    """Return dropout of (R, n, h), a copy; without a draw the values themselves. `layer` tells masks apart."""

    def dropped(given: Tensor) -> Tensor:
        return kernels.drop(_copy(given), layer, draw)

    return values if draw is None else apply_linear(values, dropped, dropped)


def relu_drop(kernels: Kernels, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
    """Return ReLU, then dropout of (R, n, h); the values given are overwritten. `layer` tells masks apart."""
    return _by_result(
        values,
        lambda v: kernels.activate(v, layer, draw),
        lambda g, result: kernels.activate_adjoint(_copy(g), result, draw),
    )


def elu(kernels: Kernels, values: Tensor) -> Tensor:
    """Return ELU of (R, n, h); the values given are overwritten."""
    return _by_result(values, kernels.elu, lambda g, result: kernels.elu_adjoint(_copy(g), result))


def softmax(kernels: Kernels, values: Tensor) -> Tensor:
    """Return the softmax over the last axis."""
    return _by_result(
        values,
        lambda v: kernels.softmax(v.contiguous()),
        lambda g, result: kernels.softmax_adjoint(g.contiguous(), result),
    )


def linear(kernels: Kernels, inputs: Tensor, weights: Tensor) -> Tensor:
    """Return inputs (R, n, h) times weights (R, h, c), shape (R, n, c)."""
    return cast("Tensor", _Product.apply(inputs, weights, kernels))


def mean_of_nodes(kernels: Kernels, values: Tensor) -> Tensor:
    """Return the mean over nodes of each column of (R, n, h), shape (R, 1, h), summed by the kernels."""
    shape = values.shape
    ones = values.new_full((shape[0], shape[1], 1), 1.0 / shape[1])
    return apply_linear(
        values,
        lambda v: kernels.linear_weight_adjoint(ones, v.contiguous()),
        lambda g: (g / shape[1]).expand(shape),
    )


def _by_result(
    values: Tensor, forward: Callable[[Tensor], Tensor], adjoint: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Return a function of values whose gradient, given that of the result, follows from the result."""
    return cast("Tensor", _ByResult.apply(values, forward, adjoint))


def _copy(values: Tensor) -> Tensor:
    return values.clone(memory_format=torch.contiguous_format)


@final
class _ByResult(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, forward: Any, adjoint: Any) -> Tensor:
        result = forward(values)
        if result is values:  # computed in place
            ctx.mark_dirty(values)
        ctx.save_for_backward(result)
        ctx.adjoint = adjoint
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (result,) = ctx.saved_tensors
        return ctx.adjoint(gradients[0], result), None, None


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
