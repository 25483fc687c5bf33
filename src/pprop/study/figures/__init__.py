"""Figures: each is a function that computes what is shown, and one that draws it. matplotlib waits for the latter."""

from pprop.study.figures.curves import Curves, curves_data, draw_curves
from pprop.study.figures.distribution import Distribution, distribution_data, draw_distribution
from pprop.study.figures.style import save_figure

__all__ = [
    "Curves",
    "Distribution",
    "curves_data",
    "distribution_data",
    "draw_curves",
    "draw_distribution",
    "save_figure",
]
