"""The rows of a stored graph in blocks, and what one pass over them finds: the degree scales of its transition matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import FormatError, InputError
from pprop._process import check_interrupt
from pprop.graph.transition import LEAST_DEGREE
from pprop.propagation.stored.file_rows import Buffer, StoredRows, ahead


class StoredGraph(Protocol):
    """What `propagate_folder` needs of a graph: a `GraphFolder`, a `Graph`, or arrays of one's own under these names.

    Entry (i, j) is what node i receives from node j; the arrays may be mapped from files.
    """

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Where each row begins, shape (n + 1,), int64."""
        ...

    @property
    def indices(self) -> NDArray[np.int32]:
        """Columns of the entries, shape (entries,), int32."""
        ...

    @property
    def weights(self) -> NDArray[Any] | None:
        """Weights of the entries, shape (entries,); None when all are one."""
        ...

    @property
    def directed(self) -> bool:
        """False when the matrix is symmetric."""
        ...


@final
class StoredEntries(NamedTuple):
    """The entries of the rows `first` to `last`."""

    first: int
    last: int
    indptr: NDArray[np.int64]  # from 0
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]  # empty when all are one


@final
class GraphRows:
    """The rows of a stored graph, read in blocks.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop import Graph
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> rows = GraphRows(path)
    >>> rows.blocks(most_rows=10, most_entries=4)
    [0, 2, 4, 5]
    >>> rows.read(2, 4, rows.buffers(2, 4)).indices
    array([1, 3, 2, 4], dtype=int32)
    """

    def __init__(self, graph: StoredGraph) -> None:
        self._stored: list[StoredRows] = []
        try:
            self._open(graph)
        except BaseException:
            self.close()
            raise

    def _open(self, graph: StoredGraph) -> None:
        self.indptr = self._store(graph.indptr, np.int64, "the row pointers")
        self.indices = self._store(graph.indices, np.int32, "the entries")
        weights = graph.weights
        self.weights = None if weights is None else self._store(weights, None, "the weights")
        self.directed = bool(graph.directed)
        self.n_nodes, self.n_entries = len(graph.indptr) - 1, len(graph.indices)
        ends = int(graph.indptr[0]), int(graph.indptr[-1])
        if ends != (0, self.n_entries) or (weights is not None and len(weights) != self.n_entries):
            raise FormatError(
                f"The row pointers go from {ends[0]:,} to {ends[1]:,}, and there are {self.n_entries:,} entries"
                + ("" if weights is None else f" and {len(weights):,} weights")
                + ". Build the folder again."
            )

    def _store(self, array: NDArray[Any], dtype: Any, what: str) -> StoredRows:
        if dtype is not None and array.dtype != dtype:
            raise InputError(f"The numbers of {what} must be {np.dtype(dtype)}. Got {array.dtype} instead.")
        self._stored.append(StoredRows(array, what))
        return self._stored[-1]

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry in files."""
        stored = (self.indices, self.weights)
        return sum(one.row_bytes for one in stored if one is not None and one.in_file)

    @property
    def bytes_read(self) -> int:
        """Bytes read from files so far."""
        return sum(stored.bytes_read for stored in self._stored)

    @property
    def identity(self) -> list[object]:
        """What tells the files from others."""
        return [stored.identity for stored in self._stored]

    def blocks(self, most_rows: int, most_entries: int) -> list[int]:
        """Return the first row of every block, and n: as many rows as are allowed, and at least one."""
        indptr: NDArray[np.int64] = self.indptr.array
        starts = [0]
        while (first := starts[-1]) < self.n_nodes:
            window = indptr[first : min(first + most_rows, self.n_nodes) + 1]
            rows = int(window.searchsorted(int(window[0]) + most_entries, side="right")) - 1
            starts.append(first + max(rows, 1))
        return starts

    def buffers(self, rows: int, entries: int) -> list[Buffer]:
        """Return memory for one block of so many rows and entries."""
        weights = 0 if self.weights is None else self.weights.row_bytes * entries
        sizes = 8 * (rows + 1), 4 * entries, weights
        pairs = zip((self.indptr, self.indices, self.weights), sizes, strict=True)
        return [Buffer(size if stored is not None and stored.in_file else 0) for stored, size in pairs]

    def read(self, first: int, last: int, buffers: Sequence[Buffer]) -> StoredEntries:
        """Read the entries of some rows into buffers, where the arrays returned lie until the next read into them."""
        pointers = self.indptr.read(first, last + 1, buffers[0])
        begin, end = int(pointers[0]), int(pointers[-1])
        if not (0 <= begin <= end <= self.n_entries and (pointers[1:] >= pointers[:-1]).all()):
            raise FormatError(f"The row pointers of nodes {first:,} to {last:,} do not ascend. Build the folder again.")
        indices = self.indices.read(begin, end, buffers[1])
        if self.weights is None:
            weights = np.empty(0, np.float32)
        else:
            weights = self.weights.read(begin, end, buffers[2]).astype(np.float32, copy=False)
        return StoredEntries(first, last, pointers - begin, indices, weights)

    def close(self) -> None:
        """Close the files."""
        for stored in self._stored:
            stored.close()


@final
class DegreeScales(NamedTuple):
    """The transition matrix beside the stored entries, T = S_r (A + loops) S_c; as `transition_matrix` has it."""

    rows: NDArray[np.float32]  # S_r; shape (n,), or (1,) where all are one
    columns: NDArray[np.float32]  # S_c; the same array where they are equal
    loops: NDArray[np.uint8]  # 1 where a self-loop of weight 1 is added

    def of(self, first: int, last: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return S_r and S_c of some nodes."""
        rows, columns = (
            np.ones(last - first, np.float32) if len(scale) == 1 < len(self.loops) else scale[first:last]
            for scale in (self.rows, self.columns)
        )
        return rows, columns


