"""`explain`: which nodes a prediction came from, exactly or quickly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, final, overload
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pprop._errors import InputError
from pprop._validate import check_choice, describe, reject
from pprop.estimators._alone import as_ppnp, check_alone
from pprop.estimators._same_graph import check_same_graph
from pprop.estimators._samples import node_positions
from pprop.estimators.base import NodeClassifier, NodeScores
from pprop.estimators.explanation import Explanation
from pprop.estimators.propagated import PropagatedClassifier
from pprop.kernels import choose_backend
from pprop.models import Model, SolvedPPNP
from pprop.models.inference import Inference
from pprop.propagation import PowerIteration, PPROperator
from pprop.propagation.attribution import Attribution, Attributor, check_eps

__all__ = ["explain"]

EPS = 1e-4
"""Of the fast mode, where none is given."""
_AGREE = 1e-3
"""How far logits and weights may be apart, relative to max|H|: far above the rounding of float32 on any device."""


@final
class _Bound(NamedTuple):
    """What was computed once for a fitted model, as long as its logits are these."""

    logits: NDArray[Any]
    quantity: str
    attributor: Attributor


# Beside the models and not in them: a fitted model is pickled, copied and compared, and all of this can be had again.
_bound: WeakKeyDictionary[NodeScores, _Bound] = WeakKeyDictionary()


@overload
def explain(
    model: NodeScores, node: int | np.integer[Any], k: int = ..., mode: str = ..., eps: float | None = ...
) -> Explanation: ...
@overload
def explain(
    model: NodeScores, node: Sequence[int] | NDArray[Any], k: int = ..., mode: str = ..., eps: float | None = ...
) -> list[Explanation]: ...
def explain(
    model: NodeScores, node: ArrayLike, k: int = 10, mode: str = "exact", eps: float | None = None
) -> Explanation | list[Explanation]:
    """Take the logits of a node apart into the contributions of the nodes that they came from.

        Z_i = sum_j P_ij H_j

    H is what the network predicts for each node alone, P the matrix that the model propagates with: the polynomial of K
    power steps for APPNP, the personalized PageRank matrix for PPNP. So the sum is no approximation of the model: it is
    the model. The logits of a `SolvedPPNPClassifier` are that sum to the tolerance of its solves. For a network without
    propagation the node is the whole explanation of itself.

    Parameters
    ----------
    model
        A fitted APPNP, PPNP, SolvedPPNP or MLP classifier, also one around a predictor of one's own that sees each node
        alone, or a `PropagatedClassifier`. The network's predictions for all nodes are computed at the first call and kept
        as long as the model.
    node
        A position; or several, which are explained together, a few times faster than one by one.
    k
        Contributors to name; all others are summed up.
    mode
        ``"exact"``: from the whole row of P. ``"fast"``: from its large entries, found by pushing, at a cost that does
        not grow with the graph; the result says how much it may miss.
    eps
        Of the fast mode: what would arrive at a node is followed no further when it is below `eps` times its degree, in
        parts of what started. None: 1e-4.

    Returns
    -------
    Explanation, or a list of them where several nodes are given

    Raises
    ------
    InputError
        For models whose logits are no sum over nodes, since they propagate between their layers (GCN, N-GCN, GAT, JK) or
        average probabilities, or since their predictor has a `Propagation` of its own; and for a model whose graph was
        exchanged after `fit`.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5))
    >>> model = pprop.PPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> explanation = explain(model.fit([0, 1, 3, 4], [0, 0, 1, 1], stopping=0.5), 2, k=3)
    >>> explanation.nodes, explanation.other_count
    (array([4, 2, 0]), 2)
    >>> total = explanation.contributions.sum(axis=0) + explanation.others
    >>> bool(np.allclose(total, model.logits_[2], atol=1e-5))
    True
    """
    if not isinstance(model, NodeScores):
        reject("model", "explain", "a fitted classifier of pprop", describe(model))
    check_is_fitted(model)
    check_choice(mode, "mode", "explain", ("exact", "fast"))
    if eps is not None and mode == "exact":
        reject("eps", "explain", "None with mode='exact'", eps, remedy="Pass mode='fast', or leave eps out.")
    tolerance, most = check_eps(EPS if eps is None else eps, k, "explain")
    one = np.ndim(node) == 0
    nodes = node_positions([node] if one else node, "node", "explain", len(model.logits_))
    check_same_graph(model)
    bound = _bound.get(model)
    if bound is None or bound.logits is not model.logits_:
        bound = _bound[model] = _bind(model)
    attributor = bound.attributor
    taken = attributor.exact(nodes, most) if mode == "exact" else attributor.fast(nodes, most, tolerance)
    explanations = [_named(model, bound.quantity, mode, attribution) for attribution in taken]
    return explanations[0] if one else explanations


def _bind(model: NodeScores) -> _Bound:
    if isinstance(model, PropagatedClassifier):
        return _bind_propagated(model)
    if not isinstance(model, NodeClassifier):
        reject("model", "explain", "a fitted classifier of pprop", describe(model))
    description, name, tol = model.model_, type(model).__name__, 0.0
    if isinstance(description, SolvedPPNP):
        description, tol = as_ppnp(description), description.solver.wanted
    if not isinstance(description, Model):
        got = f"{name}, whose logits are no sum over nodes,"
        reject("model", "explain", "an APPNP, PPNP, SolvedPPNP or MLP classifier", got)
    settings = description.propagation
    check_alone(description, name, "explain")
    weights = [torch.from_numpy(np.array(array))[None] for array in model.weights_.values()]
    kernels = choose_backend("auto", "cpu", "explain").kernels
    H = Inference(description, model.graph_, kernels).alone(weights)[0].numpy()
    if settings is None:
        attributor = Attributor(H, None, None)
    else:
        attributor = Attributor(H, settings.operator(model.graph_), settings.solver, settings.self_loops)
    apart = float(np.abs(attributor.value - model.logits_).max(initial=0.0))
    off = 10 * tol * float(np.abs(attributor.value).max(initial=0.0))  # a certificate is of the norm of a whole column
    if not apart <= _AGREE * max(attributor.largest, 1.0) + off:
        _refuse(name)
    return _Bound(model.logits_, "logit", attributor)


def _bind_propagated(model: PropagatedClassifier) -> _Bound:
    solver = PowerIteration(model.steps) if model.solver is None else model.solver
    operator = PPROperator(model.graph_, model.alpha_, model.normalization_, model.self_loops)
    attributor = Attributor(model.alone_, operator, solver, model.self_loops)
    value, expected = attributor.value, model.logits_
    probabilities = model.response_ == "probabilities"
    if probabilities:  # spread ones are divided by their sum, which is one for "row"
        value, expected = value / np.maximum(value.sum(axis=1, keepdims=True), 1e-300), np.exp(expected)
    tolerance = max(_AGREE, 10 * float(getattr(solver, "tol", 0.0)))
    if not float(np.abs(value - expected).max(initial=0.0)) <= tolerance * max(attributor.largest, 1.0):
        _refuse(type(model).__name__)
    return _Bound(model.logits_, "probability" if probabilities else "logit", attributor)


def _refuse(name: str) -> NoReturn:
    raise InputError(
        f"The settings or weights of this {name} are not those that its logits come from. Call fit again, or load it."
    )


def _named(model: NodeScores, quantity: str, mode: str, taken: Attribution) -> Explanation:
    ids = model.graph_.ids
    known = model.known_nodes_
    places = np.searchsorted(known, taken.nodes)
    labels: list[Any] = [
        model.known_labels_[at].item() if at < len(known) and known[at] == node else None
        for node, at in zip(taken.nodes.tolist(), places.tolist(), strict=True)
    ]
    return Explanation(
        node=taken.node,
        name=taken.node if ids is None else ids[taken.node].item(),
        quantity=quantity,
        classes=model.classes_,
        value=taken.value,
        nodes=taken.nodes,
        names=taken.nodes.tolist() if ids is None else ids[taken.nodes].tolist(),
        weights=taken.weights,
        contributions=taken.contributions,
        shares=taken.shares,
        labels=labels,
        others=taken.others,
        other_count=taken.other_count,
        other_share=taken.other_share,
        mode=mode,
        error=taken.error,
    )
