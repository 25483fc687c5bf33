"""APPNP as a scikit-learn classifier."""

from __future__ import annotations

from typing import final

from pprop._validate import check_choice, check_float
from pprop.estimators._settings import (
    layer_widths,
    matrix_dropout,
    module_or_none,
    power_steps,
    switch,
    teleport_probability,
)
from pprop.estimators.parameters import PredictorParameters, PropagationParameters, TrainingParameters, parameters
from pprop.estimators.trained import TrainedClassifier
from pprop.graph import NORMALIZATIONS
from pprop.models import APPNP, Model
from pprop.settings import STEPS, TELEPORT

__all__ = ["APPNPClassifier"]


@final
@parameters
class APPNPClassifier(TrainedClassifier, TrainingParameters, PropagationParameters, PredictorParameters):
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

    alpha: float | None = TELEPORT.field()
    steps: int = STEPS.field()

    def _teleport(self) -> float:
        return teleport_probability(self.alpha, self.graph, "[0, 1]", "APPNPClassifier")

    def _model(self, alpha: float | None) -> Model:
        name = "APPNPClassifier"
        return APPNP(
            alpha=check_float(alpha, "alpha", name, "[0, 1]"),
            steps=power_steps(self.steps, name),
            hidden=layer_widths(self.hidden, name),
            dropout=check_float(self.dropout, "dropout", name, "[0, 1)"),
            propagation_dropout=matrix_dropout(self.propagation_dropout, name),
            penalty=check_float(self.penalty, "penalty", name, "[0, inf)"),
            normalization=check_choice(self.normalization, "normalization", name, NORMALIZATIONS),
            self_loops=switch(self.self_loops, "self_loops", name),
            predictor=module_or_none(self.predictor, name),
        )
