"""The ensemble of ``docs/accuracy.md`` as a model for the study: ``--model pprop.study.more_accuracy:build``."""

from __future__ import annotations

from pprop.estimators import APPNPEnsembleClassifier
from pprop.graph import Graph

__all__ = ["build"]


def build(graph: Graph, seed: int = 0) -> APPNPEnsembleClassifier:
    """Return the one configuration for all graphs that was chosen on validation splits.

    Parameters
    ----------
    graph
        With features; labels are not read.
    seed
        Of the run.

    Examples
    --------
    >>> from pprop.datasets import load_dataset
    >>> model = build(load_dataset("citeseer"), seed=7)
    >>> model.members, model.random_state
    (8, 7)
    """
    return APPNPEnsembleClassifier(graph, random_state=seed)
