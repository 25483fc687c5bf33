"""Personalized PageRank: an operator (transition matrix and alpha) and the solvers that apply it."""

from pprop.propagation.api import Propagation, propagate, solve
from pprop.propagation.certificate import Certificate, CertifiedSolution
from pprop.propagation.live_graph import LiveGraph
from pprop.propagation.live_record import LiveDifference, LiveUpdate
from pprop.propagation.operator import PPROperator
from pprop.propagation.push import LocalPush, PushedRow, SparseRows, ppr
from pprop.propagation.solvers import Exact, Limit, Outcome, PowerIteration, RowSolver, Solution, Solver, Statistics
from pprop.propagation.tolerance import Chebyshev, ConjugateGradient, Contraction, ToleranceOutcome, ToleranceSolver

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
