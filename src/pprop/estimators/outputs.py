"""The outputs of a fitted scikit-learn classifier for every node: its rows in, one column per class out."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import NotFittedError

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.graph import Graph

RESPONSES = ("logits", "probabilities")
_METHODS = {"probabilities": "predict_proba", "logits": "decision_function"}


def node_rows(features: object, graph: Graph, function: str) -> Any:
    """Return the rows that the estimator is given, one per node, as they are: nothing is copied.

    Only a sparse matrix in a form without rows (COO, for one) is turned into CSR.
    """
    if features is None and graph.features is None:
        raise InputError(
            f"{function} needs features, and this graph has none. Pass features=..., anything with one row per node."
        )
    rows: Any = graph.features if features is None else features
    shape: Any = (len(rows),) if isinstance(features, list) else getattr(rows, "shape", None)
    if not shape or shape[0] != graph.n_nodes:
        expected = (
            f"an array, a tensor, a sparse matrix, a data frame or a list with {graph.n_nodes} rows, one per node"
        )
        reject("features", function, expected, describe(rows))
    rowless = sparse.issparse(cast("object", features)) and rows.format not in ("csr", "csc", "lil")
    return rows.tocsr() if rowless else rows


def take(rows: Any, nodes: NDArray[np.int64]) -> Any:
    """Return the rows of some nodes, in the kind of container that all of them have.

    >>> take(["a", "b", "c"], np.array([2, 0])), take(np.eye(2), np.array([1]))
    (['c', 'a'], array([[0., 1.]]))
    """
    if hasattr(rows, "iloc"):
        return rows.iloc[nodes]
    if hasattr(rows, "shape"):
        return rows[nodes]
    return [rows[node] for node in nodes.tolist()]


def choose_response(estimator: object, wanted: str, function: str) -> str:
    """Return "probabilities" or "logits": the one wanted, or for "auto" logits where the estimator has them.

    On validation splits of the four graphs they do better than probabilities (docs/predictors.md).

    >>> from sklearn.naive_bayes import MultinomialNB
    >>> choose_response(MultinomialNB(), "auto", "PropagatedClassifier")
    'probabilities'
    """
    has = [kind for kind in RESPONSES if hasattr(estimator, _METHODS[kind])]
    name = type(estimator).__name__
    if isinstance(estimator, type):
        reject("estimator", function, "a classifier such as LogisticRegression()", f"the class {estimator.__name__}")
    if not has:
        expected = "a classifier with predict_proba or decision_function"
        reject("estimator", function, expected, f"{name}, which has neither,")
    if wanted not in ("auto", *has):
        expected = f"{has[0]!r} for {name}, which has no {_METHODS[wanted]}"
        reject("response", function, expected, repr(wanted))
    return has[0] if wanted == "auto" else wanted


def classes_of(estimator: Any, function: str) -> NDArray[Any]:
    """Return the classes of a fitted estimator, shape (c,)."""
    found: Any = getattr(estimator, "classes_", None)
    if found is None:
        raise NotFittedError(
            f"The estimator of {function} is not fitted: {type(estimator).__name__} has no classes_. Fit it first, or "
            "leave prefit=False. (scikit-learn's clone, and so its cross-validation, forgets a fit; wrap the estimator "
            "in sklearn.frozen.FrozenEstimator to keep it.)"
        )
    several = isinstance(found, list)  # one array for each of several targets
    classes: NDArray[Any] = np.empty((0, 0)) if several else np.asarray(found)
    if classes.ndim != 1 or len(classes) < 2:
        expected = "a classifier of one target with at least two classes"
        got = "several targets" if several else f"classes_ = {describe(found)}"
        reject("estimator", function, expected, f"{type(estimator).__name__} with {got}")
    return classes


def outputs(
    estimator: Any, rows: Any, n_nodes: int, n_classes: int, response: str, batch_size: int | None, function: str
) -> NDArray[np.float64]:
    """Return the outputs of the estimator for every node, shape (n, c).

    Logits of two classes, of which scikit-learn gives the difference d alone, become -d / 2 and d / 2.

    Parameters
    ----------
    estimator, rows
        Fitted; of all nodes.
    n_nodes, n_classes
        n and c.
    response
        "probabilities" or "logits".
    batch_size
        Rows at a time; None gives the estimator the very object that holds all rows.
    function
        For the error sentence.
    """
    method = getattr(estimator, _METHODS[response])
    if batch_size is None:
        found: NDArray[Any] = np.asarray(method(rows), dtype=np.float64)
    else:
        every = np.arange(n_nodes)
        parts = [method(take(rows, every[first : first + batch_size])) for first in range(0, n_nodes, batch_size)]
        found = np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
    name = f"{type(estimator).__name__}, whose {_METHODS[response]} gives"
    if response == "logits" and found.shape == (n_nodes,) and n_classes == 2:
        found = np.stack([-found / 2, found / 2], axis=1)
    if found.shape != (n_nodes, n_classes):
        expected = f"a classifier with one column per class, shape ({n_nodes}, {n_classes})"
        reject("estimator", function, expected, f"{name} shape {found.shape},")
    if not np.isfinite(found).all():
        reject("estimator", function, "a classifier with finite outputs", f"{name} NaN or infinity,")
    if response == "probabilities" and (found.min() < 0 or np.abs(found.sum(axis=1) - 1).max() > 1e-3):
        expected = "a classifier whose probabilities are not negative and sum to one"
        reject("estimator", function, expected, f"{name} others,", remedy='Use response="logits", where it has any.')
    return found
