"""Solvers to a tolerance: `Chebyshev` and `ConjugateGradient` for undirected graphs, `Contraction` for all.

On an operator each becomes a linear map whose adjoint is a solve with the transpose.

Dropout drops edges of the graph and normalises what is left. Dropping entries of T and dividing the rest by the
probability of keeping them, as a fixed number of power steps can, leaves a matrix whose spectral radius is above
1 / (1 - alpha) on real graphs: it has no fixed point to solve for. What is left of the graph, normalised by its own
degrees, is a transition matrix like any other.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, final

import numpy as np

from pprop._errors import Remedy, ToleranceError
from pprop._validate import check_float, check_int, reject
from pprop.graph import Transition
from pprop.kernels import Draw, Kernels, LinearMap
from pprop.kernels.arrays import EPS, Array, beside, cast, copy_of, device_of, module_of, on_host, type_name
from pprop.kernels.solves import Limits, Norm, Solved, Solves, System
from pprop.propagation import certificate
from pprop.propagation.operator import PPROperator
from pprop.propagation.solvers import Solver, Statistics, ToleranceOutcome, working_type

_NORM_OF: dict[str, Norm] = {"sym": "euclidean", "row": "max", "col": "sum"}
_TRANSPOSED: dict[str, str] = {"sym": "sym", "row": "col", "col": "row"}
# The norms of certificates: that of a symmetric system, and those of any.
_WEIGHTED = {"sym": "2-norm", "row": "2-norm weighted by the degrees", "col": "2-norm weighted by the inverse degrees"}
_PLAIN = {"sym": "2-norm", "row": "max-norm", "col": "1-norm"}
# Share of the bound that conjugate gradients stop at: their residual drifts from the true one by rounding.
MARGIN = 0.98
DRIFT_UNITS = 10_000  # units of rounding, over alpha, below which that drift may exceed the margin and is measured
ORDINARY = 2.0**900  # columns whose largest number, or its inverse, is above this may overflow in float64 on the way


@dataclass(frozen=True)
class ToleranceSolver(Solver):
    """A solver that stops when the residual proves that every column is within a relative error of the fixed point.

    Its gradient is another solve, with the transpose, to the same tolerance: no step is stored.
    """

    tol: float | None = None
    max_products: int = 10_000

    outcome = ToleranceOutcome.REACHED
    symmetric = True  # whether it needs a matrix that is symmetric in some variables, that is an undirected graph

    def __post_init__(self) -> None:
        if self.tol is not None:
            check_float(self.tol, "tol", type(self).__name__, "(0, 1)")
        check_int(self.max_products, "max_products", type(self).__name__, low=1)

    @property
    def wanted(self) -> float:
        """The tolerance; the default one of float64 where none was given and none is settled yet."""
        return 1e-6 if self.tol is None else self.tol

    def bind(self, operator: PPROperator, kernels: Kernels) -> LinearMap:
        if self.symmetric and not operator.transition.symmetric:
            other = "Contraction()" if self.tol is None else f"Contraction(tol={self.tol:g})"
            remedy = Remedy(f"Use {other}.", shell="Use --solver contraction.")
            expected, got = "undirected", "a directed graph"
            if not operator.graph.directed:  # its norm is weighted by them
                expected = 'of degrees within a factor of 2^64 in every component unless normalization is "sym"'
                got = "degrees that differ by more"
            reject("graph", type(self).__name__, expected, got, remedy=remedy)
        return ToleranceMap(self, operator, kernels)

    def solution(self, value: Any, statistics: Statistics, linear_map: LinearMap) -> certificate.CertifiedSolution:
        assert isinstance(linear_map, ToleranceMap)
        return certificate.CertifiedSolution(value, self.outcome, statistics, linear_map.certificate)

    @abstractmethod
    def limits(self, alpha: float) -> Limits:
        """Return when to measure the residual and when to give up: after the products that theory needs at most."""

    @abstractmethod
    def run(self, solves: Solves, own: Array, alpha: float) -> Solved:
        """Solve for the right-hand side `own` = alpha h, (n, c), in the variables of `Solves`.

        `Solved.residual` bounds the residual of the value that is returned, but for the rounding of `Solved.carried` products.
        """


@final
class ToleranceMap(LinearMap):
    """Pi H and Pi^T G to a tolerance, (R, n, c) to (R, n, c), run by run.

    `matrix_products` and `certificate` are those of the last forward pass; of several runs, those of the slowest and of
    the largest error. A draw drops edges of the graph, see `PPROperator.dropped`. The certificate is that of the result in
    the float type of H; a gradient is within the tolerance before it is rounded to half precision, where small numbers
    have few digits or none.
    """

    takes_half = True

    def __init__(self, solver: ToleranceSolver, operator: PPROperator, kernels: Kernels) -> None:
        self._solver, self._operator, self._kernels = solver, operator, kernels
        self._whole: dict[bool, ToleranceSide] = {}
        self._dropped: dict[tuple[int, int, float], Transition] = {}
        norms = _WEIGHTED if solver.symmetric else _PLAIN
        self.certificate = certificate.Certificate(solver.wanted, math.inf, norms[operator.normalization])

    def forward(self, predictions: Array, draw: Draw | None) -> Array:
        value, self.matrix_products, error, tol = self._apply(predictions, draw, transposed=False)
        self.certificate = certificate.Certificate(tol, error, self.certificate.norm)
        return value

    def adjoint(self, gradient: Array, draw: Draw | None) -> Array:
        return self._apply(gradient, draw, transposed=True)[0]

    def _apply(self, operand: Array, draw: Draw | None, *, transposed: bool) -> tuple[Array, int, float, float]:
        """Return the solution, the most products of a run, the relative error of the worst column, and the tolerance."""
        alpha, kind = self._operator.alpha, type_name(operand)
        tol = certificate.settle_tolerance(self._solver.tol, alpha, kind, type(self._solver).__name__)
        solver = replace(self._solver, tol=tol)
        if alpha == 1.0 or 0 in operand.shape:
            return copy_of(operand), 0, 0.0, solver.wanted
        inner = replace(solver, tol=certificate.error_before_rounding(solver.wanted, kind))
        out, products, error = module_of(operand).empty_like(operand), 0, 0.0
        for run, one in enumerate(cast(operand, working_type(kind))):
            side = self._side(draw, run, transposed=transposed)
            value, solved = side.solve(one, inner, "gradient" if transposed else "H")
            out[run] = value
            reached = certificate.worst_error(alpha, solved)
            if not transposed and type_name(value) != kind:
                reached = certificate.rounded_error(reached, side.lost(value, out[run]))
            products, error = max(products, solved.products), max(error, reached)
            if reached > solver.wanted:
                raise self._missed(reached, solver, solved.products, kind)
        return out, products, error, solver.wanted

    def _missed(self, reached: float, solver: ToleranceSolver, products: int, kind: str) -> ToleranceError:
        wider = "" if kind == "float64" else ", or predictions in float64"
        capped = "Raise max_products, or use a larger tol."
        remedy = capped if products >= solver.max_products else f"Use a larger tol{wider}."
        proven = f"{reached:.2g}" if math.isfinite(reached) else "no error that can be proven"
        return ToleranceError(
            f"{type(solver).__name__} should reach a relative error of {solver.wanted:g} at alpha "
            f"{self._operator.alpha:g} and reached {proven} in {products} products. {remedy}"
        )

    def _side(self, draw: Draw | None, run: int, *, transposed: bool) -> ToleranceSide:
        if draw is None and transposed in self._whole:
            return self._whole[transposed]
        transition = self._operator.transition if draw is None else self._left(draw, run)
        normalization, symmetric = self._operator.normalization, self._solver.symmetric
        if transposed:
            transition, normalization = transition.transpose, _TRANSPOSED[normalization]
        norm = "euclidean" if symmetric else _NORM_OF[normalization]
        side = ToleranceSide(transition, self._operator.alpha, self._kernels, norm, symmetrised=symmetric)
        if draw is None:
            self._whole[transposed] = side
        return side

    def _left(self, draw: Draw, run: int) -> Transition:
        """Return what a run's dropout leaves, kept for the backward pass."""
        key = (int(draw.seeds[run]), draw.number, draw.probability)
        if key not in self._dropped:
            if len(self._dropped) >= len(draw.seeds):
                self._dropped.clear()
            self._dropped[key] = self._operator.dropped(draw, run)
        return self._dropped[key]


