"""Classifiers that learn: what `fit` makes of nodes, labels and settings, and training as a way to learn."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from pprop.estimators.fitted import AnyModel, Fitted, Learned
from pprop.estimators.node import NodeClassifier
from pprop.estimators.options import train_options, uses_bias, warn_unfinished
from pprop.estimators.reading import FitData, Given, seed_of
from pprop.models import Architecture, Model
from pprop.training import train


class LearningClassifier(NodeClassifier):
    """A classifier that trains on some nodes and, as a rule, stops by others."""

    random_state: int | np.random.RandomState | None

    @abstractmethod
    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        """Train a model that `_model` returned; return its weights, outputs and record."""

    def _fit(self, given: Given, values: dict[str, Any]) -> Fitted:
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
        data = FitData.of(given, scaled, seed, values.get("class_weight"))
        learned = self._learn(model, data, values)
        if learned.alpha is not None:  # selected during fit
            values["alpha"] = learned.alpha
            model = self._model(values)
        known_nodes = np.flatnonzero(data.values >= 0)
        return Fitted(
            kind=type(self),
            settings=self._settings(),
            graph=graph,
            target=data.target,
            model=model,
            alpha=values.get("alpha"),
            outputs=learned.outputs,
            known_nodes=known_nodes,
            known_labels=data.target.decode(data.values[known_nodes]),
            weights=learned.weights,
            extras=learned.extras,
            scaling=scaled.scaling,
            split=data.split,
            record=learned.record,
            history=learned.history,
            choice=learned.choice,
        )


class TrainedClassifier(LearningClassifier):
    """A classifier that is one run of `train`."""

    def _learn(self, model: AnyModel, data: FitData, values: dict[str, Any]) -> Learned:
        assert isinstance(model, Model | Architecture)
        options = train_options(values)
        weights = None if data.weights is None else data.weights.nodes
        trained = train(
            model, data.graph, data.split, seeds=data.seed, labels=data.values, weights=weights, **vars(options)
        )
        warn_unfinished(trained, values)
        return Learned.of(model, trained)
