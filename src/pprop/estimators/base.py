"""What all classifiers share: nodes as samples, fitting, predicting, saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self, cast, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from pprop._validate import check_float, describe, reject
from pprop.datasets import Split
from pprop.estimators._holdout import divide_nodes
from pprop.estimators._model_weights import AnyModel, Weights
from pprop.estimators._same_graph import check_same_graph
from pprop.estimators._samples import class_labels, no_target, node_positions, seed_of
from pprop.estimators._settings import verbosity
from pprop.estimators._write import write_artefact
from pprop.estimators.explanation import Explanation
from pprop.estimators.record import TrainingRecord
from pprop.estimators.source import GraphSource
from pprop.graph import Graph
from pprop.training import History

__all__ = ["Learned", "NodeClassifier", "NodeScores", "StoppingNodes"]

StoppingNodes = tuple[ArrayLike, ArrayLike] | float | None
"""Nodes and their labels; or a fraction of the nodes to fit."""


@final
@dataclass(frozen=True)
class Learned:
    """What is known after a fit: weights by name, logits of all nodes (n, c), how it went, and the curves."""

    weights: Weights
    logits: NDArray[np.float32]
    record: TrainingRecord
    history: History


class NodeScores(ClassifierMixin, BaseEstimator):
    """What is read off the logits of all nodes, however they came about: classes, probabilities, scores."""

    graph: Graph

    graph_: Graph
    classes_: NDArray[Any]
    n_features_in_: int
    logits_: NDArray[Any]
    known_nodes_: NDArray[np.int64]
    known_labels_: NDArray[Any]

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Return the logits of nodes, shape (m, c); with two classes their difference, shape (m,), as in scikit-learn.

        Parameters
        ----------
        X
            Node positions, shape (m,) or (m, 1).
        """
        logits = self._logits(X, "decision_function")
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class probabilities of nodes, shape (m, c), columns in the order of ``classes_``.

        Parameters
        ----------
        X
            Node positions, shape (m,) or (m, 1).
        """
        logits = self._logits(X, "predict_proba")
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the classes of nodes, shape (m,).

        Parameters
        ----------
        X
            Node positions, shape (m,) or (m, 1).
        """
        best = self._logits(X, "predict").argmax(axis=1)
        return self.classes_[best]

    @overload
    def explain(
        self, node: int | np.integer[Any], k: int = ..., mode: str = ..., eps: float | None = ...
    ) -> Explanation: ...
    @overload
    def explain(
        self, node: Sequence[int] | NDArray[Any], k: int = ..., mode: str = ..., eps: float | None = ...
    ) -> list[Explanation]: ...
    def explain(self, node: Any, k: int = 10, mode: str = "exact", eps: float | None = None) -> Any:
        """Take the logits of a node apart into the contributions of other nodes; see `pprop.explain`.

        Parameters
        ----------
        node
            A position; or several, for a list of explanations.
        k, mode, eps
            As in `pprop.explain`.
        """
        from pprop.estimators.explain_model import explain  # which knows the classifiers by their classes

        return explain(self, cast("NDArray[Any]", node), k, mode, eps)

    def _check_graph(self) -> Graph:
        if not isinstance(self.graph, Graph):
            reject("graph", type(self).__name__, "a Graph", describe(self.graph))
        return self.graph

    def _logits(self, X: ArrayLike, function: str) -> NDArray[Any]:
        check_is_fitted(self)
        check_same_graph(self)
        return self.logits_[node_positions(X, "X", function, len(self.logits_))]

    def __sklearn_tags__(self) -> Any:
        tags = cast("Any", super().__sklearn_tags__())
        tags.input_tags.one_d_array = True
        tags.input_tags.positive_only = True
        return tags


