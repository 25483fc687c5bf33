"""Figures: each is a function that computes what is shown, and one that draws it. matplotlib waits for the latter."""

from pprop.study.figures.all import Drawn, figures_of
from pprop.study.figures.curves import Curves, curves_data, draw_curves
from pprop.study.figures.distance import Distance, Ring, distance_data, draw_distance
from pprop.study.figures.distribution import (
    Distribution,
    Distributions,
    distribution_data,
    distributions_data,
    draw_distribution,
    draw_distributions,
)
from pprop.study.figures.hops import hops_from
from pprop.study.figures.lines import Lines, Panel, Series
from pprop.study.figures.propagation import WAYS, Propagated, Way, draw_propagation, propagation_data
from pprop.study.figures.style import save_figure
from pprop.study.figures.sweeps import (
    alpha_data,
    depth_data,
    draw_alpha,
    draw_depth,
    draw_labels,
    draw_steps,
    labels_data,
    steps_data,
)
from pprop.study.stats.estimate import Estimate, estimate

__all__ = [
    "WAYS",
    "Curves",
    "Distance",
    "Distribution",
    "Distributions",
    "Drawn",
    "Estimate",
    "Lines",
    "Panel",
    "Propagated",
    "Ring",
    "Series",
    "Way",
    "alpha_data",
    "curves_data",
    "depth_data",
    "distance_data",
    "distribution_data",
    "distributions_data",
    "draw_alpha",
    "draw_curves",
    "draw_depth",
    "draw_distance",
    "draw_distribution",
    "draw_distributions",
    "draw_labels",
    "draw_propagation",
    "draw_steps",
    "estimate",
    "figures_of",
    "hops_from",
    "labels_data",
    "propagation_data",
    "save_figure",
    "steps_data",
]
