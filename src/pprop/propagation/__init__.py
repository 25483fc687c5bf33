"""Personalized PageRank: an operator (transition matrix and alpha) and the solvers that apply it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pprop.propagation.api import propagate, solve
from pprop.propagation.certificate import Certificate, CertifiedSolution
from pprop.propagation.live_graph import LiveGraph
from pprop.propagation.live_record import LiveDifference, LiveUpdate
from pprop.propagation.operator import PPROperator
from pprop.propagation.push import LocalPush, PushedRow, SparseRows, ppr
from pprop.propagation.solvers import Exact, Limit, Outcome, PowerIteration, RowSolver, Solution, Solver, Statistics
from pprop.propagation.tolerance import Chebyshev, ConjugateGradient, Contraction, ToleranceOutcome, ToleranceSolver

if TYPE_CHECKING:
    from pprop.propagation.module import Propagation

__all__ = [
    "Certificate",
    "CertifiedSolution",
    "Chebyshev",
    "ConjugateGradient",
    "Contraction",
    "Exact",
    "Limit",
    "LiveDifference",
    "LiveGraph",
    "LiveUpdate",
    "LocalPush",
    "Outcome",
    "PPROperator",
    "PowerIteration",
    "Propagation",
    "PushedRow",
    "RowSolver",
    "Solution",
    "Solver",
    "SparseRows",
    "Statistics",
    "ToleranceOutcome",
    "ToleranceSolver",
    "ppr",
    "propagate",
    "solve",
]


def __getattr__(name: str) -> object:
    """Import the layer for torch when it is asked for: nothing else in this package needs torch."""
    if name != "Propagation":
        raise AttributeError(f"module 'pprop.propagation' has no attribute {name!r}")
    from pprop.propagation.module import Propagation

    return Propagation
