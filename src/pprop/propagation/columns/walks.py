"""Statistics of columns where a walk of k steps from a node ends: at its neighbours, at their neighbours, and so on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from pprop.graph import Graph, transition_matrix

Columns = NDArray[np.float32]
_ALL_KNOWN = np.empty((0, 0), dtype=np.float32)
_NO_WEIGHTS = np.empty(0)


@final
class Hop(NamedTuple):
    """Statistics at the ends of the walks of `steps` steps from every node, each (n, c); NaN where no number is known.

    `deviation`, `largest` and `smallest` are None where they were not asked for.
    """

    steps: int
    mean: Columns
    deviation: Columns | None
    largest: Columns | None
    smallest: Columns | None


def walk_statistics(
    graph: Graph, columns: NDArray[np.floating], hops: int, spread: int = 0, *, against: bool = False
) -> Iterator[Hop]:
    """Yield the statistics of columns at one step from every node, at two, up to `hops`.

    A step goes to one of the nodes that a node receives from, with a probability in proportion to the weights of the edges;
    from a node that receives from none it stays. So at one step the statistics are those of the neighbours. A number that is
    missing (NaN) takes no part in them.

    Parameters
    ----------
    graph
        The graph, n nodes.
    columns
        Numbers of the nodes, shape (n, c); computed in float32, sums in float64.
    hops
        Steps of the longest walks.
    spread
        Steps up to which standard deviation, largest and smallest value are computed beside the mean.
    against
        Whether the steps go against the direction of the edges: to the nodes that receive from a node.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(3, 3)))
    >>> for hop in walk_statistics(path, np.array([[1.0], [2.0], [5.0]]), hops=2, spread=2):
    ...     print(hop.steps, hop.mean.ravel(), hop.deviation.ravel(), hop.largest.ravel())
    1 [2. 3. 2.] [0. 2. 0.] [2. 5. 2.]
    2 [3. 2. 3.] [2. 0. 2.] [5. 2. 5.]
    """
    from pprop.kernels.numba_cpu.walks import walk_means, walk_spread

    indptr, indices, weights = _steps(graph, against=against)
    lonely = np.flatnonzero(np.diff(indptr) == 0)
    missing = np.isnan(columns)
    mean = np.where(missing, 0, columns).astype(np.float32)
    gaps = bool(missing.any())
    mass = (~missing).astype(np.float32) if gaps else _ALL_KNOWN
    variance, largest, smallest = np.zeros_like(mean) if spread else mean, mean, mean
    for steps in range(1, hops + 1):
        mean_after, mass_after = np.empty_like(mean), np.empty_like(mass)
        walk_means(indptr, indices, weights, mass, mean, mass_after, mean_after)
        mean_after[lonely] = mean[lonely]
        if gaps:
            mass_after[lonely] = mass[lonely]
        unknown = mass_after == 0 if gaps else None
        if steps <= spread:
            after = np.empty((3, *mean.shape), dtype=np.float32)
            walk_spread(indptr, indices, weights, mass, mean, variance, largest, smallest, mean_after, after)
            for kind, before in enumerate((variance, largest, smallest)):
                after[kind, lonely] = before[lonely]
            variance, largest, smallest = after[0], after[1], after[2]
            shown = _shown(np.sqrt(variance), unknown), _shown(largest, unknown), _shown(smallest, unknown)
        else:
            shown = None, None, None
        mean, mass = mean_after, mass_after
        yield Hop(steps, _shown(mean, unknown), *shown)


def _steps(graph: Graph, *, against: bool) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Return CSR structure and weights of the steps; without weights all are one, and a row may be empty.

    The entries of a graph without weights are read where they lie, in memory or in a file.
    """
    if graph.weights is None and not (against and graph.directed):
        return graph.indptr, graph.indices, _NO_WEIGHTS
    if against and graph.directed:
        graph = Graph.from_scipy(graph.adjacency.T, directed=True)
    T = transition_matrix(graph, "row", self_loops=False)
    return T.indptr, T.indices, _NO_WEIGHTS if T.weights is None else T.weights


def _shown(values: Columns, unknown: NDArray[np.bool_] | None) -> Columns:
    return values if unknown is None else np.where(unknown, np.float32(np.nan), values)
