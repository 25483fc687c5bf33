"""Training: R independent runs at once, the paper's loss, optimiser and early stopping."""

from pprop.training.loop import Stopping
from pprop.training.result import History, Trained
from pprop.training.train import run_seed, train

__all__ = ["History", "Stopping", "Trained", "run_seed", "train"]
