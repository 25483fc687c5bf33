"""Sparse rows of the personalized PageRank matrix by local push, from the surroundings of a node.

On an undirected graph every normalisation is a rescaling of the row-stochastic one, Pi_sym[i, j] = sqrt(d_i / d_j)
Pi_row[i, j] and Pi_col[i, j] = (d_i / d_j) Pi_row[i, j]. In general T = diag(row_scale) A_tilde diag(column_scale) is
similar to B = diag(row_scale * column_scale) A_tilde, so that

    Pi_T[i, j] = Pi_B[i, j] column_scale_j / column_scale_i,

and the pushes are made in B, which needs no number per edge that the graph does not have. The graph's own arrays are
read where they are; what is added has the length of the nodes, not of the edges.

References
----------
Andersen, Chung and Lang, "Local graph partitioning using PageRank vectors", FOCS 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pprop._optional import require
from pprop._validate import check_float, check_int, counted, describe, reject
from pprop.graph import Graph, transition_matrix
from pprop.graph.rows import check_nodes
from pprop.propagation.operator import POWERS, Nodes, Values, check_operator
from pprop.settings import ALPHA, NORMALIZATION, SELF_LOOPS

FIRST_EPS = 1e-3  # where the search for the largest entries begins
FINEST_EPS = 1e-7  # where it ends by default
ROUNDING = 64 * 2.0**-53  # times 1 / alpha: the rounding of sums in float64, and the smallest eps
CHUNK = 512  # rows between the first two checks for Ctrl-C; afterwards as many as take about `PAUSE` seconds
PAUSE = 0.2
NORMS = {"row": "l1", "sym": "l2", "col": "max"}


@final
@dataclass(frozen=True)
class PushedRow:
    """One row of Pi in two parts: Pi[i] = p + sum_j r_j Pi[j], every number of p and r at least 0.

    Attributes
    ----------
    nodes
        The nodes that the row reaches, shape (m,), the row's own node first.
    values, residuals
        p and r at these nodes, shape (m,), float64, in the requested normalisation.
    entries_touched
        Entries of the adjacency that were passed over.

    Examples
    --------
    >>> import pprop, scipy.sparse as sp
    >>> path = pprop.Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> row = LocalPush(path, alpha=0.5, normalization="row").row(0, eps=0.01)
    >>> row.nodes, bool(abs(row.values.sum() + row.residuals.sum() - 1) < 1e-14)
    (array([0, 1, 2, 3]), True)
    """

    nodes: Nodes
    values: Values
    residuals: Values
    entries_touched: int


@final
@dataclass(frozen=True, repr=False)
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
        With `topk`, whether the entries kept are proven to be the largest of the exact row, shape (m,); else None.
    certain_entries
        With `topk`, how many of the entries kept are proven to be among the k largest, shape (m,); else None.
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

    nodes: Nodes
    matrix: sparse.csr_array
    error: Values
    norm: str
    eps: Values
    certified: NDArray[np.bool_] | None
    certain_entries: Nodes | None
    pushes: Nodes
    entries_touched: Nodes
    _push: LocalPush = field(repr=False)
    _bounds: Values = field(repr=False)  # by row: `error` without what was left out

    def __repr__(self) -> str:
        m, n = self.matrix.shape
        parts = [f"{counted(m, 'row')} of {counted(n, 'node')}", counted(self.matrix.nnz, "entry", "entries")]
        if m:
            parts.append(f"error at most {self.error.max():.2g} ({self.norm})")
        if self.certified is not None:
            parts.append(f"{int(self.certified.sum()):,} certified")
        return f"SparseRows({', '.join(parts)})"

    def to_frame(self) -> Any:
        """Return a pandas frame with one row per entry: ``node`` draws on ``other`` by ``value``, the largest first.

        Nodes are called by their ids; where the graph has none, by their positions.

        Examples
        --------
        >>> import pprop, scipy.sparse as sp
        >>> path = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5))
        >>> graph = pprop.Graph.from_scipy(path, ids=list("abcde"))
        >>> pprop.ppr(graph, ["a"], alpha=0.5, topk=2).to_frame().round(3)
          node other  value
        0    a     a  0.716
        1    a     b  0.183
        """
        pandas: Any = require("pandas", extra="convert", purpose="SparseRows.to_frame")
        matrix, ids = self.matrix, self._push.graph.ids
        row = np.repeat(np.arange(len(self.nodes)), np.diff(matrix.indptr))
        order = np.lexsort((matrix.indices, -matrix.data, row))
        node, other = self.nodes[row[order]], matrix.indices[order]
        names = (node, other) if ids is None else (ids[node], ids[other])
        return pandas.DataFrame({"node": names[0], "other": names[1], "value": matrix.data[order]})

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


@final
class LocalPush:
    """A graph made ready for local push: what `ppr` prepares once for all its nodes.

    Parameters
    ----------
    graph, alpha, normalization, self_loops
        As in `ppr`.
    function
        The name under which wrong arguments are refused.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> push = LocalPush(path, alpha=0.2)
    >>> push.rows([0], eps=1e-6).matrix.toarray().round(3)
    array([[0.469, 0.249, 0.109, 0.053, 0.029]])
    """

    def __init__(
        self,
        graph: Graph,
        alpha: float = ALPHA.default,
        normalization: str = NORMALIZATION.default,
        self_loops: bool = SELF_LOOPS.default,
        *,
        function: str = "LocalPush",
    ) -> None:
        check_operator(graph, normalization, self_loops, function)
        self.graph, self.normalization, self.self_loops = graph, normalization, bool(self_loops)
        self.alpha = check_float(alpha, "alpha", function, "(0, 1]")
        loops = self._added_loops()
        unit = _unit(graph.weights)
        out_sums = _row_sums(graph, unit) + unit * loops
        in_sums = _column_sums(graph, unit) + unit * loops if graph.directed else out_sums
        if graph.weights is not None and not (_in_range(out_sums, unit) and _in_range(in_sums, unit, graph.indices)):
            self._read_entries()
            return
        power = POWERS[normalization]
        if graph.directed:
            # a node that sends to no other has an empty column, whose scale meets no entry
            in_sums[in_sums == 0] = 1.0
        factor = out_sums ** (power - 1) * in_sums**-power if graph.directed else 1 / out_sums
        self._scale = np.empty(0) if power == 0 else in_sums**-power
        self.rescaled = not graph.directed  # whether T is a rescaling of the row-stochastic matrix, used for the pushes
        self.degrees: Values = out_sums / unit  # d with self-loops, shape (n,), in the unit of the weights
        # a self-loop that was added: x + (1 - alpha) B[u, u] x + ... = x / (1 - (1 - alpha) B[u, u])
        own = factor * unit * loops  # B[u, u], 1 where a node is alone, whose row is then exactly itself
        series = 1 / ((1 - own) + self.alpha * own)
        kept, sent = self.alpha * series, (1 - self.alpha) * factor * unit * series
        weights = np.empty(0) if graph.weights is None else graph.weights
        # half as many bytes to fetch for every node reached; rounded down, a threshold is never too high
        thresholds = np.minimum(self.degrees, np.finfo(np.float32).max).astype(np.float32)
        if graph.weights is not None or self.degrees.max() >= 2**24:
            thresholds = np.nextafter(thresholds, np.float32(0))
        self._structure = (graph.indptr, graph.indices, weights, thresholds, kept, sent)
        self._power = power

    def _read_entries(self) -> None:
        """Push in T itself, by its entries, where degrees are too large or too small to divide by."""
        T = transition_matrix(self.graph, self.normalization, self.self_loops).to_scipy()
        own = T.diagonal()
        series = 1 / ((1 - own) + self.alpha * own)
        self.degrees, self.rescaled = np.diff(T.indptr).astype(np.float64), False
        self._scale, self._power = np.empty(0), 0.0
        T.setdiag(0.0)
        T.eliminate_zeros()
        indptr, indices, thresholds = T.indptr.astype(np.int64), T.indices.astype(np.int32), self.degrees
        kept, sent = self.alpha * series, (1 - self.alpha) * series
        self._structure = (indptr, indices, T.data, thresholds.astype(np.float32), kept, sent)

    def row(self, node: int | str, eps: float, *, function: str = "LocalPush.row") -> PushedRow:
        """Return one row as p and r, without the improvement that `rows` makes at the end.

        Parameters
        ----------
        node
            Position of the node, or its id where that is text.
        eps
            All r_j stay below eps d_j, before the scaling of "sym" and "col".
        function
            The name under which wrong arguments are refused.
        """
        if isinstance(node, str):
            node = int(check_nodes([node], "node", function, self.graph)[0])
        node = check_int(node, "node", function, low=0, high=self.graph.n_nodes - 1)
        from pprop.kernels.numba_cpu.push_rows import push_one

        nodes, values, residuals, touched = push_one(self._structure, node, self._check_eps(eps, function))
        factors = self.factors(nodes, node)
        return PushedRow(nodes.astype(np.int64), values * factors, residuals * factors, int(touched))

    def factors(self, columns: NDArray[Any], rows: Nodes | int) -> Values | float:
        """Return Pi[i, j] / Pi_B[i, j], by which entries are scaled at last; sqrt(d_i / d_j) for the paper's matrix."""
        return self._scale[columns] / self._scale[rows] if len(self._scale) else 1.0

    def rows(
        self,
        nodes: ArrayLike,
        eps: float | None = None,
        topk: int | None = None,
        *,
        to_eps: bool = False,
        function: str = "LocalPush.rows",
    ) -> SparseRows:
        """Return rows as `ppr` does; with `to_eps` all to eps, even if the largest are known before. `function`: for errors."""
        at = check_nodes(nodes, "nodes", function, self.graph)
        if eps is None and topk is None:
            reject("eps", function, "a float, unless topk is given", "None", remedy="Try eps=1e-4 or topk=32.")
        most = 0 if topk is None else check_int(topk, "topk", function, low=1)
        finest = max(FINEST_EPS, ROUNDING / self.alpha) if eps is None else self._check_eps(eps, function)
        first = finest if topk is None or to_eps else max(FIRST_EPS, finest)
        return self._gather(at, first, most, finest)

    def _gather(self, nodes: Nodes, eps: float, most: int, finest: float) -> SparseRows:
        """Push rows on numba's threads from `eps` down to `finest`, and put them together as one matrix."""
        from pprop.kernels.numba_cpu.push_rows import Part, put_together, share_out

        shared: list[tuple[slice, list[Part]]] = []
        where, reports = np.empty((len(nodes), 6), np.int64), np.empty((len(nodes), 4))
        first, chunk = 0, CHUNK
        while first < len(nodes):
            part, begun = slice(first, first + chunk), perf_counter()
            task = (self._structure, self._rule, nodes[part], eps, most, finest)
            shared.append((part, share_out(*task, where[part], reports[part])))
            first += chunk
            # as threads take long to start and end
            chunk = max(CHUNK, int(chunk * PAUSE / max(perf_counter() - begun, PAUSE / 64)))
        indptr = np.concatenate([[0], np.cumsum(where[:, 2])])
        indices, data = put_together(shared, where, indptr)
        if indptr[-1] <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        rounding, rescaled = ROUNDING / self.alpha, self.rescaled and self.normalization != "row"
        return SparseRows(
            nodes=nodes,
            matrix=sparse.csr_array((data, indices, indptr), shape=(len(nodes), self.graph.n_nodes)),
            error=reports[:, 0] + rounding,
            norm="l1 before scaling" if rescaled else NORMS[self.normalization],
            eps=reports[:, 2].copy(),
            certified=reports[:, 3] > 0 if most else None,
            certain_entries=where[:, 5].copy() if most else None,
            pushes=where[:, 3].copy(),
            entries_touched=where[:, 4].copy(),
            _push=self,
            _bounds=reports[:, 1] + rounding,
        )

    @cached_property
    def _rule(self) -> tuple[Any, ...]:
        """How entries are scaled and errors bounded, as the kernel expects it."""
        from pprop.kernels.numba_cpu import push_rows as kernel

        kinds = {"row": kernel.DIRECTED_ROW, "sym": kernel.DIRECTED_SYM, "col": kernel.DIRECTED_COL}
        kind = kernel.UNDIRECTED if self.rescaled else kinds[self.normalization]
        return self._scale, kind, self._power, float(self.degrees.min()), float(self.degrees.max())

    def _check_eps(self, eps: object, function: str) -> float:
        number, least = check_float(eps, "eps", function, "(0, 1)"), ROUNDING / self.alpha
        if number < least:
            reject("eps", function, f"at least {least:.2g}, what float64 can tell apart at this alpha", describe(eps))
        return number

    def _added_loops(self) -> Values:
        """1 at every node to which `transition_matrix` would add a self-loop, else 0."""
        graph = self.graph
        if not self.self_loops:
            return (np.diff(graph.indptr) == 0).astype(np.float64)
        loops = np.ones(graph.n_nodes)
        block = 1 << 22  # entries: no temporary array of the size of the graph
        for begin in range(0, graph.n_entries, block):
            columns = graph.indices[begin : begin + block]
            first = int(np.searchsorted(graph.indptr, begin, side="right")) - 1
            past = int(np.searchsorted(graph.indptr, begin + len(columns), side="left"))
            ends = np.clip(graph.indptr[first : past + 1] - begin, 0, len(columns))
            owner = np.repeat(np.arange(first, past, dtype=np.int32), np.diff(ends))
            loops[columns[owner == columns]] = 0.0
        return loops


