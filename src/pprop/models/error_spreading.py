"""Labels reused when predicting: what a model gets wrong at known nodes is taken back around them.

With P the probabilities of all nodes, E = Y - P at nodes whose class is known and 0 elsewhere, and s the strength, the
corrected probabilities are

    P + s / alpha * Z,    Z = E propagated in K power steps,    alpha = 0.1, K = 10.

The division makes s the weight of a node's own error, to which what comes back by way of others is added. This is the first
half of Correct & Smooth.

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

from pprop._validate import check_float, describe, reject
from pprop.graph import Graph
from pprop.propagation import PowerIteration, propagate

ALPHA, STEPS = 0.1, 10
LEAST = 1e-6
"""What a class keeps whose corrected probability would be less; rows are divided by their sums afterwards."""

TEMPERATURES = np.geomspace(0.05, 3, 60)


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
    normalization: str = "sym",
    self_loops: bool = True,
) -> NDArray[np.float32]:
    """Return the logarithms of the corrected probabilities of all nodes, shape (n, c).

    The probabilities are those of the logits at ``known.temperature``. Corrected rows still sum to one, whatever the
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
        moved: NDArray[np.float64] = propagate(graph, start, ALPHA, PowerIteration(STEPS), normalization, self_loops)
        shares += strength / ALPHA * moved
    shares = np.maximum(shares, LEAST)
    return np.log(shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)
