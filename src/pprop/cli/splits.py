"""Training, stopping and test nodes of a user's own graph, from its labelled nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pprop._errors import InputError
from pprop._validate import check_float, check_int
from pprop.datasets import Split
from pprop.graph import Graph

__all__ = ["own_split"]

FUNCTION = "train"


def own_split(graph: Graph, test: float, stopping: float, seed: int) -> Split:
    """Divide the labelled nodes; each set gets its share of every class, as far as whole nodes allow.

    One node of each class, drawn at random, trains in any case. The others are shuffled within their class and dealt
    out in the order of their rank in it, first to the test set, then to early stopping, the rest to training.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> graph = Graph.from_scipy(sp.csr_array((10, 10)), labels=[0, 0, 0, 0, 1, 1, 1, 1, -1, -1])
    >>> own_split(graph, test=0.25, stopping=0.25, seed=0)
    Split(4 train, 2 stopping, 2 test, seed=0)
    """
    test = check_float(test, "test", FUNCTION, "[0, 1)")
    stopping = check_float(stopping, "stopping", FUNCTION, "(0, 1)")
    seed = check_int(seed, "seed", FUNCTION, low=0, high=2**32 - 1)
    labels = _labels(graph)
    random = np.random.default_rng(seed)
    held: list[NDArray[np.int64]] = []
    dealt: list[NDArray[np.int64]] = []
    ranks: list[NDArray[np.float64]] = []
    for index in np.unique(labels[labels >= 0]):
        nodes = random.permutation(np.flatnonzero(labels == index))
        held.append(nodes[:1])
        dealt.append(nodes[1:])
        ranks.append((np.arange(len(nodes) - 1) + random.random()) / max(len(nodes) - 1, 1))
    order = np.concatenate(dealt)[np.argsort(np.concatenate(ranks), kind="stable")]
    total = len(order) + len(held)
    n_test = round(test * total)
    n_stopping = max(1, round(stopping * total))
    if n_test + n_stopping > len(order):
        raise InputError(
            f"The graph has {total} labelled nodes, of which one of each of its {len(held)} classes trains. That leaves "
            f"{len(order)}, too few for {n_test} test and {n_stopping} stopping nodes. "
            "Ask for smaller --test and --stopping fractions, or label more nodes."
        )
    train = np.concatenate([*held, order[n_test + n_stopping :]])
    return Split(train, order[n_test : n_test + n_stopping], np.sort(order[:n_test]), seed=seed)


def _labels(graph: Graph) -> NDArray[np.int64]:
    if graph.labels is None or not (graph.labels >= 0).any():
        raise InputError(
            "Training needs the labels of some nodes, and this graph has none. An edge list takes them from a column "
            "of its node table: --nodes FILE --label-column COLUMN."
        )
    return graph.labels
