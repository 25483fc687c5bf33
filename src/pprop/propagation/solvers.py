"""Solvers: ways to apply the PPR operator. Each binds to an operator and a backend and becomes a linear map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop._validate import check_float, check_int
from pprop.kernels import Draw, Kernels, RowPropagation, StepPropagation
from pprop.propagation.certificate import working_type
from pprop.propagation.fixed_point import FixedPoint
from pprop.propagation.operator import PPROperator
from pprop.propagation.solution import Outcome


class LinearMap(ABC):
    """Predictions (R, n, c) to propagated predictions (R, n, c), and back."""

    matrix_products: int = 0
    """Products with the transition matrix that one application costs."""
    takes_half: bool = False
    """Whether it computes half precision itself; otherwise that is computed in float32 and rounded at the end."""

    @abstractmethod
    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        """Return Z for H."""

    @abstractmethod
    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        """Return the gradient with respect to H for that with respect to Z."""


class Solver(ABC):
    """How Z = Pi H is computed."""

    outcome: Outcome
    alpha_interval: str = "(0, 1]"

    @abstractmethod
    def bind(self, operator: PPROperator, kernels: Kernels) -> LinearMap:
        """Return the linear map that this solver computes."""

    def check_alpha(self, alpha: object, function: str) -> float:
        """Return alpha as a float, or say which values this solver accepts."""
        return check_float(alpha, "alpha", function, self.alpha_interval)


@final
@dataclass(frozen=True)
class PowerIteration(Solver):
    """APPNP: a fixed number K of power steps, equation (4) of the paper.

        Z^(0) = H,    Z^(k+1) = (1 - alpha) T Z^(k) + alpha H.

    It also accepts alpha = 0, the power iteration without teleport that the paper compares with; see `Limit`.

    Parameters
    ----------
    steps
        The number of steps, K >= 0.

    Examples
    --------
    >>> PowerIteration(steps=10)
    PowerIteration(steps=10)
    """

    steps: int = 10
    outcome = Outcome.FIXED_STEPS
    alpha_interval = "[0, 1]"

    def __post_init__(self) -> None:
        check_int(self.steps, "steps", "PowerIteration", low=0)

    def bind(self, operator: PPROperator, kernels: Kernels) -> LinearMap:
        return _Steps(kernels.steps(operator.transition, operator.alpha, self.steps), self.steps)


class RowSolver(Solver):
    """A solver whose matrix can be had row by row. Dropout removes entries of that matrix."""

    @abstractmethod
    def rows(self, operator: PPROperator, nodes: NDArray[np.int64], dtype: torch.dtype) -> Tensor:
        """Return the rows of the matrix that belong to `nodes`, shape (m, n), on the CPU."""


@final
@dataclass(frozen=True)
class Exact(RowSolver):
    """PPNP: equation (3) of the paper, Z = alpha (I - (1 - alpha) T)^-1 H.

    On a graph of up to 4000 nodes the matrix is inverted once per operator. A larger graph is propagated by as many
    products with T as reach rounding, without a matrix of 8 n^2 bytes, which only dropout on all of its rows needs.

    Examples
    --------
    >>> Exact()
    Exact()
    """

    outcome = Outcome.EXACT

    def bind(self, operator: PPROperator, kernels: Kernels) -> LinearMap:
        whole = _Solve(operator, kernels) if operator.iterated else None
        return MatrixMap(operator.graph.n_nodes, kernels, lambda: torch.from_numpy(operator.matrix), whole)

    def rows(self, operator: PPROperator, nodes: NDArray[np.int64], dtype: torch.dtype) -> Tensor:
        return operator.rows(nodes, dtype)


@final
class _Steps(LinearMap):
    def __init__(self, steps: StepPropagation, matrix_products: int) -> None:
        self._steps, self.matrix_products = steps, matrix_products

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        return self._steps.forward(predictions, draw)

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        return self._steps.adjoint(gradient, draw)


@final
class _Solve(LinearMap):
    """Pi H by products with T, and its adjoint by products with T^T."""

    def __init__(self, operator: PPROperator, kernels: Kernels) -> None:
        self._operator, self._kernels = operator, kernels
        self._there = FixedPoint(operator.transition, operator.alpha, kernels)
        self.matrix_products = self._there.products

    @cached_property
    def _back(self) -> FixedPoint:
        return FixedPoint(self._operator.transition.transpose, self._operator.alpha, self._kernels)

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        return self._there.apply(predictions)

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        return self._back.apply(gradient)


@final
class MatrixMap(LinearMap):
    """A dense matrix as the block of all its rows, made when it is needed: for masks, or where nothing else is given.

    Parameters
    ----------
    n
        Nodes.
    kernels
        Of the backend.
    dense
        Makes the matrix, shape (n, n).
    whole
        Applies it without masks and without the matrix.
    """

    def __init__(self, n: int, kernels: Kernels, dense: Callable[[], Tensor], whole: LinearMap | None) -> None:
        self._n, self._kernels, self._dense, self._whole = n, kernels, dense, whole
        self.matrix_products = 0 if whole is None else whole.matrix_products

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        if draw is None and self._whole is not None:
            return self._whole.forward(predictions, None)
        return self._rows.forward(predictions, self._every_row(predictions), draw)

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        if draw is None and self._whole is not None:
            return self._whole.adjoint(gradient, None)
        return self._rows.adjoint(gradient, self._every_row(gradient), draw)

    @cached_property
    def _rows(self) -> RowPropagation:
        return self._kernels.rows(self._dense(), torch.arange(self._n))

    def _every_row(self, like: Tensor) -> Tensor:
        return torch.arange(self._n, device=like.device).expand(len(like), -1)


def apply_map(linear_map: LinearMap, predictions: Tensor, draw: Draw | None) -> Tensor:
    """Apply a linear map to predictions (R, n, c) of any float type, with gradients of any order; the type stays."""
    wide = predictions if linear_map.takes_half else predictions.to(working_type(predictions.dtype))
    return cast("Tensor", _Apply.apply(wide, linear_map, draw, False)).to(predictions.dtype)


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