def degree_scales(
    rows: GraphRows, starts: Sequence[int], normalization: str, self_loops: bool, told: Callable[[float], object]
) -> DegreeScales:
    """Return the scales of a transition matrix by one pass over the entries, which also checks them.

    Parameters
    ----------
    rows
        The graph, n nodes.
    starts
        First rows of blocks, and n.
    normalization, self_loops
        As in `transition_matrix`.
    told
        Called with the share of the pass that is done.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from pprop import Graph
    >>> pair = GraphRows(Graph.from_scipy(sp.csr_array([[0, 3], [3, 0]])))
    >>> degree_scales(pair, [0, 2], "row", True, print).rows
    1.0
    array([0.25, 0.25], dtype=float32)
    """
    from pprop.kernels.numba_cpu import degrees
    from pprop.kernels.numba_cpu._jit import ROW_BLOCK

    n = rows.n_nodes
    row_sums, loops = np.zeros(n), np.zeros(n, np.uint8)
    column_sums = np.zeros(n) if rows.directed and normalization != "row" else None
    spans = list(pairwise(starts))
    buffers = [rows.buffers(*largest_block(rows, starts)) for _ in range(2)]
    with ThreadPoolExecutor(1, "pprop-read") as pool:
        for block in ahead(lambda span, slot: rows.read(*span, buffers[slot]), spans, pool):
            first, last = block.first, block.last
            wrong = np.zeros(-(-(last - first) // ROW_BLOCK), np.uint8)
            part = row_sums[first:last], loops[first:last]
            degrees.scan_rows(first, block.indptr, block.indices, block.weights, n, *part, wrong)
            if wrong.any():
                raise FormatError(
                    f"Entries of nodes {first:,} to {last - 1:,} have columns that are not from 0 to {n - 1:,}, or weights "
                    "that are negative or not finite. Build the folder again."
                )
            if column_sums is not None:
                degrees.add_columns(block.indices, block.weights, column_sums)
            if not self_loops:  # a row without entries gets a loop in any case
                loops[first:last] = block.indptr[1:] > block.indptr[:-1]
            check_interrupt()
            told(last / n)
    np.subtract(1, loops, out=loops)
    for sums in (row_sums,) if column_sums is None else (row_sums, column_sums):
        sums += loops
    return _scales(row_sums, row_sums if column_sums is None else column_sums, loops, normalization)


def largest_block(rows: GraphRows, starts: Sequence[int]) -> tuple[int, int]:
    """Return the most rows and the most entries of any block."""
    at = np.asarray(starts)
    return int(np.diff(at).max()), int(np.diff(rows.indptr.array[at]).max())


def _scales(
    row_sums: NDArray[np.float64], column_sums: NDArray[np.float64], loops: NDArray[np.uint8], normalization: str
) -> DegreeScales:
    used = {"sym": (row_sums, column_sums), "row": (row_sums,), "col": (column_sums,)}[normalization]
    for sums in used:
        least, most = sums.min(where=sums > 0, initial=1.0), sums.max(initial=1.0)  # an empty column meets no entry
        if least < LEAST_DEGREE or most > 1 / LEAST_DEGREE:
            raise InputError(
                f"Sums of weights must be from 2^-64 to 2^64 for steps in float32. Got {least:.3g} to {most:.3g} "
                "instead. Divide the weights by a constant."
            )
    ones = np.ones(1, np.float32)
    power = 0.5 if normalization == "sym" else 1.0
    left = ones if normalization == "col" else _inverse(row_sums, power)
    if normalization == "row":
        return DegreeScales(left, ones, loops)
    same = normalization == "sym" and column_sums is row_sums
    return DegreeScales(left, left if same else _inverse(column_sums, power), loops)


def _inverse(sums: NDArray[np.float64], power: float) -> NDArray[np.float32]:
    """1 / sums^power, 0 where a column is empty; in blocks, so that nothing of the size of `sums` is made twice."""
    out = np.empty(len(sums), np.float32)
    for first in range(0, len(sums), 2**20):
        some = sums[first : first + 2**20]
        root = np.sqrt(some) if power == 0.5 else some
        out[first : first + 2**20] = np.divide(1.0, root, out=np.zeros(len(some)), where=some > 0)
    return out
