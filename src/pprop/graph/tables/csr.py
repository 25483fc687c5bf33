"""Edges as pairs of positions to the matrix of a Graph in canonical CSR form, by one sort."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pprop.graph.attributes import Csr, unit_weights

Positions = NDArray[np.int32]
ROW = np.int64(32)  # an entry is one number, its row above its column, so that sorting the numbers sorts the entries


def csr_of_edges(
    source: Positions, target: Positions, n: int, weights: NDArray[np.float64] | None, *, directed: bool
) -> Csr:
    r"""Return the adjacency of n nodes in CSR form; entry (t, s) is what t receives from s.

    .. math:: A_{ts} = \sum_{e : s \to t} w_e, \qquad \text{undirected: } \max(A_{ts}, A_{st})

    Without weights an edge that is listed more than once counts once. Entries of weight zero are left out.

    Parameters
    ----------
    source, target
        Positions of the ends, shape (edges,).
    n
        Number of nodes.
    weights
        Non-negative, shape (edges,), or None.
    directed
        Whether the direction matters.

    Examples
    --------
    >>> ends = np.array([0, 0, 1], dtype=np.int32), np.array([1, 1, 0], dtype=np.int32)
    >>> csr_of_edges(*ends, 2, np.array([2.0, 3.0, 4.0]), directed=False)
    (array([0, 1, 2]), array([1, 0], dtype=int32), array([5., 5.]))
    """
    if weights is not None:
        entries, values = _merged(_entries(target, source), weights, np.add)
        if not directed:
            back = _entries(*_places(entries)[::-1])
            both = np.concatenate([entries, back])
            entries, values = _merged(both, np.concatenate([values, values]), np.maximum)
        kept = values != 0
        return _csr(entries[kept], n, unit_weights(values[kept]))
    edges = len(source)
    entries = np.empty(edges if directed else 2 * edges, dtype=np.int64)
    entries[:edges] = _entries(target, source)
    if not directed:
        entries[edges:] = _entries(source, target)
    entries.sort()
    new = np.empty(len(entries), dtype=bool)
    new[:1] = True
    np.not_equal(entries[1:], entries[:-1], out=new[1:])
    return _csr(entries if new.all() else entries[new], n, None)


def _entries(rows: Positions, columns: Positions) -> NDArray[np.int64]:
    entries = rows.astype(np.int64)
    entries <<= ROW
    entries |= columns
    return entries


def _places(entries: NDArray[np.int64]) -> tuple[Positions, Positions]:
    return (entries >> ROW).astype(np.int32), entries.astype(np.int32)  # the lower half


def _merged(entries: NDArray[np.int64], values: NDArray[np.float64], merge: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return distinct entries in order; the values of one entry are merged in the order they came."""
    if not len(entries):
        return entries, values
    order = np.argsort(entries, kind="stable")
    entries = entries[order]
    first = np.flatnonzero(np.diff(entries, prepend=entries[0] - 1))
    with np.errstate(over="ignore"):  # the caller looks for infinity
        return entries[first], merge.reduceat(values[order], first)


def _csr(entries: NDArray[np.int64], n: int, weights: NDArray[np.float64] | None) -> Csr:
    indptr = np.searchsorted(entries, np.arange(n + 1, dtype=np.int64) << ROW)
    return indptr.astype(np.int64, copy=False), entries.astype(np.int32), weights
