"""The graph layer: the frozen Graph, its normalisation and its file formats. numpy and scipy only, no torch."""

from pprop.graph.graph import Graph, Recommended
from pprop.graph.transition import NORMALIZATIONS, Transition, transition_matrix

__all__ = ["NORMALIZATIONS", "Graph", "Recommended", "Transition", "transition_matrix"]
