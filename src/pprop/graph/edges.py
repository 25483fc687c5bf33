"""Graphs from tables: an edge list, and if wanted a table of nodes, each in CSV or Parquet."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._validate import check_bool, check_sequence, describe, reject
from pprop.graph.graph import Graph
from pprop.graph.tables import DataTable, read_table

FUNCTION = "read_edges"


def read_edges(
    path: str | PathLike[str],
    nodes: str | PathLike[str] | None = None,
    *,
    source: str = "source",
    target: str = "target",
    weight: str | None = None,
    directed: bool = False,
    id_column: str = "id",
    label_column: str | None = None,
    feature_columns: Sequence[str] | None = None,
) -> Graph:
    r"""Read a graph from an edge list and, if given, a table of its nodes.

    Each file is a ``.csv`` (UTF-8, with a header; blanks around a cell do not count) or a ``.parquet``.

    An edge from s to t becomes entry (t, s) of the adjacency: t receives from s. Self-loops are kept.

    An edge that is listed more than once in the same direction counts once, or, where there is a ``weight`` column,
    with the sum of its weights. In an undirected graph it does not matter whether an edge is listed in one direction or
    in both: then the larger of the two weights counts. An edge of weight zero is no edge.

    Parameters
    ----------
    path
        The edge list, one edge per row.
    nodes
        The node table, one node per row. It fixes the order of the nodes and may name nodes without edges.
        Without it the nodes are those of the edge list, in the order of their first appearance.
    source, target
        Columns of the edge list with the ids of the two ends.
    weight
        Column of the edge list with finite, non-negative weights; None for an unweighted graph.
    directed
        Whether the direction of an edge matters.
    id_column
        Column of the node table with distinct ids.
    label_column
        Column of the node table with the class of each node, empty where unknown. The classes are sorted by name, or
        by value where all are integers. None for a graph without labels.
    feature_columns
        Columns of the node table with the features, in this order; each cell must be a finite number.
        None takes every column of numbers besides id and label, in the order of the table.

    Returns
    -------
    Graph
        Features are dense float32, shape (n, f). Ids are int64 where every id is an integer as Python prints it
        (``7``, not ``007``), and otherwise text. Its ``name`` is the file's name without the suffix.

    Raises
    ------
    FormatError
        A file is not what its suffix says, or a row is wrong; the message gives the row, numbered from 1 below the
        header, blank lines not counted.
    InputError
        A column is missing, or an argument is of the wrong type.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> edges, nodes = Path(folder.name, "edges.csv"), Path(folder.name, "nodes.csv")
    >>> _ = edges.write_text("source,target\nann,bob\nbob,cem\ncem,dee\ndee,ann\n")
    >>> _ = nodes.write_text("id,team,age\nann,red,31\nbob,blue,27\ncem,,45\ndee,red,38\neve,blue,29\n")
    >>> graph = read_edges(edges, nodes, label_column="team")
    >>> graph
    Graph(5 nodes, 4 edges, undirected, 1 features, 2 classes)
    >>> graph.class_names, graph.labels
    (('blue', 'red'), array([ 1,  0, -1,  1,  0]))
    >>> folder.cleanup()
    """
    directed = check_bool(directed, "directed", FUNCTION)
    features = None if feature_columns is None else _distinct_names(feature_columns)
    if nodes is None and (label_column is not None or feature_columns is not None):
        given = "label_column" if label_column is not None else "feature_columns"
        reject(given, FUNCTION, "None when there is no node table", "a column name", remedy="Pass nodes=... too.")
    if label_column is not None and label_column == id_column:
        reject("label_column", FUNCTION, "another column than id_column", f"{describe(label_column)} for both")

    edges = read_table(path, "path", FUNCTION)
    ends = (_ids(edges, source, "source"), _ids(edges, target, "target"))
    weights = None if weight is None else _weights(edges, weight)
    position: defaultdict[str, int] = defaultdict()
    attributes: dict[str, Any] = {}
    if nodes is None:
        if not edges.n_rows:
            edges.complain("an edge list with at least one edge, or come with a node table", "no rows")
        position.default_factory = position.__len__  # a new id takes the next position
    else:
        table = read_table(nodes, "nodes", FUNCTION)
        position.update((key, row) for row, key in enumerate(_distinct_ids(table, id_column)))
        attributes = _features(table, features, (id_column, label_column))
        if label_column is not None:
            attributes |= _labels(table, label_column)
    entries = _positions(edges, ends, position)
    values, n = np.ones(len(entries)) if weights is None else weights, len(position)
    # entry (t, s) is what t receives from s; repeated edges are summed
    adjacency = sparse.csr_array((values, (entries[:, 1], entries[:, 0])), shape=(n, n))
    if weights is None:
        adjacency = adjacency.sign()
    return Graph.from_scipy(
        adjacency if directed else adjacency.maximum(adjacency.T).tocsr(),
        directed=directed,
        ids=_as_integers(list(position)),
        name=edges.path.stem,
        **attributes,
    )


def _distinct_names(columns: object) -> list[object]:
    names = check_sequence(columns, "feature_columns", FUNCTION, "a sequence of column names or None")
    for name, count in Counter(name for name in names if isinstance(name, str)).items():
        if count > 1:
            got = f"{describe(name)} more than once"
            reject("feature_columns", FUNCTION, "a sequence of distinct column names", got)
    return names


def _ids(table: DataTable, column: object, parameter: str) -> list[str]:
    ids = table.texts(column, parameter)
    if "" in ids:
        table.complain(f"a table with an id in every row of {column!r}", "an empty cell", ids.index(""))
    return ids


def _distinct_ids(table: DataTable, column: object) -> list[str]:
    ids = _ids(table, column, "id_column")
    if not ids:
        table.complain("a node table with at least one node", "no rows")
    seen: set[str] = set()
    for row, key in enumerate(ids):
        if key in seen:
            table.complain("a node table of distinct ids", f"the id {describe(key)} a second time", row)
        seen.add(key)
    return ids


def _weights(edges: DataTable, column: object) -> NDArray[np.float64]:
    weights = edges.numbers(column, "weight")
    negative = np.flatnonzero(weights < 0)
    if negative.size:
        edges.complain("an edge list of non-negative weights", f"{weights[negative[0]]:g}", int(negative[0]))
    return weights


def _positions(edges: DataTable, ends: tuple[list[str], list[str]], position: dict[str, int]) -> NDArray[np.int64]:
    """Return the positions of both ends of every edge, shape (edges, 2), looking up each source before its target."""
    pairs = chain.from_iterable(zip(*ends, strict=True))
    try:
        flat = np.fromiter(map(position.__getitem__, pairs), dtype=np.int64, count=2 * edges.n_rows)
    except KeyError as error:
        key: str = error.args[0]
        row = next(row for row, edge in enumerate(zip(*ends, strict=True)) if key in edge)
        edges.complain("an edge list of ids in the node table", f"the unknown id {describe(key)}", row)
    return flat.reshape(-1, 2)


def _features(table: DataTable, columns: list[object] | None, others: tuple[str | None, ...]) -> dict[str, Any]:
    chosen = columns
    if chosen is None:
        chosen = [name for name in table.columns if name not in others and table.is_numeric(name)]
    if not chosen:
        return {}
    features = np.empty((table.n_rows, len(chosen)), dtype=np.float32)  # shape: (n, f)
    largest = float(np.finfo(np.float32).max)
    for index, name in enumerate(chosen):
        values = table.numbers(name, "feature_columns")
        beyond = np.flatnonzero(np.abs(values) > largest)
        if beyond.size:
            value = f"{values[beyond[0]]:g} under {name!r}"
            table.complain("a node table of features that fit into float32", value, int(beyond[0]))
        features[:, index] = values
    return {"features": features, "feature_names": chosen}


def _labels(table: DataTable, column: object) -> dict[str, Any]:
    cells = table.texts(column, "label_column")
    names = sorted(set(cells) - {""})
    if _as_integers(names).dtype == np.int64:
        names.sort(key=int)
    index = {"": -1} | {name: k for k, name in enumerate(names)}
    return {"labels": np.asarray([index[cell] for cell in cells]), "class_names": names}


def _as_integers(texts: list[str]) -> NDArray[Any]:
    """Return int64 where each text is an integer as Python prints it, so that ``7`` and ``007`` stay apart; else text."""
    try:
        numbers = [int(text) for text in texts]
        if [str(number) for number in numbers] == texts:
            return np.asarray(numbers, dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return np.asarray(texts, dtype=np.str_)
