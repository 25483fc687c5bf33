"""What a solve to a tolerance vouches for: a bound of the relative error, and the norm in which it holds.

With r = alpha H - (Z - (1 - alpha) T Z) and a norm in which T has norm at most 1, the error e of Z has |e| <= |r| / alpha.
So |r| <= alpha tol |Z| / (1 + tol) makes |e| at most tol times the norm of the fixed point itself, column by column.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, final

import torch

from pprop._validate import reject
from pprop.propagation.solution import Statistics

__all__ = [
    "Certificate",
    "CertifiedSolution",
    "ToleranceOutcome",
    "check_reachable",
    "least_error",
    "relative_error",
    "stop_ratio",
]

ROUNDING_UNITS = 8
"""Units of rounding, over alpha, that the residual of a solution has when it is as good as its numbers allow."""


@final
class ToleranceOutcome(Enum):
    """How a solve to a tolerance ended; one that misses it raises `ToleranceError` instead.

    >>> ToleranceOutcome.REACHED.value
    'tolerance reached'
    """

    REACHED = "tolerance reached"
    """Every column is certified."""


@final
@dataclass(frozen=True)
class Certificate:
    """What is known about every column of a solution.

    Attributes
    ----------
    tol
        The relative error that was asked for.
    relative_error
        What the residual proves: no column is further from the fixed point, in relation to the fixed point. Never less
        than 8 units of rounding over alpha.
    norm
        The norm of a column in which that holds, in words.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> certificate = pprop.solve(path, np.eye(5)[:, :1], solver=pprop.Chebyshev(tol=1e-3)).certificate
    >>> certificate.relative_error <= 1e-3, certificate.norm
    (True, '2-norm')
    """

    tol: float
    relative_error: float
    norm: str


@final
@dataclass(frozen=True)
class CertifiedSolution:
    """A `Solution` that comes with a certificate, from a solver to a tolerance.

    Attributes
    ----------
    value
        Propagated predictions, an array of the kind, shape and dtype of the input.
    outcome
        That the tolerance was reached.
    statistics
        Backend, cost and residual of all columns together, in the norms of `Statistics`.
    certificate
        The bound of the relative error.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> pprop.solve(path, np.eye(5)[:, :1], solver=pprop.ConjugateGradient(tol=1e-9)).outcome.value
    'tolerance reached'
    """

    value: Any
    outcome: ToleranceOutcome
    statistics: Statistics
    certificate: Certificate


def stop_ratio(alpha: float, tol: float) -> float:
    """Return the largest |r| / |Z| that certifies a relative error of `tol`.

    >>> stop_ratio(0.5, 1.0)
    0.25
    """
    return alpha * tol / (1.0 + tol)


def relative_error(alpha: float, residual: float, size: float) -> float:
    """Return the relative error that |r| and |Z| certify, infinity where they certify none.

    >>> relative_error(0.5, 0.25, 1.0), relative_error(0.5, 0.5, 1.0), relative_error(0.5, 0.0, 0.0)
    (1.0, inf, 0.0)
    """
    if residual == 0.0:
        return 0.0
    gap = alpha * size - residual
    return residual / gap if gap > 0 else float("inf")


def least_error(alpha: float, dtype: torch.dtype) -> float:
    """Return the relative error below which the rounding of a float type lets no residual prove anything.

    >>> least_error(0.5, torch.float64) < 1e-14
    True
    """
    return ROUNDING_UNITS * torch.finfo(dtype).eps / alpha


def check_reachable(tol: float, alpha: float, dtype: torch.dtype, solver: str) -> None:
    """Refuse a tolerance below what the rounding of a float type lets a residual prove.

    >>> check_reachable(1e-6, 0.1, torch.float64, "Chebyshev")
    """
    least = least_error(alpha, dtype)
    if tol < least:
        name = str(dtype).removeprefix("torch.")
        wider = "" if dtype == torch.float64 else " or predictions in float64"
        expected = f"at least {least:.2g}, what {name} can reach at alpha {alpha:g}"
        reject("tol", solver, expected, tol, remedy=f"Use a larger tol{wider}.")
