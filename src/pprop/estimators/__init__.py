"""The scikit-learn face: classifiers whose samples are nodes, and models on disk."""

from pprop.estimators.appnp import (
    APPNPClassifier,
    APPNPClassifierCV,
    APPNPRegressor,
    MLPNodeClassifier,
    MLPNodeRegressor,
    PPNPClassifier,
    SolvedPPNPClassifier,
)
from pprop.estimators.auto import AutoClassifier
from pprop.estimators.baselines import (
    BootstrappedFPClassifier,
    GATClassifier,
    GCNClassifier,
    JKClassifier,
    NGCNClassifier,
)
from pprop.estimators.columns import ColumnsClassifier
from pprop.estimators.columns_regressor import ColumnsRegressor
from pprop.estimators.ensemble import APPNPEnsembleClassifier
from pprop.estimators.explanation import Explanation, explain
from pprop.estimators.fitted import TrainingRecord
from pprop.estimators.gprgnn import GPRGNNClassifier
from pprop.estimators.label_propagation import LabelPropagationClassifier
from pprop.estimators.live import live
from pprop.estimators.loading import load
from pprop.estimators.node import NodeClassifier
from pprop.estimators.propagated import PropagatedClassifier
from pprop.estimators.propagated_features import PropagatedFeatures
from pprop.estimators.propagated_regressor import PropagatedRegressor
from pprop.estimators.residual import ResidualClassifier
from pprop.estimators.source import GraphSource

__all__ = [
    "APPNPClassifier",
    "APPNPClassifierCV",
    "APPNPEnsembleClassifier",
    "APPNPRegressor",
    "AutoClassifier",
    "BootstrappedFPClassifier",
    "ColumnsClassifier",
    "ColumnsRegressor",
    "Explanation",
    "GATClassifier",
    "GCNClassifier",
    "GPRGNNClassifier",
    "GraphSource",
    "JKClassifier",
    "LabelPropagationClassifier",
    "MLPNodeClassifier",
    "MLPNodeRegressor",
    "NGCNClassifier",
    "NodeClassifier",
    "PPNPClassifier",
    "PropagatedClassifier",
    "PropagatedFeatures",
    "PropagatedRegressor",
    "ResidualClassifier",
    "SolvedPPNPClassifier",
    "TrainingRecord",
    "explain",
    "live",
    "load",
]
