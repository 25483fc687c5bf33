"""The GRAPH argument (a dataset's name, a file of a graph or an edge list) and its options; its nodes by name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, final

import typer

from pprop._errors import DatasetError, InputError, Remedy
from pprop._validate import listed, nearest
from pprop.cli.errors import Checks, FileError, UsageError, WrongValueError
from pprop.cli.verbs import Options, option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pprop.estimators import GraphSource
    from pprop.graph import Graph
    from pprop.graph.features.recipe import Recipe
    from pprop.graph.tables.readers import TableFile
    from pprop.graph.tables.table import DataTable

SUFFIXES = ".npz, .mtx or .graphml"
TABLES = ".csv, .tsv or .parquet"
FEATURES = "Features"  # a section of the options
SHOWN_IDS = 3  # in an error about an id that the graph does not have

GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help=f"A dataset's name, a graph in {SUFFIXES} or a folder, or an edge list in {TABLES} (.gz and .zst, too).",
    ),
]
OtherGraphOption = Annotated[
    str | None, option("A dataset's name or file in place of the one that DIR names.", metavar="GRAPH")
]

_column = partial(option, metavar="COLUMN")


class UnknownNodes(StrEnum):
    """What to do with edges to nodes that the node table does not have."""

    ERROR = "error"
    DROP = "drop"
    ADD = "add"


class LabelKind(StrEnum):
    """What the values of the label column are."""

    AUTO = "auto"
    CATEGORY = "category"


class StructureChoice(StrEnum):
    """Features made of the graph alone."""

    IDENTITY = "identity"
    DEGREE = "degree"


@final
@dataclass(frozen=True)
class TableOptions(Options):
    """The options of an edge list and its node table."""

    panel: ClassVar[str] = "Your graph"
    nodes: Annotated[str | None, option(f"Node table ({TABLES}): ids, features, labels.", metavar="FILE")] = None
    source: Annotated[str, _column("Column of the edge list where edges begin.")] = "source"
    target: Annotated[str, _column("Column of the edge list where edges end.")] = "target"
    weight: Annotated[str | None, _column("Column of the edge list with weights; by default there are none.")] = None
    id_column: Annotated[str, _column("Column with the nodes' ids.")] = "id"
    label_column: Annotated[str | None, _column("Column of the node table with the classes; empty where unknown.")] = (
        None
    )
    label_kind: Annotated[
        LabelKind,
        option("category takes each value of the label column for a class, also numbers that look like quantities."),
    ] = LabelKind.AUTO
    missing_labels: Annotated[
        str | None,
        option("Texts that stand for an unknown label, separated by commas.  [default: NA,nan,None,?,-1 and the like]"),
    ] = None
    features: Annotated[
        str | None,
        option(
            "Columns of the node table to use, and .npy files with a row per row of it, separated by commas; by default all "
            "columns that can be, also beside files.",
            metavar="COLUMNS",
            panel=FEATURES,
        ),
    ] = None
    column: Annotated[
        list[str] | None,
        option(
            "How to use a column: number, boolean, category, date, text, embedding or unused. May be repeated.",
            metavar="NAME=KIND",
            panel=FEATURES,
        ),
    ] = None
    unknown_nodes: Annotated[
        UnknownNodes, option("Edges to nodes that the node table does not have: refuse, drop the edge, add the node.")
    ] = UnknownNodes.ERROR
    degree: Annotated[
        bool, option("Use the degree of each node as a feature beside the columns.", "--degree", panel=FEATURES)
    ] = False
    structure: Annotated[
        StructureChoice | None, option("Features made of the graph alone, in place of columns.", panel=FEATURES)
    ] = None
    directed: Annotated[bool, option("Keep the directions of the edges.", "--directed")] = False

    @property
    def named(self) -> tuple[str, ...]:
        """The columns in `features`."""
        return tuple(name for name in self._listed if not _is_file(name))

    @property
    def files(self) -> tuple[str, ...]:
        """The files in `features`.

        >>> TableOptions(features="age,emb/title.npy").files
        ('emb/title.npy',)
        """
        return tuple(name for name in self._listed if _is_file(name))

    @property
    def _listed(self) -> tuple[str, ...]:
        return () if self.features is None else tuple(name.strip() for name in self.features.split(","))

    @property
    def kinds(self) -> dict[str, str]:
        """The kinds in `column`, by name.

        >>> TableOptions(column=["zip=category", "a=b=text"]).kinds
        {'zip': 'category', 'a=b': 'text'}
        """
        found: dict[str, str] = {}
        for text in self.column or ():
            name, equals, kind = text.rpartition("=")
            if not equals or not name:
                raise WrongValueError(f"--column takes NAME=KIND, such as zip=category, not {text!r}.")
            if name in found:
                raise WrongValueError(f"--column names {name!r} twice: {name}={found[name]} and {text}.")
            found[name] = kind
        return found

    @property
    def feature_columns(self) -> str | tuple[str, ...] | dict[str, str]:
        """What `read_edges` takes: "auto", names, or a mapping from names to kinds."""
        if self.named and self.kinds:
            raise UsageError(
                "Give --features (the columns to use) or --column (how to use some), not both: "
                "--column NAME=unused leaves a column out."
            )
        return self.named or self.kinds or "auto"

    def check(
        self,
        *edges: str,
        labels: bool = False,
        split: Mapping[str, str] | None = None,
        files: TableFiles | None = None,
    ) -> None:
        """Refuse columns that the tables do not have, before any row is read.

        `edges` are the edge lists, `split` the columns that divide the nodes by the parameters that name them.
        """
        from pprop.cli.named_columns import NamedColumns

        of_nodes = {"id_column": self.id_column, "label_column": self.label_column, **(split or {})}
        of_nodes |= {f"features[{at}]": name for at, name in enumerate(self.named)}
        of_edges = {"source": self.source, "target": self.target, "weight": self.weight}
        header = (TableFiles() if files is None else files).header
        with Checks() as checks:
            kinds = checks.run(lambda: self.kinds) or {}
            of_nodes |= {f"column[{at}]": name for at, name in enumerate(kinds)}
            checks.run(NamedColumns(edges, self.nodes, of_edges, of_nodes, kinds, labels, header).check)


def _is_file(name: str) -> bool:
    from pprop.graph.files import is_array_file

    return is_array_file(name)


StructureTables = Annotated[
    TableOptions, {"label_column", "label_kind", "missing_labels", "features", "column", "degree", "structure"}
]


@final
class TableFiles:
    """The tables that a command was given: each file is opened once, for its header and then for its rows.

    Rows are kept for those who look at them one after another, until `drop`; names of columns are kept on.
    """

    def __init__(self) -> None:  # by file and parameter
        self._opened: dict[tuple[str, str], TableFile] = {}
        self._headers: dict[tuple[str, str], DataTable] = {}
        self._tables: dict[tuple[str, str], DataTable] = {}

    def header(self, file: str, parameter: str) -> DataTable:
        """Return the columns of a table, without its rows; `parameter` gives the file."""
        key = file, parameter
        if key not in self._headers:
            self._headers[key] = self._open(key).header()
        return self._headers[key]

    def table(self, file: str, parameter: str, wanted: Sequence[str] | None = None) -> DataTable:
        """Return a table with the columns in `wanted`, None for all; whoever asks again has the same ones in mind."""
        key = file, parameter
        if key not in self._tables:
            with self._open(key) as opened:
                self._tables[key] = opened.read(wanted)
            del self._opened[key]
        return self._tables[key]

    def _open(self, key: tuple[str, str]) -> TableFile:
        if key not in self._opened:
            from pprop.graph.tables.readers import TableFile

            self._opened[key] = TableFile(*key, "read_edges")
        return self._opened[key]

    def drop(self) -> None:
        """Let go of the rows, for which somebody else has found a use."""
        self._tables.clear()


@final
@dataclass(frozen=True)
class GraphInput:
    """Where a graph comes from: the argument and its options.

    >>> GraphInput("citeseer").read()
    Graph(2110 nodes, 3668 edges, undirected, 3703 features, 6 classes)
    """

    graph: str
    tables: TableOptions = field(default_factory=TableOptions)
    files: TableFiles = field(default_factory=TableFiles, compare=False, repr=False)

    @property
    def path(self) -> Path | None:
        """The file, or the folder of a graph; None for a dataset."""
        file = Path(self.graph)
        own = file.is_file() or (file / "manifest.json").is_file()
        return file if file.suffix or len(file.parts) != 1 or own else None

    @property
    def is_known(self) -> bool:
        """Whether this is a file or a folder, there or not, or a dataset that there is."""
        from pprop.datasets import DATASETS

        return self.path is not None or self.graph in DATASETS

    @property
    def is_table(self) -> bool:
        """Whether this is an edge list."""
        from pprop.graph.tables.readers import table_suffix

        return self.path is not None and table_suffix(self.path) is not None

    @property
    def title(self) -> str:
        """The name of this graph in texts."""
        return self.graph if self.path is None else self.path.name

    @property
    def saved(self) -> GraphSource:
        """The same, as the manifest of a model holds it."""
        from pprop.estimators import GraphSource

        structure = None if self.tables.structure is None else self.tables.structure.value
        return GraphSource(*self._reader(), structure)

    def read(self, recipe: Recipe | None = None) -> Graph:
        """Read the graph; the columns of its node table become features by a recipe, where one is given."""
        self.check()
        typed: dict[str, Any] = {"path": None if self.path is None else self.graph, "nodes": self.tables.nodes}
        if self.is_table:
            typed = {"path": self.edge_table(), "nodes": self.node_table()}
        graph = self.saved.read(recipe, {name: given for name, given in typed.items() if given is not None})
        self.files.drop()
        return graph

    def edge_table(self) -> DataTable:
        """Return the edge list, with the columns that options name."""
        given = self.tables
        return self.files.table(self.graph, "path", [one for one in (given.source, given.target, given.weight) if one])

    def node_table(self) -> DataTable | None:
        """Return the node table, with all columns; None where there is none."""
        return None if self.tables.nodes is None else self.files.table(self.tables.nodes, "nodes")

    def _reader(self) -> tuple[str, dict[str, Any]]:
        """Return the kind of the graph, and the arguments of the function that reads it."""
        given = self.tables
        if self.path is None:
            return "dataset", {"name": self.graph}
        names = (
            "nodes",
            "source",
            "target",
            "weight",
            "id_column",
            "label_column",
            "label_kind",
            "feature_columns",
            "unknown_nodes",
        )
        default = TableOptions()
        arguments: dict[str, Any] = {"path": self.path}
        for name in names:
            value = getattr(given, name)
            if self.is_table or value != getattr(default, name):
                arguments[name] = value.value if isinstance(value, StrEnum) else value
        if given.files:
            arguments["features"] = given.files
        if given.degree:
            arguments["degree"] = True
        if self.is_table or given.directed:
            arguments["directed"] = given.directed
        if given.missing_labels is not None:
            arguments["missing_labels"] = tuple(text.strip() for text in given.missing_labels.split(","))
        return ("edges" if self.is_table else "file"), arguments

    def like(self, source: GraphSource | None) -> GraphInput:
        """Return the same with the columns that a model was trained on, where no option says otherwise.

        Its label column is taken where the node table has it: labels are not read, but make the graph the same.
        """
        if source is None or not self.is_table:
            return self
        known, default, given = source.arguments, TableOptions(), self.tables
        changes: dict[str, Any] = {}
        for name in ("source", "target", "weight", "id_column", "directed"):
            if name in known and getattr(given, name) == getattr(default, name):
                changes[name] = known[name]
        if given.label_kind == default.label_kind:
            changes["label_kind"] = LabelKind(known.get("label_kind", default.label_kind))
        if given.structure is None and source.structure is not None:
            changes["structure"] = StructureChoice(source.structure)
        label = known.get("label_column")
        if (
            given.label_column is None
            and given.nodes is not None
            and label in self.files.header(given.nodes, "nodes").names
        ):
            changes["label_column"] = label
        return replace(self, tables=replace(given, **changes))

    def unused_edge_columns(self) -> dict[str, str]:
        """Return the columns beside the ends of the edges that no option names, and what to do about them."""
        if not self.is_table:
            return {}
        given = self.tables
        wanted = (given.source, given.target, given.weight)
        others = [name for name in self.files.header(self.graph, "path").names if name not in wanted]
        return {name: f"left out: beside the edges; --weight {name} would take it for weights" for name in others}

    def check(
        self, *, labels: bool = False, split: Mapping[str, str] | None = None, wrong_already: bool = False
    ) -> None:
        """Raise what is wrong with options, files and columns; with `labels` also if no option names the classes.

        `split` has the columns that divide the nodes by the parameters that name them. `wrong_already`: the command ends with
        an error in any case, so that its tables will not be read.
        """
        with Checks() as checks:
            checks.run(self.check_options)
            checks.run(self.check_files)
            if self.is_table:
                checks.run(self.tables.check, self.graph, labels=labels, split=split, files=self.files)
                if checks or wrong_already:  # where all is right, they are checked when the tables are read
                    self._check_arrays(checks)
            elif self.path is not None and (self.path.suffix or self.path.exists()):
                checks.run(self._check_format, self.path)

    def _check_arrays(self, checks: Checks) -> None:
        """Add what is wrong with .npy files of features: against the rows of the node table, where it can be read."""
        from pprop.cli.named_columns import beginning
        from pprop.graph.tables.build import features_in_file

        nodes, there = self.tables.nodes, [file for file in self.tables.files if Path(file).exists()]
        if nodes is None or not there or not Path(nodes).exists():
            return
        try:
            table, whole = beginning(nodes, "nodes")
        except InputError:  # which is refused above
            return
        for file in there:
            checks.run(features_in_file, Path(file), table.n_rows if whole else None, table.title, "read_edges")

    def _check_format(self, path: Path) -> None:
        """Raise if there are options that the format of a graph file has no use for."""
        from pprop.graph.formats import format_of

        given, (_, arguments) = self.tables, self._reader()
        typed = {"missing_labels": given.missing_labels, "feature_columns": given.features or given.column}
        arguments |= {name: value for name, value in typed.items() if name in arguments}
        del arguments["path"]
        format_of(path).check(arguments.pop("nodes", None), arguments)

    @property
    def label_remedy(self) -> Remedy:
        """How to name the classes of nodes, where a graph has none."""
        from pprop.graph.formats import format_of

        column = self.tables.label_column
        if column is not None:
            return Remedy(f"Every cell under {column!r} is empty or stands for an unknown label (--missing-labels).")
        if self.path is None or not self.path.exists():
            return Remedy()
        taken = format_of(self.path)
        if "label_column" in taken.options and not taken.takes_nodes:
            return Remedy("Its nodes may have an attribute that holds them.", settings={"label_column": ...})
        if taken.takes_nodes:
            return Remedy(settings={"nodes": ..., "label_column": ...})
        return Remedy("A folder has them if 'pprop build' is given --label-column or --label-file.")

    def check_options(self) -> None:
        """Raise if there are options that the graph has no use for."""
        given = self.tables
        needs = {
            "--label-column": given.label_column,
            "--features": given.features,
            "--column": given.column,
            "--degree": given.degree,
        }
        with Checks() as checks:
            for name in given.words() if self.path is None and self.is_known else ():
                if name.startswith("--") and name != "--structure":
                    why = f"belongs to a graph of your own, and {self.graph!r} is a dataset with all of that inside"
                    checks.add(UsageError(f"{name} {why}."))
            for name, value in needs.items() if self.is_table and given.nodes is None else ():
                if value:
                    what = "adds a column to" if name == "--degree" else "names columns of"
                    more = " --structure degree makes features of the graph alone." if name == "--degree" else ""
                    checks.add(UsageError(f"{name} {what} a node table: add --nodes FILE.{more}"))
            for name in ("--features", "--column", "--degree") if given.structure is not None else ():
                if needs[name]:
                    checks.add(UsageError(f"--structure takes the place of columns: leave {name} out."))
            checks.run(lambda: given.feature_columns)

    def check_files(self) -> None:
        """Raise if a file is missing."""
        names = (None if self.path is None else self.graph, self.tables.nodes, *self.tables.files)
        with Checks() as checks:
            if self.path is None:
                checks.run(self._check_dataset)
            for name in names:
                if name is not None and not Path(name).exists():
                    checks.add(FileNotFoundError(f"There is no file {name!r}."))

    def _check_dataset(self) -> None:
        from pprop.datasets import DATASETS, dataset_info

        try:
            dataset_info(self.graph)
        except DatasetError as error:
            there = Path(self.graph).is_dir()
            what = f"The folder {self.graph!r} holds no graph" if there else f"There is no file {self.graph!r}"
            text = f"{what}, and no dataset has this name. The datasets: {', '.join(DATASETS)}."
            raise (DatasetError if there else FileError)(text, remedies=error.remedies) from None


def example_input() -> GraphInput:
    """Return the tables of the bundled example.

    >>> example_input().read()
    Graph(1000 nodes, 2600 edges, undirected, 168 features, 6 classes)
    """
    from pprop.datasets.files import example_tables

    edges, nodes = example_tables()
    return GraphInput(str(edges), TableOptions(nodes=str(nodes), label_column="cuisine"))


def named_positions(graph: Graph, names: list[str]) -> Sequence[int] | NDArray[Any]:
    """Return the positions of nodes that were named as NODE on the command line, where everything is text."""
    ids = graph.ids
    try:
        given = node_keys(ids, names)
    except InputError:
        given = []
    last = graph.n_nodes - 1
    if ids is None:
        if given and all(0 <= position <= last for position in given):
            return given
        wrong = [name for name in names if not _is_position(name, last)]
        text = f"NODE must be a position from 0 to {last}, since the graph has no ids. Got {listed(wrong)}."
        raise InputError(text)
    known = set(ids.tolist())
    unknown = [name for name, key in zip(names, given or names, strict=True) if key not in known]
    if unknown:
        which = f"node {unknown[0]!r}" if len(unknown) == 1 else f"nodes {listed(unknown)}"
        hint = (
            nearest(unknown[0], map(str, known)) or f"Its first ids: {', '.join(map(str, ids[:SHOWN_IDS].tolist()))}."
        )
        raise InputError(f"The graph has no {which}.", remedies=[Remedy(hint)])
    return graph.positions(given)


def _is_position(name: str, last: int) -> bool:
    return name.isascii() and name.isdecimal() and int(name) <= last


def node_keys(ids: NDArray[Any] | None, names: Sequence[str]) -> list[Any]:
    """Return names as ids, numbers or text; as positions where there are no ids."""
    if ids is not None and ids.dtype.kind not in "iu":
        return list(names)
    try:
        return [int(name) for name in names]
    except ValueError:
        what = "positions" if ids is None else "whole numbers as ids"
        raise InputError(f"The nodes of this graph have {what}. Got {', '.join(names)!r} instead.") from None
