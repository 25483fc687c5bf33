"""The reference backend's dense operators, loss and optimiser, and the class that offers everything."""

from __future__ import annotations

from typing import final

import torch
from scipy import sparse
from torch import Tensor

from pprop.graph import Transition
from pprop.kernels.contract import Draw, Kernels, RowPropagation
from pprop.kernels.random_bits import HIDDEN, PPR, Bernoulli, keep_bits, stream
from pprop.kernels.reference.sparse import ReferenceAttention, ReferenceFeatures, ReferenceSteps


@final
class ReferenceRows(RowPropagation):
    """drop(Pi_rows) H and its adjoint."""

    def __init__(self, block: Tensor, nodes: Tensor) -> None:
        self._block, self._nodes = block, nodes

    def forward(self, predictions: Tensor, rows: Tensor, draw: Draw | None) -> Tensor:
        block, wide = self._widened(predictions)
        if draw is not None:
            return (self._dropped(block, rows, draw) @ wide).to(predictions.dtype)
        run = torch.arange(len(rows), device=rows.device)[:, None]
        return (block @ wide)[run, rows].to(predictions.dtype)

    def adjoint(self, gradient: Tensor, rows: Tensor, draw: Draw | None) -> Tensor:
        block, wide = self._widened(gradient)
        if draw is not None:
            return (self._dropped(block, rows, draw).mT @ wide).to(gradient.dtype)
        run = torch.arange(len(rows), device=rows.device)[:, None]
        spread = wide.new_zeros(len(rows), len(block), gradient.shape[2])
        spread.index_put_((run, rows), wide, accumulate=True)
        return (block.mT @ spread).to(gradient.dtype)

    def _widened(self, operand: Tensor) -> tuple[Tensor, Tensor]:
        """Return the block and the operand in the wider of their two types."""
        dtype = torch.promote_types(self._block.dtype, operand.dtype)
        return self._block.to(operand.device, dtype), operand.to(dtype)

    def _dropped(self, block: Tensor, rows: Tensor, draw: Draw) -> Tensor:
        block = block[rows]  # shape: (R, m, n)
        bernoulli = Bernoulli.from_probability(draw.probability)
        node = self._nodes.to(rows.device)[rows][..., None]
        epoch = torch.as_tensor(draw.epoch, device=node.device).expand_as(node)
        column = torch.arange(block.shape[-1], device=block.device)
        return block * keep_bits(draw.seeds[:, None, None], PPR, node, epoch, column, bernoulli) * bernoulli.scale


class TorchKernels(Kernels):
    """The dense operations, loss and optimiser in plain torch, for backends whose device it serves well."""

    def activate_adjoint(self, gradient: Tensor, activated: Tensor, draw: Draw | None) -> Tensor:
        # a positive result was both positive before and kept; everything else passes no gradient
        scale = 1.0 if draw is None else Bernoulli.from_probability(draw.probability).scale
        return gradient.mul_(activated > 0).mul_(scale)

    def elu(self, values: Tensor) -> Tensor:
        return torch.nn.functional.elu_(values)

    def elu_adjoint(self, gradient: Tensor, result: Tensor) -> Tensor:
        return gradient.mul_((result + 1).clamp(max=1))  # the slope exp(x) = y + 1 where y < 0, else 1

    def softmax(self, values: Tensor) -> Tensor:
        return values.softmax(dim=-1)

    def softmax_adjoint(self, gradient: Tensor, result: Tensor) -> Tensor:
        return result * (gradient - (gradient * result).sum(dim=-1, keepdim=True))

    def linear(self, inputs: Tensor, weights: Tensor) -> Tensor:
        return inputs @ weights

    def linear_input_adjoint(self, gradient: Tensor, weights: Tensor) -> Tensor:
        return gradient @ weights.mT

    def linear_weight_adjoint(self, inputs: Tensor, gradient: Tensor) -> Tensor:
        return inputs.mT @ gradient

    def cross_entropy(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        counted = labels >= 0
        count = counted.sum(dim=1, keepdim=True)
        target = labels.clamp(min=0)[..., None]
        log_probability = logits.log_softmax(dim=-1)
        loss = -log_probability.gather(-1, target)[..., 0].where(counted, 0.0).sum(dim=1) / count[:, 0]
        right = ((logits.argmax(dim=-1) == labels) & counted).sum(dim=1)
        one_hot = torch.zeros_like(logits).scatter_(-1, target, 1.0)
        gradient = ((log_probability.exp() - one_hot) / count[..., None]).where(counted[..., None], 0.0)
        return loss, right, gradient

    def likelihood(self, probabilities: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        counted = labels >= 0
        count = counted.sum(dim=1, keepdim=True)
        target = labels.clamp(min=0)[..., None]
        own = probabilities.gather(-1, target).clamp(min=torch.finfo(probabilities.dtype).tiny)
        loss = -own[..., 0].log().where(counted, 0.0).sum(dim=1) / count[:, 0]
        right = ((probabilities.argmax(dim=-1) == labels) & counted).sum(dim=1)
        slope = (-1.0 / (own * count[..., None])).where(counted[..., None], 0.0)
        return loss, right, torch.zeros_like(probabilities).scatter_(-1, target, slope)

    def adam(
        self, weights: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, *,
        step: int | Tensor, rate: float, penalty: float,
    ) -> Tensor:  # fmt: skip
        full = gradient + penalty * weights
        mean.mul_(0.9).add_(full, alpha=0.1)
        square.mul_(0.999).add_(full * full, alpha=0.001)
        count = step.double().squeeze() if isinstance(step, Tensor) else step  # without axes it changes no type
        corrected = (square / (1 - 0.999**count)).sqrt() + 1e-8
        weights.sub_(mean / (1 - 0.9**count) / corrected, alpha=rate)
        return (weights * weights).sum(dim=(1, 2))


@final
class ReferenceKernels(TorchKernels):
    """Plain torch on any device and dtype."""

    def features(self, matrix: sparse.csr_array) -> ReferenceFeatures:
        return ReferenceFeatures(matrix)

    def steps(self, transition: Transition, alpha: float | Tensor, steps: int) -> ReferenceSteps:
        return ReferenceSteps(transition, alpha, steps)

    def rows(self, block: Tensor, nodes: Tensor) -> ReferenceRows:
        return ReferenceRows(block, nodes)

    def attention(self, transition: Transition) -> ReferenceAttention:
        return ReferenceAttention(transition)

    def activate(self, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
        return self.drop(values.relu_(), layer, draw)

    def drop(self, values: Tensor, layer: int, draw: Draw | None) -> Tensor:
        if draw is None:
            return values
        bernoulli = Bernoulli.from_probability(draw.probability)
        _, n, width = values.shape
        node = torch.arange(n, device=values.device)[:, None]
        unit = torch.arange(width, device=values.device)
        epoch = torch.as_tensor(draw.epoch, device=node.device).expand_as(node)
        keep = keep_bits(draw.seeds[:, None, None], stream(HIDDEN, layer), node, epoch, unit, bernoulli)
        return values.mul_(keep).mul_(bernoulli.scale)
