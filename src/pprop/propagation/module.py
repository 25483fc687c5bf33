"""`Propagation`: propagation as a layer of torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast, final

import torch
from torch import Tensor, nn

from pprop._validate import check_choice, check_float, check_int, describe, reject
from pprop.graph import Graph
from pprop.kernels import BACKENDS, Draw, LinearMap, choose_backend
from pprop.kernels.random_bits import signed
from pprop.propagation.api import check_solver
from pprop.propagation.gradients import apply_map
from pprop.propagation.solvers import PowerIteration, Solver
from pprop.settings import ALPHA, BACKEND, NORMALIZATION, SELF_LOOPS


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
        self.operator, self.solver = check_solver(graph, alpha, solver, normalization, self_loops, "Propagation")
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


def _seed_tensor(seed: object) -> Tensor:
    """Return the seeds of the runs as torch stores them, in two's complement."""
    seeds = cast("object", seed.tolist() if isinstance(seed, Tensor) else seed)
    each = list(cast("Iterable[object]", seeds)) if isinstance(seeds, Iterable) else [seeds]
    if not each:
        reject("seed", "Propagation", "an integer, or one integer per run", "none")
    return torch.tensor([signed(check_int(s, "seed", "Propagation", low=-(2**63), high=2**64 - 1)) for s in each])
