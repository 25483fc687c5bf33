"""Models: a predictor of each node alone and a propagation of the predictions."""

from pprop.models.model import APPNP, MLP, PPNP, Model, Predictor, PropagationSettings
from pprop.models.network import FeatureNetwork

__all__ = ["APPNP", "MLP", "PPNP", "FeatureNetwork", "Model", "Predictor", "PropagationSettings"]