class NodeClassifier(NodeScores, ABC):
    """A classifier whose samples are the nodes of one graph.

    A subclass keeps its settings, unchanged, under the names of its ``__init__`` and turns them into a model.
    """

    stopping: float
    random_state: int | np.random.RandomState | None
    verbose: int

    model_: AnyModel
    settings_: dict[str, Any]
    n_iter_: int
    history_: History
    record_: TrainingRecord
    alpha_: float | None
    accuracy_: float | None
    source_: GraphSource | None
    graph_changed_: bool
    weights_: Weights
    logits_: NDArray[np.float32]
    train_nodes_: NDArray[np.int64]
    stopping_nodes_: NDArray[np.int64]

    @abstractmethod
    def _model(self, alpha: float | None) -> AnyModel:
        """Return the model of these settings, checked; `alpha` is None for a model without propagation."""

    @abstractmethod
    def _learn(
        self, model: AnyModel, graph: Graph, split: Split, labels: NDArray[np.int64], seed: int, told: int
    ) -> Learned:
        """Learn the model of `_model` from the class indices (n,) of training and stopping nodes; others are -1."""

    def _teleport(self) -> float | None:
        """Return the teleport probability of these settings on this graph."""
        return None

    def _check_learning(self) -> None:
        """Refuse impossible settings that are not the model's own."""

    def _extras(self) -> Weights:
        """Return the arrays besides the weights that the logits are made of; a model is saved with them."""
        return {}

    def _restored(self, logits: NDArray[np.float32], extras: Weights) -> NDArray[np.float32]:
        """Return the logits of a loaded model, given those of its weights and what `_extras` was; refuse what does not fit."""
        if extras:
            reject("extras", type(self).__name__, "none", describe(sorted(extras)))
        return logits

    def fit(self, X: ArrayLike, y: ArrayLike, *, stopping: StoppingNodes = None) -> Self:
        """Train on some nodes of the graph.

        Parameters
        ----------
        X
            Node positions, shape (m,) or (m, 1). A node listed k times counts k times in the loss.
        y
            Their classes, shape (m,): integers or strings. Whole numbers stored as floats become integers.
        stopping
            What early stopping watches: ``(nodes, y)`` of further nodes, or a fraction in (0, 1) of the nodes in `X`,
            which then do not train. None takes the fraction given to the constructor. Of a class with m nodes,
            ``round(fraction * m)`` are set aside, at least one and at most m - 1; the only node of a class trains.
            Where every class has only one node, early stopping watches the training nodes, and a warning says so.

        Returns
        -------
        self
        """
        function = type(self).__name__
        graph = self._check_graph()
        alpha = self._teleport()
        model = self._model(alpha)
        told = verbosity(self.verbose, function)
        self._check_learning()
        held = check_float(self.stopping, "stopping", function, "(0, 1)") if stopping is None else stopping
        nodes = node_positions(X, "X", "fit", graph.n_nodes)
        if len(nodes) == 0:
            reject("X", "fit", "an array of at least one node", "none")
        if y is None:
            raise no_target(function)
        labels = class_labels(y, "y", "fit", len(nodes))
        seed = seed_of(self.random_state, function)

        split, known, classes = divide_nodes(nodes, labels, held, seed, graph.n_nodes)
        # Without labels and class names, so that nothing below can read them or count their classes.
        labelled = graph.labels is not None or graph.class_names is not None
        bare = graph.replace(labels=None, class_names=None) if labelled else graph
        learned = self._learn(model, bare, split, known, seed, told)
        self.train_nodes_, self.stopping_nodes_ = split.train, split.stopping
        self.known_nodes_ = np.flatnonzero(known >= 0)
        self.known_labels_ = classes[known[self.known_nodes_]]
        self.graph_, self.model_, self.alpha_, self.classes_ = graph, model, alpha, classes
        self.settings_ = self._settings()
        self.weights_, self.logits_ = learned.weights, learned.logits
        self._keep_record(learned.record, learned.history)
        return self

    def save(
        self,
        path: str | PathLike[str],
        *,
        source: GraphSource | None = None,
        accuracy: float | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the fitted model to a folder: weights, a readable manifest and a model card. Read it with `pprop.load`.

        The folder appears when it is complete, or not at all. Nothing is pickled: of a `predictor` the weights are
        saved and the code is not, and of a RandomState the seed that it drew.

        Parameters
        ----------
        path
            The folder, which must not exist.
        source
            Where the graph can be read again. None: the dataset of the graph's name, if there is one.
        accuracy
            On nodes that neither trained nor stopped, if known, for the record.
        overwrite
            Replace an existing folder, if there is nothing but a pprop model in it.
        """
        check_is_fitted(self)
        check_same_graph(self)
        write_artefact(self, path, source=source, accuracy=accuracy, overwrite=overwrite)

    def _settings(self) -> dict[str, Any]:
        """Return the settings that are plain values: all but the graph and the predictor."""
        settings = cast("dict[str, Any]", self.get_params(deep=False))
        return {name: value for name, value in settings.items() if name not in ("graph", "predictor")}

    def _keep_record(
        self,
        record: TrainingRecord,
        history: History,
        *,
        accuracy: float | None = None,
        source: GraphSource | None = None,
        graph_changed: bool = False,
    ) -> None:
        self.record_, self.history_, self.n_iter_ = record, history, record.epochs
        self.accuracy_, self.source_, self.graph_changed_ = accuracy, source, graph_changed
        self.n_features_in_ = 1  # a sample has one number: its position
