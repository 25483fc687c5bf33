"""Graphs from files: an edge list, and if wanted a table of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal

from pprop.graph.attributes import MISSING_LABELS, LabelKind
from pprop.graph.features.recipe import Recipe
from pprop.graph.graph import Graph

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
    label_kind: LabelKind = "auto",
    feature_columns: str | Sequence[str] | Mapping[str, str] | Recipe = "auto",
    features: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    degree: bool = False,
    missing_labels: Sequence[str] = MISSING_LABELS,
    unknown_nodes: Literal["error", "drop", "add"] = "error",
    name: str | None = None,
) -> Graph:
    r"""Read a graph from an edge list and, if given, a table of its nodes.

    Each file is a ``.csv`` (commas or semicolons), ``.tsv`` or ``.tab``, these also with ``.gz`` or ``.zst``, or a
    ``.parquet``. Text is UTF-8, with a header; blanks around a cell do not count.

    An edge from s to t becomes entry (t, s) of the adjacency: t receives from s. Self-loops are kept.

    An edge that is listed more than once in the same direction counts once, or, where there is a ``weight`` column,
    with the sum of its weights. In an undirected graph it does not matter whether an edge is listed in one direction or
    in both: then the larger of the two weights counts. An edge of weight zero is no edge; a warning counts
    them.

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
        Column of the edge list with finite, non-negative weights; None for an unweighted graph, with a warning where a
        column is named "weight" or the like. Other columns of the edge list are not read.
    directed
        Whether the direction of an edge matters.
    id_column
        Column of the node table with distinct ids.
    label_column
        Column of the node table with the class of each node. The classes are sorted by name, or by value where all are
        integers. None for a graph without labels. What looks like a quantity is refused: numbers that are not whole, more
        than 50 different numbers, or more than 20 of which most have fewer than five labels.
    label_kind
        ``"category"``: each distinct value under `label_column` is a class, also where it looks like a quantity, a list
        of tags or a text.
    feature_columns
        What becomes of the other columns of the node table. ``"auto"``: each is used by its kind, or left out for a
        reason, as ``graph.recipe`` says. ``"numbers"``: every column of numbers, as it is; each cell must be finite.
        A sequence of names: these, in this order, by their kinds. A mapping of names to kinds (``"number"``,
        ``"boolean"``, ``"category"``, ``"date"``, ``"text"``, ``"embedding"``, ``"unused"``); the kinds of other columns
        are found out. A column of lists of numbers, all of one length, is an embedding: one feature per number.
        A `Recipe`: that of another graph, applied by name.
    features
        An ``.npy`` file with a matrix of numbers, or several, used together with the columns. It has a row for each row of
        the node table, in the same order. ``graph.recipe`` names it like the file, and finds it by this name.
    degree
        Whether the degree of each node is a feature, too: log(1 + weighted degree), of a directed graph for both
        directions.
    missing_labels
        Texts that stand for an unknown label; an empty cell always does. Where -1 and one other number are the only
        labels, -1 is a class, and a warning says so, unless this list is your own.
    unknown_nodes
        What to do with edges to ids that the node table does not have: ``"error"``, ``"drop"`` the edges or
        ``"add"`` the nodes, without features and label; a warning counts them.
    name
        Of the graph; None for that of the file, without its suffix.

    Returns
    -------
    Graph
        Ids are int64 where every id is an integer as Python prints it (``7``, not ``007``), and otherwise text.

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
    from pprop.graph.tables.build import TableColumns
    from pprop.graph.tables.readers import read_table

    columns = TableColumns(
        FUNCTION,
        source=source,
        target=target,
        weight=weight,
        directed=directed,
        id_column=id_column,
        label_column=label_column,
        label_kind=label_kind,
        feature_columns=feature_columns,
        features=features,
        degree=degree,
        missing_labels=missing_labels,
        unknown_nodes=unknown_nodes,
    )
    if nodes is None:
        columns.check_alone()
    edges = read_table(path, "path", FUNCTION, columns.of_edges)
    table = None if nodes is None else read_table(nodes, "nodes", FUNCTION)
    parts = columns.parts(edges, table)
    return Graph._of_parts(**parts, name=edges.name if name is None else name)  # pyright: ignore[reportPrivateUsage]
