"""Dropout for a solve: drop edges of the graph and normalise what is left.

Dropping entries of T and dividing the rest by the probability of keeping them, as a fixed number of power steps can,
leaves a matrix whose spectral radius is above 1 / (1 - alpha) on real graphs: it has no fixed point to solve for. What is
left of the graph, normalised by its own degrees, is a transition matrix like any other.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from pprop.graph import Graph, Transition, transition_matrix
from pprop.graph.transition import with_self_loops
from pprop.kernels import Draw
from pprop.kernels.random_bits import keep_bits
from pprop.kernels.streams import EDGES, Bernoulli
from pprop.propagation.operator import PPROperator

__all__ = ["dropped_transition"]


def dropped_transition(operator: PPROperator, draw: Draw, run: int) -> Transition:
    """Return the transition matrix of the graph without the edges that a run drops in an epoch.

    An undirected edge is dropped as a whole; a self-loop never. Which ones are dropped is a function of the run's seed,
    the epoch and the two nodes: the entry (i, j), i < j, of an undirected edge has the mask that a single power step would
    give it.

    Parameters
    ----------
    operator
        With the graph and its normalisation.
    draw
        Seeds, epoch and probability.
    run
        Which of the seeds.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> dropped = dropped_transition(PPROperator(path, 0.1, "row"), Draw(torch.tensor([7]), 0, 0.5), 0)
    >>> dropped.to_scipy().sum(axis=1).tolist(), len(dropped.indices) < 13
    ([1.0, 1.0, 1.0, 1.0, 1.0], True)
    """
    whole = operator.transition
    n = whole.n_nodes
    rows = np.repeat(np.arange(n), np.diff(whole.indptr))
    columns = whole.indices.astype(np.int64)
    undirected = not operator.graph.directed
    first, second = (np.minimum(rows, columns), np.maximum(rows, columns)) if undirected else (rows, columns)
    kept = _keep(draw, run, first, second).numpy() | (rows == columns)
    if whole.folded:  # into the weights, which are then those of T
        values = with_self_loops(operator.graph, operator.self_loops).data
    else:
        values = np.ones(len(columns)) if whole.weights is None else whole.weights
    left = sparse.csr_array((values[kept], (rows[kept], columns[kept])), shape=(n, n))
    # the self-loops are among the entries already; a node that has lost all of its edges gets one in any case
    graph = Graph.from_scipy(left, directed=operator.graph.directed)
    return transition_matrix(graph, operator.normalization, self_loops=False)


def _keep(draw: Draw, run: int, first: np.ndarray, second: np.ndarray) -> Tensor:
    seed = draw.seeds[run].cpu()
    at = (torch.from_numpy(first), torch.from_numpy(second))
    return keep_bits(seed, EDGES, *at, torch.tensor(draw.number), Bernoulli.from_probability(draw.probability))
