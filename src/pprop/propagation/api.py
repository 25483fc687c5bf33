"""`propagate` and `solve`: propagation of given predictions."""

from __future__ import annotations

import math
import time
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from pprop._validate import check_array, describe, reject
from pprop.graph import Graph
from pprop.kernels import choose_backend
from pprop.propagation.certificate import CertifiedSolution, ToleranceOutcome, working_type
from pprop.propagation.solution import Solution, Statistics
from pprop.propagation.solvers import LinearMap, PowerIteration, Solver, apply_map, check_solver
from pprop.propagation.tolerance import ToleranceMap, ToleranceSolver
from pprop.settings import ALPHA, BACKEND, NORMALIZATION, SELF_LOOPS


def propagate(
    graph: Graph,
    H: ArrayLike | Tensor,
    alpha: float = ALPHA.default,
    solver: Solver = PowerIteration(),
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
    *,
    backend: str = BACKEND.default,
) -> Any:
    """Spread predictions over a graph by personalized PageRank.

    Solves Z = (1 - alpha) T Z + alpha H, by K power steps (APPNP), exactly (PPNP) or to a tolerance.

    Parameters
    ----------
    graph
        The graph, n nodes.
    H
        Predictions of each node on its own, numpy or torch, shape (n,) or (n, c): logits, probabilities, scores. NaN,
        infinity and numbers whose Z would be beyond the float type are refused.
    alpha
        Teleport probability in (0, 1]: the weight of a node's own prediction. ``PowerIteration`` also takes 0,
        ``Limit`` only 0.
        (scikit-learn's label spreading and networkx's pagerank call 1 - alpha alpha.)
    solver
        ``PowerIteration(steps)``, ``Exact()`` or ``Limit()``; to a certified tolerance, ``Chebyshev(tol)`` and
        ``ConjugateGradient(tol)`` on undirected graphs, ``Contraction(tol)`` on all.
    normalization
        ``"sym"``, ``"row"`` or ``"col"``; see `transition_matrix`. Use "row" for probabilities: they still sum to one.
    self_loops
        Whether every node also listens to itself.
    backend
        ``"auto"``, or ``"numba"`` (`H` on the CPU), ``"triton"`` (on a GPU), ``"reference"`` (anywhere).

    Returns
    -------
    array or tensor
        Z, of the kind, shape and (floating) dtype of `H`. Gradients flow to a torch `H`.

    References
    ----------
    Gasteiger, Bojchevski and Günnemann, "Predict then Propagate", ICLR 2019, equations (3) and (4).

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> H = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    >>> propagate(path, H, alpha=0.2).round(3)
    array([0.471, 0.25 , 0.109, 0.051, 0.027])
    """
    operator, solver = check_solver(graph, alpha, solver, normalization, self_loops, "propagate")
    tensor, restore = _as_batch(graph, H, "propagate")
    chosen = choose_backend(backend, tensor.device.type, "propagate")
    return restore(_apply(solver.bind(operator, chosen.kernels), tensor, "propagate"))


@overload
def solve(  # pyright: ignore[reportOverlappingOverload]  a solver to a tolerance is a solver, with more to tell
    graph: Graph,
    H: ArrayLike | Tensor,
    alpha: float = ALPHA.default,
    *,
    solver: ToleranceSolver,
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
    backend: str = BACKEND.default,
) -> CertifiedSolution: ...


@overload
def solve(
    graph: Graph,
    H: ArrayLike | Tensor,
    alpha: float,
    solver: ToleranceSolver,
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
    *,
    backend: str = BACKEND.default,
) -> CertifiedSolution: ...


@overload
def solve(
    graph: Graph,
    H: ArrayLike | Tensor,
    alpha: float = ALPHA.default,
    solver: Solver = PowerIteration(),
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
    *,
    backend: str = BACKEND.default,
) -> Solution: ...


