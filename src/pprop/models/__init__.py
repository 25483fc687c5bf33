"""Models: a predictor of each node alone, followed by a propagation; the baselines of the paper; and others.

The others are GPR-GNN, a residual network, PPNP with a solve in every epoch, and label propagation.
"""

from pprop.models.architecture import Architecture
from pprop.models.gat import GAT
from pprop.models.gcn import GCN, JK, NGCN
from pprop.models.gprgnn import GPRGNN
from pprop.models.model import APPNP, MLP, PPNP, FeatureNetwork, Model, Predictor, PropagationSettings
from pprop.models.residual import ResidualGNN
from pprop.models.solved_ppnp import SolvedPPNP

__all__ = [
    "APPNP",
    "GAT",
    "GCN",
    "GPRGNN",
    "JK",
    "MLP",
    "NGCN",
    "PPNP",
    "Architecture",
    "FeatureNetwork",
    "Model",
    "Predictor",
    "PropagationSettings",
    "ResidualGNN",
    "SolvedPPNP",
]
