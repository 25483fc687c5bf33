"""The reference backend, in plain torch: what every other backend is tested against.

Sparse operators hold one number per entry. R runs with different masks are one product with a block-diagonal matrix, so
that no Python loop runs over runs.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from pprop.graph import Transition
from pprop.graph.features.scaling import DenseRows
from pprop.kernels import Draw, EdgeAttention, FeatureProduct, Kernels, RowPropagation, StepPropagation
from pprop.kernels.contract import SLOPE, FeatureMatrix, Sides
from pprop.kernels.device_rows import DeviceRows
from pprop.kernels.draws import uniform
from pprop.kernels.losses import HUBER, HUBER_TURN, LOGISTIC
from pprop.kernels.product_solves import ProductSolves
from pprop.kernels.random_bits import DENSE_FEATURES, EDGES, FEATURES, HIDDEN, PPR, keep_bits, law_of, stream
from pprop.kernels.solves import Solves, System


@final
class _Entries:
    """Coordinates and values of a sparse matrix, or of its transpose, to be applied with a mask of its own per run."""

    def __init__(self, matrix: sparse.csr_array, kind: int, *, transposed: bool) -> None:
        self.shape, self._kind, self._transposed = matrix.shape, kind, transposed
        self.rows = torch.from_numpy(np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)))
        self.columns = torch.from_numpy(matrix.indices.astype(np.int64))
        self.values = torch.from_numpy(matrix.data.copy())

    def apply(self, dense: Tensor, draw: Draw | None, step: int = 0, steps: int = 1) -> Tensor:
        """Return drop(M)_r dense_r for every run r, (R, columns, h), at one of the steps of the epoch."""
        runs, device = len(dense), dense.device
        values = self.values.to(device, dense.dtype).expand(runs, -1)
        if draw is not None:
            values = values * self.keep(draw, step, steps) * law_of(draw).scale
        block = torch.arange(runs, device=device)[:, None]
        places = self.rows.to(device) + block * self.shape[0], self.columns.to(device) + block * self.shape[1]
        at = torch.stack([place.flatten() for place in places])
        size = (runs * self.shape[0], runs * self.shape[1])
        matrix = torch.sparse_coo_tensor(at, values.flatten(), size, is_coalesced=True, check_invariants=False)
        result: Tensor = matrix @ dense.flatten(0, 1)
        return result.reshape(runs, self.shape[0], -1)

    def keep(self, draw: Draw, step: int = 0, steps: int = 1) -> Tensor:
        """Return which entries are kept, (R, entries); coordinates are those of the untransposed matrix."""
        device = draw.seeds.device
        first, second = (self.columns, self.rows) if self._transposed else (self.rows, self.columns)
        at = torch.as_tensor(draw.epoch * steps + step, device=device)
        return keep_bits(draw.seeds[:, None], self._kind, first.to(device), second.to(device), at, law_of(draw))


@final
class ReferenceFeatures(FeatureProduct):
    """drop(X) W and its adjoint."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        self._sides = [_Entries(m, FEATURES, transposed=side == 1) for side, m in enumerate(Sides(matrix))]

    def apply(self, side: int, operand: Tensor, draw: Draw | None) -> Tensor:
        return self._sides[side].apply(operand, draw)


@final
class ReferenceDenseFeatures(FeatureProduct):
    """drop(X) W and its adjoint for a dense matrix."""

    def __init__(self, rows: DenseRows) -> None:
        self._rows = rows
        self._matrix: Tensor | None = None

    def apply(self, side: int, operand: Tensor, draw: Draw | None) -> Tensor:
        if self._matrix is None or self._matrix.device != operand.device:
            self._matrix = DeviceRows(self._rows, operand.device, keep=False).tensor()
        matrix = self._matrix.to(operand.dtype)
        if draw is not None:
            law, (n, f), device = law_of(draw), matrix.shape, operand.device
            node, column = torch.arange(n, device=device)[:, None], torch.arange(f, device=device)
            epoch = torch.as_tensor(draw.epoch, device=device).expand_as(node)
            matrix = matrix * keep_bits(draw.seeds[:, None, None], DENSE_FEATURES, node, epoch, column, law) * law.scale
        return (matrix.mT if side else matrix) @ operand


