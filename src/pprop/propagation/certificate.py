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
from pprop.kernels.solves import Ended
from pprop.propagation.solution import Statistics

__all__ = [
    "Certificate",
    "CertifiedSolution",
    "ToleranceOutcome",
    "check_reachable",
    "default_tolerance",
    "error_before_rounding",
    "least_error",
    "relative_error",
    "rounded_error",
    "stop_ratio",
    "working_type",
    "worst_error",
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
        than 8 units of rounding over alpha. In half precision, what rounding the result has added counts.
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


def worst_error(alpha: float, ended: Ended) -> float:
    """Return the relative error that the residuals of a solve certify for all of its columns.

    >>> import numpy as np
    >>> worst_error(0.5, Ended(torch.zeros(1, 2), 1, np.array([0.25, 0.1]), np.ones(2)))
    1.0
    """
    columns = zip(ended.residual.tolist(), ended.size.tolist(), strict=True)
    return max(relative_error(alpha, residual, size) for residual, size in columns)


def rounded_error(error: float, lost: float) -> float:
    """Return the relative error of a value that had `error` before it was moved by `lost` times its own norm.

    >>> rounded_error(0.5, 0.25)
    0.875
    """
    return error + lost * (1.0 + error)  # the value is at most 1 + error times as large as the fixed point


def error_before_rounding(error: float, dtype: torch.dtype) -> float:
    """Return the relative error that becomes at most `error` when every entry is rounded to a float type.

    >>> error_before_rounding(0.01, torch.float64), round(error_before_rounding(0.01, torch.bfloat16), 4)
    (0.01, 0.0061)
    """
    unit = _rounding(dtype)
    return (error - unit) / (1.0 + unit)


def working_type(dtype: torch.dtype) -> torch.dtype:
    """Return the float type in which results of a float type are computed: half precision in float32.

    >>> working_type(torch.bfloat16), working_type(torch.float64)
    (torch.float32, torch.float64)
    """
    return torch.float64 if dtype == torch.float64 else torch.float32


def _rounding(dtype: torch.dtype) -> float:
    """Return what rounding a result to its float type can move it by, 0 where it was computed in that type."""
    return 0.0 if dtype == working_type(dtype) else torch.finfo(dtype).eps / 2


def least_error(alpha: float, dtype: torch.dtype) -> float:
    """Return the relative error below which the rounding of a float type lets no residual prove anything.

    >>> least_error(0.5, torch.float64) < 1e-14, least_error(0.5, torch.float16) > 2**-11
    (True, True)
    """
    return rounded_error(ROUNDING_UNITS * torch.finfo(working_type(dtype)).eps / alpha, _rounding(dtype))


def default_tolerance(alpha: float, dtype: torch.dtype) -> float:
    """Return the tolerance of a solver that was given none: a millionth, or twice the least where that is more.

    >>> default_tolerance(0.1, torch.float64), round(default_tolerance(0.1, torch.float32), 6)
    (1e-06, 1.9e-05)
    """
    least = least_error(alpha, dtype)
    return max(1e-6, min(2.0 * least, 0.5 + 0.5 * least))  # below 1, as a tolerance is, wherever the least is


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
