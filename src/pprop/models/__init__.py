"""Models: a predictor of each node alone and a propagation of the predictions; and the baselines of the paper."""

from pprop.models.architecture import Architecture
from pprop.models.gcn import GCN
from pprop.models.model import APPNP, MLP, PPNP, Model, Predictor, PropagationSettings
from pprop.models.network import FeatureNetwork

__all__ = [
    "APPNP",
    "GCN",
    "MLP",
    "PPNP",
    "Architecture",
    "FeatureNetwork",
    "Model",
    "Predictor",
    "PropagationSettings",
]
