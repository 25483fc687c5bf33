"""A solver to a tolerance bound to an operator: a linear map whose adjoint is a solve with the transpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np
import torch
from torch import Tensor

from pprop._errors import ToleranceError
from pprop._validate import reject
from pprop.graph import Transition
from pprop.kernels import Draw, Kernels
from pprop.kernels.solves import Ended, Norm, System, bind_solves
from pprop.propagation.certificate import Certificate, check_reachable, least_error, relative_error
from pprop.propagation.edge_dropout import dropped_transition
from pprop.propagation.operator import PPROperator
from pprop.propagation.solvers import LinearMap

if TYPE_CHECKING:  # the solvers make these maps
    from pprop.propagation.tolerance import ToleranceSolver

__all__ = ["ToleranceMap"]

_NORM_OF: dict[str, Norm] = {"sym": "euclidean", "row": "max", "col": "sum"}
_TRANSPOSED: dict[str, str] = {"sym": "sym", "row": "col", "col": "row"}
_WORDS = {
    ("sym", True): "2-norm",
    ("row", True): "2-norm weighted by the degrees",
    ("col", True): "2-norm weighted by the inverse degrees",
    ("sym", False): "2-norm",
    ("row", False): "max-norm",
    ("col", False): "1-norm",
}


@final
class ToleranceMap(LinearMap):
    """Pi H and Pi^T G to a tolerance, (R, n, c) to (R, n, c), run by run.

    `matrix_products` and `certificate` are those of the last forward pass; of several runs, those of the slowest and of
    the least certain. A draw drops edges of the graph, see `dropped_transition`.
    """

    def __init__(self, solver: ToleranceSolver, operator: PPROperator, kernels: Kernels) -> None:
        self._solver, self._operator, self._kernels = solver, operator, kernels
        self._whole: dict[bool, _Side] = {}
        self._dropped: dict[tuple[int, int, float], Transition] = {}
        words = _WORDS[operator.normalization, solver.symmetric]
        self.certificate = Certificate(solver.tol, float("inf"), words)

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        value, products, error = self._apply(predictions, draw, transposed=False)
        self.matrix_products = products
        self.certificate = Certificate(self._solver.tol, error, self.certificate.norm)
        return value

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        return self._apply(gradient, draw, transposed=True)[0]

    def _apply(self, operand: Tensor, draw: Draw | None, *, transposed: bool) -> tuple[Tensor, int, float]:
        alpha, solver = self._operator.alpha, self._solver
        check_reachable(solver.tol, alpha, operand.dtype, type(solver).__name__)
        if alpha == 1.0 or operand.numel() == 0:
            return operand.clone(), 0, 0.0
        values: list[Tensor] = []
        products, error = 0, 0.0
        for run, one in enumerate(operand):
            side = self._side(draw, run, transposed=transposed)
            value, ended = side.solve(one, solver)
            values.append(value)
            products, error = max(products, ended.products), max(error, self._checked(ended, operand.dtype))
        return torch.stack(values) if len(values) > 1 else values[0][None], products, error

    def _checked(self, ended: Ended, dtype: torch.dtype) -> float:
        """Return the relative error that is certified, or say what was reached."""
        alpha, solver = self._operator.alpha, self._solver
        columns = zip(ended.residual.tolist(), ended.size.tolist(), strict=True)
        reached = max(relative_error(alpha, residual, size) for residual, size in columns)
        if reached <= solver.tol * (1.0 + 1e-9):  # the same condition, rounded another way
            return max(reached, least_error(alpha, dtype))
        capped = ended.products >= solver.max_products
        wider = "" if dtype == torch.float64 else ", or predictions in float64"
        remedy = "Raise max_products, or use a larger tol." if capped else f"Use a larger tol{wider}."
        raise ToleranceError(
            f"{type(solver).__name__} was asked for a relative error of {solver.tol:g} at alpha {alpha:g} and reached "
            f"{reached:.2g} in {ended.products} products. {remedy}"
        )

    def _side(self, draw: Draw | None, run: int, *, transposed: bool) -> _Side:
        if draw is not None:
            return self._make(self._left(draw, run), transposed=transposed)
        if transposed not in self._whole:
            self._whole[transposed] = self._make(self._operator.transition, transposed=transposed)
        return self._whole[transposed]

    def _make(self, transition: Transition, *, transposed: bool) -> _Side:
        normalization = self._operator.normalization
        if transposed:
            transition, normalization = transition.transpose, _TRANSPOSED[normalization]
        norm = "euclidean" if self._solver.symmetric else _NORM_OF[normalization]
        return _Side(transition, self._operator.alpha, self._kernels, norm, symmetrised=self._solver.symmetric)

    def _left(self, draw: Draw, run: int) -> Transition:
        """Return what a run's dropout leaves, which the backward pass asks for again."""
        key = (int(draw.seeds[run]), draw.number, draw.probability)
        if key not in self._dropped:
            if len(self._dropped) >= len(draw.seeds):
                self._dropped.clear()
            self._dropped[key] = dropped_transition(self._operator, draw, run)
        return self._dropped[key]


@final
class _Side:
    """z = (1 - alpha) T z + alpha h in the variables u = S_c z, and the norm that certifies it."""

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
        self._solves = bind_solves(kernels, System(moved, alpha, measure, norm))

    def solve(self, predictions: Tensor, solver: ToleranceSolver) -> tuple[Tensor, Ended]:
        """Return Z for one run of predictions (n, c). Columns are brought to size one first: squares cannot overflow."""
        largest = predictions.abs().amax(dim=0)
        if not bool(torch.isfinite(largest).all()):
            reject("H", type(solver).__name__, "free of NaN and infinity", "some")
        unit = torch.where(largest > 0, torch.ldexp(torch.ones_like(largest), torch.frexp(largest).exponent - 1), 1.0)
        columns = self._columns.to(predictions)
        own = (predictions / unit).mul_(self._alpha * columns)
        ended = solver.run(self._solves, own, self._alpha)
        return (ended.value / columns).mul_(unit), ended
