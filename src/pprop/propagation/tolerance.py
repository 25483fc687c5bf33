"""A solver to a tolerance and what it becomes on an operator: a linear map whose adjoint is a solve with the transpose.

Dropout drops edges of the graph and normalises what is left. Dropping entries of T and dividing the rest by the
probability of keeping them, as a fixed number of power steps can, leaves a matrix whose spectral radius is above
1 / (1 - alpha) on real graphs: it has no fixed point to solve for. What is left of the graph, normalised by its own
degrees, is a transition matrix like any other.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from pprop._errors import ToleranceError
from pprop._validate import check_float, check_int, reject
from pprop.graph import Graph, Transition, transition_matrix
from pprop.graph.transition import with_self_loops
from pprop.kernels import Draw, Kernels
from pprop.kernels.random_bits import EDGES, Bernoulli, keep_bits
from pprop.kernels.solves import Limits, Norm, Solved, Solves, System, column_norms
from pprop.propagation import certificate
from pprop.propagation.operator import LinearMap, PPROperator, working_type
from pprop.propagation.solvers import Solver

_NORM_OF: dict[str, Norm] = {"sym": "euclidean", "row": "max", "col": "sum"}
_TRANSPOSED: dict[str, str] = {"sym": "sym", "row": "col", "col": "row"}
# The norms of certificates: that of a symmetric system, and those of any.
_WEIGHTED = {"sym": "2-norm", "row": "2-norm weighted by the degrees", "col": "2-norm weighted by the inverse degrees"}
_PLAIN = {"sym": "2-norm", "row": "max-norm", "col": "1-norm"}
ORDINARY = 2.0**900  # columns whose largest number, or its inverse, is above this may overflow in float64 on the way


@dataclass(frozen=True)
class ToleranceSolver(Solver):
    """A solver that stops when the residual proves that every column is within a relative error of the fixed point.

    Its gradient is another solve, with the transpose, to the same tolerance: no step is stored.
    """

    tol: float | None = None
    max_products: int = 10_000

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
            remedy = "Use Contraction()." if self.tol is None else f"Use Contraction(tol={self.tol:g})."
            expected, got = "undirected", "a directed one"
            if not operator.graph.directed:  # its norm is weighted by them
                expected = 'of degrees within a factor of 2^64 in every component unless normalization is "sym"'
                got = "degrees that differ by more"
            reject("graph", type(self).__name__, expected, got, remedy=remedy)
        return ToleranceMap(self, operator, kernels)

    @abstractmethod
    def limits(self, alpha: float) -> Limits:
        """Return when to measure the residual and when to give up: after the products that theory needs at most."""

    @abstractmethod
    def run(self, solves: Solves, own: Tensor, alpha: float) -> Solved:
        """Solve for the right-hand side `own` = alpha h, (n, c), in the variables of `Solves`.

        `Solved.residual` bounds the residual of the value that is returned, but for the rounding of `Solved.carried` products.
        """


@final
class ToleranceMap(LinearMap):
    """Pi H and Pi^T G to a tolerance, (R, n, c) to (R, n, c), run by run.

    `matrix_products` and `certificate` are those of the last forward pass; of several runs, those of the slowest and of
    the largest error. A draw drops edges of the graph, see `dropped_transition`. The certificate is that of the result in
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

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        value, self.matrix_products, error, tol = self._apply(predictions, draw, transposed=False)
        self.certificate = certificate.Certificate(tol, error, self.certificate.norm)
        return value

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        return self._apply(gradient, draw, transposed=True)[0]

    def _apply(self, operand: Tensor, draw: Draw | None, *, transposed: bool) -> tuple[Tensor, int, float, float]:
        """Return the solution, the most products of a run, the relative error of the worst column, and the tolerance."""
        alpha, dtype = self._operator.alpha, operand.dtype
        name = type(self._solver).__name__
        solver = replace(self._solver, tol=certificate.settle_tolerance(self._solver.tol, alpha, dtype, name))
        if alpha == 1.0 or operand.numel() == 0:
            return operand.clone(), 0, 0.0, solver.wanted
        inner = replace(solver, tol=certificate.error_before_rounding(solver.wanted, dtype))
        out, products, error = torch.empty_like(operand), 0, 0.0
        for run, one in enumerate(operand.to(working_type(dtype))):
            side = self._side(draw, run, transposed=transposed)
            value, solved = side.solve(one, inner, "gradient" if transposed else "H")
            out[run] = value
            reached = certificate.worst_error(alpha, solved)
            if not transposed and value.dtype != dtype:
                reached = certificate.rounded_error(reached, side.lost(value, out[run]))
            products, error = max(products, solved.products), max(error, reached)
            if reached > solver.wanted:
                raise self._missed(reached, solver, solved.products, dtype)
        return out, products, error, solver.wanted

    def _missed(self, reached: float, solver: ToleranceSolver, products: int, dtype: torch.dtype) -> ToleranceError:
        wider = "" if dtype == torch.float64 else ", or predictions in float64"
        capped = products >= solver.max_products
        remedy = "Raise max_products, or use a larger tol." if capped else f"Use a larger tol{wider}."
        proven = f"{reached:.2g}" if math.isfinite(reached) else "none that can be proven"
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
            self._dropped[key] = dropped_transition(self._operator, draw, run)
        return self._dropped[key]


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
        Whether that is the 2-norm in the variables of the symmetric A_hat, for every normalisation.
    """

    def __init__(
        self, transition: Transition, alpha: float, kernels: Kernels, norm: Norm, *, symmetrised: bool
    ) -> None:
        # a scale of 0 belongs to an empty column: that u is not received, and any other scale serves
        columns = np.where(transition.column_scale > 0, transition.column_scale, 1.0)
        scale = transition.row_scale * columns
        if symmetrised:
            measure = 1.0 / scale  # the degrees
        else:
            measure = columns**-2.0 if norm == "euclidean" else 1.0 / columns
        structure = (transition.indptr, transition.indices, transition.weights)
        moved = Transition(*structure, scale, np.ones_like(scale), transition.symmetric)
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
            if certificate.worst_error(self._alpha, proven) <= solver.wanted:
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
        return certificate.with_rounding(ended, self._longest, weighted=weighted, compensated=compensated)

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
            reached, left = certificate.worst_error(alpha, ended), solver.max_products - products
            if reached <= solver.wanted or left < 1 or (again and not reached < 0.5 * last):
                return value, ended
            tol = max(min(0.25 * solver.wanted / reached, 0.1), certificate.least_error(alpha, value.dtype))
            change = replace(solver, tol=tol, max_products=left).run(self._solves, residual.to(value.dtype), alpha)
            products, last, again = products + change.products, reached, True
            value = ((state + change.value) / columns).mul_(unit).to(value.dtype)


def dropped_transition(operator: PPROperator, draw: Draw, run: int) -> Transition:
    """Return the transition matrix of the graph without the edges that a run drops in an epoch.

    An undirected edge is dropped as a whole; a self-loop never. Which ones are dropped is a function of the run's seed,
    the epoch and the two nodes: the entry (i, j), i < j, of an undirected edge has the mask that a single power step would
    give it.

    Parameters
    ----------
    operator
        With the graph and its normalisation.
    draw
        Seeds, epoch and probability.
    run
        Which of the seeds.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> dropped = dropped_transition(PPROperator(path, 0.1, "row"), Draw(torch.tensor([7]), 0, 0.5), 0)
    >>> dropped.to_scipy().sum(axis=1).tolist(), len(dropped.indices) < 13
    ([1.0, 1.0, 1.0, 1.0, 1.0], True)
    """
    whole = operator.transition
    n = whole.n_nodes
    rows = np.repeat(np.arange(n), np.diff(whole.indptr))
    columns = whole.indices.astype(np.int64)
    undirected = not operator.graph.directed
    first, second = (np.minimum(rows, columns), np.maximum(rows, columns)) if undirected else (rows, columns)
    rule = Bernoulli.from_probability(draw.probability)
    seed, ends = draw.seeds[run].cpu(), (torch.from_numpy(first), torch.from_numpy(second))
    kept = keep_bits(seed, EDGES, *ends, torch.tensor(draw.number), rule).numpy() | (rows == columns)
    if whole.folded:  # into the weights, which are then those of T
        values = with_self_loops(operator.graph, operator.self_loops).data
    else:
        values = np.ones(len(columns)) if whole.weights is None else whole.weights
    left = sparse.csr_array((values[kept], (rows[kept], columns[kept])), shape=(n, n))
    # the self-loops are among the entries already; a node that has lost all of its edges gets one in any case
    graph = Graph.from_scipy(left, directed=operator.graph.directed)
    return transition_matrix(graph, operator.normalization, self_loops=False)
