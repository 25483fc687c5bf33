"""Graph folders from edge lists of any length, read in streams within bounded memory, and resumed after a kill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from pprop._errors import CapacityError
from pprop._interrupt import remember_interrupts
from pprop._memory import usable_memory
from pprop._validate import check_bool, check_float, check_int, describe, reject
from pprop.graph.features.recipe import Recipe
from pprop.graph.folder import GraphFolder
from pprop.graph.folder_manifest import check_target, write_manifest
from pprop.graph.labels import MISSING_LABELS
from pprop.graph.tables.build import TableColumns
from pprop.graph.tables.readers import table_name
from pprop.graph.tables.streams import TableStream
from pprop.scale.build_plan import Plan
from pprop.scale.id_keys import Collision, TextIds
from pprop.scale.matrix_build import MatrixBuild
from pprop.scale.node_arrays import NodeTable, copy_features, copy_labels, feature_file
from pprop.scale.node_numbers import MOST_NODES, Numbering, open_lookup
from pprop.scale.progress import show_stage
from pprop.scale.workplace import Workplace, disk_errors, file_mark

FUNCTION = "build_graph"
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
    feature_columns: str | Sequence[str] | Mapping[str, str] | Recipe = "auto",
    missing_labels: Sequence[str] = MISSING_LABELS,
    unknown_nodes: Literal["error", "drop", "add"] = "error",
    features: Path_ | None = None,
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
    source, target, weight, directed, id_column, label_column, missing_labels, unknown_nodes
        As in `read_edges`.
    feature_columns
        As in `read_edges`. ``"numbers"`` and a `Recipe` are applied some rows at a time; for all other choices the
        node table must fit into `memory`.
    features
        An .npy file of a dense matrix, or an .npz file of scipy's ``save_npz``, with a row for each node in their order; in
        place of columns of the node table.
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
    >>> place = tempfile.TemporaryDirectory()
    >>> file = Path(place.name, "edges.csv")
    >>> _ = file.write_text("source,target\nann,bob\nbob,cem\ncem,dee\ndee,ann\n")
    >>> folder = build_graph(file, Path(place.name, "graph"))
    >>> folder, folder.ids[:]
    (GraphFolder(4 nodes, 4 edges, undirected), array(['ann', 'bob', 'cem', 'dee'], dtype='<U3'))
    >>> place.cleanup()
    """
    columns = TableColumns(
        FUNCTION, source=source, target=target, weight=weight, directed=directed, id_column=id_column,
        label_column=label_column, feature_columns=feature_columns, missing_labels=missing_labels,
        unknown_nodes=unknown_nodes,
    )  # fmt: skip
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
    build = _Build(
        stream, table, count, columns, features, labels,
        table_name(stream.files[0]) if name is None else name, _memory(memory), progress, say or _silent,
    )  # fmt: skip
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
        if value is not None and not known:
            remedy = "Pass nodes=..., a node table in the order of the rows, or how many there are."
            reject(
                parameter,
                FUNCTION,
                "left out where the order of the nodes is not given",
                describe(value),
                remedy=remedy,
            )
    if features is not None and columns.feature_columns not in ("auto", "numbers"):
        reject("features", FUNCTION, "left out with feature_columns", describe(features))
    if labels is not None and columns.label_column is not None:
        reject("labels", FUNCTION, "left out with label_column", describe(labels))


