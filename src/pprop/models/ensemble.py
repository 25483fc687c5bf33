"""Several runs that vote: the mean of their probabilities; and the correction of the vote by its errors at known nodes.

With P the probabilities of all nodes, E = Y - P at nodes whose class is known and 0 elsewhere, and s the strength, the
corrected probabilities are

    P + s / alpha * Z,    Z = E propagated in K power steps,    alpha = 0.1, K = 10.

The division makes s the weight of a node's own error, to which the parts that return by way of other nodes are added. This
is the first half of Correct & Smooth.

References
----------
Huang, He, Singh, Lim and Benson, "Combining Label Propagation and Simple Models Out-performs Graph Neural Networks", ICLR
2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pprop._validate import check_float, check_int, describe, reject
from pprop.graph import Graph
from pprop.models.model import Model, PropagationSettings
from pprop.propagation import PowerIteration, propagate
from pprop.settings import NORMALIZATION, SELF_LOOPS

SPREAD_ALPHA, SPREAD_STEPS = 0.1, 10
# What a class keeps whose corrected probability would be less; rows are divided by their sums afterwards.
LEAST = 1e-6

TEMPERATURES = np.geomspace(0.05, 3, 60)


@final
@dataclass(frozen=True)
class Ensemble:
    """Runs of one model whose probabilities are averaged.

    Attributes
    ----------
    member
        What each of them is.
    members
        How many there are.
    strength
        With which their errors at known nodes are spread; 0: not at all.

    Examples
    --------
    >>> from pprop.models import APPNP
    >>> Ensemble(APPNP(), members=0)
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'members' parameter of Ensemble must be an integer of at least 1. Got 0 instead.
    """

    member: Model
    members: int
    strength: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.member, Model):
            reject("member", "Ensemble", "a model such as pprop.APPNP()", describe(self.member))
        check_int(self.members, "members", "Ensemble", low=1)

    def corrected(self, graph: Graph, logits: NDArray[np.float32], known: KnownErrors) -> NDArray[np.float32]:
        """Return the logits of the vote with its errors at known nodes spread over the members' own matrix."""
        matrix = PropagationSettings() if self.member.propagation is None else self.member.propagation
        return spread_errors(graph, logits, known, self.strength, matrix.normalization, matrix.self_loops)


def mean_log_probabilities(logits: NDArray[Any]) -> NDArray[np.float32]:
    """Return the logarithm of the mean of the softmax over members, from their logits (m, n, c), shape (n, c).

    Their own softmax are these means again, so that they serve as logits of the whole. One member keeps its logits as
    they are.

    Examples
    --------
    >>> split = np.log([[[0.9, 0.1]], [[0.5, 0.5]]])
    >>> np.exp(mean_log_probabilities(split)).round(3)
    array([[0.7, 0.3]], dtype=float32)
    """
    if len(logits) == 1:
        return np.asarray(logits[0], dtype=np.float32)
    logs = special.log_softmax(logits.astype(np.float64), axis=2)
    return (special.logsumexp(logs, axis=0) - np.log(len(logs))).astype(np.float32)


@final
@dataclass(frozen=True, eq=False)
class KnownErrors:
    """What a model gets wrong at nodes whose class is known.

    Attributes
    ----------
    nodes
        Distinct positions, shape (k,), int64.
    errors
        One for the class of the node and zero for others, minus the probabilities, shape (k, c), float64. Rows sum to zero.
    temperature
        What logits are divided by before they become these probabilities.

    Examples
    --------
    >>> KnownErrors.of(np.array([3]), np.log([[0.8, 0.2]]), np.array([1]), temperature=1.0).errors.round(3)
    array([[-0.8,  0.8]])
    """

    nodes: NDArray[np.int64]
    errors: NDArray[np.float64]
    temperature: float

    @classmethod
    def of(
        cls, nodes: NDArray[np.int64], logits: NDArray[Any], codes: NDArray[np.int64], temperature: float
    ) -> KnownErrors:
        """Compare the logits of some nodes, shape (k, c), with their classes, shape (k,)."""
        errors = -special.softmax(logits.astype(np.float64) / temperature, axis=1)
        errors[np.arange(len(nodes)), codes] += 1
        return cls(nodes, errors, temperature)


def best_temperature(logits: NDArray[Any], codes: NDArray[np.int64]) -> float:
    """Return the temperature, of 60 from 0.05 to 3, at which the cross entropy of some nodes is least.

    Parameters
    ----------
    logits
        Of nodes that did not train, shape (k, c).
    codes
        Their classes, shape (k,).

    Examples
    --------
    Three of four are right, and so 3 to 1 are the odds that fit best:

    >>> found = best_temperature(np.array([[0.2, 0.0]] * 4), np.array([0, 0, 0, 1]))
    >>> bool(abs(np.exp(0.2 / found) - 3) < 0.2)
    True
    """
    own = logits.astype(np.float64)
    rows = np.arange(len(own))
    losses = [-special.log_softmax(own / heat, axis=1)[rows, codes].mean() for heat in TEMPERATURES]
    return float(TEMPERATURES[int(np.argmin(losses))])


def spread_errors(
    graph: Graph,
    logits: NDArray[Any],
    known: KnownErrors,
    strength: float,
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
) -> NDArray[np.float32]:
    """Return the logarithms of the corrected probabilities of all nodes, shape (n, c).

    The probabilities are those of the logits at ``known.temperature``. Corrected rows still sum to one, for any
    normalization, because rows of errors sum to zero; where an entry is below 1e-6 it is set to that, and the row is divided
    by its sum, which does not change its largest entry. So the softmax of what is returned are probabilities.

    Parameters
    ----------
    graph
        n nodes.
    logits
        Of all nodes, shape (n, c).
    known
        The errors, and at which temperature.
    strength
        s, at least 0; 0 changes the temperature alone.
    normalization, self_loops
        As for `propagate`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> vote = np.log([[0.6, 0.4]] * 5)
    >>> known = KnownErrors.of(np.array([0]), vote[:1], np.array([1]), temperature=1.0)
    >>> np.exp(spread_errors(path, vote, known, strength=0.2)).round(2)[:, 1]
    array([0.82, 0.7 , 0.57, 0.5 , 0.46], dtype=float32)
    """
    check_float(strength, "strength", "spread_errors", "[0, inf)")
    if logits.shape != (graph.n_nodes, known.errors.shape[1]):
        reject("logits", "spread_errors", f"of shape {(graph.n_nodes, known.errors.shape[1])}", describe(logits))
    shares = special.softmax(logits.astype(np.float64) / known.temperature, axis=1)
    if strength > 0:
        start = np.zeros_like(shares)
        start[known.nodes] = known.errors
        moved: NDArray[np.float64] = propagate(
            graph, start, SPREAD_ALPHA, PowerIteration(SPREAD_STEPS), normalization, self_loops
        )
        shares += strength / SPREAD_ALPHA * moved
    shares = np.maximum(shares, LEAST)
    return np.log(shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)
