"""`explain`: a prediction as a sum over the nodes that it comes from, with their names and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final, overload
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pprop._errors import InputError
from pprop._optional import require
from pprop._validate import check_choice, reject
from pprop.estimators.decomposed import Decomposed
from pprop.estimators.fitted import Fitted, HasFitted, SpreadSettings, fitted_of
from pprop.estimators.reading import node_positions
from pprop.models.label_propagation import LabelPropagation
from pprop.propagation.attribution import Attribution, Attributor, check_eps
from pprop.propagation.live_record import probabilities_of

# Of the fast mode, where none is given.
EPS = 1e-4
# How far logits and a new computation of them may be apart, relative to max|H|: far above the rounding of any backend.
AGREE = 1e-3


@final
@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Attribution):
    """Where the logits of one node came from. Contributions and `others` add up to `value`.

    Attributes
    ----------
    node, name
        The node's position, and its id, which is the position where the graph has no ids.
    quantity
        What is explained: ``"logit"``, or ``"probability"`` of a `PropagatedClassifier` that spreads probabilities
        (before they are divided by their sum, where that is not one).
    classes, value, prediction
        The classes, the node's logits, both of shape (c,), and the class of the largest, or the one that a threshold `decided`.
    nodes, names, weights
        Positions of the contributors in the order of their shares, shape (k,); their ids; the entries of the
        propagation matrix that their predictions are multiplied with, shape (k,).
    contributions
        Signed, per class: weight times the prediction that the network makes for that node alone, shape (k, c).
    shares
        Sum of absolute contributions to all classes, as a part of that sum over all nodes, shape (k,).
    labels
        Those that the contributors had in `fit`, None for a node without one; k of them.
    others, other_count, other_share
        The contributions of all other nodes together, shape (c,); how many nodes that is, in fast mode those that were
        reached; and their share.
    mode, error
        ``"exact"`` or ``"fast"``, and a bound of the error: in fast mode, the contributions of all nodes to all classes
        are at most that much too small in total, in absolute values. 0 in exact mode, where only rounding is left.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5), ids=list("abcde"))
    >>> model = pprop.APPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5)
    APPNPClassifier(...)
    >>> explanation = model.explain(0, k=2)
    >>> explanation
    Explanation(node 'a' is 'left': 'a' 62 %, 'b' 20 %, 3 other nodes 18 %)
    >>> explanation.labels
    ['left', 'left']
    """

    name: Any
    quantity: str
    classes: NDArray[Any]
    names: list[Any]
    labels: list[Any]
    mode: str
    decided: Any = None

    @property
    def prediction(self) -> Any:
        """The class of the largest logit, or the one that a threshold decided."""
        return self.classes[int(self.value.argmax())].item() if self.decided is None else self.decided

    @property
    def other_nodes(self) -> str:
        """What the line of all other nodes is called; in fast mode not all of them are reached."""
        if self.mode == "fast":
            return f"all other nodes, {self.other_count:,} of them reached,"
        return f"{self.other_count:,} other {'node' if self.other_count == 1 else 'nodes'}"

    def __repr__(self) -> str:
        parts = [f"{name!r} {share:.0%}" for name, share in zip(self.names[:3], self.shares, strict=False)]
        if len(self.names) > 3:
            parts.append(f"{len(self.names) - 3} more {self.shares[3:].sum():.0%}")
        if self.other_count:
            parts.append(f"{self.other_nodes} {self.other_share:.0%}")
        return f"Explanation(node {self.name!r} is {self.prediction!r}: {', '.join(parts)})".replace("%", " %")

    def to_frame(self) -> Any:
        """Return a pandas frame: one row per contributor, and a last one without a node for all others together.

        Columns: ``node`` (the id, or the position where the graph has no ids), ``label``, ``weight``, ``share``, and
        one for the contribution to each class; those of a class add up to `value`.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
        >>> graph = pprop.Graph.from_scipy(path, ids=list("abcde"))
        >>> model = pprop.LabelPropagationClassifier(graph).fit(["a", "e"], ["left", "right"])
        >>> model.explain("b", k=2).to_frame().head(2).round(2)
          node  label  weight  share  contribution_left  contribution_right
        0    a   left    0.20   0.72                0.2                0.00
        1    e  right    0.08   0.28                0.0                0.08
        """
        pandas: Any = require("pandas", extra="convert", purpose="Explanation.to_frame")
        rows = np.vstack([self.contributions, self.others])
        contributions = {f"contribution_{name}": rows[:, at] for at, name in enumerate(self.classes.tolist())}
        return pandas.DataFrame(
            {
                "node": pandas.array([*self.names, None], dtype=object),
                "label": pandas.array([*self.labels, None], dtype=object),
                "weight": [*self.weights, float("nan")],
                "share": [*self.shares, self.other_share],
                **contributions,
            }
        )

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain lists and numbers, one record per contributor and one for the others."""
        names = [str(one) for one in self.classes.tolist()]

        def per_class(values: NDArray[np.float64]) -> dict[str, float]:
            return dict(zip(names, values.tolist(), strict=True))

        return {
            "node": self.node,
            "name": self.name,
            "prediction": self.prediction,
            "quantity": self.quantity,
            "value": per_class(self.value),
            "contributors": [
                {
                    "node": int(node),
                    "name": self.names[k],
                    "label": self.labels[k],
                    "weight": float(self.weights[k]),
                    "share": float(self.shares[k]),
                    "contribution": per_class(self.contributions[k]),
                }
                for k, node in enumerate(self.nodes)
            ],
            "others": {"nodes": self.other_count, "share": self.other_share, "contribution": per_class(self.others)},
            "mode": self.mode,
            "error": self.error,
        }


