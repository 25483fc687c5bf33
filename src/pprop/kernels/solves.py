"""Solves of personalized PageRank to a tolerance: what a backend computes.

With T = S_r A S_c and u = S_c z, the fixed point z = (1 - alpha) T z + alpha h of any normalisation is that of

    u = (1 - alpha) S A u + b,    S = S_c S_r,    b = alpha S_c h:

one scale per node. Undirected, S is the inverse of the degrees, and the matrix is self-adjoint in the inner product with
the degrees as weights, whose norm of u is the 2-norm in the variables of the symmetric A_hat.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from pprop.graph import Transition
from pprop.kernels.arrays import Array

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

    @cached_property
    def copies(self) -> dict[object, Any]:
        """The measure elsewhere than in `measure`, kept by the backend that made the copy."""
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

    def ends(self, k: int, residual: Array, size: Array) -> bool:
        """Whether the solve ends after product k, given the norms of r and u, both (c,)."""
        return k == self.most or bool((residual <= self.stop * size).all())


@final
@dataclass(frozen=True, eq=False)
class Solved:
    """How a solve ended: u of shape (n, c), the products it took, and the norms of r and u, both (c,).

    `carried` is the number of products whose rounding r carries: more than one where it is that of a recurrence.
    """

    value: Array
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

    def chebyshev(self, own: Array, limits: Limits) -> Solved:
        """Solve by Chebyshev's recurrence, for a self-adjoint matrix: no sum over nodes but to end."""
        return self.recurrence(own, own, (1.0 - self.system.alpha) ** 2 / 4.0, limits)

    def contraction(self, own: Array, start: Array, limits: Limits) -> Solved:
        """Solve by u <- (1 - alpha) S A u + b, for any matrix; `residual` is |u' - u| for the u' returned."""
        return self.recurrence(own, start, 0.0, limits)

    @abstractmethod
    def recurrence(self, own: Array, start: Array, momentum: float, limits: Limits) -> Solved:
        """Solve by u_(k+1) = w_(k+1) ((1 - alpha) S A u_k + b - u_(k-1)) + u_(k-1), from u_1 = start and u_0 = 0.

        w_(k+1) = 1 / (1 - momentum w_k), from w_1 = 2: Chebyshev's weights for momentum (1 - alpha)^2 / 4, and 1 for 0.
        """

    @abstractmethod
    def conjugate_gradient(self, own: Array, start: Array | None, limits: Limits) -> Solved:
        """Solve by conjugate gradients, for a self-adjoint matrix. `residual` is that of the recurrence.

        With a `start` u_0, `own` is its residual, and |u| counts the start in.
        """

    @abstractmethod
    def residual(self, own: Array, state: Array) -> Array:
        """Return b + (1 - alpha) S A u - u with sums in float64 or better, for b and u in float64."""

    @abstractmethod
    def norms(self, values: Array) -> NDArray[np.float64]:
        """Return the norms of the columns of values (n, c), as the system measures them, shape (c,)."""
