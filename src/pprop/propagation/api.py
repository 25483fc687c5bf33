"""`propagate` and `solve`: propagation of given predictions, arrays or tensors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._validate import check_array, describe, reject
from pprop.graph import Graph
from pprop.graph.rows import NodeNames, like_given, rows_of_nodes
from pprop.kernels import Backend, Kernels, LinearMap, choose_backend
from pprop.kernels import arrays as on
from pprop.kernels.arrays import Array, is_tensor
from pprop.propagation.operator import PPROperator, check_operator
from pprop.propagation.solvers import PowerIteration, RowSolver, Solution, Solver, Statistics, mapped, working_type
from pprop.settings import ALPHA, BACKEND, NORMALIZATION, SELF_LOOPS

EVERY_SOLVER = "PowerIteration(steps), Exact(), Limit(), Chebyshev(tol), ConjugateGradient(tol) or Contraction(tol)"
S = TypeVar("S", bound=Solution, covariant=True)

_BOUND = 4  # propagations that a graph keeps on a GPU
_SMALL = 2**22  # entries at most of a graph that does


class SolverOf(Protocol[S]):
    """A `Solver` by what `solve` returns for it: a `Solution`, or a `CertifiedSolution` of a solver to a tolerance."""

    def solution(self, value: Any, statistics: Statistics, linear_map: LinearMap) -> S: ...


def propagate(
    graph: Graph,
    H: ArrayLike | Array,
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
        infinity and numbers whose Z would be beyond the float type are refused. Rows of a pandas frame or series are
        found by the ids of the graph, where its index holds them; an index of 0 to n - 1 keeps the order of the nodes.
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
        Z, of the kind, shape and (floating) dtype of `H`: of a frame or series one with its index and columns. Gradients
        flow to a torch `H`.

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
    batch, restore = _as_batch(graph, H, "propagate")
    chosen = choose_backend(backend, on.device_of(batch), "propagate")
    batch, kernels = _on_backend(chosen, batch, "propagate")
    with _bound(operator, solver, chosen, kernels, batch) as linear_map:
        return restore(_apply(linear_map, batch, "propagate"))


def solve(
    graph: Graph,
    H: ArrayLike | Array,
    alpha: float = ALPHA.default,
    solver: SolverOf[S] = PowerIteration(),
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
    *,
    backend: str = BACKEND.default,
) -> S:
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
    operator, checked = check_solver(graph, alpha, solver, normalization, self_loops, "solve")
    batch, restore = _as_batch(graph, H, "solve")
    chosen = choose_backend(backend, on.device_of(batch), "solve")
    batch, kernels = _on_backend(chosen, batch, "solve")
    with _bound(operator, checked, chosen, kernels, batch) as linear_map:
        value = _apply(linear_map, batch, "solve")
        seconds = time.perf_counter() - begin
        given, found = (on.cast(_plain(one), working_type(on.type_name(one))) for one in (batch, value))
        largest = max(float(_largest(one).max(initial=0.0)) for one in (given, found))
        unit = float(_excess(np.array(largest, _largest(given).dtype), 1 / 4))  # squares must not overflow
        norm, residual = operator.residual_norm(given / unit, found / unit, kernels)
        residual *= unit
        error_bound = residual / operator.alpha if operator.alpha > 0 else None
        statistics = Statistics(chosen.name, linear_map.matrix_products, residual, norm, error_bound, seconds)
        return solver.solution(restore(value), statistics, linear_map)


def check_solver(
    graph: Graph, alpha: object, solver: object, normalization: str, self_loops: bool, function: str
) -> tuple[PPROperator, Solver]:
    """Return the operator and the solver that arguments of the public function `function` describe."""
    check_operator(graph, normalization, self_loops, function)
    if not isinstance(solver, Solver):
        reject("solver", function, EVERY_SOLVER, describe(solver))
    return PPROperator(graph, solver.check_alpha(alpha, function), normalization, self_loops), solver


def _on_backend(backend: Backend, batch: Array, function: str) -> tuple[Array, Kernels]:
    """Return H of shape (1, n, c), finite, as a backend computes on it, and the backend's kernels for it."""
    if not is_tensor(batch):
        batch = backend.own(batch)
    if not on.all_finite(batch):
        strange = int((~np.isfinite(on.on_host(batch))).sum())
        reject("H", function, "free of NaN and infinity", f"{strange} such values")
    return batch, backend.kernels if is_tensor(batch) else backend.own_kernels


