"""What `explain` returns: a prediction as a sum over the nodes that it came from, with their names and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Explanation"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Where the logits of one node came from. Contributions and `others` add up to `value`.

    Attributes
    ----------
    node, name
        The node's position, and its id, which is the position where the graph has no ids.
    quantity
        What is explained: ``"logit"``, or ``"probability"`` of a `PropagatedClassifier` that spreads probabilities
        (before they are divided by their sum, where that is not one).
    classes, value, prediction
        The classes, the node's logits, both of shape (c,), and the class of the largest.
    nodes, names, weights
        Positions of the contributors in the order of their shares, shape (k,); their ids; the entries of the propagation
        matrix that their predictions are multiplied with, shape (k,).
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
    >>> graph = pprop.Graph.from_scipy(path, features=np.eye(5), ids=list("abcde"))
    >>> model = pprop.APPNPClassifier(graph, hidden=8, dropout=0.0, max_epochs=20, random_state=0)
    >>> model.fit([0, 1, 3, 4], ["left", "left", "right", "right"], stopping=0.5)
    APPNPClassifier(...)
    >>> explanation = model.explain(0, k=2)
    >>> explanation
    Explanation(node 'a' is 'left': 'a' 59 %, 'b' 16 %, 3 other nodes 25 %)
    >>> explanation.labels
    ['left', 'left']
    """

    node: int
    name: Any
    quantity: str
    classes: NDArray[Any]
    value: NDArray[np.float64]
    nodes: NDArray[np.int64]
    names: list[Any]
    weights: NDArray[np.float64]
    contributions: NDArray[np.float64]
    shares: NDArray[np.float64]
    labels: list[Any]
    others: NDArray[np.float64]
    other_count: int
    other_share: float
    mode: str
    error: float

    @property
    def prediction(self) -> Any:
        """The class of the largest logit."""
        return self.classes[int(self.value.argmax())].item()

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
            "others": {
                "nodes": self.other_count,
                "share": self.other_share,
                "contribution": per_class(self.others),
            },
            "mode": self.mode,
            "error": self.error,
        }