def solve(
    graph: Graph,
    H: ArrayLike | Tensor,
    alpha: float = ALPHA.default,
    solver: Solver = PowerIteration(),
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
    *,
    backend: str = BACKEND.default,
) -> Solution | CertifiedSolution:
    """Propagate as `propagate` does, and return the result with its residual, cost and backend.

    Takes the arguments of `propagate`. Measuring the residual costs one more product. A solver to a tolerance gives a
    `CertifiedSolution`, with a proven bound of its relative error.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> solution = solve(path, np.eye(5), alpha=0.5, solver=PowerIteration(steps=50))
    >>> solution.outcome.value, solution.statistics.matrix_products, solution.statistics.error_bound < 1e-14
    ('fixed steps', 50, True)
    """
    begin = time.perf_counter()
    operator, solver = check_solver(graph, alpha, solver, normalization, self_loops, "solve")
    tensor, restore = _as_batch(graph, H, "solve")
    chosen = choose_backend(backend, tensor.device.type, "solve")
    linear_map = solver.bind(operator, chosen.kernels)
    value = _apply(linear_map, tensor, "solve")
    seconds = time.perf_counter() - begin
    given, found = (one.detach().to(working_type(tensor.dtype)) for one in (tensor, value))
    largest = torch.cat((given.new_zeros(1), _largest(given).flatten(), _largest(found).flatten())).amax()
    unit = _excess(largest, 1 / 4)  # squares must not overflow
    norm, residual = operator.residual_norm(operator.residual(given / unit, found / unit, chosen.kernels))
    residual *= float(unit)
    statistics = Statistics(
        backend=chosen.name,
        matrix_products=linear_map.matrix_products,
        residual=residual,
        norm=norm,
        error_bound=residual / operator.alpha if operator.alpha > 0 else None,
        seconds=seconds,
    )
    if isinstance(linear_map, ToleranceMap):
        return CertifiedSolution(restore(value), ToleranceOutcome.REACHED, statistics, linear_map.certificate)
    return Solution(restore(value), solver.outcome, statistics)


def _apply(linear_map: LinearMap, tensor: Tensor, function: str) -> Tensor:
    """Return Z for H of shape (1, n, c): finite, or refused."""
    value = apply_map(linear_map, tensor, None)
    if _finite(value):
        return value
    # numbers near the limit of the type have sums beyond it, also on the way to a mean; powers of two change no digit
    wide = tensor.to(working_type(tensor.dtype))
    unit = _excess(_largest(wide.detach()), 1 / 2)
    value = (apply_map(linear_map, wide / unit, None) * unit).to(tensor.dtype)
    if not _finite(value):
        name = str(tensor.dtype).removeprefix("torch.")
        got = f"values up to {float(_largest(wide.detach()).amax()):.3g}"
        remedy = "Divide H by a constant." if name == "float64" else "Divide H by a constant, or use float64."
        reject("H", function, f"small enough for Z to be finite in {name}", got, remedy=remedy)
    return value


def _finite(values: Tensor) -> bool:
    """Whether no value is NaN or infinite: in one pass, without arrays of answers."""
    if not values.numel():
        return True
    return all(math.isfinite(float(end)) for end in torch.aminmax(values.detach()))


def _largest(values: Tensor) -> Tensor:
    """Return the largest magnitude in every column of values (1, n, c), shape (1, 1, c)."""
    return torch.maximum(values.amax(dim=1, keepdim=True), -values.amin(dim=1, keepdim=True))


def _excess(largest: Tensor, share: float) -> Tensor:
    """Return the power of two by which numbers exceed a share of their type's exponents, 1 where they do not."""
    room = int(share * math.frexp(torch.finfo(largest.dtype).max)[1])
    return torch.ldexp(torch.ones_like(largest), (torch.frexp(largest).exponent - room).clamp(min=0))


def _as_batch(graph: Graph, H: object, function: str) -> tuple[Tensor, Any]:
    """Return H as a tensor of its own float type, or float64, of shape (1, n, c), and the function that undoes it."""
    expected = f"an array of real numbers of shape ({graph.n_nodes},) or ({graph.n_nodes}, c)"
    tensor = H if isinstance(H, Tensor) else _from_numpy(H, function, expected)
    wrong_shape = tensor.ndim not in (1, 2) or tensor.shape[0] != graph.n_nodes
    if wrong_shape or tensor.is_complex() or tensor.layout != torch.strided:
        reject("H", function, expected, describe(H))
    batch = tensor if tensor.is_floating_point() else tensor.to(torch.float64)
    batch = batch.reshape(1, graph.n_nodes, -1).contiguous()
    if not _finite(batch):
        reject("H", function, "free of NaN and infinity", f"{int((~torch.isfinite(batch)).sum())} such values")

    def restore(value: Tensor) -> Any:
        result = value.reshape(tensor.shape)
        return result if isinstance(H, Tensor) else result.numpy()

    return batch, restore


def _from_numpy(H: object, function: str, expected: str) -> Tensor:
    """Return a copy of an array, or of what numpy makes one of; torch knows neither long nor byte-swapped numbers."""
    given = check_array(H, "H", function, expected)
    if given.dtype.kind not in "buif":
        reject("H", function, expected, describe(H))
    wide = np.float64 if given.dtype.itemsize > 8 else given.dtype.newbyteorder("=")
    return torch.from_numpy(np.array(given, dtype=wide, copy=True))
