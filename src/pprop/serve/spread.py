"""Predictions spread with any alpha and any number of steps, and single rows of the matrix that spreads them.

K power steps are a polynomial, Z = sum_(k<K) alpha (1-alpha)^k T^k H + (1-alpha)^K T^K H. The blocks T^k H do not depend
on alpha: they are computed once and kept, and another alpha is a weighted sum of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import InputError
from pprop.graph import Graph
from pprop.models.model import PropagationSettings
from pprop.models.propagated_ones import propagated_ones
from pprop.propagation import PowerIteration, PPROperator
from pprop.propagation.attribution import Attributor

Values = NDArray[np.float64]

# The positions of classes that are predicted from probabilities (n, c), where a threshold decides.
Choose = Callable[[NDArray[Any]], NDArray[np.int64]]

LEAST_EXACT_ALPHA = 1e-3  # below, the fixed point takes thousands of products
_KEPT = 1 << 26  # bytes of blocks T^k H that are kept
_NOTHING = 1e-20  # of what started, what is left after so many steps that it changes no digit
_SOLVED = 16  # pairs of alpha and steps that are kept


@final
@dataclass(frozen=True, eq=False)
class SpreadResult:
    """Predictions of all nodes at one alpha and number of steps.

    Attributes
    ----------
    alpha, steps
        What spread them; both None where nothing was spread, `steps` None for the exact fixed point.
    probabilities
        Shape (n, c).
    predicted, confidence
        The class of the largest, or the one that a threshold chooses, and its probability, both of shape (n,).
    row
        Gives the row of the propagation matrix that belongs to a node, shape (n,); None where there is no such matrix.
    """

    alpha: float | None
    steps: int | None
    probabilities: Values
    predicted: NDArray[np.int64]
    confidence: Values
    row: Callable[[int], Values] | None

    @classmethod
    def of(
        cls,
        logits: NDArray[Any],
        alpha: float | None,
        steps: int | None,
        row: Callable[[int], Values] | None,
        ones: Values | None = None,
        choose: Choose | None = None,
    ) -> SpreadResult:
        """Return the predictions that logits are, shape (n, c); `ones` are propagated as they were, shape (n,)."""
        probabilities = softmax(logits if ones is None else logits / ones[:, None])
        predicted = np.asarray(logits).argmax(axis=1) if choose is None else choose(probabilities)
        return cls(alpha, steps, probabilities, predicted, probabilities[np.arange(len(predicted)), predicted], row)

    def sure(self, least: float, below: float) -> NDArray[np.bool_]:
        """Return whether the confidence of each node is at least one number and below another, shape (n,).

        Above 1 there is nothing: an interval that ends there has its end.

        >>> logits = np.log([[0.5, 0.5], [0.25, 0.75]]), [[-1e3, 1e3]]
        >>> made = SpreadResult.of(np.concatenate(logits), None, None, None)
        >>> made.sure(0.5, 0.7), made.sure(0.7, 1.0)
        (array([ True, False, False]), array([False,  True,  True]))
        """
        return (self.confidence >= least) & ((self.confidence < below) | (below >= 1))


def softmax(logits: NDArray[Any]) -> Values:
    """Return probabilities in float64, shape (n, c).

    >>> softmax(np.array([[0.0, np.log(3.0)]])).round(3)
    array([[0.25, 0.75]])
    """
    wide = np.asarray(logits, dtype=np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@final
class Spread:
    """The network's logits H on a graph, and everything that propagation makes of them.

    Parameters
    ----------
    graph
        n nodes.
    H
        Shape (n, c).
    how
        Of the model: alpha, solver, normalisation.
    logits
        Those of the model itself, shape (n, c), where the graph is its own: they are then its predictions, bit for bit.
    choose
        Predicts classes in place of the largest logit.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> pair = Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]]))
    >>> spread = Spread(pair, np.array([[4.0, 0.0], [0.0, 8.0]]), PropagationSettings(0.5, PowerIteration(1)))
    >>> spread.solved().row(0), spread.solved(alpha=1.0).row(0)
    (array([0.75, 0.25]), array([1., 0.]))
    """

    def __init__(
        self,
        graph: Graph,
        H: NDArray[Any],
        how: PropagationSettings,
        logits: NDArray[Any] | None = None,
        choose: Choose | None = None,
    ) -> None:
        self.graph, self.how, self._choose = graph, how, choose
        self.H: Values = np.ascontiguousarray(H, dtype=np.float64)
        self._logits = logits
        self._operator = PPROperator(graph, how.alpha, how.normalization, how.self_loops)
        self._blocks: list[Values] = [self.H]
        self._matrix: Any = None
        self._structure: Any = None
        self._lock = threading.RLock()
        self._found: OrderedDict[tuple[float, int | None], SpreadResult] = OrderedDict()
        self.steps: int | None = how.solver.steps if isinstance(how.solver, PowerIteration) else None

    def solved(self, alpha: float | None = None, steps: int | None = None) -> SpreadResult:
        """Return the predictions at this alpha and so many steps; None: those of the model."""
        wanted = self.how.alpha if alpha is None else alpha
        count = self.steps if steps is None else steps
        key = wanted, count
        with self._lock:
            found = self._found.get(key)
            if found is None:
                found = self._found[key] = self._solve(wanted, count)
                while len(self._found) > _SOLVED:
                    self._found.popitem(last=False)
            self._found.move_to_end(key)
        return found

    @property
    def default(self) -> SpreadResult:
        """The predictions of the model."""
        return self.solved()

    def _solve(self, alpha: float, steps: int | None) -> SpreadResult:
        own = alpha == self.how.alpha and steps == self.steps and self._logits is not None
        if steps is None:
            if alpha != self.how.alpha and alpha < LEAST_EXACT_ALPHA:
                raise InputError(f"Exact propagation takes an alpha of at least {LEAST_EXACT_ALPHA}. Give steps, too.")
            operator = PPROperator(self.graph, alpha, self.how.normalization, self.how.self_loops)
            attributor = Attributor(self.H, operator, self.how.solver)
            ones = propagated_ones(self.graph, replace(self.how, alpha=alpha))
            logits = self._logits if own else attributor.value
            assert logits is not None
            return SpreadResult.of(logits, alpha, None, attributor.row, ones, self._choose)
        logits = self._logits if own else self.by_steps(alpha, steps)
        assert logits is not None
        ones = propagated_ones(self.graph, replace(self.how, alpha=alpha, solver=PowerIteration(steps)))
        return SpreadResult.of(logits, alpha, steps, lambda node: self._row(node, alpha, steps), ones, self._choose)

    def by_steps(self, alpha: float, steps: int) -> Values:
        """Return the logits after K power steps, shape (n, c), from the blocks T^k H."""
        stay, room = 1.0 - alpha, np.empty_like(self.H)
        most = max(self.steps or 0, _KEPT // max(self.H.nbytes, 1))
        total = self.H * (alpha if steps else 1.0)
        block = self.H
        for k in range(1, steps + 1):
            left = stay**k
            if left < _NOTHING:
                break
            if k < len(self._blocks):
                block = self._blocks[k]
            else:
                block = self._product(block)
                if k == len(self._blocks) and k <= most:
                    self._blocks.append(block)
            np.multiply(block, left if k == steps else alpha * left, out=room)
            total += room
        return total

    def probabilities_of(self, node: int) -> Values:
        """Return the probabilities of one node with the alpha and the steps of the model, shape (c,)."""
        if self.steps is not None:
            row = self._row(node, self.how.alpha, self.steps)
        else:
            rows = self.solved().row
            assert rows is not None
            row = rows(node)
        received = float(row.sum())  # the propagation of ones
        ones = 1.0 if self.how.normalization == "row" or received <= 0 else received
        return softmax((row @ self.H / ones)[None])[0]

    def _product(self, block: Values) -> Values:
        if self._matrix is None:
            self._matrix = self._operator.transition.to_scipy()
        return self._matrix @ block

    def _row(self, node: int, alpha: float, steps: int) -> Values:
        """Return the row of K power steps, by K products that begin at the node."""
        from pprop.kernels.numba_cpu.operator_rows import Recurrence, recurrence_rows, structure_of

        if self._structure is None:
            self._structure = structure_of(self._operator.transition)
        recurrence = Recurrence(1.0, np.full(steps, 1.0 - alpha), np.zeros(steps), np.full(steps, alpha))
        return recurrence_rows(self._structure, recurrence, np.array([node], dtype=np.int64))[0, :, 0]
