"""APPNP, PPNP and the network without propagation as scikit-learn classifiers."""

from __future__ import annotations

from typing import Any, final

import torch

from pprop._validate import reject
from pprop.estimators.base import FitData, TrainedClassifier
from pprop.estimators.fitted import Learned
from pprop.estimators.parameters import MatrixParameters, PredictorParameters, parameters
from pprop.estimators.weights import AnyModel
from pprop.models import APPNP, MLP, PPNP, SolvedPPNP
from pprop.propagation.certificate import least_error
from pprop.propagation.tolerance_solvers import TOLERANCE_SOLVERS
from pprop.settings import (
    EDGE_DROPOUT,
    GCN_DROPOUT,
    PENALTY,
    POSITIVE_TELEPORT,
    SAME_DROPOUT,
    SOLVER,
    STEPS,
    TELEPORT,
    TOL,
    WIDTH,
)


@final
@parameters
class APPNPClassifier(TrainedClassifier, MatrixParameters, PredictorParameters):
    """The paper's APPNP as a scikit-learn classifier: a network on each node, then K power steps over the graph.

    Samples are nodes: wherever scikit-learn says X, give positions of nodes in `graph`, shape (m,) or (m, 1).
    ``graph.positions(ids)`` turns ids into positions. The labels of the graph are never read.

    Attributes
    ----------
    classes_
        The labels seen in `fit`, sorted, shape (c,).
    n_iter_, history_
        Epochs made, and the curves of the losses and of the stopping accuracy.
    record_
        How the training went.
    alpha_
        The teleport probability that was used.
    weights_, logits_
        The kept weights by name, and the logits of all nodes, shape (n, c).
    train_nodes_, stopping_nodes_
        Positions of the nodes that trained and of those that early stopping watched.
    known_nodes_, known_labels_
        Both of them, each once, and their labels.
    n_features_in_
        1: a sample is one number, its position.

    References
    ----------
    J. Gasteiger, A. Bojchevski, S. Günnemann. Predict then Propagate: Graph Neural Networks meet Personalized PageRank.
    ICLR 2019.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = APPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5).predict([0, 4])
    array(['left', 'right'], dtype='<U5')
    >>> model.predict_proba([2]).shape, model.n_iter_
    ((1, 2), 20)
    """

    _kind = staticmethod(APPNP)

    alpha: float | None = TELEPORT.field()
    steps: int = STEPS.field()
    propagation_dropout: float | None = SAME_DROPOUT.field()


@final
@parameters
class PPNPClassifier(TrainedClassifier, MatrixParameters, PredictorParameters):
    """The paper's PPNP as a scikit-learn classifier: a network on each node, then exact personalized PageRank.

    Samples are nodes, as in `APPNPClassifier`, which also lists the attributes; `alpha` is in (0, 1], and there are no
    `steps`.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = PPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], [1, 1, 2, 2], stopping=0.5).predict([0, 4])
    array([1, 2])
    """

    _kind = staticmethod(PPNP)

    alpha: float | None = POSITIVE_TELEPORT.field()
    propagation_dropout: float | None = SAME_DROPOUT.field()


@final
@parameters
class SolvedPPNPClassifier(TrainedClassifier, MatrixParameters):
    """PPNP that solves for all nodes to a tolerance in every epoch, in place of rows of the PPR matrix.

    Samples are nodes, as in `APPNPClassifier`, which also lists the attributes; the model is `pprop.SolvedPPNP`. It is
    for many labelled nodes, whose rows of the matrix would not fit; for few, `PPNPClassifier` is faster. It trains on
    the CPU.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = SolvedPPNPClassifier(graph, tol=1e-3, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], [1, 1, 2, 2], stopping=0.5).predict([0, 4])
    array([1, 2])
    """

    alpha: float | None = POSITIVE_TELEPORT.field()
    tol: float = TOL.field()
    solver: str = SOLVER.field()
    hidden: int = WIDTH.field()
    dropout: float = GCN_DROPOUT.field()
    edge_dropout: float = EDGE_DROPOUT.field()
    penalty: float = PENALTY.field()

    def _model(self, values: dict[str, Any]) -> SolvedPPNP:
        name, kind = type(self).__name__, TOLERANCE_SOLVERS[values["solver"]]
        least = least_error(values["alpha"], torch.float32)
        if values["tol"] < least:
            expected = f"at least {least:.2g}, what float32 can reach at alpha {values['alpha']:g}"
            reject("tol", name, expected, values["tol"])
        names = ("alpha", "hidden", "dropout", "edge_dropout", "penalty", "normalization", "self_loops")
        return SolvedPPNP(solver=kind(values["tol"]), **{name: values[name] for name in names})

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        if data.graph.directed and TOLERANCE_SOLVERS[values["solver"]].symmetric:
            reject("solver", type(self).__name__, "'contraction' for a directed graph", values["solver"])
        return super()._learn(model, data, values)


@final
@parameters
class MLPNodeClassifier(TrainedClassifier, PredictorParameters):
    """The network alone, which sees the features of each node and no edges.

    Samples are nodes, as in `APPNPClassifier`, which also lists the attributes.

    Examples
    --------
    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((5, 5)), features=np.eye(5)[[0, 0, 0, 1, 1]])
    >>> model = MLPNodeClassifier(graph, hidden=8, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], [1, 1, 2, 2], stopping=0.5).predict([2])
    array([1])
    """

    _kind = staticmethod(MLP)
