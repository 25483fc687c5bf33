"""What local push returns: rows in CSR form, and their errors; and how several threads make them."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from pprop.propagation.push import LocalPush

__all__ = ["SparseRows", "gather_rows"]

CHUNK = 512
"""Rows that are made before Ctrl-C is looked for the first time; afterwards as many as take about `PAUSE` seconds."""
PAUSE = 0.2
NORMS = {"row": "l1", "sym": "l2", "col": "max"}
UNDIRECTED_NORMS = {"row": "l1", "sym": "l1 before scaling", "col": "l1 before scaling"}


@final
@dataclass(frozen=True)
class SparseRows:
    """Rows of the personalized PageRank matrix, none of whose entries is above the exact one, with bounds of the error.

    Attributes
    ----------
    nodes
        Positions of the nodes to which the rows belong, shape (m,).
    matrix
        The rows, shape (m, n), float64; columns in the order in which they were reached (``sort_indices`` sorts them).
    error
        Bound of the error of each row, shape (m,), in the norm that `norm` names; what `topk` has left out counts.
    norm
        ``"l1"`` for "row": the sum of all errors of a row. For "sym" and "col" of an undirected graph
        ``"l1 before scaling"``: that sum after entry j of row i is multiplied by sqrt(d_j / d_i) or by d_j / d_i. On a
        directed graph, where they are no rescalings of "row", ``"l2"`` for "sym" and ``"max"`` for "col", as on a graph
        with a degree outside 2^-500 to 2^500.
    eps
        The eps to which each row was pushed, shape (m,).
    certified
        With `topk`, whether the entries kept are certain to be the largest of the exact row, shape (m,); else None.
    certain_entries
        With `topk`, how many of the entries kept are certain to be among the k largest, shape (m,); else None.
    pushes, entries_touched
        What each row cost, shape (m,): pushes of nodes, entries of the adjacency passed over.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> rows = pprop.ppr(path, [2], alpha=0.5, eps=0.01)
    >>> rows.matrix.shape, rows.norm, bool(rows.error[0] < 0.1)
    ((1, 5), 'l1 before scaling', True)
    """

    nodes: NDArray[np.int64]
    matrix: sparse.csr_array
    error: NDArray[np.float64]
    norm: str
    eps: NDArray[np.float64]
    certified: NDArray[np.bool_] | None
    certain_entries: NDArray[np.int64] | None
    pushes: NDArray[np.int64]
    entries_touched: NDArray[np.int64]
    _push: LocalPush = field(repr=False)
    _bounds: NDArray[np.float64] = field(repr=False)  # by row: `error` without what was left out

    def entry_errors(self) -> sparse.csr_array:
        """Return for every stored entry how far it may be below the exact one, in the form of `matrix`.

        On an undirected graph that is eps d_j before scaling, or the error of the row where that is less; on a directed
        graph always the latter.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
        >>> rows = pprop.ppr(path, [2], alpha=0.5, eps=0.01, normalization="row")
        >>> bool((rows.entry_errors().toarray() <= 0.01 * 3).all())
        True
        """
        matrix, push = self.matrix, self._push
        row = np.repeat(np.arange(len(self.nodes)), np.diff(matrix.indptr))
        if not push.rescaled:
            data = self._bounds[row]
        else:
            data = np.minimum(self.eps[row] * push.degrees[matrix.indices], self._bounds[row])
            data *= push.factors(matrix.indices, self.nodes[row])
        return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def gather_rows(
    push: LocalPush,
    structure: tuple[Any, ...],
    rule: tuple[Any, ...],
    nodes: NDArray[np.int64],
    eps: float,
    most: int,
    finest: float,
    rounding: float,
) -> SparseRows:
    """Push the rows of `nodes`, shared out to numba's threads, and put them together; see the kernel for the numbers."""
    from pprop.kernels.numba_cpu.push_rows import Part, put_together, share_out

    shared: list[tuple[slice, list[Part]]] = []
    where, reports = np.empty((len(nodes), 6), np.int64), np.empty((len(nodes), 4))
    first, chunk = 0, CHUNK
    while first < len(nodes):
        part, begun = slice(first, first + chunk), perf_counter()
        shared.append((part, share_out(structure, rule, nodes[part], eps, most, finest, where[part], reports[part])))
        first += chunk
        chunk = max(CHUNK, int(chunk * PAUSE / max(perf_counter() - begun, PAUSE / 64)))  # threads start and end apart
    indptr = np.concatenate([[0], np.cumsum(where[:, 2])])
    indices, data = put_together(shared, where, indptr)
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    certain = where[:, 5].copy() if most else None
    return SparseRows(
        nodes=nodes,
        matrix=sparse.csr_array((data, indices, indptr), shape=(len(nodes), push.graph.n_nodes)),
        error=reports[:, 0] + rounding,
        norm=(UNDIRECTED_NORMS if push.rescaled else NORMS)[push.normalization],
        eps=reports[:, 2].copy(),
        certified=reports[:, 3] > 0 if most else None,
        certain_entries=certain,
        pushes=where[:, 3].copy(),
        entries_touched=where[:, 4].copy(),
        _push=push,
        _bounds=reports[:, 1] + rounding,
    )
