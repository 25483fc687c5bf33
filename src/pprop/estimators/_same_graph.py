"""A fitted model answers for the graph of its fit alone: one check for all that read such a model."""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.graph import Graph

__all__ = ["FittedOnGraph", "check_same_graph"]


class FittedOnGraph(Protocol):
    """A model with the graph of its settings, and that of its fit."""

    graph: Graph
    graph_: Graph


def check_same_graph(model: FittedOnGraph) -> None:
    """Refuse a model whose graph was exchanged after its fit, or whose arrays may have been written to.

    The same object is the same graph, at no cost; of another one the fingerprint decides, which a Graph computes once. That
    the arrays were not changed in place is read off their flags: a Graph seals them, so that one that can be written to
    again was opened on purpose.

    >>> import numpy as np, pprop, scipy.sparse as sp
    >>> from sklearn.naive_bayes import GaussianNB
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((4, 4)), features=np.eye(4))
    >>> model = pprop.PropagatedClassifier(GaussianNB(), graph).fit([0, 1, 2, 3], [0, 0, 1, 1])
    >>> check_same_graph(model.set_params(graph=graph.replace(name="the same")))
    >>> check_same_graph(model.set_params(graph=graph.replace(features=None)))
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The graph of this PropagatedClassifier is not the one that it was fitted on: ...
    """
    name, now, fitted = type(model).__name__, model.graph, model.graph_
    if now is not fitted:
        if not isinstance(now, Graph):
            reject("graph", name, "a Graph", describe(now))
        if now.fingerprint != fitted.fingerprint:
            raise InputError(
                f"The graph of this {name} is not the one that it was fitted on: its fingerprint is {now.fingerprint}, not "
                f"{fitted.fingerprint}. Call fit again, or put the former graph back."
            )
    opened = _opened(fitted)
    if opened is not None:
        raise InputError(
            f"The graph of this {name} may have changed since it was fitted: its array {opened!r} was made writeable. A "
            "Graph is immutable. Make a new one, for instance with .replace(...), and call fit again."
        )


def _opened(graph: Graph) -> str | None:
    """Return the name of an array that a model computes with and that can be written to, or None."""
    features = graph.features
    arrays = {"indptr": graph.indptr, "indices": graph.indices, "weights": graph.weights}
    if isinstance(features, sparse.csr_array):
        parts = {f"features.{part}": getattr(features, part) for part in ("data", "indices", "indptr")}
    else:
        parts = {"features": features}
    return next((name for name, array in (arrays | parts).items() if array is not None and _writeable(array)), None)


def _writeable(array: NDArray[Any]) -> bool:
    """Whether an array, or one that it is a view of, can be written to.

    >>> import numpy as np
    >>> whole = np.arange(3)
    >>> view = whole[:2]
    >>> view.flags.writeable = False
    >>> _writeable(view)
    True
    """
    holder: Any = array
    while isinstance(holder, np.ndarray):
        if holder.flags.writeable:
            return True
        holder = cast("Any", holder.base)
    return False
