"""Classifiers that learn: what `fit` makes of nodes, labels and settings, and training as a way to learn."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from pprop.datasets import Split
from pprop.estimators.fitted import AnyModel, Learned
from pprop.estimators.fitting import Given
from pprop.estimators.node import NodeClassifier
from pprop.estimators.options import train_options, uses_bias, warn_unfinished
from pprop.estimators.parameters import FitParameters, TrainingParameters
from pprop.estimators.reading import Weights, divide_nodes, node_weights, seed_of
from pprop.graph import Graph
from pprop.models import Architecture, Model
from pprop.training import train


@final
class FitData(NamedTuple):
    """What a model learns from: a graph without labels, nodes, class indices (n,), -1 where unlabelled, and a seed.

    Weights say how much each node counts, shape (n,), and each class of the training nodes, shape (c,); None: the same.
    """

    graph: Graph
    split: Split
    labels: NDArray[np.int64]
    seed: int
    weights: Weights | None = None
    class_weights: Weights | None = None


class LearningClassifier(NodeClassifier, FitParameters):
    """A classifier that trains on some nodes and, as a rule, stops by others."""

    @abstractmethod
    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        """Train a model that `_model` returned; return its weights, logits and record."""

    def _fit(self, given: Given, values: dict[str, Any]) -> None:
        graph = self.graph
        # Without labels and class names, so that nothing below can read them or count their classes.
        labelled = graph.labels is not None or graph.class_names is not None
        bare = graph.replace(labels=None, class_names=None) if labelled else graph
        built_in = getattr(self, "predictor", None) is None
        scaled = bare.scaled("none" if values["scaling"] == "auto" and not built_in else values["scaling"])
        if "bias" in values:
            values["bias"] = uses_bias(values["bias"], scaled)
        model = self._model(values)
        if given.stopping is None:
            values["patience"] = None
        seed = seed_of(self.random_state, type(self).__name__)
        split, known, classes = divide_nodes(given.nodes, given.labels, given.stopping, seed, graph.n_nodes)
        weights = node_weights(given.nodes, given.weights, split, known, classes, values.get("class_weight"))
        learned = self._learn(model, FitData(scaled, split, known, seed, *weights), values)
        if learned.alpha is not None:  # selected during fit
            values["alpha"] = learned.alpha
            model = self._model(values)
        self.train_nodes_, self.stopping_nodes_ = split.train, split.stopping
        self.known_nodes_ = np.flatnonzero(known >= 0)
        self.known_labels_ = classes[known[self.known_nodes_]]
        self.graph_, self.model_, self.alpha_, self.classes_ = graph, model, values.get("alpha"), classes
        self.scaling_ = scaled.scaling
        self.weights_, self.logits_ = learned.weights, learned.logits
        self._keep_record(learned.record, learned.history)


class TrainedClassifier(LearningClassifier, TrainingParameters):
    """A classifier that is one run of `train`."""

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        assert isinstance(model, Model | Architecture)
        how: dict[str, Any] = {"labels": data.labels, "weights": data.weights, **vars(train_options(values))}
        trained = train(model, data.graph, data.split, seeds=data.seed, **how)
        warn_unfinished(trained, values)
        return Learned.of(model, trained)
