"""Graphs beyond memory, on one machine: folders built from streams of edges, training on neighbourhoods, predictions in blocks."""

from pprop.scale.blocks import predict
from pprop.scale.build import build_graph
from pprop.scale.minibatch import train
from pprop.scale.neighbourhoods import Neighbourhoods, find_neighbourhoods

__all__ = ["Neighbourhoods", "build_graph", "find_neighbourhoods", "predict", "train"]
