"""`live`: from a fitted model, or a graph and predictions, to a graph that may change."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from torch import Tensor

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.estimators.decomposed import EXPECTED, decompose
from pprop.estimators.explanation import agreed
from pprop.estimators.fitted import Spread, check_same_graph
from pprop.estimators.node import NodeClassifier, NodeEstimator
from pprop.estimators.propagated import PropagatedClassifier, outputs
from pprop.graph import Graph
from pprop.graph.attributes import Features
from pprop.models import FeatureNetwork, Model
from pprop.propagation import LiveDifference, LiveGraph, Solver, propagate
from pprop.settings import ALPHA, LIVE_TOL, NORMALIZATION, SELF_LOOPS
from pprop.training import Trained

# Alpha, what makes a live graph of it, and the solver of the fit with the predictions that it has spread.
Made = tuple[float, Callable[..., LiveGraph], Solver, NDArray[Any]]


def live(
    model: NodeClassifier | PropagatedClassifier | Trained | Graph,
    H: ArrayLike | None = None,
    alpha: float | None = None,
    *,
    tol: float = LIVE_TOL.default,
    normalization: str | None = None,
    self_loops: bool | None = None,
    history: int = 1000,
    response: str | None = None,
) -> LiveGraph:
    """Make the graph of a fitted model live: edges, nodes and features change, and predictions follow.

    The predictions are those of the fixed point Z = (1 - alpha) T Z + alpha H at the model's alpha, which APPNP's K steps
    approach and PPNP's are; ``difference`` of the result tells how far the K-step model is from it at the start. The
    network's weights stay as they are.

    Parameters
    ----------
    model
        A fitted `APPNPClassifier`, `PPNPClassifier`, `SolvedPPNPClassifier` or `PropagatedClassifier`, one trained run
        of `APPNP`, `PPNP` or `SolvedPPNP`, or a `Graph`.
    H
        With a graph: predictions of each node on its own, shape (n, c). They are made by the network of a model.
    alpha, normalization, self_loops
        With a graph: as in `propagate`; alpha is 0.1 and the matrix the paper's unless given ("row" for probabilities).
        A model has its own.
    tol
        |Z_i - Z*_i| <= tol d_i^p for every node and class at any time; see `LiveGraph`.
    history
        Number of edits that can be undone.
    response
        With a graph: what H is, "logits" (the default) or "probabilities". Both are spread as they are; `predict_proba`
        takes the softmax of logits, and divides probabilities by their sum.

    Returns
    -------
    LiveGraph

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5))
    >>> model = pprop.APPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model = model.fit([0, 1, 3, 4], ["a", "a", "b", "b"], stopping=0.5)
    >>> changing = live(model)
    >>> changing.difference.solver
    'PowerIteration(steps=10)'
    >>> new = changing.add_node(np.eye(5)[4]).nodes[0]
    >>> changing.add_edge(new, 3).edit, changing.predict([new])
    ('add_edge', array(['b'], dtype='<U1'))
    """
    if isinstance(model, Graph):
        if H is None:
            reject("H", "live", "predictions of shape (n, c) with a graph", "None")
        given = H.detach().cpu().numpy() if isinstance(H, Tensor) else H
        default = "row" if response == "probabilities" else NORMALIZATION.default
        return LiveGraph(
            model,
            given,
            ALPHA.default if alpha is None else alpha,
            tol=tol,
            normalization=default if normalization is None else normalization,
            self_loops=SELF_LOOPS.default if self_loops is None else self_loops,
            history=history,
            response="logits" if response is None else response,
        )
    fixed = {"H": H, "alpha": alpha, "normalization": normalization, "self_loops": self_loops, "response": response}
    for name, value in fixed.items():
        if value is not None:
            reject(name, "live", "None with a fitted model, which has its own", describe(value))
    if isinstance(model, NodeEstimator):
        if not hasattr(model, "logits_"):
            reject("model", "live", EXPECTED["live"], f"a {type(model).__name__} that is not fitted")
        check_same_graph(model)
    own_alpha, make, solver, spread = (
        _of_propagated(model) if isinstance(model, PropagatedClassifier) else _of_model(model)
    )
    if own_alpha == 0:
        raise InputError("live follows the fixed point, and without teleport (alpha=0) there is none that H decides.")
    changing = make(own_alpha, tol=tol, history=history)
    shares = isinstance(model, PropagatedClassifier) and model.response_ == "probabilities"
    now = changing.predict_proba() if shares else changing.logits()
    changing.difference = LiveDifference(
        repr(solver),
        largest=float(np.abs(now - spread).max(initial=0.0)),
        classes=int(np.count_nonzero(now.argmax(axis=1) != spread.argmax(axis=1))),
    )
    return changing


def _of_model(fitted: object) -> Made:
    if isinstance(fitted, Trained):
        if len(fitted.seeds) != 1:
            reject("model", "live", "one trained run", f"{len(fitted.seeds)} of them")
        name, graph, logits, classes = type(fitted.model).__name__, fitted.graph, fitted.logits[0], None
        weights = [array[0] for array in fitted.weights]
        own_module = isinstance(fitted.model, Model) and not isinstance(fitted.model.predictor, FeatureNetwork)
        scaling = None if own_module else graph.scaled().scaling
        parts = decompose(fitted.model, weights, scaling, name, "live")
    elif isinstance(fitted, NodeClassifier):
        graph, logits, classes = fitted.graph_, fitted.logits_, fitted.classes_
        parts = decompose(fitted.model_, fitted.weights_.values(), fitted.scaling_, type(fitted).__name__, "live")
    else:
        reject("model", "live", EXPECTED["live"], describe(fitted))
    how, solver = parts.description.propagation, parts.solver
    if how is None or solver is None:
        raise InputError(
            "live needs a model that propagates. The network alone predicts a node from its features only."
        )

    def network(features: Features) -> NDArray[Any]:
        return parts.alone(Graph.from_scipy(sparse.csr_array((features.shape[0],) * 2), features=features))

    matrix: dict[str, Any] = {"normalization": how.normalization, "self_loops": how.self_loops}
    make = partial(LiveGraph, graph, parts.alone(graph), **matrix, network=network, classes=classes)
    return how.alpha, make, solver, logits


def _of_propagated(model: PropagatedClassifier) -> Made:
    graph, classes, response = model.graph_, model.classes_, model.response_

    def network(features: Features) -> NDArray[Any]:
        rows: Any = features  # in the kind of container that the estimator was fitted to
        if sparse.issparse(graph.features) != sparse.issparse(features):
            rows = sparse.csr_array(features) if sparse.issparse(graph.features) else rows.toarray()
        return outputs(model.estimator_, rows, features.shape[0], len(classes), response, None, "live")

    known = network if model.features is None else None  # given features are not the graph's
    spread = cast("Spread", model.fitted_.model)
    matrix: dict[str, Any] = {"normalization": spread.normalization, "self_loops": spread.self_loops}
    again = propagate(graph, model.alone_, spread.alpha, spread.solver, **matrix)
    make = partial(LiveGraph, graph, model.alone_, **matrix, network=known, classes=classes, response=response)
    return spread.alpha, make, spread.solver, agreed(model.fitted_, again)
