"""Personalized PageRank: an operator (transition matrix and alpha) and the solvers that apply it."""

from pprop.propagation.api import propagate, solve
from pprop.propagation.module import Propagation
from pprop.propagation.operator import PPROperator
from pprop.propagation.solution import Outcome, Solution, Statistics
from pprop.propagation.solvers import Exact, PowerIteration, Solver

__all__ = [
    "Exact",
    "Outcome",
    "PPROperator",
    "PowerIteration",
    "Propagation",
    "Solution",
    "Solver",
    "Statistics",
    "propagate",
    "solve",
]
