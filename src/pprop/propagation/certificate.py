"""What a solve to a tolerance certifies: a bound of the relative error, and the norm in which it holds.

With r = alpha H - (Z - (1 - alpha) T Z) and a norm in which T has norm at most 1, the error e of Z has |e| <= |r| / alpha.
So |r| <= alpha tol |Z| / (1 + tol) makes |e| at most tol times the norm of the fixed point itself, column by column.

Here T, H and Z are real numbers. What is computed is a rounded residual of a rounded matrix, and `with_rounding` says how
much larger the true one may be. In the variables of `pprop.kernels.solves`, entry by entry of b + (1 - alpha) S A u - u and
in units of 2^-53, to which every operation is exact,

- the product is off by 6 (1 - alpha) S A |u|, for 1 - alpha, S = S_r S_c, their product, its product with the sum, the sum,
  and u = S_c z; and by 4 more for the square roots and inverses in S_r and S_c. Weights add the product of each term, and
  the additions in the degrees: together at most the entries of the longest row or column. A sum that is made one
  term after another adds as many again, a compensated sum the square of that, times 2^-53;
- b = alpha S_c h is off by 2 |b|, and |b| <= |u| + S A |u| + |r|;
- u is off by |u|, and so is the first of the two sums.

S A has norm at most 1, so these are 16 |u|, and more for weights and long rows. The norms, and the quotient of the two,
add a relative error of 2 a node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

from pprop._validate import reject
from pprop.kernels.arrays import EPS
from pprop.kernels.solves import Solved
from pprop.propagation.solvers import Solution, working_type

ROUNDING_UNITS = 8  # units of rounding, over alpha, in the residual of the best solution in a float type
PROOF_UNITS = 16  # half units of rounding of float64, over alpha, of the proof itself on an unweighted graph


@final
@dataclass(frozen=True)
class Certificate:
    """A proven bound of the error of every column of a solution.

    Attributes
    ----------
    tol
        The requested relative error.
    relative_error
        What the residual proves: no column is further from the fixed point, in relation to the fixed point. The rounding
        of the matrix, of the residual and of its norm counts; in half precision, that of the result too.
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
class CertifiedSolution(Solution):
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

    certificate: Certificate


def stop_ratio(alpha: float, tol: float) -> float:
    """Return the largest |r| / |Z| that certifies a relative error of `tol`.

    >>> stop_ratio(0.5, 1.0)
    0.25
    """
    return alpha * tol / (1.0 + tol)


def worst_error(alpha: float, ended: Solved) -> float:
    """Return the relative error |r| / (alpha |Z| - |r|) of the worst column; infinity where |r| certifies none.

    >>> import numpy as np
    >>> worst_error(0.5, Solved(np.zeros((1, 2)), 1, np.array([0.25, 0.1]), np.ones(2)))
    1.0
    """
    worst = 0.0
    for residual, size in zip(ended.residual.tolist(), ended.size.tolist(), strict=True):
        gap = alpha * size - residual
        worst = max(worst, 0.0 if residual == 0.0 else residual / gap if gap > 0 else math.inf)
    return worst


def with_rounding(ended: Solved, longest: int, *, weighted: bool, compensated: bool) -> Solved:
    """Return a solve with an upper bound of the residual in exact arithmetic, in float64: see the head of this module.

    Parameters
    ----------
    ended
        A solve with the norms that were computed.
    longest
        Entries of the longest row or column of the matrix.
    weighted, compensated
        Whether the matrix has weights, and whether rows were summed with what additions lose.

    Examples
    --------
    >>> import numpy as np
    >>> ended = Solved(np.zeros((1, 1)), 1, np.array([0.0]), np.array([1.0]))
    >>> with_rounding(ended, 5, weighted=False, compensated=False).residual * 2.0**53
    array([21.])
    """
    unit = EPS["float64"] / 2
    sums = longest * longest * unit if compensated else longest
    units = (PROOF_UNITS + (longest if weighted else 0) + sums) * ended.carried
    bound = units * unit / (1.0 - units * unit)
    norms = 2.0 * (len(ended.value) + PROOF_UNITS + units) * unit
    return replace(ended, residual=ended.residual * (1.0 + norms) + ended.size * bound)


def rounded_error(error: float, lost: float) -> float:
    """Return the relative error of a value that had `error` before it was moved by `lost` times its own norm.

    >>> rounded_error(0.5, 0.25)
    0.875
    """
    return error + lost * (1.0 + error)  # the value is at most 1 + error times as large as the fixed point


def error_before_rounding(error: float, kind: str) -> float:
    """Return the relative error that becomes at most `error` when every entry is rounded to a float type.

    >>> error_before_rounding(0.01, "float64"), round(error_before_rounding(0.01, "bfloat16"), 4)
    (0.01, 0.0061)
    """
    unit = _rounding(kind)
    return (error - unit) / (1.0 + unit)


def _rounding(kind: str) -> float:
    """Return what rounding a result to its float type can move it by, 0 where it was computed in that type."""
    return 0.0 if kind == working_type(kind) else EPS[kind] / 2


def least_error(alpha: float, kind: str) -> float:
    """Return the relative error below which the rounding of a float type lets no residual prove anything.

    >>> least_error(0.5, "float64") < 1e-14, least_error(0.5, "float16") > 2**-11
    (True, True)
    """
    # a float32 result is judged in float64, whose rounding is negligible
    units = ROUNDING_UNITS + (PROOF_UNITS / 2 if kind == "float64" else 0)
    return rounded_error(units * EPS[working_type(kind)] / alpha, _rounding(kind))


def settle_tolerance(tol: float | None, alpha: float, kind: str, solver: str) -> float:
    """Return the tolerance of a solver for results of a float type; refuse one below what their rounding can prove.

    None is a millionth, or twice the least that can be proven where that is more.

    >>> settle_tolerance(None, 0.1, "float64", "Chebyshev")
    1e-06
    >>> round(settle_tolerance(None, 0.1, "float32", "Chebyshev"), 6)
    1.9e-05
    """
    least = least_error(alpha, kind)
    if least >= 1.0:  # every tolerance is below 1
        expected = f"at least {2 * alpha * least:.2g}, where {kind} can prove an error"
        reject("alpha", solver, expected, alpha)
    if tol is None:
        tol = max(1e-6, min(2.0 * least, 0.5 + 0.5 * least))  # below 1, as a tolerance is, wherever the least is
    if tol < least:
        wider = "" if kind == "float64" else " or predictions in float64"
        expected = f"at least {least:.2g}, what {kind} can reach at alpha {alpha:g}"
        reject("tol", solver, expected, tol, remedy=f"Use a larger tol{wider}.")
    return tol
