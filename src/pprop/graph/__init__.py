"""The graph layer: the frozen Graph, its normalisation and its file formats. numpy and scipy only, no torch."""

from pprop.graph.graph import Graph, Recommended

__all__ = ["Graph", "Recommended"]
