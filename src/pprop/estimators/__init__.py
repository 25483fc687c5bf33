"""The scikit-learn face: classifiers whose samples are nodes, and models on disk."""

from pprop.estimators.appnp import APPNPClassifier
from pprop.estimators.artefact import load
from pprop.estimators.base import NodeClassifier
from pprop.estimators.mlp import MLPNodeClassifier
from pprop.estimators.ppnp import PPNPClassifier
from pprop.estimators.record import TrainingRecord
from pprop.estimators.source import GraphSource

__all__ = [
    "APPNPClassifier",
    "GraphSource",
    "MLPNodeClassifier",
    "NodeClassifier",
    "PPNPClassifier",
    "TrainingRecord",
    "load",
]
