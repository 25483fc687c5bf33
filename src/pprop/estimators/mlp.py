"""The network without propagation as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from pprop._validate import check_float
from pprop.estimators._settings import layer_widths, module_or_none
from pprop.estimators.trained import ModuleOrFactory, TrainedClassifier
from pprop.graph import Graph
from pprop.models import MLP, Model

__all__ = ["MLPNodeClassifier"]


@final
class MLPNodeClassifier(TrainedClassifier):
    """The network alone, which sees the features of each node and no edges; the yardstick of the other two.

    Parameters and attributes are those of `APPNPClassifier`, without those of the propagation.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((5, 5)), features=np.eye(5)[[0, 0, 0, 1, 1]])
    >>> model = MLPNodeClassifier(graph, hidden=8, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], [1, 1, 2, 2], stopping=0.5).predict([2])
    array([1])
    """

    def __init__(
        self,
        graph: Graph,
        hidden: int | Sequence[int] = 64,
        dropout: float = 0.5,
        penalty: float = 0.005,
        learning_rate: float = 0.01,
        patience: int = 100,
        max_epochs: int = 10000,
        predictor: ModuleOrFactory | None = None,
        stopping: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        backend: str = "auto",
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.hidden = hidden
        self.dropout = dropout
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.patience = patience
        self.max_epochs = max_epochs
        self.predictor = predictor
        self.stopping = stopping
        self.random_state = random_state
        self.backend = backend
        self.device = device
        self.verbose = verbose

    def _model(self, alpha: float | None) -> Model:
        name = "MLPNodeClassifier"
        return MLP(
            hidden=layer_widths(self.hidden, name),
            dropout=check_float(self.dropout, "dropout", name, "[0, 1)"),
            penalty=check_float(self.penalty, "penalty", name, "[0, inf)"),
            predictor=module_or_none(self.predictor, name),
        )
