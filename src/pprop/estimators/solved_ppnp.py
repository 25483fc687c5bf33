"""PPNP with a solve in every epoch as a scikit-learn classifier."""

from __future__ import annotations

from typing import final

import numpy as np
import torch

from pprop._validate import check_choice, check_float, check_int, reject
from pprop.estimators._settings import switch, teleport_probability
from pprop.estimators.trained import TrainedClassifier
from pprop.graph import NORMALIZATIONS, Graph
from pprop.models import SolvedPPNP
from pprop.propagation.certificate import least_error
from pprop.propagation.tolerance_solvers import TOLERANCE_SOLVERS

__all__ = ["SolvedPPNPClassifier"]

_NAME = "SolvedPPNPClassifier"


@final
class SolvedPPNPClassifier(TrainedClassifier):
    """PPNP that solves for all nodes to a tolerance in every epoch, in place of rows of the PPR matrix.

    Samples are nodes, as in `APPNPClassifier`; the model is `pprop.SolvedPPNP`. It is for many labelled nodes, whose rows of
    the matrix would not fit; for few, `PPNPClassifier` is faster. It trains on the CPU.

    Parameters
    ----------
    graph
        With features. It is shared, not copied, when the estimator is cloned.
    alpha
        Teleport probability in (0, 1]. None takes the graph's recommended one, or 0.1.
    tol
        Relative error of each solve, in (0, 1). Training is in float32, which reaches about 1e-6 / alpha.
    solver
        ``"chebyshev"`` or ``"cg"`` (conjugate gradients) for undirected graphs, ``"contraction"`` for all.
    hidden
        Width of the hidden layer.
    dropout
        On the nonzeros of the features and on the hidden layer.
    edge_dropout
        Probability of dropping an edge of the graph, afresh in every epoch.
    penalty
        lambda of the L2 penalty lambda / 2 * |W|^2 on the first layer.
    learning_rate
        Adam's.
    patience, max_epochs
        Epochs without improvement before training ends, and epochs after which it ends in any case.
    normalization, self_loops
        See `transition_matrix`.
    stopping, random_state, backend, device, verbose
        See `APPNPClassifier`, which also lists the attributes.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = SolvedPPNPClassifier(graph, tol=1e-3, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], [1, 1, 2, 2], stopping=0.5).predict([0, 4])
    array([1, 2])
    """

    def __init__(
        self,
        graph: Graph,
        alpha: float | None = None,
        tol: float = 1e-4,
        solver: str = "chebyshev",
        hidden: int = 64,
        dropout: float = 0.5,
        edge_dropout: float = 0.0,
        penalty: float = 0.005,
        learning_rate: float = 0.01,
        patience: int = 100,
        max_epochs: int = 10000,
        normalization: str = "sym",
        self_loops: bool = True,
        stopping: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        backend: str = "auto",
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.alpha = alpha
        self.tol = tol
        self.solver = solver
        self.hidden = hidden
        self.dropout = dropout
        self.edge_dropout = edge_dropout
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.patience = patience
        self.max_epochs = max_epochs
        self.normalization = normalization
        self.self_loops = self_loops
        self.stopping = stopping
        self.random_state = random_state
        self.backend = backend
        self.device = device
        self.verbose = verbose

    def _teleport(self) -> float:
        return teleport_probability(self.alpha, self.graph, "(0, 1]", _NAME)

    def _model(self, alpha: float | None) -> SolvedPPNP:
        teleport = check_float(alpha, "alpha", _NAME, "(0, 1]")
        tol = check_float(self.tol, "tol", _NAME, "(0, 1)")
        least = least_error(teleport, torch.float32)
        if tol < least:
            reject("tol", _NAME, f"at least {least:.2g}, what float32 can reach at alpha {teleport:g}", tol)
        kind = TOLERANCE_SOLVERS[check_choice(self.solver, "solver", _NAME, list(TOLERANCE_SOLVERS))]
        return SolvedPPNP(
            alpha=teleport,
            solver=kind(tol),
            hidden=check_int(self.hidden, "hidden", _NAME, low=1),
            dropout=check_float(self.dropout, "dropout", _NAME, "[0, 1)"),
            edge_dropout=check_float(self.edge_dropout, "edge_dropout", _NAME, "[0, 1)"),
            penalty=check_float(self.penalty, "penalty", _NAME, "[0, inf)"),
            normalization=check_choice(self.normalization, "normalization", _NAME, NORMALIZATIONS),
            self_loops=switch(self.self_loops, "self_loops", _NAME),
        )

    def _check_learning(self) -> None:
        super()._check_learning()
        if self.graph.directed and TOLERANCE_SOLVERS[self.solver].symmetric:
            reject("solver", _NAME, "'contraction' for a directed graph", self.solver)
