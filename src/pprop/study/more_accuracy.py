"""The ensembles of ``docs/accuracy.md`` as models for the study: ``--model pprop.study.more_accuracy:build``."""

from __future__ import annotations

from pprop.estimators import APPNPEnsembleClassifier
from pprop.graph import Graph

__all__ = ["build", "build_folds"]


def build(graph: Graph, seed: int = 0) -> APPNPEnsembleClassifier:
    """Return the one configuration for all graphs that uses labels as the paper does: stopping nodes never train.

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


def build_folds(graph: Graph, seed: int = 0) -> APPNPEnsembleClassifier:
    """Return the one configuration for all graphs in which stopping nodes train, too, in five folds.

    The labels are those that APPNP is given, but APPNP learns from a part of them only: the two are not to be confused.

    Parameters
    ----------
    graph
        With features; labels are not read.
    seed
        Of the run.

    Examples
    --------
    >>> from pprop.datasets import load_dataset
    >>> model = build_folds(load_dataset("citeseer"), seed=7)
    >>> model.folds, model.members, model.rounds, model.random_state
    (5, 10, 0, 7)
    """
    return APPNPEnsembleClassifier(graph, members=10, rounds=0, folds=5, random_state=seed)
