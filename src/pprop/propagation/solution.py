"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, final


@final
class Outcome(Enum):
    """How a solve ended.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> pprop.solve(path, np.eye(5), solver=pprop.Exact()).outcome
    <Outcome.EXACT: 'exact'>
    """

    FIXED_STEPS = "fixed steps"  # the requested number of steps, with no request about the error
    EXACT = "exact"  # solved directly, to rounding


@final
@dataclass(frozen=True)
class Statistics:
    """What a solve cost, and how far it may be from the fixed point Z = (1 - alpha) T Z + alpha H.

    Attributes
    ----------
    backend
        Name of the backend that computed it.
    matrix_products
        Products with the transition matrix. The product that measures the residual is not counted.
    residual
        Norm of r = alpha H - (Z - (1 - alpha) T Z), in the norm named by `norm`.
    norm
        The norm in which the transition matrix has norm at most 1: ``"frobenius"`` for "sym", ``"max"`` (largest
        absolute entry) for "row", ``"column"`` (largest 1-norm of a column) for "col".
    error_bound
        residual / alpha, a bound of the error in the same norm, beside the rounding of the residual; None when alpha is 0.
        A `Certificate` counts that rounding.
    seconds
        Wall-clock time, binding the operator included.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> statistics = pprop.solve(path, np.eye(5)).statistics
    >>> statistics.matrix_products, statistics.norm, round(statistics.error_bound, 2)
    (10, 'frobenius', 0.08)
    """

    backend: str
    matrix_products: int
    residual: float
    norm: str
    error_bound: float | None
    seconds: float


@final
@dataclass(frozen=True)
class Solution:
    """The propagated predictions with an account of how they were computed.

    Attributes
    ----------
    value
        Propagated predictions, an array of the kind, shape and dtype of the input.
    outcome
        How the solve ended.
    statistics
        Backend, cost and residual.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> pprop.solve(path, np.eye(5)).value.shape
    (5, 5)
    """

    value: Any
    outcome: Outcome
    statistics: Statistics