def _memory(memory: float | None) -> int:
    """Return the bytes that a build may take."""
    usable = usable_memory()
    if memory is None:
        return int(min(MEMORY * 2**30, usable // 2 if usable else MEMORY * 2**30))
    asked = int(check_float(memory, "memory", FUNCTION, "(0, inf)") * 2**30)
    if usable is not None and asked > usable:
        raise CapacityError(f"memory is {memory:g} GiB, and this process may use {usable / 2**30:.1f} GiB.")
    return asked


@final
@dataclass(frozen=True)
class _Build:
    """The stages of a build; what is done of them is in the workplace's record."""

    edges: TableStream
    nodes: TableStream | None
    count: int | None
    columns: TableColumns
    features: Any
    labels: Any
    name: str
    memory: int
    progress: bool | None
    say: Callable[[str], None]

    @property
    def job(self) -> dict[str, Any]:
        """What identifies the build, for the record."""
        given = self.columns
        kinds = given.feature_columns
        files = {"nodes": [] if self.nodes is None else list(self.nodes.files)}
        files |= {
            key: [] if path is None else [Path(path)]
            for key, path in (("features", self.features), ("labels", self.labels))
        }
        names = ("source", "target", "weight", "directed", "id_column", "label_column", "unknown_nodes")
        return {
            "version": 1,
            "edges": [file_mark(file) for file in self.edges.files],
            **{key: [file_mark(file) for file in some if file.exists()] for key, some in files.items()},
            "count": self.count,
            **{key: getattr(given, key) for key in names},
            "missing_labels": list(given.missing_labels),
            "feature_columns": kinds.to_json() if isinstance(kinds, Recipe) else kinds,
            "name": self.name,
        }

    def run(self, workplace: Workplace) -> None:
        """Do what is not done yet, and put the result in its place."""
        rows = self.edges.rows()
        plan = self._plan(rows, workplace.state.get("numbers"))
        plan.check_disk(workplace.path, workplace.size())
        self.say(f"Going on with {str(workplace.path)!r}." if workplace.resumed else f"Building {plan}")
        while True:
            try:
                matrix = self._numbered(workplace, rows)
                self._written(workplace)
                self._build(matrix, rows)
                break
            except (TextIds, Collision) as found:
                seed = workplace.state.get("seed")
                if self.count is not None:
                    expected = f"edge lists of positions from 0 to {self.count - 1:,}, as nodes={self.count} says"
                    reject("edges", FUNCTION, expected, f"other ids in {self.edges.title}")
                workplace.clear()
                workplace.save(seed=1 if isinstance(found, TextIds) else (seed or 0) + 1)
        self._finish(matrix, workplace)

    def _plan(self, rows: int, numbers: Mapping[str, Any] | None) -> Plan:
        known = self.count if self.nodes is None else self.nodes.rows()
        n = numbers["n"] if numbers else min(known if known is not None else rows // 8 + 1, MOST_NODES)
        features = (
            0 if self.features is None or not Path(self.features).exists() else Path(self.features).stat().st_size
        )
        if self.nodes is not None:
            features += sum(4 * file.stat().st_size for file in self.nodes.files) // 2
        return Plan(
            edges=rows,
            entries=rows * (1 if self.columns.directed else 2),
            weighted=self.columns.weight is not None,
            memory=self.memory,
            nodes=n,
            feature_bytes=features,
            text=bool(numbers and numbers.get("seed") is not None),
        )

    def _numbered(self, workplace: Workplace, rows: int) -> MatrixBuild:
        """Number the nodes, unless that is done, and return what builds the matrix of them."""
        numbers = workplace.state.get("numbers")
        if numbers is None:
            numbers = self._numbers(workplace, rows)
            workplace.save(numbers=numbers)
        plan = self._plan(rows, numbers)
        plan.check_disk(workplace.path, workplace.size())
        may_miss = self.nodes is not None and self.columns.unknown_nodes != "add"
        lookup = open_lookup(numbers, workplace.path, may_miss=may_miss)
        return MatrixBuild(self.edges, self.columns, lookup, plan, workplace)

    def _numbers(self, workplace: Workplace, rows: int) -> dict[str, Any]:
        if self.count is not None:
            return {"kind": "position", "n": self.count, "known": self.count, "arrays": {}}
        seed = workplace.state.get("seed")
        add = self.columns.unknown_nodes == "add"
        total = (0 if self.nodes is None else self.nodes.rows()) + (rows if self.nodes is None or add else 0)
        plan = changed(self._plan(rows, None), text=seed is not None)
        with show_stage(self.progress, "Numbering nodes", total) as tick:
            ends = {"source": self.columns.source, "target": self.columns.target}
            ids = None if self.nodes is None else _only(self.nodes, self.columns.id_column)
            numbering = Numbering(
                ids,
                self.columns.id_column,
                self.edges,
                ends,
                add,
                workplace.path,
                workplace.result,
                self.memory,
                plan.rows,
                tick,
            )
            found = numbering.integers() if seed is None else None
            found = numbering.searched(seed) if found is None else found
        if not found["n"]:
            table, _ = next((self.edges if self.nodes is None else self.nodes).tables(1))
            if self.nodes is None:
                table.complain("an edge list with at least one edge, or come with a node table", "no rows")
            table.complain("a node table with at least one node", "no rows")
        return found

    def _written(self, workplace: Workplace) -> None:
        """Write features and labels, unless that is done."""
        if "nodes" in workplace.state:
            return
        numbers = workplace.state["numbers"]
        n, result = numbers["n"], workplace.result
        arrays: dict[str, Any] = {}
        fields: dict[str, Any] = {}
        parts: list[Any] = []
        if self.features is not None:
            parts.append(copy_features(feature_file(self.features, n, self.memory), result))
        if self.labels is not None:
            parts.append(copy_labels(self.labels, n, result))
        if self.nodes is not None:
            passes = (self.columns.label_column is not None) + (self.features is None)
            with show_stage(self.progress, "Features and labels", passes * numbers["known"]) as tick:
                rows = self._plan(0, numbers).rows // 16
                table = NodeTable(
                    self.nodes,
                    self.columns,
                    numbers["known"],
                    n,
                    workplace.path,
                    result,
                    self.memory,
                    max(rows, 2**8),
                    tick,
                )
                parts += [table.labels(), *([table.features()] if self.features is None else [])]
        for some, about in parts:
            arrays |= some
            fields |= about
        recipe = fields.pop("recipe", None)
        workplace.save(nodes={"arrays": arrays, **fields, "recipe": None if recipe is None else recipe.to_json()})

    def _build(self, matrix: MatrixBuild, rows: int) -> None:
        state = matrix.workplace.state
        if "scattered" not in state:
            with show_stage(self.progress, "Reading edges", rows) as tick:
                matrix.scatter(tick)
        if "sorted" not in state:
            with show_stage(self.progress, "Sorting", state["scatter"]["buckets"]) as tick:
                matrix.sort(tick)

    def _finish(self, matrix: MatrixBuild, workplace: Workplace) -> None:
        """Complete the folder and put it in its place."""
        state = workplace.state
        made, nodes = state["matrix"], state["nodes"]
        arrays = {**made["arrays"], **matrix.weights(), **state["numbers"]["arrays"], **nodes["arrays"]}
        entries = made["arrays"]["indices"]["shape"][0]
        names = nodes.get("class_names")
        write_manifest(
            workplace.result,
            arrays,
            directed=self.columns.directed,
            edges=entries if self.columns.directed else (entries + made["loops"]) // 2,
            feature_columns=nodes.get("feature_columns"),
            class_names=None if names is None else tuple(names),
            name=self.name,
            recipe=None if nodes["recipe"] is None else Recipe.from_json(nodes["recipe"]),
        )
        matrix.caution()
        known = state["numbers"]
        if known["n"] > known["known"] and self.nodes is not None:
            self._caution_added(known["n"] - known["known"])
        workplace.move()

    def _caution_added(self, count: int) -> None:
        import warnings

        from pprop._validate import counted

        more = f"{counted(count, 'node')} of {self.edges.title}"
        warnings.warn(f"Added {more} that the node table does not have, without features.", stacklevel=5)


def _only(stream: TableStream, column: str) -> TableStream:
    return changed(stream, wanted=frozenset([column]))


def _silent(sentence: str) -> None:
    """Say nothing."""
