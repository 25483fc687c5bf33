"""Rows of a frame or series that belong to nodes: found by its index, by one rule wherever pandas comes in.

An index that holds the names of nodes (their ids; in a graph without ids their positions) names the node of each row, in
any order. An index 0, 1, 2, ... numbers the rows, which are in the order of the nodes. Any other index is refused, and
so is one that could be both, where the two readings differ.
What has no index, such as an array, a list or a frame of polars, is taken row by row. pandas need not be installed: a
frame is what has ``index`` and ``iloc``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Self, cast, final

import numpy as np
from numpy.typing import NDArray

from pprop._errors import InputError
from pprop._validate import check_positions, counted, describe, listed, reject
from pprop.graph.attributes import known_as, look_up

Rows = NDArray[np.int64]
SHOWN = 3  # ids that an error names


@final
@dataclass(frozen=True)
class NodeNames:
    """What the nodes of a graph are called: `ids`, shape (n,), and the position of each; or None, and their positions."""

    ids: NDArray[Any] | None
    n: int
    index: Callable[[], Mapping[object, int]]  # called only where there is an index: it takes long on large graphs

    @classmethod
    def of_ids(cls, ids: Any, n: int) -> Self:
        """Return the names of n nodes with these ids, or None.

        >>> NodeNames.of_ids(["a", "b"], 2).find(["b", "?"])
        array([ 1, -1])
        """
        array = None if ids is None else np.asarray(ids)
        return cls(array, n, lambda: {} if array is None else {key: at for at, key in enumerate(array.tolist())})

    @classmethod
    def of(cls, graph: Any) -> Self:
        """Return the names of the nodes of a Graph."""
        return cls(graph.ids, graph.n_nodes, lambda: graph._id_index)

    @property
    def integers(self) -> bool:
        """Whether ids are integers, as the numbers of rows are."""
        return self.ids is not None and self.ids.dtype.kind in "iu"

    def find(self, keys: list[Any]) -> Rows:
        """Return the positions of nodes by name, shape (m,); -1 where there is no such node."""
        if self.ids is None:
            sound = [isinstance(key, int) and not isinstance(key, bool) and 0 <= key < self.n for key in keys]
            return np.array([key if ok else -1 for key, ok in zip(keys, sound, strict=True)], dtype=np.int64)
        places = self.index()
        return np.array([-1 if isinstance(key, bool) else places.get(key, -1) for key in keys], dtype=np.int64)

    def named(self, nodes: Rows) -> list[Any]:
        """Return the names of some nodes."""
        return nodes.tolist() if self.ids is None else self.ids[nodes].tolist()


def index_of(data: object) -> Any:
    """Return the index of a frame or series; None of anything else.

    >>> import pandas as pd
    >>> index_of(pd.Series([1.5], index=["a"])).tolist(), index_of([1.5])
    (['a'], None)
    """
    return getattr(data, "index", None) if hasattr(data, "iloc") else None


def numbers_rows(index: Any) -> bool:
    """Whether an index is 0, 1, 2, ..., and so only numbers the rows."""
    values = np.asarray(index)
    return values.ndim == 1 and values.dtype.kind in "iu" and np.array_equal(values, np.arange(len(values)))


def nodes_of_rows(
    data: object, names: NodeNames, parameter: str, function: str, error: Any = InputError
) -> Rows | None:
    """Return the position of the node that each row is named for, shape (m,), each once; None: rows have no names.

    >>> import pandas as pd
    >>> nodes_of_rows(pd.Series([1.5, 2.5], index=["c", "a"]), NodeNames.of_ids(["a", "b", "c"], 3), "y", "fit")
    array([2, 0])
    """
    index = index_of(data)
    if index is None:
        return None
    keys: list[Any] = index.tolist()
    if numbers_rows(index):
        if names.integers and len(keys) == names.n:
            at = names.find(keys)
            if at.min(initial=0) >= 0 and not np.array_equal(at, np.arange(len(at))):
                _refuse_both(len(keys), parameter, function, error)
        return None
    return _find_all(keys, names, parameter, function, error)


def rows_of_nodes(
    data: object, names: NodeNames, parameter: str, function: str, error: Any = InputError
) -> Rows | None:
    """Return the row of every node in a table with one row per node, shape (n,); None: rows are in the order of the nodes.

    >>> import pandas as pd
    >>> rows_of_nodes(pd.Series([1.5, 2.5], index=["b", "a"]), NodeNames.of_ids(["a", "b"], 2), "H", "propagate")
    array([1, 0])
    """
    at = nodes_of_rows(data, names, parameter, function, error)
    if at is None:
        return None
    if len(at) < names.n:
        lacking = names.named(np.setdiff1d(np.arange(names.n), at))
        got = f"no row for {len(lacking):,} of {counted(names.n, 'node')} ({listed(lacking, SHOWN)})"
        reject(parameter, function, "a table with one row for each node", got, error=error)
    order = np.argsort(at)
    return None if np.array_equal(order, np.arange(len(order))) else order


def in_node_order(data: Any, names: NodeNames, parameter: str, function: str, error: Any = InputError) -> Any:
    """Return a table of all nodes with its rows in their order: itself, where they are.

    >>> import pandas as pd
    >>> in_node_order(pd.Series([1.5, 2.5], index=["b", "a"]), NodeNames.of_ids(["a", "b"], 2), "H", "live").tolist()
    [2.5, 1.5]
    """
    order = rows_of_nodes(data, names, parameter, function, error)
    return data if order is None else data.iloc[order]


def rows_beside(
    data: object,
    nodes: Rows,
    names: NodeNames,
    parameter: str,
    function: str,
    beside: Sequence[tuple[Any, Rows | None]] = (),
) -> Rows | None:
    """Return the row that belongs to each of some nodes, shape (m,); None: rows are in the order of these nodes.

    Besides the names of the nodes, the index may be that of what was given with them, in any order. Integers that cannot
    be names, where what gave the nodes has no index, number the rows of a table that both were taken from, as where
    scikit-learn's cross-validation takes rows of a series and of an array.

    Parameters
    ----------
    data
        One row per node, or more of them, found by name.
    nodes
        Positions, shape (m,), as given: in their order, and some perhaps twice.
    names, parameter, function
        Of the graph, and for an error.
    beside
        Indices of what else was given for these nodes, each with the row in it that belongs to each node, or None.

    Examples
    --------
    >>> import pandas as pd
    >>> names = NodeNames.of_ids(["a", "b", "c"], 3)
    >>> rows_beside(pd.Series([1, 2], index=["b", "c"]), np.array([2, 1]), names, "y", "fit")
    array([1, 0])
    """
    index = index_of(data)
    if index is None:
        return None
    keys: list[Any] = index.tolist()
    others = [(other.tolist(), rows) for other, rows in beside if other is not None]
    for other, rows in others:
        if keys == other:
            return rows
    wanted = names.named(nodes)
    if keys in (wanted, nodes.tolist()):
        return None
    small = names.ids is None or (names.integers and all(isinstance(key, int) and 0 <= key < names.n for key in keys))
    alike = len(keys) == len(wanted) and set(keys) == set(wanted)
    if numbers_rows(index):
        if names.integers and alike:
            _refuse_both(len(keys), parameter, function, InputError)
        return None
    found = [
        _compose(np.array([place[key] for key in other]), rows)
        for other, rows in others
        if len(place := {key: row for row, key in enumerate(keys)}) == len(keys) == len(other)
        and set(other) == set(place)
    ]
    at = names.find(keys)
    if at.min(initial=0) >= 0 and set(nodes.tolist()) <= set(at.tolist()):
        _find_all(keys, names, parameter, function, InputError)  # refuses a name twice
        if small and alike and not others:
            expected = "in the order of the nodes, since the integers of its index may be nodes or rows"
            remedy = f"Pass {parameter}.loc[nodes] to go by nodes, or {parameter}.to_numpy() to go by rows."
            reject(parameter, function, expected, "an index of the same nodes in another order", remedy=remedy)
        row_of = np.full(names.n, -1, dtype=np.int64)
        row_of[at] = np.arange(len(at))
        found.append(row_of[nodes])
    if found and all(np.array_equal(one, found[0]) for one in found):
        return found[0]
    if found:
        got = "an index that orders them in two ways: by nodes, and as the nodes are indexed"
        reject(parameter, function, "rows of the nodes", got, remedy="Pass .to_numpy() to go by position.")
    integers = all(isinstance(key, int) and not isinstance(key, bool) for key in keys)
    if integers and not others and (not names.integers or at.max(initial=-1) < 0):
        return None
    if others and at.min(initial=0) < 0:
        strange = [key for key in keys if key not in set(others[0][0])] or keys
        expected = f"indexed as what was given with it ({listed(others[0][0], SHOWN)}), or by the ids of its nodes"
        remedy = "Give both the same index, or pass .to_numpy() to go by position."
        reject(parameter, function, expected, f"another index ({listed(strange, SHOWN)})", remedy=remedy)
    _find_all(keys, names, parameter, function, InputError)
    lacking = names.named(np.setdiff1d(nodes, at))
    got = f"an index without {len(lacking):,} of these {counted(len(nodes), 'node')} ({listed(lacking, SHOWN)})"
    remedy = "Pass it with .to_numpy() if its rows are in the order of the nodes."
    if parameter == "y":
        how = "such as cross_val_score(model, graph.positions(y.index), y)"
        remedy = f"Pass graph.positions(y.index) as the nodes, {how}, or y.to_numpy() if its rows are in the order of the nodes."
        if (
            len(lacking) > SHOWN and np.setdiff1d(at, nodes).size
        ):  # the same sentence for all folds: scikit-learn joins them
            got = "an index of other nodes"
    reject(parameter, function, "indexed by the ids of the nodes given with it", got, remedy=remedy)


def check_beside_positions(
    nodes: object, at: Rows, names: NodeNames, parameter: str, function: str, error: Any = InputError
) -> None:
    """Refuse positions in a series or frame whose index names other nodes than the positions do.

    An index of integers is one of names only where the ids are integers, too, and one of them is too large for a position:
    else it may number the rows of the table that the positions were taken from.

    Parameters
    ----------
    nodes, at
        As given, and the positions, shape (m,).
    names, parameter, function, error
        Of the graph, and for an error.

    Examples
    --------
    >>> import pandas as pd
    >>> names = NodeNames.of_ids(["c", "a", "b"], 3)
    >>> check_beside_positions(pd.Series([0, 2], index=["a", "b"]), np.array([0, 2]), names, "X", "fit")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'X' parameter of fit must be positions of the nodes that its index names. Got ...
    """
    index = index_of(nodes)
    if index is None or names.ids is None or numbers_rows(index):
        return
    keys: list[Any] = index.tolist()
    named = names.find(keys)
    if names.integers and ((named < 0).any() or max(keys, default=0) < names.n):
        return
    torn = np.flatnonzero((named >= 0) & (named != at))
    if torn.size:
        row = int(torn[0])
        key, other = describe(keys[row]), describe(names.named(at[row : row + 1])[0])
        got = f"position {at[row]}, which is node {other}, in the row of {key}"
        remedy = "Pass its .index, which has the ids, or .to_numpy() to go by position."
        reject(parameter, function, "positions of the nodes that its index names", got, remedy=remedy, error=error)


def is_text(nodes: object) -> bool:
    """Whether nodes are given as text, which are ids: one, or several in a list, an array or a series.

    >>> is_text("a"), is_text(["a", "b"]), is_text([1]), is_text([])
    (True, True, False, False)
    """
    if isinstance(nodes, str):
        return True
    if isinstance(nodes, list | tuple):
        return isinstance(next(iter(cast("Sequence[object]", nodes)), None), str)
    if getattr(getattr(nodes, "dtype", None), "kind", "") not in ("U", "O"):  # a dtype of torch has no kind
        return False
    values = np.asarray(nodes)
    return values.size > 0 and isinstance(values.flat[0], str)


def positions_of_ids(ids: object, parameter: str, function: str, graph: Any) -> Rows:
    """Return the positions of nodes given by id, shape (m,); refuse ids where the graph has none."""
    if graph.ids is None:
        expected = "positions or a mask, since this graph has no ids"
        reject(parameter, function, expected, "ids" if parameter == "ids" else "text, which would be ids,")
    return look_up(ids, graph._id_index, function, parameter)


def check_nodes(nodes: object, parameter: str, function: str, graph: Any, ids: object = None) -> Rows:
    """Return positions of nodes, shape (m,), given as positions or as ids: text always is, and so is all in `ids`.

    >>> import pprop, scipy.sparse as sp
    >>> graph = pprop.Graph.from_scipy(sp.csr_array((3, 3)), ids=[30, 10, 20])
    >>> check_nodes([2], "nodes", "ppr", graph), check_nodes(None, "nodes", "ppr", graph, [10])
    (array([2]), array([1]))
    """
    if ids is not None:
        if nodes is not None:
            reject("ids", function, f"None where {parameter} is given", describe(ids))
        return positions_of_ids(ids, "ids", function, graph)
    if nodes is None:
        reject(parameter, function, "an array of nodes", "None", remedy="Pass positions, or ids that are text.")
    if is_text(nodes):
        return positions_of_ids(nodes, parameter, function, graph)
    at = check_positions(nodes, parameter, function, n_nodes=graph.n_nodes)
    check_beside_positions(nodes, at, NodeNames.of(graph), parameter, function)
    return at


def like_given(data: Any, values: NDArray[Any], order: Rows | None) -> Any:
    """Return values of all nodes in the form of a frame or series: its index, columns and order; of anything else an array.

    >>> import pandas as pd
    >>> like_given(pd.Series([1, 2], index=["b", "a"], name="x"), np.array([10.0, 20.0]), np.array([1, 0])).to_dict()
    {'b': 20.0, 'a': 10.0}
    """
    index = index_of(data)
    if index is None:
        return values
    rows = values
    if order is not None:
        rows = np.empty_like(values)
        rows[order] = values
    same = {"columns": data.columns} if hasattr(data, "columns") else {"name": data.name}
    return type(data)(rows, index=index, **same)


def check_same_index(given: Mapping[str, object], function: str) -> None:
    """Refuse columns that belong together, row by row, and have different indices.

    >>> import pandas as pd
    >>> check_same_index({"source": pd.Series([1]), "target": pd.Series([1], index=[7])}, "Graph.from_edges")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'target' parameter of Graph.from_edges must be indexed as 'source' is. Got ...
    """
    known = {name: index for name, data in given.items() if (index := index_of(data)) is not None}
    first = next(iter(known), None)
    for name, index in known.items():
        if first is not None and index.tolist() != known[first].tolist():
            remedy = "Take both from one table, or pass them with .to_numpy() to go by position."
            reject(name, function, f"indexed as {first!r} is", "another index", remedy=remedy)


def _compose(rows: Rows, then: Rows | None) -> Rows:
    return rows if then is None else rows[then]


def _find_all(keys: list[Any], names: NodeNames, parameter: str, function: str, error: Any) -> Rows:
    """Return the positions of nodes that are all there, and each once."""
    at = names.find(keys)
    what = "positions of the nodes" if names.ids is None else "ids of the graph"
    expected = f"indexed by the {what}, each once, or by 0, 1, 2 and so on"
    unknown = [key for key, place in zip(keys, at.tolist(), strict=True) if place < 0]
    remedy = "Pass it with .reset_index(drop=True) if its rows are in the order of the nodes."
    if unknown:
        kind = "unknown position" if names.ids is None else "unknown id"
        got = f"an index with {counted(len(unknown), kind)} ({listed(unknown, SHOWN)})"
        if names.ids is None:
            remedy = f"This graph has no ids: its nodes are 0 to {names.n - 1}. {remedy}"
        elif names.ids.dtype.kind == "U" and names.find([str(key) for key in unknown]).min() >= 0:
            remedy = "The ids of this graph are text: convert the index with .rename(str)."
        elif names.integers and any(isinstance(key, str) for key in unknown):
            remedy = f"The ids of this graph are integers. {remedy}"
        elif at.max() >= 0:  # it does hold ids, and so rows are not in the order of the nodes
            remedy = f"{known_as(unknown[0], names.index())} Leave out the rows of other nodes, or correct their ids."
        reject(parameter, function, expected, got, remedy=remedy.strip(), error=error)
    values, counts = np.unique(at, return_counts=True)
    if len(values) < len(at):
        twice = names.named(values[counts > 1])
        got = f"an index with {describe(twice[0])} more than once"
        reject(parameter, function, expected, got, error=error)
    return at


def _refuse_both(rows: int, parameter: str, function: str, error: Any) -> NoReturn:
    expected = "indexed so that its order is certain"
    got = f"an index of 0 to {rows - 1}, which are rows, and also ids of this graph in another order,"
    remedy = (
        f"Pass {parameter}.loc[graph.ids] if the index holds ids, or {parameter}.set_axis(graph.ids) if rows are in the "
        "order of the nodes."
    )
    reject(parameter, function, expected, got, remedy=remedy, error=error)
