"""Solves of personalized PageRank to a tolerance: what a backend computes, and the way that every backend can.

With T = S_r A S_c and u = S_c z, the fixed point z = (1 - alpha) T z + alpha h of any normalisation is that of

    u = (1 - alpha) S A u + b,    S = S_c S_r,    b = alpha S_c h:

one scale per node. Undirected, S is the inverse of the degrees, and the matrix is self-adjoint in the inner product with
the degrees as weights, whose norm of u is the 2-norm in the variables of the symmetric A_hat.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.graph import Transition

# Of m = measure and u: sqrt(sum of m u^2), the largest m |u|, or the sum of m |u|; column by column.
Norm = Literal["euclidean", "max", "sum"]

# Products between two looks at the norms before the end is near: a look waits for the device.
LOOK_EVERY = 8


@final
@dataclass(frozen=True, eq=False)
class System:
    """The equation u = (1 - alpha) S A u + b but for b, and the norm in which its residual is measured.

    Attributes
    ----------
    transition
        S A: its column scale is one.
    alpha
        Teleport probability, in (0, 1).
    measure
        Weight of each node in the norm, shape (n,).
    norm
        Which norm.
    """

    transition: Transition
    alpha: float
    measure: NDArray[np.float64]
    norm: Norm

    def measure_on(self, device: torch.device) -> Tensor:
        """Return the measure on a device, shape (n,), moved there once."""
        if device not in self._measures:
            self._measures[device] = torch.from_numpy(self.measure).to(device)
        return self._measures[device]

    @cached_property
    def _measures(self) -> dict[torch.device, Tensor]:
        return {}


@final
@dataclass(frozen=True)
class Limits:
    """When a solve ends.

    Attributes
    ----------
    stop
        |r| <= stop |u| is good enough; in every column.
    near
        Products before which that is not expected; the norms are computed only every `LOOK_EVERY` products until then.
    most
        Products after which it always ends.
    """

    stop: float
    near: int
    most: int

    def looks(self, k: int) -> bool:
        """Whether the norms are computed after product k."""
        return k >= self.near or k % LOOK_EVERY == 0 or k == self.most

    def ends(self, k: int, residual: Tensor, size: Tensor) -> bool:
        """Whether the solve ends after product k, given the norms of r and u, both (c,)."""
        return k == self.most or bool((residual <= self.stop * size).all())


@final
@dataclass(frozen=True, eq=False)
class Solved:
    """How a solve ended: u of shape (n, c), the products it took, and the norms of r and u, both (c,).

    `carried` is the number of products whose rounding r carries: more than one where it is that of a recurrence.
    """

    value: Tensor
    products: int
    residual: NDArray[np.float64]
    size: NDArray[np.float64]
    carried: int = 1


class Solves(ABC):
    """Three ways to a fixed point, bound to a system; b and u are (n, c), in float32 or float64, on one device."""

    # Whether `residual` sums rows with more digits than float64 has, so that it can judge solves in float64 too.
    compensated: bool = False

    def __init__(self, system: System) -> None:
        self.system = system

    def chebyshev(self, own: Tensor, limits: Limits) -> Solved:
        """Solve by Chebyshev's recurrence, for a self-adjoint matrix: no sum over nodes but to end."""
        return self.recurrence(own, own, (1.0 - self.system.alpha) ** 2 / 4.0, limits)

    def contraction(self, own: Tensor, start: Tensor, limits: Limits) -> Solved:
        """Solve by u <- (1 - alpha) S A u + b, for any matrix; `residual` is |u' - u| for the u' returned."""
        return self.recurrence(own, start, 0.0, limits)

    @abstractmethod
    def recurrence(self, own: Tensor, start: Tensor, momentum: float, limits: Limits) -> Solved:
        """Solve by u_(k+1) = w_(k+1) ((1 - alpha) S A u_k + b - u_(k-1)) + u_(k-1), from u_1 = start and u_0 = 0.

        w_(k+1) = 1 / (1 - momentum w_k), from w_1 = 2: Chebyshev's weights for momentum (1 - alpha)^2 / 4, and 1 for 0.
        """

    @abstractmethod
    def conjugate_gradient(self, own: Tensor, start: Tensor | None, limits: Limits) -> Solved:
        """Solve by conjugate gradients, for a self-adjoint matrix. `residual` is that of the recurrence.

        With a `start` u_0, `own` is its residual, and |u| counts the start in.
        """

    @abstractmethod
    def residual(self, own: Tensor, state: Tensor) -> Tensor:
        """Return b + (1 - alpha) S A u - u with sums in float64 or better, for b and u in float64."""