@final
class ToleranceSide:
    """z = (1 - alpha) T z + alpha h in the variables u = S_c z, and the norm that certifies it.

    Parameters
    ----------
    transition, alpha, kernels
        T, the teleport probability in (0, 1), and the operations of the backend.
    norm
        The norm in which T is at most 1, and in which the certificate holds.
    symmetrised
        Whether that is the 2-norm in the variables of the symmetric A_hat, for every normalisation.
    """

    def __init__(
        self, transition: Transition, alpha: float, kernels: Kernels, norm: Norm, *, symmetrised: bool
    ) -> None:
        # a scale of 0 belongs to an empty column: that u is not received, and any other scale serves
        columns = np.where(transition.column_scale > 0, transition.column_scale, 1.0)
        scale = transition.row_scale * columns
        # the degrees, or what takes u back to z
        measure = 1.0 / scale if symmetrised else columns**-2.0 if norm == "euclidean" else 1.0 / columns
        structure = (transition.indptr, transition.indices, transition.weights)
        moved = Transition(*structure, scale, np.ones_like(scale), transition.symmetric)
        self._alpha, self._scale_back = alpha, columns[:, None]
        self._copies: dict[tuple[str, str], Array] = {}
        self._system = System(moved, alpha, measure, norm)
        self._solves = kernels.solves(self._system)
        rows, columns = np.diff(transition.indptr), np.bincount(transition.indices, minlength=1)
        self._longest = int(max(rows.max(initial=0), columns.max()))

    def solve(self, predictions: Array, solver: ToleranceSolver, name: str = "H") -> tuple[Array, Solved]:
        """Return Z for one run of predictions (n, c) in float32 or float64, and how the solve ended.

        Columns are brought to size one first: squares cannot overflow. `name` is what predictions are in errors.
        """
        largest = on_host(module_of(predictions).amax(abs(predictions), axis=0))  # a few numbers, in one transfer
        if not np.isfinite(largest).all():
            reject(name, type(solver).__name__, "free of NaN and infinity", "NaN or infinite values")
        powers = np.ldexp(np.ones_like(largest), np.frexp(largest)[1] - 1)
        units = np.where(largest > 0, powers, np.ones_like(largest))
        wide = units.astype(np.float64)
        ordinary = bool(((wide < ORDINARY) & (wide > 1.0 / ORDINARY)).all())
        unit, columns = beside(units, predictions), self._columns_like(predictions)
        own = predictions / unit
        own *= self._alpha * columns
        ended = solver.run(self._solves, own, self._alpha)
        value = ended.value / columns
        value *= unit
        if type_name(value) == "float64" and ordinary:
            proven = self._proven(ended, compensated=False)
            if certificate.worst_error(self._alpha, proven) <= solver.wanted:
                return value, proven
        return self._verified(predictions, unit, value, ended, solver)

    def lost(self, value: Array, rounded: Array) -> float:
        """Return by how much Z was moved by rounding, in relation to its norm: that of the worst column."""
        wide = cast(value, "float64")
        columns = self._columns_like(wide)
        moved, size = (self._solves.norms(one * columns) for one in (cast(rounded, "float64") - wide, wide))
        rounding = (len(value) + 16) * EPS["float64"]  # of the norms, as in `with_rounding`
        with np.errstate(divide="ignore"):
            parts = np.divide(moved, size, out=np.zeros_like(moved), where=moved > 0)
        return float(parts.max()) * (1.0 + rounding)

    def _columns_like(self, like: Array) -> Array:
        """Return S_c, (n, 1), on the device and in the float type of an array, moved there once."""
        key = device_of(like), type_name(like)
        if key not in self._copies:
            self._copies[key] = cast(beside(self._scale_back, like), key[1])
        return self._copies[key]

    def _proven(self, ended: Solved, *, compensated: bool) -> Solved:
        """Return a solve with what its residual in float64 proves, its rounding counted."""
        weighted = self._system.transition.weights is not None
        return certificate.with_rounding(ended, self._longest, weighted=weighted, compensated=compensated)

    def _verified(
        self, predictions: Array, unit: Array, value: Array, ended: Solved, solver: ToleranceSolver
    ) -> tuple[Array, Solved]:
        """Measure the residual of Z itself in float64, and solve for what is missing as long as that helps.

        The products that only measure are not counted.
        """
        alpha, kind, unit = self._alpha, type_name(value), cast(unit, "float64")
        own = cast(predictions, "float64") / unit
        columns = self._columns_like(own)
        own *= alpha * columns
        products, last, again = ended.products, 0.0, False
        while True:
            state = cast(value, "float64") / unit
            state *= columns
            residual = self._solves.residual(own, state)
            norm, size = self._solves.norms(residual), self._solves.norms(state)
            ended = self._proven(Solved(state, products, norm, size), compensated=self._solves.compensated)
            reached, left = certificate.worst_error(alpha, ended), solver.max_products - products
            if reached <= solver.wanted or left < 1 or (again and not reached < 0.5 * last):
                return value, ended
            tol = max(min(0.25 * solver.wanted / reached, 0.1), certificate.least_error(alpha, kind))
            change = replace(solver, tol=tol, max_products=left).run(self._solves, cast(residual, kind), alpha)
            products, last, again = products + change.products, reached, True
            value = cast((state + change.value) / columns * unit, kind)


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
        enough = math.ceil(math.acosh((2.0 - alpha) / certificate.stop_ratio(alpha, self.wanted)) / rate) + 2
        return Limits(certificate.stop_ratio(alpha, self.wanted), near, min(enough, self.max_products))

    def run(self, solves: Solves, own: Array, alpha: float) -> Solved:
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
        near, stop = int(0.6 * math.acosh(1.0 / self.wanted) / rate), certificate.stop_ratio(alpha, self.wanted)
        condition = math.sqrt((2.0 - alpha) / alpha)  # of the norms of residual and energy
        enough = math.ceil(math.acosh(2.0 * condition * (2.0 - alpha) / stop) / rate) + 10
        return Limits(MARGIN * stop, near, min(enough, self.max_products))

    def run(self, solves: Solves, own: Array, alpha: float) -> Solved:
        limits = self.limits(alpha)
        ended = solves.conjugate_gradient(own, None, limits)
        # a result in float32 is judged by its residual in float64 in any case, see `ToleranceSide`
        if type_name(own) != "float64" or self.wanted >= DRIFT_UNITS * EPS["float64"] / alpha:
            # |u| grows from step to step, so a step p with its image is at most 2 |u|: twice the rounding of a residual
            return replace(ended, carried=1 + 2 * ended.products)
        return self._verified(solves, own, alpha, limits, ended)

    def _verified(self, solves: Solves, own: Array, alpha: float, limits: Limits, ended: Solved) -> Solved:
        """Make a power step, which leaves at most 1 - alpha of the residual it measures; begin again from it if needed."""
        products = ended.products
        while True:
            step = solves.contraction(own, ended.value, Limits(0.0, 1, 1))
            products += 1
            residual = (1.0 - alpha) * step.residual
            good = bool((residual <= certificate.stop_ratio(alpha, self.wanted) * step.size).all())
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
        stop = certificate.stop_ratio(alpha, self.wanted) / (1.0 - alpha)
        enough = math.ceil(math.log(2.0 * (2.0 - alpha) / (alpha * stop)) / rate) + 2
        return Limits(stop, int(0.5 * math.log(1.0 / self.wanted) / rate), min(max(enough, 1), self.max_products))

    def run(self, solves: Solves, own: Array, alpha: float) -> Solved:
        ended = solves.contraction(own, own / alpha, self.limits(alpha))
        return Solved(ended.value, ended.products, (1.0 - alpha) * ended.residual, ended.size)


# By the names that commands and classifiers use.
TOLERANCE_SOLVERS: Mapping[str, type[ToleranceSolver]] = MappingProxyType(
    {"chebyshev": Chebyshev, "cg": ConjugateGradient, "contraction": Contraction}
)


def check_solver(solver: str, function: str) -> None:
    """Refuse a solver that cannot be used for directed graphs."""
    if TOLERANCE_SOLVERS[solver].symmetric:
        remedy = Remedy(settings={"solver": "contraction"})
        reject("solver", function, "'contraction' for a directed graph", repr(solver), remedy=remedy)
