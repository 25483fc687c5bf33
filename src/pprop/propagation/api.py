"""`propagate` and `solve`: propagation of given predictions; and `Propagation`, the same as a torch module."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast, final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from pprop._validate import check_array, check_choice, check_float, check_int, describe, reject
from pprop.graph import Graph
from pprop.graph.rows import NodeNames, like_given, rows_of_nodes
from pprop.kernels import BACKENDS, Backend, Draw, LinearMap, choose_backend
from pprop.kernels.random_bits import signed
from pprop.propagation.operator import PPROperator, check_operator
from pprop.propagation.solvers import PowerIteration, RowSolver, Solution, Solver, Statistics, apply_map, working_type
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
    operator, solver = _check_solver(graph, alpha, solver, normalization, self_loops, "propagate")
    tensor, restore = _as_batch(graph, H, "propagate")
    chosen = choose_backend(backend, tensor.device.type, "propagate")
    with _bound(operator, solver, chosen, tensor.device) as linear_map:
        return restore(_apply(linear_map, tensor, "propagate"))


def solve(
    graph: Graph,
    H: ArrayLike | Tensor,
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
    operator, checked = _check_solver(graph, alpha, solver, normalization, self_loops, "solve")
    tensor, restore = _as_batch(graph, H, "solve")
    chosen = choose_backend(backend, tensor.device.type, "solve")
    with _bound(operator, checked, chosen, tensor.device) as linear_map:
        value = _apply(linear_map, tensor, "solve")
        seconds = time.perf_counter() - begin
        given, found = (one.detach().to(working_type(tensor.dtype)) for one in (tensor, value))
        largest = torch.cat((given.new_zeros(1), _largest(given).flatten(), _largest(found).flatten())).amax()
        unit = _excess(largest, 1 / 4)  # squares must not overflow
        norm, residual = operator.residual_norm(given / unit, found / unit, chosen.kernels)
        residual *= float(unit)
        error_bound = residual / operator.alpha if operator.alpha > 0 else None
        statistics = Statistics(chosen.name, linear_map.matrix_products, residual, norm, error_bound, seconds)
        return solver.solution(restore(value), statistics, linear_map)


@final
class Propagation(nn.Module):
    """The propagation layer of PPNP and APPNP, bound to one graph. It has no parameters.

    In training mode with ``dropout > 0``, entries of the propagation matrix are dropped: a fresh mask of (1-alpha) T at
    every power step, always from the undropped matrix (``PowerIteration``), or a mask of the dense matrix (``Exact``, ``Limit``).
    A solver to a tolerance drops edges of the graph and normalises what is left (`docs/propagation.md`).
    The masks are a function of `seed` and of the number of training passes made so far, which is part of the state dict;
    so a pass that is computed a second time, as `torch.utils.checkpoint` does, draws other masks.
    As in torch's layers, inputs are not checked for NaN and infinity, which spread to other nodes of their column,
    nor for numbers so large that sums of them overflow. `propagate` and solvers to a tolerance refuse them.
    `torch.compile` compiles what is before and after the layer, and leaves the layer itself to its own kernels; so
    ``fullgraph=True`` is not possible.

    Parameters
    ----------
    graph
        The graph, n nodes.
    alpha, solver, normalization, self_loops
        As in `propagate`.
    dropout
        Probability of dropping an entry, in [0, 1).
    seed
        Seed of the masks: one integer, or R of them for inputs of shape (R, n, c).
    backend
        ``"auto"``, or ``"numba"`` (inputs on the CPU), ``"triton"`` (on a GPU), ``"reference"`` (anywhere).

    Examples
    --------
    >>> import scipy.sparse as sp, torch
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> model = nn.Sequential(nn.Linear(3, 2), Propagation(path, alpha=0.1, dropout=0.5))
    >>> model(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        graph: Graph,
        alpha: float = ALPHA.default,
        solver: Solver = PowerIteration(),
        normalization: str = NORMALIZATION.default,
        self_loops: bool = SELF_LOOPS.default,
        *,
        dropout: float = 0.0,
        seed: int | Sequence[int] = 0,
        backend: str = BACKEND.default,
    ) -> None:
        super().__init__()
        self.operator, self.solver = _check_solver(graph, alpha, solver, normalization, self_loops, "Propagation")
        self.dropout = check_float(dropout, "dropout", "Propagation", "[0, 1)")
        self.backend = check_choice(backend, "backend", "Propagation", ["auto", *(b.name for b in BACKENDS)])
        self.passes = 0
        self._seeds = _seed_tensor(seed)
        self._bound: tuple[str, LinearMap] | None = None

    def forward(self, predictions: Tensor) -> Tensor:
        """Return Z for H of shape (n, c) or (R, n, c)."""
        if torch.compiler.is_dynamo_compiling():  # asked here: to decorate it would import Dynamo, which takes seconds
            compiler: Any = torch.compiler
            return compiler.disable(Propagation._forward)(self, predictions)
        return self._forward(predictions)

    def _forward(self, predictions: Tensor) -> Tensor:
        n = self.operator.graph.n_nodes
        expected = f"a float tensor of shape ({n}, c) or (R, {n}, c)"
        sound = isinstance(predictions, Tensor) and predictions.is_floating_point() and predictions.ndim in (2, 3)
        if not sound or predictions.shape[-2] != n:
            reject("predictions", "Propagation", expected, describe(predictions))
        batch = predictions if predictions.ndim == 3 else predictions[None]
        draw = None
        if self.training and self.dropout > 0:
            if len(self._seeds) != len(batch):
                reject("seed", "Propagation", f"{len(batch)} integers, one per run", f"{len(self._seeds)}")
            draw = Draw(self._seeds.to(batch.device), self.passes, self.dropout)
            self.passes += 1
        value = apply_map(self._map(batch), batch, draw)
        return value if predictions.ndim == 3 else value[0]

    def extra_repr(self) -> str:
        """Return what `repr` shows between the brackets."""
        return f"alpha={self.operator.alpha}, solver={self.solver}, dropout={self.dropout}"

    def get_extra_state(self) -> dict[str, int]:
        """Return what the state dict keeps besides tensors."""
        return {"passes": self.passes}

    def set_extra_state(self, state: dict[str, int]) -> None:
        """Restore what `get_extra_state` returned."""
        self.passes = int(state["passes"])

    def _map(self, like: Tensor) -> LinearMap:
        backend = choose_backend(self.backend, like.device.type, "Propagation")
        if self._bound is None or self._bound[0] != backend.name:
            self._bound = backend.name, self.solver.bind(self.operator, backend.kernels)
        return self._bound[1]


