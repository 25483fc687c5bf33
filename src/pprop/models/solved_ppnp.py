"""PPNP with a solve in the training loop: no row of the PPR matrix is ever made, before training or in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.graph import Graph
from pprop.kernels import Draw, Kernels, LinearMap
from pprop.models.architecture import Architecture, BoundModel, DropoutMasks
from pprop.models.model import Weight
from pprop.models.operations import applied, linear, relu_drop
from pprop.propagation import Chebyshev, PPROperator, ToleranceSolver
from pprop.propagation.gradients import apply_map
from pprop.settings import DROPOUT, EDGE_DROPOUT, NORMALIZATION, PENALTY, POSITIVE_ALPHA, SELF_LOOPS, WIDTH


@final
@dataclass(frozen=True)
class SolvedPPNP(Architecture):
    """The paper's network and exact personalized PageRank, solved for all nodes to a tolerance in every epoch.

        H = relu(X W_0) W_1,    Z = (1 - alpha) A_hat Z + alpha H

    Each epoch has one solve forward, one with the transpose backward and one for the stopping nodes, of memory n x c.
    `PPNP` solves for the rows that its training reads once, before training, and drops entries of them: prefer it for few
    labelled nodes. This model is for many, whose rows would not fit.

    It is not quite the paper's model: an entry of Pi cannot be dropped where there is no Pi, and a mask of A_hat that is
    divided by the probability of keeping has no fixed point. Instead undirected edges may be dropped, and what is left of
    the graph normalised by its own degrees (`edge_dropout`).

    Parameters
    ----------
    alpha
        Teleport probability.
    solver
        ``Chebyshev(tol)``, ``ConjugateGradient(tol)`` or, for directed graphs, ``Contraction(tol)``. Training is in
        float32.
    hidden, dropout, penalty
        As in `APPNP`; one hidden layer.
    edge_dropout
        Probability of dropping an edge of the graph, afresh in every epoch.
    normalization, self_loops
        See `transition_matrix`.

    Examples
    --------
    >>> import pprop
    >>> graph = pprop.load_dataset("citeseer")
    >>> split = pprop.paper_split(graph, seed=2144199730)
    >>> pprop.train(SolvedPPNP(alpha=0.1), graph, split, stopping=pprop.Stopping(max_epochs=2)).logits.shape
    (1, 2110, 6)
    """

    alpha: float = POSITIVE_ALPHA.field()
    solver: ToleranceSolver = Chebyshev(tol=1e-4)
    hidden: int = WIDTH.field()
    dropout: float = DROPOUT.field()
    edge_dropout: float = EDGE_DROPOUT.field()
    penalty: float = PENALTY.field()
    normalization: str = NORMALIZATION.field()
    self_loops: bool = SELF_LOOPS.field()

    def __post_init__(self) -> None:
        if not isinstance(self.solver, ToleranceSolver):
            expected = "Chebyshev(tol), ConjugateGradient(tol) or Contraction(tol)"
            reject("solver", "SolvedPPNP", expected, describe(self.solver), remedy="Use PPNP() or APPNP() for others.")
        super().__post_init__()

    def weights(self, n_features: int, n_classes: int) -> tuple[Weight, ...]:
        first, second = (n_features, self.hidden), (self.hidden, n_classes)
        return Weight("first", first, self.penalty, fans=first), Weight("second", second, fans=second)

    def bind(self, graph: Graph, kernels: Kernels) -> BoundModel:
        if kernels.capturable:  # an epoch that is replayed cannot look at a residual
            raise InputError("SolvedPPNP is trained on the CPU, or on a GPU with backend='reference'.")
        return _BoundSolvedPPNP(self, graph, kernels)

    def floats_per_node(self, n_classes: int) -> int:
        return 3 * self.hidden + 12 * n_classes


@final
class _BoundSolvedPPNP(BoundModel):
    def __init__(self, model: SolvedPPNP, graph: Graph, kernels: Kernels) -> None:
        super().__init__(graph, kernels)
        self._model = model
        operator = PPROperator(graph, float(model.alpha), model.normalization, model.self_loops)
        self._solve = _FiniteRuns(model.solver.bind(operator, kernels))

    def outputs(self, weights: Sequence[Tensor], masks: DropoutMasks) -> Tensor:
        model = self._model
        W_0, W_1 = weights
        hidden = applied(self._X, W_0, masks.draw(model.dropout))
        hidden = hidden.clone()  # of the reference backend it is a view, and the next step works in place
        hidden = relu_drop(self.kernels, hidden, 1, masks.draw(model.dropout))
        return apply_map(self._solve, linear(self.kernels, hidden, W_1), masks.draw(model.edge_dropout))


@final
class _FiniteRuns(LinearMap):
    """A solve that passes NaN on where it would refuse it: a run that diverges ends itself, not the others of its batch."""

    def __init__(self, solve: LinearMap) -> None:
        self._solve = solve

    def forward(self, predictions: Tensor, draw: Draw | None) -> Tensor:
        return self._apply(self._solve.forward, predictions, draw)

    def adjoint(self, gradient: Tensor, draw: Draw | None) -> Tensor:
        return self._apply(self._solve.adjoint, gradient, draw)

    def _apply(self, solve: Callable[[Tensor, Draw | None], Tensor], operand: Tensor, draw: Draw | None) -> Tensor:
        finite = operand.isfinite().flatten(1).all(dim=1)[:, None, None]
        if bool(finite.all()):
            return solve(operand, draw)
        return solve(operand.where(finite, 0.0), draw).where(finite, torch.nan)