@overload
def explain(
    model: HasFitted, node: int | np.integer[Any] | str, k: int = ..., mode: str = ..., eps: float | None = ...
) -> Explanation: ...
@overload
def explain(
    model: HasFitted,
    node: Sequence[int] | Sequence[str] | NDArray[Any],
    k: int = ...,
    mode: str = ...,
    eps: float | None = ...,
) -> list[Explanation]: ...
@overload
def explain(
    model: HasFitted, node: None = ..., k: int = ..., mode: str = ..., eps: float | None = ..., *, ids: ArrayLike
) -> Any: ...
def explain(
    model: HasFitted,
    node: ArrayLike | None = None,
    k: int = 10,
    mode: str = "exact",
    eps: float | None = None,
    *,
    ids: ArrayLike | None = None,
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
        A fitted APPNP, PPNP, SolvedPPNP or MLP classifier, also one with a `predictor` that sees each node alone, or a
        `PropagatedClassifier` or `LabelPropagationClassifier`. The network's predictions for all nodes are computed at
        the first call and kept as long as the model.
    node
        A position, or the id of a node where ids are text; or several of one kind, or a mask, which are explained
        together, a few times faster than one by one.
    k
        Contributors to name; all others are summed up.
    mode
        ``"exact"``: from the whole row of P. ``"fast"``: from its large entries, found by pushing, at a cost that does
        not grow with the graph; the result says how much it may miss.
    eps
        Of the fast mode: what would arrive at a node is followed no further when it is below `eps` times its degree, in
        parts of what started. None: 1e-4.
    ids
        In place of `node`: an id, integer or text, or several.

    Returns
    -------
    Explanation, or a list of them where several nodes are given

    Raises
    ------
    InputError
        For models whose logits are no sum over nodes, since they propagate between their layers (GCN, N-GCN, GAT, JK)
        or average probabilities, or since their predictor contains a `Propagation`; and for a model whose graph was
        exchanged after `fit`.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
    >>> graph = pprop.Graph.from_scipy(path, features=sp.eye_array(5))
    >>> model = pprop.PPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> explanation = explain(model.fit([0, 1, 3, 4], [0, 0, 1, 1], stopping=0.5), 2, k=3)
    >>> explanation.nodes, explanation.other_count
    (array([4, 0, 1]), 2)
    >>> total = explanation.contributions.sum(axis=0) + explanation.others
    >>> bool(np.allclose(total, model.logits_[2], atol=1e-5))
    True
    """
    fitted = fitted_of(model, "explain", "a fitted classifier of pprop")
    check_choice(mode, "mode", "explain", ("exact", "fast"))
    if eps is not None and mode == "exact":
        reject("eps", "explain", "None with mode='exact'", eps, remedy="Pass mode='fast', or leave eps out.")
    tolerance, most = check_eps(EPS if eps is None else eps, k, "explain")
    given = node if ids is None else ids
    if given is None:
        reject("node", "explain", "a node, or several", "None")
    one = isinstance(given, str) or np.ndim(given) == 0
    several: Any = [given] if one else given
    asked = (several, None) if ids is None else (node, several)
    nodes = node_positions(asked[0], "node", "explain", fitted.graph, ids=asked[1])
    found = _sums.get(fitted)
    if found is None:
        found = _sums[fitted] = node_sum(fitted)
    attributor = found.attributor
    taken = attributor.exact(nodes, most) if mode == "exact" else attributor.fast(nodes, most, tolerance)
    explanations = [_named(fitted, found.quantity, mode, attribution) for attribution in taken]
    return explanations[0] if one else explanations


@final
class NodeSum(NamedTuple):
    """The logits of a fitted model, or its probabilities, as a sum over nodes."""

    quantity: str
    attributor: Attributor


# Beside the fitted models and not in them: these are pickled and copied, and a sum can be computed again.
_sums: WeakKeyDictionary[Fitted, NodeSum] = WeakKeyDictionary()


def node_sum(fitted: Fitted) -> NodeSum:
    """Return the sum over nodes that the outputs of a fitted model are; raise InputError where they are none.

    A sum that is too far from the outputs is refused: the weights were changed after the fit.
    """
    model, graph = fitted.model, fitted.graph
    if isinstance(model, LabelPropagation):
        attributor = Attributor(fitted.label_sources()[0], model.operator(graph), model.solver)
        again = probabilities_of(attributor.value, "probabilities")
        _check_agreement(fitted.name, again, np.exp(fitted.outputs), AGREE)
        return NodeSum("probability", attributor)
    if isinstance(model, SpreadSettings):
        assert fitted.alone is not None
        attributor = Attributor(fitted.alone, model.operator(graph), model.solver)
        agreed(fitted, attributor.value)
        return NodeSum("logit" if model.response == "logits" else "probability", attributor)
    parts = Decomposed.of(fitted, "explain")
    settings = parts.description.propagation
    how = (None, None) if settings is None else (settings.operator(graph), settings.solver)
    attributor = Attributor(parts.alone(graph), *how)
    # `tol` bounds the norm of a whole column
    far = AGREE * max(attributor.largest, 1.0) + 10 * parts.tol * float(np.abs(attributor.value).max(initial=0.0))
    _check_agreement(fitted.name, attributor.value, fitted.outputs, far)
    return NodeSum("logit", attributor)


def agreed(fitted: Fitted, again: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the spread predictions of a `PropagatedClassifier`, logits or probabilities, given the same computed again.

    Two that are far apart are refused.
    """
    model, found = fitted.model, fitted.outputs
    assert isinstance(model, SpreadSettings)
    assert fitted.alone is not None
    if model.response == "probabilities":  # spread ones are divided by their sum, which is one for "row"
        again, found = probabilities_of(again, model.response), np.exp(found)
    relative = max(AGREE, 10 * float(getattr(model.solver, "tol", 0.0)))
    _check_agreement(fitted.name, again, found, relative * max(float(np.abs(fitted.alone).max(initial=0.0)), 1.0))
    return found


def _check_agreement(name: str, value: NDArray[Any], expected: NDArray[Any], far: float) -> None:
    """Refuse a model whose weights were changed after its fit: what they give is too far from its outputs."""
    if not float(np.abs(value - expected).max(initial=0.0)) <= far:
        raise InputError(
            f"The settings or weights of this {name} are not those that its logits come from. Call fit again, "
            "or load it."
        )


def _named(fitted: Fitted, quantity: str, mode: str, taken: Attribution) -> Explanation:
    ids = fitted.graph.ids
    known = fitted.known_nodes
    places = np.searchsorted(known, taken.nodes)
    labels: list[Any] = [
        fitted.known_labels[at].item() if at < len(known) and known[at] == node else None
        for node, at in zip(taken.nodes.tolist(), places.tolist(), strict=True)
    ]
    return Explanation(
        **vars(taken),
        name=taken.node if ids is None else ids[taken.node].item(),
        quantity=quantity,
        classes=fitted.classes.names,
        names=taken.nodes.tolist() if ids is None else ids[taken.nodes].tolist(),
        labels=labels,
        mode=mode,
        decided=None if fitted.threshold is None else fitted.predictions(np.array([taken.node])).item(),
    )
