"""Beyond full batches: training on the neighbourhoods of labelled nodes, predictions in blocks."""

from pprop.scale.blocks import predict
from pprop.scale.minibatch import train
from pprop.scale.neighbourhoods import Neighbourhoods, find_neighbourhoods

__all__ = ["Neighbourhoods", "find_neighbourhoods", "predict", "train"]