@final
class ReferenceSteps(StepPropagation):
    """Z <- (1 - alpha) drop_k(T) Z + alpha H, and its adjoint."""

    def __init__(self, transition: Transition, alpha: float | Tensor, steps: int) -> None:
        self.alpha, self._steps = alpha, steps
        self._matrix = _Entries(transition.to_scipy(), EDGES, transposed=False)
        self._flipped = _Entries(transition.transpose.to_scipy(), EDGES, transposed=True)

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        alpha, rest = self._weights(predictions)
        z = predictions if self._steps > 0 else predictions.clone()  # a result never shares memory with its input
        for step in range(self._steps):
            z = rest * self._matrix.apply(z, draw, step, self._steps) + alpha * predictions
        return z

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        # H enters every step with weight alpha, and once more as the start: dH = alpha (g_1 + ... + g_K) + g_0
        alpha, rest = self._weights(gradient)
        total = torch.zeros_like(gradient)
        for step in reversed(range(self._steps)):
            total = total + alpha * gradient
            gradient = rest * self._flipped.apply(gradient, draw, step, self._steps)
        return total + gradient

    def _weights(self, like: Tensor) -> tuple[float | Tensor, float | Tensor]:
        """Return alpha and 1 - alpha, ready to multiply (R, n, c)."""
        if not isinstance(self.alpha, Tensor):
            return self.alpha, 1 - self.alpha
        alpha = self.alpha[:, None, None].to(like.device)
        return alpha.to(like.dtype), (1 - alpha).to(like.dtype)


