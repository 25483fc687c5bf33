"""The jumping knowledge network as a scikit-learn classifier."""

from __future__ import annotations

from typing import final

import numpy as np

from pprop._validate import check_float, check_int
from pprop.estimators._settings import MOST_STEPS
from pprop.estimators.trained import TrainedClassifier
from pprop.graph import Graph
from pprop.models import JK

__all__ = ["JKClassifier"]


@final
class JKClassifier(TrainedClassifier):
    """Layers of a graph convolutional network, all of which the last layer sees.

    Samples are nodes, as in `APPNPClassifier`; the model is `pprop.JK`.

    Parameters
    ----------
    graph
        With features. It is shared, not copied, when the estimator is cloned.
    hidden
        Width of each convolution.
    layers
        Convolutions. The paper's three layers are two of them and the last product.
    dropout
        On the nonzeros of the features, between convolutions, and on their concatenation.
    penalty
        lambda of the L2 penalty lambda / 2 * |W|^2 on all matrices.
    learning_rate
        Adam's.
    patience, max_epochs
        Epochs without improvement before training ends, and epochs after which it ends in any case.
    stopping, random_state, backend, device, verbose
        See `APPNPClassifier`, which also lists the attributes.

    References
    ----------
    K. Xu, C. Li, Y. Tian, T. Sonobe, K. Kawarabayashi, S. Jegelka. Representation Learning on Graphs with Jumping
    Knowledge Networks. ICML 2018.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = JKClassifier(graph, hidden=8, dropout=0.0, max_epochs=30, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    """

    def __init__(
        self,
        graph: Graph,
        hidden: int = 64,
        layers: int = 2,
        dropout: float = 0.5,
        penalty: float = 0.001,
        learning_rate: float = 0.01,
        patience: int = 100,
        max_epochs: int = 10000,
        stopping: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        backend: str = "auto",
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.hidden = hidden
        self.layers = layers
        self.dropout = dropout
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.patience = patience
        self.max_epochs = max_epochs
        self.stopping = stopping
        self.random_state = random_state
        self.backend = backend
        self.device = device
        self.verbose = verbose

    def _model(self, alpha: float | None) -> JK:
        name = "JKClassifier"
        return JK(
            hidden=check_int(self.hidden, "hidden", name, low=1),
            layers=check_int(self.layers, "layers", name, low=1, high=MOST_STEPS),
            dropout=check_float(self.dropout, "dropout", name, "[0, 1)"),
            penalty=check_float(self.penalty, "penalty", name, "[0, inf)"),
        )
