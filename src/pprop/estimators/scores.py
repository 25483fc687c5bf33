"""Predictions of nodes from the stored logits of all of them, and how good they are."""

from __future__ import annotations

from typing import Any, cast

from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.estimators.explanation import explain
from pprop.estimators.fitted import FittedScores, check_same_graph
from pprop.estimators.reading import check_sample_weight, check_some, node_positions, read_labelled
from pprop.estimators.targets import Classes, LabelsLike, check_same_kind
from pprop.graph import Graph
from pprop.graph.labels import MISSING_LABELS
from pprop.settings import ALPHA, check_fields


class NodeScores(FittedScores, ClassifierMixin, BaseEstimator):
    """Mixin with `predict`, `predict_proba` and `decision_function`, computed from the stored logits of all nodes."""

    explain = explain

    def decision_function(self, X: ArrayLike | None = None, *, ids: ArrayLike | None = None) -> NDArray[Any]:
        """Return the logits of nodes, shape (m, c); with two classes their difference, shape (m,), as in scikit-learn.

        Parameters
        ----------
        X, ids
            Nodes, as in `predict`.
        """
        logits = self._logits(X, "decision_function", ids)
        return Classes(self.classes_).margins(logits)

    def predict_proba(self, X: ArrayLike | None = None, *, ids: ArrayLike | None = None) -> NDArray[Any]:
        """Return the class probabilities of nodes, shape (m, c), columns in the order of ``classes_``.

        Parameters
        ----------
        X, ids
            Nodes, as in `predict`.
        """
        logits = self._logits(X, "predict_proba", ids)
        return Classes(self.classes_).probabilities(logits)

    def predict(self, X: ArrayLike | None = None, *, ids: ArrayLike | None = None) -> NDArray[Any]:
        """Return the classes of nodes, shape (m,).

        Parameters
        ----------
        X
            Nodes: positions, a mask or ids that are text, as in `fit`. None: all of them.
        ids
            In place of X: ids, integers or text.
        """
        logits = self._logits(X, "predict", ids)
        return Classes(self.classes_).predictions(logits)

    def score(
        self,
        X: ArrayLike | None = None,
        y: LabelsLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy on nodes: the share of known labels that are predicted.

        Parameters
        ----------
        X, ids
            Nodes, as in `predict`.
        y
            Their labels, as in `fit`; nodes whose label is unknown are left out.
        sample_weight
            Weights of the nodes, as many as labels.
        """
        check_is_fitted(self)
        check_same_graph(self)  # before labels, which may be those of another graph
        if y is None:
            raise InputError("score requires y to be passed, but the target y is None. Pass one class label per node.")
        missing = getattr(self, "missing_labels_", MISSING_LABELS)
        given = read_labelled(X, y, ("X", "y"), "score", self.graph_, ids=ids, missing=missing, classes=self.classes_)
        check_some(given, "score")
        check_same_kind(given.labels, self.classes_, "y", "score")
        weights = check_sample_weight(sample_weight, given, "score")
        return Classes(self.classes_).score(given.labels, self.logits_[given.nodes], weights)

    def _check_graph(self) -> Graph:
        if not isinstance(self.graph, Graph):
            reject("graph", type(self).__name__, "a Graph", describe(self.graph))
        return self.graph

    def _checked(self) -> dict[str, Any]:
        """Return all settings in their canonical form; an alpha of None becomes the graph's."""
        values = check_fields(self, type(self).__name__, skip=("stopping",))
        if "alpha" in values and values["alpha"] is None:
            values["alpha"] = recommended_alpha(self.graph)
        return values

    def _logits(self, X: object, function: str, ids: object = None) -> NDArray[Any]:
        check_is_fitted(self)
        check_same_graph(self)
        return self.logits_[node_positions(X, "X", function, self.graph_, ids=ids)]

    def __sklearn_tags__(self) -> Any:
        tags = cast("Any", super().__sklearn_tags__())
        tags.input_tags.one_d_array = True
        tags.input_tags.positive_only = True
        return tags


def recommended_alpha(graph: Graph) -> float:
    """Return the teleport probability that a graph recommends, or the default.

    >>> import pprop
    >>> recommended_alpha(pprop.load_dataset("citeseer"))
    0.1
    """
    return ALPHA.default if graph.recommended is None else graph.recommended.alpha
