"""Solvers to a tolerance: `Chebyshev` and `ConjugateGradient` for undirected graphs, `Contraction` for all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import final

import torch
from torch import Tensor

from pprop.kernels.solves import Limits, Solved, Solves
from pprop.propagation.certificate import stop_ratio
from pprop.propagation.tolerance import ToleranceSolver

MARGIN = (
    0.98  # share of the bound that conjugate gradients stop at: their residual drifts from the true one by rounding
)
DRIFT_UNITS = 10_000  # units of rounding, over alpha, below which that drift may exceed the margin and is measured


@final
@dataclass(frozen=True)
class Chebyshev(ToleranceSolver):
    """Chebyshev's semi-iteration, for undirected graphs: about sqrt(alpha / 2) times the products of power steps.

        Z_(k+1) = w_(k+1) ((1 - alpha) T Z_k + alpha H - Z_(k-1)) + Z_(k-1)

    The weights w follow from alpha alone, so that columns do not influence each other. The spectrum of T lies in [-1, 1],
    and a polynomial of degree k leaves at most 1 / cosh(k arccosh(1 / (1 - alpha))) of the error. It ends by the residual
    in the 2-norm of A_hat's variables: the plain 2-norm of a column for "sym", weighted by the degrees for "row" and by
    the inverse degrees for "col".

    Parameters
    ----------
    tol
        Relative error of every column, in (0, 1). None: 1e-6, or twice the least that the float type of H can reach where
        that is more, 1.9e-5 in float32 at alpha 0.1.
    max_products
        Products with T after which to give up with a `ToleranceError`.

    References
    ----------
    Golub and Varga, "Chebyshev semi-iterative methods", Numerische Mathematik 3, 1961.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> H = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    >>> exact = pprop.propagate(path, H, solver=pprop.Exact())
    >>> bool(np.linalg.norm(pprop.propagate(path, H, solver=Chebyshev(1e-6)) - exact) < 1e-6 * np.linalg.norm(exact))
    True
    """

    def limits(self, alpha: float) -> Limits:
        rate = math.acosh(1.0 / (1.0 - alpha))
        near = math.ceil(math.acosh(1.0 / self.wanted) / rate) - 1
        enough = math.ceil(math.acosh((2.0 - alpha) / stop_ratio(alpha, self.wanted)) / rate) + 2
        return Limits(stop_ratio(alpha, self.wanted), near, min(enough, self.max_products))

    def run(self, solves: Solves, own: Tensor, alpha: float) -> Solved:
        return solves.chebyshev(own, self.limits(alpha))


@final
@dataclass(frozen=True)
class ConjugateGradient(ToleranceSolver):
    """Conjugate gradients in A_hat's variables, for undirected graphs: the fewest products, with sums over all nodes.

    It finds out from H which part of the spectrum matters, for each column by itself. Parameters and norm are those of
    `Chebyshev`. The residual it ends by is that of its recurrence; where `tol` is so small, or the float type so short, that
    the two might differ by rounding, the true residual is computed once more at the end.

    References
    ----------
    Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", J. Res. NBS 49, 1952.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> pprop.solve(path, np.eye(5)[:, :1], solver=ConjugateGradient(tol=1e-9)).statistics.matrix_products <= 8
    True
    """

    def limits(self, alpha: float) -> Limits:
        rate = math.acosh(1.0 / (1.0 - alpha))
        near = int(0.6 * math.acosh(1.0 / self.wanted) / rate)
        condition = math.sqrt((2.0 - alpha) / alpha)  # of the norms of residual and energy
        enough = math.ceil(math.acosh(2.0 * condition * (2.0 - alpha) / stop_ratio(alpha, self.wanted)) / rate) + 10
        return Limits(MARGIN * stop_ratio(alpha, self.wanted), near, min(enough, self.max_products))

    def run(self, solves: Solves, own: Tensor, alpha: float) -> Solved:
        limits = self.limits(alpha)
        ended = solves.conjugate_gradient(own, None, limits)
        # a result in float32 is judged by its residual in float64 in any case, see `ToleranceSide`
        if own.dtype != torch.float64 or self.wanted >= DRIFT_UNITS * torch.finfo(own.dtype).eps / alpha:
            # |u| grows from step to step, so a step p with its image is at most 2 |u|: twice the rounding of a residual
            return replace(ended, carried=1 + 2 * ended.products)
        return self._verified(solves, own, alpha, limits, ended)

    def _verified(self, solves: Solves, own: Tensor, alpha: float, limits: Limits, ended: Solved) -> Solved:
        """Make a power step, which leaves at most 1 - alpha of the residual it measures; begin again from it if needed."""
        products = ended.products
        while True:
            step = solves.contraction(own, ended.value, Limits(0.0, 1, 1))
            products += 1
            residual = (1.0 - alpha) * step.residual
            good = bool((residual <= stop_ratio(alpha, self.wanted) * step.size).all())
            if good or products >= limits.most:
                return Solved(step.value, products, residual, step.size)
            rest = Limits(limits.stop, 1, limits.most - products)
            ended = solves.conjugate_gradient(step.value - ended.value, ended.value, rest)
            products += ended.products


@final
@dataclass(frozen=True)
class Contraction(ToleranceSolver):
    """Power steps until the residual is small enough: for every graph, directed ones included.

        Z <- (1 - alpha) T Z + alpha H

    shrinks every error by 1 - alpha in the norm in which T has norm at most 1: the 2-norm of a column for "sym", its
    largest entry for "row", its 1-norm for "col". The certificate is in that norm. Parameters are those of `Chebyshev`,
    which needs fewer products where it can be used: these are about log(1 / tol) / alpha.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> ring = sp.csr_array(np.roll(np.eye(5), 1, axis=1))
    >>> graph = pprop.Graph.from_scipy(ring, directed=True)
    >>> pprop.propagate(graph, np.eye(5)[0], 0.5, Contraction(1e-8), "row", self_loops=False).round(4)
    array([0.5161, 0.0323, 0.0645, 0.129 , 0.2581])
    """

    symmetric = False

    def limits(self, alpha: float) -> Limits:
        rate = -math.log1p(-alpha)
        # the step that shows |u' - u| leaves at most 1 - alpha of it as the residual of u'
        stop = stop_ratio(alpha, self.wanted) / (1.0 - alpha)
        enough = math.ceil(math.log(2.0 * (2.0 - alpha) / (alpha * stop)) / rate) + 2
        return Limits(stop, int(0.5 * math.log(1.0 / self.wanted) / rate), min(max(enough, 1), self.max_products))

    def run(self, solves: Solves, own: Tensor, alpha: float) -> Solved:
        ended = solves.contraction(own, own / alpha, self.limits(alpha))
        return Solved(ended.value, ended.products, (1.0 - alpha) * ended.residual, ended.size)


# By the names that commands and classifiers use.
TOLERANCE_SOLVERS: Mapping[str, type[ToleranceSolver]] = MappingProxyType(
    {"chebyshev": Chebyshev, "cg": ConjugateGradient, "contraction": Contraction}
)
