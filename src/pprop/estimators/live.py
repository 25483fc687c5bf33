"""`live`: from a fitted model, or a graph and predictions, to a graph that may change."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from torch import Tensor

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.estimators.decomposed import EXPECTED, Decomposed, decompose
from pprop.estimators.explanation import agreed
from pprop.estimators.fitted import Fitted, SpreadSettings, fitted_of
from pprop.estimators.node import NodeClassifier, NodeEstimator
from pprop.estimators.propagated import PropagatedClassifier, outputs
from pprop.graph import Graph
from pprop.graph.attributes import Features
from pprop.models import FeatureNetwork, Model
from pprop.propagation import LiveDifference, LiveGraph, Solver, propagate
from pprop.settings import ALPHA, LIVE_TOL, NORMALIZATION, SELF_LOOPS
from pprop.training import Trained


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
    if isinstance(model, Trained):
        return _of_run(model, tol, history)
    if isinstance(model, NodeEstimator) and not hasattr(model, "fitted_"):
        reject("model", "live", EXPECTED["live"], f"a {type(model).__name__} that is not fitted")
    fitted = fitted_of(model, "live", EXPECTED["live"])
    return live_of(fitted, tol, history, model if isinstance(model, PropagatedClassifier) else None)


def live_of(
    fitted: Fitted, tol: float = LIVE_TOL.default, history: int = 1000, made_by: PropagatedClassifier | None = None
) -> LiveGraph:
    """Make the graph of what a fit left behind live.

    Parameters
    ----------
    fitted
        Of a classifier that predicts each node alone, and then propagates.
    tol, history
        As for `live`.
    made_by
        The classifier, where another estimator than a network predicts each node alone.
    """
    if isinstance(fitted.model, SpreadSettings):
        assert made_by is not None  # a server has none, since none can be saved
        return _of_spread(fitted, fitted.model, made_by, tol, history)
    parts = Decomposed.of(fitted, "live")
    choose = None if fitted.threshold is None else partial(_choose, fitted)
    return _of_parts(parts, fitted.graph, fitted.outputs, tol, history, fitted.classes.names, choose)


def _choose(fitted: Fitted, probabilities: NDArray[Any]) -> NDArray[np.int64]:
    """Return what the threshold decides, where the probabilities are those that it was chosen on."""
    if fitted.normalization not in (None, "row"):
        raise InputError(
            "predict of a live graph cannot use the threshold of this model: it belongs to probabilities without the factor of "
            "the degree, which a live graph does not compute. Train with normalization='row', or use predict_proba."
        )
    return fitted.classes.choose(probabilities)


def _of_run(trained: Trained, tol: float, history: int) -> LiveGraph:
    if len(trained.seeds) != 1:
        reject("model", "live", "one trained run", f"{len(trained.seeds)} of them")
    own_module = isinstance(trained.model, Model) and not isinstance(trained.model.predictor, FeatureNetwork)
    scaling = None if own_module else trained.graph.scaled().scaling
    weights = [array[0] for array in trained.weights]
    parts = decompose(trained.model, weights, scaling, type(trained.model).__name__, "live")
    return _of_parts(parts, trained.graph, trained.logits[0], tol, history, None)


def _of_parts(
    parts: Decomposed,
    graph: Graph,
    logits: NDArray[Any],
    tol: float,
    history: int,
    classes: NDArray[Any] | None,
    choose: Callable[[NDArray[Any]], NDArray[np.int64]] | None = None,
) -> LiveGraph:
    how, solver = parts.description.propagation, parts.solver
    if how is None or solver is None:
        raise InputError(
            "live needs a model that propagates. The network alone predicts a node from its features only."
        )
    _check_teleport(how.alpha)

    def network(features: Features) -> NDArray[Any]:
        return parts.alone(Graph.from_scipy(sparse.csr_array((features.shape[0],) * 2), features=features))

    changing = LiveGraph(
        graph,
        parts.alone(graph),
        how.alpha,
        tol=tol,
        normalization=how.normalization,
        self_loops=how.self_loops,
        network=network,
        classes=classes,
        history=history,
        choose=choose,
    )
    changing.difference = _difference(solver, changing.logits(), logits)
    return changing


def _of_spread(
    fitted: Fitted, spread: SpreadSettings, model: PropagatedClassifier, tol: float, history: int
) -> LiveGraph:
    graph, alone, classes, response = fitted.graph, fitted.alone, fitted.classes.names, spread.response
    assert alone is not None
    how: dict[str, Any] = {"normalization": spread.normalization, "self_loops": spread.self_loops}
    agreed_on = agreed(fitted, propagate(graph, alone, spread.alpha, spread.solver, **how))
    _check_teleport(spread.alpha)

    def network(features: Features) -> NDArray[Any]:
        rows: Any = features  # in the kind of container that the estimator was fitted to
        if sparse.issparse(graph.features) != sparse.issparse(features):
            rows = sparse.csr_array(features) if sparse.issparse(graph.features) else rows.toarray()
        return outputs(model.estimator_, rows, features.shape[0], len(classes), response, None, "live")

    known = network if model.features is None else None  # given features are not the graph's
    kept: dict[str, Any] = {"network": known, "classes": classes, "history": history, "response": response}
    changing = LiveGraph(graph, alone, spread.alpha, tol=tol, **how, **kept)
    now = changing.predict_proba() if response == "probabilities" else changing.logits()
    changing.difference = _difference(spread.solver, now, agreed_on)
    return changing


def _check_teleport(alpha: float) -> None:
    if alpha == 0:
        raise InputError("live follows the fixed point, and without teleport (alpha=0) there is none that H decides.")


def _difference(solver: Solver, now: NDArray[Any], fitted: NDArray[Any]) -> LiveDifference:
    """Return how far the fixed point is from what the fit spread."""
    return LiveDifference(
        repr(solver),
        largest=float(np.abs(now - fitted).max(initial=0.0)),
        classes=int(np.count_nonzero(now.argmax(axis=1) != fitted.argmax(axis=1))),
    )
