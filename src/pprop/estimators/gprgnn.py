"""Predict, then propagate with learned weights of hops, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, final

import numpy as np

from pprop import settings
from pprop.estimators.node import GRAPH, RANDOM_STATE, NodeClassifier, parameters
from pprop.graph import Graph
from pprop.models import GPRGNN


@final
@parameters
class GPRGNNClassifier(NodeClassifier):
    """APPNP whose weights of hops are learned: a negative weight subtracts what neighbours at that distance predict.

    Samples are nodes, as in `APPNPClassifier`, which also lists the attributes; the model is `pprop.GPRGNN`. Training begins with
    the weights of personalized PageRank. ``weights_["hops"]`` is what training adds to them.

    References
    ----------
    E. Chien, J. Peng, P. Li, O. Milenkovic. Adaptive Universal Generalized PageRank Graph Neural Network. ICLR 2021.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5))
    >>> model = GPRGNNClassifier(graph, hidden=8, dropout=0.0, max_epochs=30, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    >>> model.weights_["hops"].shape
    (1, 11)
    """

    _several_labels = True
    _kind = GPRGNN

    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH})
    alpha: float | None = settings.TELEPORT.field()
    steps: int = settings.STEPS.field()
    hidden: int = settings.WIDTH.field()
    dropout: float = settings.GCN_DROPOUT.field()
    penalty: float = settings.PENALTY.field()
    normalization: str | None = settings.OWN_NORMALIZATION.field()
    learning_rate: float = settings.LEARNING_RATE.field()
    patience: int = settings.PATIENCE.field()
    max_epochs: int = settings.MAX_EPOCHS.field()
    criterion: str = settings.CRITERION.field()
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    scoring: str | None = settings.SCORING.field()
    positive: Any = settings.POSITIVE.field()
    threshold: str | float | None = settings.THRESHOLD.field()
    scaling: str = settings.SCALING.field()
    stopping: float | None = settings.OPTIONAL_STOPPING.field()
    random_state: int | np.random.RandomState | None = RANDOM_STATE.field()
    backend: str = settings.BACKEND.field()
    device: str = settings.DEVICE.field()
    verbose: int = settings.VERBOSE.field()