@contextmanager
def _bound(
    operator: PPROperator, solver: Solver, backend: Backend, kernels: Kernels, like: Array
) -> Generator[LinearMap]:
    """Bind a solver to an operator; on a GPU, where that takes longer than the solve, a small graph keeps it for the next.

    While it is in use it is not there to be found: two threads have one each.
    """
    large = len(operator.transition.indices) > _SMALL
    if on.device_of(like) != "cuda" or isinstance(solver, RowSolver) or large:
        yield solver.bind(operator, kernels)
        return
    kept: dict[object, LinearMap] = operator.graph.of_structure.setdefault("bound", {})
    key = solver, operator.alpha, operator.normalization, operator.self_loops, backend.name, like.device
    linear_map = kept.pop(key, None) or solver.bind(operator, kernels)
    yield linear_map
    kept[key] = linear_map
    for former in list(kept)[:-_BOUND]:
        kept.pop(former, None)


def _mapping(batch: Array) -> Callable[..., Array]:
    """Return what applies a linear map to H: of a tensor, with gradients."""
    if not is_tensor(batch):
        return mapped
    from pprop.propagation.gradients import apply_map

    return apply_map


def _apply(linear_map: LinearMap, batch: Array, function: str) -> Array:
    """Return Z for H of shape (1, n, c): finite, or refused."""
    apply, name = _mapping(batch), on.type_name(batch)
    with np.errstate(over="ignore", invalid="ignore"):  # looked for below
        value = apply(linear_map, batch, None)
        if on.all_finite(value):
            return value
        # numbers near the limit of the type have sums beyond it, also on the way to a mean; powers of two change no digit
        wide = on.cast(batch, working_type(name))
        largest = _largest(wide)
        unit = on.beside(_excess(largest, 1 / 2), wide)
        value = on.cast(apply(linear_map, wide / unit, None) * unit, name)
    if not on.all_finite(value):
        got = f"values up to {float(largest.max()):.3g}"
        remedy = "Divide H by a constant." if name == "float64" else "Divide H by a constant, or use float64."
        reject("H", function, f"small enough for Z to be finite in {name}", got, remedy=remedy)
    return value


def _plain(values: Array) -> Array:
    return values.detach() if is_tensor(values) else values


def _largest(values: Array) -> NDArray[Any]:
    """Return the largest magnitude in every column of values (1, n, c), shape (1, 1, c)."""
    module, plain = on.module_of(values), _plain(values)
    ends = module.amax(plain, axis=1, keepdims=True), -module.amin(plain, axis=1, keepdims=True)
    return on.on_host(module.maximum(*ends))


def _excess(largest: NDArray[Any], share: float) -> NDArray[Any]:
    """Return the power of two by which numbers exceed a share of their type's exponents, 1 where they do not."""
    room = int(share * math.frexp(float(np.finfo(largest.dtype).max))[1])
    return np.ldexp(np.ones_like(largest), np.maximum(np.frexp(largest)[1] - room, 0))


def _as_batch(graph: Graph, H: object, function: str) -> tuple[Array, Callable[[Array], Any]]:
    """Return H in its own float type, or float64, of shape (1, n, c), and the function that undoes it.

    Other arrays than tensors become numpy arrays, copied.
    """
    expected = f"an array of real numbers of shape ({graph.n_nodes},) or ({graph.n_nodes}, c)"
    order = None if is_tensor(H) else rows_of_nodes(H, NodeNames.of(graph), "H", function)
    given: Any = H if order is None else cast("Any", H).iloc[order]
    if is_tensor(given):
        sound = not given.is_complex() and str(given.layout) == "torch.strided"
        real = given.is_floating_point()
    else:
        given = _from_numpy(given, function, expected)
        sound, real = True, given.dtype.kind == "f"
    if not sound or given.ndim not in (1, 2) or given.shape[0] != graph.n_nodes:
        reject("H", function, expected, describe(H))
    shape = given.shape
    batch = given if real else on.cast(given, "float64")
    batch = batch.reshape(1, graph.n_nodes, math.prod(shape[1:]))
    batch = batch.contiguous() if is_tensor(batch) else np.ascontiguousarray(batch)

    def restore(value: Array) -> Any:
        result = value.reshape(shape)
        return result if is_tensor(H) else like_given(H, on.on_host(result), order)

    return batch, restore


def _from_numpy(H: object, function: str, expected: str) -> NDArray[Any]:
    """Return a copy of an array, or of what numpy makes one of; no kernel has long or byte-swapped numbers."""
    given = check_array(H, "H", function, expected)
    if given.dtype.kind not in "buif":
        reject("H", function, expected, describe(H))
    wide = np.float64 if given.dtype.itemsize > 8 else given.dtype.newbyteorder("=")
    return np.array(given, dtype=wide, copy=True)