def _check_solver(
    graph: Graph, alpha: object, solver: object, normalization: str, self_loops: bool, function: str
) -> tuple[PPROperator, Solver]:
    """Return the operator and the solver that arguments of the public function `function` describe."""
    check_operator(graph, normalization, self_loops, function)
    if not isinstance(solver, Solver):
        reject("solver", function, EVERY_SOLVER, describe(solver))
    return PPROperator(graph, solver.check_alpha(alpha, function), normalization, self_loops), solver


@contextmanager
def _bound(operator: PPROperator, solver: Solver, backend: Backend, device: torch.device) -> Generator[LinearMap]:
    """Bind a solver to an operator; on a GPU, where that takes longer than the solve, a small graph keeps it for the next.

    While it is in use it is not there to be found: two threads have one each.
    """
    if device.type != "cuda" or isinstance(solver, RowSolver) or len(operator.transition.indices) > _SMALL:
        yield solver.bind(operator, backend.kernels)
        return
    kept: dict[object, LinearMap] = operator.graph.of_structure.setdefault("bound", {})
    key = solver, operator.alpha, operator.normalization, operator.self_loops, backend.name, device
    linear_map = kept.pop(key, None) or solver.bind(operator, backend.kernels)
    yield linear_map
    kept[key] = linear_map
    for former in list(kept)[:-_BOUND]:
        kept.pop(former, None)


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
    ends = torch.stack(torch.aminmax(values.detach())).cpu()  # one wait for a device
    return all(math.isfinite(float(end)) for end in ends)


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
    order = None if isinstance(H, Tensor) else rows_of_nodes(H, NodeNames.of(graph), "H", function)
    given: Any = H if order is None else cast("Any", H).iloc[order]
    tensor = given if isinstance(given, Tensor) else _from_numpy(given, function, expected)
    wrong_shape = tensor.ndim not in (1, 2) or tensor.shape[0] != graph.n_nodes
    if wrong_shape or tensor.is_complex() or tensor.layout != torch.strided:
        reject("H", function, expected, describe(H))
    batch = tensor if tensor.is_floating_point() else tensor.to(torch.float64)
    batch = batch.reshape(1, graph.n_nodes, -1).contiguous()
    if not _finite(batch):
        reject("H", function, "free of NaN and infinity", f"{int((~torch.isfinite(batch)).sum())} such values")

    def restore(value: Tensor) -> Any:
        result = value.reshape(tensor.shape)
        return result if isinstance(H, Tensor) else like_given(H, result.numpy(), order)

    return batch, restore


def _from_numpy(H: object, function: str, expected: str) -> Tensor:
    """Return a copy of an array, or of what numpy makes one of; torch knows neither long nor byte-swapped numbers."""
    given = check_array(H, "H", function, expected)
    if given.dtype.kind not in "buif":
        reject("H", function, expected, describe(H))
    wide = np.float64 if given.dtype.itemsize > 8 else given.dtype.newbyteorder("=")
    return torch.from_numpy(np.array(given, dtype=wide, copy=True))


def _seed_tensor(seed: object) -> Tensor:
    """Return the seeds of the runs as torch stores them, in two's complement."""
    seeds = cast("object", seed.tolist() if isinstance(seed, Tensor) else seed)
    each = list(cast("Iterable[object]", seeds)) if isinstance(seeds, Iterable) else [seeds]
    if not each:
        reject("seed", "Propagation", "an integer, or one integer per run", "none")
    return torch.tensor([signed(check_int(s, "seed", "Propagation", low=-(2**63), high=2**64 - 1)) for s in each])
