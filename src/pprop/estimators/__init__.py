"""The scikit-learn face: classifiers whose samples are nodes, and models on disk."""

from pprop.estimators.appnp import APPNPClassifier
from pprop.estimators.appnp_cv import APPNPClassifierCV
from pprop.estimators.artefact import load
from pprop.estimators.base import NodeClassifier
from pprop.estimators.bootstrapped_fp import BootstrappedFPClassifier
from pprop.estimators.ensemble import APPNPEnsembleClassifier
from pprop.estimators.explain_model import explain
from pprop.estimators.explanation import Explanation
from pprop.estimators.gat import GATClassifier
from pprop.estimators.gcn import GCNClassifier
from pprop.estimators.jk import JKClassifier
from pprop.estimators.live_model import live
from pprop.estimators.mlp import MLPNodeClassifier
from pprop.estimators.ngcn import NGCNClassifier
from pprop.estimators.ppnp import PPNPClassifier
from pprop.estimators.propagated import PropagatedClassifier
from pprop.estimators.record import TrainingRecord
from pprop.estimators.solved_ppnp import SolvedPPNPClassifier
from pprop.estimators.source import GraphSource

__all__ = [
    "APPNPClassifier",
    "APPNPClassifierCV",
    "APPNPEnsembleClassifier",
    "BootstrappedFPClassifier",
    "Explanation",
    "GATClassifier",
    "GCNClassifier",
    "GraphSource",
    "JKClassifier",
    "MLPNodeClassifier",
    "NGCNClassifier",
    "NodeClassifier",
    "PPNPClassifier",
    "PropagatedClassifier",
    "SolvedPPNPClassifier",
    "TrainingRecord",
    "explain",
    "live",
    "load",
]
