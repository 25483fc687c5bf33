"""Pi H and rows of Pi by products with T alone, to an error known beforehand: no n x n matrix.

The fixed point of Z = (1 - alpha) T Z + alpha H is approached by polynomials in T whose degree follows from alpha and
the tolerance, so that nothing is summed over nodes, no column of H depends on another, and every column has the same
bits in any company and with any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pprop._errors import CapacityError
from pprop._memory import usable_memory
from pprop.graph import Transition
from pprop.kernels import Kernels, choose_backend

ROUNDING = 1e-15  # a relative error that is lost in the rounding of float64
SINGLE = 1e-8  # one that is lost in the rounding of float32, whose unit is 6e-8
WIDTH = 64  # rows that are solved for together; always as many, since kernels are compiled for one width


def count_products(transition: Transition, alpha: float, tolerance: float) -> float:
    """Return how many products with T reach a relative error of `tolerance`; infinity where rounding hides alpha.

    An undirected graph's T is similar to the symmetric A_hat, with its spectrum in [-1, 1]. The Chebyshev polynomial of
    degree k then leaves at most 1 / cosh(k arccosh(1 / (1 - alpha))) of the error in A_hat's variables, and for "row"
    and "col" sqrt(d_max / d_min) times that in T's own: about 1 / sqrt(2 alpha) products for a factor of e. A directed
    graph's T is not normal, and K power steps leave 2 / alpha (1 - alpha)^K: 1 / alpha products for a factor of e.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop.graph import Graph, transition_matrix
    >>> ring = sp.csr_array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    >>> count_products(transition_matrix(Graph.from_scipy(ring + ring.T)), 0.1, 1e-8)
    40
    >>> count_products(transition_matrix(Graph.from_scipy(ring, directed=True)), 0.1, 1e-8)
    204
    """
    if alpha == 1.0:
        return 0
    if transition.symmetric:
        ratio = transition.column_scale / transition.row_scale  # 1 for "sym", else the degrees or their inverses
        spread = math.sqrt(float(ratio.max(initial=1.0)) / float(ratio.min(initial=1.0)))
        gain, decay, saved = math.acosh(spread / tolerance), math.acosh(1 / (1 - alpha)), 1
    else:
        gain, decay, saved = math.log(2) - math.log(alpha) - math.log(tolerance), -math.log1p(-alpha), 0
    degree = gain / decay if decay > 0 else math.inf
    # the first degree of a recurrence from zero costs no product
    return max(math.ceil(degree) - saved, 0) if math.isfinite(degree) else math.inf


def chebyshev_weights(alpha: float, products: int) -> Iterator[float]:
    """Yield the weights w_2, w_3, ... of Chebyshev's recurrence, one a product.

    They are w_1 = 1, w_2 = 1 / (1 - q / 2), w_(k+1) = 1 / (1 - q w_k / 4) with q = (1 - alpha)^2.
    """
    stay, weight = 1.0 - alpha, 2.0
    for _ in range(products):
        weight = 1.0 / (1.0 - stay * stay * weight / 4.0)
        yield weight


@final
class FixedPoint:
    """The map from H to Z = alpha (I - (1 - alpha) T)^-1 H, both of shape (R, n, c), computed in float64 run by run.

    The relative error of a column is at most `tolerance`, beside rounding, in the 2-norm for an undirected graph; for a
    directed one in the norm in which T has norm 1: the 2-norm for "sym", the largest entry for "row", the sum for "col".

    References
    ----------
    Golub and Varga, "Chebyshev semi-iterative methods", Numerische Mathematik 3, 1961.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop.graph import Graph, transition_matrix
    >>> T = transition_matrix(Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]])))
    >>> solver = FixedPoint(T, 0.5, choose_backend("auto", "cpu", "example").kernels)
    >>> solver.apply(torch.eye(2)[None, :, :1]).flatten()
    tensor([0.7500, 0.2500])
    """

    def __init__(self, transition: Transition, alpha: float, kernels: Kernels, tolerance: float = ROUNDING) -> None:
        self._alpha = alpha
        self.products = int(count_products(transition, alpha, tolerance))
        # T y, to be combined by Chebyshev's recurrence, or all power steps at once
        self._recurrence = transition.symmetric
        self._steps = (
            kernels.steps(transition, 0.0, 1) if self._recurrence else kernels.steps(transition, alpha, self.products)
        )

    def apply(self, predictions: Tensor) -> Tensor:
        """Return Z, on the device and in the dtype of H."""
        if len(predictions) == 0:
            return predictions.clone()
        wide = (run[None].to(torch.float64) for run in predictions)
        each = [self._chebyshev(run) if self._recurrence else self._steps.forward(run, None) for run in wide]
        return torch.cat(each).to(predictions.dtype)

    def _chebyshev(self, start: Tensor) -> Tensor:
        """Return y_(k+1) = w_(k+1) ((1 - alpha) T y_k + alpha H - y_(k-1)) + y_(k-1) after all products, from y_0 = 0.

        Products and sums are separate operations: torch may round a fused one differently at the end of an array.
        """
        stay, own = 1.0 - self._alpha, start * self._alpha
        before, state = torch.zeros_like(own), own.clone()
        for weight in chebyshev_weights(self._alpha, self.products):
            arrived = self._steps.forward(state, None).mul_(weight * stay)
            before.mul_(1.0 - weight).add_(arrived).add_(own * weight)
            before, state = state, before
        return state


def ppr_rows(transition: Transition, alpha: float, nodes: NDArray[np.int64], dtype: torch.dtype) -> Tensor:
    """Return the rows of Pi that belong to `nodes`, shape (m, n): columns of Pi^T, solved for a few at a time.

    Raises
    ------
    CapacityError
        When the rows are larger than the memory that this process may use.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop.graph import Graph, transition_matrix
    >>> T = transition_matrix(Graph.from_scipy(sp.csr_array([[0, 1], [1, 0]])))
    >>> ppr_rows(T, 0.5, np.array([1]), torch.float32)
    tensor([[0.2500, 0.7500]])
    """
    n = transition.n_nodes
    check_row_memory("Exact", len(nodes), n, dtype.itemsize)
    kernels = choose_backend("auto", "cpu", "Exact").kernels
    solver = FixedPoint(transition.transpose, alpha, kernels, ROUNDING if dtype == torch.float64 else SINGLE)
    out = torch.empty(len(nodes), n, dtype=dtype)
    for begin in range(0, len(nodes), WIDTH):
        some = torch.from_numpy(nodes[begin : begin + WIDTH])
        unit = torch.zeros(1, n, WIDTH, dtype=torch.float64)
        unit[0, some, torch.arange(len(some))] = 1.0
        out[begin : begin + len(some)] = solver.apply(unit)[0, :, : len(some)].T
    return out


def check_row_memory(solver: str, rows: int, n: int, itemsize: int) -> None:
    """Refuse rows of an n x n matrix that this process cannot hold.

    >>> check_row_memory("Exact", 20, 1000, itemsize=4)
    """
    needed, usable = rows * n * itemsize, usable_memory()
    if usable is not None and needed > 0.9 * usable:
        what = "the dense matrix" if rows == n else f"{rows} rows of the matrix"
        fewer = "" if rows == n else ", or fewer nodes in one call"
        raise CapacityError(
            f"{solver} needs {what} of {n} nodes, {needed / 2**30:.1f} GiB, and this process may use "
            f"{usable / 2**30:.1f} GiB. Use PowerIteration(steps=10){fewer}."
        )