def ppr(
    graph: Graph,
    nodes: ArrayLike | None = None,
    alpha: float = ALPHA.default,
    eps: float | None = None,
    topk: int | None = None,
    normalization: str = NORMALIZATION.default,
    self_loops: bool = SELF_LOOPS.default,
    *,
    ids: ArrayLike | None = None,
) -> SparseRows:
    """Return sparse rows of the personalized PageRank matrix, with a proven bound of the error.

    Row i of Pi = alpha (I - (1 - alpha) T)^-1 is how much node i draws on every node: Z_i = sum_j Pi[i, j] H_j.
    Local push computes it from the surroundings of i; the cost depends on `eps` and not on the size of the graph.

    Parameters
    ----------
    graph
        The graph, n nodes.
    nodes
        Nodes whose rows are wanted, shape (m,): integers, always positions, or text, always ids.
    alpha
        Teleport probability in (0, 1].
    eps
        Push until every residual r_j is below eps d_j, where d_j is the degree of node j, self-loop included, in the
        unit of the weights. The residuals of a row add up to its error in the 1-norm, and on an undirected graph an
        entry is at most eps d_j below the exact one ("row"; eps sqrt(d_i d_j) for "sym", eps d_i for "col").
        At most 1 / (alpha eps) entries of an unweighted graph are passed over, and once those of the node itself.
        On a graph with a degree outside 2^-500 to 2^500, d_j is the number of entries in row j of T instead, and errors
        are bounded as on a directed graph.
    topk
        Keep only that many largest entries of each row, and push until they are proven to be the largest, but not
        beyond `eps`, 1e-7 without it. `SparseRows.certified` says where that was not enough: ties never are.
    normalization, self_loops
        As in `transition_matrix`.
    ids
        In place of `nodes`: ids, integers or text.

    Returns
    -------
    SparseRows
        ``matrix`` in scipy's CSR form, shape (m, n), and bounds of its error. No entry is above the exact one.

    See Also
    --------
    LocalPush : the same for many calls on one graph; also p and r of a row.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> path = Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)))
    >>> rows = ppr(path, [0, 4], alpha=0.2, eps=1e-4)
    >>> rows.matrix.toarray().round(3)
    array([[0.469, 0.248, 0.109, 0.052, 0.029],
           [0.029, 0.052, 0.109, 0.248, 0.469]])
    >>> bool(rows.error.max() < 1e-3)
    True
    >>> ppr(path, [0], alpha=0.2, topk=2).matrix.indices
    array([0, 1], dtype=int32)
    """
    push = LocalPush(graph, alpha, normalization, self_loops, function="ppr")
    return push.rows(check_nodes(nodes, "nodes", "ppr", graph, ids), eps, topk, function="ppr")


def _unit(weights: Values | None) -> float:
    """A power of four that brings the weights near 1, so that no sum of them overflows."""
    return 1.0 if weights is None else float(0.25 ** np.floor(0.5 * np.log2(weights.max(initial=1.0))))


def _in_range(sums: Values, unit: float, places: NDArray[np.int32] | None = None) -> bool:
    """Whether products and ratios of the sums of rows, or of the columns that are not empty, are float64 numbers."""
    with np.errstate(over="ignore"):
        degrees = sums / unit
    wrong = (degrees < 2.0**-500) | (degrees > 2.0**500)
    return not wrong.any() or (places is not None and not wrong[places].any())


def _row_sums(graph: Graph, unit: float) -> Values:
    counts = np.diff(graph.indptr)
    if graph.weights is None:
        return counts.astype(np.float64)
    sums, full = np.zeros(graph.n_nodes), counts > 0
    sums[full] = np.add.reduceat(graph.weights * unit, graph.indptr[:-1][full])
    return sums


def _column_sums(graph: Graph, unit: float) -> Values:
    weights = None if graph.weights is None else graph.weights * unit
    return np.bincount(graph.indices, weights, graph.n_nodes).astype(np.float64)
