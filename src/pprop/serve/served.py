"""A fitted model as the server holds it: its parts, its present view, and its model card."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import InputError
from pprop._version import __version__
from pprop.estimators.decomposed import Decomposed
from pprop.estimators.explanation import node_sum
from pprop.estimators.fitted import Fitted
from pprop.graph import Graph
from pprop.scoring import Threshold
from pprop.serve.features import feature_row, network_row
from pprop.serve.spread import Spread, SpreadResult
from pprop.serve.view import ROLES, View, network_of

_FEW, _MANY = 4, 20  # neighbours of a node that is good to begin with


@final
class Served:
    """A fitted model, and the graph that it is served on.

    Parameters
    ----------
    fitted
        What the fit of a classifier left behind.
    title
        What the page calls it.
    names, texts
        Of the nodes, by position, where the data has any.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5), ids=list("abcde"))
    >>> model = pprop.APPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model = model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5)
    >>> served = Served(model.fitted_, "a path")
    >>> served.view.prediction(0, served.view.default)["predicted"]
    'left'
    """

    def __init__(
        self,
        fitted: Fitted,
        title: str,
        names: Sequence[str | None] | None = None,
        texts: Sequence[str | None] | None = None,
    ) -> None:
        self.fitted, self.title, self.lock = fitted, title, threading.RLock()
        self.classes = tuple(str(name) for name in fitted.classes.names.tolist())
        self.parts: Decomposed | None = None
        self.refusal = ""
        try:
            self.parts = Decomposed.of(fitted, "explain")
        except InputError:
            self.refusal = f"The predictions of {fitted.name} are no sum over the nodes of the graph."
        self._names, self._texts = names, texts
        graph, known = fitted.graph, fitted.known_nodes
        # a model of format version 2 may not say which of its nodes were used for early stopping
        stopping = known[:0] if fitted.split is None else fitted.split.stopping
        training, validation = np.zeros((2, graph.n_nodes), dtype=bool)
        training[np.setdiff1d(known, stopping)] = True
        validation[np.intersect1d(known, stopping)] = True
        keys = range(graph.n_nodes) if graph.ids is None else graph.ids.tolist()
        self.view = self.view_of(graph, keys, training, validation, names, texts, logits=fitted.outputs).prepared()
        spread = self.view.spread
        if spread is not None and spread.steps is not None:
            spread.by_steps(spread.how.alpha, spread.steps)  # its blocks are kept: another alpha does not wait for them
        self._predict_rows()

    def _predict_rows(self) -> None:
        """Predict a node of zeros and one of ones alone: the network reads each in a way that is compiled when it is first used.

        Requests that bring new features find it compiled.
        """
        graph = self.fitted.graph
        if self.parts is None or graph.feature_shape is None or len(graph.feature_shape) != 2:
            return
        for number in (0.0, 1.0):
            network_row(self.parts, feature_row(graph, [number] * int(graph.feature_shape[1])))

    def view_of(
        self,
        graph: Graph,
        keys: Sequence[Any],
        training: NDArray[np.bool_],
        validation: NDArray[np.bool_],
        names: Sequence[str | None] | None,
        texts: Sequence[str | None] | None,
        *,
        logits: NDArray[Any] | None = None,
        sequence: int = 0,
    ) -> View:
        """Return the view of a graph; `logits` are those of the model where the graph is its own."""
        spread, refusal, alone, network = None, self.refusal, None, None
        choose = None if self.fitted.threshold is None else self.fitted.classes.choose
        if self.parts is not None:
            alone = self.parts.alone(graph).astype(np.float64)
            network = network_of(alone)
            how = self.parts.description.propagation
            if how is None:
                refusal = "This model is the network alone: nothing is spread over the graph."
                size = graph.n_nodes
                default = SpreadResult.of(
                    alone if logits is None else logits,
                    None,
                    None,
                    lambda node: np.eye(1, size, node)[0],
                    choose=choose,
                )
            else:
                spread = Spread(graph, alone, how, logits, choose)
                default = spread.default
        else:
            assert logits is not None  # such a model is not live
            row = None
            try:
                found = node_sum(self.fitted).attributor
                alone, row = found.predictions, found.row
                refusal = "This model was not trained to be spread with another alpha or number of steps."
            except InputError:
                pass
            logits = self.fitted.comparable(np.arange(graph.n_nodes))
            default = SpreadResult.of(logits, self.fitted.alpha, None, row, choose=choose)
        return View(
            graph=graph,
            classes=self.classes,
            keys=keys,
            names=names,
            texts=texts,
            default=default,
            H=alone,
            network=network,
            spread=spread,
            refusal=refusal,
            training=training,
            validation=validation,
            sequence=sequence,
            choose=choose,
        )

    def card(self, *, live: bool = False) -> dict[str, Any]:
        """Return the model card."""
        view, fitted = self.view, self.fitted
        graph = view.graph
        right = view.default.predicted[view.tested] == view.codes[view.tested]
        counts = np.bincount(view.roles, minlength=len(ROLES)).tolist()
        settings = {name: _plain(value) for name, value in fitted.settings.items()}
        return {
            "name": self.title,
            "kind": fitted.name.replace("Classifier", "").removesuffix("Node"),
            "graph": fitted.graph.name,
            "classes": list(view.classes),
            "nodes": view.n,
            "edges": graph.n_edges,
            "features": 0 if graph.feature_shape is None else int(np.prod(graph.feature_shape[1:])),
            "directed": graph.directed,
            "weighted": graph.weights is not None,
            "alpha": view.default.alpha,
            "steps": view.default.steps,
            **{f"{role}_nodes": number for role, number in zip(ROLES, counts, strict=True)},
            "live": live,
            "named": view.names is not None,
            "explains": view.default.row is not None,
            "spreads": view.spread is not None,
            "pprop": __version__,
            "accuracy": float(right.mean()) if len(right) else None,
            "threshold": None if fitted.threshold is None else _decision(fitted.threshold),
            "settings": settings,
            "example": view.keys[example(view)],
        }


def example(view: View) -> int:
    """Return a good node to begin with: of a few neighbours, which have put the network right where that can be seen."""
    degree, default = view.degree, view.default
    score = np.zeros(view.n)
    score += 4.0 * ((degree >= _FEW) & (degree <= _MANY)) + 1.0 * (degree > 0)
    score -= 2.0 * (view.training | view.validation)
    if view.alone is not None:
        score += 3.0 * (view.alone != default.predicted)
    score += 2.0 * ((view.codes >= 0) & (default.predicted == view.codes))
    return int(np.argmax(score + default.confidence))


def _decision(threshold: Threshold) -> dict[str, Any]:
    """Return what a threshold is and what it gave, with the class and the rule as text."""
    return threshold.described() | {"positive": str(threshold.positive), "rule": threshold.rule.words}


def _plain(value: object) -> Any:
    """Return a setting as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        value = cast("object", value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, str | bool | int | float | None):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[object]", value)]
    return str(value)
