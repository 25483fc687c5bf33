"""A solver to a tolerance bound to an operator: a linear map whose adjoint is a solve with the transpose."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from pprop._errors import ToleranceError
from pprop.graph import Transition
from pprop.kernels import Draw, Kernels
from pprop.kernels.solves import Norm
from pprop.propagation.certificate import (
    Certificate,
    error_before_rounding,
    rounded_error,
    working_type,
    worst_error,
)
from pprop.propagation.differentiable import apply_map
from pprop.propagation.edge_dropout import dropped_transition
from pprop.propagation.operator import PPROperator
from pprop.propagation.solvers import LinearMap
from pprop.propagation.tolerance_side import ToleranceSide

if TYPE_CHECKING:  # the solvers make these maps
    from pprop.propagation.tolerance import ToleranceSolver

__all__ = ["ToleranceMap", "apply_in_type"]

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


def apply_in_type(linear_map: LinearMap, predictions: Tensor, draw: Draw | None) -> Tensor:
    """Apply a linear map, with gradients, to predictions (R, n, c) of any float type; the result has that type.

    Half precision is computed in float32 and rounded at the end: by the map itself where it vouches for the result.
    """
    if isinstance(linear_map, ToleranceMap):
        return apply_map(linear_map, predictions, draw)
    return apply_map(linear_map, predictions.to(working_type(predictions.dtype)), draw).to(predictions.dtype)


@final
class ToleranceMap(LinearMap):
    """Pi H and Pi^T G to a tolerance, (R, n, c) to (R, n, c), run by run.

    `matrix_products` and `certificate` are those of the last forward pass; of several runs, those of the slowest and of
    the least certain. A draw drops edges of the graph, see `dropped_transition`. The certificate is that of the result in
    the float type of H; a gradient is within the tolerance before it is rounded to half precision, where small numbers
    have few digits or none.
    """

    def __init__(self, solver: ToleranceSolver, operator: PPROperator, kernels: Kernels) -> None:
        self._solver, self._operator, self._kernels = solver, operator, kernels
        self._whole: dict[bool, ToleranceSide] = {}
        self._dropped: dict[tuple[int, int, float], Transition] = {}
        words = _WORDS[operator.normalization, solver.symmetric]
        self.certificate = Certificate(solver.wanted, float("inf"), words)

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        solver = self._solver.settled(self._operator.alpha, predictions.dtype)
        value, products, error = self._apply(predictions, solver, draw, transposed=False)
        self.matrix_products = products
        self.certificate = Certificate(solver.wanted, error, self.certificate.norm)
        return value

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        solver = self._solver.settled(self._operator.alpha, gradient.dtype)
        return self._apply(gradient, solver, draw, transposed=True)[0]

    def _apply(
        self, operand: Tensor, solver: ToleranceSolver, draw: Draw | None, *, transposed: bool
    ) -> tuple[Tensor, int, float]:
        """Return the solution, the products of the run with most of them, and the relative error of the worst column."""
        alpha, dtype = self._operator.alpha, operand.dtype
        if alpha == 1.0 or operand.numel() == 0:
            return operand.clone(), 0, 0.0
        inner = replace(solver, tol=error_before_rounding(solver.wanted, dtype))
        values: list[Tensor] = []
        products, error = 0, 0.0
        for run, one in enumerate(operand.to(working_type(dtype))):
            side = self._side(draw, run, transposed=transposed)
            value, ended = side.solve(one, inner, "gradient" if transposed else "H")
            values.append(value.to(dtype))
            reached = worst_error(alpha, ended)
            if not transposed and value.dtype != dtype:
                reached = rounded_error(reached, side.lost(value, values[-1]))
            products, error = max(products, ended.products), max(error, reached)
            self._check(reached, solver, ended.products, dtype)
        value = torch.stack(values) if len(values) > 1 else values[0][None]
        return value, products, error

    def _check(self, reached: float, solver: ToleranceSolver, products: int, dtype: torch.dtype) -> None:
        """Say what was reached where that is not what was asked for."""
        if reached <= solver.wanted:
            return
        wider = "" if dtype == torch.float64 else ", or predictions in float64"
        capped = products >= solver.max_products
        remedy = "Raise max_products, or use a larger tol." if capped else f"Use a larger tol{wider}."
        proven = f"{reached:.2g}" if math.isfinite(reached) else "none that can be proven"
        raise ToleranceError(
            f"{type(solver).__name__} was asked for a relative error of {solver.wanted:g} at alpha "
            f"{self._operator.alpha:g} and reached {proven} in {products} products. {remedy}"
        )

    def _side(self, draw: Draw | None, run: int, *, transposed: bool) -> ToleranceSide:
        if draw is not None:
            return self._make(self._left(draw, run), transposed=transposed)
        if transposed not in self._whole:
            self._whole[transposed] = self._make(self._operator.transition, transposed=transposed)
        return self._whole[transposed]

    def _make(self, transition: Transition, *, transposed: bool) -> ToleranceSide:
        normalization = self._operator.normalization
        if transposed:
            transition, normalization = transition.transpose, _TRANSPOSED[normalization]
        norm = "euclidean" if self._solver.symmetric else _NORM_OF[normalization]
        return ToleranceSide(transition, self._operator.alpha, self._kernels, norm, symmetrised=self._solver.symmetric)

    def _left(self, draw: Draw, run: int) -> Transition:
        """Return what a run's dropout leaves, which the backward pass asks for again."""
        key = (int(draw.seeds[run]), draw.number, draw.probability)
        if key not in self._dropped:
            if len(self._dropped) >= len(draw.seeds):
                self._dropped.clear()
            self._dropped[key] = dropped_transition(self._operator, draw, run)
        return self._dropped[key]
