"""Graphs beyond memory, on one machine: folders built from streams of edges."""

from pprop.scale.build import build_graph

__all__ = ["build_graph"]
