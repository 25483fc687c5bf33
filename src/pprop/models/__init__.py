"""Models: a predictor of each node alone and a propagation of the predictions; and the baselines of the paper."""

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
