"""Several networks that vote: the mean of their probabilities, and features that are weighted by how rare they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from pprop._errors import InputError
from pprop._validate import check_choice, check_int, describe, reject
from pprop.graph import Graph
from pprop.models.model import Model

__all__ = ["SCALINGS", "Ensemble", "mean_log_probabilities", "scaled_graph"]

SCALINGS = ("none", "idf")
"""How features may be weighted before every row is scaled to sum to one."""


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
    features
        ``"none"``: as they are. ``"idf"``: see `scaled_graph`.

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
    features: str = "none"

    def __post_init__(self) -> None:
        if not isinstance(self.member, Model):
            reject("member", "Ensemble", "a model such as pprop.APPNP()", describe(self.member))
        check_int(self.members, "members", "Ensemble", low=1)
        check_choice(self.features, "features", "Ensemble", SCALINGS)


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


def scaled_graph(graph: Graph, features: str) -> Graph:
    """Return the graph with its features weighted: by nothing, or by how rare they are.

    ``"idf"`` multiplies column j by log(n / df_j), where df_j counts the nodes that have it: a word in every document
    says nothing about any of them. No label is read, and the features of all n nodes are known in this setting.

    Examples
    --------
    >>> words = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 2.0]])
    >>> graph = Graph.from_scipy(sparse.csr_array((2, 2)), features=words)
    >>> (scaled_graph(graph, "idf").features.toarray() / np.log(2)).round(6)
    array([[0., 1., 0.],
           [0., 0., 2.]])
    """
    if check_choice(features, "features", "scaled_graph", SCALINGS) == "none":
        return graph
    if graph.features is None or graph.features.ndim != 2:
        raise InputError("Weighting features by their rarity needs a graph with features of shape (n, f).")
    matrix = sparse.csr_array(graph.features).astype(np.float64)
    matrix.eliminate_zeros()
    having = np.bincount(matrix.indices, minlength=matrix.shape[1])
    weights = np.log(graph.n_nodes / np.maximum(having, 1))
    matrix.data *= weights[matrix.indices]
    return graph.replace(features=matrix)
