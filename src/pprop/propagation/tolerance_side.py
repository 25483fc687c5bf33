"""One side of a solve to a tolerance, T or its transpose, in the variables in which it is solved and certified."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from torch import Tensor

from pprop._validate import reject
from pprop.graph import Transition
from pprop.kernels import Kernels
from pprop.kernels.solves import Norm, Solved, System, column_norms
from pprop.propagation.certificate import least_error, with_rounding, worst_error

if TYPE_CHECKING:  # the solvers make the maps that use this
    from pprop.propagation.tolerance import ToleranceSolver

__all__ = ["ToleranceSide"]

ORDINARY = 2.0**900
"""Columns whose largest number, or its inverse, is above this may leave the range of float64 on the way."""


@final
class ToleranceSide:
    """z = (1 - alpha) T z + alpha h in the variables u = S_c z, and the norm that certifies it.

    Parameters
    ----------
    transition
        T.
    alpha
        Teleport probability, in (0, 1).
    kernels
        Of the backend.
    norm
        The norm in which T is at most 1, and in which the certificate holds.
    symmetrised
        Whether that is the 2-norm in the variables of the symmetric A_hat, whatever the normalisation.
    """

    def __init__(
        self, transition: Transition, alpha: float, kernels: Kernels, norm: Norm, *, symmetrised: bool
    ) -> None:
        # a scale of 0 belongs to an empty column: nobody receives that u, and any other scale serves
        columns = np.where(transition.column_scale > 0, transition.column_scale, 1.0)
        scale = transition.row_scale * columns
        if symmetrised:
            measure = 1.0 / scale  # the degrees
        else:
            measure = columns**-2.0 if norm == "euclidean" else 1.0 / columns
        moved = Transition(
            transition.indptr, transition.indices, transition.weights, scale, np.ones_like(scale), transition.symmetric
        )
        self._alpha, self._columns = alpha, torch.from_numpy(columns)[:, None]
        self._system = System(moved, alpha, measure, norm)
        self._solves = kernels.solves(self._system)
        rows, columns = np.diff(transition.indptr), np.bincount(transition.indices, minlength=1)
        self._longest = int(max(rows.max(initial=0), columns.max()))

    def solve(self, predictions: Tensor, solver: ToleranceSolver, name: str = "H") -> tuple[Tensor, Solved]:
        """Return Z for one run of predictions (n, c) in float32 or float64, and how the solve ended.

        Columns are brought to size one first: squares cannot overflow. `name` is what predictions are in errors.
        """
        largest = predictions.abs().amax(dim=0)
        if not bool(torch.isfinite(largest).all()):
            reject(name, type(solver).__name__, "free of NaN and infinity", "some")
        unit = torch.where(largest > 0, torch.ldexp(torch.ones_like(largest), torch.frexp(largest).exponent - 1), 1.0)
        columns = self._columns.to(predictions)
        own = (predictions / unit).mul_(self._alpha * columns)
        ended = solver.run(self._solves, own, self._alpha)
        value = (ended.value / columns).mul_(unit)
        if value.dtype == torch.float64 and bool(((unit < ORDINARY) & (unit > 1.0 / ORDINARY)).all()):
            proven = self._proven(ended, compensated=False)
            if worst_error(self._alpha, proven) <= solver.wanted:
                return value, proven
        return self._verified(predictions, unit, value, ended, solver)

    def lost(self, value: Tensor, rounded: Tensor) -> float:
        """Return by how much Z was moved by rounding, in relation to its norm: that of the worst column."""
        columns = self._columns.to(value.device)
        moved = column_norms(self._system, (rounded.double() - value.double()) * columns)
        size = column_norms(self._system, value.double() * columns)
        rounding = (len(value) + 16) * torch.finfo(torch.float64).eps  # of the norms, as in `with_rounding`
        return float(torch.where(moved > 0, moved / size, 0.0).max()) * (1.0 + rounding)

    def _proven(self, ended: Solved, *, compensated: bool) -> Solved:
        """Return a solve with what its residual in float64 proves, its rounding counted."""
        weighted = self._system.transition.weights is not None
        return with_rounding(ended, self._longest, weighted=weighted, compensated=compensated)

    def _verified(
        self, predictions: Tensor, unit: Tensor, value: Tensor, ended: Solved, solver: ToleranceSolver
    ) -> tuple[Tensor, Solved]:
        """Measure the residual of Z itself in float64, and solve for what is missing as long as that helps.

        The products that only measure are not counted.
        """
        alpha, columns, unit = self._alpha, self._columns.to(value.device), unit.double()
        own = (predictions.double() / unit).mul_(alpha * columns)
        products, last, again = ended.products, 0.0, False
        while True:
            state = (value.double() / unit).mul_(columns)
            residual = self._solves.residual(own, state)
            norm, size = (column_norms(self._system, one).cpu().numpy() for one in (residual, state))
            ended = self._proven(Solved(state, products, norm, size), compensated=self._solves.compensated)
            reached, left = worst_error(alpha, ended), solver.max_products - products
            if reached <= solver.wanted or left < 1 or (again and not reached < 0.5 * last):
                return value, ended
            tol = max(min(0.25 * solver.wanted / reached, 0.1), least_error(alpha, value.dtype))
            change = replace(solver, tol=tol, max_products=left).run(self._solves, residual.to(value.dtype), alpha)
            products, last, again = products + change.products, reached, True
            value = ((state + change.value) / columns).mul_(unit).to(value.dtype)
