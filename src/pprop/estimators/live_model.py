"""`live`: from a fitted model, or a graph and predictions, to a graph that may change."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from torch import Tensor

from pprop._errors import InputError
from pprop._validate import describe, reject
from pprop.estimators._same_graph import check_same_graph
from pprop.estimators.base import NodeClassifier
from pprop.estimators.propagated import PropagatedClassifier
from pprop.graph import Graph
from pprop.graph._attributes import Features
from pprop.kernels import choose_backend
from pprop.models import Architecture, Model
from pprop.models.ensemble import Ensemble
from pprop.models.inference import Inference
from pprop.propagation import LiveDifference, LiveGraph
from pprop.training import Trained

__all__ = ["live"]


def live(
    model: NodeClassifier | Trained | Graph,
    H: ArrayLike | None = None,
    alpha: float | None = None,
    *,
    tol: float = 1e-4,
    normalization: str | None = None,
    self_loops: bool | None = None,
    history: int = 1000,
) -> LiveGraph:
    """Make the graph of a fitted model live: edges, nodes and features change, and predictions follow.

    The predictions are those of the fixed point Z = (1 - alpha) T Z + alpha H at the model's alpha, which APPNP's K steps
    approach and PPNP's are; ``difference`` of the result tells how far the K-step model is from it at the start. The
    network's weights stay as they are.

    Parameters
    ----------
    model
        A fitted `APPNPClassifier` or `PPNPClassifier`, one trained run of `APPNP` or `PPNP`, or a `Graph`.
    H
        With a graph: predictions of each node on its own, shape (n, c). They are made by the network of a model.
    alpha, normalization, self_loops
        With a graph: as in `propagate`; alpha is 0.1 and the matrix the paper's unless given. A model has its own.
    tol
        |Z_i - Z*_i| <= tol d_i^p for every node and class at any time; see `LiveGraph`.
    history
        Number of edits that can be undone.

    Returns
    -------
    LiveGraph

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
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
        return LiveGraph(
            model,
            given,
            0.1 if alpha is None else alpha,
            tol=tol,
            normalization="sym" if normalization is None else normalization,
            self_loops=True if self_loops is None else self_loops,
            history=history,
        )
    for name, value in (("H", H), ("alpha", alpha), ("normalization", normalization), ("self_loops", self_loops)):
        if value is not None:
            reject(name, "live", "None with a fitted model, which has its own", describe(value))
    return _from_model(model, tol, history)


def _from_model(fitted: object, tol: float, history: int) -> LiveGraph:
    description, graph, weights, logits, classes = _parts(fitted)
    settings = description.propagation
    if settings is None:
        raise InputError(
            "live needs a model that propagates. The network alone predicts a node from its features only."
        )
    if settings.alpha == 0:
        raise InputError("live follows the fixed point, and without teleport (alpha=0) there is none that H decides.")
    kernels = choose_backend("auto", "cpu", "live").kernels

    def network(features: Features) -> NDArray[Any]:
        alone = Graph.from_scipy(sparse.csr_array((features.shape[0],) * 2), features=features)
        return Inference(description, alone, kernels).alone(weights)[0].numpy()

    changing = LiveGraph(
        graph,
        Inference(description, graph, kernels).alone(weights)[0].numpy(),
        settings.alpha,
        tol=tol,
        normalization=settings.normalization,
        self_loops=settings.self_loops,
        network=network,
        classes=classes,
        history=history,
    )
    fixed = changing.logits()
    changing.difference = LiveDifference(
        repr(settings.solver),
        largest=float(np.abs(fixed - logits).max(initial=0.0)),
        classes=int(np.count_nonzero(fixed.argmax(axis=1) != logits.argmax(axis=1))),
    )
    return changing


def _parts(fitted: object) -> tuple[Model, Graph, list[Tensor], NDArray[Any], NDArray[Any] | None]:
    """Return the description of a model, its graph, weights with the runs axis, logits of all nodes, and classes."""
    expected = "a fitted APPNPClassifier or PPNPClassifier, a training of APPNP or PPNP, or a Graph"
    if isinstance(fitted, Trained):
        if len(fitted.seeds) != 1:
            reject("model", "live", "one trained run", f"{len(fitted.seeds)} of them")
        description, graph, logits, classes = fitted.model, fitted.graph, fitted.logits[0], None
        weights = [torch.from_numpy(np.array(array[:1])) for array in fitted.weights]
    elif isinstance(fitted, NodeClassifier):
        if not hasattr(fitted, "weights_"):
            reject("model", "live", expected, f"a {type(fitted).__name__} that is not fitted")
        check_same_graph(fitted)
        description, graph, logits, classes = fitted.model_, fitted.graph_, fitted.logits_, fitted.classes_
        weights = [torch.from_numpy(np.array(array))[None] for array in fitted.weights_.values()]
    else:
        remedy = ""
        if isinstance(fitted, PropagatedClassifier):
            remedy = "Call live(model.graph_, model.alone_, model.alpha_, normalization=model.normalization_)."
        reject("model", "live", expected, describe(fitted), remedy=remedy)
    if not isinstance(description, Model):
        why = "which propagates features"
        if isinstance(description, Architecture | Ensemble):
            why = "whose members vote" if isinstance(description, Ensemble) else "whose layers propagate in between"
        reject("model", "live", expected, f"{type(fitted).__name__}, {why},")
    return description, graph, weights, logits, classes
