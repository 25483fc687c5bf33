"""One state of the served graph: everything that requests read, computed once and never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop.graph import Graph
from pprop.serve.faults import Fault, unusable
from pprop.serve.spread import Choose, Spread, SpreadResult, Values, softmax

Nodes = NDArray[np.int64]

# What the label of a node is used for: training, early stopping, or only to judge the predictions by.
ROLES = ("training", "validation", "test", "unlabelled")
_TRAINING, _VALIDATION, _TEST, _UNLABELLED = range(len(ROLES))
_SHOWN = 80  # characters of an unknown id that an answer repeats


@final
@dataclass(frozen=True, eq=False)
class View:
    """The nodes of a graph by position, with all that is known and predicted of them.

    Attributes
    ----------
    graph
        n nodes.
    classes
        Of the model, as text.
    keys
        The id of each node, integer or text; n of them.
    names, texts
        A short and a long text of each node, where the data has any.
    default
        The predictions of the model.
    H
        What is spread: the predictions of the network for each node alone, shape (n, c); None where there is none.
    network
        Their probabilities, shape (n, c); None where no network sees each node alone.
    spread
        Makes predictions with another alpha; None where nothing is spread, and `refusal` says why.
    refusal
        Why there are no explanations, or no other alpha; empty where there are.
    training, validation
        Whether the label of a node was used for training, and for early stopping, both of shape (n,).
    sequence
        How many batches of edits have made this graph.
    """

    graph: Graph
    classes: tuple[str, ...]
    keys: Sequence[Any]
    names: Sequence[str | None] | None
    texts: Sequence[str | None] | None
    default: SpreadResult
    H: Values | None
    network: Values | None
    spread: Spread | None
    refusal: str
    training: NDArray[np.bool_]
    validation: NDArray[np.bool_]
    sequence: int = 0
    choose: Choose | None = None

    @property
    def n(self) -> int:
        """Number of nodes."""
        return self.graph.n_nodes

    @cached_property
    def index(self) -> dict[str, int]:
        """Positions by the text of an id."""
        return {str(key): at for at, key in enumerate(self.keys)}

    @cached_property
    def degree(self) -> Nodes:
        """Number of neighbours of each node, shape (n,)."""
        return np.diff(self.graph.indptr)

    @cached_property
    def labels(self) -> list[str | None]:
        """The known class of each node as text."""
        codes, names = self.graph.labels, self.graph.class_names
        if codes is None:
            return [None] * self.n
        texts = list(names) if names is not None else [str(k) for k in range(self.graph.n_classes)]
        return [None if code < 0 else texts[code] for code in codes.tolist()]

    @cached_property
    def codes(self) -> Nodes:
        """The known class of each node as a position in `classes`; -1 where unknown, or none of the model's."""
        place = {name: at for at, name in enumerate(self.classes)}
        return np.array([-1 if label is None else place.get(label, -1) for label in self.labels], dtype=np.int64)

    @cached_property
    def roles(self) -> Nodes:
        """What the label of each node is used for, as a position in `ROLES`, shape (n,)."""
        known = np.array([label is not None for label in self.labels], dtype=bool)
        others = np.where(known, _TEST, _UNLABELLED)
        return np.where(self.training, _TRAINING, np.where(self.validation, _VALIDATION, others))

    @cached_property
    def tested(self) -> NDArray[np.bool_]:
        """Whether a node is a test node whose label is a class of the model, shape (n,)."""
        return (self.codes >= 0) & (self.roles == _TEST)

    @cached_property
    def searchable(self) -> list[str]:
        """Id and name of each node, in the form in which they are searched."""
        if self.names is None:
            return [str(key).casefold() for key in self.keys]
        return [f"{key}\n{name or ''}".casefold() for key, name in zip(self.keys, self.names, strict=True)]

    @cached_property
    def distance(self) -> Nodes:
        """Steps from each node to the nearest training node, shape (n,); -1 where none is reachable."""
        found = np.where(self.training, 0, -1).astype(np.int64)
        front = self.training.astype(np.float64)
        shape = (self.n, self.n)
        # the structure alone: weights may be so small that their products vanish
        receives = sparse.csr_array((np.ones(self.graph.n_entries), self.graph.indices, self.graph.indptr), shape=shape)
        steps = 0
        while front.any():
            steps += 1
            arrived: Values = np.asarray(receives @ front)
            new: NDArray[np.bool_] = (arrived > 0) & (found < 0)
            found[new] = steps
            front = new.astype(np.float64)
        return found

    @cached_property
    def alone(self) -> Nodes | None:
        """The most probable class of each node by the network alone, shape (n,).

        A threshold is chosen on the probabilities after propagation and does not fit those of the network.
        """
        return None if self.network is None else self.network.argmax(axis=1)

    def prepared(self) -> View:
        """Compute what requests will need, so that none of them waits for it."""
        for name in ("index", "degree", "labels", "codes", "roles", "tested", "searchable", "distance", "alone"):
            getattr(self, name)
        if self.default.row is not None:
            self.default.row(0)
        return self

    def find(self, key: Any) -> int:
        """Return the position of an id, or answer that there is no such node."""
        at = self.index.get(str(key))
        if at is None:
            text = str(key)
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            raise Fault(404, "unknown_node", f"There is no node {shown!r} in the graph.")
        return at

    def class_code(self, name: str) -> int:
        """Return the position of a class, or answer that there is no such class."""
        if name not in self.classes:
            raise Fault(404, "unknown_class", f"The model has no class {name[:_SHOWN]!r}.")
        return self.classes.index(name)

    def solved(self, alpha: float | None, steps: int | None) -> SpreadResult:
        """Return the predictions at this alpha and number of steps; None: as the model was trained."""
        if alpha is None and steps is None:
            return self.default
        if self.spread is None:
            raise unusable(self.refusal or "This model spreads nothing, so alpha and steps change nothing.")
        return self.spread.solved(alpha, steps)

    def brief(self, at: int, solved: SpreadResult) -> dict[str, Any]:
        """Return the few words about a node."""
        return {
            "id": self.keys[at],
            "name": None if self.names is None else self.names[at],
            "predicted": self.classes[solved.predicted[at]],
            "confidence": float(solved.confidence[at]),
            "label": self.labels[at],
            "role": ROLES[self.roles[at]],
        }

    def prediction(self, at: int, solved: SpreadResult) -> dict[str, Any]:
        """Return all that is known of a node and its prediction."""
        distance = int(self.distance[at])
        return {
            **self.brief(at, solved),
            "probabilities": solved.probabilities[at].tolist(),
            "network": None if self.network is None else self.network[at].tolist(),
            "text": None if self.texts is None else self.texts[at],
            "degree": int(self.degree[at]),
            "distance": None if distance < 0 else distance,
        }


def network_of(H: NDArray[Any] | None) -> Values | None:
    """Return the probabilities of logits, where there are any."""
    return None if H is None else softmax(H)
