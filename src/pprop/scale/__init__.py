"""Beyond full batches: training on the neighbourhoods of labelled nodes, predictions in blocks."""

from pprop.scale.neighbourhoods import Neighbourhoods, find_neighbourhoods
from pprop.scale.predict import predict
from pprop.scale.train import train

__all__ = ["Neighbourhoods", "find_neighbourhoods", "predict", "train"]
