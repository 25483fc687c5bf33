"""Solvers: ways to apply the PPR operator. Each binds to an operator and a backend and becomes a linear map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from pprop._validate import check_float, check_int
from pprop.kernels import Draw, Kernels, RowPropagation, StepPropagation
from pprop.propagation.operator import PPROperator
from pprop.propagation.solution import Outcome

__all__ = ["Exact", "LinearMap", "PowerIteration", "Solver"]


class LinearMap(ABC):
    """Predictions (R, n, c) to propagated predictions (R, n, c), and back."""

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

    @property
    @abstractmethod
    def matrix_products(self) -> int:
        """Products with the transition matrix that one application costs."""

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

    It alone accepts alpha = 0, the limit without teleport that the paper compares with.

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

    @property
    def matrix_products(self) -> int:
        return self.steps

    def bind(self, operator: PPROperator, kernels: Kernels) -> LinearMap:
        return _Steps(kernels.steps(operator.transition, operator.alpha, self.steps))


@final
@dataclass(frozen=True)
class Exact(Solver):
    """PPNP: the dense matrix, equation (3) of the paper, Z = alpha (I - (1 - alpha) T)^-1 H.

    The matrix takes 8 n^2 bytes and is computed once per operator.

    Examples
    --------
    >>> Exact()
    Exact()
    """

    outcome = Outcome.EXACT

    @property
    def matrix_products(self) -> int:
        return 0

    def bind(self, operator: PPROperator, kernels: Kernels) -> LinearMap:
        n = operator.graph.n_nodes
        return _AllRows(kernels.rows(torch.from_numpy(operator.matrix), torch.arange(n)), n)


@final
class _Steps(LinearMap):
    def __init__(self, steps: StepPropagation) -> None:
        self._steps = steps

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        return self._steps.forward(predictions, draw)

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        return self._steps.adjoint(gradient, draw)


@final
class _AllRows(LinearMap):
    """The whole PPR matrix as the block of all its rows."""

    def __init__(self, rows: RowPropagation, n: int) -> None:
        self._rows, self._n = rows, n

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        return self._rows.forward(predictions, self._every_row(predictions), draw)

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        return self._rows.adjoint(gradient, self._every_row(gradient), draw)

    def _every_row(self, like: Tensor) -> Tensor:
        return torch.arange(self._n, device=like.device).expand(len(like), -1)
