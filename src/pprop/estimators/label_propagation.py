"""Label propagation as a scikit-learn classifier, for graphs without features."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from pprop import settings
from pprop._process import compiling
from pprop._validate import describe, reject
from pprop.datasets import Split
from pprop.estimators.fitted import Fitted, TrainingRecord
from pprop.estimators.judgement import Judging, measured
from pprop.estimators.node import GRAPH, NodeClassifier, parameters
from pprop.estimators.reading import FitData, Given, class_weights
from pprop.graph import Graph
from pprop.models.label_propagation import FAINT, LabelPropagation, log_shares
from pprop.training import History


@final
@parameters
class LabelPropagationClassifier(NodeClassifier):
    """Labels spread over the graph by personalized PageRank. Features are not read, and nothing is trained.

        Z = (1 - alpha) T Z + alpha Y,    Y_ik = 1 where node i is known to be of class k, else 0,

    by K power steps. The probabilities of a node are its row of Z divided by the row's sum: of all that arrives from known
    nodes, the share that comes from each class. So they do not depend on the number of neighbours. They do not show how much
    arrives either: a node that one distant label reaches is as certain as a node among many labels. A node that no label
    reaches, such as one without edges, gets the shares of the classes among the labels; ``n_unreached_`` counts these nodes.

    Labels of validation nodes, `stopping` of `fit`, are spread, too. With a `threshold` they choose it and are not spread, so
    that no label decides about its own node: the model then has fewer labels. `AutoClassifier` chooses a threshold before its
    last fit, which spreads all labels.

    Samples are nodes, as in `APPNPClassifier`. (scikit-learn's LabelSpreading calls 1 - alpha alpha, and adds no self-loops.)

    Attributes
    ----------
    classes_
        The labels seen in `fit`, sorted, shape (c,).
    logits_
        Logarithms of the probabilities of all nodes, shape (n, c).
    known_nodes_, known_labels_, amounts_
        The nodes with a label, in ascending order, their labels, and how much each counts: 0 where it is not spread.
    n_unlabelled_
        Nodes given to `fit` that were left out, since their label is unknown.
    n_unreached_
        Nodes that no label reaches in K steps.
    alpha_, normalization_
        The teleport probability and the normalisation that were used.
    record_
        How long it took; with a threshold also loss and accuracy on the validation nodes.

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
    stops_early = False

    graph: Graph = field(kw_only=False, metadata={"setting": GRAPH.but(None, "Shared, not copied, in a clone.")})
    alpha: float | None = settings.TELEPORT.field()
    steps: int = settings.LABEL_STEPS.field()
    class_weight: str | Mapping[Any, float] | None = settings.CLASS_WEIGHT.field()
    backend: str = settings.BACKEND.field()
    normalization: str | None = settings.OWN_NORMALIZATION.field()
    self_loops: bool = settings.SELF_LOOPS.field()
    scoring: str | None = settings.MEASURED_SCORING.field()
    positive: Any = settings.POSITIVE.field()
    threshold: str | float | None = settings.THRESHOLD.field()

    def _fit(self, given: Given, values: dict[str, Any]) -> Fitted:
        begin, compiled = time.perf_counter(), compiling.seconds
        graph, pair = self.graph, given.stopping
        if not isinstance(pair, tuple | None):
            expected = "None, or a pair (nodes, y) of more labels to spread, or to choose a threshold by: there is nothing to stop"
            reject("stopping", type(self).__name__, expected, describe(pair))
        data = FitData.of(given, graph)
        split, known, classes = data.split, data.values, data.classes.names
        judged = Judging.of(data, values, type(self).__name__)
        # labels that choose a threshold are not spread: of its own node a label would be the best predictor
        apart = split.stopping if judged.rule is not None else split.stopping[:0]
        nodes = split.train if len(apart) else np.concatenate([split.train, split.stopping])
        much = np.ones(len(nodes))
        much[: len(given.nodes)] = 1.0 if given.weights is None else given.weights
        much *= class_weights(values["class_weight"], known[nodes], much, classes)[known[nodes]]
        known_nodes = np.flatnonzero(known >= 0)
        amounts: Any = np.bincount(nodes, much, minlength=graph.n_nodes)
        fitted = Fitted(
            kind=type(self),
            settings=self._settings(),
            graph=graph,
            target=replace(data.classes, scoring=judged.scoring),
            model=self._model(values),
            alpha=values["alpha"],
            outputs=np.empty(0),
            known_nodes=known_nodes,
            known_labels=classes[known[known_nodes]],
            extras={"amounts": amounts[known_nodes]},
            split=Split(nodes, apart, nodes[:0]),
        )
        sources, solution = fitted.label_sources()
        outputs, none = log_shares(sources, solution), np.empty(0)
        record = TrainingRecord(
            epochs=0,
            best_epoch=0,
            seconds=time.perf_counter() - begin,
            compile_seconds=compiling.seconds - compiled,
            backend=solution.statistics.backend,
            device="cpu",
            seed=0,
            train_nodes=len(nodes),
            stopping_nodes=len(apart),
            **measured(data.classes, known[apart], outputs[apart], None, judged.scoring),
        )
        history = History(none, none.copy(), none.copy())
        return judged.decided(replace(fitted, outputs=outputs, record=record, history=history))

    @property
    def n_unreached_(self) -> int:
        """Nodes that no label reaches: their probabilities are the shares of the classes among the labels."""
        largest = self.fitted_.label_sources()[0].max(axis=1)
        return int(np.count_nonzero((largest > 0) & (largest <= FAINT)))

    @property
    def amounts_(self) -> NDArray[np.float64]:
        """How much each known node counts."""
        return self.fitted_.extras["amounts"]
