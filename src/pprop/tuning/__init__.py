"""Choosing settings: a search over their space, judged on labelled nodes that neither train nor stop."""

from pprop.settings import Range
from pprop.tuning.tune import Tuned, TuningTrial, save_figures, tune

__all__ = ["Range", "Tuned", "TuningTrial", "save_figures", "tune"]
