"""Contributions: the value of a node after propagation as a sum over the nodes that it came from."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import InputError
from pprop._validate import check_float, check_int, describe, reject
from pprop.kernels import choose_backend
from pprop.kernels.arrays import on_host
from pprop.propagation.api import EVERY_SOLVER
from pprop.propagation.operator import MOST_PRODUCTS, SINGLE, FixedPoint, PPROperator, chebyshev_weights, count_products
from pprop.propagation.push import LocalPush
from pprop.propagation.solvers import Exact, Limit, PowerIteration, Solver
from pprop.propagation.tolerance import ToleranceSolver

Nodes = NDArray[np.int64]
Values = NDArray[np.float64]

_NUMBERS = 1 << 25  # entries of rows that are held at a time: 256 MiB
_SLACK = 1e-9  # rounding of the sums over all nodes relative to the largest |H_j|_1; in float64 it is about 1e-15


@dataclass(frozen=True, eq=False)
class Attribution:
    """The value of one node, Z_i = sum_j P_ij H_j, by contributors.

    Attributes
    ----------
    node
        The node i.
    value
        Z_i, shape (c,).
    nodes, weights
        The contributors with the largest |P_ij| |H_j|_1 in falling order, and their P_ij, both of shape (k,).
    contributions
        P_ij H_j, shape (k, c).
    shares
        |P_ij| |H_j|_1 as a part of its sum over all nodes, shape (k,); zero where that sum is.
    others, other_count, other_share
        What all other nodes contribute together, shape (c,); how many they are; their share.
    error
        Certified: the contributions of all nodes to all classes are off by at most that much in total, in absolute
        values. Zero of an exact attribution, whose rows of Pi have the precision of float32.
    """

    node: int
    value: Values
    nodes: Nodes
    weights: Values
    contributions: Values
    shares: Values
    others: Values
    other_count: int
    other_share: float
    error: float


@final
class Attributor:
    """Predictions H of all nodes and the matrix P that propagates them: the terms of Z_i = sum_j P_ij H_j.

    P is the polynomial of K power steps, or the personalized PageRank matrix Pi of any solver that computes its fixed
    point. Rows of P are computed on demand: of K steps by K products that begin at the node, of Pi by a Chebyshev
    polynomial that reaches the precision of float32. Sums are made in float64.

    Parameters
    ----------
    H
        Predictions of each node on its own, shape (n, c).
    operator, solver
        The operator and the solver that applies it; None, both of them, for no propagation: P is the identity.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop.graph import Graph
    >>> pair = PPROperator(Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]])), alpha=0.5)
    >>> H = np.array([[4.0, 0.0], [0.0, 8.0]])
    >>> [one] = Attributor(H, pair, PowerIteration(1)).exact(np.array([0]), most=1)
    >>> one.value, one.nodes, one.contributions, one.others, one.shares
    (array([3., 2.]), array([0]), array([[3., 0.]]), array([0., 2.]), array([0.6]))
    """

    def __init__(self, H: NDArray[Any], operator: PPROperator | None, solver: Solver | None) -> None:
        if not isinstance(solver, PowerIteration | Limit | Exact | ToleranceSolver | None):
            reject("solver", "explain", EVERY_SOLVER, describe(solver))
        self._H = np.ascontiguousarray(H, dtype=np.float64)
        self._operator: Any = operator
        self._solver = solver
        with np.errstate(over="ignore"):  # refused below
            self._size: Values = np.abs(self._H).sum(axis=1)
        self._rooms = threading.local()
        both = np.column_stack([self._H, self._size])
        if operator is not None:
            both = self._propagated(both[None])[0]
        if not np.isfinite(both).all():
            got = f"numbers up to {self.largest:.3g}"
            reject("model", "explain", "a classifier whose predictions have finite sums in float64", got)
        self.value: Values = both[:, :-1]  # Z, shape (n, c)
        self._absolute: Values = both[:, -1]  # sum_j P_ij |H_j|_1, since P has no negative entries

    @property
    def largest(self) -> float:
        """The largest |H_ij|."""
        return float(np.abs(self._H).max(initial=0.0))

    @property
    def predictions(self) -> Values:
        """H, the predictions of each node on its own, shape (n, c)."""
        return self._H

    def row(self, node: int) -> Values:
        """Return the whole row of P that belongs to a node, shape (n,)."""
        if self._operator is None:
            return np.eye(1, len(self._H), node)[0]
        return np.ascontiguousarray(self._rows(np.array([node], dtype=np.int64))[0, :, 0])

    def exact(self, nodes: Nodes, most: int) -> list[Attribution]:
        """Return the attribution of every node, with up to `most` contributors; all sums are over whole rows of P."""
        most, found = min(most, len(self._H)), list[Attribution]()
        if self._operator is None:
            return [self._local(int(node), np.array([node]), np.ones(1), 1, 0.0) for node in nodes]
        from pprop.kernels.numba_cpu.operator_rows import LANES, summaries

        together = max(_NUMBERS // len(self._H) // LANES, 1) * LANES
        for begin in range(0, len(nodes), together):
            some = nodes[begin : begin + together]
            summary = summaries(self._rows(some), self._H, self._size, most, len(some))
            for node, best, weights, value, absolute, reached in zip(some, *summary, strict=True):
                row = (best[best >= 0], weights[best >= 0])
                found.append(self._attribution(int(node), value, absolute, *row, int(reached), 0.0))
        return found

    def fast(self, nodes: Nodes, most: int, eps: float) -> list[Attribution]:
        """Return attributions from the large entries of the rows of P alone, found by pushing; see `explain`.

        They are lower bounds. The sum over j of P_ij |H_j|_1 is known for every node, and so is the total that is missing.
        """
        if self._operator is None:
            return self.exact(nodes, most)
        if isinstance(self._solver, Limit):
            raise InputError("mode='fast' cannot explain Limit(), whose rows have no small entries. Use mode='exact'.")
        slack = _SLACK * float(self._size.max(initial=0.0))
        attributions: list[Attribution] = []
        for node in nodes.tolist():
            reached, row = self._push(node, eps)
            known = float(row @ self._size[reached])
            error = max(float(self._absolute[node]) - known, 0.0) + slack
            attributions.append(self._local(node, reached, row, most, error))
        return attributions

    def _local(self, node: int, reached: Nodes, row: Values, most: int, error: float) -> Attribution:
        """Return the attribution from the entries of a row at some nodes; the rest of the value belongs to the others."""
        order = np.lexsort((reached, -row * self._size[reached]))[:most]
        value, absolute = self.value[node], float(self._absolute[node])
        return self._attribution(node, value, absolute, reached[order], row[order], len(reached), error)

    def _attribution(
        self, node: int, value: Values, absolute: float, nodes: Nodes, weights: Values, reached: int, error: float
    ) -> Attribution:
        contributions = weights[:, None] * self._H[nodes]
        sizes = np.abs(weights) * self._size[nodes]
        shares = sizes / absolute if absolute > 0 else np.zeros(len(nodes))
        whole = absolute == 0 or (error == 0 and reached == len(nodes))  # nothing is left, not even rounding
        rest = 0.0 if whole else max(1.0 - float(shares.sum()), 0.0)
        others, count = value - contributions.sum(axis=0), reached - len(nodes)
        return Attribution(node, value, nodes, weights, contributions, shares, others, count, rest, error)

    def _propagated(self, predictions: Values) -> Values:
        """Return P times predictions (1, n, c) to rounding, also if the solver has a tolerance."""
        operator, backend = self._operator, choose_backend("auto", "cpu", "explain")
        kernels, given = backend.own_kernels, backend.own(predictions)
        if not isinstance(self._solver, PowerIteration | Limit) and self._recurrence is not None:
            return on_host(FixedPoint(operator.transition, operator.alpha, kernels).forward(given))  # no dense matrix
        solver = self._solver if isinstance(self._solver, PowerIteration | Limit) else Exact()
        return on_host(solver.bind(operator, kernels).forward(given, None))

    @cached_property
    def _structure(self) -> Any:
        from pprop.kernels.numba_cpu.operator_rows import structure_of

        return structure_of(self._operator.transition)

    @cached_property
    def _recurrence(self) -> Any:
        """The polynomial whose rows are wanted; None where that of Pi has too many terms, or P is no polynomial."""
        from pprop.kernels.numba_cpu.operator_rows import Recurrence

        alpha, transition = self._operator.alpha, self._operator.transition
        if isinstance(self._solver, PowerIteration):
            steps = self._solver.steps
        else:
            products = np.inf if alpha == 0.0 else count_products(transition.transpose, alpha, SINGLE)
            if products > MOST_PRODUCTS:
                return None
            steps = int(products)
            if transition.symmetric:
                weights = np.array(list(chebyshev_weights(alpha, steps)))
                return Recurrence(alpha, weights * (1.0 - alpha), 1.0 - weights, weights * alpha)
        return Recurrence(1.0, np.full(steps, 1.0 - alpha), np.zeros(steps), np.full(steps, alpha))

    def _rows(self, nodes: Nodes) -> Values:
        """Return the rows of P that belong to nodes, shape (tasks, n, width); see `recurrence_rows`."""
        from pprop.kernels.numba_cpu.operator_rows import recurrence_rows

        if self._recurrence is not None:
            return recurrence_rows(self._structure, self._recurrence, nodes)
        exact = self._solver if isinstance(self._solver, Limit) else Exact()
        return exact.rows(self._operator, nodes, np.float64)[:, :, None]

    def _push(self, node: int, eps: float) -> tuple[Nodes, Values]:
        """Return the nodes that a row of P was pushed to, and its entries there, from below."""
        if not isinstance(self._solver, PowerIteration):
            pushed = self._local_push.row(node, eps, function="explain")
            # a residual at j is worth r_j Pi[j], of which Pi[j, j] >= alpha
            return pushed.nodes, pushed.values + self._local_push.alpha * pushed.residuals
        from pprop.kernels.numba_cpu.operator_rows import level_push

        T, n = self._structure, len(self._H)
        if not hasattr(self._rooms, "numbers"):  # one for each thread
            self._rooms.numbers, self._rooms.lists = np.zeros((3, n)), np.empty((3, n), dtype=np.int64)
        numbers, lists = self._rooms.numbers, self._rooms.lists
        count, _ = level_push(T, self._operator.alpha, self._solver.steps, T.position[node], eps, *numbers, lists)
        places = lists[0, :count]
        row = numbers[2][places]
        numbers[2][places] = 0.0
        return T.order[places], row

    @cached_property
    def _local_push(self) -> LocalPush:
        operator = self._operator
        return LocalPush(operator.graph, operator.alpha, operator.normalization, operator.self_loops)


def check_eps(eps: object, most: object, function: str) -> tuple[float, int]:
    """Check the tolerance of a push and the number of contributors in the name of a public function.

    >>> check_eps(1e-4, 10, "explain")
    (0.0001, 10)
    """
    tolerance = check_float(eps, "eps", function, "(0, 1)")
    if tolerance < np.finfo(np.float64).eps:
        reject("eps", function, f"at least {np.finfo(np.float64).eps:.1e}, the rounding of float64", tolerance)
    return tolerance, check_int(most, "k", function, low=1)
