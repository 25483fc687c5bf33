"""Classifiers that learn: what `fit` makes of nodes, labels and settings, and training as a way to learn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._validate import reject
from pprop.datasets import Split
from pprop.estimators.base import NodeClassifier, StoppingNodes
from pprop.estimators.fitted import (
    AnyModel,
    Learned,
)
from pprop.estimators.options import train_options, uses_bias, warn_unfinished
from pprop.estimators.parameters import FitParameters, TrainingParameters
from pprop.estimators.samples import (
    divide_nodes,
    labelled_nodes,
    read_stopping,
    seed_of,
)
from pprop.estimators.targets import LabelsLike
from pprop.estimators.weighting import NodeWeights, check_sample_weight, node_weights
from pprop.graph import Graph
from pprop.graph.labels import MISSING_LABELS
from pprop.models import Architecture, Model
from pprop.settings import OPTIONAL_STOPPING
from pprop.training import train


@final
class FitData(NamedTuple):
    """What a model learns from: a graph without labels, nodes, class indices (n,), -1 where unlabelled, and a seed.

    `weights` say how much each node counts; None: all the same.
    """

    graph: Graph
    split: Split
    labels: NDArray[np.int64]
    seed: int
    weights: NodeWeights | None = None


class LearningClassifier(NodeClassifier, FitParameters):
    """A classifier that trains on some nodes and, as a rule, stops by others."""

    # What else than early stopping needs stopping nodes; None: nothing, and `stopping` may be None.
    _stopping_nodes_also: ClassVar[str | None] = None

    @abstractmethod
    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        """Train a model that `_model` returned; return its weights, logits and record."""

    def fit(
        self,
        X: ArrayLike | None = None,
        y: LabelsLike | None = None,
        *,
        stopping: StoppingNodes = None,
        sample_weight: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        missing_labels: Sequence[str] = MISSING_LABELS,
    ) -> Self:
        """Train on some nodes of the graph.

        Parameters
        ----------
        X
            Nodes: integers, always positions, shape (m,) or (m, 1); n truth values, a mask; or text, always ids. None:
            all nodes. A node listed k times counts k times in the loss.
        y
            Their classes, shape (m,): integers, text or truth values; with a mask also one per node of the graph, shape
            (n,). Whole numbers stored as floats become integers. Unknown are None, NaN, what a masked array masks, and
            what `missing_labels` lists; these nodes are left out, and ``n_unlabelled_`` counts them. Where -1 and one
            other integer are the only labels, -1 is a class, and a warning says so.
        stopping
            What early stopping watches: ``(nodes, y)`` of further nodes, or a fraction in (0, 1) of the nodes in `X`,
            which then do not train. None takes the fraction given to the constructor, or if that is None no node: early
            stopping is off. Of a class with m nodes,
            ``round(fraction * m)`` are set aside, at least one and at most m - 1; the only node of a class trains.
            Where every class has only one node, early stopping watches the training nodes, and a warning says so.
        sample_weight
            How much each node counts, like `y`; None: all the same. Weight k is like listing a node k times, and
            weight 0 like leaving it out. Nodes given as `stopping` count as one. Weights by class come on top.
        ids
            In place of X: ids, integers or text.
        missing_labels
            What stands for an unknown label, as text: ``"-1"`` is also the integer.

        Returns
        -------
        self
        """
        name, graph = type(self).__name__, self._check_graph()
        values = self._checked()
        # Without labels and class names, so that nothing below can read them or count their classes.
        labelled = graph.labels is not None or graph.class_names is not None
        bare = graph.replace(labels=None, class_names=None) if labelled else graph
        built_in = getattr(self, "predictor", None) is None
        scaled = bare.scaled("none" if values["scaling"] == "auto" and not built_in else values["scaling"])
        if "bias" in values:
            values["bias"] = uses_bias(values["bias"], scaled)
        model = self._model(values)
        held = OPTIONAL_STOPPING.check(self.stopping, name) if stopping is None else stopping
        if held is None:
            if self._stopping_nodes_also is not None:
                reject("stopping", name, f"a float in (0, 1): {self._stopping_nodes_also}", None)
            values["patience"] = None
        given = labelled_nodes(X, y, graph, name, ids=ids, missing_labels=missing_labels)
        held = read_stopping(held, given.labels, graph, missing_labels)
        nodes, labels = given.nodes, given.labels
        much = check_sample_weight(sample_weight, given.length, given.rows)
        if much is not None:
            nodes, labels, much = nodes[much > 0], labels[much > 0], much[much > 0]
        seed = seed_of(self.random_state, name)
        split, known, classes = divide_nodes(nodes, labels, held, seed, graph.n_nodes)
        weights = node_weights(nodes, much, split, known, classes, values.get("class_weight"))
        learned = self._learn(model, FitData(scaled, split, known, seed, weights), values)
        if learned.alpha is not None:  # selected during fit
            values["alpha"] = learned.alpha
            model = self._model(values)
        self.train_nodes_, self.stopping_nodes_ = split.train, split.stopping
        self.n_unlabelled_, self.missing_labels_ = given.unlabelled, tuple(missing_labels)
        self.known_nodes_ = np.flatnonzero(known >= 0)
        self.known_labels_ = classes[known[self.known_nodes_]]
        self.graph_, self.model_, self.alpha_, self.classes_ = graph, model, values.get("alpha"), classes
        self.scaling_ = scaled.scaling
        self.weights_, self.logits_ = learned.weights, learned.logits
        self._keep_record(learned.record, learned.history)
        return self


class TrainedClassifier(LearningClassifier, TrainingParameters):
    """A classifier that is one run of `train`."""

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        assert isinstance(model, Model | Architecture)
        options, weights = vars(train_options(values)), None if data.weights is None else data.weights.nodes
        trained = train(model, data.graph, data.split, seeds=data.seed, labels=data.labels, weights=weights, **options)
        warn_unfinished(trained, values)
        return Learned.of(model, trained)
