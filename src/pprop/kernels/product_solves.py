"""Solves to a tolerance in torch, by products with the matrix. What they compute is in `pprop.kernels.solves`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop.kernels.solves import Limits, Solved, Solves, System


def measure_on(system: System, device: torch.device) -> Tensor:
    """Return the measure of a system on a device, shape (n,), moved there once."""
    if device not in system.copies:
        system.copies[device] = torch.from_numpy(system.measure).to(device)
    return system.copies[device]


def column_norms(system: System, values: Tensor) -> Tensor:
    """Return the norms of the columns of values (n, c), shape (c,), in float64.

    >>> import numpy as np
    >>> from pprop.graph import Transition
    >>> pair = Transition(np.arange(3), np.array([1, 0], np.int32), None, np.ones(2), np.ones(2), symmetric=True)
    >>> column_norms(System(pair, 0.5, np.array([1.0, 4.0]), "euclidean"), torch.tensor([[3.0], [2.0]]))
    tensor([5.], dtype=torch.float64)
    """
    wide, measure = values.double(), measure_on(system, values.device)[:, None]
    if system.norm == "euclidean":
        return (wide * wide).mul_(measure).sum(dim=0).sqrt()
    sizes = wide.abs().mul_(measure)
    return sizes.amax(dim=0) if system.norm == "max" else sizes.sum(dim=0)


class ProductSolves(Solves):
    """The recurrences in torch, around a product with S A: the way that every backend on tensors can.

    Examples
    --------
    >>> import numpy as np
    >>> from pprop.graph import Transition
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

    def norms(self, values: Tensor) -> NDArray[np.float64]:
        return column_norms(self.system, values).cpu().numpy()

    def _moved(self, state: Tensor) -> Tensor:
        return self._product(state[None], None)[0].mul_(1.0 - self.system.alpha)

    def _inner(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the inner products of columns, (c,), in float64."""
        return (left.double() * right.double()).mul_(measure_on(self.system, left.device)[:, None]).sum(dim=0)


def _solved(value: Tensor, products: int, residual: Tensor, size: Tensor) -> Solved:
    return Solved(value, products, residual.cpu().numpy(), size.cpu().numpy())
