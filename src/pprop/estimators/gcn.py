"""The graph convolutional network as a scikit-learn classifier."""

from __future__ import annotations

from typing import final

import numpy as np

from pprop._validate import check_choice, check_float, check_int
from pprop.estimators.trained import TrainedClassifier
from pprop.graph import Graph
from pprop.models import GCN
from pprop.training import Stopping
from pprop.training.stopping import CRITERIA

__all__ = ["GCNClassifier"]


@final
class GCNClassifier(TrainedClassifier):
    """A graph convolutional network of two layers, with the settings of the paper's optimised GCN.

    Samples are nodes, as in `APPNPClassifier`; the model is `pprop.GCN`.
    The paper's vanilla GCN is ``GCNClassifier(graph, hidden=16, matrix_dropout=0.0, penalty=5e-4, patience=10,
    max_epochs=200, criterion="loss")``.

    Parameters
    ----------
    graph
        With features. It is shared, not copied, when the estimator is cloned.
    hidden
        Width of the hidden layer.
    dropout
        On the nonzeros of the features and on the hidden layer.
    matrix_dropout
        On the entries of A_hat, afresh in each layer.
    penalty
        lambda of the L2 penalty lambda / 2 * |W|^2 on the first layer.
    learning_rate
        Adam's.
    patience, max_epochs
        Epochs without improvement before training ends, and epochs after which it ends in any case.
    criterion
        What early stopping watches; see `pprop.Stopping`.
    stopping, random_state, backend, device, verbose
        See `APPNPClassifier`, which also lists the attributes.

    References
    ----------
    T. N. Kipf, M. Welling. Semi-Supervised Classification with Graph Convolutional Networks. ICLR 2017.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = GCNClassifier(graph, hidden=8, dropout=0.0, matrix_dropout=0.0, max_epochs=30, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    """

    def __init__(
        self,
        graph: Graph,
        hidden: int = 64,
        dropout: float = 0.5,
        matrix_dropout: float = 0.5,
        penalty: float = 0.02,
        learning_rate: float = 0.01,
        patience: int = 100,
        max_epochs: int = 10000,
        criterion: str = "paper",
        stopping: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        backend: str = "auto",
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.hidden = hidden
        self.dropout = dropout
        self.matrix_dropout = matrix_dropout
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.patience = patience
        self.max_epochs = max_epochs
        self.criterion = criterion
        self.stopping = stopping
        self.random_state = random_state
        self.backend = backend
        self.device = device
        self.verbose = verbose

    def _model(self, alpha: float | None) -> GCN:
        name = "GCNClassifier"
        return GCN(
            hidden=check_int(self.hidden, "hidden", name, low=1),
            dropout=check_float(self.dropout, "dropout", name, "[0, 1)"),
            matrix_dropout=check_float(self.matrix_dropout, "matrix_dropout", name, "[0, 1)"),
            penalty=check_float(self.penalty, "penalty", name, "[0, inf)"),
        )

    def _rule(self) -> Stopping:
        rule = super()._rule()
        criterion = check_choice(self.criterion, "criterion", "GCNClassifier", CRITERIA)
        return Stopping(rule.patience, rule.max_epochs, criterion)
