"""Graph folders from edge lists of any length, read in streams within bounded memory, and resumed after a kill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from os import PathLike
from typing import Literal, TypeAlias

from pprop._errors import CapacityError
from pprop._process import remember_interrupts, usable_memory
from pprop._validate import check_bool, check_float, check_int, describe, reject
from pprop.graph.attributes import MISSING_LABELS, LabelKind
from pprop.graph.building.node_arrays import FUNCTION, feature_file
from pprop.graph.building.node_numbers import MOST_NODES
from pprop.graph.building.stages import Build
from pprop.graph.building.workplace import Workplace, disk_errors
from pprop.graph.features.recipe import Recipe
from pprop.graph.files import existing_file
from pprop.graph.folder import GraphFolder
from pprop.graph.folder_manifest import check_target
from pprop.graph.tables.build import TableColumns
from pprop.graph.tables.readers import table_name
from pprop.graph.tables.streams import TableStream

MEMORY = 8.0  # GiB
Path_: TypeAlias = str | PathLike[str]


def build_graph(
    edges: Path_ | Sequence[Path_],
    out: Path_,
    *,
    nodes: Path_ | int | None = None,
    source: str = "source",
    target: str = "target",
    weight: str | None = None,
    directed: bool = False,
    id_column: str = "id",
    label_column: str | None = None,
    label_kind: LabelKind = "auto",
    feature_columns: str | Sequence[str] | Mapping[str, str] | Recipe = "auto",
    missing_labels: Sequence[str] = MISSING_LABELS,
    unknown_nodes: Literal["error", "drop", "add"] = "error",
    features: Path_ | Sequence[Path_] | None = None,
    labels: Path_ | None = None,
    name: str | None = None,
    memory: float | None = None,
    replace: bool = False,
    restart: bool = False,
    progress: bool | None = None,
    say: Callable[[str], None] | None = None,
) -> GraphFolder:
    r"""Build a graph folder from edge lists, with the nodes, edges and weights that `read_edges` would read.

    The files are read some rows at a time, and entries are sorted on the disk, so that memory is bounded whatever the
    number of edges. A build that was killed goes on when it is called again with the same arguments. The folder
    appears when it is complete; until then one that is there stays as it is.

    Parameters
    ----------
    edges
        One or several files of the formats of `read_edges`, one edge per row.
    out
        The folder to be made.
    nodes
        A node table, one node per row in the order of the nodes; or their number n, if ids are the positions 0 to
        n - 1; or None: the nodes are those of the edge lists, in the order of their first appearance.
    source, target, weight, directed, id_column, label_column, label_kind, missing_labels, unknown_nodes
        As in `read_edges`.
    feature_columns
        As in `read_edges`. ``"numbers"`` and a `Recipe` are applied some rows at a time; for all other choices the
        node table must fit into `memory`.
    features
        An .npy file of a dense matrix; an .npz file of scipy's ``save_npz``, which is read at once; or the file ``X.data.npy``
        of a CSR matrix beside ``X.indices.npy`` and ``X.indptr.npy``, read some rows at a time. It has a row for each
        node in their order, and is in place of columns of the node table. Or a list of .npy files, which are used beside
        the columns, as in `read_edges`.
    labels
        An .npy file of class indices, -1 where unknown, for each node in their order; in place of a label column.
    name
        Of the graph; None for that of the first file.
    memory
        GiB that the build may take, at most; None for 8, or half of what this process may use where that is less. The
        libraries alone take some 0.2.
    replace
        Whether a graph folder that is there may be replaced.
    restart
        Whether to begin anew where a build with other arguments was killed.
    progress
        Whether to draw progress on standard error; None: if it is a terminal.
    say
        Called with sentences about what will be done: time, memory and disk, before the work starts.

    Returns
    -------
    GraphFolder

    Raises
    ------
    CapacityError
        The disk or the memory does not suffice.
    FormatError, InputError
        As of `read_edges`; or `out` is something else, or being built.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> place = tempfile.TemporaryDirectory()
    >>> file = Path(place.name, "edges.csv")
    >>> _ = file.write_text("source,target\nann,bob\nbob,cem\ncem,dee\ndee,ann\n")
    >>> folder = build_graph(file, Path(place.name, "graph"))
    >>> folder, folder.ids[:]
    (GraphFolder(4 nodes, 4 edges, undirected), array(['ann', 'bob', 'cem', 'dee'], dtype='<U3'))
    >>> place.cleanup()
    """
    beside = features if isinstance(features, list | tuple) and not isinstance(nodes, Integral) else None
    if isinstance(features, list | tuple):
        if beside is None and len(features) != 1:
            reject("features", FUNCTION, "one file where nodes is a number", describe(features))
        features = features[0] if beside is None else None
    if beside is not None:
        _check_order("features", beside, known=nodes is not None)
    columns = TableColumns(
        FUNCTION,
        features=beside,
        source=source,
        target=target,
        weight=weight,
        directed=directed,
        id_column=id_column,
        label_column=label_column,
        label_kind=label_kind,
        feature_columns=feature_columns,
        missing_labels=missing_labels,
        unknown_nodes=unknown_nodes,
    )
    folder = check_target(out, "out", FUNCTION, replace=check_bool(replace, "replace", FUNCTION))
    files = [edges] if isinstance(edges, str | PathLike) else list(edges)
    if not files:
        reject("edges", FUNCTION, "a path, or a sequence of at least one", "none")
    stream = TableStream.of(files, "edges", FUNCTION, columns.of_edges)
    stream.check_columns({"source": source, "target": target, "weight": weight})
    table, count = None, None
    if isinstance(nodes, str | PathLike):
        table = TableStream.of([nodes], "nodes", FUNCTION)
        table.check_columns({"id_column": id_column, "label_column": label_column})
    elif nodes is not None:
        count = check_int(nodes, "nodes", FUNCTION, low=1, high=MOST_NODES)
        if unknown_nodes == "add":
            reject("unknown_nodes", FUNCTION, "'error' or 'drop' where nodes is a number", "'add'")
    if table is None:
        columns.check_alone()
    _check_rows(features, labels, columns, known=nodes is not None)
    budget = _memory(memory)
    if count is not None and features is not None and str(features).lower().endswith(".npy"):
        feature_file(features, count, budget)  # of the right shape, before any work
    build = Build(
        stream,
        table,
        count,
        columns,
        features,
        labels,
        table_name(stream.files[0]) if name is None else name,
        budget,
        progress,
        say or _silent,
        replace,
    )
    with disk_errors(folder, folder.with_name(f".{folder.name}.build")):
        begin = check_bool(restart, "restart", FUNCTION)
        with (
            remember_interrupts(),
            Workplace(folder, build.job, restart=begin) as workplace,
            workplace.removed_where_useless(),
        ):
            build.run(workplace)
    return GraphFolder.open(folder)


def _check_rows(features: object, labels: object, columns: TableColumns, *, known: bool) -> None:
    """Refuse arrays of rows whose order is not known, or that something else is in the place of."""
    for parameter, value in (("features", features), ("labels", labels)):
        if value is not None:
            existing_file(value, parameter, FUNCTION)
            _check_order(parameter, value, known=known)
    if features is not None and columns.feature_columns not in ("auto", "numbers"):
        reject("features", FUNCTION, "left out with feature_columns", describe(features))
    if labels is not None and columns.label_column is not None:
        reject("labels", FUNCTION, "left out with label_column", describe(labels))


def _check_order(parameter: str, value: object, *, known: bool) -> None:
    if not known:
        remedy = "Pass nodes=..., a node table in the order of the rows, or how many there are."
        expected = "left out where the order of the nodes is not given"
        reject(parameter, FUNCTION, expected, describe(value), remedy=remedy)


def _memory(memory: float | None) -> int:
    """Return the bytes that a build may take."""
    usable = usable_memory()
    if memory is None:
        return int(min(MEMORY * 2**30, usable // 2 if usable else MEMORY * 2**30))
    asked = int(check_float(memory, "memory", FUNCTION, "(0, inf)") * 2**30)
    if usable is not None and asked > usable:
        raise CapacityError(f"memory is {memory:g} GiB, and this process may use {usable / 2**30:.1f} GiB.")
    return asked


def _silent(sentence: str) -> None:
    """Say nothing."""
