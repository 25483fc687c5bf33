"""Label propagation: the labels themselves, spread by personalized PageRank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop.graph import Graph
from pprop.propagation import PowerIteration, PPROperator, Solution, solve
from pprop.settings import ALPHA, BACKEND, LABEL_STEPS, NORMALIZATION, SELF_LOOPS, check_fields

Values = NDArray[np.float64]

# What a node that no label reaches has of the shares of the classes: too little to count wherever a label does reach.
FAINT = 1e-100


@final
@dataclass(frozen=True)
class LabelPropagation:
    """The settings, checked; see `LabelPropagationClassifier`.

    >>> LabelPropagation(alpha=1.5)
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'alpha' parameter of LabelPropagationClassifier must be a float in [0, 1]. Got 1.5 instead.
    """

    alpha: float = ALPHA.field()
    steps: int = LABEL_STEPS.field()
    normalization: str = NORMALIZATION.field()
    self_loops: bool = SELF_LOOPS.field()

    def __post_init__(self) -> None:
        check_fields(self, "LabelPropagationClassifier")

    @property
    def solver(self) -> PowerIteration:
        """What propagates."""
        return PowerIteration(self.steps)

    def operator(self, graph: Graph) -> PPROperator:
        """Return the operator of a graph that is applied."""
        return PPROperator(graph, self.alpha, self.normalization, self.self_loops)

    def spread(self, graph: Graph, labels: Any, backend: str = BACKEND.default) -> Solution:
        """Return Z = (1 - alpha) T Z + alpha Y after K steps from Z = Y, shape (n, c)."""
        return solve(graph, labels, self.alpha, self.solver, self.normalization, self.self_loops, backend=backend)

    def sources(
        self,
        graph: Graph,
        nodes: NDArray[np.int64],
        codes: NDArray[np.int64],
        amounts: Values,
        n_classes: int,
        backend: str = BACKEND.default,
    ) -> tuple[Values, Solution]:
        """Return what is spread, shape (n, c), and what becomes of it.

        A labelled node has its amount, relative to the largest, in the column of its class. A node that no label reaches
        has, faintly, the shares of the classes among all amounts, so that these are its probabilities.

        Parameters
        ----------
        graph
            n nodes.
        nodes, codes, amounts
            Nodes with a label, their classes by index, and how much each counts, shape (m,); not all amounts are 0.
        n_classes
            c.
        backend
            See `propagate`.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> pair = Graph.from_scipy(sp.csr_array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
        >>> labels = LabelPropagation(0.5, steps=1).sources(pair, np.array([0]), np.array([1]), np.array([2.0]), 2)
        >>> labels[0], labels[1].value[:2]
        (array([[0.e+000, 1.e+000],
               [0.e+000, 0.e+000],
               [0.e+000, 1.e-100]]), array([[0.  , 0.75],
               [0.  , 0.25]]))
        """
        spread = np.zeros((graph.n_nodes, n_classes))
        spread[nodes, codes] = amounts / amounts.max()
        solution = self.spread(graph, spread, backend)
        unreached = ~solution.value.any(axis=1)
        if unreached.any():
            shares = spread.sum(axis=0)
            spread[unreached] = FAINT * shares / shares.sum()
            solution = self.spread(graph, spread, backend)
        return spread, solution


def log_shares(spread: Values, solution: Solution) -> Values:
    """Return the logarithms of the probabilities of all nodes, shape (n, c), from what `LabelPropagation.sources` returns.

    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(3, 3)))
    >>> spread = LabelPropagation(0.5, steps=1).sources(path, np.array([0, 2]), np.array([0, 1]), np.ones(2), 2)
    >>> np.exp(log_shares(*spread))[1]
    array([0.5, 0.5])
    """
    shares = spread.sum(axis=0)
    reached: Values = solution.value
    value = np.where(reached.any(axis=1, keepdims=True), reached, shares)
    value = value / value.max(axis=1, keepdims=True)  # of faint numbers, too, there are shares
    probabilities = value / value.sum(axis=1, keepdims=True)
    return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
