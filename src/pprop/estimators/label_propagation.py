"""Label propagation as a scikit-learn classifier, for graphs without features."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Self, cast, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pprop import settings
from pprop._compiling import compiling
from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.estimators.explanation import AGREE, NodeSum, check_agreement
from pprop.estimators.fitted import TrainingRecord, Weights
from pprop.estimators.node import NodeClassifier
from pprop.estimators.parameters import GRAPH, parameters
from pprop.estimators.reading import FitData, Given, class_weights
from pprop.graph import Graph
from pprop.models.label_propagation import LabelPropagation
from pprop.propagation.attribution import Attributor
from pprop.propagation.live_record import probabilities_of
from pprop.training import History


@final
@parameters
class LabelPropagationClassifier(NodeClassifier):
    """Labels spread over the graph by personalized PageRank. Features are not read, and nothing is trained.

        Z = (1 - alpha) T Z + alpha Y,    Y_ik = 1 where node i is known to be of class k, else 0,

    by K power steps. The probabilities of a node are its row of Z divided by the row's sum. A node that no label reaches,
    such as one without edges, gets the shares of the classes among the labels. Samples are nodes, as in
    `APPNPClassifier`. (scikit-learn's LabelSpreading calls 1 - alpha alpha, and adds no self-loops.)

    Attributes
    ----------
    classes_
        The labels seen in `fit`, sorted, shape (c,).
    logits_
        Logarithms of the probabilities of all nodes, shape (n, c).
    known_nodes_, known_labels_, amounts_
        The nodes with a label, in ascending order, their labels, and how much each counts.
    n_unlabelled_
        Nodes given to `fit` that were left out, since their label is unknown.
    alpha_
        The teleport probability that was used.
    record_
        How long it took.

    Notes
    -----
    It is saved as the other classifiers are, but for its own graph alone: on another one there are no labels to spread.

    References
    ----------
    D. Zhou, O. Bousquet, T. N. Lal, J. Weston, B. Schölkopf. Learning with Local and Global Consistency. NIPS 2003.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, ids=list("abcde"))
    >>> model = LabelPropagationClassifier(graph).fit(["a", "e"], ["left", "right"])
    >>> model.predict(["b", "d"])
    array(['left', 'right'], dtype='<U5')
    >>> model.predict_proba(["c"])
    array([[0.5, 0.5]])
    """

    _kind = LabelPropagation

    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH.but(None, "Shared, not copied, in a clone.")})
    alpha: float | None = settings.TELEPORT.field()
    steps: int = settings.LABEL_STEPS.field()
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    backend: str = settings.BACKEND.field()
    normalization: str = settings.NORMALIZATION.field()
    self_loops: bool = settings.SELF_LOOPS.field()

    def _fit(self, given: Given, values: dict[str, Any]) -> None:
        begin, compiled = time.perf_counter(), compiling.seconds
        graph, pair = self.graph, given.stopping
        if not isinstance(pair, tuple | None):
            expected = "None, or a pair (nodes, y) of more labels to spread: there is nothing to stop"
            reject("stopping", type(self).__name__, expected, describe(pair))
        data = FitData.of(given, graph)
        split, known, classes = data.split, data.values, data.target.names
        nodes = np.concatenate([split.train, split.stopping])
        much = np.ones(len(nodes))
        much[: len(given.nodes)] = 1.0 if given.weights is None else given.weights
        much *= class_weights(values["class_weight"], known[nodes], much, classes)[known[nodes]]
        self.known_nodes_ = np.flatnonzero(known >= 0)
        self.known_labels_ = classes[known[self.known_nodes_]]
        amounts: Any = np.bincount(nodes, much, minlength=graph.n_nodes)
        self.amounts_: NDArray[np.float64] = amounts[self.known_nodes_]
        self.train_nodes_, self.stopping_nodes_ = nodes, nodes[:0]
        self.graph_, self.model_, self.classes_ = graph, self._model(values), classes
        self.alpha_, self.weights_, self.scaling_ = values["alpha"], {}, None
        self.logits_, backend = self._spread()
        none = np.empty(0)
        record = TrainingRecord(
            epochs=0,
            best_epoch=0,
            stopping_loss=float("nan"),
            stopping_accuracy=float("nan"),
            seconds=time.perf_counter() - begin,
            compile_seconds=compiling.seconds - compiled,
            backend=backend,
            device="cpu",
            seed=0,
            train_nodes=len(nodes),
            stopping_nodes=0,
        )
        self._keep_record(record, History(none, none.copy(), none.copy()))

    def on(self, graph: Graph) -> Self:
        """Refuse any other graph: the labels belong to the nodes of the one that they were given for."""
        check_is_fitted(self)
        if isinstance(graph, Graph) and graph.fingerprint != self.graph_.fingerprint:
            raise InputError(elsewhere(type(self).__name__))
        return super().on(graph)

    def _sources(self) -> tuple[NDArray[np.float64], Any]:
        model = cast("LabelPropagation", self.model_)
        codes = np.searchsorted(self.classes_, self.known_labels_)
        return model.sources(self.graph_, self.known_nodes_, codes, self.amounts_, len(self.classes_), self.backend)

    def _spread(self) -> tuple[NDArray[np.float64], str]:
        spread, solution = self._sources()
        shares = spread.sum(axis=0)
        reached: NDArray[np.float64] = solution.value
        value = np.where(reached.any(axis=1, keepdims=True), reached, shares)
        value = value / value.max(axis=1, keepdims=True)  # of faint numbers, too, there are shares
        probabilities = value / value.sum(axis=1, keepdims=True)
        return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny)), solution.statistics.backend

    def _extras(self) -> Weights:
        return {"amounts": self.amounts_}

    def _restored(self, logits: NDArray[np.float32], extras: Weights) -> NDArray[Any]:
        name, nodes = type(self).__name__, self.known_nodes_
        amounts = extras.get("amounts", np.empty(0))
        sound = list(extras) == ["amounts"] and amounts.shape == nodes.shape and amounts.dtype == np.float64
        if not sound or not (np.isfinite(amounts) & (amounts >= 0)).all() or not amounts.any():
            expected = f"given the amounts of {len(nodes)} labels, finite, not negative and not all 0"
            reject("extras", name, expected, describe(sorted(extras)))
        self.amounts_ = amounts
        return self._spread()[0]

    def _node_sum(self) -> NodeSum:
        model = cast("LabelPropagation", self.model_)
        attributor = Attributor(self._sources()[0], model.operator(self.graph_), model.solver)
        again = probabilities_of(attributor.value, "probabilities")
        check_agreement(type(self).__name__, again, np.exp(self.logits_), AGREE)
        return NodeSum(self.logits_, "probability", attributor)


def elsewhere(name: str) -> str:
    """Return why a fitted model cannot be used on another graph than its own."""
    return f"The labels that a {name} spreads belong to the nodes of the graph that it was fitted on. Fit one on this graph."