@final
class ReferenceAttention(EdgeAttention):
    """drop(softmax(LeakyReLU(left + right))) values, and its adjoint."""

    def __init__(self, transition: Transition) -> None:
        self._n, self._pattern = transition.n_nodes, _Entries(transition.to_scipy(), EDGES, transposed=False)

    def forward(self, values: Tensor, left: Tensor, right: Tensor, draw: Draw | None) -> Tensor:
        rows, columns = self._entries(values)
        coefficients, _ = self._coefficients(left, right)
        dropped = coefficients * self._kept(values, draw)
        return self._sums(dropped[..., None] * values[:, columns], rows)

    def adjoint(
        self, gradient: Tensor, values: Tensor, left: Tensor, right: Tensor, draw: Draw | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        rows, columns = self._entries(values)
        coefficients, slopes = self._coefficients(left, right)
        kept = self._kept(values, draw)
        to_values = self._sums((coefficients * kept)[..., None] * gradient[:, rows], columns)
        # softmax: de_ij = a_ij (da_ij - sum_k a_ik da_ik)
        above = kept * (gradient[:, rows] * values[:, columns]).sum(dim=-1)
        centre = self._sums(coefficients * above, rows)
        scores = slopes * coefficients * (above - centre[:, rows])
        return to_values, self._sums(scores, rows), self._sums(scores, columns)

    def _entries(self, like: Tensor) -> tuple[Tensor, Tensor]:
        return self._pattern.rows.to(like.device), self._pattern.columns.to(like.device)

    def _coefficients(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """Return softmax_j(e_ij) of every entry and the slope of LeakyReLU there, both (R, entries)."""
        rows, columns = self._entries(left)
        scores = left[:, rows] + right[:, columns]
        slopes = torch.ones_like(scores).where(scores > 0, SLOPE)
        scores = scores * slopes
        largest = torch.full_like(left, -torch.inf).scatter_reduce_(1, rows.expand_as(scores), scores, "amax")
        weights = (scores - largest[:, rows]).exp()
        return weights / self._sums(weights, rows)[:, rows], slopes

    def _sums(self, terms: Tensor, at: Tensor) -> Tensor:
        """Add up what the entries (R, entries, ...) give to the nodes `at`."""
        return terms.new_zeros(len(terms), self._n, *terms.shape[2:]).index_add_(1, at, terms)

    def _kept(self, like: Tensor, draw: Draw | None) -> Tensor:
        """Return what coefficients are multiplied by, (R, entries) or a one: 0, or 1 / (1 - p)."""
        if draw is None:
            return like.new_ones(1, 1)
        return self._pattern.keep(draw).to(like.dtype) * law_of(draw).scale


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
        block, law = block[rows], law_of(draw)  # shape of the block: (R, m, n)
        node = self._nodes.to(rows.device)[rows][..., None]
        epoch = torch.as_tensor(draw.epoch, device=node.device).expand_as(node)
        column = torch.arange(block.shape[-1], device=block.device)
        return block * keep_bits(draw.seeds[:, None, None], PPR, node, epoch, column, law) * law.scale


def _labelled(labels: Tensor, weights: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Return which nodes count, how much each of them, both (R, m), and the class of each, (R, m, 1)."""
    counted = labels >= 0 if weights is None else (labels >= 0) & (weights > 0)
    much = counted.to(dtype) if weights is None else weights.to(dtype).where(counted, 0.0)
    return counted, much, labels.clamp(min=0)[..., None]


def _right(outputs: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """Return the number of right answers of each run, or their weight, (R,)."""
    hit = outputs.argmax(dim=-1) == labels
    return hit.sum(dim=1) if weights is None else weights.double().where(hit, 0.0).sum(dim=1)


class TorchKernels(Kernels):
    """The dense operations, loss, optimiser, solves and initial weights in plain torch, for backends whose device it serves well."""

    def activate_adjoint(self, gradient: Tensor, activated: Tensor, draw: Draw | None) -> Tensor:
        # a positive result was both positive before and kept; everything else passes no gradient
        return gradient.mul_(activated > 0).mul_(law_of(draw).scale)

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

    def cross_entropy(
        self, logits: Tensor, labels: Tensor, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        counted, much, target = _labelled(labels, weights, logits.dtype)
        total = much.sum(dim=1)
        log_probability = logits.log_softmax(dim=-1)
        loss = -(log_probability.gather(-1, target)[..., 0].where(counted, 0.0) * much).sum(dim=1) / total
        one_hot = torch.zeros_like(logits).scatter_(-1, target, 1.0)
        each = (log_probability.exp() - one_hot) * much[..., None] / total[:, None, None]
        return loss, _right(logits, labels, weights), each.where(counted[..., None], 0.0)

    def likelihood(
        self, probabilities: Tensor, labels: Tensor, weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        counted, much, target = _labelled(labels, weights, probabilities.dtype)
        total = much.sum(dim=1)
        own = probabilities.gather(-1, target).clamp(min=torch.finfo(probabilities.dtype).tiny)
        loss = -(own[..., 0].log().where(counted, 0.0) * much).sum(dim=1) / total
        slope = (-much[..., None] / (own * total[:, None, None])).where(counted[..., None], 0.0)
        gradient = torch.zeros_like(probabilities).scatter_(-1, target, slope)
        return loss, _right(probabilities, labels, weights), gradient

    def elementwise_loss(
        self, outputs: Tensor, targets: Tensor, weights: Tensor, kind: str
    ) -> tuple[Tensor, Tensor, Tensor]:
        known = targets.isfinite() & (weights > 0)[..., None]
        much = weights.to(outputs.dtype)[..., None].where(known, 0.0)
        total, target = much.sum(dim=(1, 2)), targets.to(outputs.dtype).where(known, 0.0)
        off = outputs - target
        if kind == LOGISTIC:
            each = torch.nn.functional.softplus(outputs) - target * outputs
            slope, good = outputs.sigmoid() - target, ((outputs > 0) == (target > 0.5)).to(outputs.dtype)
        else:
            turn = HUBER_TURN if kind == HUBER else math.inf
            near, far = off.abs() <= turn, min(turn, torch.finfo(outputs.dtype).max)
            each = torch.where(near, 0.5 * off * off, far * (off.abs() - 0.5 * far))
            slope, good = off.clamp(-far, far), 1 - off * off
        scale = outputs.shape[2] / total
        loss = (each.where(known, 0.0) * much).sum(dim=(1, 2)) * scale
        share = (good.where(known, 0.0) * much).double().sum(dim=(1, 2)) / total.double()
        gradient = slope.where(known, 0.0) * much * scale[:, None, None]
        return loss, share * weights.double().sum(dim=1), gradient

    def adam(
        self,
        weights: Tensor,
        gradient: Tensor,
        mean: Tensor,
        square: Tensor,
        *,
        step: int | Tensor,
        rate: float,
        penalty: float,
    ) -> Tensor:
        full = gradient + penalty * weights
        mean.mul_(0.9).add_(full, alpha=0.1)
        square.mul_(0.999).add_(full * full, alpha=0.001)
        count = step.double().squeeze() if isinstance(step, Tensor) else step  # without axes it changes no type
        corrected = (square / (1 - 0.999**count)).sqrt() + 1e-8
        weights.sub_(mean / (1 - 0.9**count) / corrected, alpha=rate)
        return (weights * weights).sum(dim=(1, 2))

    def solves(self, system: System) -> Solves:
        return ProductSolves(system, self.steps(system.transition, 0.0, 1).forward)

    def uniform(self, seeds: Tensor, stream: int, rows: int, columns: int, limit: float) -> Tensor:
        return uniform(seeds, stream, rows, columns, limit)


@final
class ReferenceKernels(TorchKernels):
    """Plain torch on any device and dtype."""

    def features(self, matrix: FeatureMatrix) -> FeatureProduct:
        return ReferenceDenseFeatures(matrix) if isinstance(matrix, DenseRows) else ReferenceFeatures(matrix)

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
        (_, n, width), law = values.shape, law_of(draw)
        node = torch.arange(n, device=values.device)[:, None]
        unit = torch.arange(width, device=values.device)
        epoch = torch.as_tensor(draw.epoch, device=node.device).expand_as(node)
        keep = keep_bits(draw.seeds[:, None, None], stream(HIDDEN, layer), node, epoch, unit, law)
        return values.mul_(keep).mul_(law.scale)
