"""APPNP as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from pprop._validate import check_choice, check_float
from pprop.estimators._settings import (
    layer_widths,
    matrix_dropout,
    module_or_none,
    power_steps,
    switch,
    teleport_probability,
)
from pprop.estimators.trained import ModuleOrFactory, TrainedClassifier
from pprop.graph import NORMALIZATIONS, Graph
from pprop.models import APPNP, Model

__all__ = ["APPNPClassifier"]


@final
class APPNPClassifier(TrainedClassifier):
    """The paper's APPNP as a scikit-learn classifier: a network on each node, then K power steps over the graph.

    Samples are nodes: wherever scikit-learn says X, give positions of nodes in `graph`, shape (m,) or (m, 1).
    ``graph.positions(ids)`` turns ids into positions. The labels of the graph are never read.

    Parameters
    ----------
    graph
        With features. It is shared, not copied, when the estimator is cloned.
    alpha
        Teleport probability in [0, 1]. None takes ``graph.recommended.alpha``, or 0.1 where the graph recommends none.
    steps
        Power steps K, at most 10000.
    hidden
        Width of the hidden layer, or of several.
    dropout
        On the input and on the hidden layer.
    propagation_dropout
        On the entries of the propagation matrix. None: the same as `dropout`.
    penalty
        lambda of the L2 penalty lambda / 2 * |W|^2 on the first layer.
    learning_rate
        Adam's.
    patience, max_epochs
        Epochs without improvement before training ends, and epochs after which it ends in any case.
    normalization, self_loops
        See `pprop.transition_matrix`.
    predictor
        In place of the built-in network: any ``nn.Module`` from features (n, ...), a tensor whose first axis is the
        node, to logits (n, c); or a function that makes one. `hidden` and `dropout` then have no meaning for it.
    stopping
        Fraction of the nodes given to `fit` that is set aside for early stopping, unless `fit` is given other nodes.
    random_state
        An integer is the seed of the run; a RandomState, or numpy's own for None, draws one at every fit.
    backend
        ``"auto"``, or ``"numba"`` (CPU), ``"triton"`` (GPU), ``"reference"`` (anywhere).
    device
        Where to train: ``"cpu"``, or ``"cuda"`` for a GPU. A predictor of one's own is trained on the CPU.
    verbose
        0: silent; 1, or True: a progress bar on standard error; 2: before it, how much memory the training takes.

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

    def __init__(
        self,
        graph: Graph,
        alpha: float | None = None,
        steps: int = 10,
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
        self.steps = steps
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
