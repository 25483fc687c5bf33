"""The classifiers whose models `pprop.train` trains, epoch by epoch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pprop._validate import check_float, check_int
from pprop.datasets import Split
from pprop.estimators._model_weights import AnyModel, named_weights
from pprop.estimators._settings import ModuleOrFactory
from pprop.estimators.base import Learned, NodeClassifier
from pprop.estimators.record import record_of
from pprop.graph import Graph
from pprop.models import Architecture, Model
from pprop.training import Stopping, train

__all__ = ["ModuleOrFactory", "TrainedClassifier"]


class TrainedClassifier(NodeClassifier):
    """A classifier that is one run of `train`."""

    learning_rate: float
    patience: int
    max_epochs: int
    backend: str
    device: str

    def _rule(self) -> Stopping:
        """Return when the training ends, checked."""
        name = type(self).__name__
        return Stopping(
            check_int(self.patience, "patience", name, low=1), check_int(self.max_epochs, "max_epochs", name, low=1)
        )

    def _check_learning(self) -> None:
        self._rule()
        check_float(self.learning_rate, "learning_rate", type(self).__name__, "(0, inf)")

    def _learn(
        self, model: AnyModel, graph: Graph, split: Split, labels: NDArray[np.int64], seed: int, told: int
    ) -> Learned:
        assert isinstance(model, Model | Architecture)
        trained = train(
            model,
            graph,
            split,
            seeds=seed,
            labels=labels,
            stopping=self._rule(),
            learning_rate=float(self.learning_rate),
            backend=self.backend,
            device=self.device,
            progress=told >= 1,
            verbose=told >= 2,
        )
        weights = named_weights(model, (np.asarray(array[0]) for array in trained.weights))
        return Learned(weights, trained.logits[0], record_of(trained), trained.history[0])
