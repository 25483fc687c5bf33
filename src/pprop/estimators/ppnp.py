"""PPNP as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from pprop._validate import check_choice, check_float
from pprop.estimators._settings import layer_widths, matrix_dropout, module_or_none, switch, teleport_probability
from pprop.estimators.trained import ModuleOrFactory, TrainedClassifier
from pprop.graph import NORMALIZATIONS, Graph
from pprop.models import PPNP, Model

__all__ = ["PPNPClassifier"]


@final
class PPNPClassifier(TrainedClassifier):
    """The paper's PPNP as a scikit-learn classifier: a network on each node, then exact personalized PageRank.

    Parameters and attributes are those of `APPNPClassifier`, without `steps`; `alpha` is in (0, 1].

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = PPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], [1, 1, 2, 2], stopping=0.5).predict([0, 4])
    array([1, 2])
    """

    def __init__(
        self,
        graph: Graph,
        alpha: float | None = None,
        hidden: int | Sequence[int] = 64,
        dropout: float = 0.5,
        propagation_dropout: float | None = None,
        penalty: float = 0.005,
        learning_rate: float = 0.01,
        patience: int = 100,
        max_epochs: int = 10000,
        normalization: str = "sym",
        self_loops: bool = True,
        predictor: ModuleOrFactory | None = None,
        stopping: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        backend: str = "auto",
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.alpha = alpha
        self.hidden = hidden
        self.dropout = dropout
        self.propagation_dropout = propagation_dropout
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.patience = patience
        self.max_epochs = max_epochs
        self.normalization = normalization
        self.self_loops = self_loops
        self.predictor = predictor
        self.stopping = stopping
        self.random_state = random_state
        self.backend = backend
        self.device = device
        self.verbose = verbose

    def _teleport(self) -> float:
        return teleport_probability(self.alpha, self.graph, "(0, 1]", "PPNPClassifier")

    def _model(self, alpha: float | None) -> Model:
        name = "PPNPClassifier"
        return PPNP(
            alpha=check_float(alpha, "alpha", name, "(0, 1]"),
            hidden=layer_widths(self.hidden, name),
            dropout=check_float(self.dropout, "dropout", name, "[0, 1)"),
            propagation_dropout=matrix_dropout(self.propagation_dropout, name),
            penalty=check_float(self.penalty, "penalty", name, "[0, inf)"),
            normalization=check_choice(self.normalization, "normalization", name, NORMALIZATIONS),
            self_loops=switch(self.self_loops, "self_loops", name),
            predictor=module_or_none(self.predictor, name),
        )
