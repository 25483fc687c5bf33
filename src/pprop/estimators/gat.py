"""The graph attention network as a scikit-learn classifier."""

from __future__ import annotations

from typing import final

import numpy as np

from pprop._validate import check_float, check_int
from pprop.estimators.trained import TrainedClassifier
from pprop.graph import Graph
from pprop.models import GAT

__all__ = ["GATClassifier"]


@final
class GATClassifier(TrainedClassifier):
    """Two layers of attention over the neighbours of a node and itself.

    Samples are nodes, as in `APPNPClassifier`; the model is `pprop.GAT`.

    Parameters
    ----------
    graph
        With features. It is shared, not copied, when the estimator is cloned.
    heads
        Heads of the first layer.
    units
        Columns of each of them.
    dropout
        On the input of each head, on its coefficients, and on what it sums up.
    penalty
        lambda of the L2 penalty lambda / 2 * |W|^2 on all weights, vectors and biases.
    learning_rate
        Adam's.
    patience, max_epochs
        Epochs without improvement before training ends, and epochs after which it ends in any case.
    stopping, random_state, backend, device, verbose
        See `APPNPClassifier`, which also lists the attributes.

    References
    ----------
    P. Veličković, G. Cucurull, A. Casanova, A. Romero, P. Liò, Y. Bengio. Graph Attention Networks. ICLR 2018.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = GATClassifier(graph, units=4, dropout=0.0, max_epochs=30, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    """

    def __init__(
        self,
        graph: Graph,
        heads: int = 8,
        units: int = 8,
        dropout: float = 0.6,
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
        self.heads = heads
        self.units = units
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

    def _model(self, alpha: float | None) -> GAT:
        name = "GATClassifier"
        return GAT(
            heads=check_int(self.heads, "heads", name, low=1),
            units=check_int(self.units, "units", name, low=1),
            dropout=check_float(self.dropout, "dropout", name, "[0, 1)"),
            penalty=check_float(self.penalty, "penalty", name, "[0, inf)"),
        )