def column_norms(system: System, values: Tensor) -> Tensor:
    """Return the norms of the columns of values (n, c), shape (c,), in float64.

    >>> pair = Transition(np.arange(3), np.array([1, 0], np.int32), None, np.ones(2), np.ones(2), symmetric=True)
    >>> column_norms(System(pair, 0.5, np.array([1.0, 4.0]), "euclidean"), torch.tensor([[3.0], [2.0]]))
    tensor([5.], dtype=torch.float64)
    """
    wide, measure = values.double(), system.measure_on(values.device)[:, None]
    if system.norm == "euclidean":
        return (wide * wide).mul_(measure).sum(dim=0).sqrt()
    sizes = wide.abs().mul_(measure)
    return sizes.amax(dim=0) if system.norm == "max" else sizes.sum(dim=0)


class ProductSolves(Solves):
    """The recurrences in torch, around a product with S A.

    Examples
    --------
    >>> from pprop.kernels import choose_backend
    >>> ring = Transition(
    ...     np.arange(6), np.array([1, 2, 3, 4, 0], np.int32), None, np.ones(5), np.ones(5), symmetric=False
    ... )
    >>> solves = choose_backend("reference", "cpu", "example").kernels.solves(System(ring, 0.5, np.ones(5), "max"))
    >>> solved = solves.contraction(torch.ones(5, 1) / 2, torch.zeros(5, 1), Limits(1e-3, 0, 100))
    >>> solved.products, float(solved.value[0])
    (10, 0.9990234375)
    """

    def __init__(self, system: System, product: Callable[[Tensor, None], Tensor]) -> None:
        super().__init__(system)
        self._product = product

    def recurrence(self, own: Tensor, start: Tensor, momentum: float, limits: Limits) -> Solved:
        weight, before, state = 2.0, torch.zeros_like(own), start.clone()
        for k in range(1, limits.most + 1):
            weight = 1.0 / (1.0 - momentum * weight)
            arrived = self._moved(state).add_(own)
            if limits.looks(k):
                value = state if momentum else arrived
                residual, size = (column_norms(self.system, one) for one in (arrived - state, value))
                if limits.ends(k, residual, size):
                    return _solved(value, k, residual, size)
            before = before.mul_(1.0 - weight).add_(arrived, alpha=weight) if momentum else arrived
            before, state = state, before
        raise AssertionError("the last product always ends the solve")

    def conjugate_gradient(self, own: Tensor, start: Tensor | None, limits: Limits) -> Solved:
        state = torch.zeros_like(own) if start is None else start.clone()
        residual, direction = own.clone(), own.clone()
        square = self._inner(residual, residual)
        for k in range(1, limits.most + 1):
            image = direction - self._moved(direction)
            curvature = self._inner(direction, image)
            step = torch.where(curvature > 0, square / curvature, 0.0)  # a column that is solved exactly stays
            state.addcmul_(direction, step.to(own.dtype))
            residual.addcmul_(image, step.to(own.dtype), value=-1.0)
            last, square = square, self._inner(residual, residual)
            if limits.looks(k):
                norm, size = square.sqrt(), self._inner(state, state).sqrt()
                if limits.ends(k, norm, size):
                    return _solved(state, k, norm, size)
            direction.mul_(torch.where(last > 0, square / last, 0.0).to(own.dtype)).add_(residual)
        raise AssertionError("the last product always ends the solve")

    def residual(self, own: Tensor, state: Tensor) -> Tensor:
        return self._moved(state).add_(own).sub_(state)

    def _moved(self, state: Tensor) -> Tensor:
        return self._product(state[None], None)[0].mul_(1.0 - self.system.alpha)

    def _inner(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the inner products of columns, (c,), in float64."""
        return (left.double() * right.double()).mul_(self.system.measure_on(left.device)[:, None]).sum(dim=0)


def _solved(value: Tensor, products: int, residual: Tensor, size: Tensor) -> Solved:
    return Solved(value, products, residual.cpu().numpy(), size.cpu().numpy())
